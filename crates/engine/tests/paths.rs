//! Databases whose tables lie in several directories: `db_paths` and `cf_paths`.
//!
//! Tables go to the path that the level or the run fits into, and everything that names a table's
//! file finds it there: reopening, also after a kill, checkpoints, exports, verification, repair,
//! destruction.

mod common;

use common::{Rng, copy_dir};
use esker::load_latest_options;
use esker::options::{BottommostLevelCompaction, CompactionStyle, DbPath, LoadRules};
use esker::{
    CompactFilesOptions, CompactRangeOptions, Db, Env, FamilyDescriptor, IngestOptions, Options,
    RepairMode, SstFileWriter,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A home with a database's directory and those of its paths.
struct Home {
    root: tempfile::TempDir,
    /// Bytes that each path should hold.
    targets: Vec<u64>,
}

impl Home {
    fn new(targets: &[u64]) -> Self {
        Home {
            root: tempfile::tempdir().expect("a directory"),
            targets: targets.to_vec(),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn db(&self) -> PathBuf {
        self.at("db")
    }

    fn path(&self, n: usize) -> PathBuf {
        self.at(&format!("path{n}"))
    }

    fn paths(&self) -> Vec<DbPath> {
        let all = self.targets.iter().enumerate();
        all.map(|(n, t)| DbPath::new(self.path(n), *t)).collect()
    }

    fn options(&self) -> Options {
        let mut o = Options::new().create_if_missing(true);
        o.db.db_paths = self.paths();
        o.family.write_buffer_size = 64 << 10;
        o.family.target_file_size_base = 64 << 10;
        o.family.max_bytes_for_level_base = 256 << 10;
        o.family.max_bytes_for_level_multiplier = 4.0;
        o.family.level0_file_num_compaction_trigger = 2;
        o.family.level_compaction_dynamic_level_bytes = false;
        o.family.compression = esker::options::CompressionType::None;
        o
    }

    fn open(&self) -> Db {
        Db::open(self.db(), self.options()).expect("the database opens")
    }

    /// The tables in each path, with those in the database's directory first.
    fn tables(&self) -> Vec<BTreeSet<String>> {
        let paths = (0..self.targets.len()).map(|n| self.path(n));
        [self.db()]
            .into_iter()
            .chain(paths)
            .map(|p| tables_in(&p))
            .collect()
    }
}

fn tables_in(dir: &Path) -> BTreeSet<String> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return BTreeSet::new();
    };
    let names = entries.map(|e| e.expect("an entry").file_name().into_string());
    let names = names.map(|n| n.expect("names are text"));
    names.filter(|n| n.ends_with(".sst")).collect()
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Writes `count` random keys, each with a value of some hundred bytes.
fn fill(db: &Db, model: &mut Model, seed: u64, count: usize) {
    let mut rng = Rng::new(seed);
    for _ in 0..count {
        let key = format!("{:08}", rng.below(20_000)).into_bytes();
        let value = format!("{seed}-{}", rng.next()).repeat(1 + rng.below(20) as usize);
        db.put(&key, &value).expect("a write");
        model.insert(key, value.into_bytes());
    }
}

fn check(db: &Db, model: &Model) {
    let mut found = Model::new();
    let mut it = db.iter();
    it.seek_to_first();
    while it.valid() {
        found.insert(it.key().to_vec(), it.value().to_vec());
        it.next();
    }
    it.status().expect("a sound database");
    assert_eq!(found.len(), model.len());
    assert!(found == *model, "the contents differ");
}

/// The live tables by directory.
fn live(db: &Db) -> BTreeMap<PathBuf, BTreeSet<String>> {
    let mut live: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for file in db.live_files_metadata() {
        live.entry(file.directory).or_default().insert(file.name);
    }
    live
}

/// The directories of the live tables.
fn dirs(db: &Db) -> Vec<PathBuf> {
    live(db).into_keys().collect()
}

/// Every live table lies where its metadata says. Others may wait for their deletion.
fn check_places(db: &Db) {
    for (dir, names) in live(db) {
        let there = tables_in(&dir);
        assert!(
            names.is_subset(&there),
            "{names:?} are not all in {there:?}"
        );
    }
}

/// Once it is opened, nothing but the live tables lies in the paths.
fn check_files(home: &Home, mut options: Options) {
    options.family.disable_auto_compactions = true;
    let db = Db::open(home.db(), options).expect("the database opens");
    let mut live = live(&db);
    for n in 0..home.targets.len() {
        let path = home.path(n);
        let wanted = live.remove(&path).unwrap_or_default();
        assert_eq!(tables_in(&path), wanted, "path {n}");
    }
    assert!(live.is_empty(), "{live:?}");
    assert_eq!(tables_in(&home.db()), BTreeSet::new());
}

#[test]
fn levels_go_to_the_paths_that_they_fit_into() {
    // Level 0 and 1 fit into the first, level 2 into the second.
    let home = Home::new(&[512 << 10, 1 << 20, 0]);
    let mut model = Model::new();
    let db = home.open();
    fill(&db, &mut model, 1, 200);
    db.flush().expect("a flush");
    assert_eq!(home.tables()[1].len(), 1, "a flush goes to the first path");
    for seed in 2..8 {
        fill(&db, &mut model, seed, 5_000);
    }
    db.flush().expect("a flush");
    db.wait_for_compaction().expect("it ends");
    check(&db, &model);
    check_places(&db);
    for file in db.live_files_metadata() {
        let wanted = match file.level {
            0 | 1 => 0,
            2 => 1,
            _ => 2,
        };
        assert_eq!(file.directory, home.path(wanted), "level {}", file.level);
    }
    assert!(home.tables()[1..].iter().all(|t| !t.is_empty()));
    db.verify_checksums().expect("all tables are read");
    db.close().expect("a clean end");
    check_files(&home, home.options());
    let log = std::fs::read_to_string(home.db().join("LOG")).expect("a LOG");
    for n in 0..3 {
        let line = format!("SST files in {} dir", home.path(n).display());
        assert!(log.contains(&line), "{log}");
    }

    let db = home.open();
    check(&db, &model);
    fill(&db, &mut model, 9, 5_000);
    db.close().expect("a clean end");
    let db = Db::open_read_only(home.db(), home.options()).expect("it opens for reading");
    check(&db, &model);
    let second = Db::open_secondary(home.db(), home.at("second"), home.options());
    check(&second.expect("it can be followed"), &model);
}

#[test]
fn runs_go_to_the_path_that_their_size_needs() {
    let home = Home::new(&[400 << 10, 100 << 20]);
    let mut options = home.options();
    options.family.compaction_style = CompactionStyle::Universal;
    let db = Db::open(home.db(), options.clone()).expect("a database");
    let mut model = Model::new();
    for seed in 1..6 {
        fill(&db, &mut model, seed, 4_000);
    }
    db.flush().expect("a flush");
    db.wait_for_compaction().expect("it ends");
    check(&db, &model);
    check_places(&db);
    assert!(
        !home.tables()[2].is_empty(),
        "large runs leave the first path"
    );
    db.close().expect("a clean end");
    check_files(&home, options.clone());
    check(&Db::open(home.db(), options).expect("it opens"), &model);
}

#[test]
fn what_a_kill_leaves_opens() {
    let home = Home::new(&[300 << 10, 10 << 20]);
    let db = home.open();
    let mut model = Model::new();
    for seed in 0..12 {
        fill(&db, &mut model, seed, 1_500);
        if seed % 3 != 2 {
            continue;
        }
        // While jobs run: tables that no MANIFEST lists yet are among the files.
        let env = Env::posix();
        let copy = Home::new(&home.targets);
        db.disable_file_deletions();
        copy_dir(&env, &home.db(), &copy.db());
        for n in 0..home.targets.len() {
            copy_dir(&env, &home.path(n), &copy.path(n));
        }
        db.enable_file_deletions(true);
        // A table that was begun and is nobody's.
        std::fs::write(copy.path(1).join("000003.sst"), b"torn").expect("a file");
        std::fs::write(copy.path(1).join("notes.txt"), b"mine").expect("a file");
        let again = copy.open();
        check(&again, &model);
        again.wait_for_compaction().expect("it ends");
        check(&again, &model);
        again.close().expect("a clean end");
        check_files(&copy, copy.options());
        assert!(copy.path(1).join("notes.txt").exists());
    }
}

#[test]
fn a_manual_compaction_goes_where_it_is_told() {
    let home = Home::new(&[100 << 20, 100 << 20, 0]);
    let db = home.open();
    let mut model = Model::new();
    fill(&db, &mut model, 1, 3_000);
    let family = db.default_family_handle();
    // Automatic ones go by the paths' sizes, also while a manual one runs.
    db.set_options(&family, &[("disable_auto_compactions", "true")])
        .expect("options");
    db.wait_for_compaction().expect("they end");
    let mut options = CompactRangeOptions::default();
    options.target_path_id = 2;
    // What an automatic compaction has brought to the last level already is moved as well.
    options.bottommost_level_compaction = BottommostLevelCompaction::Force;
    db.compact_range_opt(&family, None, None, &options)
        .expect("a compaction");
    assert_eq!(dirs(&db), [home.path(2)]);
    check_places(&db);
    // Across paths nothing is only moved.
    options.target_path_id = 1;
    db.compact_range_opt(&family, None, None, &options)
        .expect("a compaction");
    assert_eq!(dirs(&db), [home.path(1)]);
    options.target_path_id = 3;
    let e = db.compact_range_opt(&family, None, None, &options);
    assert!(e.expect_err("no such path").to_string().contains("path ID"));

    let names: Vec<_> = db
        .live_files_metadata()
        .into_iter()
        .map(|f| f.name)
        .collect();
    let mut how = CompactFilesOptions::default();
    how.output_path_id = 2;
    let done = db
        .compact_files_opt(&family, &names, 6, &how)
        .expect("a compaction");
    let made = &done.paths[&done.output_files[0]];
    assert_eq!(made.parent(), Some(&*home.path(2)));
    check_places(&db);
    check(&db, &model);
    db.close().expect("a clean end");
    check_files(&home, home.options());
}

#[test]
fn a_family_may_have_paths_of_its_own() {
    let home = Home::new(&[0, 0]);
    let own = vec![
        DbPath::new(home.at("own0"), 0),
        DbPath::new(home.at("own1"), 0),
    ];
    let mut options = home.options();
    options.db.create_missing_column_families = true;
    let families = || {
        let mut other = home.options().family;
        other.cf_paths = own.clone();
        vec![
            FamilyDescriptor::new("default", home.options().family),
            FamilyDescriptor::new("other", other),
        ]
    };
    let db = Db::open_families(home.db(), options.clone(), families()).expect("a database");
    let other = db.family("other").expect("it was made");
    db.put("key", "value").expect("a write");
    db.put_cf(&other, "key", "other").expect("a write");
    db.flush().expect("a flush");
    assert_eq!(dirs(&db), [home.at("own0"), home.path(0)]);

    let mut made = home.options().family;
    made.cf_paths = vec![DbPath::new(home.at("made"), 0)];
    let third = db.create_family("third", made).expect("a family");
    db.put_cf(&third, "key", "third").expect("a write");
    db.flush().expect("a flush");
    assert_eq!(tables_in(&home.at("made")).len(), 1);
    db.drop_family(&third).expect("it is dropped");
    drop(third);
    db.put("key", "value").expect("a write");
    db.flush().expect("a flush");
    assert_eq!(
        tables_in(&home.at("made")).len(),
        0,
        "its tables go with it"
    );
    drop(other);
    db.close().expect("a clean end");

    // The OPTIONS file knows the paths.
    let loaded = load_latest_options(home.db(), &Env::posix(), LoadRules::default());
    let loaded = loaded.expect("an OPTIONS file");
    assert_eq!(loaded.db.db_paths, home.paths());
    assert!(loaded.families[0].1.cf_paths.is_empty());
    assert_eq!(loaded.families[1].1.cf_paths, own);

    let db = Db::open_families(home.db(), options.clone(), families()).expect("it opens");
    let other = db.family("other").expect("it is there");
    assert_eq!(
        db.get_cf(&other, "key").expect("a read").as_deref(),
        Some(&b"other"[..])
    );
    drop(other);
    db.close().expect("a clean end");
    let report = Db::destroy_families(home.db(), &options, &families()).expect("it is destroyed");
    assert!(report.directory_removed);
    for gone in [home.path(0), home.path(1), home.at("own0"), home.at("own1")] {
        assert!(!gone.exists(), "{}", gone.display());
    }
}

#[test]
fn copies_have_all_tables_in_one_directory() {
    let home = Home::new(&[300 << 10, 100 << 20]);
    let db = home.open();
    let mut model = Model::new();
    for seed in 1..5 {
        fill(&db, &mut model, seed, 3_000);
    }
    db.wait_for_compaction().expect("it ends");
    assert!(!home.tables()[2].is_empty());
    db.checkpoint(home.at("open")).expect("a checkpoint");
    let family = db.default_family_handle();
    let exported = db
        .export_family(&family, home.at("export"))
        .expect("an export");
    db.close().expect("a clean end");
    Db::checkpoint_closed(home.db(), home.at("closed"), &Options::new()).expect("a checkpoint");

    let mut plain = home.options();
    plain.db.db_paths.clear();
    for copy in ["open", "closed"] {
        // With the paths of the original the copy would use the original's files.
        let e = Db::open(home.at(copy), home.options()).expect_err("the paths are another's");
        assert!(e.to_string().contains("checkpoint"), "{e}");
        let loaded = load_latest_options(home.at(copy), &Env::posix(), LoadRules::default());
        assert!(loaded.expect("options").db.db_paths.is_empty());
        let db = Db::open(home.at(copy), plain.clone()).expect("it opens");
        check(&db, &model);
        db.compact_range(None, None).expect("a compaction");
        check(&db, &model);
        db.close().expect("a clean end");
    }
    let db = home.open();
    check(&db, &model);
    let mut imported = home.options().family;
    imported.cf_paths = vec![DbPath::new(home.at("imported"), 0)];
    let family = db
        .import_family("imported", imported, &Default::default(), &[exported])
        .expect("an import");
    assert!(!tables_in(&home.at("imported")).is_empty());
    let some = model.iter().next().expect("keys");
    assert_eq!(
        db.get_cf(&family, some.0).expect("a read").as_ref(),
        Some(some.1)
    );
}

#[test]
fn files_from_outside_go_to_the_first_path() {
    let home = Home::new(&[100 << 20, 0]);
    let db = home.open();
    let file = home.at("outside.sst");
    let mut writer = SstFileWriter::new(&home.options()).expect("a writer");
    writer.open(&file).expect("a file");
    writer.put("key", "value").expect("an entry");
    writer.finish().expect("a table");
    let family = db.default_family_handle();
    db.ingest(&family, &[&file], &IngestOptions::default())
        .expect("it is taken in");
    assert_eq!(home.tables()[1].len(), 1);
    check_places(&db);
    assert_eq!(
        db.get("key").expect("a read").as_deref(),
        Some(&b"value"[..])
    );
}

#[test]
fn paths_that_are_missing_in_the_options_are_named() {
    let home = Home::new(&[0, 0]);
    let db = home.open();
    db.put("key", "value").expect("a write");
    db.compact_range(None, None).expect("a compaction");
    let mut options = CompactRangeOptions::default();
    options.target_path_id = 1;
    options.bottommost_level_compaction = BottommostLevelCompaction::Force;
    let family = db.default_family_handle();
    db.compact_range_opt(&family, None, None, &options)
        .expect("a compaction");
    db.close().expect("a clean end");
    let before = home.tables();
    assert_eq!(before[2].len(), 1);

    for max_open_files in [-1, 100] {
        let mut one = home.options();
        one.db.max_open_files = max_open_files;
        one.db.db_paths.truncate(1);
        let e = Db::open(home.db(), one).expect_err("the table is in the second path");
        let said = format!("{e} {e:?}");
        assert!(said.contains("path 1") && said.contains("name 1"), "{said}");
        assert_eq!(home.tables(), before, "nothing is deleted");
    }
    // As with RocksDB the last path stands for those that are not given.
    let mut last = home.options();
    last.db.db_paths.remove(0);
    let db = Db::open(home.db(), last).expect("the table is in the last path");
    assert_eq!(
        db.get("key").expect("a read").as_deref(),
        Some(&b"value"[..])
    );
    db.close().expect("a clean end");

    // A path that cannot be made.
    std::fs::write(home.at("file"), b"").expect("a file");
    let mut bad = home.options();
    bad.db
        .db_paths
        .push(DbPath::new(home.at("file").join("x"), 0));
    let e = Db::open(home.db(), bad).expect_err("no directory can be made there");
    let said = format!("{e} {e:?}");
    assert!(said.contains("db_paths") && said.contains("file"), "{said}");
    assert_eq!(home.tables(), before);
}

#[test]
fn what_lies_in_a_path_is_not_taken_for_a_new_databases_own() {
    let home = Home::new(&[0, 0]);
    let db = home.open();
    db.put("key", "value").expect("a write");
    db.flush().expect("a flush");
    db.close().expect("a clean end");
    let e = Db::open(home.at("new"), home.options()).expect_err("the paths hold tables");
    assert!(e.to_string().contains("another"), "{e}");
    assert!(!home.at("new").join("CURRENT").exists());
    // The directory of another database as a path: what is there stays.
    let mut options = Options::new().create_if_missing(true);
    options.db.db_paths = vec![DbPath::new(home.at("other"), 0), DbPath::new(home.db(), 0)];
    let db = Db::open(home.at("other"), options.clone()).expect("a database");
    for _ in 0..3 {
        db.put("key", "value").expect("a write");
        db.flush().expect("a flush");
    }
    db.close().expect("a clean end");
    std::fs::write(home.db().join("000004.sst"), b"mine").expect("a file");
    Db::open(home.at("other"), options.clone()).expect("it opens");
    Db::destroy(home.at("other"), &options).expect("it is destroyed");
    assert!(home.db().join("000004.sst").exists());
    std::fs::remove_file(home.db().join("000004.sst")).expect("it is there");
    assert_eq!(
        home.open().get("key").expect("a read").as_deref(),
        Some(&b"value"[..])
    );
}

#[test]
fn options_that_cannot_be_are_refused() {
    let home = Home::new(&[0, 0, 0, 0, 0]);
    let e = Db::open(home.db(), home.options()).expect_err("five paths");
    assert!(e.to_string().contains("More than four"), "{e}");
    for style in [CompactionStyle::Fifo, CompactionStyle::None] {
        let home = Home::new(&[0, 0]);
        let mut options = home.options();
        options.family.compaction_style = style;
        Db::open(home.db(), options.clone()).expect_err("one path only");
        options.db.db_paths.truncate(1);
        Db::open(home.db(), options).expect("one path");
    }
}

#[test]
fn destruction_leaves_what_is_not_the_databases() {
    let home = Home::new(&[0, 0]);
    let db = home.open();
    db.put("key", "value").expect("a write");
    db.flush().expect("a flush");
    db.close().expect("a clean end");
    std::fs::write(home.path(0).join("notes.txt"), b"mine").expect("a file");
    let would = Db::destroy_dry_run(home.db(), &home.options()).expect("a look");
    let did = Db::destroy(home.db(), &home.options()).expect("it is destroyed");
    assert_eq!(would.files, did.files);
    assert!(!home.db().exists() && !home.path(1).exists());
    assert!(home.path(0).join("notes.txt").exists());
    assert_eq!(home.tables()[1].len(), 0);
}

#[test]
fn a_repair_finds_tables_in_all_paths() {
    for lost in ["CURRENT", "MANIFEST"] {
        let home = Home::new(&[300 << 10, 100 << 20]);
        let db = home.open();
        let mut model = Model::new();
        for seed in 1..5 {
            fill(&db, &mut model, seed, 3_000);
        }
        db.flush().expect("a flush");
        db.wait_for_compaction().expect("it ends");
        assert!(!home.tables()[2].is_empty());
        db.close().expect("a clean end");
        let sound = Db::repair(home.db(), &home.options()).expect("a look");
        assert!(sound.is_sound, "{sound:?}");
        for entry in std::fs::read_dir(home.db()).expect("it is there") {
            let path = entry.expect("an entry").path();
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            if name.starts_with(lost) {
                std::fs::remove_file(path).expect("a file");
            }
        }
        // Without the paths all tables would be missed.
        let mut plain = home.options();
        plain.db.db_paths.clear();
        let e = Db::repair(home.db(), &plain).expect_err("the paths are missing");
        assert!(format!("{e} {e:?}").contains("paths"), "{e}");
        // Tables may change their path before a repair.
        let moved = home.tables()[2].first().cloned().expect("tables");
        let (from, to) = (home.path(1).join(&moved), home.path(0).join(&moved));
        std::fs::rename(from, to).expect("a move");
        let dry = Db::repair_families(home.db(), &home.options(), &[], RepairMode::DryRun);
        assert!(!dry.expect("a look").is_sound);
        let report = Db::repair(home.db(), &home.options()).expect("a repair");
        assert!(report.tables > 0, "{report:?}");
        let db = home.open();
        check(&db, &model);
        db.close().expect("a clean end");
        check_files(&home, home.options());
    }
}

/// Moves a file elsewhere and leaves a symbolic link in its place.
fn move_behind_a_link(file: &Path, to: &Path) {
    std::fs::rename(file, to).expect("move");
    std::os::unix::fs::symlink(to, file).expect("link");
}

#[test]
fn tables_and_logs_behind_symbolic_links_are_files_to_every_part() {
    let home = Home::new(&[]);
    let options = || Options::new().create_if_missing(true);
    let db = Db::open(home.db(), options()).expect("open");
    db.put("a", "in a table").expect("put");
    db.flush().expect("flush");
    db.put("b", "in a log").expect("put");
    let table = home.db().join(&db.live_files_metadata()[0].name);
    db.close().expect("close");
    move_behind_a_link(&table, &home.at("table"));
    let names = std::fs::read_dir(home.db()).expect("list");
    let log = names.map(|e| e.expect("an entry").path());
    let log = log
        .filter(|p| p.extension().is_some_and(|e| e == "log"))
        .max();
    move_behind_a_link(&log.expect("a log"), &home.at("log"));

    assert!(Db::repair(home.db(), &options()).expect("repair").is_sound);
    std::fs::remove_file(home.db().join("CURRENT")).expect("it is there");
    let report = Db::repair(home.db(), &options()).expect("repair");
    assert_eq!(
        (report.losses.as_slice(), report.missing.len()),
        (&[][..], 0)
    );
    let db = Db::open(home.db(), options()).expect("open");
    db.checkpoint(home.at("checkpoint")).expect("checkpoint");
    let copy = Db::open(home.at("checkpoint"), options()).expect("open");
    for db in [&db, &copy] {
        assert_eq!(
            db.get("a").expect("get").as_deref(),
            Some(&b"in a table"[..])
        );
        assert_eq!(db.get("b").expect("get").as_deref(), Some(&b"in a log"[..]));
    }
    db.close().expect("close");
    Db::destroy(home.db(), &options()).expect("destroy");
    let left = std::fs::read_dir(home.db()).map_or(0, |names| {
        let names = names.map(|e| e.expect("an entry").path());
        names
            .filter(|p| p.extension().is_some_and(|e| e == "sst"))
            .count()
    });
    assert_eq!(left, 0, "links to tables");
    assert!(
        home.at("table").exists(),
        "what a link leads to is not ours"
    );
}
