//! How nodes and clients talk: over TCP, one line of JSON for a request, one for its reply.

use crate::Types;
use openraft::BasicNode;
use openraft::error::{InstallSnapshotError, RPCError, RaftError, RemoteError, Unreachable};
use openraft::network::{RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;

/// A message to a node.
#[derive(Serialize, Deserialize)]
pub enum Request {
    /// From other nodes.
    Append(AppendEntriesRequest<Types>),
    Vote(VoteRequest<u64>),
    Snapshot(InstallSnapshotRequest<Types>),
    /// From clients. The first members, by number and address:
    Init(BTreeMap<u64, BasicNode>),
    /// Writes; answered when a majority has them on disk.
    Put(crate::Puts),
    /// A read that sees every write that was acknowledged before it.
    Get(String),
    /// How the node itself is, whatever the others are.
    Status,
}

/// Why a request was not served, and who may serve it.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refusal {
    pub why: String,
    pub leader: Option<String>,
}

/// One side of a connection that opens itself when it is needed.
pub struct Peer {
    pub address: String,
    stream: Option<BufStream<TcpStream>>,
}

impl Peer {
    pub fn new(address: &str) -> Peer {
        Peer {
            address: address.to_owned(),
            stream: None,
        }
    }

    /// Sends a request and waits for its reply. A connection that failed is not used again.
    pub async fn call<T: DeserializeOwned>(&mut self, request: &impl Serialize) -> io::Result<T> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(&self.address).await?;
                stream.set_nodelay(true)?;
                BufStream::new(stream)
            }
        };
        send(&mut stream, request).await?;
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.stream = Some(stream);
        serde_json::from_str(&line).map_err(io::Error::other)
    }
}

/// Writes one line.
pub async fn send(stream: &mut BufStream<TcpStream>, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    stream.flush().await
}

/// Makes openraft's connections to other nodes.
pub struct Network;

/// Openraft's connection to one of them.
pub struct Link {
    target: u64,
    peer: Peer,
}

impl RaftNetworkFactory<Types> for Network {
    type Network = Link;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> Link {
        Link {
            target,
            peer: Peer::new(&node.addr),
        }
    }
}

type Outcome<T, E> = Result<T, RPCError<u64, BasicNode, E>>;

impl Link {
    async fn ask<T, E>(&mut self, request: Request) -> Outcome<T, E>
    where
        T: DeserializeOwned,
        E: std::error::Error + DeserializeOwned,
    {
        let reply: io::Result<Result<T, E>> = self.peer.call(&request).await;
        reply
            .map_err(|error| RPCError::Unreachable(Unreachable::new(&error)))?
            .map_err(|error| RPCError::RemoteError(RemoteError::new(self.target, error)))
    }
}

impl RaftNetwork<Types> for Link {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Outcome<AppendEntriesResponse<u64>, RaftError<u64>> {
        self.ask(Request::Append(request)).await
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<Types>,
        _option: RPCOption,
    ) -> Outcome<InstallSnapshotResponse<u64>, RaftError<u64, InstallSnapshotError>> {
        self.ask(Request::Snapshot(request)).await
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        _option: RPCOption,
    ) -> Outcome<VoteResponse<u64>, RaftError<u64>> {
        self.ask(Request::Vote(request)).await
    }
}
