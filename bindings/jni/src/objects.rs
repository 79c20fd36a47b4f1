//! The kinds of values behind handles that accessors are generated for.

pub(crate) use crate::call_options::{FlushState, ReadState};
pub(crate) use crate::table_file::FileOptions;
pub(crate) use esker::options::{CompressionSettings, FifoSettings, UniversalSettings};
pub(crate) use esker::{
    CompactFilesOptions, CompactRangeOptions, ImportOptions, IngestOptions, Options, WriteOptions,
};
pub(crate) use esker_backup::BackupEngineOptions;
pub(crate) use esker_txn::{
    OptimisticTransactionOptions, TransactionDbOptions, TransactionOptions,
};
