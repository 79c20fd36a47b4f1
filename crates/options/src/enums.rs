//! The closed sets of option values, with RocksDB's names and numbers.
//!
//! Those that decisions about trees go by are declared with the decisions, in `esker_lsm`.

use esker_format::named_enum;

pub use esker_lsm::pick::manual::BottommostLevelCompaction;
pub use esker_lsm::policy::{CompactionPri, CompactionStopStyle, CompactionStyle, Temperature};

named_enum! {
    /// The codec of a block or a file.
    #[derive(Default)]
    pub enum CompressionType {
        /// Stored as it is.
        #[default]
        None = 0 "kNoCompression",
        /// Snappy.
        Snappy = 1 "kSnappyCompression",
        /// zlib's deflate, without its header.
        Zlib = 2 "kZlibCompression",
        /// bzip2.
        Bzip2 = 3 "kBZip2Compression",
        /// LZ4.
        Lz4 = 4 "kLZ4Compression",
        /// LZ4, slow and smaller to store, as fast to read.
        Lz4hc = 5 "kLZ4HCCompression",
        /// Microsoft's Xpress; known by name, never built in.
        Xpress = 6 "kXpressCompression",
        /// Zstandard.
        Zstd = 7 "kZSTD" | "kZSTDNotFinalCompression",
        /// "Not given": the family's `compression` counts.
        Disable = 255 "kDisableCompressionOption",
    }
}

named_enum! {
    /// Treatment of damage in the write-ahead log.
    pub enum WalRecoveryMode {
        /// Forgives a torn record at the end of any log.
        TolerateCorruptedTailRecords = 0 "kTolerateCorruptedTailRecords",
        /// Forgives nothing.
        AbsoluteConsistency = 1 "kAbsoluteConsistency",
        /// Stops at the first damage; what comes before is a consistent state.
        PointInTimeRecovery = 2 "kPointInTimeRecovery",
        /// Skips what is damaged and takes the rest.
        SkipAnyCorruptedRecords = 3 "kSkipAnyCorruptedRecords",
    }
}

named_enum! {
    /// Levels of lines in the information log.
    pub enum InfoLogLevel {
        /// Everything.
        Debug = 0 "DEBUG_LEVEL",
        /// Actions of the database.
        Info = 1 "INFO_LEVEL",
        /// Events that may need attention.
        Warn = 2 "WARN_LEVEL",
        /// Failures.
        Error = 3 "ERROR_LEVEL",
        /// Failures that make the database stop.
        Fatal = 4 "FATAL_LEVEL",
        /// The heading of each log file.
        Header = 5 "HEADER_LEVEL",
    }
}

named_enum! {
    /// The slowest cache that may be used.
    pub enum CacheTier {
        /// Memory.
        Volatile = 0 "kVolatileTier",
        /// Memory, compressed.
        VolatileCompressed = 1 "kVolatileCompressedTier",
        /// A device.
        NonVolatileBlock = 2 "kNonVolatileBlockTier",
    }
}

named_enum! {
    /// Advice to the filesystem about the inputs of a compaction.
    pub enum AccessHint {
        /// None.
        None = 0 "NONE",
        /// The default.
        Normal = 1 "NORMAL",
        /// Front to back.
        Sequential = 2 "SEQUENTIAL",
        /// All of it soon.
        WillNeed = 3 "WILLNEED",
    }
}

named_enum! {
    /// Who carries out the large reads and writes of jobs.
    pub enum BackgroundIoKind {
        /// The faster one for the kind of file.
        Auto = 0 "auto",
        /// Threads.
        Threads = 1 "threads",
        /// The kernel, where it can.
        IoUring = 2 "io_uring",
    }
}

named_enum! {
    /// Fresh blobs that go into the blob cache.
    pub enum PrepopulateBlobCache {
        /// No.
        Disable = 0 "kDisable",
        /// Those written by a flush.
        FlushOnly = 1 "kFlushOnly",
    }
}

named_enum! {
    /// Fresh blocks that go into the block cache.
    pub enum PrepopulateBlockCache {
        /// No.
        Disable = 0 "kDisable",
        /// Those written by a flush.
        FlushOnly = 1 "kFlushOnly",
        /// Those written by a flush or a compaction.
        FlushAndCompaction = 2 "kFlushAndCompaction",
    }
}

named_enum! {
    /// The checksum of each block.
    pub enum ChecksumKind {
        /// None.
        None = 0 "kNoChecksum",
        /// CRC-32C.
        Crc32c = 1 "kCRC32c",
        /// The low half of XXH32's family member RocksDB calls xxHash.
        XxHash = 2 "kxxHash",
        /// The low half of XXH64.
        XxHash64 = 3 "kxxHash64",
        /// XXH3.
        Xxh3 = 4 "kXXH3",
    }
}

named_enum! {
    /// How a table file finds a block.
    pub enum IndexType {
        /// One sorted index block.
        BinarySearch = 0 "kBinarySearch",
        /// One sorted index block, and a hash from prefix to its entries.
        HashSearch = 1 "kHashSearch",
        /// A tree of two levels of index blocks.
        TwoLevelIndexSearch = 2 "kTwoLevelIndexSearch",
        /// One sorted index block whose entries hold each block's first key.
        BinarySearchWithFirstKey = 3 "kBinarySearchWithFirstKey",
    }
}

named_enum! {
    /// How an index block is searched.
    pub enum BlockSearchType {
        /// By halving.
        Binary = 0 "kBinary",
        /// By guessing from the keys' values.
        Interpolation = 1 "kInterpolation",
        /// Whichever the block says fits.
        Auto = 2 "kAuto",
    }
}

named_enum! {
    /// How a data block finds a key.
    pub enum DataBlockIndexType {
        /// By halving among restart points.
        BinarySearch = 0 "kDataBlockBinarySearch",
        /// By a small hash table for whole keys, by halving otherwise.
        BinaryAndHash = 1 "kDataBlockBinaryAndHash",
    }
}

named_enum! {
    /// How much index keys are shortened.
    pub enum IndexShortening {
        /// Not at all.
        NoShortening = 0 "kNoShortening",
        /// Between blocks.
        ShortenSeparators = 1 "kShortenSeparators",
        /// Between blocks, and after the last.
        ShortenSeparatorsAndSuccessor = 2 "kShortenSeparatorsAndSuccessor",
    }
}

named_enum! {
    /// Which metadata blocks stay in the cache while their file is open.
    pub enum PinningTier {
        /// As the older `pin_*` options say.
        Fallback = 0 "kFallback",
        /// None.
        None = 1 "kNone",
        /// Those of flushed files, and of files about as small.
        FlushedAndSimilar = 2 "kFlushedAndSimilar",
        /// All.
        All = 3 "kAll",
    }
}

named_enum! {
    /// The index of the memtable.
    pub enum MemtableKind {
        /// An ordered index that takes concurrent writers.
        SkipList = 0 "SkipListFactory" | "skip_list" | "SkipListRepFactory",
        /// A sorted-on-demand vector.
        Vector = 1 "VectorRepFactory" | "vector",
        /// A hash of skip lists by prefix.
        HashSkipList = 2 "HashSkipListRepFactory" | "prefix_hash",
        /// A hash of linked lists by prefix.
        HashLinkList = 3 "HashLinkListRepFactory" | "hash_linkedlist",
    }
}

named_enum! {
    /// The format of table files.
    pub enum TableFormat {
        /// Blocks.
        BlockBased = 0 "BlockBasedTable",
        /// Plain tables for memory-mapped files.
        Plain = 1 "PlainTable",
        /// Cuckoo tables.
        Cuckoo = 2 "CuckooTable",
        /// Written as one format, read as any.
        Adaptive = 3 "AdaptiveTable",
    }
}
