//! RocksDB restores what is backed up here, and what RocksDB backed up is restored here.
//!
//! Needs `ldb`, and says so when it is not installed. With `ESKER_REF_LIB` a RocksDB library takes
//! turns too.

mod common;

use common::*;
use esker::{Env, Options};
use esker_backup::{
    BackupEngineOptions, BackupEngineReadOnly, CreateBackupOptions, RestoreOptions,
    ShareFilesNaming,
};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

/// Prints a line that `cargo test` shows also when the test passes.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

fn has_ldb() -> bool {
    let there = Command::new("ldb").arg("--version").output().is_ok();
    if !there {
        say("backup: skipped, ldb is not installed (Debian: apt-get install rocksdb-tools)");
    }
    there
}

/// Runs `ldb` on `db`; what it said.
fn ldb(db: &Path, args: &[&str]) -> String {
    let out = Command::new("ldb")
        .arg(format!("--db={}", db.display()))
        .args(args)
        .output()
        .expect("ldb starts");
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let failed = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        out.status.success() && !said.contains("Failed") && !failed.contains("rror"),
        "ldb {args:?}: {said}\n{failed}"
    );
    said
}

fn ldb_contents(db: &Path) -> Model {
    let hex = |text: &str| -> Vec<u8> {
        let digits = text.trim_start_matches("0x").as_bytes().chunks(2);
        digits
            .map(|d| u8::from_str_radix(std::str::from_utf8(d).expect("digits"), 16).expect("hex"))
            .collect()
    };
    ldb(db, &["scan", "--hex"])
        .lines()
        .filter_map(|line| line.split_once(" : ").or_else(|| line.split_once(" ==> ")))
        .map(|(k, v)| (hex(k.trim()), hex(v.trim())))
        .collect()
}

#[test]
fn rocksdb_restores_ours() {
    if !has_ldb() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let db = open_db(&home.path().join("db"));
    let (mut model, mut rng) = (Model::new(), Rng::new(21));
    for (n, naming) in [1, 2, 2 | 1 << 31, 0].into_iter().enumerate() {
        change(&db, &mut model, &mut rng, 800);
        let dir = home.path().join(format!("backups {n}"));
        let mut options = BackupEngineOptions::new(&dir);
        match naming {
            0 => options.share_table_files = false,
            _ => options.share_files_with_checksum_naming = ShareFilesNaming(naming),
        }
        options.schema_version = 1 + n as i32 % 2;
        let backups = engine_with(options);
        for flush in [true, false] {
            change(&db, &mut model, &mut rng, 100);
            let mut how = CreateBackupOptions::default();
            how.flush_before_backup = flush;
            backups
                .create_new_backup_opt(&db, &how, b"application")
                .expect("a backup");
        }
        let to = home.path().join(format!("restored {n}"));
        let flag = format!("--backup_dir={}", dir.display());
        ldb(&to, &["restore", &flag]);
        assert!(ldb_contents(&to) == model, "naming {naming}");
        let ours = engine(&dir).get_backup_info();
        assert_eq!(ours.len(), 2);
    }
    say("backup: RocksDB restored 4 of ours, 0 differences");
}

#[test]
fn what_rocksdb_backed_up_is_restored_here() {
    if !has_ldb() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let (db, dir) = (home.path().join("db"), home.path().join("backups"));
    let flag = format!("--backup_dir={}", dir.display());
    let mut model = Model::new();
    let mut models = Vec::new();
    for round in 0..3 {
        // Each run of ldb flushes what the one before left in the log, with its own options.
        for n in 0..6 {
            let (key, value) = (format!("key{:02}", n + 3 * round), format!("value{round}"));
            model.insert(key.clone().into(), value.clone().into());
            let flags: &[&str] = match n % 3 {
                0 => &["--create_if_missing"],
                _ => &[
                    "--create_if_missing",
                    "--enable_blob_files",
                    "--min_blob_size=1",
                ],
            };
            ldb(&db, &[flags, &["put", &key, &value]].concat());
        }
        ldb(&db, &["backup", &flag]);
        models.push(model.clone());
    }
    let reader = BackupEngineReadOnly::open(BackupEngineOptions::new(&dir), &Env::posix())
        .expect("RocksDB's directory");
    assert!(reader.get_corrupted_backups().is_empty());
    let infos = reader.get_backup_info();
    assert_eq!(infos.len(), 3);
    let names: Vec<String> = files(&dir)
        .iter()
        .map(|p| p.display().to_string())
        .collect();
    assert!(names.iter().any(|n| n.ends_with(".sst")), "{names:?}");
    assert!(names.iter().any(|n| n.ends_with(".blob")), "{names:?}");
    for (info, model) in infos.iter().zip(&models) {
        reader
            .verify_backup(info.backup_id, true)
            .expect("every checksum holds");
        let to = home.path().join("restored");
        reader
            .restore_db_from_backup(info.backup_id, &to, &to, &RestoreOptions::default())
            .expect("restored");
        expect_contents(&to, model, "RocksDB's backup");
    }
    // Going on in the same directory: tables that RocksDB copied are not copied again.
    let to = home.path().join("ours");
    reader
        .restore_db_from_latest_backup(&to, &to, &RestoreOptions::default())
        .expect("restored");
    let ours = esker::Db::open(&to, Options::new()).expect("open");
    let backups = engine(&dir);
    assert_eq!(backups.create_new_backup(&ours).expect("a backup"), 4);
    let now: Vec<String> = files(&dir)
        .iter()
        .map(|p| p.display().to_string())
        .collect();
    let stays = |n: &&String| n.starts_with("shared");
    let before: Vec<_> = names.iter().filter(stays).collect();
    assert!(before.iter().all(|n| now.contains(n)));
    // Blob files and old tables are among those that the new backup shares.
    let latest = backups.get_latest_backup_info().expect("ours");
    let taken = latest.file_details.iter().map(|f| &f.relative_filename);
    assert!(
        taken
            .clone()
            .any(|n| before.contains(&n) && n.ends_with(".sst"))
    );
    assert!(
        taken
            .clone()
            .any(|n| before.contains(&n) && n.ends_with(".blob"))
    );
    backups.delete_backup(1).expect("deleted");
    backups.delete_backup(2).expect("deleted");
    let to = home.path().join("RocksDB again");
    ldb(&to, &["restore", &flag]);
    assert!(ldb_contents(&to) == models[2], "RocksDB restores ours");
    assert!(fs::metadata(dir.join("meta/1")).is_err());
    say("backup: 3 of RocksDB's restored, 0 differences");
}
