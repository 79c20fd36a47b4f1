//! Threads beside the model that do only what changes no contents, and what the model itself does
//! then: small trees whose levels all move, files that are ingested, checkpoints that are compared.
//!
//! Ranges are compacted with every option, files by their names, levels are moved, options of the
//! shape change, memtables are flushed, while a compaction filter that keeps everything makes some
//! jobs slow. Every answer stays that of the map.

use crate::common::{Rng, number, remove_dir};
use crate::orders::{FAMILIES, Key, Map, ORDERS};
use crate::{Run, show_entry};
use esker::observe::OperationKind;
use esker::options::{BlobGarbageCollectionPolicy, BottommostLevelCompaction, CompactFilesOptions};
use esker::{
    CheckpointOptions, CompactRangeOptions, CompactionFilter, Db, Decision, Env, ErrorKind,
    FamilyHandle, FamilyOptions, FilterValue, FlushOptions, IngestOptions, ReadOptions, Result,
    SstFileWriter,
};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// A filter that keeps every entry, and sleeps at some.
struct Sleepy(AtomicU64);

impl CompactionFilter for Sleepy {
    fn name(&self) -> &str {
        "test.Sleepy"
    }
    fn filter(&self, _: u8, _: &[u8], _: FilterValue<'_>, _: &mut Vec<u8>) -> Decision {
        if self.0.fetch_add(1, Relaxed).is_multiple_of(64) {
            std::thread::sleep(Duration::from_micros(300));
        }
        Decision::Keep
    }
}

/// Makes a family's tree small, so that it has many levels.
pub(crate) fn shrink(o: &mut FamilyOptions, rng: &mut Rng) {
    o.write_buffer_size = *rng.pick(&[3 << 10, 6 << 10]);
    o.target_file_size_base = *rng.pick(&[1 << 10, 2 << 10]);
    o.max_bytes_for_level_base = *rng.pick(&[2 << 10, 4 << 10]);
    o.max_bytes_for_level_multiplier = *rng.pick(&[2.0, 3.0]);
    o.level_compaction_dynamic_level_bytes = !rng.one_in(3);
    o.max_compaction_bytes = 0;
    if rng.one_in(2) {
        o.compaction_filter = Some(Arc::new(Sleepy(AtomicU64::new(0))));
    }
}

/// Threads that call, until they are dropped.
pub(crate) struct Neutral {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// How many threads call beside the model's own.
const THREADS: u64 = 2;

impl Neutral {
    pub(crate) fn start(
        db: &Db,
        handles: &[FamilyHandle],
        seed: u64,
        calls: &Arc<AtomicU64>,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..THREADS).map(|n| {
            let (db, handles, stop) = (db.clone(), handles.to_vec(), Arc::clone(&stop));
            let (calls, mut rng) = (Arc::clone(calls), Rng::new(seed ^ (n + 1) << 40));
            std::thread::spawn(move || {
                while !stop.load(Relaxed) {
                    let family = rng.below(5) as usize;
                    if let Err((what, e)) = call(&db, &handles[family], family, &mut rng) {
                        panic!("{what} beside the model: {e}");
                    }
                    calls.fetch_add(1, Relaxed);
                    std::thread::sleep(Duration::from_micros(rng.below(400)));
                }
            })
        });
        Neutral {
            threads: threads.collect(),
            stop,
        }
    }
}

impl Drop for Neutral {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let done = thread.join();
            assert!(done.is_ok() || std::thread::panicking(), "a thread beside");
        }
    }
}

/// A call that may be refused for the reasons in `kinds`.
fn may(done: Result<()>, kinds: &[ErrorKind]) -> Result<()> {
    done.or_else(|e| kinds.contains(&e.kind()).then_some(()).ok_or(e))
}

/// One call that changes no contents.
fn call(
    db: &Db,
    family: &FamilyHandle,
    index: usize,
    rng: &mut Rng,
) -> Result<(), (&'static str, esker::Error)> {
    use ErrorKind::{Aborted, Busy, InvalidArgument, NotSupported};
    match rng.below(16) {
        0..=5 => {
            let (begin, end) = some_range(index, rng);
            let mut how = CompactRangeOptions::default();
            how.exclusive_manual_compaction = rng.one_in(4);
            how.bottommost_level_compaction =
                BottommostLevelCompaction::from_number(rng.below(4) as u8).unwrap_or_default();
            how.allow_write_stall = rng.one_in(2);
            how.max_subcompactions = rng.below(3) as u32;
            how.blob_garbage_collection_policy = *rng.pick(&[
                BlobGarbageCollectionPolicy::UseDefault,
                BlobGarbageCollectionPolicy::Force,
                BlobGarbageCollectionPolicy::Disable,
            ]);
            how.blob_garbage_collection_age_cutoff = *rng.pick(&[-1.0, 0.5, 1.0]);
            how.change_level = rng.one_in(3);
            how.target_level = rng.below(6) as i32 - 1;
            let refusals: &[ErrorKind] = if how.change_level {
                &[NotSupported, Busy, InvalidArgument]
            } else {
                &[]
            };
            let done = db.compact_range_opt(family, begin.as_deref(), end.as_deref(), &how);
            may(done, refusals).map_err(|e| ("compact_range", e))
        }
        6..=8 => {
            let files = db.live_files_metadata().into_iter();
            let own = files.filter(|f| f.family == family.name());
            let own: Vec<PathBuf> = own.map(|f| PathBuf::from(f.name)).collect();
            if own.is_empty() {
                return Ok(());
            }
            let chosen: Vec<&PathBuf> = (0..1 + rng.below(3)).map(|_| rng.pick(&own)).collect();
            let mut how = CompactFilesOptions::default();
            how.output_file_size_limit = 1 << 10;
            how.allow_trivial_move = rng.one_in(2);
            let done = db.compact_files_opt(family, &chosen, rng.below(7) as u8, &how);
            may(done.map(|_| ()), &[Aborted, InvalidArgument]).map_err(|e| ("compact_files", e))
        }
        9 => {
            let (begin, end) = some_range(index, rng);
            db.suggest_compact_range(family, begin.as_deref(), end.as_deref())
                .map_err(|e| ("suggest_compact_range", e))
        }
        10..=11 => {
            let (name, value) = *rng.pick(&[
                ("max_bytes_for_level_base", "2048"),
                ("max_bytes_for_level_base", "12000"),
                ("max_bytes_for_level_multiplier", "2"),
                ("max_bytes_for_level_multiplier", "4"),
                ("target_file_size_base", "700"),
                ("target_file_size_base", "4000"),
                ("level0_file_num_compaction_trigger", "1"),
                ("level0_file_num_compaction_trigger", "4"),
                ("write_buffer_size", "2000"),
                ("write_buffer_size", "20000"),
                ("enable_blob_files", "true"),
                ("enable_blob_files", "true"),
                ("enable_blob_files", "false"),
                ("min_blob_size", "0"),
                ("min_blob_size", "20"),
                ("min_medium_blob_size", "10"),
                ("min_medium_blob_size", "0"),
                ("min_large_blob_size", "40"),
                ("min_large_blob_size", "0"),
                ("blob_file_size", "1000"),
                ("blob_compression_type", "kLZ4Compression"),
                ("blob_compression_type", "kNoCompression"),
                ("blob_file_starting_level", "1"),
                ("blob_file_starting_level", "0"),
                ("enable_blob_garbage_collection", "true"),
                ("enable_blob_garbage_collection", "false"),
                ("blob_garbage_collection_age_cutoff", "0.7"),
                ("blob_garbage_collection_force_threshold", "0.3"),
                ("prepopulate_blob_cache", "kFlushOnly"),
                ("prepopulate_blob_cache", "kDisable"),
                ("blob_compaction_readahead_size", "4096"),
                ("blob_compaction_readahead_size", "0"),
                ("max_space_amplification_percent", "120"),
                ("max_space_amplification_percent", "0"),
                ("disable_auto_compactions", "true"),
                ("disable_auto_compactions", "false"),
                ("disable_auto_compactions", "false"),
            ]);
            db.set_options(family, &[(name, value)])
                .map_err(|e| ("set_options", e))
        }
        12 => {
            let hours = *rng.pick(&["", "0:00-23:59", "23:30-04:00"]);
            db.set_db_options(&[("daily_offpeak_time_utc", hours)])
                .map_err(|e| ("set_db_options", e))
        }
        13 => {
            let mut how = FlushOptions::default();
            how.wait = false;
            how.allow_write_stall = true;
            db.flush_cf(family, &how).map_err(|e| ("flush", e))
        }
        14 => {
            sample_operations(db, rng);
            Ok(())
        }
        _ => {
            let done = db.promote_l0(family, rng.below(5) as u8);
            may(done, &[InvalidArgument]).map_err(|e| ("promote_l0", e))
        }
    }
}

/// Has operations recorded for a moment. Nothing is wrong in what was.
fn sample_operations(db: &Db, rng: &mut Rng) {
    let limit = rng
        .one_in(2)
        .then(|| Duration::from_micros(rng.below(2_000)));
    let sampling = db.sample_operations(limit);
    std::thread::sleep(Duration::from_micros(rng.below(3_000)));
    let slowest = db.slow_operations();
    for kind in OperationKind::ALL {
        let of_kind: Vec<_> = slowest.iter().filter(|o| o.kind == kind).collect();
        assert!(of_kind.len() <= 32 && of_kind.is_sorted_by(|a, b| a.took >= b.took));
        let names = of_kind.iter().filter_map(|o| o.family.as_deref());
        for name in names {
            assert!(FAMILIES.contains(&name), "{name}");
        }
    }
    drop(sampling);
}

/// Edges of a range, in the family's order; mostly none.
fn some_range(family: usize, rng: &mut Rng) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let mut edge = || {
        Key(
            ORDERS[family],
            format!("k{:05}", rng.below(600)).into_bytes(),
        )
    };
    let (a, b) = (edge(), edge());
    let (low, high) = if a <= b { (a, b) } else { (b, a) };
    (
        (!rng.one_in(3)).then_some(low.1),
        (!rng.one_in(3)).then_some(high.1),
    )
}

/// Compares a family with the map: a scan, and a point read of each key.
fn compare(db: &Db, family: &FamilyHandle, map: &Map, what: &str) {
    let name = family.name().to_owned();
    let mut it = db.iter_opt(family, ReadOptions::default(), None);
    it.seek_to_first();
    for (k, v) in map {
        let wanted = Some((&k.1[..], &v[..]));
        assert!(
            it.entry() == wanted,
            "{what}, scan of {name}: saw {}, expected {}",
            show_entry(it.entry()),
            show_entry(wanted)
        );
        it.next();
    }
    let more = it.entry();
    assert!(
        more.is_none(),
        "{what}, scan of {name}: {} is too much",
        show_entry(more)
    );
    it.status()
        .unwrap_or_else(|e| panic!("{what}, scan of {name}: {e}"));
    for (k, v) in map {
        let found = db.get_cf(family, &k.1);
        let found = found.unwrap_or_else(|e| panic!("{what}, get in {name}: {e}"));
        assert!(
            found.as_deref() == Some(&v[..]),
            "{what}, get in {name}: saw {}, expected {}",
            show_entry(found.as_deref().map(|v| (&k.1[..], v))),
            show_entry(Some((&k.1[..], &v[..])))
        );
    }
}

/// Counts of a run.
#[derive(Default)]
pub(crate) struct Done {
    steps: u64,
    ingested: u64,
    checkpoints: u64,
    compared: u64,
}

impl Run {
    /// A file with a few keys that lie near each other, and now and then a range deletion.
    fn ingest(&mut self) {
        let f = self.family();
        let first = self.rng.below(self.keys);
        let keys: BTreeSet<Key> = (0..1 + self.rng.below(4))
            .map(|_| first + self.rng.below(12))
            .map(|n| Key(ORDERS[f], format!("k{n:05}").into_bytes()))
            .collect();
        let (Some(low), Some(high)) = (keys.first().cloned(), keys.last().cloned()) else {
            return;
        };
        let mut options = self.options.clone();
        options.family = self.families[f].options.clone();
        self.ingested += 1;
        let path = self.dir.join(format!("ingested-{}.sst", self.ingested));
        let mut writer = SstFileWriter::new(&options).expect("a writer");
        writer.open(&path).expect("open");
        let singles = |m: &Map| {
            m.range(low.clone()..high.clone())
                .any(|(k, _)| k.1.starts_with(b"!"))
        };
        if low < high && self.rng.one_in(4) && !singles(&self.state[f]) {
            writer.delete_range(&low.1, &high.1).expect("delete_range");
            self.model(f).retain(|k, _| *k < low || *k >= high);
        }
        for key in keys {
            if self.rng.one_in(6) {
                writer.delete(&key.1).expect("delete");
                self.model(f).remove(&key);
            } else {
                let value = self.value(f);
                writer.put(&key.1, &value).expect("put");
                self.model(f).insert(key, value);
            }
        }
        writer.finish().expect("finish");
        let mut how = IngestOptions::default();
        how.move_files = true;
        let done = self.db().ingest(&self.handles[f], &[&path], &how);
        done.unwrap_or_else(|e| panic!("ingest: {e}"));
    }

    /// Makes a checkpoint while everything goes on, opens it, and compares it entry by entry.
    fn checkpoint(&mut self) {
        let path = self.dir.join("checkpoint");
        let mut how = CheckpointOptions::default();
        how.log_size_for_flush = *self.rng.pick(&[0, 2000, u64::MAX]);
        let made = self.db().checkpoint_opt(&path, &how);
        made.unwrap_or_else(|e| panic!("checkpoint: {e}"));
        let copy = Db::open_families(&path, self.options.clone(), self.families.clone());
        let copy = copy.unwrap_or_else(|e| panic!("open a checkpoint: {e}"));
        for (f, map) in self.state.iter().enumerate() {
            let family = copy.family(FAMILIES[f]).expect("opened by name");
            compare(&copy, &family, map, "checkpoint");
        }
        copy.close()
            .unwrap_or_else(|e| panic!("close a checkpoint: {e}"));
        remove_dir(&self.env, &path);
    }

    fn step_beside(&mut self, done: &mut Done) {
        done.steps += 1;
        match self.rng.below(400) {
            0..=9 => {
                self.ingest();
                done.ingested += 1;
            }
            10..=11 => {
                self.checkpoint();
                done.checkpoints += 1;
            }
            12..=16 => {
                let f = self.family();
                compare(self.db(), &self.handles[f], &self.state[f], "live");
                done.compared += 1;
            }
            17..=19 => self.flush(),
            20..=21 => self.compact(),
            _ => self.step(),
        }
    }
}

/// Runs `steps` of the model on small trees with threads beside it.
fn run(seed: u64, steps: u64, env: Env, dir: PathBuf) {
    let mut run = Run::new(seed, env, dir, true);
    let mut done = Done::default();
    for step in 0..steps {
        let next = std::panic::AssertUnwindSafe(|| run.step_beside(&mut done));
        if let Err(panic) = std::panic::catch_unwind(next) {
            eprintln!("the model differs: seed {seed} step {step}, with threads beside it");
            std::panic::resume_unwind(panic);
        }
    }
    let calls = run.calls.load(Relaxed);
    run.neutral = None;
    run.verify();
    run.reopen();
    println!(
        "seed {seed}: {} steps, {calls} calls beside them, {} ingested, {} checkpoints and {} times a family compared: 0 differences",
        done.steps, done.ingested, done.checkpoints, done.compared
    );
}

fn in_memory(seed: u64, steps: u64) {
    run(seed, steps, Env::in_memory(), PathBuf::from("/model"));
}

fn on_disk(seed: u64, steps: u64) {
    let dir = tempfile::tempdir().expect("a directory");
    run(seed, steps, Env::posix(), dir.path().to_path_buf());
}

#[test]
fn calls_beside_the_model_change_no_contents() {
    let first = number("ESKER_MODEL_SEED", 1) + 500;
    let steps = number("ESKER_MODEL_OPS", 8_000);
    for seed in first..first + number("ESKER_MODEL_SEEDS", 3) {
        in_memory(seed, steps);
    }
    on_disk(first, steps / 3);
}
