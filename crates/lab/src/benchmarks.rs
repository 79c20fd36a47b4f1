//! The names of the benchmarks, what each does, and why some of `db_bench`'s are not offered.

/// The benchmarks and what they do.
pub const BENCHMARKS: &[(&str, &str)] = &[
    ("fillseq", "write num keys in order into an empty database"),
    ("fillrandom", "write num random keys into an empty database"),
    (
        "filluniquerandom",
        "write every key once in random order into an empty database",
    ),
    ("fillbatch", "fillseq with batches of 1000"),
    (
        "fillsync",
        "write num/1000 random keys, syncing each, into an empty database",
    ),
    (
        "fill100K",
        "write num/1000 random values of 100,000 bytes into an empty database",
    ),
    ("fillseekseq", "write keys in order, then seek each of them"),
    ("overwrite", "write random keys into the existing database"),
    ("updaterandom", "read a random key, then write it"),
    (
        "xorupdaterandom",
        "read a random value, then write it combined bit by bit with another",
    ),
    (
        "appendrandom",
        "read a random value, then write it with another behind it",
    ),
    ("readrandom", "read random keys"),
    (
        "readrandomsmall",
        "readrandom with a thousandth of the reads",
    ),
    (
        "readrandomfast",
        "read random keys by the hundred, of the next power of two of num",
    ),
    (
        "readrandomoperands",
        "read the merge operands of random keys",
    ),
    ("readmissing", "read random keys that do not exist"),
    ("readseq", "iterate forward over the database"),
    (
        "readtocache",
        "iterate once over the database, in one thread",
    ),
    ("readreverse", "iterate backward over the database"),
    ("multireadrandom", "read batch_size random keys at once"),
    (
        "multireadwhilewriting",
        "multireadrandom with a background writer",
    ),
    (
        "multiscan",
        "scan multiscan_size ranges of seek_nexts (50) keys at a distance",
    ),
    ("multiscanrandom", "scan up to 64 random ranges"),
    (
        "seekrandom",
        "seek random keys, then read seek_nexts entries",
    ),
    ("newiterator", "create and destroy iterators"),
    (
        "newiteratorwhilewriting",
        "newiterator with a background writer",
    ),
    ("readwhilewriting", "readrandom with a background writer"),
    ("readwhilemerging", "readrandom with a background merger"),
    ("readwhilescanning", "readrandom with a background scan"),
    (
        "seekrandomwhilewriting",
        "seekrandom with a background writer",
    ),
    (
        "seekrandomwhilemerging",
        "seekrandom with a background merger",
    ),
    (
        "fwdrangewhilewriting",
        "forward scans of seek_nexts (10) entries with a background writer",
    ),
    (
        "revrangewhilewriting",
        "backward scans of seek_nexts (10) entries with a background writer",
    ),
    (
        "readrandomwriterandom",
        "readwritepercent reads, the rest writes",
    ),
    (
        "readrandommergerandom",
        "mergereadpercent merges, the rest reads",
    ),
    (
        "randomwithverify",
        "read, write and delete keys in threes that must stay alike",
    ),
    (
        "randomreplacekeys",
        "delete keys, and write the next version of each",
    ),
    ("mergerandom", "merge into random keys"),
    ("deleteseq", "delete keys in order"),
    ("deleterandom", "delete random keys"),
    (
        "mixgraph",
        "reads, writes and scans of a social graph, by the mix_* flags",
    ),
    ("ycsbload", "filluniquerandom, for the six below"),
    ("ycsba", "YCSB: half reads, half updates, Zipfian keys"),
    ("ycsbb", "YCSB: 95 % reads, 5 % updates"),
    ("ycsbc", "YCSB: reads"),
    ("ycsbd", "YCSB: 95 % reads of the newest keys, 5 % inserts"),
    (
        "ycsbe",
        "YCSB: 95 % scans of up to 100 entries, 5 % inserts",
    ),
    ("ycsbf", "YCSB: half reads, half reads with an update"),
    (
        "timeseries",
        "one writer of series in time, and readers or deleters of them",
    ),
    (
        "randomtransaction",
        "add to a key of each of transaction_sets sets at once, then verify",
    ),
    (
        "approximatesizerandom",
        "ask how many bytes lie between random keys",
    ),
    (
        "approximatememtablestats",
        "ask how many entries of memtables lie in a range",
    ),
    (
        "ingestexternalfile",
        "make tables of num keys, and take them into the database",
    ),
    ("backup", "make a backup in backup_dir"),
    (
        "restore",
        "restore the newest backup of backup_dir into restore_dir",
    ),
    ("compact", "compact everything, rewriting the last level"),
    ("compactall", "compact everything"),
    ("compact0", "compact level 0 into the next level with data"),
    (
        "compact1",
        "compact the first level below 0 into the next level with data",
    ),
    ("flush", "write memtables to tables"),
    (
        "waitforcompaction",
        "wait until nothing is left to flush or compact",
    ),
    (
        "verifychecksum",
        "read all tables and verify their checksums",
    ),
    (
        "verifyfilechecksums",
        "read all tables and compare the checksums of whole files",
    ),
    (
        "verify",
        "compare all pairs with those of the database truth_db",
    ),
    ("stats", "print rocksdb.stats"),
    ("levelstats", "print rocksdb.levelstats"),
    ("memstats", "print the memory properties"),
    (
        "block_cache_entry_stats",
        "print rocksdb.block-cache-entry-stats",
    ),
    (
        "stats_history",
        "say where the history of statistics is: in the LOG",
    ),
    ("resetstats", "set the engine's statistics to zero"),
    ("sstables", "print the list of table files"),
];

/// The benchmarks and what they do.
pub const CODEC_BENCHMARKS: &[(&str, &str)] = &[
    ("crc32c", "checksum blocks of block_size bytes with CRC-32C"),
    ("xxhash", "checksum blocks of block_size bytes with XXH32"),
    ("xxhash64", "checksum blocks of block_size bytes with XXH64"),
    ("xxh3", "checksum blocks of block_size bytes with XXH3"),
    (
        "compress",
        "compress blocks of block_size bytes with compression_type",
    ),
    (
        "uncompress",
        "decompress blocks of block_size bytes with compression_type",
    ),
];

/// Benchmarks of `db_bench` that are known and not offered, with the reason.
pub const NOT_OFFERED: &[(&str, &str)] = &[
    (
        "fillseqdeterministic",
        "it needs compactions that give a tree of a chosen shape",
    ),
    (
        "filluniquerandomdeterministic",
        "it needs compactions that give a tree of a chosen shape",
    ),
    (
        "fillanddeleteuniquerandom",
        "its pattern of deletions is not offered: see timeseries",
    ),
    (
        "getmergeoperands",
        "it needs a merge operator of RocksDB's test utilities: see readrandomoperands",
    ),
    ("readtorowcache", "there is no cache of rows"),
    ("readrandomcoroutine", "reads have no coroutines"),
    ("multireadrandomcoroutine", "reads have no coroutines"),
    ("fillembeddedblob", "tables hold no embedded blobs"),
    ("fillembeddedentity", "tables hold no embedded blobs"),
    ("readrandomentity", "only with fillembeddedentity"),
    ("multireadentity", "only with fillembeddedentity"),
    ("openandcompact", "there is no remote compaction"),
    ("replay", "traces are neither written nor replayed"),
    ("heapprofile", "the allocator has tools for it"),
    (
        "cache_report_problems",
        "the block cache has no such report",
    ),
    ("compressreject", "codecs are not asked to refuse a block"),
    ("acquireload", "it measures the processor alone"),
];
