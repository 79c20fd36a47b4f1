//! A key-value service on three nodes: `openraft` replicates, the `rocksdb` crate stores.
//!
//! ```text
//! replicated node ID ADDRESS DIRECTORY     one node
//! replicated call ADDRESS JSON             one request, for instance '{"Get":"key"}'
//! replicated trial [KEYS [LIBDIR]]         three nodes, load, kills, and a check that nothing was
//! lost;
//!                                          nodes that were killed come back on the library in
//!                                          LIBDIR
//! ```

mod node;
mod store;
mod trial;
mod wire;

use std::io::Cursor;

/// Puts that happen together: the unit of replication.
pub type Puts = Vec<(String, String)>;

openraft::declare_raft_types!(
    /// The types that openraft works on.
    pub Types:
        D = Puts,
        R = (),
);

/// Errors of a whole program.
pub type Anything<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Anything<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["node", id, address, directory] => node::run(id.parse()?, address, directory.as_ref()).await,
        ["call", address, request] => {
            let request: serde_json::Value = serde_json::from_str(request)?;
            let reply: serde_json::Value = wire::Peer::new(address).call(&request).await?;
            println!("{reply}");
            Ok(())
        }
        ["trial"] => trial::run(20_000, None).await,
        ["trial", keys] => trial::run(keys.parse()?, None).await,
        ["trial", keys, other] => trial::run(keys.parse()?, Some(other)).await,
        _ => Err("usage: replicated node ID ADDRESS DIRECTORY | call ADDRESS JSON | trial [KEYS [LIBDIR]]".into()),
    }
}
