//! Esker writes, RocksDB 7.8 verifies, reads, compacts and writes, and Esker reads again.

mod rocksdb_tools;

use esker::{CompactRangeOptions, Db, Snapshot, WriteBatch};
use rocksdb_tools::settings::Settings;
use rocksdb_tools::workload::{self, FAMILIES, Op, Rng, Steps};
use rocksdb_tools::{Contents, Copy, Tally, Tools, compare_ours, hex, is_misread};
use rocksdb_tools::{latest_options, say, seeds, with_suffix};
use std::path::Path;

const KEYS: u64 = 2_000;

fn write(db: &Db, ops: &[Op]) -> esker::Result<()> {
    let mut batch = WriteBatch::new();
    workload::fill(&mut batch, &workload::ids(db), ops)?;
    db.write(&mut batch)
}

/// A database in the making, beside its model.
struct Run {
    db: Db,
    model: Contents,
    held: Vec<(Snapshot, Contents)>,
    steps: Steps,
    rng: Rng,
}

impl Run {
    fn admin(&mut self) -> esker::Result<()> {
        let families = self.db.families();
        match self.rng.below(12) {
            0 | 1 => self.db.flush()?,
            2 | 3 => {
                let family = self.rng.pick(&families).clone();
                self.db.flush_cf(&family, &Default::default())?;
            }
            4 => {
                let family = self.rng.pick(&families).clone();
                let how = CompactRangeOptions::default();
                self.db.compact_range_opt(&family, None, None, &how)?;
            }
            5 => {
                let family = self.rng.pick(&families).clone();
                let at = self.rng.below(KEYS);
                let (begin, end) = (workload::key(at), workload::key(at + 200));
                let how = CompactRangeOptions::default();
                self.db
                    .compact_range_opt(&family, Some(&begin), Some(&end), &how)?;
            }
            6..=8 => self.held.push((self.db.snapshot(), self.model.clone())),
            9 if !self.held.is_empty() => {
                let n = self.rng.below(self.held.len() as u64) as usize;
                let (snapshot, then) = self.held.swap_remove(n);
                self.check_snapshot(&snapshot, &then);
            }
            10 => {
                let gone = self.db.create_family("passing", Default::default())?;
                self.db.put_cf(&gone, "key", "value")?;
                self.db.flush_cf(&gone, &Default::default())?;
                self.db.put_cf(&gone, "other", "value")?;
                self.db.drop_family(&gone)?;
            }
            _ => self.db.wait_for_compaction()?,
        }
        Ok(())
    }

    fn check_snapshot(&self, snapshot: &Snapshot, then: &Contents) {
        for (name, content) in then {
            let family = self.db.family(name).expect("a family");
            let mut reading = esker::ReadOptions::default();
            reading.total_order_seek = true;
            let mut it = self.db.iter_opt(&family, reading, Some(snapshot));
            it.seek_to_first();
            for (key, value) in content {
                assert_eq!(it.entry(), Some((&key[..], &value[..])), "{name}");
                it.next();
            }
            assert!(!it.valid() && it.status().is_ok());
        }
    }

    fn steps(&mut self, count: u64) -> esker::Result<()> {
        for _ in 0..count {
            let ops = self.steps.next_batch();
            write(&self.db, &ops)?;
            workload::apply(&mut self.model, &ops);
            if self.rng.one_in(60) {
                self.admin()?;
            }
        }
        Ok(())
    }
}

/// RocksDB writes to, compacts and reads a copy, and Esker opens the result: twice over.
fn back_and_forth(tools: Tools, copy: &Copy, model: &mut Contents, what: &str, tally: &mut Tally) {
    for family in FAMILIES {
        let (key, value) = (format!("k0{family}"), vec![b'v'; 300]);
        let (k, v) = (hex(key.as_bytes()), hex(&value));
        tools.ldb_family(&copy.path, family, &["put", "--hex", &k, &v]);
        let (begin, end) = (workload::key(100), workload::key(150));
        let (b, e) = (hex(&begin), hex(&end));
        tools.ldb_family(&copy.path, family, &["deleterange", "--hex", &b, &e]);
        let content = model.get_mut(family).expect("a family");
        content.insert(key.into_bytes(), value);
        content.retain(|k, _| *k < begin || *k >= end);
    }
    for family in ["default", "strings"] {
        tools.ldb_family(&copy.path, family, &["compact"]);
    }
    tools.compare(
        &copy.path,
        model,
        &format!("{what}, after its writes"),
        tally,
    );
    let (options, families) = latest_options(&copy.path);
    let db = Db::open_families(&copy.path, options, families)
        .unwrap_or_else(|e| panic!("{what}: what RocksDB wrote opens: {e}"));
    compare_ours(&db, model, &format!("{what}, after RocksDB's writes"));
    for family in db.families() {
        db.put_cf(&family, "k1back", "12345678").expect("a write");
        let content = model.get_mut(family.name()).expect("a family");
        content.insert(b"k1back".to_vec(), b"12345678".to_vec());
        let how = CompactRangeOptions::default();
        db.compact_range_opt(&family, None, None, &how)
            .expect("a compaction");
    }
    compare_ours(&db, model, &format!("{what}, compacted"));
    db.close().expect("a clean end");
    drop(db);
    tools.examine(
        &copy.path,
        model,
        &format!("{what}, written by both"),
        tally,
    );
}

/// Leaves no log that RocksDB 7.8 misreads.
fn flush_misread_logs(settings: &Settings, dir: &Path, what: &str) {
    if with_suffix(dir, ".log").iter().any(|log| is_misread(log)) {
        println!("{what}: RocksDB 7.8 does not read such a record");
        let db = settings.open(dir).expect("an open database");
        db.flush().expect("a flush");
        db.close().expect("a clean end");
    }
}

#[test]
fn rocksdb_opens_verifies_and_extends_what_esker_wrote() {
    let Some(tools) = Tools::find() else { return };
    let mut tally = Tally::default();
    for seed in seeds(12) {
        let settings = Settings::random(seed, 5);
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("db");
        println!("seed {seed}: {settings:?}");
        let what = format!("seed {seed}");
        let db = settings
            .open(&dir)
            .unwrap_or_else(|e| panic!("{what}: {e}"));
        let mut run = Run {
            db,
            model: workload::empty(),
            held: Vec::new(),
            steps: Steps::new(seed, KEYS),
            rng: Rng(seed),
        };
        for part in 0..2 {
            let done = run.steps(700);
            done.unwrap_or_else(|e| panic!("{what}: {e}"));
            compare_ours(&run.db, &run.model, &what);
            let kept = std::mem::take(&mut run.held);
            kept.iter()
                .for_each(|(s, then)| run.check_snapshot(s, then));
            drop(kept);
            if part == 1 && seed % 3 == 0 {
                for family in run.db.families() {
                    let how = CompactRangeOptions::default();
                    let done = run.db.compact_range_opt(&family, None, None, &how);
                    done.expect("a compaction");
                }
            }
            run.db.close().expect("a clean end");
            flush_misread_logs(&settings, &dir, &what);
            tools.examine(&dir, &run.model, &format!("{what}.{part}"), &mut tally);
            run.db = settings
                .open(&dir)
                .unwrap_or_else(|e| panic!("{what}: {e}"));
            compare_ours(&run.db, &run.model, &format!("{what}, opened again"));
        }
        run.db.close().expect("a clean end");
        flush_misread_logs(&settings, &dir, &what);
        let copy = Copy::of(&dir);
        back_and_forth(tools, &copy, &mut run.model, &what, &mut tally);
    }
    say(format_args!("{tally}"));
}
