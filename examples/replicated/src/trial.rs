//! The trial: three processes on loopback, load, nodes killed under it; then every node has exactly
//! what was acknowledged.

use crate::Anything;
use crate::node::Status;
use crate::store::Digest;
use crate::wire::{Peer, Refusal, Request};
use openraft::BasicNode;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

const CLIENTS: u64 = 4;
/// Puts in one request.
const BATCH: u64 = 10;
const LINKED_IN: &str = "a library that is linked in";
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// The three nodes, as processes of this program. Those that live are killed when it is dropped.
struct Cluster {
    directory: PathBuf,
    addresses: BTreeMap<u64, String>,
    running: BTreeMap<u64, Child>,
    /// The directory of another library, which nodes load from now on, on what they have on disk.
    other: Option<String>,
}

impl Cluster {
    fn new() -> Anything<Cluster> {
        let directory = std::env::temp_dir().join(format!("replicated-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let mut addresses = BTreeMap::new();
        // Ports that are free now; held together, so that they differ.
        let mut held = Vec::new();
        for id in 1..=3 {
            let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
            addresses.insert(id, listener.local_addr()?.to_string());
            held.push(listener);
        }
        Ok(Cluster {
            directory,
            addresses,
            running: BTreeMap::new(),
            other: None,
        })
    }

    fn start(&mut self, id: u64) -> Anything<()> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["node", &id.to_string(), &self.addresses[&id]]);
        command.arg(self.directory.join(id.to_string()));
        if let Some(directory) = &self.other {
            command.env("LD_LIBRARY_PATH", directory);
        }
        self.running.insert(id, command.spawn()?);
        Ok(())
    }

    /// `SIGKILL`: the process has no say.
    fn kill(&mut self, id: u64) -> Anything<()> {
        if let Some(mut child) = self.running.remove(&id) {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    async fn status(&self, id: u64) -> Anything<Status> {
        let mut peer = Peer::new(&self.addresses[&id]);
        Ok(timeout(Duration::from_secs(10), peer.call(&Request::Status)).await??)
    }

    /// The leader that a majority agrees on.
    async fn leader(&self) -> Anything<u64> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            let mut votes = BTreeMap::new();
            for &id in self.running.keys() {
                if let Some(leader) = self.status(id).await.ok().and_then(|s| s.leader) {
                    *votes.entry(leader).or_insert(0) += 1;
                }
            }
            let chosen = votes
                .into_iter()
                .find(|&(id, n)| n >= 2 && self.running.contains_key(&id));
            if let Some((id, _)) = chosen {
                return Ok(id);
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err("no leader".into())
    }

    /// Waits until all nodes hold `expected`.
    async fn agree(&self, expected: Digest) -> Anything<()> {
        let begin = Instant::now();
        loop {
            let mut states = Vec::new();
            for &id in self.addresses.keys() {
                states.push(self.status(id).await);
            }
            let same = |s: &Anything<Status>| s.as_ref().is_ok_and(|s| s.digest == expected);
            if states.iter().all(same) {
                for status in states.into_iter().flatten() {
                    println!(
                        "  node {}: applied {}, {} keys, digest {:016x}, snapshot at {}, on {}",
                        status.id,
                        status.applied,
                        status.digest.keys,
                        status.digest.hash,
                        status
                            .snapshot
                            .map_or("none".into(), |index| index.to_string()),
                        status.library.as_deref().unwrap_or(LINKED_IN),
                    );
                }
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                return Err(format!("nodes differ from {expected:?}: {states:#?}").into());
            }
            sleep(Duration::from_millis(200)).await;
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for id in 1..=3 {
            if let Err(error) = self.kill(id) {
                eprintln!("node {id}: {error}");
            }
        }
    }
}

/// How far the clients are.
#[derive(Default)]
struct Progress {
    acknowledged: AtomicU64,
    retries: AtomicU64,
}

/// Puts until it is acknowledged, wherever the leader is. Returns how often it had to try again.
async fn put(addresses: &[String], leader: &mut Peer, puts: &crate::Puts) -> Anything<u64> {
    let begin = Instant::now();
    let request = Request::Put(puts.clone());
    let mut tries = 0;
    loop {
        let call = leader.call::<Result<(), Refusal>>(&request);
        match timeout(Duration::from_secs(5), call).await {
            Ok(Ok(Ok(()))) => return Ok(tries),
            Ok(Ok(Err(Refusal {
                leader: Some(other),
                ..
            }))) if other != leader.address => {
                *leader = Peer::new(&other);
            }
            // Unreachable, silent, or without a leader: the next one may know.
            _ => {
                let at = addresses
                    .iter()
                    .position(|a| *a == leader.address)
                    .unwrap_or(0);
                *leader = Peer::new(&addresses[(at + 1) % addresses.len()]);
                sleep(Duration::from_millis(100)).await;
            }
        }
        if begin.elapsed() > PATIENCE {
            return Err("a put was never acknowledged".into());
        }
        tries += 1;
    }
}

/// One client: every key twice, so that the second value must win. Returns what was acknowledged.
async fn load(
    client: u64,
    keys: u64,
    addresses: Vec<String>,
    progress: Arc<Progress>,
) -> Anything<BTreeMap<String, String>> {
    let mut model = BTreeMap::new();
    let mut leader = Peer::new(&addresses[0]);
    for round in 1..=2 {
        for from in (0..keys).step_by(BATCH as usize) {
            let pair = |i| {
                (
                    format!("{client}/{i:08}"),
                    format!("{round}-{}", i * 7 + client),
                )
            };
            let puts: crate::Puts = (from..keys.min(from + BATCH)).map(pair).collect();
            let retries = put(&addresses, &mut leader, &puts).await?;
            progress.retries.fetch_add(retries, Ordering::Relaxed);
            progress
                .acknowledged
                .fetch_add(puts.len() as u64, Ordering::Relaxed);
            model.extend(puts);
        }
    }
    Ok(model)
}

/// Loads `keys` keys twice; kills a follower, then the leader, on the way. Nodes that are started
/// again load the library in `other`, if that is given.
pub async fn run(keys: u64, other: Option<&str>) -> Anything<()> {
    let mut cluster = Cluster::new()?;
    let members: BTreeMap<u64, BasicNode> = cluster
        .addresses
        .iter()
        .map(|(&id, address)| (id, BasicNode::new(address)))
        .collect();
    let addresses: Vec<String> = cluster.addresses.values().cloned().collect();
    for id in 1..=3 {
        cluster.start(id)?;
    }
    initialize(&addresses[0], members).await?;
    let leader = cluster.leader().await?;
    let library = cluster.status(leader).await?.library;
    println!("three nodes on {}", library.as_deref().unwrap_or(LINKED_IN));

    let begin = Instant::now();
    let progress = Arc::new(Progress::default());
    let share = keys.div_ceil(CLIENTS);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| tokio::spawn(load(client, share, addresses.clone(), progress.clone())))
        .collect();
    let total = share * CLIENTS * 2;
    let reached = async |percent: u64| {
        let begin = Instant::now();
        while progress.acknowledged.load(Ordering::Relaxed) * 100 < total * percent {
            if begin.elapsed() > PATIENCE {
                return Err(format!("the load did not reach {percent} %"));
            }
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    };
    cluster.other = other.map(str::to_owned);
    reached(15).await?;
    let follower = leader % 3 + 1;
    cluster.kill(follower)?;
    println!("at 15 %: killed node {follower}, a follower");
    reached(40).await?;
    cluster.start(follower)?;
    println!("at 40 %: started it again");
    reached(55).await?;
    let leader = cluster.leader().await?;
    cluster.kill(leader)?;
    println!("at 55 %: killed node {leader}, the leader");
    reached(80).await?;
    cluster.start(leader)?;
    println!("at 80 %: started it again");

    let mut model = BTreeMap::new();
    for client in clients {
        model.extend(client.await??);
    }
    println!(
        "{total} puts of {} keys acknowledged in {:.1} s, {} requests tried again",
        model.len(),
        begin.elapsed().as_secs_f64(),
        progress.retries.load(Ordering::Relaxed)
    );
    let expected = Digest::of(model.iter());
    println!("every node has what was acknowledged:");
    cluster.agree(expected).await?;
    for id in 1..=3 {
        cluster.kill(id)?;
    }
    for id in 1..=3 {
        cluster.start(id)?;
    }
    cluster.leader().await?;
    println!("all three killed and started again:");
    cluster.agree(expected).await?;
    let directory = cluster.directory.clone();
    drop(cluster);
    std::fs::remove_dir_all(directory)?;
    println!("nothing was lost");
    Ok(())
}

/// Tells the first node who the members are, as soon as it listens.
async fn initialize(address: &str, members: BTreeMap<u64, BasicNode>) -> Anything<()> {
    let begin = Instant::now();
    let mut peer = Peer::new(address);
    loop {
        let reply = peer
            .call::<Result<(), Refusal>>(&Request::Init(members.clone()))
            .await;
        match reply {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(refusal)) => return Err(refusal.why.into()),
            Err(error) if begin.elapsed() > PATIENCE => return Err(error.into()),
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}
