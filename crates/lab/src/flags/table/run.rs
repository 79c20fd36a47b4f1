//! Flags that drive the laboratory: what is run, on which keys, for how long, and what is printed.
//!
//! A row: kind, name, default, fate, one line for `--help`.

use super::{Fate, Flag, flags};

pub(super) const FLAGS: &[Flag] = flags! {
    Text "engine" = "esker", Fate::Run,
        "what to measure: esker, lib:/path/to/librocksdb.so, or null for the client alone; with \
         ?name=value;... for options of its own; compare takes it twice";
    Text "json" = "", Fate::Run, "file for the results as JSON; - or nothing for standard output";
    Int "pairs" = "5", Fate::Run,
        "compare: how often the pair A B B A is run (each gives two ratios)";
    Text "configs" = "", Fate::Run,
        "universal: configurations to run, as m1.none,90.nlz; all ten unless given";
    Text "options" = "", Fate::Run,
        "more options, as a RocksDB option string name=value;..., added last";
    Text "benchmarks" = "fillseq", Fate::Run, "comma-separated list of benchmarks, run in order";
    Text "db" = "", Fate::Run,
        "directory of the database; empty means a temporary one, removed at the end";
    Bool "use_existing_db" = "false", Fate::Run,
        "keep and use the data that is there; benchmarks that need an empty database are skipped";
    Int "num" = "1000000", Fate::Run, "number of keys, and of operations unless said otherwise";
    Int "reads" = "-1", Fate::Run, "read operations per thread; negative means num";
    Int "writes" = "-1", Fate::Run, "write operations per thread; negative means num";
    Int "deletes" = "-1", Fate::Run, "delete operations per thread; negative means num";
    Int "threads" = "1", Fate::Run,
        "threads per benchmark; benchmarks with a background writer add one";
    Int "duration" = "0", Fate::Run,
        "seconds to run instead of a number of operations (fillseq and deleteseq ignore it)";
    Int "ops_between_duration_checks" = "1000", Fate::Run,
        "operations between looks at the clock when duration is set";
    Int "seed" = "0", Fate::Run, "base of the random seeds; 0 takes one from the clock";
    Int "key_size" = "16", Fate::Run, "bytes per key";
    Int "value_size" = "100", Fate::Run, "bytes per value";
    Text "value_size_distribution_type" = "fixed", Fate::Run, "fixed, uniform or normal";
    Int "value_size_min" = "100", Fate::Run, "least value size when not fixed";
    Int "value_size_max" = "102400", Fate::Run, "largest value size when not fixed";
    Int "batch_size" = "1", Fate::Run, "operations per write batch or multi-get";
    Int "seek_nexts" = "0", Fate::Run, "entries read after each seek";
    Bool "skip_missing" = "false", Fate::Run,
        "go on behind a benchmark that a loaded library has no call for";
    Bool "repeat_walks" = "false", Fate::Run,
        "readseq and readreverse begin again at their end until duration has passed";
    Bool "reverse_iterator" = "false", Fate::Run, "seekrandom goes backwards";
    Int "max_scan_distance" = "0", Fate::Run,
        "keys between a seek and the iterator's bound; 0 means unbounded";
    Bool "histogram" = "false", Fate::Run, "measure every operation and print percentiles";
    Int "slowest" = "0", Fate::Run,
        "print this many of the slowest operations, and where each spent its time";
    Bool "sync_between" = "false", Fate::Run,
        "write out the filesystem's dirty pages before and after each benchmark, so that the \
         device's figures are of that benchmark";
    Bool "watch" = "true", Fate::Run,
        "take rates by second, memory by owner and the directory's size while benchmarks run; \
         false for counts of instructions, which threads that work by the clock would disturb";
    Int "planted_rounds" = "0", Fate::Run,
        "rounds of work that each operation takes on top: a slowdown of known size, to check \
         that comparisons find it";
    Int "burst_seconds" = "0", Fate::Run,
        "writers write for so long and rest for rest_seconds, in turns; 0 means without a rest";
    Int "rest_seconds" = "10", Fate::Run, "how long writers rest between bursts";
    Bool "limits" = "false", Fate::Run,
        "measure the machine first (some seconds, half a gigabyte), and say what part of \
         its limit each row reaches";
    Text "report_file" = "report.csv", Fate::Run,
        "file for secs_elapsed,interval_qps, written when report_interval_seconds is set";
    Int "report_interval_seconds" = "0", Fate::Run,
        "seconds between lines of report_file; 0 writes none";
    Int "stats_interval" = "0", Fate::Run, "operations between progress lines; 0 prints none";
    Int "stats_interval_seconds" = "0", Fate::Run, "seconds between progress lines; 0 prints none";
    Int "stats_per_interval" = "0", Fate::Run,
        "print the engine's statistics with every progress line";
    Bool "statistics" = "false", Fate::Run,
        "let the engine collect tickers and histograms, and print them at the end";
    Text "undefok" = "", Fate::Run, "comma-separated names of unknown flags to tolerate";
    Int "benchmark_write_rate_limit" = "0", Fate::Run,
        "bytes per second that writers may write; 0 means no limit";
    Int "benchmark_read_rate_limit" = "0", Fate::Run,
        "operations per second that readers may do; 0 means no limit";
    Int "background_write_rate_limit" = "-1", Fate::Run,
        "bytes per second of the background writer alone; 0 for no limit, negative to \
         follow benchmark_write_rate_limit";
    Int "readwritepercent" = "90", Fate::Run, "reads in 100 operations of readrandomwriterandom";
    Int "bgwriter_num" = "0", Fate::Run,
        "keys that the background writer chooses from; 0 means num";
    Int "merge_keys" = "-1", Fate::Run, "distinct keys of mergerandom; negative means num";
    Int "keys_per_prefix" = "0", Fate::Run, "keys that share a prefix; 0 means no prefixes";
    Bool "use_single_deletes" = "true", Fate::Run, "randomreplacekeys: delete singly";
    Bool "sync" = "false", Fate::Run, "sync the log at every write";
    Bool "disable_wal" = "false", Fate::Run, "write without the log";
    Number "compression_ratio" = "0.5", Fate::Run, "size that generated values compress to";
    Bool "verify_checksum" = "true", Fate::Run, "verify checksums of blocks read from files";
    Bool "async_io" = "false", Fate::Run, "ask for asynchronous reads in iterators";
    Int "readahead_size" = "0", Fate::Run, "bytes that iterators read ahead";
    Bool "multiread_batched" = "false", Fate::Run, "use the batched form of multi-get";
    Int "multiread_stride" = "0", Fate::Run,
        "distance of the keys of one multi-get; 0 means random keys";
    Bool "adaptive_readahead" = "false", Fate::Run, "carry the readahead from table to table";
    Int "num_column_families" = "1", Fate::Run, "column families; operations go to all of them";
    Int "num_multi_db" = "0", Fate::Run,
        "databases, in directories below --db; operations go to all of them";
    Bool "transaction_db" = "false", Fate::Run,
        "randomtransaction goes through pessimistic transactions";
    Text "options_file" = "", Fate::Run,
        "take the options from this OPTIONS file; flags of the run still count";
    Bool "use_existing_keys" = "false", Fate::Run, "random reads take keys from the database";
    Number "read_random_exp_range" = "0.0", Fate::Run,
        "skew of random reads: they take key num*exp(-r), r up to this";
    Int "numdistinct" = "1000", Fate::Run, "keys of randomwithverify";
    Int "deletepercent" = "2", Fate::Run, "deletions in 100 operations of randomwithverify";
    Int "mergereadpercent" = "70", Fate::Run, "merges in 100 operations of readrandommergerandom";
    Int "seek_nexts_to_delete" = "0", Fate::Run,
        "entries that seekrandom deletes behind those it reads";
    Bool "auto_prefix_mode" = "false", Fate::Run,
        "iterators use the prefix's filter where their bound allows it";
    Bool "total_order_seek" = "false", Fate::Run, "iterators ignore the prefix";
    Bool "prefix_same_as_start" = "false", Fate::Run,
        "iterators end with the prefix they were sent to";
    Bool "use_tailing_iterator" = "false", Fate::Run,
        "seeks go through tailing iterators, which see new entries";
    Bool "auto_refresh_iterator_with_snapshot" = "false", Fate::Run,
        "iterators at a snapshot go on to newer files and memtables";
    Bool "auto_readahead_size" = "false", Fate::Run,
        "iterators size their readahead by their bound";
    Bool "explicit_snapshot" = "false", Fate::Run, "each iterator has a snapshot of its own";
    Int "multiscan_size" = "10", Fate::Run, "ranges of one multiscan";
    Int "multiscan_stride" = "100", Fate::Run,
        "keys from the start of one range of a multiscan to that of the next";
    Bool "finish_after_writes" = "false", Fate::Run,
        "the background writer ends after the number of writes in `writes`";
    Text "truth_db" = "/dev/shm/truth_db/dbbench", Fate::Run,
        "database with the pairs that verify expects";
    Int "writes_before_delete_range" = "0", Fate::Run,
        "writes of a fill before range deletions begin";
    Int "writes_per_range_tombstone" = "0", Fate::Run,
        "writes of a fill between two range deletions; 0 for none";
    Int "range_tombstone_width" = "100", Fate::Run, "keys of a range deletion";
    Int "max_num_range_tombstones" = "0", Fate::Run, "most range deletions of a fill";
    Bool "expand_range_tombstones" = "false", Fate::Run, "delete the keys of each range one by one";
    Bool "optimistic_transaction_db" = "false", Fate::Run,
        "randomtransaction goes through optimistic transactions";
    Int "transaction_sets" = "2", Fate::Run,
        "keys that each transaction of randomtransaction changes, at most 9999";
    Bool "transaction_set_snapshot" = "false", Fate::Run,
        "transactions of randomtransaction begin with a snapshot";
    Int "transaction_sleep" = "0", Fate::Run,
        "most microseconds that randomtransaction waits between a read and its write";
    Int "transaction_lock_timeout" = "100", Fate::Run,
        "milliseconds that pessimistic transactions wait for a lock";
    Text "backup_dir" = "", Fate::Run, "directory of backup and restore";
    Text "restore_dir" = "", Fate::Run, "directory that restore restores into";
    Int "backup_rate_limit" = "0", Fate::Run,
        "bytes per second that backup reads and writes; 0 for no limit";
    Int "restore_rate_limit" = "0", Fate::Run,
        "bytes per second that restore reads and writes; 0 for no limit";
    Int "ingest_external_file_batch_size" = "10", Fate::Run,
        "tables of one call of ingestexternalfile";
    Int "ingest_external_file_num_batches" = "1", Fate::Run, "calls of ingestexternalfile";
    Bool "ingest_external_file_fill_cache" = "true", Fate::Run,
        "ingestion may put blocks into the cache";
    Number "keyrange_dist_a" = "0.0", Fate::Run,
        "mixgraph: how often each range of keys is met, a*exp(b*x)+c*exp(d*x)";
    Number "keyrange_dist_b" = "0.0", Fate::Run, "mixgraph: b of the same";
    Number "keyrange_dist_c" = "0.0", Fate::Run, "mixgraph: c of the same";
    Number "keyrange_dist_d" = "0.0", Fate::Run, "mixgraph: d of the same";
    Int "keyrange_num" = "1", Fate::Run, "mixgraph: ranges of keys";
    Number "key_dist_a" = "0.0", Fate::Run, "mixgraph: how often each key of a range is met, a*x^b";
    Number "key_dist_b" = "0.0", Fate::Run, "mixgraph: b of the same";
    Number "value_theta" = "0.0", Fate::Run, "mixgraph: sizes of values, Pareto: the location";
    Number "value_k" = "0.2615", Fate::Run, "mixgraph: sizes of values, Pareto: the shape";
    Number "value_sigma" = "25.45", Fate::Run, "mixgraph: sizes of values, Pareto: the scale";
    Number "iter_theta" = "0.0", Fate::Run, "mixgraph: lengths of scans, Pareto: the location";
    Number "iter_k" = "2.517", Fate::Run, "mixgraph: lengths of scans, Pareto: the shape";
    Number "iter_sigma" = "14.236", Fate::Run, "mixgraph: lengths of scans, Pareto: the scale";
    Number "mix_get_ratio" = "1.0", Fate::Run, "mixgraph: part of reads";
    Number "mix_put_ratio" = "0.0", Fate::Run, "mixgraph: part of writes";
    Number "mix_seek_ratio" = "0.0", Fate::Run, "mixgraph: part of scans";
    Int "mix_max_scan_len" = "10000", Fate::Run, "mixgraph: longest scan";
    Int "mix_max_value_size" = "1024", Fate::Run, "mixgraph: largest value";
    Int "mix_accesses" = "-1", Fate::Run, "mixgraph: operations of all threads; negative for reads";
    Bool "sine_mix_rate" = "false", Fate::Run, "mixgraph: a rate that follows a sine";
    Int "sine_mix_rate_interval_milliseconds" = "10000", Fate::Run,
        "mixgraph: how often that rate is set";
    Number "sine_mix_rate_noise" = "0.0", Fate::Run,
        "mixgraph: noise of that rate, as a part of it";
    Bool "sine_write_rate" = "false", Fate::Run,
        "a limit of writers that follows a sine instead of benchmark_write_rate_limit";
    Int "sine_write_rate_interval_milliseconds" = "10000", Fate::Run, "how often that limit is set";
    Number "sine_a" = "1", Fate::Run, "a of a*sin(b*x+c)+d, of the two above";
    Number "sine_b" = "1", Fate::Run, "b of the same";
    Number "sine_c" = "0", Fate::Run, "c of the same";
    Number "sine_d" = "1", Fate::Run, "d of the same";
    Bool "readonly" = "false", Fate::Run, "open the database for reading only";
    Bool "report_open_timing" = "false", Fate::Run, "print how long it took to open";
    Bool "build_info" = "false", Fate::Run, "print what this was built from, and end";
    Int "same_value_percentage" = "0", Fate::Run,
        "part of values, in percent, that are the same bytes";
    Int "key_id_range" = "100000", Fate::Run, "timeseries: series";
    Int "time_range" = "100000", Fate::Run,
        "timeseries: seconds that readers look back, and after which entries expire";
    Text "expire_style" = "none", Fate::Run, "timeseries: what removes old entries: none or delete";
    Int "num_deletion_threads" = "1", Fate::Run, "timeseries: threads that do so";
    Number "stddev" = "2000.0", Fate::Run,
        "randomreplacekeys: standard deviation of the keys it picks";
    Text "column_family_distribution" = "", Fate::Run,
        "percent of operations for each column family, with commas between";
    Bool "confidence_interval_only" = "false", Fate::Run,
        "for repeated benchmarks print only the interval of 95 %";
    Number "ycsb_theta" = "0.99", Fate::Run, "ycsb*: skew of the Zipfian keys, between 0 and 1";
};
