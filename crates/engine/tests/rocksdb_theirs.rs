//! RocksDB 7.8 writes with every codec, filter, index and format version it has; Esker opens,
//! reads, extends and compacts copies of it, and RocksDB verifies and reads the result.

mod rocksdb_tools;

use esker::{CompactRangeOptions, Db};
use rocksdb_tools::{Contents, Copy, Tally, Tools, compare_ours, hex, latest_options, same, say};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Flags of every run of `db_bench`: small files, so that there are several levels.
const COMMON: &[&str] = &[
    "--num=6000",
    "--value_size=100",
    "--write_buffer_size=65536",
    "--target_file_size_base=65536",
    "--max_bytes_for_level_base=262144",
    "--max_background_jobs=2",
    "--enable_pipelined_write=false",
];

const WRITES: &str = "--benchmarks=fillrandom,overwrite,deleterandom,flush,overwrite";
const MERGES: &str =
    "--benchmarks=fillrandom,mergerandom,flush,mergerandom,deleterandom,mergerandom";

/// Runs of `db_bench`: a name and the flags of each.
const RECIPES: &[(&str, &[&str])] = &[
    ("none", &[WRITES, "--compression_type=none"]),
    (
        "snappy",
        &[
            WRITES,
            "--compression_type=snappy",
            "--format_version=2",
            "--bloom_bits=10",
        ],
    ),
    (
        "zlib",
        &[
            WRITES,
            "--compression_type=zlib",
            "--format_version=3",
            "--checksum_type=1",
        ],
    ),
    (
        "bzip2",
        &[
            WRITES,
            "--compression_type=bzip2",
            "--format_version=4",
            "--checksum_type=2",
        ],
    ),
    (
        "lz4",
        &[
            WRITES,
            "--compression_type=lz4",
            "--format_version=5",
            "--checksum_type=3",
        ],
    ),
    (
        "lz4hc",
        &[
            WRITES,
            "--compression_type=lz4hc",
            "--checksum_type=0",
            "--compression_max_dict_bytes=4096",
        ],
    ),
    (
        "zstd",
        &[
            WRITES,
            "--compression_type=zstd",
            "--checksum_type=4",
            "--wal_compression=zstd",
        ],
    ),
    (
        "zstd with trained dictionaries",
        &[
            WRITES,
            "--compression_type=zstd",
            "--compression_max_dict_bytes=4096",
            "--compression_zstd_max_train_bytes=65536",
        ],
    ),
    (
        "legacy Bloom",
        &[WRITES, "--bloom_bits=9", "--format_version=4"],
    ),
    (
        "fast Bloom",
        &[WRITES, "--bloom_bits=9", "--format_version=5"],
    ),
    (
        "Ribbon",
        &[WRITES, "--bloom_bits=9", "--use_ribbon_filter=true"],
    ),
    (
        "partitioned legacy Bloom",
        &[
            WRITES,
            "--bloom_bits=10",
            "--partition_index_and_filters=true",
            "--metadata_block_size=256",
            "--format_version=3",
        ],
    ),
    (
        "partitioned Ribbon",
        &[
            WRITES,
            "--bloom_bits=10",
            "--use_ribbon_filter=true",
            "--partition_index_and_filters=true",
            "--metadata_block_size=256",
            "--cache_index_and_filter_blocks=true",
        ],
    ),
    (
        "prefixes",
        &[
            WRITES,
            "--bloom_bits=10",
            "--prefix_size=12",
            "--whole_key_filtering=false",
            "--keys_per_prefix=10",
        ],
    ),
    (
        "hash index",
        &[
            WRITES,
            "--prefix_size=12",
            "--use_hash_search=true",
            "--keys_per_prefix=10",
            "--bloom_bits=10",
        ],
    ),
    (
        "first keys in the index",
        &[
            WRITES,
            "--index_with_first_key=true",
            "--index_shortening_mode=2",
            "--block_size=512",
        ],
    ),
    (
        "hash tables in blocks",
        &[
            WRITES,
            "--use_data_block_hash_index=true",
            "--index_shortening_mode=0",
            "--block_restart_interval=4",
        ],
    ),
    (
        "delta index",
        &[
            WRITES,
            "--index_block_restart_interval=8",
            "--enable_index_compression=false",
            "--block_size=256",
            "--format_version=4",
        ],
    ),
    (
        "universal",
        &[WRITES, "--compaction_style=1", "--num_levels=5"],
    ),
    (
        "families",
        &[
            WRITES,
            "--num_column_families=4",
            "--level_compaction_dynamic_level_bytes=true",
        ],
    ),
    (
        "range deletions",
        &[
            WRITES,
            "--writes_per_range_tombstone=40",
            "--range_tombstone_width=60",
            "--max_num_range_tombstones=100",
        ],
    ),
    (
        "merges of put",
        &[MERGES, "--merge_operator=put", "--merge_keys=500"],
    ),
    (
        "sums",
        &[
            MERGES,
            "--merge_operator=uint64add",
            "--merge_keys=500",
            "--value_size=8",
        ],
    ),
    (
        "appended strings",
        &[
            MERGES,
            "--merge_operator=stringappend",
            "--merge_keys=2000",
            "--value_size=20",
        ],
    ),
    (
        "no log",
        &[
            "--benchmarks=fillrandom,deleterandom,flush",
            "--disable_wal=true",
        ],
    ),
    (
        "blobs",
        &[
            WRITES,
            "--enable_blob_files=true",
            "--min_blob_size=50",
            "--blob_file_size=65536",
            "--blob_compression_type=lz4",
        ],
    ),
    (
        "blobs that are collected",
        &[
            WRITES,
            "--enable_blob_files=true",
            "--min_blob_size=50",
            "--blob_file_size=65536",
            "--enable_blob_garbage_collection=true",
            "--blob_garbage_collection_age_cutoff=0.5",
        ],
    ),
];

fn bench(dir: &Path, seed: u64, flags: &[&str]) -> Command {
    let mut command = Command::new("db_bench");
    command
        .args(COMMON)
        .args(flags)
        .arg(format!("--db={}", dir.display()))
        .arg(format!("--seed={seed}"));
    command
}

fn read_by_rocksdb(tools: Tools, dir: &Path) -> Contents {
    let names = tools.families(dir);
    names
        .into_iter()
        .map(|n| (n.clone(), tools.scan(dir, &n)))
        .collect()
}

fn open(dir: &Path, what: &str) -> Db {
    let (options, families) = latest_options(dir);
    Db::open_families(dir, options, families).unwrap_or_else(|e| panic!("{what}: it opens: {e}"))
}

/// Has Esker read `dir` and change a copy of it, and RocksDB read what came of that.
fn take_over(tools: Tools, dir: &Path, killed: bool, what: &str, tally: &mut Tally) {
    let mut model = read_by_rocksdb(tools, &Copy::of(dir).path);
    let entries: usize = model.values().map(|c| c.len()).sum();
    assert!(entries > 100, "{what}: only {entries} entries");
    let copy = Copy::of(dir);
    let (options, families) = latest_options(&copy.path);
    let db = Db::open_families_read_only(&copy.path, options, families)
        .unwrap_or_else(|e| panic!("{what}: it opens read-only: {e}"));
    compare_ours(&db, &model, &format!("{what}, read only"));
    drop(db);
    tools.compare(&copy.path, &model, &format!("{what}, untouched"), tally);

    let db = open(&copy.path, what);
    compare_ours(&db, &model, what);
    for family in db.families() {
        let content = model.get_mut(family.name()).expect("a family");
        extend(&db, &family, content);
    }
    compare_ours(&db, &model, &format!("{what}, extended"));
    db.close().expect("a clean end");
    drop(db);
    let extended = format!("{what}, extended");
    if killed {
        tools.examine_wreck(&copy.path, &model, &extended, tally);
    } else {
        tools.examine(&copy.path, &model, &extended, tally);
    }
    // A table that was begun after the last word of the MANIFEST goes at the second opening.
    let db = open(&copy.path, what);
    for family in db.families() {
        let how = CompactRangeOptions::default();
        db.compact_range_opt(&family, None, None, &how)
            .unwrap_or_else(|e| panic!("{what}: a compaction: {e}"));
    }
    compare_ours(&db, &model, &format!("{what}, compacted"));
    db.close().expect("a clean end");
    drop(db);
    tools.examine(&copy.path, &model, &format!("{what}, compacted"), tally);
}

/// Overwrites, adds, deletes keys and a range of them, partly flushed.
fn extend(db: &Db, family: &esker::FamilyHandle, content: &mut rocksdb_tools::Content) {
    let keys: Vec<Vec<u8>> = content.keys().cloned().collect();
    for (n, key) in keys.iter().enumerate().step_by(5) {
        if n % 2 == 0 {
            let value = (n as u64).to_le_bytes();
            db.put_cf(family, key, value).expect("a write");
            content.insert(key.clone(), value.to_vec());
        } else {
            db.delete_cf(family, key).expect("a deletion");
            content.remove(key);
        }
        if n == keys.len() / 5 * 2 {
            db.flush_cf(family, &Default::default()).expect("a flush");
        }
    }
    for n in 0..50u64 {
        let key = format!("zz{n:04}").into_bytes();
        db.put_cf(family, &key, n.to_le_bytes()).expect("a write");
        content.insert(key, n.to_le_bytes().to_vec());
    }
    if let [.., _] = keys.as_slice() {
        let (begin, end) = (
            &keys[keys.len() / 2],
            &keys[keys.len() / 2 + keys.len() / 10],
        );
        db.delete_range_cf(family, begin, end)
            .expect("a range deletion");
        content.retain(|k, _| k < begin || k >= end);
    }
}

#[test]
fn esker_takes_over_what_db_bench_wrote() {
    let Some(tools) = Tools::find() else { return };
    let mut tally = Tally::default();
    let only = std::env::var("ESKER_COMPAT_RECIPE").unwrap_or_default();
    for (seed, (name, flags)) in RECIPES.iter().enumerate() {
        if !name.contains(&only) {
            continue;
        }
        println!("{name}: seed {}", seed + 1);
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("db");
        let out = bench(&dir, seed as u64 + 1, flags)
            .output()
            .expect("db_bench runs");
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{name}: {said}");
        take_over(tools, &dir, false, name, &mut tally);
    }
    say(format_args!("{tally}"));
}

#[test]
fn esker_takes_over_what_a_killed_db_bench_left() {
    let Some(tools) = Tools::find() else { return };
    let mut tally = Tally::default();
    let variants: &[&[&str]] = &[
        &["--wal_compression=none"],
        &["--wal_compression=zstd"],
        &["--num_column_families=2"],
        &["--manual_wal_flush=true", "--compression_type=zstd"],
        &["--merge_operator=stringappend", "--merge_keys=2000"],
    ];
    for (seed, variant) in variants.iter().enumerate() {
        let seed = seed as u64 + 1;
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("db");
        let merges = variant.iter().any(|f| f.starts_with("--merge_operator"));
        let writes = if merges { "mergerandom" } else { "overwrite" };
        let writes = format!("--benchmarks=fillrandom,{writes}");
        let mut flags = vec![writes.as_str(), "--writes=100000000", "--value_size=60"];
        flags.extend(*variant);
        let mut child = bench(&dir, seed, &flags)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("db_bench starts");
        let begun = Instant::now();
        let tables = || dir.is_dir() && rocksdb_tools::with_suffix(&dir, ".sst").len() > 5;
        while begun.elapsed() < Duration::from_secs(20) && !tables() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(40 * seed));
        assert!(
            child.try_wait().expect("its state").is_none(),
            "db_bench ended by itself"
        );
        child.kill().expect("a process that lives");
        child.wait().expect("its end");
        let what = format!("killed with {}", variant.join(" "));
        println!("{what}: seed {seed}");
        take_over(tools, &dir, true, &what, &mut tally);
    }
    say(format_args!("{tally}"));
}

#[test]
fn esker_takes_over_what_ldb_wrote() {
    let Some(tools) = Tools::find() else { return };
    let mut tally = Tally::default();
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("db");
    let mut load = Command::new("ldb")
        .arg(format!("--db={}", dir.display()))
        .args([
            "load",
            "--create_if_missing",
            "--hex",
            "--compression_type=zstd",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("ldb starts");
    let text: String = (0..3000u32)
        .map(|n| {
            format!(
                "{} ==> {}\n",
                hex(format!("k{n:05}").as_bytes()),
                hex(&[n as u8; 40])
            )
        })
        .collect();
    let mut input = load.stdin.take().expect("its input");
    std::io::Write::write_all(&mut input, text.as_bytes()).expect("a reader");
    drop(input);
    assert!(load.wait().expect("its end").success());
    tools.ldb(&dir, &["create_column_family", "second family"]);
    for n in 0..40 {
        let key = format!("b{n:03}");
        let args = ["batchput", &key, "1", "shared", &key];
        tools.ldb_family(&dir, "second family", &args);
    }
    tools.ldb(&dir, &["delete", "k00001"]);
    tools.ldb(&dir, &["deleterange", "k00100", "k00200"]);
    tools.ldb(&dir, &["put", "empty", ""]);
    let content = tools.scan(&Copy::of(&dir).path, "default");
    assert_eq!(content.len(), 3000 - 1 - 100 + 1);
    assert_eq!(content[b"empty".as_slice()], b"");
    take_over(tools, &dir, false, "ldb", &mut tally);
    say(format_args!("{tally}"));
}

#[test]
fn rocksdb_loads_the_options_that_esker_wrote_without_being_told_to_ignore_any() {
    let Some(tools) = Tools::find() else { return };
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("db");
    let options = esker::Options::new().create_if_missing(true);
    let options = options
        .set_all(
            "compression=kZSTD;merge_operator=stringappend;filter_policy=ribbonfilter:9.5:2;\
             prefix_extractor=rocksdb.CappedPrefix.7;compaction_options_universal={size_ratio=7;};\
             bottommost_compression_opts={level=3;enabled=true;};max_background_jobs=5;num_levels=4",
        )
        .expect("known options");
    let db = Db::open(&dir, options).expect("a new database");
    db.merge("k", "a").expect("a merge");
    db.merge("k", "b").expect("a merge");
    db.create_family("odd \"name\" #=;[x]", Default::default())
        .expect("a family");
    db.close().expect("a clean end");
    drop(db);
    // A merge is only right when the operator was loaded from the file.
    let content = tools.scan(&dir, "default");
    same(
        "operands in the log",
        &content,
        &[(b"k".to_vec(), b"a,b".to_vec())].into(),
    );
    tools.ldb(&dir, &["put", "l", "v"]);
    let (options, families) = latest_options(&dir);
    for (name, value) in [
        ("compression", "kZSTD"),
        ("num_levels", "4"),
        ("prefix_extractor", "rocksdb.CappedPrefix.7"),
    ] {
        let found = esker::options::OptionSet::get(&options.family, name);
        assert_eq!(found.as_deref(), Some(value), "{name}, as RocksDB wrote it");
    }
    assert_eq!(families.len(), 2);
    assert_eq!(families[1].name, "odd \"name\" #=;[x]");
    assert_eq!(options.db.max_background_jobs, 5);
    let db = Db::open_families(&dir, options, families).expect("it opens");
    assert_eq!(db.get("k").expect("a read").as_deref(), Some(&b"a,b"[..]));
}
