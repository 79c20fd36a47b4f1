//! Random writes, backups, deletions, purges and restores, against maps that say what each backup
//! must hold.
//!
//! `ESKER_SEED` repeats one seed.

mod common;

use common::*;
use esker_backup::{BackupEngineOptions, CreateBackupOptions, RestoreMode, RestoreOptions};
use std::collections::BTreeMap;

fn settings(dir: &std::path::Path, rng: &mut Rng) -> BackupEngineOptions {
    let mut options = BackupEngineOptions::new(dir);
    options.sync = rng.below(2) == 0;
    options.schema_version = 1 + rng.below(2) as i32;
    options.max_background_operations = 1 + rng.below(3) as i32;
    options.io_buffer_size = [0, 1_000, 100_000][rng.below(3) as usize];
    options.share_files_with_checksum_naming.0 = [1, 2, 2 | 1 << 31][rng.below(3) as usize];
    options.share_table_files = rng.below(5) > 0;
    options
}

fn walk(seed: u64) {
    println!("seed {seed}");
    let home = tempfile::tempdir().expect("a directory");
    let (mut db_dir, dir) = (home.path().join("db 0"), home.path().join("backups"));
    let mut rng = Rng::new(seed);
    let mut model = Model::new();
    let mut saved: BTreeMap<u32, Model> = BTreeMap::new();
    let mut db = open_db(&db_dir);
    let mut backups = engine_with(settings(&dir, &mut rng));
    for step in 0..40 {
        let what = format!("seed {seed}, step {step}");
        let n = rng.below(300);
        change(&db, &mut model, &mut rng, n);
        match rng.below(8) {
            0..=2 => {
                let mut how = CreateBackupOptions::default();
                how.flush_before_backup = rng.below(2) == 0;
                let id = backups
                    .create_new_backup_opt(&db, &how, what.as_bytes())
                    .unwrap_or_else(|e| panic!("{what}: {e}"));
                saved.insert(id, model.clone());
            }
            3 if !saved.is_empty() => {
                let at = rng.below(saved.len() as u64) as usize;
                let id = *saved.keys().nth(at).expect("one of them");
                backups
                    .delete_backup(id)
                    .unwrap_or_else(|e| panic!("{what}: {e}"));
                saved.remove(&id);
            }
            4 if rng.below(3) == 0 => {
                let keep = rng.below(4) as usize;
                backups
                    .purge_old_backups(keep as u32)
                    .unwrap_or_else(|e| panic!("{what}: {e}"));
                while saved.len() > keep {
                    saved.pop_first();
                }
            }
            5 if !saved.is_empty() => {
                // On with a backup, in its own place or another: histories part here.
                let at = rng.below(saved.len() as u64) as usize;
                let (id, content) = saved.iter().nth(at).expect("one of them");
                db.close().expect("closed");
                if rng.below(2) == 0 {
                    db_dir = home.path().join(format!("db {step}"));
                }
                let mode = [
                    RestoreMode::PurgeAllFiles,
                    RestoreMode::VerifyChecksum,
                    RestoreMode::KeepLatestDbSessionIdFiles,
                ][rng.below(3) as usize];
                backups
                    .restore_db_from_backup(
                        *id,
                        &db_dir,
                        &db_dir,
                        &RestoreOptions::new(false, mode),
                    )
                    .unwrap_or_else(|e| panic!("{what}: {e}"));
                model = content.clone();
                db = open_db(&db_dir);
                assert!(contents(&db) == model, "{what}: restored {id}, {mode:?}");
            }
            6 => backups = engine_with(settings(&dir, &mut rng)),
            7 => db
                .compact_range(None, None)
                .unwrap_or_else(|e| panic!("{what}: {e}")),
            _ => {}
        }
        let infos = backups.get_backup_info();
        let ids: Vec<u32> = infos.iter().map(|b| b.backup_id).collect();
        assert_eq!(ids, saved.keys().copied().collect::<Vec<_>>(), "{what}");
        assert!(backups.get_corrupted_backups().is_empty(), "{what}");
    }
    db.close().expect("closed");
    let to = home.path().join("restored");
    for (id, content) in &saved {
        backups
            .verify_backup(*id, true)
            .unwrap_or_else(|e| panic!("seed {seed}, backup {id}: {e}"));
        backups
            .restore_db_from_backup(*id, &to, &to, &RestoreOptions::default())
            .unwrap_or_else(|e| panic!("seed {seed}, backup {id}: {e}"));
        expect_contents(&to, content, &format!("seed {seed}, backup {id}"));
    }
    let needed: std::collections::BTreeSet<_> = backups
        .get_backup_info()
        .into_iter()
        .flat_map(|b| b.file_details)
        .map(|f| std::path::PathBuf::from(f.relative_filename))
        .collect();
    let there: std::collections::BTreeSet<_> = files(&dir)
        .into_iter()
        .filter(|p| !p.starts_with("meta") && p.as_os_str() != "BACKUP_LOCK")
        .collect();
    assert_eq!(there, needed, "seed {seed}: nothing is left over");
}

#[test]
fn every_backup_holds_what_the_database_held() {
    for seed in seeds(6) {
        walk(seed);
    }
}
