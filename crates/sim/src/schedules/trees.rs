//! Scenarios about plans that others overtake: what compacts, moves, ingests and copies runs beside
//! each other, and no answer changes.
//!
//! A compaction filter that keeps everything sleeps on the schedule's clock, so jobs last while
//! others go on.

use super::{Stage, check, join};
use crate::rng::Rng;
use esker::options::CompactFilesOptions;
use esker::{
    CheckpointOptions, CompactRangeOptions, CompactionFilter, CompactionFilterFactory, Db,
    Decision, FilterContext, FilterValue, FlushOptions, IngestOptions, Options, SstFileWriter,
    WaitForCompactOptions,
};
use esker_status::{ErrorKind, Result};
use esker_sync::Arc;
use esker_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A filter that keeps every entry and sleeps at each while it is on.
#[derive(Default)]
struct Slow {
    on: AtomicBool,
    /// Entries that were seen while it was on.
    held: AtomicU64,
}

impl CompactionFilter for Slow {
    fn name(&self) -> &str {
        "sim.Slow"
    }
    fn filter(&self, _: u8, _: &[u8], _: FilterValue<'_>, _: &mut Vec<u8>) -> Decision {
        if self.on.load(Ordering::SeqCst) {
            self.held.fetch_add(1, Ordering::SeqCst);
            esker_sync::sleep(Duration::from_millis(1));
        }
        Decision::Keep
    }
}

impl Slow {
    /// Waits until a job is held, for a while.
    fn wait(&self) {
        for _ in 0..200 {
            if self.held.load(Ordering::SeqCst) > 0 {
                return;
            }
            esker_sync::sleep(Duration::from_millis(1));
        }
    }
}

/// A tree of small levels that compacts nothing by itself.
fn quiet(stage: &Stage, filter: &Arc<Slow>) -> Result<Options> {
    let mut options = stage.options()?;
    for (name, value) in [
        ("disable_auto_compactions", "true"),
        ("compression", "kNoCompression"),
        ("max_background_jobs", "6"),
    ] {
        options.set_in_place(name, value)?;
    }
    options.family.compaction_filter = Some(Arc::clone(filter) as Arc<dyn CompactionFilter>);
    Ok(options)
}

/// The tables of level 0.
fn upper_tables(db: &Db) -> Vec<PathBuf> {
    let files = db.live_files_metadata().into_iter();
    let upper = files.filter(|f| f.level == 0);
    upper.map(|f| PathBuf::from(f.name)).collect()
}

fn upper_to(db: &Db, level: u8) -> Result<()> {
    let family = db.default_family_handle();
    db.compact_files(&family, &upper_tables(db), level)?;
    Ok(())
}

fn value_of(tag: &str, key: u64, size: usize) -> Vec<u8> {
    let mut value = format!("{tag}.{key}.").into_bytes();
    let mut noise = Rng::new(key ^ size as u64);
    while value.len() < size {
        value.push(b'a' + noise.below(26) as u8);
    }
    value
}

/// Writes keys with values of a size, and flushes them.
fn fill(db: &Db, keys: std::ops::Range<u64>, tag: &str, size: usize) -> Result<()> {
    for key in keys {
        db.put(format!("k{key:03}"), value_of(tag, key, size))?;
    }
    db.flush()
}

/// A manual compaction lists its levels, waits for an automatic one that goes to a level above the
/// base of that moment, and then takes newer data down.
pub(super) fn bases(stage: &Stage) -> Result<()> {
    let (slow, mut rng) = (Arc::new(Slow::default()), stage.rng());
    let mut options = quiet(stage, &slow)?;
    options.set_in_place("max_bytes_for_level_base", "1000")?;
    options.set_in_place("write_buffer_size", "1638")?;
    let db = Db::open(super::DIR, options)?;
    let family = db.default_family_handle();
    fill(&db, 0..50, "base", 800)?;
    upper_to(&db, 6)?;
    fill(&db, 0..25, "mid", 400)?;
    upper_to(&db, 5)?;
    for _ in 0..12 {
        fill(&db, 0..5, "old", 6)?;
    }
    slow.on.store(true, Ordering::SeqCst);
    db.set_options(&family, &[("disable_auto_compactions", "false")])?;
    slow.wait();
    db.set_options(&family, &[("disable_auto_compactions", "true")])?;
    db.set_options(&family, &[("write_buffer_size", "6710886")])?;
    fill(&db, 0..50, "new", 1600)?;
    let mut threads = Vec::new();
    for _ in 0..2 {
        let (db2, family, before) = (db.clone(), family.clone(), rng.below(3));
        threads.push(stage.spawn(&db, move || {
            esker_sync::sleep(Duration::from_millis(before));
            let how = CompactRangeOptions::default();
            db2.compact_range_opt(&family, None, None, &how)
        })?);
    }
    let newest = |key: u64| {
        let found = db.get(format!("k{key:03}"))?;
        let is_newest = found.is_some_and(|v| v.starts_with(b"new."));
        check(is_newest, "an older value is read")
    };
    let mut looked = Ok(());
    for _ in 0..40 {
        esker_sync::sleep(Duration::from_millis(10));
        looked = looked.and_then(|()| newest(rng.below(5)));
    }
    slow.on.store(false, Ordering::SeqCst);
    join(threads);
    looked?;
    (0..50).try_for_each(newest)
}

/// A level is moved up while newer data goes to a level between.
pub(super) fn moves(stage: &Stage) -> Result<()> {
    let (slow, mut rng) = (Arc::new(Slow::default()), stage.rng());
    let db = Db::open(super::DIR, quiet(stage, &slow)?)?;
    let family = db.default_family_handle();
    db.put("k", "old")?;
    db.flush()?;
    upper_to(&db, 6)?;
    db.put("k", "new")?;
    db.flush()?;
    slow.on.store(true, Ordering::SeqCst);
    let (db2, to) = (db.clone(), 3 + rng.below(2) as u8);
    let below = stage.spawn(&db, move || match upper_to(&db2, to) {
        // The level is being moved.
        Err(e) if e.kind() == ErrorKind::Aborted => Ok(()),
        done => done,
    })?;
    if rng.one_in(2) {
        slow.wait();
    }
    let mut how = CompactRangeOptions::default();
    how.change_level = true;
    how.target_level = 1 + rng.below(3) as i32;
    how.exclusive_manual_compaction = rng.one_in(2);
    let moved = db.compact_range_opt(&family, Some(b"x"), Some(b"y"), &how);
    slow.on.store(false, Ordering::SeqCst);
    join(vec![below]);
    if let Err(e) = moved {
        let is_refused = matches!(e.kind(), ErrorKind::NotSupported | ErrorKind::Busy);
        check(is_refused, &format!("change_level: {e}"))?;
    }
    let found = db.get("k")?;
    check(found.as_deref() == Some(b"new"), "an older value is read")
}

/// A file is ingested between a write and its flush, and merged with an older one in level 0.
pub(super) fn ingested(stage: &Stage) -> Result<()> {
    let (slow, mut rng) = (Arc::new(Slow::default()), stage.rng());
    let options = quiet(stage, &slow)?;
    let db = Db::open(super::DIR, options.clone())?;
    let family = db.default_family_handle();
    for (k, m) in [("0", "0"), ("1", "1")] {
        for (key, value) in [("a", "0"), ("k", k), ("m", m), ("z", "0")] {
            db.put(key, value)?;
        }
        db.flush()?;
        if k == "0" {
            upper_to(&db, 6)?;
        }
    }
    db.put("k", "2")?;
    let path = Path::new("/ingested.sst");
    let mut writer = SstFileWriter::new(&options)?;
    writer.open(path)?;
    writer.put("m", "2")?;
    writer.finish()?;
    db.ingest(&family, &[path], &IngestOptions::default())?;
    slow.on.store(rng.one_in(2), Ordering::SeqCst);
    let db2 = db.clone();
    let merged = stage.spawn(&db, move || {
        let mut how = CompactFilesOptions::default();
        how.output_file_size_limit = u64::MAX;
        let family = db2.default_family_handle();
        db2.compact_files_opt(&family, &upper_tables(&db2), 0, &how)
            .map(|_| ())
    })?;
    let wait = rng.below(6);
    let db2 = db.clone();
    let flushed = stage.spawn(&db, move || {
        esker_sync::sleep(Duration::from_millis(wait));
        db2.flush()
    })?;
    let reads = |text| {
        for key in ["k", "m"] {
            let found = db.get(key)?;
            check(found.as_deref() == Some(b"2"), text)?;
        }
        Ok(())
    };
    for _ in 0..4 {
        reads("an older value is read")?;
        esker_sync::sleep(Duration::from_millis(1));
    }
    join(vec![merged, flushed]);
    reads("an older value is read at last")
}

/// A file is ingested between the keys of tables that a running compaction takes to a level where
/// it would find room.
pub(super) fn gaps(stage: &Stage) -> Result<()> {
    let (slow, mut rng) = (Arc::new(Slow::default()), stage.rng());
    let mut options = quiet(stage, &slow)?;
    options.set_in_place("level_compaction_dynamic_level_bytes", "false")?;
    let db = Db::open(super::DIR, options.clone())?;
    for value in ["1", "2"] {
        db.put("a", value)?;
        db.put("z", value)?;
        db.flush()?;
        if value == "1" {
            upper_to(&db, 6)?;
        }
    }
    slow.on.store(true, Ordering::SeqCst);
    let db2 = db.clone();
    let below = stage.spawn(&db, move || {
        loop {
            match upper_to(&db2, 5) {
                // The ingestion has its range for a moment.
                Err(e) if e.kind() == ErrorKind::Aborted => {
                    esker_sync::sleep(Duration::from_millis(1));
                }
                done => return done,
            }
        }
    })?;
    esker_sync::sleep(Duration::from_millis(rng.below(3)));
    let path = Path::new("/ingested.sst");
    let mut writer = SstFileWriter::new(&options)?;
    writer.open(path)?;
    writer.put("m", "2")?;
    writer.finish()?;
    db.ingest(
        &db.default_family_handle(),
        &[path],
        &IngestOptions::default(),
    )?;
    join(vec![below]);
    for key in ["a", "m", "z"] {
        let found = db.get(key)?;
        check(found.as_deref() == Some(b"2"), "an older value is read")?;
    }
    Ok(())
}

/// Files go past a level that has data between theirs and what is older.
pub(super) fn between(stage: &Stage) -> Result<()> {
    let (slow, mut rng) = (Arc::new(Slow::default()), stage.rng());
    let db = Db::open(super::DIR, quiet(stage, &slow)?)?;
    for (value, level) in [("0", 6), ("1", 3 + rng.below(3) as u8), ("2", 6)] {
        db.put("k", value)?;
        db.flush()?;
        if value != "2" {
            upper_to(&db, level)?;
            continue;
        }
        slow.on.store(true, Ordering::SeqCst);
        let db2 = db.clone();
        let below = stage.spawn(&db, move || upper_to(&db2, level))?;
        let reads = |_| {
            esker_sync::sleep(Duration::from_millis(1));
            let found = db.get("k")?;
            check(found.as_deref() == Some(b"2"), "an older value is read")
        };
        let looked = (0..4).try_for_each(reads);
        join(vec![below]);
        looked?;
        reads(0)?;
    }
    Ok(())
}

/// A filter that holds the merge into level 3 until level 0 has some tables.
#[derive(Default)]
struct UntilFull {
    tables: AtomicU64,
}

impl CompactionFilter for UntilFull {
    fn name(&self) -> &str {
        "sim.UntilFull"
    }
    fn filter(&self, level: u8, _: &[u8], _: FilterValue<'_>, _: &mut Vec<u8>) -> Decision {
        esker_sync::sleep(Duration::from_millis(1));
        for _ in 0..100 {
            if level != 3 || self.tables.load(Ordering::SeqCst) >= 4 {
                break;
            }
            esker_sync::sleep(Duration::from_millis(1));
        }
        Decision::Keep
    }
}

/// A merge of deep levels has the only slot when writers fill level 0. It yields, or not, and in
/// the end everything is in shape.
pub(super) fn yields(stage: &Stage) -> Result<()> {
    const KEYS: u64 = 16;
    let mut rng = stage.rng();
    let filter = Arc::new(UntilFull::default());
    let mut options = stage.options()?;
    for (name, value) in [
        ("disable_auto_compactions", "true"),
        ("compression", "kNoCompression"),
        ("max_background_jobs", "2"),
        ("num_levels", "4"),
        ("level_compaction_dynamic_level_bytes", "false"),
        ("max_bytes_for_level_base", "1000"),
        ("max_bytes_for_level_multiplier", "1"),
        ("level0_slowdown_writes_trigger", "4"),
        ("level0_stop_writes_trigger", "40"),
        ("write_buffer_size", "4194304"),
        ("block_size", "65536"),
    ] {
        options.set_in_place(name, value)?;
    }
    options.family.compaction_filter = Some(Arc::clone(&filter) as Arc<dyn CompactionFilter>);
    let db = Db::open(super::DIR, options)?;
    let family = db.default_family_handle();
    filter.tables.store(4, Ordering::SeqCst);
    for level in [3, 2] {
        for key in 0..KEYS {
            // A step of a merge writes a few of them.
            db.put(format!("k{key:02}"), vec![level; 64 << 10])?;
        }
        db.flush()?;
        upper_to(&db, level)?;
    }
    filter.tables.store(0, Ordering::SeqCst);
    db.set_options(&family, &[("disable_auto_compactions", "false")])?;
    let mut threads = Vec::new();
    for writer in 0..2 {
        let (db2, filter2) = (db.clone(), Arc::clone(&filter));
        threads.push(stage.spawn(&db, move || {
            (0..3).try_for_each(|n| {
                db2.put(format!("k{writer:02}"), n.to_string())?;
                db2.put("k03", n.to_string())?;
                let mut how = FlushOptions::default();
                how.allow_write_stall = true;
                db2.flush_cf(&db2.default_family_handle(), &how)?;
                filter2.tables.fetch_add(1, Ordering::SeqCst);
                Ok(())
            })
        })?);
    }
    if rng.one_in(4) {
        let mut how = CompactRangeOptions::default();
        how.exclusive_manual_compaction = rng.one_in(2);
        db.compact_range_opt(&family, None, None, &how)?;
    }
    join(threads);
    let mut how = WaitForCompactOptions::default();
    how.timeout = Some(Duration::from_secs(300));
    db.wait_for_compact(&how)?;
    for key in 0..KEYS {
        let found = db.get(format!("k{key:02}"))?;
        let expected = match key {
            0 | 1 | 3 => b"2".to_vec(),
            _ => vec![2; 64 << 10],
        };
        check(found == Some(expected), "an older value is read")?;
    }
    Ok(())
}

/// Filters of manual compactions that are alive: how many, and the most.
#[derive(Default)]
struct Alive {
    now: AtomicU64,
    most: AtomicU64,
}

struct FilterFactory(Arc<Alive>);

struct LiveFilter(Arc<Alive>);

impl CompactionFilterFactory for FilterFactory {
    fn name(&self) -> &str {
        "sim.FilterFactory"
    }
    fn create(&self, context: &FilterContext) -> Option<Arc<dyn CompactionFilter>> {
        if !context.is_manual_compaction {
            return None;
        }
        let now = 1 + self.0.now.fetch_add(1, Ordering::SeqCst);
        self.0.most.fetch_max(now, Ordering::SeqCst);
        Some(Arc::new(LiveFilter(Arc::clone(&self.0))))
    }
}

impl CompactionFilter for LiveFilter {
    fn name(&self) -> &str {
        "sim.LiveFilter"
    }
    fn filter(&self, _: u8, _: &[u8], _: FilterValue<'_>, _: &mut Vec<u8>) -> Decision {
        esker_sync::sleep(Duration::from_millis(1));
        Decision::Keep
    }
}

impl Drop for LiveFilter {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Exclusive manual compactions of several callers, of ranges that do not meet, run one at a time.
pub(super) fn exclusive(stage: &Stage) -> Result<()> {
    let (alive, slow) = (Arc::new(Alive::default()), Arc::new(Slow::default()));
    let mut options = quiet(stage, &slow)?;
    options.set_in_place("max_subcompactions", "1")?;
    options.family.compaction_filter = None;
    options.family.compaction_filter_factory = Some(Arc::new(FilterFactory(Arc::clone(&alive))));
    let db = Db::open(super::DIR, options)?;
    for keys in [0..3, 10..13, 20..23] {
        fill(&db, keys, "v", 20)?;
        upper_to(&db, 5)?;
    }
    alive.most.store(0, Ordering::SeqCst);
    let mut threads = Vec::new();
    for n in 0..3 {
        let db2 = db.clone();
        threads.push(stage.spawn(&db, move || {
            let mut how = CompactRangeOptions::default();
            how.exclusive_manual_compaction = true;
            let (begin, end) = (format!("k0{n}0"), format!("k0{n}9"));
            let family = db2.default_family_handle();
            db2.compact_range_opt(&family, Some(begin.as_bytes()), Some(end.as_bytes()), &how)
        })?);
    }
    join(threads);
    let most = alive.most.load(Ordering::SeqCst);
    check(most == 1, "exclusive compactions run at once, or none does")
}

/// A checkpoint that is made under a writer holds what was acknowledged before, and no hole.
pub(super) fn copies(stage: &Stage) -> Result<()> {
    const WRITES: u64 = 12;
    let db = stage.open()?;
    let acknowledged = Arc::new(AtomicU64::new(0));
    let (db2, noted) = (db.clone(), Arc::clone(&acknowledged));
    let writer = stage.spawn(&db, move || {
        for n in 1..=WRITES {
            db2.put(format!("k{n:03}"), "v")?;
            noted.store(n, Ordering::SeqCst);
            if n % 5 == 0 {
                db2.flush()?;
            }
        }
        Ok(())
    })?;
    let db2 = db.clone();
    let compactor = stage.spawn(&db, move || db2.compact_range(None, None))?;
    let mut rng = stage.rng();
    for copy in 0..2 {
        let least = acknowledged.load(Ordering::SeqCst);
        let mut how = CheckpointOptions::default();
        how.log_size_for_flush = *rng.pick(&[0, 100, u64::MAX]);
        let path = format!("/copy{copy}");
        db.checkpoint_opt(&path, &how)?;
        let most = acknowledged.load(Ordering::SeqCst) + 1;
        let copied = Db::open(&path, stage.options()?)?;
        let there = (1..=WRITES).map(|n| copied.get(format!("k{n:03}")));
        let there: Vec<bool> = there.map(|v| Ok(v?.is_some())).collect::<Result<_>>()?;
        let first = there.iter().take_while(|is| **is).count();
        let all = there.iter().filter(|is| **is).count();
        check(first == all, "a checkpoint has a hole")?;
        let first = first as u64;
        check(first >= least, "a checkpoint lacks what was acknowledged")?;
        check(first <= most, "a checkpoint has what was not written")?;
        copied.close()?;
    }
    join(vec![writer, compactor]);
    Ok(())
}
