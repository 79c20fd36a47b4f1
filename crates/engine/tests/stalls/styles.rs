//! Effect of level 0 on writers under other styles of compaction.

use crate::rig::Rig;
use esker::options::{CompactionStyle, OptionSet};
use esker::{FlushOptions, WriteOptions};

/// Returns how long writers are held back behind `tables` tables of three memtables each at level
/// 0.
fn held_behind(tables: usize, style: CompactionStyle) -> u64 {
    let rig = Rig::with(|o| {
        o.family.compaction_style = style;
        for (name, value) in [
            ("level0_slowdown_writes_trigger", "8"),
            ("level0_stop_writes_trigger", "30"),
            ("compression", "kNoCompression"),
        ] {
            o.family.set(name, value).expect("an option");
        }
    });
    let family = rig.default_family();
    let put = |key: &str, bytes| rig.put(&family, key, bytes, &WriteOptions::default());
    let flush = || {
        let mut how = FlushOptions::default();
        how.allow_write_stall = true;
        rig.db.flush_cf(&family, &how).expect("flushed");
    };
    for n in 0..tables {
        put(&format!("{n}"), 200_000);
        flush();
    }
    let settled = rig.measured.load(std::sync::atomic::Ordering::SeqCst);
    (0..20).for_each(|n| {
        put(&format!("more{n}"), 2_000);
    });
    rig.measured.load(std::sync::atomic::Ordering::SeqCst) - settled
}

#[test]
fn a_run_of_a_universal_tree_counts_once_however_large_it_is() {
    let held = held_behind(5, CompactionStyle::Level);
    assert!(held > 0, "five tables that count for three each");
    assert_eq!(held_behind(5, CompactionStyle::Universal), 0);
    let held = held_behind(12, CompactionStyle::Universal);
    assert!(held > 0, "more runs than the slowdown trigger");
}

#[test]
fn tables_of_a_fifo_tree_hold_nobody_back() {
    assert_eq!(held_behind(40, CompactionStyle::Fifo), 0);
}
