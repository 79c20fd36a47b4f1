//! Backups made, listed, checked, restored and deleted, on real directories.

mod common;

use common::*;
use esker::{Env, ErrorKind, Options};
use esker_backup::{
    BackupEngineOptions, BackupEngineReadOnly, CreateBackupOptions, ExcludeFiles, Progress,
    RestoreMode, RestoreOptions, ShareFilesNaming,
};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn flushing() -> CreateBackupOptions {
    let mut options = CreateBackupOptions::default();
    options.flush_before_backup = true;
    options
}

fn shared(dir: &Path) -> Vec<String> {
    let all = files(dir).into_iter().map(|p| p.display().to_string());
    all.filter(|p| p.starts_with("shared")).collect()
}

#[test]
fn a_backup_is_incremental_and_says_what_it_is() {
    let home = tempfile::tempdir().expect("a directory");
    let (db_dir, dir) = (home.path().join("db"), home.path().join("backups"));
    let (mut model, mut rng) = (Model::new(), Rng::new(1));
    let still = options().set("disable_auto_compactions", "true");
    let db = esker::Db::open(&db_dir, still.expect("options")).expect("open");
    let backups = engine(&dir);
    change(&db, &mut model, &mut rng, 2_000);
    let first = backups
        .create_new_backup_opt(&db, &flushing(), b"the \x00 first")
        .expect("a backup");
    let before = shared(&dir);
    let written = fs::metadata(dir.join(&before[0])).expect("a file");
    db.put("one more", "entry").expect("written");
    let second = backups
        .create_new_backup_opt(&db, &flushing(), b"")
        .expect("a backup");
    assert_eq!((first, second), (1, 2));
    let after = shared(&dir);
    assert!(before.len() > 2, "{before:?}");
    assert_eq!(
        after.len(),
        before.len() + 1,
        "only the new table was copied"
    );
    let same = fs::metadata(dir.join(&before[0])).expect("a file");
    assert_eq!(
        same.modified().expect("a time"),
        written.modified().expect("a time")
    );

    let infos = backups.get_backup_info();
    assert_eq!(infos.len(), 2);
    assert_eq!(infos[0].app_metadata, b"the \x00 first");
    assert!(infos[0].timestamp > 1_700_000_000);
    assert!(infos[1].sequence_number > infos[0].sequence_number);
    let tables = |n: usize| {
        let names = infos[n].file_details.iter().map(|f| &f.relative_filename);
        let mut names: Vec<_> = names.filter(|n| n.ends_with(".sst")).cloned().collect();
        names.sort();
        names
    };
    assert_eq!(tables(0), before);
    assert_eq!(tables(1), after);
    for info in &infos {
        assert_eq!(info.number_files as usize, info.file_details.len());
        let bytes: u64 = info
            .file_details
            .iter()
            .map(|f| fs::metadata(dir.join(&f.relative_filename)).expect("it is there"))
            .map(|m| m.len())
            .sum();
        assert_eq!(info.size, bytes);
    }
    assert_eq!(
        backups.get_latest_backup_info().expect("the second"),
        infos[1]
    );

    // Another engine sees the same, and changes nothing.
    let listed = files(&dir);
    let reader =
        BackupEngineReadOnly::open(BackupEngineOptions::new(&dir), &Env::posix()).expect("backups");
    assert_eq!(reader.get_backup_info(), infos);
    reader.verify_backup(1, true).expect("whole");
    assert_eq!(files(&dir), listed);
    let mut one = BackupEngineOptions::new(&dir);
    one.max_valid_backups_to_open = 1;
    let reader = BackupEngineReadOnly::open(one, &Env::posix()).expect("backups");
    assert_eq!(reader.get_backup_info(), infos[1..]);
    assert_eq!(
        reader.get_backup_info_of(1).expect_err("not opened").kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn what_is_in_memory_comes_along_as_log() {
    let home = tempfile::tempdir().expect("a directory");
    let (db_dir, dir) = (home.path().join("db"), home.path().join("backups"));
    let db = open_db(&db_dir);
    db.put("key", "value").expect("written");
    let id = engine(&dir).create_new_backup(&db).expect("a backup");
    assert!(shared(&dir).is_empty());
    let mut without = BackupEngineOptions::new(home.path().join("without"));
    without.backup_log_files = false;
    let without = engine_with(without);
    without.create_new_backup(&db).expect("a backup");
    let mut atomic = flushing();
    atomic.atomic_flush = true;
    assert_eq!(
        without
            .create_new_backup_opt(&db, &atomic, b"")
            .expect_err("families would not agree")
            .kind(),
        ErrorKind::NotSupported
    );
    engine(&dir)
        .create_new_backup_opt(&db, &atomic, b"")
        .expect("with the log they do");
    let to = home.path().join("restored");
    let how = RestoreOptions::default();
    engine(&dir)
        .restore_db_from_backup(id, &to, &to, &how)
        .expect("restored");
    let value = open_db(&to).get("key").expect("read");
    assert_eq!(value.as_deref(), Some(&b"value"[..]));
    let to = home.path().join("restored without");
    without
        .restore_db_from_latest_backup(&to, &to, &how)
        .expect("restored");
    assert_eq!(open_db(&to).get("key").expect("read"), None);
    assert!(
        open_db(&to).db_id() == db.db_id(),
        "the MANIFEST has the id of the database"
    );
}

#[test]
fn logs_go_where_they_belong() {
    let home = tempfile::tempdir().expect("a directory");
    let (logs, dir) = (home.path().join("logs"), home.path().join("backups"));
    let at = |path: &Path| {
        let mut options = options();
        options.db.wal_dir = path.display().to_string();
        options
    };
    let db = esker::Db::open(home.path().join("db"), at(&logs)).expect("open");
    db.put("key", "value").expect("written");
    let backups = engine(&dir);
    backups.create_new_backup(&db).expect("a backup");
    let (to, to_logs) = (home.path().join("to"), home.path().join("to logs"));
    backups
        .restore_db_from_latest_backup(&to, &to_logs, &RestoreOptions::default())
        .expect("restored");
    let is_log = |p: &std::path::PathBuf| p.extension().is_some_and(|e| e == "log");
    assert!(!files(&to).iter().any(is_log));
    assert_eq!(files(&to_logs).iter().filter(|p| is_log(p)).count(), 1);
    let restored = esker::Db::open(&to, at(&to_logs)).expect("open");
    assert!(restored.get("key").expect("read").is_some());
}

#[test]
fn names_of_shared_files_follow_the_options() {
    let home = tempfile::tempdir().expect("a directory");
    let db = open_db(&home.path().join("db"));
    db.put("key", "value").expect("written");
    db.flush().expect("flushed");
    let name = |n: &str, set: &dyn Fn(&mut BackupEngineOptions)| {
        let dir = home.path().join(n);
        let mut options = BackupEngineOptions::new(&dir);
        set(&mut options);
        let backups = engine_with(options);
        let id = backups.create_new_backup(&db).expect("a backup");
        backups.verify_backup(id, true).expect("whole");
        let again = backups.create_new_backup(&db).expect("another");
        backups.verify_backup(again, true).expect("whole");
        for id in [id, again] {
            let to = dir.join("restored");
            backups
                .restore_db_from_backup(id, &to, &to, &RestoreOptions::default())
                .expect("restored");
            assert!(open_db(&to).get("key").expect("read").is_some());
        }
        let all = files(&dir).into_iter().map(|p| p.display().to_string());
        let mut tables: Vec<_> = all
            .filter(|p| p.ends_with(".sst") && !p.starts_with("restored"))
            .collect();
        assert_eq!(tables.len(), if n == "own" { 2 } else { 1 }, "{tables:?}");
        tables.remove(0)
    };
    let file = &db.live_files().expect("files")[0];
    let session = esker::read_table_properties(db.env(), &file.path)
        .expect("a table")
        .db_session_id;
    let (stem, size) = (file.name.trim_end_matches(".sst"), file.bytes);
    assert_eq!(
        name("default", &|_| {}),
        format!("shared_checksum/{stem}_s{session}_{size}.sst")
    );
    assert_eq!(
        name("session", &|o| o.share_files_with_checksum_naming =
            ShareFilesNaming::USE_DB_SESSION_ID),
        format!("shared_checksum/{stem}_s{session}.sst")
    );
    let crc = esker::codec::checksum::crc32c(&fs::read(&file.path).expect("a table"));
    assert_eq!(
        name("legacy", &|o| o.share_files_with_checksum_naming =
            ShareFilesNaming::LEGACY_CRC32C_AND_FILE_SIZE),
        format!("shared_checksum/{stem}_{crc}_{size}.sst")
    );
    assert_eq!(
        name("plain", &|o| o.share_files_with_checksum = false),
        format!("shared/{stem}.sst")
    );
    assert_eq!(
        name("own", &|o| o.share_table_files = false),
        format!("private/1/{stem}.sst")
    );
    let mut wrong = BackupEngineOptions::new(home.path().join("wrong"));
    wrong.share_files_with_checksum_naming = ShareFilesNaming(3);
    esker_backup::BackupEngine::open(wrong, &Env::posix()).expect_err("no naming");
}

#[test]
fn a_database_with_another_history_keeps_its_own_files() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("backups");
    let backups = engine(&dir);
    let mut plain = BackupEngineOptions::new(home.path().join("plain"));
    plain.share_files_with_checksum = false;
    let plain = engine_with(plain);
    for (n, name) in ["a", "b"].into_iter().enumerate() {
        let db = open_db(&home.path().join(name));
        db.put("key", name).expect("written");
        db.flush().expect("flushed");
        backups.create_new_backup(&db).expect("a backup");
        let made = plain.create_new_backup(&db);
        assert_eq!(made.is_ok(), n == 0, "one name, two files: {made:?}");
    }
    for (id, name) in [(1, "a"), (2, "b")] {
        let to = home.path().join("restored");
        backups
            .restore_db_from_backup(id, &to, &to, &RestoreOptions::default())
            .expect("restored");
        let value = open_db(&to).get("key").expect("read");
        assert_eq!(value.as_deref(), Some(name.as_bytes()));
    }
    plain.verify_backup(1, true).expect("as it was");
    assert_eq!(plain.get_backup_info().len(), 1);
}

#[test]
fn deleting_leaves_what_others_need() {
    let home = tempfile::tempdir().expect("a directory");
    let (db_dir, dir) = (home.path().join("db"), home.path().join("backups"));
    let (mut model, mut rng) = (Model::new(), Rng::new(2));
    let db = open_db(&db_dir);
    let backups = engine(&dir);
    let mut models = Vec::new();
    for _ in 0..5 {
        change(&db, &mut model, &mut rng, 600);
        backups
            .create_new_backup_opt(&db, &flushing(), b"")
            .expect("a backup");
        models.push(model.clone());
    }
    backups.delete_backup(3).expect("deleted");
    assert_eq!(
        backups.delete_backup(3).expect_err("gone").kind(),
        ErrorKind::NotFound
    );
    backups.purge_old_backups(2).expect("purged");
    let left: Vec<u32> = backups
        .get_backup_info()
        .iter()
        .map(|b| b.backup_id)
        .collect();
    assert_eq!(left, [4, 5]);
    for id in left {
        backups.verify_backup(id, true).expect("whole");
        let to = home.path().join("restored");
        backups
            .restore_db_from_backup(id, &to, &to, &RestoreOptions::default())
            .expect("restored");
        expect_contents(&to, &models[id as usize - 1], "a backup that stayed");
    }
    let mut needed: Vec<String> = backups
        .get_backup_info()
        .into_iter()
        .flat_map(|b| b.file_details)
        .map(|f| f.relative_filename)
        .filter(|n| n.starts_with("shared"))
        .collect();
    needed.sort();
    needed.dedup();
    assert_eq!(shared(&dir), needed, "nothing else is left");
    backups.purge_old_backups(0).expect("purged");
    let left: Vec<_> = files(&dir);
    assert_eq!(left, [Path::new("BACKUP_LOCK")], "nothing at all is left");
    assert_eq!(backups.create_new_backup(&db).expect("a backup"), 1);
    let mut fresh = BackupEngineOptions::new(&dir);
    fresh.destroy_old_data = true;
    assert!(engine_with(fresh).get_backup_info().is_empty());
    assert_eq!(files(&dir), [Path::new("BACKUP_LOCK")]);
}

#[test]
fn nothing_is_deleted_that_an_unreadable_backup_may_need() {
    let home = tempfile::tempdir().expect("a directory");
    let (db_dir, dir) = (home.path().join("db"), home.path().join("backups"));
    let (mut model, mut rng) = (Model::new(), Rng::new(3));
    let db = open_db(&db_dir);
    let backups = engine(&dir);
    change(&db, &mut model, &mut rng, 600);
    backups
        .create_new_backup_opt(&db, &flushing(), b"")
        .expect("a backup");
    let first = model.clone();
    change(&db, &mut model, &mut rng, 600);
    db.compact_range(None, None).expect("compacted");
    backups
        .create_new_backup_opt(&db, &flushing(), b"")
        .expect("a backup");
    drop(backups);
    let meta = fs::read(dir.join("meta/1")).expect("a file");
    let private = files(&dir.join("private/1"));
    let later = [&b"schema_version 9\n"[..], &meta].concat();
    fs::write(dir.join("meta/1"), later).expect("written");
    fs::write(dir.join("shared_checksum/notes.txt"), "mine").expect("written");
    fs::write(dir.join("meta/notes"), "mine").expect("written");
    let before = shared(&dir);

    let backups = engine(&dir);
    let corrupt = backups.get_corrupted_backups();
    assert_eq!((corrupt.len(), corrupt[0].0), (1, 1));
    assert_eq!(corrupt[0].1.kind(), ErrorKind::NotSupported);
    backups.verify_backup(1, false).expect_err("unreadable");
    backups.garbage_collect().expect("collected");
    backups.delete_backup(2).expect("deleted");
    backups.garbage_collect().expect("collected");
    assert_eq!(
        shared(&dir),
        before,
        "not even of the backup that was deleted"
    );
    assert_eq!(files(&dir.join("private/1")), private);
    assert_eq!(
        backups.create_new_backup(&db).expect("a backup"),
        2,
        "after the newest that is there"
    );

    fs::write(dir.join("meta/1"), meta).expect("written");
    let to = home.path().join("restored");
    engine(&dir)
        .restore_db_from_backup(1, &to, &to, &RestoreOptions::default())
        .expect("restored");
    expect_contents(&to, &first, "the backup that could not be read");
    backups.purge_old_backups(0).expect("it sees what changed");
    let left = ["BACKUP_LOCK", "meta/notes", "shared_checksum/notes.txt"].map(Path::new);
    assert_eq!(files(&dir), left, "what is not ours stays");
}

#[test]
fn what_is_cut_off_is_copied_again() {
    let home = tempfile::tempdir().expect("a directory");
    let (db_dir, dir) = (home.path().join("db"), home.path().join("backups"));
    let (mut model, mut rng) = (Model::new(), Rng::new(4));
    let db = open_db(&db_dir);
    change(&db, &mut model, &mut rng, 600);
    db.flush().expect("flushed");
    engine(&dir).create_new_backup(&db).expect("a backup");
    let table = dir.join(&shared(&dir)[0]);
    let whole = fs::read(&table).expect("a table");
    for damage in [Some(&whole[..whole.len() / 2]), None] {
        match damage {
            Some(part) => fs::write(&table, part).expect("written"),
            None => fs::remove_file(&table).expect("removed"),
        }
        let backups = engine(&dir);
        match damage {
            Some(_) => {
                let e = backups.verify_backup(1, false).expect_err("cut off");
                assert_eq!(e.file(), Some(&*table));
            }
            None => assert_eq!(backups.get_corrupted_backups().len(), 2),
        }
        let id = backups.create_new_backup(&db).expect("a backup");
        assert_eq!(fs::read(&table).expect("a table"), whole);
        let backups = engine(&dir);
        for id in [1, id] {
            backups.verify_backup(id, true).expect("healed");
        }
    }
}

#[test]
fn restoring_replaces_the_database_and_nothing_else() {
    let home = tempfile::tempdir().expect("a directory");
    let (db_dir, dir) = (home.path().join("db"), home.path().join("backups"));
    let (mut model, mut rng) = (Model::new(), Rng::new(5));
    let db = open_db(&db_dir);
    let backups = engine(&dir);
    change(&db, &mut model, &mut rng, 900);
    let id = backups
        .create_new_backup_opt(&db, &flushing(), b"")
        .expect("a backup");
    let saved = model.clone();
    change(&db, &mut model, &mut rng, 900);
    let how = RestoreOptions::default();
    let e = backups
        .restore_db_from_backup(id, &db_dir, &db_dir, &how)
        .expect_err("it is open");
    assert_eq!(e.kind(), ErrorKind::Io, "{e}");
    assert!(contents(&db) == model);
    db.close().expect("closed");
    drop(db);
    fs::write(db_dir.join("notes.txt"), "mine").expect("written");
    fs::create_dir_all(db_dir.join("archive")).expect("made");
    fs::write(db_dir.join("archive/000001.log"), "old").expect("written");
    backups
        .restore_db_from_backup(9, &db_dir, &db_dir, &how)
        .expect_err("no such backup");
    expect_contents(&db_dir, &model, "nothing happened");
    backups
        .restore_db_from_backup(id, &db_dir, &db_dir, &how)
        .expect("restored");
    assert!(db_dir.join("notes.txt").exists());
    assert!(!db_dir.join("archive/000001.log").exists());
    assert!(!db_dir.join("IDENTITY").exists());
    expect_contents(&db_dir, &saved, "restored");
    // A backup that is not whole takes nothing away.
    let table = dir.join(&shared(&dir)[0]);
    fs::rename(&table, dir.join("elsewhere")).expect("moved");
    let before = files(&db_dir);
    backups
        .restore_db_from_backup(id, &db_dir, &db_dir, &how)
        .expect_err("a table is missing");
    assert_eq!(files(&db_dir), before);
    expect_contents(&db_dir, &saved, "nothing happened");
}

/// As [`open_db`], with as many tables as were flushed: compactions would make fewer of them, at
/// any moment.
fn open_uncompacted(dir: &Path) -> esker::Db {
    let options = options().set("disable_auto_compactions", "true");
    esker::Db::open(dir, options.expect("an option")).expect("opens")
}

/// Flushes that are not waited for may write several memtables into one table.
fn change_in_three_tables(db: &esker::Db, model: &mut Model, rng: &mut Rng) {
    for _ in 0..3 {
        change(db, model, rng, 300);
        db.flush().expect("flushed");
    }
}

#[test]
fn restoring_keeps_what_is_the_same() {
    let home = tempfile::tempdir().expect("a directory");
    let (db_dir, dir) = (home.path().join("db"), home.path().join("backups"));
    let (mut model, mut rng) = (Model::new(), Rng::new(6));
    let db = open_uncompacted(&db_dir);
    let backups = engine(&dir);
    change_in_three_tables(&db, &mut model, &mut rng);
    let id = backups.create_new_backup(&db).expect("a backup");
    let tables: Vec<String> = db
        .live_files()
        .expect("files")
        .into_iter()
        .filter(|f| f.name.ends_with(".sst"))
        .map(|f| f.name)
        .collect();
    db.close().expect("closed");
    drop(db);
    assert!(tables.len() > 2);
    let inode = |name: &str| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(db_dir.join(name)).expect("a table").ino()
    };
    // One is damaged, and one is gone.
    let damaged = db_dir.join(&tables[0]);
    let mut bytes = fs::read(&damaged).expect("a table");
    bytes[10] ^= 1;
    for (mode, keeps_damage) in [
        (RestoreMode::VerifyChecksum, false),
        (RestoreMode::KeepLatestDbSessionIdFiles, true),
    ] {
        fs::remove_file(&damaged).expect("removed");
        fs::write(&damaged, &bytes).expect("written");
        fs::remove_file(db_dir.join(&tables[1])).expect("removed");
        let before: Vec<u64> = tables[2..].iter().map(|t| inode(t)).collect();
        let how = RestoreOptions::new(false, mode);
        backups
            .restore_db_from_backup(id, &db_dir, &db_dir, &how)
            .expect("restored");
        let after: Vec<u64> = tables[2..].iter().map(|t| inode(t)).collect();
        assert_eq!(before, after, "{mode:?}");
        let is_damaged = fs::read(&damaged).expect("a table") == bytes;
        assert_eq!(is_damaged, keeps_damage, "{mode:?}");
    }
    let how = RestoreOptions::default();
    backups
        .restore_db_from_backup(id, &db_dir, &db_dir, &how)
        .expect("restored");
    expect_contents(&db_dir, &model, "restored");
}

#[test]
fn logs_that_are_there_can_be_kept() {
    let home = tempfile::tempdir().expect("a directory");
    let (db_dir, dir) = (home.path().join("db"), home.path().join("backups"));
    let db = open_db(&db_dir);
    let mut without = BackupEngineOptions::new(&dir);
    without.backup_log_files = false;
    let backups = engine_with(without);
    db.put("first", "in a table").expect("written");
    backups
        .create_new_backup_opt(&db, &flushing(), b"")
        .expect("a backup");
    db.put("second", "in the log").expect("written");
    db.close().expect("closed");
    drop(db);
    let log = files(&db_dir)
        .into_iter()
        .find(|p| p.extension().is_some_and(|e| e == "log"))
        .expect("a log");
    fs::create_dir_all(db_dir.join("archive")).expect("made");
    fs::rename(db_dir.join(&log), db_dir.join("archive").join(&log)).expect("moved");
    let how = RestoreOptions::new(true, RestoreMode::PurgeAllFiles);
    backups
        .restore_db_from_latest_backup(&db_dir, &db_dir, &how)
        .expect("restored");
    let db = open_db(&db_dir);
    assert!(db.get("first").expect("read").is_some());
    assert!(db.get("second").expect("read").is_some());
}

#[test]
fn excluded_files_come_from_the_database_that_is_there() {
    let home = tempfile::tempdir().expect("a directory");
    let (db_dir, dir) = (home.path().join("db"), home.path().join("backups"));
    let (mut model, mut rng) = (Model::new(), Rng::new(7));
    let db = open_uncompacted(&db_dir);
    change_in_three_tables(&db, &mut model, &mut rng);
    let mut how = CreateBackupOptions::default();
    how.exclude_files_callback = Some(ExcludeFiles::new(|_| true));
    let e = engine(&dir)
        .create_new_backup_opt(&db, &how, b"")
        .expect_err("needs schema 2");
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    let mut second = BackupEngineOptions::new(&dir);
    second.schema_version = 2;
    let backups = engine_with(second);
    let id = backups
        .create_new_backup_opt(&db, &how, b"")
        .expect("a backup");
    assert!(shared(&dir).is_empty());
    db.close().expect("closed");
    drop(db);
    drop(backups);
    let backups = engine(&dir);
    let info = backups.get_backup_info_of(id).expect("it is there");
    assert!(info.excluded_files.len() > 2);
    let kept = RestoreOptions::new(false, RestoreMode::KeepLatestDbSessionIdFiles);
    for how in [kept, RestoreOptions::default()] {
        let to = home.path().join("empty");
        let e = backups
            .restore_db_from_backup(id, &to, &to, &how)
            .expect_err("files are missing");
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
    }
    backups
        .restore_db_from_backup(id, &db_dir, &db_dir, &kept)
        .expect("restored");
    expect_contents(&db_dir, &model, "restored");
}

#[test]
fn a_backup_can_be_watched_and_stopped() {
    let home = tempfile::tempdir().expect("a directory");
    let (db_dir, dir) = (home.path().join("db"), home.path().join("backups"));
    let (mut model, mut rng) = (Model::new(), Rng::new(8));
    let db = open_db(&db_dir);
    change(&db, &mut model, &mut rng, 900);
    let mut options = BackupEngineOptions::new(&dir);
    options.callback_trigger_interval_size = 1_000;
    options.io_buffer_size = 4_096;
    options.max_background_operations = 3;
    let backups = Arc::new(engine_with(options));
    let calls = Arc::new(AtomicU64::new(0));
    let mut how = flushing();
    let counted = Arc::clone(&calls);
    how.progress_callback = Some(Progress::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    }));
    let id = backups
        .create_new_backup_opt(&db, &how, b"")
        .expect("a backup");
    let info = backups.get_backup_info_of(id).expect("it is there");
    let current = 16;
    assert_eq!(
        calls.load(Ordering::Relaxed),
        (info.size - current) / 1_000,
        "once for each interval that was copied"
    );

    change(&db, &mut model, &mut rng, 900);
    let before = files(&dir);
    let stopping = Arc::clone(&backups);
    how.progress_callback = Some(Progress::new(move || stopping.stop_backup()));
    for _ in 0..2 {
        let e = backups
            .create_new_backup_opt(&db, &how, b"")
            .expect_err("stopped");
        assert_eq!(e.kind(), ErrorKind::Incomplete);
    }
    assert_eq!(files(&dir), before, "it cleaned up");
    backups.verify_backup(id, true).expect("can still be read");
    let to = home.path().join("restored");
    backups
        .restore_db_from_backup(id, &to, &to, &RestoreOptions::default())
        .expect("and restored");
    assert_eq!(
        engine(&dir).create_new_backup(&db).expect("a new engine"),
        2
    );
}

#[test]
fn the_rate_is_limited() {
    let home = tempfile::tempdir().expect("a directory");
    let db = open_db(&home.path().join("db"));
    db.put("key", vec![7; 50_000]).expect("written");
    let mut options = BackupEngineOptions::new(home.path().join("backups"));
    options.backup_rate_limit = 100_000;
    options.restore_rate_limit = 100_000;
    options.max_background_operations = 2;
    let backups = engine_with(options);
    let begun = Instant::now();
    backups.create_new_backup(&db).expect("a backup");
    assert!(begun.elapsed() > Duration::from_millis(400));
    let begun = Instant::now();
    let to = home.path().join("restored");
    backups
        .restore_db_from_latest_backup(&to, &to, &RestoreOptions::default())
        .expect("restored");
    assert!(begun.elapsed() > Duration::from_millis(400));
}

#[test]
fn writers_go_on_meanwhile() {
    let home = tempfile::tempdir().expect("a directory");
    let (db_dir, dir) = (home.path().join("db"), home.path().join("backups"));
    let db = open_db(&db_dir);
    let ended = Arc::new(AtomicBool::new(false));
    let writer = {
        let (db, ended) = (db.clone(), Arc::clone(&ended));
        std::thread::spawn(move || {
            let mut n = 0u64;
            while !ended.load(Ordering::Relaxed) {
                db.put(format!("{n:08}"), vec![n as u8; 200])
                    .expect("written");
                n += 1;
            }
        })
    };
    let mut options = BackupEngineOptions::new(&dir);
    options.max_background_operations = 2;
    let backups = engine_with(options);
    for n in 0..6 {
        let mut how = CreateBackupOptions::default();
        how.flush_before_backup = n % 2 == 1;
        backups
            .create_new_backup_opt(&db, &how, b"")
            .expect("a backup");
    }
    ended.store(true, Ordering::Relaxed);
    writer.join().expect("it wrote");
    let mut before = 0;
    for info in backups.get_backup_info() {
        backups.verify_backup(info.backup_id, true).expect("whole");
        let to = home.path().join("restored");
        backups
            .restore_db_from_backup(info.backup_id, &to, &to, &RestoreOptions::default())
            .expect("restored");
        let found = contents(&open_db(&to));
        for (n, key) in found.keys().enumerate() {
            assert_eq!(*key, format!("{n:08}").into_bytes(), "a hole");
        }
        assert!(found.len() >= before && found.len() as u64 >= info.sequence_number);
        before = found.len();
    }
}

#[test]
fn two_engines_on_one_directory_take_turns() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("backups");
    let db = open_db(&home.path().join("db"));
    db.put("key", "value").expect("written");
    db.flush().expect("flushed");
    let (a, b) = (engine(&dir), engine(&dir));
    assert_eq!(a.create_new_backup(&db).expect("a backup"), 1);
    assert_eq!(b.create_new_backup(&db).expect("a backup"), 2);
    a.delete_backup(1).expect("deleted");
    b.garbage_collect().expect("collected");
    b.verify_backup(2, true).expect("whole");
    assert_eq!(b.get_backup_info().len(), 1);
    let e = engine(&dir)
        .create_new_backup_opt(
            &db,
            &CreateBackupOptions::default(),
            &vec![0; (1 << 20) + 1],
        )
        .expect_err("too much");
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    // Some bindings keep the backups in the database's own directory.
    let own = engine(&home.path().join("db"));
    assert_eq!(own.create_new_backup(&db).expect("a backup"), 1);
    own.verify_backup(1, true).expect("whole");
}

#[test]
fn everything_works_in_memory() {
    let env = Env::in_memory();
    let db = esker::Db::open("/db", options().env(env.clone())).expect("open");
    db.put("key", "value").expect("written");
    let backups = esker_backup::BackupEngine::open(BackupEngineOptions::new("/backups"), &env)
        .expect("a directory");
    backups
        .create_new_backup_opt(&db, &flushing(), b"")
        .expect("a backup");
    backups.verify_backup(1, true).expect("whole");
    // From one world to another.
    let home = tempfile::tempdir().expect("a directory");
    let mut options = BackupEngineOptions::new(home.path().join("backups"));
    options.backup_env = Some(Env::posix());
    let backups = esker_backup::BackupEngine::open(options, &env).expect("a directory");
    backups
        .create_new_backup_opt(&db, &flushing(), b"")
        .expect("a backup");
    backups
        .restore_db_from_latest_backup("/restored", "/restored", &RestoreOptions::default())
        .expect("restored");
    let restored = esker::Db::open("/restored", Options::new().env(env)).expect("open");
    assert!(restored.get("key").expect("read").is_some());
}

#[test]
fn a_database_with_several_paths_is_restored_into_one_directory() {
    let home = tempfile::tempdir().expect("a directory");
    let at = |name: &str| home.path().join(name);
    let mut given = options();
    given.db.db_paths = vec![
        esker::DbPath::new(at("fast"), 20 << 10),
        esker::DbPath::new(at("large"), 1 << 30),
    ];
    given.family.max_bytes_for_level_base = 10 << 10;
    let db = esker::Db::open(at("db"), given.clone()).expect("open");
    let (mut model, mut rng) = (Model::new(), Rng::new(7));
    change(&db, &mut model, &mut rng, 5_000);
    db.flush().expect("a flush");
    let mut how = esker::CompactRangeOptions::default();
    how.target_path_id = 1;
    let family = db.default_family_handle();
    db.compact_range_opt(&family, None, None, &how)
        .expect("a compaction");
    change(&db, &mut model, &mut rng, 500);
    db.flush().expect("a flush");
    for path in ["fast", "large"] {
        let tables = files(&at(path));
        assert!(!tables.is_empty(), "{path}");
    }
    let backups = engine(&at("backups"));
    backups.create_new_backup(&db).expect("a backup");
    backups.verify_backup(1, true).expect("it is whole");
    db.close().expect("a clean end");

    backups
        .restore_db_from_latest_backup(at("copy"), at("copy"), &RestoreOptions::default())
        .expect("restored");
    expect_contents(&at("copy"), &model, "restored");
    // It would work on the files of the original.
    let e = esker::Db::open(at("copy"), given.clone()).expect_err("the paths are another's");
    assert!(e.to_string().contains("directory"), "{e}");
    let db = esker::Db::open(at("db"), given).expect("open");
    assert_eq!(contents(&db), model);
}
