//! The closed sets of option values, with RocksDB's names and numbers.

use super::value::option_enum;

option_enum! {
    /// What a block or a file is compressed with.
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

option_enum! {
    /// How the tree is kept in shape.
    #[derive(Default)]
    pub enum CompactionStyle {
        /// Levels, each some times larger than the one above.
        #[default]
        Level = 0 "kCompactionStyleLevel",
        /// Sorted runs of similar size are merged.
        Universal = 1 "kCompactionStyleUniversal",
        /// The oldest files are dropped.
        Fifo = 2 "kCompactionStyleFIFO",
        /// Nothing is compacted unless asked for.
        None = 3 "kCompactionStyleNone",
    }
}

option_enum! {
    /// Which file of a level goes first.
    pub enum CompactionPri {
        /// The largest, with deletions counted extra.
        ByCompensatedSize = 0 "kByCompensatedSize",
        /// The one whose newest entry is oldest.
        OldestLargestSeqFirst = 1 "kOldestLargestSeqFirst",
        /// The one whose oldest entry is oldest.
        OldestSmallestSeqFirst = 2 "kOldestSmallestSeqFirst",
        /// The one that overlaps least with the next level, relative to its size.
        MinOverlappingRatio = 3 "kMinOverlappingRatio",
        /// Each in turn.
        RoundRobin = 4 "kRoundRobin",
    }
}

option_enum! {
    /// When universal compaction stops adding runs.
    pub enum CompactionStopStyle {
        /// By comparing with the run picked last.
        SimilarSize = 0 "kCompactionStopStyleSimilarSize",
        /// By comparing with everything picked so far.
        TotalSize = 1 "kCompactionStopStyleTotalSize",
    }
}

option_enum! {
    /// What recovery does about damage in the write-ahead log.
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

option_enum! {
    /// What the information log keeps.
    pub enum InfoLogLevel {
        /// Everything.
        Debug = 0 "DEBUG_LEVEL",
        /// What the database does.
        Info = 1 "INFO_LEVEL",
        /// What may need attention.
        Warn = 2 "WARN_LEVEL",
        /// What failed.
        Error = 3 "ERROR_LEVEL",
        /// What makes the database stop.
        Fatal = 4 "FATAL_LEVEL",
        /// The heading of each log file.
        Header = 5 "HEADER_LEVEL",
    }
}

option_enum! {
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

option_enum! {
    /// How often a file is expected to be read.
    pub enum Temperature {
        /// Not said.
        Unknown = 0 "kUnknown",
        /// Often.
        Hot = 4 "kHot",
        /// Sometimes.
        Warm = 8 "kWarm",
        /// Less than sometimes.
        Cool = 10 "kCool",
        /// Seldom.
        Cold = 12 "kCold",
        /// Hardly ever.
        Ice = 16 "kIce",
    }
}

option_enum! {
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

option_enum! {
    /// What carries out the large reads and writes of jobs.
    pub enum BackgroundIoKind {
        /// What is the better for the kind of file.
        Auto = 0 "auto",
        /// Threads.
        Threads = 1 "threads",
        /// The kernel, where it can.
        IoUring = 2 "io_uring",
    }
}

option_enum! {
    /// Whether fresh blobs go into the blob cache.
    pub enum PrepopulateBlobCache {
        /// No.
        Disable = 0 "kDisable",
        /// Those written by a flush.
        FlushOnly = 1 "kFlushOnly",
    }
}

option_enum! {
    /// Whether fresh blocks go into the block cache.
    pub enum PrepopulateBlockCache {
        /// No.
        Disable = 0 "kDisable",
        /// Those written by a flush.
        FlushOnly = 1 "kFlushOnly",
        /// Those written by a flush or a compaction.
        FlushAndCompaction = 2 "kFlushAndCompaction",
    }
}

option_enum! {
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

option_enum! {
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

option_enum! {
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

option_enum! {
    /// How a data block finds a key.
    pub enum DataBlockIndexType {
        /// By halving among restart points.
        BinarySearch = 0 "kDataBlockBinarySearch",
        /// By a small hash table for whole keys, by halving otherwise.
        BinaryAndHash = 1 "kDataBlockBinaryAndHash",
    }
}

option_enum! {
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

option_enum! {
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

option_enum! {
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

option_enum! {
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
