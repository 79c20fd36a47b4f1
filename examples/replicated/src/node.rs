//! One node: a store, a Raft instance above it, and a loop that serves requests.

use crate::store::{Digest, Store};
use crate::wire::{Network, Refusal, Request, send};
use crate::{Anything, Types};
use openraft::error::{ForwardToLeader, RaftError};
use openraft::{BasicNode, Config, Raft, SnapshotPolicy, TryAsRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, BufStream};
use tokio::net::{TcpListener, TcpStream};

/// How a node is.
#[derive(Debug, Serialize, Deserialize)]
pub struct Status {
    pub id: u64,
    /// Who leads, as far as it knows.
    pub leader: Option<u64>,
    /// The last index it has applied, and its data then.
    pub applied: u64,
    pub digest: Digest,
    /// The last index that its snapshot holds.
    pub snapshot: Option<u64>,
    /// The file that RocksDB's interface comes from.
    pub library: Option<String>,
}

struct Server {
    id: u64,
    raft: Raft<Types>,
    store: Store,
}

/// Serves until the process ends.
pub async fn run(id: u64, address: &str, directory: &Path) -> Anything<()> {
    let config = Config {
        heartbeat_interval: 250,
        election_timeout_min: 1000,
        election_timeout_max: 2000,
        install_snapshot_timeout: 5000,
        // So low that a node which was away for a while is sent a snapshot.
        snapshot_policy: SnapshotPolicy::LogsSinceLast(200),
        max_in_snapshot_log_to_keep: 100,
        snapshot_max_chunk_size: 256 << 10,
        ..Config::default()
    };
    let store = Store::open(directory)?;
    let config = Arc::new(config.validate()?);
    let raft = Raft::new(id, config, Network, store.clone(), store.clone()).await?;
    let server = Arc::new(Server { id, raft, store });
    let listener = TcpListener::bind(address).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let server = server.clone();
        // A client that goes away, or sends what is no request, loses its connection only.
        tokio::spawn(async move { server.serve(stream).await });
    }
}

impl Server {
    async fn serve(&self, stream: TcpStream) -> Anything<()> {
        stream.set_nodelay(true)?;
        let mut stream = BufStream::new(stream);
        let mut line = String::new();
        while stream.read_line(&mut line).await? > 0 {
            let reply = self.answer(serde_json::from_str(&line)?).await?;
            send(&mut stream, &reply).await?;
            line.clear();
        }
        Ok(())
    }

    async fn answer(&self, request: Request) -> Anything<Value> {
        let raft = &self.raft;
        let reply = match request {
            Request::Append(rpc) => serde_json::to_value(raft.append_entries(rpc).await)?,
            Request::Vote(rpc) => serde_json::to_value(raft.vote(rpc).await)?,
            Request::Snapshot(rpc) => serde_json::to_value(raft.install_snapshot(rpc).await)?,
            Request::Init(members) => {
                let outcome = raft.initialize(members).await;
                let why = |error: RaftError<u64, _>| Refusal {
                    why: error.to_string(),
                    leader: None,
                };
                serde_json::to_value(outcome.map_err(why))?
            }
            Request::Put(puts) => {
                let outcome = raft.client_write(puts).await;
                serde_json::to_value(outcome.map(drop).map_err(refusal))?
            }
            Request::Get(key) => match raft.ensure_linearizable().await {
                Ok(_) => serde_json::to_value(Ok::<_, Refusal>(self.store.get(&key)?))?,
                Err(error) => serde_json::to_value(Err::<(), _>(refusal(error)))?,
            },
            Request::Status => serde_json::to_value(self.status()?)?,
        };
        Ok(reply)
    }

    fn status(&self) -> Anything<Status> {
        let metrics = self.raft.metrics().borrow().clone();
        let (applied, digest) = self.store.digest()?;
        Ok(Status {
            id: self.id,
            leader: metrics.current_leader,
            applied,
            digest,
            snapshot: metrics.snapshot.map(|id| id.index),
            library: library(),
        })
    }
}

/// The answer to a client, with the leader's address when it is known.
fn refusal<E>(error: RaftError<u64, E>) -> Refusal
where
    E: std::error::Error + TryAsRef<ForwardToLeader<u64, BasicNode>>,
{
    let leader = error
        .forward_to_leader()
        .and_then(|to| to.leader_node.as_ref());
    Refusal {
        leader: leader.map(|node| node.addr.clone()),
        why: error.to_string(),
    }
}

/// Where the dynamic linker found the library.
fn library() -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut files = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5));
    files
        .find(|file| file.contains("librocksdb"))
        .map(str::to_owned)
}
