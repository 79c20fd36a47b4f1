//! Families are made and dropped: what that leaves in the directory, in OPTIONS and in the LOG.

use esker::load_latest_options;
use esker::options::LoadRules;
use esker::{Db, Env, FamilyDescriptor, FamilyOptions, Options};
use std::fs;
use std::path::{Path, PathBuf};

fn options_files(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .expect("reads")
        .map(|e| e.expect("reads").path())
        .filter(|p| p.to_string_lossy().contains("/OPTIONS-"))
        .collect();
    found.sort();
    found
}

fn loaded(dir: &Path) -> Vec<(String, u64)> {
    let all = load_latest_options(dir, &Env::posix(), LoadRules::default()).expect("loads");
    let families = all.families.into_iter();
    families
        .map(|(name, options)| (name, options.max_sequential_skip_in_iterations))
        .collect()
}

fn with_skip(value: u64) -> FamilyOptions {
    let mut options = FamilyOptions::default();
    options.max_sequential_skip_in_iterations = value;
    options
}

fn named(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
    pairs.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect()
}

/// A database with the families `a` and `b`, closed.
fn with_two(dir: &Path) {
    let db = Db::open(dir, Options::new().create_if_missing(true)).expect("opens");
    db.create_family("a", with_skip(11)).expect("creates");
    db.create_family("b", with_skip(12)).expect("creates");
    db.close().expect("closes");
}

#[test]
fn two_options_files_stay_whatever_is_changed() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path();
    let db = Db::open(dir, Options::new().create_if_missing(true)).expect("opens");
    for n in 0..8 {
        let family = db.create_family(&format!("f{n}"), FamilyOptions::default());
        let family = family.expect("creates");
        assert!(options_files(dir).len() <= 2, "{:?}", options_files(dir));
        db.set_options(&family, &[("write_buffer_size", "1000000")])
            .expect("sets");
        assert_eq!(options_files(dir).len(), 2);
        db.set_db_options(&[("stats_dump_period_sec", "500")])
            .expect("sets");
        assert_eq!(options_files(dir).len(), 2);
        if n % 2 == 0 {
            db.drop_family(&family).expect("drops");
            assert_eq!(options_files(dir).len(), 2);
        }
    }
    let before = options_files(dir);
    db.disable_file_deletions();
    db.set_db_options(&[("stats_dump_period_sec", "600")])
        .expect("sets");
    assert_eq!(options_files(dir).len(), 3, "who copies files needs them");
    assert!(before.iter().all(|path| path.exists()));
    db.enable_file_deletions(false);
    assert_eq!(options_files(dir).len(), 2);
    db.close().expect("closes");
    let db = Db::open(dir, Options::new()).expect("opens");
    assert_eq!(options_files(dir).len(), 2);
    db.close().expect("closes");
}

#[test]
fn families_to_make_are_in_one_manifest_and_one_options_file() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path();
    let mut options = Options::new().create_if_missing(true);
    options.db.create_missing_column_families = true;
    let names: Vec<String> = (0..40).map(|n| format!("f{n}")).collect();
    let wanted = || {
        let names = names.iter().enumerate();
        let named = names.map(|(n, name)| FamilyDescriptor::new(name, with_skip(n as u64)));
        let default = FamilyDescriptor::new("default", FamilyOptions::default());
        named.chain([default]).collect::<Vec<_>>()
    };
    let db = Db::open_families(dir, options.clone(), wanted()).expect("opens");
    assert_eq!(options_files(dir).len(), 1);
    for (n, name) in names.iter().enumerate() {
        let family = db.family(name).expect("is there");
        assert_eq!(family.id() as usize, n + 1);
        db.put_cf(&family, "k", name).expect("writes");
    }
    let next = db
        .create_family("next", FamilyOptions::default())
        .expect("creates");
    assert_eq!(next.id(), 41);
    db.drop_family(&next).expect("drops");
    let log = fs::read_to_string(dir.join("LOG")).expect("reads");
    assert_eq!(log.matches("Options.write_buffer_size:").count(), 10);
    assert!(log.contains("[f39]"), "{log}");
    db.close().expect("closes");
    let db = Db::open_families(dir, options, wanted()).expect("opens again");
    for name in &names {
        let family = db.family(name).expect("is there");
        let value = db.get_cf(&family, "k").expect("reads");
        assert_eq!(value.as_deref(), Some(name.as_bytes()));
    }
    db.close().expect("closes");
    assert_eq!(loaded(dir).len(), 41);
}

#[test]
fn options_that_lack_a_family_take_it_from_the_file_before() {
    let home = tempfile::tempdir().expect("a directory");
    with_two(home.path());
    let files = options_files(home.path());
    let all = fs::read_to_string(&files[1]).expect("reads");
    // As a program leaves it that dies behind the MANIFEST of a family, or RocksDB.
    let from = all.find("[CFOptions \"b\"]").expect("is there");
    fs::write(&files[1], &all[..from]).expect("writes");
    fs::write(&files[0], &all).expect("writes");
    let wanted = named(&[("default", 8), ("a", 11), ("b", 12)]);
    assert_eq!(loaded(home.path()), wanted);
    fs::remove_file(&files[0]).expect("removes");
    let defaults = named(&[("default", 8), ("a", 11), ("b", 8)]);
    assert_eq!(loaded(home.path()), defaults);
    let all = load_latest_options(home.path(), &Env::posix(), LoadRules::default());
    let all = all.expect("loads");
    assert!(all.remarks.iter().any(|r| r.family.as_deref() == Some("b")));
    let families = all.families.into_iter();
    let families = families.map(|(name, options)| FamilyDescriptor::new(name, options));
    let db = Db::open_families(home.path(), Options::new(), families.collect());
    db.expect("opens").close().expect("closes");
}

#[test]
fn options_with_a_family_that_is_not_there_pass_over_it() {
    let home = tempfile::tempdir().expect("a directory");
    with_two(home.path());
    let files = options_files(home.path());
    let text = fs::read_to_string(&files[1]).expect("reads");
    let more = text.replace("\"b\"]", "\"c\"]");
    let from = more.find("[CFOptions \"c\"]").expect("is there");
    fs::write(&files[1], format!("{text}{}", &more[from..])).expect("writes");
    let wanted = named(&[("default", 8), ("a", 11), ("b", 12)]);
    assert_eq!(loaded(home.path()), wanted);
}

#[test]
fn a_torn_options_file_is_passed_over() {
    let home = tempfile::tempdir().expect("a directory");
    with_two(home.path());
    let files = options_files(home.path());
    let good = fs::read(&files[1]).expect("reads");
    fs::write(&files[0], &good).expect("writes");
    let wanted = named(&[("default", 8), ("a", 11), ("b", 12)]);
    let start = |title: &str| {
        let text = String::from_utf8_lossy(&good);
        text.find(title).unwrap_or_else(|| panic!("no {title}"))
    };
    let cuts = [
        0,
        10,
        start("[DBOptions]") + 30,
        start("[CFOptions \"default\"]") + 40,
        start("[TableOptions/BlockBasedTable \"default\"]") - 1,
        start("[CFOptions \"b\"]") + 100,
        good.len() - 5,
    ];
    for cut in cuts {
        fs::write(&files[1], &good[..cut]).expect("writes");
        assert_eq!(loaded(home.path()), wanted, "cut at {cut}");
    }
    let mut holes = good.clone();
    holes[4000..4096].fill(0);
    fs::write(&files[1], &holes).expect("writes");
    assert_eq!(loaded(home.path()), wanted);
    // Nothing is made up where no file is whole.
    fs::write(&files[0], &holes).expect("writes");
    let error = load_latest_options(home.path(), &Env::posix(), LoadRules::default());
    let error = error.expect_err("no file is whole").to_string();
    assert!(
        error.contains("OPTIONS-") && error.contains("not whole"),
        "{error}"
    );
    // A whole file that says what nobody knows is no torn one.
    let text = String::from_utf8_lossy(&good).replace("  max_open_files=", "  most_open_files=");
    fs::write(&files[0], &good).expect("writes");
    fs::write(&files[1], text).expect("writes");
    let error = load_latest_options(home.path(), &Env::posix(), LoadRules::default());
    let error = error.expect_err("an unknown name").to_string();
    assert!(error.contains("most_open_files"), "{error}");
}
