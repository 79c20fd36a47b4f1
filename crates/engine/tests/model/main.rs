//! Random operations on a database and on a map: every answer of the one must be the other's.
//!
//! Five families with different orders, merge operators and compaction styles take random puts,
//! deletes, merges, single deletes (within their contract), range deletes and batches over several
//! families, while memtables of a few kilobytes are flushed and compacted behind them. Snapshots
//! and iterators are kept open over all of that, and the database is closed and reopened, and
//! reopened from a copy that a kill would have left.
//!
//! A run follows from its seed as far as its calls go (background threads do as they like). The
//! long run is `ESKER_MODEL_OPS=2000000 cargo test --release -p esker-engine --test model --
//! --ignored --nocapture`; `ESKER_MODEL_SEED` starts it at another seed.

mod beside;
#[path = "../common/mod.rs"]
mod common;
mod entries;
mod iterators;
mod orders;

use beside::{Neutral, shrink};
use common::{Rng, copy_dir, number, remove_dir};
use esker::{
    CompactRangeOptions, Db, Env, FamilyDescriptor, FamilyHandle, FlushOptions, Options,
    ReadOptions, Snapshot, WriteBatch, WriteOptions,
};
use iterators::{OpenIterator, show_entry};
use orders::{FAMILIES, Key, Map, ORDERS, State, options_of};
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

struct Run {
    seed: u64,
    rng: Rng,
    env: Env,
    dir: PathBuf,
    generation: u64,
    options: Options,
    families: Vec<FamilyDescriptor>,
    db: Option<Db>,
    handles: Vec<FamilyHandle>,
    state: State,
    snapshots: Vec<(Snapshot, State)>,
    iterators: Vec<OpenIterator>,
    keys: u64,
    /// Threads that call beside this one, where trees are small.
    neutral: Option<Neutral>,
    is_small: bool,
    /// How many calls those threads made.
    calls: Arc<AtomicU64>,
    /// Files that were ingested.
    ingested: u64,
}

impl Run {
    fn new(seed: u64, env: Env, dir: PathBuf, is_small: bool) -> Run {
        let mut rng = Rng::new(seed);
        let mut families: Vec<_> = (0..5)
            .map(|f| FamilyDescriptor::new(FAMILIES[f], options_of(f, &mut rng)))
            .collect();
        if is_small {
            families
                .iter_mut()
                .for_each(|f| shrink(&mut f.options, &mut rng));
        }
        let mut options = Options::new()
            .create_if_missing(true)
            .create_missing_column_families(true)
            .env(env.clone());
        options.family = families[0].options.clone();
        options.db.max_subcompactions = *rng.pick(&[1, 4]);
        options.db.max_background_jobs = *rng.pick(&[2, 4]);
        options.db.max_manifest_file_size = *rng.pick(&[2 << 10, 20 << 10, 1 << 30]);
        options.db.max_total_wal_size = *rng.pick(&[0, 64 << 10]);
        options.db.avoid_flush_during_recovery = rng.one_in(2);
        options.db.max_open_files = *rng.pick(&[-1, 20]);
        let keys = if is_small {
            400
        } else {
            *rng.pick(&[60, 600, 4000])
        };
        let mut run = Run {
            seed,
            rng,
            env,
            dir,
            generation: 0,
            options,
            families,
            db: None,
            handles: Vec::new(),
            state: Default::default(),
            snapshots: Vec::new(),
            iterators: Vec::new(),
            keys,
            neutral: None,
            is_small,
            calls: Arc::default(),
            ingested: 0,
        };
        run.open();
        run
    }

    fn path(&self) -> PathBuf {
        self.dir.join(format!("db{}", self.generation))
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open")
    }

    fn open(&mut self) {
        let db = Db::open_families(self.path(), self.options.clone(), self.families.clone());
        let db = db.unwrap_or_else(|e| panic!("open: {e}"));
        self.handles = FAMILIES
            .iter()
            .map(|n| db.family(n).expect("opened by name").into())
            .collect();
        self.db = Some(db);
        self.call_beside();
    }

    /// Starts the threads that call beside this one.
    fn call_beside(&mut self) {
        if self.is_small {
            let seed = self.rng.next();
            self.neutral = Some(Neutral::start(self.db(), &self.handles, seed, &self.calls));
        }
    }

    fn family(&mut self) -> usize {
        self.rng.below(5) as usize
    }

    /// A key of the shared part of the key space: any operation but single deletes.
    fn key(&mut self) -> Vec<u8> {
        if self.rng.one_in(400) {
            return match self.rng.below(4) {
                0 => Vec::new(),
                1 => vec![0xff; 3],
                2 => vec![0],
                _ => vec![b'k'; 300],
            };
        }
        // Half of the accesses go to a tenth of the keys.
        let n = if self.rng.one_in(2) {
            self.rng.below(self.keys / 10)
        } else {
            self.rng.below(self.keys)
        };
        match n % 7 {
            0 => format!("k{n:05}/with a longer tail").into_bytes(),
            1 => n.to_be_bytes().to_vec(),
            _ => format!("k{n:05}").into_bytes(),
        }
    }

    fn value(&mut self, family: usize) -> Vec<u8> {
        if family == 2 {
            return self.rng.next().to_le_bytes().to_vec();
        }
        let len = match self.rng.below(200) {
            0 => 9000,
            1..=9 => 700,
            10..=19 => 0,
            n => n / 3,
        } as usize;
        let tag = self.rng.next();
        let mut v = format!("{tag:016x}").into_bytes();
        v.resize(len, b'a' + (tag % 26) as u8);
        v
    }

    fn model(&mut self, family: usize) -> &mut Map {
        Arc::make_mut(&mut self.state[family])
    }

    /// Adds one random change to `batch` and to the map.
    fn change(&mut self, batch: &mut WriteBatch) {
        let f = self.family();
        let id = esker_id(&self.handles[f]);
        let key = self.key();
        let k = Key(ORDERS[f], key.clone());
        match self.rng.below(100) {
            0..=54 => {
                let v = self.value(f);
                batch.put_cf(id, &key, &v).expect("small");
                self.model(f).insert(k, v);
            }
            55..=69 => {
                batch.delete_cf(id, &key).expect("small");
                self.model(f).remove(&k);
            }
            70..=84 => {
                let operand = if f == 2 {
                    self.rng.below(1000).to_le_bytes().to_vec()
                } else {
                    format!("{:x}", self.rng.below(1 << 20)).into_bytes()
                };
                batch.merge_cf(id, &key, &operand).expect("small");
                self.merge(f, k, &operand);
            }
            85..=96 => self.single(f, batch),
            _ => {
                let other = self.key();
                let o = Key(ORDERS[f], other.clone());
                let ((a, ak), (b, bk)) = if k <= o {
                    ((key, k), (other, o))
                } else {
                    ((other, o), (key, k))
                };
                // A range that covers everything each time would leave nothing to compare.
                if self.model(f).range(ak.clone()..bk.clone()).count() > 80 && !self.rng.one_in(50)
                {
                    return;
                }
                if self
                    .model(f)
                    .range(ak.clone()..bk.clone())
                    .any(|(k, _)| k.1.starts_with(b"!"))
                {
                    return;
                }
                batch.delete_range_cf(id, &a, &b).expect("small");
                let gone: Vec<_> = self
                    .model(f)
                    .range(ak..bk)
                    .map(|(k, _)| k.clone())
                    .collect();
                for k in gone {
                    self.model(f).remove(&k);
                }
            }
        }
    }

    fn merge(&mut self, f: usize, key: Key, operand: &[u8]) {
        let map = self.model(f);
        let old = map.get(&key);
        let new = match f {
            2 => {
                let add = |v: &[u8]| v.try_into().map_or(0, u64::from_le_bytes);
                let base = old.map_or(0, |v| add(v));
                base.wrapping_add(add(operand)).to_le_bytes().to_vec()
            }
            3 => old
                .map_or(
                    operand,
                    |v| if v.as_slice() >= operand { v } else { operand },
                )
                .to_vec(),
            _ => {
                let delimiter: &[u8] = [&b","[..], b"|", b"", b"", b""][f];
                match old {
                    Some(v) => [v, delimiter, operand].concat(),
                    None => operand.to_vec(),
                }
            }
        };
        // Values that only ever grow would fill the run with copying.
        map.insert(key, new);
    }

    /// Single deletes have keys of their own: put when absent, single-deleted when present.
    fn single(&mut self, f: usize, batch: &mut WriteBatch) {
        let id = esker_id(&self.handles[f]);
        let key = format!("!{:03}", self.rng.below(200)).into_bytes();
        let k = Key(ORDERS[f], key.clone());
        if self.state[f].contains_key(&k) {
            batch.single_delete_cf(id, &key).expect("small");
            self.model(f).remove(&k);
        } else {
            let v = self.value(f);
            batch.put_cf(id, &key, &v).expect("small");
            self.model(f).insert(k, v);
        }
    }

    fn write(&mut self, changes: u64) {
        let mut batch = WriteBatch::new();
        for _ in 0..changes {
            self.change(&mut batch);
        }
        let mut options = WriteOptions::default();
        options.sync = self.rng.one_in(50);
        self.db()
            .write_opt(&mut batch, &options)
            .unwrap_or_else(|e| panic!("write: {e}"));
    }

    fn probe_key(&mut self) -> Vec<u8> {
        if self.rng.one_in(8) {
            format!("!{:03}", self.rng.below(200)).into_bytes()
        } else {
            self.key()
        }
    }

    fn read(&mut self) {
        let f = self.family();
        let at = self.rng.below(self.snapshots.len() as u64 * 2 + 1) as usize;
        let keys: Vec<_> = {
            let n = if self.rng.one_in(6) { 8 } else { 1 };
            (0..n).map(|_| self.probe_key()).collect()
        };
        let snapshot = self
            .snapshots
            .get(at)
            .map(|(s, m)| (s.clone(), Arc::clone(&m[f])));
        let (snapshot, map) = match snapshot {
            Some((s, m)) => (Some(s), m),
            None => (None, Arc::clone(&self.state[f])),
        };
        let mut options = ReadOptions::default();
        options.fill_cache = self.rng.one_in(2);
        options.verify_checksums = self.rng.one_in(2);
        let db = self.db();
        let answers = if keys.len() == 1 {
            vec![db.get_opt(&self.handles[f], &keys[0], &options, snapshot.as_ref())]
        } else {
            db.multi_get_opt(&self.handles[f], &keys, &options, snapshot.as_ref())
        };
        for (key, answer) in keys.iter().zip(answers) {
            let answer = answer.unwrap_or_else(|e| panic!("get: {e}"));
            let wanted = map.get(&Key(ORDERS[f], key.clone()));
            assert!(
                answer.as_deref() == wanted.map(Vec::as_slice),
                "get {} in {} at {:?}: saw {}, expected {}",
                key.escape_ascii(),
                FAMILIES[f],
                snapshot.as_ref().map(Snapshot::sequence),
                show_entry(answer.as_deref().map(|v| (&key[..], v))),
                show_entry(wanted.map(|v| (&key[..], &v[..])))
            );
        }
    }

    /// The range of an iterator, which may lack either end.
    fn bounds(&mut self, f: usize) -> [Option<Key>; 2] {
        let (a, b) = (self.key(), self.key());
        let (a, b) = (Key(ORDERS[f], a), Key(ORDERS[f], b));
        let (low, high) = if a <= b { (a, b) } else { (b, a) };
        [low, high].map(|bound| self.rng.one_in(2).then_some(bound))
    }

    fn open_iterator(&mut self) {
        let f = self.family();
        let mut options = ReadOptions::default();
        options.total_order_seek = true;
        let bounds = if self.rng.one_in(3) {
            self.bounds(f)
        } else {
            [None, None]
        };
        options.iterate_lower_bound = bounds[0].as_ref().map(|bound| bound.1.clone());
        options.iterate_upper_bound = bounds[1].as_ref().map(|bound| bound.1.clone());
        let at = self.rng.below(self.snapshots.len() as u64 * 2 + 1) as usize;
        let (snapshot, map) = match self.snapshots.get(at) {
            Some((s, m)) => (Some(s.clone()), Arc::clone(&m[f])),
            None => (None, Arc::clone(&self.state[f])),
        };
        let tailing = snapshot.is_none() && self.rng.one_in(5);
        options.tailing = tailing;
        options.auto_refresh_iterator_with_snapshot = self.rng.one_in(2);
        options.allow_unprepared_value = self.rng.one_in(3);
        let leaves_values = options.allow_unprepared_value;
        options.fill_cache = self.rng.one_in(2);
        options.readahead_size = *self.rng.pick(&[0, 0, 100, 100_000]);
        let it = self
            .db()
            .iter_opt(&self.handles[f], options, snapshot.as_ref());
        let [lower, upper] = bounds;
        let open = OpenIterator {
            it,
            family: f,
            map,
            at: None,
            lower,
            upper,
            tailing,
            leaves_values,
            checks: 0,
        };
        if self.iterators.len() >= 12 {
            let victim = self.rng.below(12) as usize;
            self.iterators[victim] = open;
        } else {
            self.iterators.push(open);
        }
    }

    fn move_iterator(&mut self) {
        if self.iterators.is_empty() {
            return self.open_iterator();
        }
        let i = self.rng.below(self.iterators.len() as u64) as usize;
        let target = self.probe_key();
        let changed = self.rng.one_in(20);
        let bounds = changed.then(|| self.bounds(self.iterators[i].family));
        let open = &mut self.iterators[i];
        if let Some([lower, upper]) = bounds {
            let bytes = |bound: &'_ Option<Key>| bound.as_ref().map(|bound| bound.1.clone());
            let (from, to) = (bytes(&lower), bytes(&upper));
            open.it.set_bounds(from.as_deref(), to.as_deref());
            (open.lower, open.upper, open.at) = (lower, upper, None);
        }
        if self.rng.one_in(60) {
            open.it
                .refresh(None)
                .unwrap_or_else(|e| panic!("refresh: {e}"));
            open.map = Arc::clone(&self.state[open.family]);
            open.at = None;
        }
        open.step(&mut self.rng, target, &self.state);
    }

    fn snapshot(&mut self) {
        if self.snapshots.len() >= 6 || (!self.snapshots.is_empty() && self.rng.one_in(3)) {
            let i = self.rng.below(self.snapshots.len() as u64) as usize;
            self.snapshots.swap_remove(i);
        } else {
            let s = self.db().snapshot();
            self.snapshots.push((s, self.state.clone()));
        }
    }

    fn compact(&mut self) {
        let f = self.family();
        let (a, b) = (Key(ORDERS[f], self.key()), Key(ORDERS[f], self.key()));
        let (a, b) = if a <= b { (a, b) } else { (b, a) };
        let range = if self.rng.one_in(2) {
            (None, None)
        } else {
            (Some(a.1), Some(b.1))
        };
        let mut options = CompactRangeOptions::default();
        options.exclusive_manual_compaction = self.rng.one_in(2);
        options.bottommost_level_compaction = *self.rng.pick(&[
            esker::options::BottommostLevelCompaction::IfHaveCompactionFilter,
            esker::options::BottommostLevelCompaction::Force,
        ]);
        let (begin, end) = range;
        self.db()
            .compact_range_opt(&self.handles[f], begin.as_deref(), end.as_deref(), &options)
            .unwrap_or_else(|e| panic!("compact: {e}"));
    }

    fn flush(&mut self) {
        let f = self.family();
        let mut options = FlushOptions::default();
        options.wait = self.rng.one_in(2);
        self.db()
            .flush_cf(&self.handles[f], &options)
            .unwrap_or_else(|e| panic!("flush: {e}"));
    }

    fn forget_readers(&mut self) {
        self.iterators.clear();
        self.snapshots.clear();
    }

    fn reopen(&mut self) {
        self.neutral = None;
        self.forget_readers();
        let db = self.db.take().expect("open");
        self.handles.clear();
        if self.rng.one_in(2) {
            db.close().unwrap_or_else(|e| panic!("close: {e}"));
        }
        drop(db);
        self.open();
        self.verify();
    }

    /// Goes on with a copy of the directory, taken while the database is open: what a kill leaves.
    fn reopen_killed(&mut self) {
        self.neutral = None;
        self.forget_readers();
        let old = self.path();
        self.db()
            .pause_background_work()
            .unwrap_or_else(|e| panic!("pause: {e}"));
        self.generation += 1;
        copy_dir(&self.env, &old, &self.path());
        self.db().continue_background_work();
        self.handles.clear();
        self.db = None;
        remove_dir(&self.env, &old);
        self.open();
        self.verify();
    }

    /// Drops a family and makes it again, empty, under another number.
    fn recreate_family(&mut self) {
        self.neutral = None;
        let f = 1 + self.rng.below(4) as usize;
        let old = self.handles[f].clone();
        self.db()
            .drop_family(&old)
            .unwrap_or_else(|e| panic!("drop: {e}"));
        let made = self
            .db()
            .create_family(FAMILIES[f], self.families[f].options.clone());
        self.handles[f] = made.unwrap_or_else(|e| panic!("create: {e}"));
        let last = std::mem::take(&mut self.state[f]);
        // Snapshots are of the database: they show the new family as empty; open iterators keep the
        // old.
        for (_, state) in &mut self.snapshots {
            state[f] = Arc::default();
        }
        for it in &mut self.iterators {
            if it.family == f {
                it.it.seek_to_first();
                if it.tailing {
                    it.map = Arc::clone(&last);
                }
                it.at = it.above(Bound::Unbounded);
                it.check("an iterator over a dropped family");
            }
        }
        self.iterators.retain(|it| it.family != f);
        self.call_beside();
    }

    fn verify(&self) {
        for f in 0..5 {
            self.verify_one(f, None, &self.state[f]);
        }
    }

    fn verify_one(&self, f: usize, snapshot: Option<&Snapshot>, map: &Map) {
        let mut it = self
            .db()
            .iter_opt(&self.handles[f], ReadOptions::default(), snapshot);
        it.seek_to_first();
        for (k, v) in map {
            let seen = it.entry();
            assert!(
                seen == Some((&k.1[..], &v[..])),
                "scan of {} at {:?}: saw {}, expected {}",
                FAMILIES[f],
                snapshot.map(Snapshot::sequence),
                show_entry(seen),
                show_entry(Some((&k.1[..], &v[..])))
            );
            it.next();
        }
        assert!(
            it.entry().is_none(),
            "scan of {}: {} is too much",
            FAMILIES[f],
            show_entry(it.entry())
        );
        it.seek_to_last();
        for (k, v) in map.iter().rev() {
            let seen = it.entry();
            assert!(
                seen == Some((&k.1[..], &v[..])),
                "backward scan of {}: saw {}, expected {}",
                FAMILIES[f],
                show_entry(seen),
                show_entry(Some((&k.1[..], &v[..])))
            );
            it.prev();
        }
        assert!(
            it.entry().is_none(),
            "backward scan of {}: too much",
            FAMILIES[f]
        );
        it.status().unwrap_or_else(|e| panic!("scan: {e}"));
    }

    fn step(&mut self) {
        match self.rng.below(20_000) {
            0..=2 => self.reopen(),
            3..=5 => self.reopen_killed(),
            6..=7 => self.recreate_family(),
            8..=25 => self.compact(),
            26..=70 => self.flush(),
            71..=90 => match self.rng.below(self.snapshots.len() as u64 + 1) as usize {
                0 => self.verify(),
                n => {
                    let f = self.family();
                    let (s, state) = &self.snapshots[n - 1];
                    self.verify_one(f, Some(s), &state[f]);
                }
            },
            91..=250 => self.snapshot(),
            251..=700 => self.open_iterator(),
            701..=8_500 => self.write(1),
            8_501..=9_500 => {
                let n = 2 + self.rng.below(12);
                self.write(n);
            }
            9_501..=13_900 => self.read(),
            13_901..=14_000 => self.entries(),
            _ => self.move_iterator(),
        }
    }
}

fn esker_id(handle: &FamilyHandle) -> esker_format::FamilyId {
    esker_format::FamilyId(handle.id())
}

/// Runs `ops` operations of `seed`, and says which one failed.
fn run(seed: u64, ops: u64, env: Env, dir: PathBuf) {
    let mut run = Run::new(seed, env, dir, false);
    for op in 0..ops {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.step()));
        if let Err(panic) = done {
            eprintln!("the model differs: seed {} operation {op}", run.seed);
            std::panic::resume_unwind(panic);
        }
    }
    run.verify();
    run.reopen();
    println!("seed {seed}: {ops} operations, 0 differences");
}

fn in_memory(seed: u64, ops: u64) {
    run(seed, ops, Env::in_memory(), PathBuf::from("/model"));
}

fn on_disk(seed: u64, ops: u64) {
    let dir = tempfile::tempdir().expect("a directory");
    run(seed, ops, Env::posix(), dir.path().to_path_buf());
}

#[test]
fn many_seeds_in_memory() {
    let first = number("ESKER_MODEL_SEED", 1);
    for seed in first..first + 6 {
        in_memory(seed, 18_000);
    }
}

#[test]
fn some_seeds_on_disk() {
    let first = number("ESKER_MODEL_SEED", 1) + 100;
    for seed in first..first + 3 {
        on_disk(seed, 14_000);
    }
}

#[test]
#[ignore = "the long run: ESKER_MODEL_OPS=2000000 cargo test --release -p esker-engine --test model -- --ignored --nocapture"]
fn long_run() {
    let ops = number("ESKER_MODEL_OPS", 2_000_000);
    let first = number("ESKER_MODEL_SEED", 1000);
    let seeds = ops.div_ceil(50_000);
    for seed in first..first + seeds {
        let share = ops / seeds;
        if seed % 5 == 0 {
            on_disk(seed, share);
        } else {
            in_memory(seed, share);
        }
    }
    println!("{ops} operations over {seeds} seeds from {first}: 0 differences");
}
