//! Opening on a disk whose calls fail: as long as CURRENT is what it was, so is every other byte;
//! and when the disk is well again the database opens with all that it had.

mod common;

use common::{DB, disk, env};
use esker::merge_operator::StringAppend;
use esker::{Db, FamilyDescriptor, FamilyOptions, Options, WriteOptions};
use esker_env::FileSystem;
use esker_sim::disk::{Image, SimFs};
use esker_sim::fault::{Call, Failure, FaultSpec, Span};
use esker_sim::model::settings::silent;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Directories that the options name, which the first open has to make.
const FAST: &str = "/fast/tables";

fn options(disk: &SimFs) -> Options {
    let mut options = Options::new().create_if_missing(true).env(env(disk));
    options.db.create_missing_column_families = true;
    options.db.info_log = Some(silent());
    options.family.merge_operator = Some(Arc::new(StringAppend::new(b",")));
    options
}

fn families(disk: &SimFs, names: &[&str]) -> Vec<FamilyDescriptor> {
    let mut family: FamilyOptions = options(disk).family;
    let named = names.iter().map(|name| {
        if *name == "paths" {
            family.cf_paths = vec![esker::DbPath::new(FAST, 1 << 20)];
        }
        FamilyDescriptor::new(*name, family.clone())
    });
    named.collect()
}

/// Opens with families of which some have to be made.
fn open(disk: &SimFs) -> esker::Result<Db> {
    let wanted = families(disk, &["default", "old", "new", "paths"]);
    Db::open_families(DB, options(disk), wanted)
}

/// A disk with a database whose log holds what two families were given since their last flush.
fn with_log() -> Image {
    let disk = disk();
    let db = Db::open_families(DB, options(&disk), families(&disk, &["default", "old"]));
    let db = db.expect("opens");
    let old = db.family("old").expect("is there");
    db.put("in a table", "1").expect("writes");
    db.flush().expect("flushes");
    let mut batch = esker::WriteBatch::new();
    batch.merge(b"in the log", b"2").expect("fits");
    batch.put_cf(&old, b"there too", b"3").expect("fits");
    db.write_opt(&mut batch, &WriteOptions::synced())
        .expect("writes");
    let after = disk.kill();
    drop(db);
    after.image()
}

/// Files and directories.
fn everything(disk: &SimFs) -> (Vec<(String, Vec<u8>)>, BTreeSet<String>) {
    let files = disk.image().list().into_iter();
    let files = files.map(|(path, bytes)| (path, bytes.to_vec())).collect();
    let mut dirs = BTreeSet::new();
    let mut open = vec!["/".to_owned()];
    while let Some(dir) = open.pop() {
        for entry in disk.read_dir(Path::new(&dir)).expect("reads") {
            if !entry.is_file {
                open.push(Path::new(&dir).join(&entry.name).display().to_string());
            }
        }
        dirs.insert(dir);
    }
    (files, dirs)
}

fn current(disk: &SimFs) -> Option<Vec<u8>> {
    disk.read_all(&Path::new(DB).join("CURRENT"), 100).ok()
}

/// Checks that a database shows what `with_log` wrote, or nothing when it began as nothing.
fn check(db: &Db, had_data: bool) {
    let get = |family: &str, key: &str| {
        let family = db.family(family).expect("is there");
        db.get_cf(&family, key).expect("reads")
    };
    let wanted = |value: &str| had_data.then(|| value.as_bytes().to_vec());
    assert_eq!(get("default", "in a table"), wanted("1"));
    assert_eq!(get("default", "in the log"), wanted("2"));
    assert_eq!(get("old", "there too"), wanted("3"));
}

/// Fails the n-th call of a kind during an open of `image`, for every n. How many opens failed with
/// the old state, and how many with the new one.
fn fail_each(image: &Image, call: Option<Call>, failure: Failure) -> (usize, usize) {
    let had_data = image.list().contains_key("/db/CURRENT");
    let (mut old, mut new) = (0, 0);
    for nth in 1.. {
        let plan = FaultSpec {
            call,
            class: None,
            nth,
            failure,
            span: Span::Once,
        };
        let disk = SimFs::from_image(image.clone()).without_log();
        let before = (everything(&disk), current(&disk));
        disk.inject(&plan);
        let opened = open(&disk);
        if disk.failed_calls() == 0 {
            let opened = opened.expect("nothing failed");
            if call.is_none() {
                // A call that reads would fail now.
                check(&opened, had_data);
            }
            break;
        }
        disk.heal();
        let Err(error) = opened else {
            // It can be done without, and the state is there.
            check(&opened.expect("opened"), had_data);
            continue;
        };
        if current(&disk) == before.1 {
            let now = everything(&disk);
            let names = |all: &(Vec<(String, Vec<u8>)>, _)| {
                all.0
                    .iter()
                    .map(|(name, _)| name.clone())
                    .collect::<Vec<_>>()
            };
            assert_eq!(now.1, before.0.1, "{plan}: {error}");
            assert_eq!(names(&now), names(&before.0), "{plan}: {error}");
            assert!(now == before.0, "{plan}: bytes have changed: {error}");
            old += 1;
        } else {
            new += 1;
        }
        let again = open(&disk).unwrap_or_else(|e| panic!("{plan}: {error}; then {e}"));
        check(&again, had_data);
        again.close().expect("closes");
    }
    (old, new)
}

const EIO: Failure = Failure::Errno(5);

#[test]
fn a_failed_call_leaves_the_old_state_byte_for_byte_or_the_new_one_whole() {
    let image = with_log();
    let (old, new) = fail_each(&image, None, EIO);
    println!("{old} opens failed with the old state, {new} with the new one");
    assert!(old >= 20 && new >= 3, "{old} {new}");
    let (full, _) = fail_each(&image, None, Failure::Short(28));
    assert!(full >= 20, "{full}");
    for call in [
        Call::OpenRead,
        Call::Read,
        Call::ReadAll,
        Call::ReadDir,
        Call::Stat,
    ] {
        let (old, _) = fail_each(&image, Some(call), EIO);
        assert!(old > 0, "{call:?}");
    }
}

#[test]
fn a_database_that_could_not_be_made_leaves_nothing() {
    let nothing = SimFs::new().image();
    let (old, new) = fail_each(&nothing, None, EIO);
    println!("{old} creations left nothing, {new} a database");
    // One call is left once CURRENT has its name: the directory is synced.
    assert!(old >= 25 && new == 1, "{old} {new}");
}
