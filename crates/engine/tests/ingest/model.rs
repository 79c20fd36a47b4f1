//! Random files and writes against a model.

use crate::common::{self, Rng, number};
use crate::{KEYS, Model, contents, ingest, key, open, options};
use esker::env::Env;
use esker::{Db, Result, Snapshot, SstFileWriter};
use std::collections::BTreeMap;
use std::path::Path;

/// One thing that a file does to a key.
#[derive(Clone, Debug)]
enum Entry {
    Put(Vec<u8>),
    Delete,
    Merge(Vec<u8>),
}

/// The contents of a file to be.
#[derive(Clone, Debug, Default)]
struct Contents {
    entries: BTreeMap<Vec<u8>, Entry>,
    deleted: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Contents {
    fn write(&self, path: &Path) -> Result<()> {
        let mut writer = SstFileWriter::new(&options())?;
        writer.open(path)?;
        let mut deleted = self.deleted.iter();
        for (key, entry) in &self.entries {
            match entry {
                Entry::Put(v) => writer.put(key, v)?,
                Entry::Delete => writer.delete(key)?,
                Entry::Merge(v) => writer.merge(key, v)?,
            }
            if let Some((a, b)) = deleted.next() {
                writer.delete_range(a, b)?;
            }
        }
        for (a, b) in deleted {
            writer.delete_range(a, b)?;
        }
        let info = writer.finish()?;
        assert_eq!(info.num_entries, self.entries.len() as u64);
        assert_eq!(info.num_range_del_entries, self.deleted.len() as u64);
        assert_eq!(info.file_size, writer.file_size());
        let first = self.entries.keys().next().cloned().unwrap_or_default();
        let last = self.entries.keys().last().cloned().unwrap_or_default();
        assert_eq!((info.smallest_key, info.largest_key), (first, last));
        assert_eq!((info.version, info.sequence_number), (2, 0));
        Ok(())
    }

    /// A file's range deletions hide what was there, and nothing of the file.
    fn apply(&self, model: &mut Model) {
        for (a, b) in &self.deleted {
            model.retain(|k, _| k < a || k >= b);
        }
        for (key, entry) in &self.entries {
            match entry {
                Entry::Put(v) => drop(model.insert(key.clone(), v.clone())),
                Entry::Delete => drop(model.remove(key)),
                Entry::Merge(v) => merge(model, key, v),
            }
        }
    }
}

fn merge(model: &mut Model, key: &[u8], operand: &[u8]) {
    let value = model.entry(key.to_vec()).or_default();
    if !value.is_empty() {
        value.push(b',');
    }
    value.extend_from_slice(operand);
}

struct Run {
    rng: Rng,
    dir: tempfile::TempDir,
    db: Db,
    model: Model,
    snapshots: Vec<(Snapshot, Model)>,
    made: u64,
}

impl Run {
    fn value(&mut self) -> Vec<u8> {
        let len = 20 + self.rng.below(60);
        let n = self.rng.next();
        format!("{n:0width$}", width = len as usize).into_bytes()
    }

    fn range(&mut self) -> (Vec<u8>, Vec<u8>) {
        let from = self.rng.below(KEYS);
        let to = from + 1 + self.rng.below(40);
        (key(from), key(to))
    }

    fn write(&mut self) {
        for _ in 0..self.rng.below(60) {
            let k = key(self.rng.below(KEYS));
            let family = self.db.default_family_handle();
            match self.rng.below(10) {
                0 | 1 => {
                    self.db.delete(&k).expect("writes");
                    self.model.remove(&k);
                }
                2 => {
                    let (a, b) = self.range();
                    self.db.delete_range_cf(&family, &a, &b).expect("writes");
                    self.model.retain(|k, _| *k < a || *k >= b);
                }
                3 => {
                    self.db.merge(&k, "m").expect("writes");
                    merge(&mut self.model, &k, b"m");
                }
                _ => {
                    let v = self.value();
                    self.db.put(&k, &v).expect("writes");
                    self.model.insert(k, v);
                }
            }
        }
    }

    fn file(&mut self) -> Contents {
        let mut file = Contents::default();
        let (from, width) = (self.rng.below(KEYS), 1 + self.rng.below(120));
        for _ in 0..1 + self.rng.below(30) {
            let k = key(from + self.rng.below(width));
            let entry = match self.rng.below(6) {
                0 => Entry::Delete,
                1 => Entry::Merge(b"f".to_vec()),
                _ => Entry::Put(self.value()),
            };
            file.entries.insert(k, entry);
        }
        if self.rng.one_in(3) {
            for _ in 0..1 + self.rng.below(3) {
                let range = self.range();
                file.deleted.push(range);
            }
            if self.rng.one_in(4) {
                file.entries.clear();
            }
        }
        file
    }

    fn ingest(&mut self) {
        let mut options = ingest();
        match self.rng.below(4) {
            0 => options.move_files = true,
            1 => options.link_files = true,
            _ => {}
        }
        options.write_global_seqno = self.rng.one_in(3);
        options.verify_checksums_before_ingest = self.rng.one_in(3);
        options.fill_cache = self.rng.one_in(2);
        let mut paths = Vec::new();
        for _ in 0..1 + self.rng.below(4) {
            self.made += 1;
            let path = self.dir.path().join(format!("{}.sst", self.made));
            let file = self.file();
            file.write(&path).expect("a file");
            file.apply(&mut self.model);
            paths.push(path);
        }
        self.db
            .ingest(&self.db.default_family_handle(), &paths, &options)
            .expect("is taken in");
        for path in paths {
            assert_eq!(path.exists(), !options.move_files);
            let _ = std::fs::remove_file(path);
        }
    }

    fn check(&self) {
        let family = self.db.default_family_handle();
        assert_eq!(contents(&self.db, &family, None), self.model);
        for (snapshot, model) in &self.snapshots {
            assert_eq!(&contents(&self.db, &family, Some(snapshot)), model);
        }
    }

    fn reopen(&mut self, crash: bool) {
        self.snapshots.clear();
        if crash {
            // What a kill leaves: a copy of the directory while the database is open.
            let copy = self.dir.path().join("copy");
            self.db.pause_background_work().expect("pauses");
            common::copy_dir(&Env::posix(), &self.dir.path().join("db"), &copy);
            self.db.close().expect("closes");
            std::fs::remove_dir_all(self.dir.path().join("db")).expect("removed");
            std::fs::rename(&copy, self.dir.path().join("db")).expect("renamed");
        } else {
            self.db.close().expect("closes");
        }
        self.db = open(self.dir.path());
    }
}

#[test]
fn random_files_are_seen_as_the_model_says() {
    let first = number("ESKER_INGEST_SEED", 1);
    for seed in first..first + number("ESKER_INGEST_RUNS", 6) {
        println!("seed {seed} (ESKER_INGEST_SEED)");
        let dir = tempfile::tempdir().expect("a directory");
        let db = open(dir.path());
        let mut run = Run {
            rng: Rng::new(seed),
            dir,
            db,
            model: Model::new(),
            snapshots: Vec::new(),
            made: 0,
        };
        for _ in 0..number("ESKER_INGEST_STEPS", 60) {
            match run.rng.below(12) {
                0 => run.db.flush().expect("flushes"),
                1 if run.rng.one_in(2) => run.db.compact_range(None, None).expect("compacts"),
                1 | 2 => {
                    let snapshot = run.db.snapshot();
                    run.snapshots.push((snapshot, run.model.clone()));
                }
                3 if !run.snapshots.is_empty() => drop(run.snapshots.remove(0)),
                4 if run.rng.one_in(3) => {
                    let crash = run.rng.one_in(2);
                    run.reopen(crash);
                }
                5..8 => run.ingest(),
                _ => run.write(),
            }
            run.check();
        }
        run.reopen(false);
        run.check();
        run.db.verify_checksums().expect("whole");
        run.db.compact_range(None, None).expect("compacts");
        run.check();
    }
}
