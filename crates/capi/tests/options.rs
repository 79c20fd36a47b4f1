//! Options, statistics, the perf context, environments and administration through the C functions.

use rocksdb::*;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::process::Command;
use std::ptr::{null, null_mut};

fn c(text: &str) -> CString {
    CString::new(text).expect("no NUL")
}

fn path(path: &Path) -> CString {
    c(path.to_str().expect("UTF-8"))
}

fn string(text: *const c_char) -> String {
    assert!(!text.is_null());
    // SAFETY: the text ends with NUL.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// Text from `malloc`, which is freed.
fn taken(text: *mut c_char) -> String {
    let out = string(text);
    rocksdb_free(text.cast());
    out
}

/// Runs `call` with a place for an error; there must be none.
fn fine<R>(call: impl FnOnce(*mut *mut c_char) -> R) -> R {
    let mut error = null_mut();
    let out = call(&mut error);
    assert!(error.is_null(), "{}", taken(error));
    out
}

/// Runs `call`, which must report an error.
fn failed<R>(call: impl FnOnce(*mut *mut c_char) -> R) -> String {
    let mut error = null_mut();
    call(&mut error);
    assert!(!error.is_null(), "no error");
    taken(error)
}

fn options() -> *mut rocksdb_options_t {
    let options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    options
}

fn put(db: *mut rocksdb_t, key: &str, value: &str) {
    let write = rocksdb_writeoptions_create();
    let (k, v) = (key.as_bytes(), value.as_bytes());
    fine(|e| {
        let (kp, vp) = (k.as_ptr().cast(), v.as_ptr().cast());
        rocksdb_put(db, write, kp, k.len(), vp, v.len(), e)
    });
    rocksdb_writeoptions_destroy(write);
}

fn get_with(db: *mut rocksdb_t, read: *const rocksdb_readoptions_t, key: &str) -> Option<Vec<u8>> {
    let mut length = 0;
    let at = key.as_ptr().cast();
    let value = fine(|e| rocksdb_get(db, read, at, key.len(), &mut length, e));
    if value.is_null() {
        return None;
    }
    // SAFETY: that many bytes are there.
    let bytes = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), length) }.to_vec();
    rocksdb_free(value.cast());
    Some(bytes)
}

fn get(db: *mut rocksdb_t, key: &str) -> Option<Vec<u8>> {
    let read = rocksdb_readoptions_create();
    let value = get_with(db, read, key);
    rocksdb_readoptions_destroy(read);
    value
}

fn flush(db: *mut rocksdb_t) {
    let how = rocksdb_flushoptions_create();
    fine(|e| rocksdb_flush(db, how, e));
    rocksdb_flushoptions_destroy(how);
}

/// The numbers of the enum values in the specification.
fn numbers() -> BTreeMap<String, i32> {
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("spec/rocksdb.api");
    let spec = std::fs::read_to_string(spec).expect("the spec");
    let rows = spec.lines().filter_map(|l| {
        let (name, number) = l.strip_prefix("  ")?.split_once(" = ")?;
        Some((name.to_owned(), number.parse().ok()?))
    });
    rows.collect()
}

fn set(db: *mut rocksdb_t, name: &str, value: &str, error: *mut *mut c_char) {
    let (name, value) = (c(name), c(value));
    rocksdb_set_options(
        db,
        1,
        [name.as_ptr()].as_ptr(),
        [value.as_ptr()].as_ptr(),
        error,
    );
}

#[test]
fn statistics_count_what_happens() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options();
    let data = rocksdb_statistics_histogram_data_create();
    assert!(rocksdb_options_statistics_get_string(options).is_null());
    assert_eq!(rocksdb_options_get_statistics_level(options), 0);
    assert_eq!(rocksdb_options_statistics_get_ticker_count(options, 60), 0);
    rocksdb_options_enable_statistics(options);
    assert_eq!(rocksdb_options_get_statistics_level(options), 3);
    for (given, kept) in [(-7, 0), (99, 5), (3, 3)] {
        rocksdb_options_set_statistics_level(options, given);
        assert_eq!(rocksdb_options_get_statistics_level(options), kept);
    }
    let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
    put(db, "key", "value");
    put(db, "kez", "valuf");
    assert_eq!(get(db, "key").as_deref(), Some(&b"value"[..]));
    assert_eq!(get(db, "none"), None);
    let text = taken(rocksdb_options_statistics_get_string(options));
    let lines: Vec<&str> = text.lines().collect();
    let ticker = |name: &str| {
        let at = lines
            .iter()
            .position(|l| l.starts_with(&format!("{name} COUNT : ")));
        let at = at.unwrap_or_else(|| panic!("{name} is not in the text"));
        let told = lines[at].rsplit(' ').next().expect("a number");
        let number = u32::try_from(at).expect("few");
        let counted = rocksdb_options_statistics_get_ticker_count(options, number);
        assert_eq!(told, counted.to_string(), "{name} has number {at}");
        counted
    };
    assert_eq!(ticker("rocksdb.number.keys.written"), 2);
    assert_eq!(ticker("rocksdb.number.keys.read"), 2);
    assert_eq!(ticker("rocksdb.memtable.hit"), 1);
    assert_eq!(ticker("rocksdb.memtable.miss"), 1);
    let histograms: Vec<&&str> = lines.iter().filter(|l| l.contains(" P50 : ")).collect();
    let at = histograms
        .iter()
        .position(|l| l.starts_with("rocksdb.db.get.micros "))
        .expect("a histogram");
    let number = u32::try_from(at).expect("few");
    rocksdb_options_statistics_get_histogram_data(options, number, data);
    assert_eq!(rocksdb_statistics_histogram_data_get_count(data), 2);
    let (min, max) = (
        rocksdb_statistics_histogram_data_get_min(data),
        rocksdb_statistics_histogram_data_get_max(data),
    );
    let median = rocksdb_statistics_histogram_data_get_median(data);
    assert!(min <= median && median <= max, "{min} {median} {max}");
    let sum = rocksdb_statistics_histogram_data_get_sum(data);
    assert!(rocksdb_statistics_histogram_data_get_average(data) * 2.0 - sum as f64 <= 1e-6);
    // Numbers that nothing has.
    rocksdb_options_statistics_get_histogram_data(options, 9999, data);
    assert_eq!(rocksdb_statistics_histogram_data_get_count(data), 0);
    assert_eq!(
        rocksdb_options_statistics_get_ticker_count(options, 9999),
        0
    );
    // A copy counts into the same statistics.
    let copy = rocksdb_options_create_copy(options);
    let written = ticker("rocksdb.number.keys.written");
    put(db, "more", "1");
    let number = lines
        .iter()
        .position(|l| l.starts_with("rocksdb.number.keys.written "));
    let number = u32::try_from(number.expect("a ticker")).expect("few");
    assert_eq!(
        rocksdb_options_statistics_get_ticker_count(copy, number),
        written + 1
    );
    rocksdb_options_destroy(copy);
    rocksdb_close(db);
    rocksdb_statistics_histogram_data_destroy(data);
    rocksdb_options_destroy(options);
}

#[test]
fn the_perf_context_has_the_interfaces_numbers() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options();
    let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
    put(db, "key", "value");
    flush(db);
    let context = rocksdb_perfcontext_create();
    rocksdb_set_perf_level(rocksdb_enable_time);
    rocksdb_set_perf_level(-1);
    rocksdb_set_perf_level(rocksdb_out_of_bounds + 100);
    rocksdb_perfcontext_reset(context);
    assert!(get(db, "key").is_some());
    let report = taken(rocksdb_perfcontext_report(context, 0));
    let told: BTreeMap<&str, u64> = report
        .split(", ")
        .filter_map(|f| f.split_once(" = "))
        .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
        .collect();
    let numbers = numbers();
    let mut compared = 0;
    for (name, value) in &told {
        if let Some(number) = numbers.get(&format!("rocksdb_{name}")) {
            let figure = rocksdb_perfcontext_metric(context, *number);
            assert_eq!(figure, *value, "{name} has number {number}");
            compared += 1;
        }
    }
    assert_eq!(compared, 84, "figures with a number in the interface");
    assert_eq!(told["get_read_bytes"], 5);
    assert!(told["block_read_count"] + told["block_cache_hit_count"] > 0);
    assert_eq!(
        rocksdb_perfcontext_metric(context, rocksdb_total_metric_count),
        0
    );
    assert_eq!(rocksdb_perfcontext_metric(context, -1), 0);
    let short = taken(rocksdb_perfcontext_report(context, 1));
    assert!(short.contains("get_read_bytes = 5"), "{short}");
    assert!(!short.contains(" = 0"), "{short}");
    rocksdb_perfcontext_reset(context);
    assert_eq!(taken(rocksdb_perfcontext_report(context, 1)), "");
    rocksdb_set_perf_level(rocksdb_disable);
    assert!(get(db, "key").is_some());
    assert_eq!(
        rocksdb_perfcontext_metric(context, rocksdb_get_read_bytes),
        0
    );
    rocksdb_perfcontext_destroy(context);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

/// Shows `look` the newest OPTIONS file of a database: families, and options of each.
fn loaded(
    dir: &Path,
    look: impl Fn(*mut rocksdb_options_t, &BTreeMap<String, *mut rocksdb_options_t>),
) {
    let env = rocksdb_create_default_env();
    let cache = rocksdb_cache_create_lru(1 << 20);
    let (mut db, mut count) = (null_mut(), 0);
    let (mut names, mut options) = (null_mut(), null_mut());
    fine(|e| {
        let dir = path(dir);
        rocksdb_load_latest_options(
            dir.as_ptr(),
            env,
            true,
            cache,
            &mut db,
            &mut count,
            &mut names,
            &mut options,
            e,
        );
    });
    // SAFETY: that many pointers are there.
    let listed = unsafe { std::slice::from_raw_parts(names.cast_const(), count) };
    // SAFETY: as above.
    let handles = unsafe { std::slice::from_raw_parts(options.cast_const(), count) };
    let families = listed
        .iter()
        .map(|n| string(*n))
        .zip(handles.iter().copied());
    look(db, &families.collect());
    rocksdb_load_latest_options_destroy(db, names, options, count);
    rocksdb_cache_destroy(cache);
    rocksdb_env_destroy(env);
}

#[test]
fn options_are_loaded_from_a_database() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options();
    rocksdb_options_set_max_background_jobs(options, 7);
    rocksdb_options_set_write_buffer_size(options, 3 << 20);
    let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
    rocksdb_options_set_write_buffer_size(options, 5 << 20);
    let other = fine(|e| rocksdb_create_column_family(db, options, c("other").as_ptr(), e));
    rocksdb_column_family_handle_destroy(other);
    rocksdb_close(db);
    loaded(dir.path(), |db, families| {
        assert_eq!(rocksdb_options_get_max_background_jobs(db), 7);
        let names: Vec<&str> = families.keys().map(String::as_str).collect();
        assert_eq!(names, ["default", "other"]);
        let size = |name| rocksdb_options_get_write_buffer_size(families[name]);
        assert_eq!((size("default"), size("other")), (3 << 20, 5 << 20));
    });
    rocksdb_options_destroy(options);
}

#[test]
fn options_are_loaded_from_a_database_of_rocksdb() {
    let dir = tempfile::tempdir().expect("a directory");
    let made = Command::new("ldb")
        .arg(format!("--db={}", dir.path().display()))
        .args(["--create_if_missing", "--write_buffer_size=2097152"])
        .args(["--compression_type=zstd", "put", "a", "1"])
        .output();
    let Ok(made) = made else {
        eprintln!("skipped: RocksDB's ldb is not installed");
        return;
    };
    assert!(made.status.success(), "{made:?}");
    loaded(dir.path(), |_, families| {
        let family = families["default"];
        assert_eq!(rocksdb_options_get_write_buffer_size(family), 2 << 20);
        assert_eq!(
            rocksdb_options_get_compression(family),
            rocksdb_zstd_compression
        );
    });
}

#[test]
fn options_of_old_releases_are_loaded() {
    let samples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../options/tests/data");
    for release in ["4.13.0", "5.8.0", "5.18.3", "6.1.2", "6.20.3"] {
        let dir = tempfile::tempdir().expect("a directory");
        let sample = samples.join(format!("OPTIONS-{release}"));
        std::fs::copy(sample, dir.path().join("OPTIONS-000009")).expect("a sample");
        loaded(dir.path(), |db, families| {
            assert_eq!(rocksdb_options_get_max_manifest_file_size(db), usize::MAX);
            let multiplier =
                rocksdb_options_get_max_bytes_for_level_multiplier(families["default"]);
            assert_eq!(multiplier, 10.0, "{release}");
        });
    }
}

#[test]
fn a_directory_without_options_is_not_found() {
    let dir = tempfile::tempdir().expect("a directory");
    for dir in [dir.path().to_owned(), dir.path().join("nothing")] {
        let env = rocksdb_create_default_env();
        let (mut db, mut count) = (null_mut(), 9);
        let (mut names, mut options) = (null_mut(), null_mut());
        let error = failed(|e| {
            rocksdb_load_latest_options(
                path(&dir).as_ptr(),
                env,
                false,
                null_mut(),
                &mut db,
                &mut count,
                &mut names,
                &mut options,
                e,
            );
        });
        assert!(error.starts_with("NotFound: "), "{error}");
        assert!(error.contains("No options files found"), "{error}");
        assert!(db.is_null() && count == 0 && names.is_null() && options.is_null());
        rocksdb_env_destroy(env);
    }
}

#[test]
fn options_change_on_an_open_database() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options();
    let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
    fine(|e| set(db, "disable_auto_compactions", "true", e));
    fine(|e| set(db, "block_based_table_factory", "{block_size=8192;}", e));
    for (name, value, said) in [
        ("num_levels", "3", "not changeable"),
        ("nonsense", "1", "nonsense"),
        ("write_buffer_size", "x", "write_buffer_size"),
    ] {
        let error = failed(|e| set(db, name, value, e));
        assert!(error.starts_with("Invalid argument: "), "{error}");
        assert!(error.contains(said), "{error}");
    }
    assert!(failed(|e| rocksdb_set_options(db, 0, null(), null(), e)).contains("empty"));
    assert!(failed(|e| rocksdb_set_options(db, -3, null(), null(), e)).contains("empty"));
    let (name, value) = (c("max_background_jobs"), c("5"));
    let pair = ([name.as_ptr()], [value.as_ptr()]);
    fine(|e| rocksdb_set_db_options(db, 1, pair.0.as_ptr(), pair.1.as_ptr(), e));
    loaded(dir.path(), |db, families| {
        assert_eq!(rocksdb_options_get_max_background_jobs(db), 5);
        let family = families["default"];
        assert_eq!(rocksdb_options_get_disable_auto_compactions(family), 1);
    });
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

#[test]
fn tables_go_to_the_paths_given() {
    type Setter = extern "C" fn(*mut rocksdb_options_t, *mut *const rocksdb_dbpath_t, usize);
    let setters: [(&str, Setter); 2] = [
        ("db_paths", rocksdb_options_set_db_paths),
        ("cf_paths", rocksdb_options_set_cf_paths),
    ];
    for (what, set) in setters {
        let home = tempfile::tempdir().expect("a directory");
        let (dir, first, second) = (
            path(&home.path().join("db")),
            path(&home.path().join("first")),
            path(&home.path().join("second")),
        );
        let options = options();
        let given = [
            rocksdb_dbpath_create(first.as_ptr(), 0),
            rocksdb_dbpath_create(second.as_ptr(), 1 << 30),
        ];
        let mut paths = given.map(|p| p.cast_const());
        set(options, paths.as_mut_ptr(), 2);
        given.into_iter().for_each(|p| rocksdb_dbpath_destroy(p));
        let db = fine(|e| rocksdb_open(options, dir.as_ptr(), e));
        put(db, "a", "1");
        flush(db);
        let count = |name: &str| {
            let dir = home.path().join(name);
            let entries = std::fs::read_dir(dir).expect("the path was made");
            entries.count()
        };
        assert_eq!((count("first"), count("second")), (1, 0), "{what}");
        let how = rocksdb_compactoptions_create();
        rocksdb_compactoptions_set_target_path_id(how, 1);
        rocksdb_compact_range_opt(db, how, std::ptr::null(), 0, std::ptr::null(), 0);
        assert_eq!(count("second"), 1, "{what}");
        rocksdb_compactoptions_destroy(how);
        assert_eq!(get(db, "a").as_deref(), Some(&b"1"[..]));
        rocksdb_close(db);
        fine(|e| rocksdb_destroy_db(options, dir.as_ptr(), e));
        assert!(!home.path().join("second").exists(), "{what}");
        rocksdb_options_destroy(options);
    }
}

#[test]
fn what_only_makes_a_difference_to_speed_is_taken() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options();
    rocksdb_options_set_memtable_vector_rep(options);
    rocksdb_options_set_hash_link_list_rep(options, 1000);
    rocksdb_options_set_hash_skip_list_rep(options, 1000, 4, 4);
    rocksdb_options_set_row_cache(options, null_mut());
    let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
    put(db, "a", "1");
    flush(db);
    assert_eq!(get(db, "a").as_deref(), Some(&b"1"[..]));
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

#[test]
fn presets_make_options_that_open() {
    type Preset = fn(*mut rocksdb_options_t);
    let presets: [Preset; 7] = [
        |o| rocksdb_options_increase_parallelism(o, c_int::MAX),
        |o| rocksdb_options_increase_parallelism(o, 4),
        |o| rocksdb_options_optimize_for_point_lookup(o, 8),
        |o| rocksdb_options_optimize_level_style_compaction(o, 64 << 20),
        |o| rocksdb_options_optimize_universal_style_compaction(o, 64 << 20),
        |o| rocksdb_options_prepare_for_bulk_load(o),
        |o| {
            rocksdb_options_set_min_level_to_compress(o, 2);
            rocksdb_options_set_compression_options(o, -14, 3, 0, 0);
            rocksdb_options_set_bottommost_compression_options(o, -14, 9, 0, 0, 1);
        },
    ];
    for preset in presets {
        let dir = tempfile::tempdir().expect("a directory");
        let options = options();
        preset(options);
        let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
        put(db, "a", "1");
        flush(db);
        assert_eq!(get(db, "a").as_deref(), Some(&b"1"[..]));
        rocksdb_close(db);
        rocksdb_options_destroy(options);
    }
    let options = options();
    let levels: Vec<c_int> = vec![rocksdb_no_compression, rocksdb_lz4_compression, 77];
    rocksdb_options_set_compression_per_level(options, levels.as_ptr(), 2);
    // One number that is no codec: nothing changes.
    rocksdb_options_set_compression_per_level(options, levels.as_ptr(), 3);
    rocksdb_options_set_compression_per_level(options, null(), 3);
    let mut size = 9;
    let host = rocksdb_options_get_db_host_id(options, &mut size);
    assert_eq!((string(host).as_str(), size), ("__hostname__", 12));
    rocksdb_options_set_wal_dir(options, c"/var/wal".as_ptr());
    assert_eq!(
        string(rocksdb_options_get_wal_dir(options, &mut size)),
        "/var/wal"
    );
    assert_eq!(size, 8);
    rocksdb_options_destroy(options);
}

#[test]
fn databases_live_in_memory() {
    let env = rocksdb_create_mem_env();
    let options = options();
    rocksdb_options_set_env(options, env);
    let name = c"/nowhere/on/disk";
    fine(|e| rocksdb_create_dir_if_missing(env, name.as_ptr(), e));
    let db = fine(|e| rocksdb_open(options, name.as_ptr(), e));
    put(db, "a", "1");
    flush(db);
    rocksdb_close(db);
    let db = fine(|e| rocksdb_open(options, name.as_ptr(), e));
    assert_eq!(get(db, "a").as_deref(), Some(&b"1"[..]));
    rocksdb_close(db);
    assert!(!Path::new("/nowhere/on/disk").exists());
    rocksdb_env_set_background_threads(env, 3);
    rocksdb_env_set_high_priority_background_threads(env, -3);
    assert_eq!(rocksdb_env_get_low_priority_background_threads(env), 3);
    assert_eq!(rocksdb_env_get_high_priority_background_threads(env), 0);
    rocksdb_env_destroy(env);
    rocksdb_options_destroy(options);
}

#[test]
fn a_deadline_is_a_moment() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options();
    let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
    put(db, "a", "1");
    flush(db);
    let read = rocksdb_readoptions_create();
    // One microsecond after 1970 began: over.
    rocksdb_readoptions_set_deadline(read, 1);
    assert_eq!(rocksdb_readoptions_get_deadline(read), 1);
    let mut length = 0;
    let error = failed(|e| rocksdb_get(db, read, c"a".as_ptr(), 1, &mut length, e));
    assert!(error.contains("deadline"), "{error}");
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970");
    let later = u64::try_from(now.as_micros()).expect("a time") + 3_600_000_000;
    for deadline in [later, u64::MAX, 0] {
        rocksdb_readoptions_set_deadline(read, deadline);
        assert_eq!(get_with(db, read, "a").as_deref(), Some(&b"1"[..]));
    }
    let mut length = 9;
    assert!(rocksdb_readoptions_get_request_id(read, &mut length).is_null());
    rocksdb_readoptions_set_request_id(read, c"id".as_ptr(), 2);
    assert_eq!(
        string(rocksdb_readoptions_get_request_id(read, null_mut())).get(..2),
        Some("id")
    );
    rocksdb_readoptions_clear_request_id(read);
    assert_eq!(
        rocksdb_readoptions_has_merge_operand_count_threshold(read),
        0
    );
    rocksdb_readoptions_set_merge_operand_count_threshold(read, 7);
    assert_eq!(
        rocksdb_readoptions_get_merge_operand_count_threshold(read),
        7
    );
    rocksdb_readoptions_destroy(read);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

#[test]
fn caches_tell_what_is_in_them() {
    let how = rocksdb_lru_cache_options_create();
    rocksdb_lru_cache_options_set_capacity(how, 1 << 20);
    rocksdb_lru_cache_options_set_num_shard_bits(how, 1);
    let clock = rocksdb_hyper_clock_cache_options_create(1 << 20, 0);
    rocksdb_hyper_clock_cache_options_set_num_shard_bits(clock, 1);
    for cache in [
        rocksdb_cache_create_lru_opts(how),
        rocksdb_cache_create_hyper_clock_opts(clock),
        rocksdb_cache_create_hyper_clock(1 << 20, 4096),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let options = options();
        let table = rocksdb_block_based_options_create();
        rocksdb_block_based_options_set_block_cache(table, cache);
        rocksdb_options_set_block_based_table_factory(options, table);
        let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
        put(db, "a", "1");
        flush(db);
        assert_eq!(rocksdb_cache_get_capacity(cache), 1 << 20);
        assert!(get(db, "a").is_some());
        let entries = rocksdb_cache_get_occupancy_count(cache);
        assert!(entries > 0);
        assert!(rocksdb_cache_get_table_address_count(cache) >= entries);
        rocksdb_close(db);
        rocksdb_block_based_options_destroy(table);
        rocksdb_options_destroy(options);
        rocksdb_cache_disown_data(cache);
        rocksdb_cache_destroy(cache);
    }
    rocksdb_lru_cache_options_destroy(how);
    rocksdb_hyper_clock_cache_options_destroy(clock);
}

#[test]
fn a_database_is_administered() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options();
    let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
    put(db, "a", "1");
    flush(db);
    fine(|e| rocksdb_pause_background_work(db, e));
    fine(|e| rocksdb_continue_background_work(db, e));
    fine(|e| rocksdb_disable_file_deletions(db, e));
    fine(|e| rocksdb_enable_file_deletions(db, e));
    fine(|e| rocksdb_verify_checksum(db, e));
    let error = failed(|e| rocksdb_verify_file_checksums(db, e));
    assert!(
        error.contains("file_checksum_gen_factory is null"),
        "{error}"
    );
    let wait = rocksdb_wait_for_compact_options_create();
    rocksdb_wait_for_compact_options_set_flush(wait, 1);
    put(db, "b", "2");
    fine(|e| rocksdb_wait_for_compact(db, wait, e));
    rocksdb_wait_for_compact_options_destroy(wait);
    rocksdb_disable_manual_compaction(db);
    rocksdb_enable_manual_compaction(db);
    let log = rocksdb_flushwaloptions_create();
    rocksdb_flushwaloptions_set_sync(log, 1);
    fine(|e| rocksdb_flush_wal_with_options(db, log, e));
    rocksdb_flushwaloptions_destroy(log);
    rocksdb_cancel_all_background_work(db, 1);
    assert_eq!(get(db, "b").as_deref(), Some(&b"2"[..]));
    rocksdb_close(db);
    let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

#[test]
fn files_are_compacted_by_name() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = options();
    rocksdb_options_set_disable_auto_compactions(options, 1);
    let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
    put(db, "a", "1");
    flush(db);
    put(db, "a", "2");
    flush(db);
    let entries = std::fs::read_dir(dir.path()).expect("entries");
    let tables: Vec<CString> = entries
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|n| n.ends_with(".sst"))
        .map(|n| c(&format!("/{n}")))
        .collect();
    let names: Vec<*const c_char> = tables.iter().map(|n| n.as_ptr()).collect();
    let how = rocksdb_compaction_options_create();
    let flag = rocksdb_compaction_options_canceled_create();
    rocksdb_compaction_options_set_canceled(how, flag);
    rocksdb_compaction_options_canceled_set(flag, 1);
    let info = rocksdb_compactionjobinfo_create();
    let (mut made, mut count) = (null_mut(), 0);
    let mut run = |e: *mut *mut c_char| {
        let at = names.as_ptr();
        rocksdb_compact_files(db, how, at, 2, 6, -1, &mut made, &mut count, info, e);
    };
    let error = failed(&mut run);
    assert!(error.starts_with("Result incomplete: "), "{error}");
    rocksdb_compaction_options_canceled_set(flag, 0);
    fine(&mut run);
    assert_eq!(count, 1);
    assert!(rocksdb_compactionjobinfo_job_id(info) > 0);
    assert_eq!(rocksdb_compactionjobinfo_output_level(info), 6);
    rocksdb_compactionjobinfo_destroy(info);
    // SAFETY: there is one.
    let name = string(unsafe { *made });
    assert!(Path::new(&name).exists(), "{name}");
    rocksdb_compact_files_output_file_names_destroy(made, count);
    assert_eq!(get(db, "a").as_deref(), Some(&b"2"[..]));
    rocksdb_compaction_options_destroy(how);
    rocksdb_compaction_options_canceled_destroy(flag);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

type Compare =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;

/// Filters tell keys apart by their bytes, whatever the order: as many false positives as RocksDB
/// has.
#[test]
fn filters_serve_an_order_of_the_applications_own() {
    unsafe extern "C" fn compare(
        _state: *mut c_void,
        a: *const c_char,
        a_len: usize,
        b: *const c_char,
        b_len: usize,
    ) -> c_int {
        // SAFETY: the library passes keys with their lengths.
        let a = unsafe { std::slice::from_raw_parts(a.cast::<u8>(), a_len) };
        // SAFETY: as above.
        let b = unsafe { std::slice::from_raw_parts(b.cast::<u8>(), b_len) };
        a.cmp(b) as c_int
    }
    unsafe extern "C" fn name(_state: *mut c_void) -> *const c_char {
        c"order".as_ptr()
    }
    let compare: Compare = compare;
    let order = rocksdb_comparator_create(null_mut(), None, Some(compare), Some(name));
    let dir = tempfile::tempdir().expect("a directory");
    let options = options();
    rocksdb_options_set_comparator(options, order);
    let table = rocksdb_block_based_options_create();
    let filter = rocksdb_filterpolicy_create_bloom_full(8.0);
    rocksdb_block_based_options_set_filter_policy(table, filter);
    rocksdb_options_set_block_based_table_factory(options, table);
    let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
    put(db, "foo", "foovalue");
    put(db, "bar", "barvalue");
    for i in 0..1500 {
        put(db, &format!("yes{i:020}"), "val");
    }
    rocksdb_compact_range(db, null(), 0, null(), 0);
    let context = rocksdb_perfcontext_create();
    rocksdb_set_perf_level(rocksdb_enable_count);
    rocksdb_perfcontext_reset(context);
    for i in 0..10_000 {
        assert_eq!(get(db, &format!("no{i:020}")), None);
    }
    let metric = |number| rocksdb_perfcontext_metric(context, number);
    assert_eq!(metric(rocksdb_bloom_sst_hit_count), 188);
    assert_eq!(metric(rocksdb_bloom_sst_miss_count), 9812);
    rocksdb_perfcontext_destroy(context);
    rocksdb_close(db);
    rocksdb_block_based_options_destroy(table);
    rocksdb_options_destroy(options);
    rocksdb_comparator_destroy(order);
}

#[test]
fn the_files_of_a_copy_are_listed() {
    let (dir, copy) = (
        tempfile::tempdir().expect("a directory"),
        tempfile::tempdir().expect("a directory"),
    );
    let options = options();
    let db = fine(|e| rocksdb_open(options, path(dir.path()).as_ptr(), e));
    put(db, "a", "1");
    let how = rocksdb_livefiles_storage_info_options_create();
    fine(|e| rocksdb_disable_file_deletions(db, e));
    let info = fine(|e| rocksdb_get_livefiles_storage_info(db, how, e));
    let mut kinds = Vec::new();
    for i in 0..rocksdb_livefiles_storage_info_count(info) {
        let name = string(rocksdb_livefiles_storage_info_relative_filename(info, i));
        let from = string(rocksdb_livefiles_storage_info_directory(info, i));
        let size = rocksdb_livefiles_storage_info_size(info, i);
        let mut length = 0;
        let contents = rocksdb_livefiles_storage_info_replacement_contents(info, i, &mut length);
        let mut bytes = if length > 0 {
            // SAFETY: that many bytes are there.
            unsafe { std::slice::from_raw_parts(contents.cast::<u8>(), length) }.to_vec()
        } else {
            std::fs::read(Path::new(&from).join(&name)).expect("a file")
        };
        assert!(bytes.len() as u64 >= size, "{name}");
        if rocksdb_livefiles_storage_info_trim_to_size(info, i) != 0 {
            bytes.truncate(usize::try_from(size).expect("small"));
        }
        assert_eq!(bytes.len() as u64, size, "{name}");
        std::fs::write(copy.path().join(&name), bytes).expect("a copy");
        kinds.push(rocksdb_livefiles_storage_info_file_type(info, i));
    }
    for kind in [2, 3, 4, 9] {
        assert!(kinds.contains(&kind), "{kind} is not among {kinds:?}");
    }
    let beyond = rocksdb_livefiles_storage_info_count(info);
    assert!(rocksdb_livefiles_storage_info_relative_filename(info, beyond).is_null());
    rocksdb_livefiles_storage_info_destroy(info);
    rocksdb_livefiles_storage_info_options_destroy(how);
    fine(|e| rocksdb_enable_file_deletions(db, e));
    // As programs call it that were built before RocksDB 8: with a flag where the pointer is now.
    fine(|e| rocksdb_disable_file_deletions(db, e));
    rocksdb_enable_file_deletions(db, std::ptr::without_provenance_mut(1));
    rocksdb_enable_file_deletions(std::ptr::null_mut(), std::ptr::without_provenance_mut(1));
    rocksdb_close(db);
    let db = fine(|e| rocksdb_open(options, path(copy.path()).as_ptr(), e));
    assert_eq!(get(db, "a").as_deref(), Some(&b"1"[..]));
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}
