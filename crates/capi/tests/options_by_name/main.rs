//! Every setter and getter of the C interface, found in its specification and called by name in the
//! shared library: what is set is told, nothing else changes, and the defaults are those of a
//! RocksDB library when `ESKER_REF_LIB` names one.

mod interface;

use interface::{Interface, Library, Number};
use std::collections::BTreeMap;

/// The level belongs to the statistics, which are not there before they are enabled:
/// tests/options.rs has it.
const NEEDS_MORE: &str = "rocksdb_options_set_statistics_level";

/// Options that have a second name, under which they change too.
const SAME: [(&str, &str); 5] = [
    ("enable_blob_gc", "enable_blob_garbage_collection"),
    ("blob_gc_age_cutoff", "blob_garbage_collection_age_cutoff"),
    (
        "blob_gc_force_threshold",
        "blob_garbage_collection_force_threshold",
    ),
    ("background_threads", "low_priority_background_threads"),
    ("hash_ratio", "hash_table_ratio"),
];

fn is_same(a: &str, b: &str) -> bool {
    let last = |name: &str, word: &str| name.ends_with(&format!("_get_{word}"));
    SAME.iter()
        .any(|(x, y)| (last(a, x) && last(b, y)) || (last(a, y) && last(b, x)))
}

#[test]
fn what_is_set_is_told_and_nothing_else_changes() {
    let interface = Interface::read();
    let library = Library::ours();
    let (mut pairs, mut problems, mut closed) = (0, Vec::new(), Vec::new());
    for object in interface.objects() {
        let handle = library.make(&object.create);
        let getters: Vec<_> = object.pairs.iter().map(|p| p.getter.clone()).collect();
        for pair in &object.pairs {
            pairs += 1;
            if pair.setter == NEEDS_MORE {
                continue;
            }
            let all = |library: &Library| -> BTreeMap<String, Number> {
                let value = |g: &String| library.get(g, pair_kind(&object, g), handle);
                getters.iter().map(|g| (g.clone(), value(g))).collect()
            };
            let before = all(&library);
            let default = before[&pair.getter];
            let mut taken = Vec::new();
            for value in pair.kind.trials() {
                library.set(&pair.setter, pair.kind, handle, value);
                let after = all(&library);
                if after[&pair.getter] == value {
                    taken.push(value);
                }
                for (getter, now) in &after {
                    if *getter != pair.getter
                        && *now != before[getter]
                        && !is_same(getter, &pair.getter)
                    {
                        problems.push(format!("{} changed {getter} to {now:?}", pair.setter));
                    }
                }
            }
            library.set(&pair.setter, pair.kind, handle, default);
            let told = library.get(&pair.getter, pair.kind, handle);
            if told != default {
                problems.push(format!(
                    "{}: {default:?} came back as {told:?}",
                    pair.setter
                ));
            }
            if !taken.iter().any(|v| *v != default) {
                problems.push(format!("{}: nothing that was set was told", pair.setter));
            } else if taken.len() < pair.kind.trials().len() {
                closed.push(pair.setter.clone());
                if !CLOSED.contains(&pair.setter.as_str()) {
                    problems.push(format!("{}: told only {taken:?}", pair.setter));
                }
            }
        }
        library.destroy(&object.destroy, handle);
    }
    for name in CLOSED {
        if !closed.iter().any(|c| c == name) {
            problems.push(format!("{name} is listed as closed and takes everything"));
        }
    }
    assert!(
        problems.is_empty(),
        "{pairs} pairs\n{}",
        problems.join("\n")
    );
    assert!(pairs > 300, "{pairs} pairs were found");
}

fn pair_kind(object: &interface::Object, getter: &str) -> interface::Kind {
    object
        .pairs
        .iter()
        .find(|p| p.getter == getter)
        .expect("listed")
        .kind
}

/// Options of closed sets: a number outside leaves them as they are.
const CLOSED: &[&str] = &[
    "rocksdb_block_based_options_set_data_block_index_type",
    "rocksdb_block_based_options_set_index_block_search_type",
    "rocksdb_block_based_options_set_index_shortening",
    "rocksdb_block_based_options_set_index_type",
    "rocksdb_block_based_options_set_prepopulate_block_cache",
    "rocksdb_column_family_metadata_options_set_level",
    "rocksdb_compaction_options_set_compression",
    "rocksdb_create_backup_options_set_background_thread_cpu_priority",
    "rocksdb_optimistictransactiondb_options_set_validate_policy",
    "rocksdb_options_set_blob_compression_type",
    "rocksdb_options_set_bottommost_compression",
    "rocksdb_options_set_compaction_pri",
    "rocksdb_options_set_compaction_style",
    "rocksdb_options_set_compression",
    "rocksdb_options_set_info_log_level",
    "rocksdb_options_set_lowest_used_cache_tier",
    "rocksdb_options_set_prepopulate_blob_cache",
    "rocksdb_options_set_use_fsync",
    "rocksdb_options_set_wal_compression",
    "rocksdb_options_set_wal_recovery_mode",
    "rocksdb_readoptions_set_read_tier",
    "rocksdb_transactiondb_options_set_write_policy",
    "rocksdb_universal_compaction_options_set_stop_style",
];

/// Defaults that are not RocksDB's, with the reason.
const OTHER_DEFAULTS: &[(&str, &str)] = &[];

#[test]
fn defaults_are_those_of_rocksdb() {
    let Some(path) = std::env::var_os("ESKER_REF_LIB").filter(|p| !p.is_empty()) else {
        eprintln!("skipped: ESKER_REF_LIB does not name a RocksDB library");
        return;
    };
    let (ours, theirs) = (Library::ours(), Library::open(path.as_ref()));
    let mut problems = Vec::new();
    for object in Interface::read().objects() {
        if !theirs.has(&object.create) {
            continue;
        }
        let (mine, other) = (ours.make(&object.create), theirs.make(&object.create));
        for pair in object.pairs.iter().filter(|p| theirs.has(&p.getter)) {
            let a = ours.get(&pair.getter, pair.kind, mine);
            let b = theirs.get(&pair.getter, pair.kind, other);
            let is_known = OTHER_DEFAULTS.iter().any(|(n, _)| *n == pair.getter);
            if (a == b) == is_known {
                problems.push(format!("{}: {a:?}, RocksDB {b:?}", pair.getter));
            }
        }
        ours.destroy(&object.destroy, mine);
        theirs.destroy(&object.destroy, other);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
