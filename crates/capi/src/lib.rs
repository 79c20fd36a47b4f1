//! RocksDB's C interface on Esker: `librocksdb.so` and `librocksdb.a`.
//!
//! `spec/rocksdb.api` is the interface. What this crate does not write by hand is generated from
//! it: accessors of options from `spec/accessors.txt`, and a refusal for everything else, so that
//! every name is exported.
//!
//! Modules hold functions by theme; each handle is a box whose Rust type has the C type's name.
//! Three rules hold everywhere: whatever comes from C is taken through `boundary`, the only module
//! with unsafe blocks; no panic leaves a function (`boundary::call`); what is returned to be freed
//! by the caller comes from `malloc`.
//!
//! Thread-safety: as RocksDB's. A database, its families and its caches may be used by any thread
//! at once; an iterator, a batch, a transaction or an options object by one at a time.
#![allow(non_camel_case_types)] // Types are called as in C.
#![allow(missing_docs)] // Functions are documented by RocksDB's names for them; modules say what is special.
#![allow(clippy::too_many_arguments)] // The interface is given.

mod access;
mod additions;
mod admin;
mod background;
mod backup_engine;
mod batch;
mod boundary;
mod cache;
mod call_options;
mod checkpoint;
mod column_family;
mod compact_files;
mod compaction_filter;
mod compaction_options;
mod comparator;
mod db;
mod env;
mod event_listener;
mod family_metadata;
mod follow;
mod generated;
mod indexed_batch;
mod ingest;
mod iterator;
mod job_info;
mod legacy;
mod lent;
mod live_files;
mod live_files_storage;
mod logger;
mod merge_operator;
mod open_dbs;
mod optimistic_transaction_db;
mod options;
mod paths;
mod pinned;
mod ranges;
mod read;
mod refusal;
mod shared_limits;
mod slice_transform;
mod snapshot;
mod sst_file_manager;
mod sst_file_writer;
mod statistics;
mod table_options;
mod table_properties;
mod table_rules;
mod timestamps;
mod trace_options;
mod transaction;
mod transaction_db;
mod ttl;
mod unbuilt;
mod wal_filter;
mod write;

pub use additions::*;
pub use admin::*;
pub use background::*;
pub use backup_engine::*;
pub use batch::*;
pub use cache::*;
pub use call_options::*;
pub use checkpoint::*;
pub use column_family::*;
pub use compact_files::*;
pub use compaction_filter::*;
pub use compaction_options::*;
pub use comparator::*;
pub use db::*;
pub use env::*;
pub use event_listener::*;
pub use family_metadata::*;
pub use follow::*;
pub use generated::{accessors::*, added::*, refused::*, types::*};
pub use indexed_batch::*;
pub use ingest::*;
pub use iterator::*;
pub use job_info::*;
pub use legacy::*;
pub use live_files::*;
pub use live_files_storage::*;
pub use logger::*;
pub use merge_operator::*;
pub use optimistic_transaction_db::*;
pub use options::*;
pub use paths::*;
pub use pinned::*;
pub use ranges::*;
pub use read::*;
pub use shared_limits::*;
pub use slice_transform::*;
pub use snapshot::*;
pub use sst_file_manager::*;
pub use sst_file_writer::*;
pub use statistics::*;
pub use table_options::*;
pub use table_properties::*;
pub use table_rules::*;
pub use timestamps::*;
pub use trace_options::*;
pub use transaction::*;
pub use transaction_db::*;
pub use ttl::*;
pub use unbuilt::*;
pub use wal_filter::*;
pub use write::*;

/// A type of the interface that nothing is behind yet: its functions are refused.
#[macro_export]
#[doc(hidden)]
macro_rules! opaque {
    ($name:ident) => {
        #[repr(C)]
        pub struct $name {
            _nothing: [u8; 0],
        }
    };
}
