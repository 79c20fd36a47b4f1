//! Esker: an embedded LSM storage engine that reads and writes RocksDB's files.
//!
//! A [`Db`] is a directory of ordered key-value families. Writes go to a log and to memory, and
//! from there to sorted tables that background jobs merge; reads see one consistent state and never
//! block writers.
//!
//! ```
//! # fn main() -> esker::Result<()> {
//! # let dir = tempfile::tempdir()?;
//! use esker::{Db, Options};
//!
//! let options = Options::new().create_if_missing(true).bloom_filter(10.0);
//! let db = Db::open(dir.path(), options)?;
//! db.put("user:ann", "1")?;
//! db.put("user:bob", "2")?;
//! assert_eq!(db.get("user:ann")?.as_deref(), Some(&b"1"[..]));
//! for entry in db.prefix("user:") {
//!     let (key, value) = entry?;
//!     println!("{} is {}", key.escape_ascii(), value.escape_ascii());
//! }
//! db.delete("user:ann")?;
//! # Ok(())
//! # }
//! ```
//!
//! # Where is ...
//!
//! | wanted | here |
//! |---|---|
//! | opening: read-only, secondary, with times to live | [`Db::builder`] |
//! | options | [`Options`], [`FamilyOptions`], [`ReadOptions`], [`WriteOptions`] |
//! | column families | [`Family`], [`Db::family_or_create`] |
//! | iterators, ranges, prefixes | [`Db::iter`], [`Db::range`], [`Db::prefix`], [`DbIterator`], [`Entries`] |
//! | snapshots | [`Db::snapshot`], [`Snapshot`] |
//! | several writes at once | [`WriteBatch`] |
//! | transactions | [`txn::TransactionDb`], [`txn::OptimisticTransactionDb`] |
//! | backups, checkpoints | [`backup::BackUp`], [`backup::BackupEngine`], [`Db::checkpoint`] |
//! | values that expire | [`ttl`] |
//! | merge operators, compaction filters | [`merge_operator`], [`compaction_filter`] |
//! | statistics, events, the LOG | [`observe`] |
//! | tables made elsewhere | [`SstFileWriter`], [`Db::ingest`] |
//! | calls that return futures | [`futures::AsyncDb`] |
//! | errors | [`Error`], [`ErrorKind`], [`Subcode`] |
//!
//! Once the database is closed, a [`Family`] and a [`Snapshot`] answer `ShutdownInProgress`; an
//! iterator goes on reading what it was made over. None of them keeps the database open.
//!
//! The codecs `lz4`, `zstd`, `zlib`, `bzip2` and `snappy` are features, all of them default; a C
//! compiler is needed for the first two. What needs a codec that is left out gets
//! [`ErrorKind::NotSupported`] with the feature to enable.
#![forbid(unsafe_code)]

pub use esker_backup as backup;
#[doc(inline)]
pub use esker_engine::*;
pub use esker_txn as txn;

#[cfg(feature = "async")]
pub mod futures;

/// The pages of the guide for Rust programs, which are tested as examples of this crate are.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../../docs/guide/6-rust.md")]
    mod rust {}
    #[doc = include_str!("../../../docs/guide/7-from-rocksdb-crate.md")]
    mod from_rocksdb_crate {}
    #[doc = include_str!("../../../docs/guide/8-from-fjall.md")]
    mod from_fjall {}
    #[doc = include_str!("../../../docs/guide/9-from-redb.md")]
    mod from_redb {}
    #[cfg(feature = "async")]
    #[doc = include_str!("../../../docs/guide/10-from-slatedb.md")]
    mod from_slatedb {}
}
