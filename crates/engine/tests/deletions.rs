//! Compactions after deletions, once writers rest: tables that hide much go down first, however
//! small they are.

use esker::observe::{Statistics, Ticker};
use esker::{Db, FamilyHandle, Options, Result};
use std::ops::Range;
use std::sync::Arc;

const KEYS: u32 = 20_000;
const DELETED: Range<u32> = 5_000..15_000;

struct Rig {
    _dir: tempfile::TempDir,
    db: Db,
    family: FamilyHandle,
    statistics: Arc<Statistics>,
}

fn key(n: u32) -> String {
    format!("{n:08}")
}

impl Rig {
    /// All keys at the last level; under RocksDB's rule for the levels there are two above it.
    fn filled(base: &str, by_cost: &str) -> Result<Rig> {
        let dir = tempfile::tempdir().expect("a directory");
        let mut options = Options::new().create_if_missing(true);
        for (name, value) in [
            ("write_buffer_size", "1048576"),
            ("target_file_size_base", "32768"),
            ("max_bytes_for_level_base", base),
            ("max_bytes_for_level_multiplier", "8"),
            ("level_shape_by_cost", by_cost),
            ("compression", "kNoCompression"),
            ("max_background_jobs", "2"),
        ] {
            options.set_in_place(name, value)?;
        }
        let statistics = Statistics::new();
        options.db.statistics = Some(statistics.clone());
        let db = Db::open(dir.path(), options)?;
        let rig = Rig {
            _dir: dir,
            family: db.default_family_handle(),
            db,
            statistics,
        };
        rig.put(0..KEYS)?;
        rig.db.compact_range(None, None)?;
        Ok(rig)
    }

    fn put(&self, keys: impl IntoIterator<Item = u32>) -> Result<()> {
        for n in keys {
            self.db.put(key(n), [b'v'; 100])?;
        }
        self.db.flush()
    }

    fn delete_range(&self) -> Result<()> {
        let (begin, end) = (key(DELETED.start), key(DELETED.end));
        self.db.delete_range_cf(&self.family, begin, end)?;
        self.db.flush()
    }

    fn tables_by_level(&self) -> Vec<usize> {
        let meta = self.db.family_metadata(&self.family);
        meta.levels.iter().map(|l| l.files.len()).collect()
    }

    /// Bytes of tables once nothing is left to do.
    fn at_rest(&self) -> Result<u64> {
        self.db.wait_for_compaction()?;
        let meta = self.db.family_metadata(&self.family);
        Ok(meta.levels.iter().map(|l| l.size).sum())
    }

    /// Keys that are found in what was deleted, and entries that the scan stepped over.
    fn scan_deleted(&self) -> Result<(usize, u64)> {
        let before = self.statistics.ticker(Ticker::NumberIterSkip);
        let mut found = 0;
        {
            let mut it = self.db.iter();
            it.seek(key(DELETED.start));
            while it.valid() && it.key() < key(DELETED.end).as_bytes() {
                found += 1;
                it.next();
            }
            it.status()?;
        }
        let skipped = self.statistics.ticker(Ticker::NumberIterSkip) - before;
        Ok((found, skipped))
    }

    /// Writes what is not deleted once more, in a few tables.
    fn overwrite_elsewhere(&self) -> Result<()> {
        for part in 0..5 {
            self.put(part * 1_000..(part + 1) * 1_000)?;
            self.put(15_000 + part * 1_000..15_000 + (part + 1) * 1_000)?;
        }
        Ok(())
    }
}

/// Four of five keys of a range are deleted, which makes tables of nothing but deletions.
#[test]
fn point_deletions_reach_what_they_delete() -> Result<()> {
    let rig = Rig::filled("262144", "true")?;
    let full = rig.at_rest()?;
    for n in DELETED.filter(|n| n % 5 != 0) {
        rig.db.delete(key(n))?;
    }
    rig.db.flush()?;
    rig.overwrite_elsewhere()?;
    let rest = rig.at_rest()?;
    let (found, skipped) = rig.scan_deleted()?;
    assert_eq!(found, 2_000);
    // 12 of 20 thousand keys are alive; level 0 may hold two tables of a thousand.
    assert!(rest < full * 75 / 100, "{rest} of {full}");
    assert!(skipped < 3_000, "{skipped}");
    Ok(())
}

/// One range deletion, a few bytes in a table of level 0.
#[test]
fn a_range_deletion_reaches_what_it_deletes() -> Result<()> {
    let rig = Rig::filled("262144", "true")?;
    let full = rig.at_rest()?;
    rig.delete_range()?;
    let rest = rig.at_rest()?;
    assert_eq!(rig.scan_deleted()?.0, 0);
    assert!(rest < full * 55 / 100, "{rest} of {full}");
    Ok(())
}

/// Through levels that hold a little of the range each: what the deletion still covers is found
/// again on each of them.
#[test]
fn a_range_deletion_goes_on_from_level_to_level() -> Result<()> {
    let rig = Rig::filled("65536", "false")?;
    let full = rig.at_rest()?;
    rig.put((0..KEYS).step_by(7))?;
    rig.at_rest()?;
    assert!(rig.tables_by_level()[5] > 0, "{:?}", rig.tables_by_level());
    rig.delete_range()?;
    let rest = rig.at_rest()?;
    assert_eq!(rig.scan_deleted()?.0, 0);
    assert!(
        rest < full * 65 / 100,
        "{rest} of {full}: {:?}",
        rig.tables_by_level()
    );
    Ok(())
}

/// A queue: what is written is deleted in the order in which it came.
#[test]
fn a_queue_takes_little_more_than_it_holds() -> Result<()> {
    let rig = Rig::filled("65536", "false")?;
    let full = rig.at_rest()?;
    for step in 0..18 {
        let oldest = step * 1_000;
        for n in oldest..oldest + 1_000 {
            rig.db.delete(key(n))?;
        }
        rig.put(KEYS + oldest..KEYS + oldest + 100)?;
        rig.at_rest()?;
    }
    let rest = rig.at_rest()?;
    assert!(rest < full * 40 / 100, "{rest} of {full}");
    Ok(())
}
