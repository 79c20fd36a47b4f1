//! Esker and a RocksDB library take turns on a database with several `db_paths`: `ESKER_REF_LIB`
//! names the library.
//!
//! Both must find the tables where the other put them, and put their own where the other would.

mod rocksdb_tools;

use esker::options::{CompressionType, DbPath};
use esker::{Db, FamilyDescriptor, Options, WriteBatch};
use rocksdb_tools::library::{Library, Theirs};
use rocksdb_tools::{Content, Contents, same, say, with_suffix};
use std::path::{Path, PathBuf};

struct Home {
    root: tempfile::TempDir,
    targets: Vec<u64>,
}

impl Home {
    fn db(&self) -> PathBuf {
        self.root.path().join("db")
    }

    fn paths(&self) -> Vec<(PathBuf, u64)> {
        let all = self.targets.iter().enumerate();
        all.map(|(n, t)| (self.root.path().join(format!("path{n}")), *t))
            .collect()
    }

    fn ours(&self, style: &str) -> Db {
        let mut options = Options::new()
            .create_if_missing(true)
            .set("compaction_style", style)
            .expect("a style");
        options.db.db_paths = self
            .paths()
            .into_iter()
            .map(|(p, t)| DbPath::new(p, t))
            .collect();
        let o = &mut options.family;
        o.write_buffer_size = 64 << 10;
        o.target_file_size_base = 64 << 10;
        o.max_bytes_for_level_base = 256 << 10;
        o.max_bytes_for_level_multiplier = 4.0;
        o.level0_file_num_compaction_trigger = 2;
        o.level_compaction_dynamic_level_bytes = false;
        o.compression = CompressionType::None;
        let family = FamilyDescriptor::new("default", options.family.clone());
        Db::open_families(self.db(), options, vec![family]).expect("it opens")
    }

    fn theirs<'l>(&self, library: &'l Library, what: &str) -> Theirs<'l> {
        let paths = self.paths();
        let paths: Vec<_> = paths.iter().map(|(p, t)| (&**p, *t)).collect();
        library.open_with_paths(&self.db(), &paths, what)
    }

    /// Waits until background compactions have put tables into another path than the first.
    fn wait_for_others(&self, what: &str) {
        for _ in 0..600 {
            if self.counts()[1..].iter().any(|n| *n > 0) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("{what}: all tables are in the first path");
    }

    /// How many tables each path has.
    fn counts(&self) -> Vec<usize> {
        let count = |p: &Path| with_suffix(p, ".sst").len();
        self.paths().iter().map(|(p, _)| count(p)).collect()
    }
}

/// Some thousand entries; those of one round differ from those of another.
fn batches(round: u64, model: &mut Content) -> Vec<WriteBatch> {
    let mut out = Vec::new();
    for n in 0..40u64 {
        let mut batch = WriteBatch::new();
        for i in 0..100u64 {
            let key = format!("{:08}", (n * 7919 + i * 104_729 + round * 31) % 30_000);
            let value = format!("{round}-{n}-{i}-").repeat(40);
            batch
                .put(key.as_bytes(), value.as_bytes())
                .expect("it fits");
            model.insert(key.into_bytes(), value.into_bytes());
        }
        out.push(batch);
    }
    out
}

fn read(db: &Db) -> Content {
    let mut out = Content::new();
    let mut it = db.iter();
    it.seek_to_first();
    while it.valid() {
        out.insert(it.key().to_vec(), it.value().to_vec());
        it.next();
    }
    it.status().expect("a sound database");
    out
}

#[test]
fn both_find_the_tables_of_each_other() {
    let Ok(path) = std::env::var("ESKER_REF_LIB") else {
        say(format_args!(
            "compat: skipped, ESKER_REF_LIB names no librocksdb.so"
        ));
        return;
    };
    let library = Library::load(&path);
    for style in ["kCompactionStyleLevel", "kCompactionStyleUniversal"] {
        let home = Home {
            root: tempfile::tempdir().expect("a directory"),
            targets: vec![300 << 10, 1200 << 10, 0],
        };
        let mut model = Content::new();
        home.ours(style).close().expect("a clean end");
        for round in 0..4 {
            let what = format!("{style}, round {round}");
            if round % 2 == 0 {
                let db = home.theirs(&library, &what);
                for batch in batches(round, &mut model) {
                    db.write(batch.data());
                }
                // A manual compaction writes to the first path, as it is told.
                db.settle(round == 2);
                if round == 0 {
                    home.wait_for_others(&what);
                }
                let found: Contents = db.read_all();
                same(&what, &found["default"], &model);
            } else {
                let db = home.ours(style);
                same(&format!("{what}, before"), &read(&db), &model);
                for mut batch in batches(round, &mut model) {
                    db.write(&mut batch).expect("a write");
                }
                db.flush().expect("a flush");
                db.wait_for_compaction().expect("it ends");
                db.verify_checksums().expect("all tables are read");
                same(&what, &read(&db), &model);
                if round == 3 {
                    db.compact_range(None, None).expect("a compaction");
                }
                db.close().expect("a clean end");
            }
            say(format_args!("{what}: tables by path {:?}", home.counts()));
            assert_eq!(with_suffix(&home.db(), ".sst").len(), 0, "{what}");
            if round < 2 {
                assert!(home.counts()[1..].iter().any(|n| *n > 0), "{what}");
            }
        }
        let what = format!("{style}, at the end");
        let found = home.theirs(&library, &what).read_all();
        same(&what, &found["default"], &model);
    }
}
