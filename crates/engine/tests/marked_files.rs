//! Tables whose collector asks for compaction are compacted, although no trigger is reached.

use esker::options::{CompactOnDeletion, CompactionStyle};
use esker::{Db, Options};
use std::path::Path;
use std::sync::Arc;

/// Options under which one deletion in a table suffices, and nothing else asks for compaction.
fn options(style: CompactionStyle, acts: bool) -> Options {
    let mut options = Options::new().create_if_missing(true);
    let family = &mut options.family;
    family.compaction_style = style;
    family.compaction_for_reads = false;
    family.level0_file_num_compaction_trigger = 100;
    family.disable_auto_compactions = !acts;
    let one_suffices = CompactOnDeletion::new(1, 1);
    family.table_properties_collector_factories = vec![Arc::new(one_suffices)];
    options
}

/// Two tables of level 0 with values of disjoint keys, then one with a deletion.
fn three_tables(dir: &Path, options: Options) -> Db {
    let db = Db::open(dir, options).expect("opened");
    for keys in [["a", "c"], ["x", "z"]] {
        for key in keys {
            db.put(key, "value").expect("written");
        }
        db.flush().expect("flushed");
    }
    db.wait_for_compaction().expect("waits");
    assert_eq!(files_by_level(&db)[0], 2, "values ask for nothing");
    db.delete("b").expect("written");
    db.flush().expect("flushed");
    db
}

fn files_by_level(db: &Db) -> Vec<usize> {
    let metadata = db.family_metadata(&db.default_family_handle());
    metadata.levels.iter().map(|l| l.files.len()).collect()
}

fn has_only_live_entries(db: &Db, style: CompactionStyle) {
    let entries: u64 = db.live_files_metadata().iter().map(|f| f.num_entries).sum();
    assert_eq!(entries, 4, "the deletion is still there: {style:?}");
    for key in ["a", "c", "x", "z"] {
        assert_eq!(db.get(key).expect("read").as_deref(), Some(&b"value"[..]));
    }
}

#[test]
fn a_flushed_table_goes_down_at_once() {
    for style in [CompactionStyle::Level, CompactionStyle::Universal] {
        let dir = tempfile::tempdir().expect("a directory");
        let db = three_tables(dir.path(), options(style, true));
        db.wait_for_compaction().expect("waits");
        has_only_live_entries(&db, style);
    }
}

#[test]
fn the_mark_outlives_the_process() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = three_tables(dir.path(), options(CompactionStyle::Level, false));
    db.wait_for_compaction().expect("waits");
    assert_eq!(files_by_level(&db)[0], 3);
    db.close().expect("closes");
    // The collector is gone; the MANIFEST knows.
    let mut without = options(CompactionStyle::Level, true);
    without.family.table_properties_collector_factories.clear();
    let db = Db::open(dir.path(), without).expect("opened");
    db.wait_for_compaction().expect("waits");
    has_only_live_entries(&db, CompactionStyle::Level);
}
