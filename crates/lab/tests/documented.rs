//! Command lines of RocksDB's documentation, at a small size: each has to run as it stands there.
//!
//! Only sizes and directories are replaced, by flags behind the command, which win. Commands with
//! flags that RocksDB 11.8 has given up are not here: its own program refuses them, too.

use esker_lab::bench::{BenchProgress, run_engine};
use esker_lab::flags::Flags;
use std::path::Path;

/// Flags that make each of them small.
const SMALL: &[&str] = &[
    "--num=2000",
    "--reads=500",
    "--duration=0",
    "--threads=2",
    "--cache_size=8388608",
    "--max_background_jobs=2",
];

/// Where a command runs: on a fresh database, or on one that the one before filled.
const COMMANDS: &[&str] = &[
    // The page about the tool ("Benchmarking tools").
    "./db_bench --benchmarks=\"fillseq\"",
    "./db_bench --benchmarks=\"fillseq,stats\" --statistics",
    "./db_bench --benchmarks=\"readrandom\" --use_existing_db",
    "./db_bench --benchmarks=\"fillseq,readrandom,readseq\"",
    "./db_bench --benchmarks=fillseq,readrandom,readseq,readreverse,stats",
    "./db_bench --benchmarks=readrandom[X3-W1] --use_existing_db=1",
    // Performance benchmarks: bulk load, overwrite, reads, scans, each beside writers.
    "./db_bench --benchmarks=fillrandom,stats --use_existing_db=0 --disable_auto_compactions=1 \
     --sync=0 --threads=1 --memtablerep=vector --allow_concurrent_memtable_write=false \
     --disable_wal=1 --key_size=20 --value_size=400 --block_size=8192 --cache_numshardbits=6 \
     --compression_max_dict_bytes=0 --compression_ratio=0.5 --compression_type=lz4 \
     --level_compaction_dynamic_level_bytes=true --bytes_per_sync=8388608 \
     --cache_index_and_filter_blocks=0 --pin_l0_filter_and_index_blocks_in_cache=1 \
     --benchmark_write_rate_limit=0 --write_buffer_size=134217728 \
     --target_file_size_base=134217728 --max_bytes_for_level_base=1073741824 --verify_checksum=1 \
     --delete_obsolete_files_period_micros=62914560 --max_bytes_for_level_multiplier=8 \
     --statistics=0 --stats_per_interval=1 --stats_interval_seconds=60 --histogram=1 \
     --bloom_bits=10 --open_files=-1 --level0_file_num_compaction_trigger=10485760 \
     --level0_slowdown_writes_trigger=10485760 --level0_stop_writes_trigger=10485760",
    "./db_bench --benchmarks=fillseq --allow_concurrent_memtable_write=false \
     --level0_file_num_compaction_trigger=4 --level0_slowdown_writes_trigger=20 \
     --level0_stop_writes_trigger=30 --max_background_jobs=16 --max_write_buffer_number=8 \
     --num=40000000 --num_levels=8 --key_size=20 --value_size=400 --block_size=8192 \
     --cache_size=225485783040 --cache_numshardbits=6 --compression_max_dict_bytes=0 \
     --compression_ratio=0.5 --compression_type=none --bytes_per_sync=8388608 \
     --cache_index_and_filter_blocks=1 --cache_high_pri_pool_ratio=0.5 \
     --benchmark_write_rate_limit=0 --write_buffer_size=16777216 \
     --target_file_size_base=16777216 --max_bytes_for_level_base=67108864 \
     --verify_checksum=false --delete_obsolete_files_period_micros=62914560 \
     --max_bytes_for_level_multiplier=8 --statistics=0 --stats_per_interval=1 \
     --stats_interval_seconds=20 --histogram=1 \
     --memtablerep=skip_list --bloom_bits=10 --open_files=-1 --subcompactions=1 \
     --compaction_style=0 --min_level_to_compress=3 --level_compaction_dynamic_level_bytes=true",
    "./db_bench --benchmarks=compact --use_existing_db=1 --disable_auto_compactions=1 --sync=0 \
     --key_size=20 --value_size=400 --compression_type=lz4 --threads=1",
    "./db_bench --benchmarks=overwrite --use_existing_db=1 --sync=0 --key_size=20 \
     --value_size=400 --merge_operator=\"put\" --threads=1 --writes=200",
    "./db_bench --benchmarks=readwhilewriting --use_existing_db=1 --sync=0 --key_size=20 \
     --value_size=400 --benchmark_write_rate_limit=2097152 --merge_operator=\"put\"",
    "./db_bench --benchmarks=seekrandomwhilewriting --use_existing_db=1 --key_size=20 \
     --value_size=400 --seek_nexts=10 --reverse_iterator=false",
    "./db_bench --benchmarks=multireadrandom --use_existing_db=1 --key_size=20 --batch_size=10 \
     --multiread_batched --multiread_stride=8",
    // Direct I/O.
    "./db_bench --benchmarks=fillseq,readrandom --use_direct_reads=true \
     --use_direct_io_for_flush_and_compaction=true --compaction_readahead_size=2097152",
    // The workload of a social graph, with the parameters that were published.
    "./db_bench --benchmarks=\"mixgraph\" -use_direct_io_for_flush_and_compaction=true \
     -use_direct_reads=true -cache_size=268435456 -key_dist_a=0.002312 -key_dist_b=0.3467 \
     -keyrange_dist_a=14.18 -keyrange_dist_b=-2.917 -keyrange_dist_c=0.0164 \
     -keyrange_dist_d=-0.08082 -keyrange_num=30 -value_k=0.2615 -value_sigma=25.45 -iter_k=2.517 \
     -iter_sigma=14.236 -mix_get_ratio=0.85 -mix_put_ratio=0.14 -mix_seek_ratio=0.01 \
     -sine_mix_rate_interval_milliseconds=5000 -sine_a=350 -sine_b=0.0105 -sine_d=50000 \
     --perf_level=2 -reads=1000000 -num=5000000 -key_size=48",
    // Merges, transactions, families, several databases.
    "./db_bench --benchmarks=mergerandom,readrandommergerandom --merge_operator=uint64add \
     --value_size=8",
    "./db_bench --benchmarks=randomtransaction --transaction_db=true --transaction_sets=5",
    "./db_bench --benchmarks=randomtransaction --optimistic_transaction_db=1",
    "./db_bench --benchmarks=fillrandom,readrandom --num_column_families=3",
    "./db_bench --benchmarks=fillrandom,readrandom --num_multi_db=2",
    // Styles of compaction, and blobs.
    "./db_bench --benchmarks=fillrandom,overwrite --compaction_style=1 \
     --universal_min_merge_width=2 --universal_max_size_amplification_percent=200",
    "./db_bench --benchmarks=fillrandom,readrandom --compaction_style=2 \
     --fifo_compaction_max_table_files_size_mb=64 --fifo_compaction_allow_compaction=false",
    "./db_bench --benchmarks=fillrandom,readrandom --enable_blob_files=1 --min_blob_size=0 \
     --blob_file_size=104857600 --enable_blob_garbage_collection=1 \
     --blob_garbage_collection_age_cutoff=0.3",
    // Prefixes, filters, partitions, range deletions.
    "./db_bench --benchmarks=fillrandom,seekrandom --prefix_size=8 --keys_per_prefix=10 \
     --bloom_bits=10 --partition_index_and_filters=true --use_ribbon_filter",
    "./db_bench --benchmarks=filluniquerandom,readrandom --writes_per_range_tombstone=100 \
     --range_tombstone_width=10 --max_num_range_tombstones=5",
];

/// Splits a command as a shell does, as far as these need it; without the program.
fn words(command: &str) -> Vec<String> {
    let words = command.split_whitespace().skip(1);
    words.map(|word| word.replace('"', "")).collect()
}

fn run(command: &str, more: &[String], directory: &Path) {
    let mut args = words(command);
    args.extend(SMALL.iter().map(|flag| (*flag).to_string()));
    args.extend_from_slice(more);
    args.push(format!("--db={}", directory.display()));
    let flags = Flags::parse(&args).unwrap_or_else(|e| panic!("{command}: {e}"));
    let rows = run_engine(
        &flags,
        "esker",
        directory,
        &|_| {},
        &BenchProgress::new(false),
    );
    let rows = rows.unwrap_or_else(|e| panic!("{command}: {e}"));
    let idle: Vec<&str> = rows
        .iter()
        .filter(|row| row.number("operations") == Some(0.0))
        .map(|row| row.test.as_str())
        .collect();
    assert!(idle.is_empty(), "{command}: {idle:?} did nothing");
}

#[test]
fn documented_commands_run_as_they_stand() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("db");
    for command in COMMANDS {
        run(command, &[], &directory);
        if command.contains("num_multi_db") {
            assert!(
                directory.join("1/CURRENT").exists(),
                "there are two databases"
            );
            std::fs::remove_dir_all(&directory).expect("they go");
        }
    }
}

#[test]
fn other_benchmarks_of_the_tool_run_too() {
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name);
    let list = "fillseekseq,xorupdaterandom,appendrandom,readrandomsmall,readrandomfast,\
                readtocache,newiteratorwhilewriting,multireadwhilewriting,randomwithverify,flush,\
                approximatesizerandom,approximatememtablestats,multiscan,multiscanrandom,\
                readrandomoperands,verifychecksum,verifyfilechecksums,memstats,stats_history,\
                block_cache_entry_stats,resetstats,sstables,backup,restore,ingestexternalfile,\
                compact0,compact1,waitforcompaction";
    let command =
        format!("./db_bench --benchmarks={list} --multiscan_size=3 --statistics --file_checksum");
    let directories = [
        format!("--backup_dir={}", path("backups").display()),
        format!("--restore_dir={}", path("restored").display()),
        "--ingest_external_file_batch_size=2".into(),
    ];
    run(&command, &directories, &path("db"));
    // Two restorations of one backup are alike.
    let again = [
        format!("--backup_dir={}", path("backups").display()),
        format!("--restore_dir={}", path("again").display()),
        "--use_existing_db=1".into(),
    ];
    run("./db_bench --benchmarks=restore", &again, &path("db"));
    let truth = [
        "--use_existing_db=1".into(),
        format!("--truth_db={}", path("again").display()),
    ];
    run("./db_bench --benchmarks=verify", &truth, &path("restored"));
}

#[test]
fn series_and_replaced_keys_need_their_own_databases() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("db");
    let replaced = "./db_bench --benchmarks=randomreplacekeys --numdistinct=100 --stddev=20";
    run(replaced, &["--threads=1".into()], &directory);
    let series = "./db_bench --benchmarks=timeseries --key_id_range=10 --expire_style=delete \
                  --time_range=100 --num_deletion_threads=1 --writes=50000 --key_size=16";
    run(series, &["--threads=3".into()], &directory);
    let all = "ycsbload,ycsba,ycsbb,ycsbc,ycsbd,ycsbe,ycsbf";
    run(&format!("./db_bench --benchmarks={all}"), &[], &directory);
    let existing = "./db_bench --benchmarks=readrandom,seekrandom --use_existing_db \
                    --use_existing_keys --read_random_exp_range=10";
    run(existing, &[], &directory);
}

#[test]
fn options_come_from_a_file() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("db");
    let compressed = ["--write_buffer_size=1234567".to_string()];
    run(
        "./db_bench --benchmarks=fillrandom",
        &compressed,
        &directory,
    );
    let newest = std::fs::read_dir(&directory)
        .expect("the database")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("OPTIONS-"))
        })
        .max()
        .expect("it has an OPTIONS file");
    let saved = place.path().join("OPTIONS");
    std::fs::copy(newest, &saved).expect("a copy");
    let from_file = [format!("--options_file={}", saved.display())];
    run(
        "./db_bench --benchmarks=fillrandom,readrandom",
        &from_file,
        &directory,
    );
    let log = std::fs::read_to_string(directory.join("LOG")).expect("a LOG");
    assert!(log.contains("Options.write_buffer_size: 1234567"));
    assert!(log.contains("Git sha "), "benchmark.sh takes it from there");
}
