//! Backups of databases that were opened for reading, and of secondary instances.

mod common;

use common::*;
use esker::{Db, ErrorKind};
use esker_backup::{BackupEngineOptions, CreateBackupOptions, RestoreOptions};

#[test]
fn a_backup_of_a_database_opened_for_reading_has_the_rows_of_its_logs() {
    let home = tempfile::tempdir().expect("a directory");
    let (db_dir, dir) = (home.path().join("db"), home.path().join("backups"));
    let (mut model, mut rng) = (Model::new(), Rng::new(1));
    let db = open_db(&db_dir);
    change(&db, &mut model, &mut rng, 1_000);
    db.flush().expect("flushed");
    change(&db, &mut model, &mut rng, 100);
    db.close().expect("closed");
    let before = files(&db_dir);

    let backups = engine(&dir);
    let mut flushing = CreateBackupOptions::default();
    flushing.flush_before_backup = true;
    let reader = Db::open_read_only(&db_dir, options()).expect("opened for reading");
    let second = Db::open_secondary(&db_dir, home.path().join("second"), options())
        .expect("a secondary instance");
    for db in [&reader, &second] {
        for how in [&CreateBackupOptions::default(), &flushing] {
            let id = backups
                .create_new_backup_opt(db, how, b"")
                .expect("a backup");
            backups.verify_backup(id, true).expect("it is sound");
            let to = home.path().join(format!("restored{id}"));
            backups
                .restore_db_from_backup(id, &to, &to, &RestoreOptions::default())
                .expect("restored");
            expect_contents(&to, &model, "restored");
        }
    }
    assert_eq!(before, files(&db_dir), "nothing of the database changes");

    // Without logs the rows would have to be flushed, and nobody may.
    let mut options = BackupEngineOptions::new(home.path().join("without_logs"));
    options.backup_log_files = false;
    let without = engine_with(options);
    let error = without
        .create_new_backup_opt(&reader, &flushing, b"")
        .expect_err("there is no flush");
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    let id = without
        .create_new_backup_opt(&reader, &CreateBackupOptions::default(), b"")
        .expect("what is in tables");
    without.verify_backup(id, true).expect("it is sound");
}
