//! Every file of a backup damaged in turn, and backups interrupted at every file.

mod common;

use common::*;
use esker::{Db, ErrorKind, Options};
use esker_backup::{CreateBackupOptions, RestoreOptions};
use std::fs;
use std::path::{Path, PathBuf};

/// Three backups of a database that grew, and what each holds.
fn three(home: &Path) -> (PathBuf, Vec<Model>) {
    let dir = home.join("backups");
    let (mut model, mut rng) = (Model::new(), Rng::new(11));
    let db = open_db(&home.join("db"));
    let backups = engine(&dir);
    let mut models = Vec::new();
    for n in 0..3 {
        change(&db, &mut model, &mut rng, 400);
        let mut how = CreateBackupOptions::default();
        how.flush_before_backup = n != 1;
        backups
            .create_new_backup_opt(&db, &how, b"application")
            .expect("a backup");
        models.push(model.clone());
    }
    db.close().expect("closed");
    (dir, models)
}

fn restored(dir: &Path, id: u32, to: &Path) -> esker::Result<()> {
    engine(dir).restore_db_from_backup(id, to, to, &RestoreOptions::default())
}

#[test]
fn damage_in_any_file_is_found_and_named() {
    let home = tempfile::tempdir().expect("a directory");
    let (dir, _) = three(home.path());
    let infos = engine(&dir).get_backup_info();
    let mut rng = Rng::new(12);
    for name in files(&dir) {
        let path = dir.join(&name);
        let whole = fs::read(&path).expect("a file");
        let text = name.display().to_string();
        if whole.is_empty() || text.starts_with("meta") || text == "BACKUP_LOCK" {
            continue;
        }
        let mut flipped = whole.clone();
        flipped[rng.below(whole.len() as u64) as usize] ^= 1 << rng.below(8);
        let mut longer = whole.clone();
        longer.push(0);
        for (what, bytes) in [
            ("flipped", &flipped[..]),
            ("cut off", &whole[..whole.len() - 1]),
            ("longer", &longer),
        ] {
            fs::write(&path, bytes).expect("written");
            let backups = engine(&dir);
            for info in &infos {
                let has_it = info
                    .file_details
                    .iter()
                    .any(|f| f.relative_filename == text);
                let verified = backups.verify_backup(info.backup_id, true);
                let fresh = tempfile::tempdir_in(home.path()).expect("a directory");
                let to = fresh.path().join("restored");
                let restored = restored(&dir, info.backup_id, &to);
                if !has_it {
                    verified.unwrap_or_else(|e| panic!("{text} {what}: {e}"));
                    restored.unwrap_or_else(|e| panic!("{text} {what}: {e}"));
                    continue;
                }
                for e in [
                    verified.expect_err(&text),
                    restored.expect_err("a damaged file"),
                ] {
                    assert_eq!(e.kind(), ErrorKind::Corruption, "{text} {what}: {e}");
                    assert_eq!(e.file(), Some(&*path), "{text} {what}: {e}");
                }
                assert!(!to.join("CURRENT").exists(), "{text} {what}");
            }
            fs::write(&path, &whole).expect("written");
        }
        fs::remove_file(&path).expect("removed");
        let corrupt = engine(&dir).get_corrupted_backups();
        assert!(!corrupt.is_empty(), "{text}");
        for (_, e) in corrupt {
            assert!(e.to_string().contains(&text), "{e}");
        }
        fs::write(&path, &whole).expect("written");
    }
}

#[test]
fn damage_in_a_meta_file_leaves_the_others_alone() {
    let home = tempfile::tempdir().expect("a directory");
    let (dir, models) = three(home.path());
    let mut rng = Rng::new(13);
    let listed = files(&dir);
    for id in 1..=3u32 {
        let path = dir.join(format!("meta/{id}"));
        let whole = fs::read(&path).expect("a file");
        for _ in 0..60 {
            let mut bytes = whole.clone();
            let at = rng.below(whole.len() as u64) as usize;
            match rng.below(3) {
                0 => bytes.truncate(at),
                1 => bytes[at] ^= 1 << rng.below(8),
                _ => drop(bytes.drain(at..(at + 9).min(whole.len()))),
            }
            fs::write(&path, &bytes).expect("written");
            // Whatever it says now, no other backup suffers, and nothing goes.
            let backups = engine(&dir);
            backups.garbage_collect().expect("collected");
            for other in (1..=3).filter(|n| *n != id) {
                backups
                    .verify_backup(other, true)
                    .unwrap_or_else(|e| panic!("{other} with {id} damaged: {e}"));
            }
        }
        fs::write(&path, &whole).expect("written");
    }
    // A damaged name can be another name, so that what it named was nobody's for a while.
    let left = files(&dir);
    let gone: Vec<_> = listed.iter().filter(|f| !left.contains(f)).collect();
    assert!(gone.is_empty(), "{gone:?}");
    for id in 1..=3u32 {
        let to = home.path().join("restored");
        restored(&dir, id, &to).expect("restored");
        expect_contents(&to, &models[id as usize - 1], "as it was");
    }
}

/// The directory as it was when the files of `made` from `from` on were not there yet, the last of
/// those that were perhaps only in part.
fn interrupted(dir: &Path, before: &Path, made: &[PathBuf], upto: usize, torn: bool, to: &Path) {
    copy_tree(before, to);
    for (n, name) in made[..upto].iter().enumerate() {
        let text = name.display().to_string();
        let is_last = n + 1 == upto;
        // A shared file, and a meta file, get their names when they are whole.
        let hidden = !text.starts_with("private");
        let target = match (is_last && torn && hidden, name.parent(), name.file_name()) {
            (true, Some(parent), Some(file)) => {
                parent.join(format!(".{}.tmp", file.to_string_lossy()))
            }
            _ => name.clone(),
        };
        let target = to.join(target);
        fs::create_dir_all(target.parent().expect("a parent")).expect("made");
        let mut bytes = fs::read(dir.join(name)).expect("a file");
        if is_last && torn {
            bytes.truncate(bytes.len() / 2);
        }
        fs::write(target, bytes).expect("written");
    }
}

#[test]
fn a_backup_that_was_interrupted_never_was() {
    let home = tempfile::tempdir().expect("a directory");
    let (dir, models) = three(home.path());
    let db = Db::open(home.path().join("db"), Options::new()).expect("open");
    let before = home.path().join("before");
    copy_tree(&dir, &before);
    let listed = files(&before);
    db.put("one more", "entry").expect("written");
    let mut how = CreateBackupOptions::default();
    how.flush_before_backup = true;
    engine(&dir)
        .create_new_backup_opt(&db, &how, b"")
        .expect("a backup");
    let mut made: Vec<PathBuf> = files(&dir)
        .into_iter()
        .filter(|f| !listed.contains(f))
        .collect();
    // The meta file is the last.
    made.sort_by_key(|p| p.starts_with("meta"));
    assert!(made.len() >= 4, "{made:?}");
    for upto in 1..=made.len() {
        for torn in [true, false] {
            if upto == made.len() && !torn {
                break;
            }
            let what = format!("{} of {}, torn {torn}", upto, made.len());
            let at = tempfile::tempdir_in(home.path()).expect("a directory");
            let at = at.path().join("backups");
            interrupted(&dir, &before, &made, upto, torn, &at);
            let backups = engine(&at);
            assert_eq!(backups.get_backup_info().len(), 3, "{what}");
            assert!(backups.get_corrupted_backups().is_empty(), "{what}");
            for id in 1..=3 {
                backups
                    .verify_backup(id, true)
                    .unwrap_or_else(|e| panic!("{what}: {e}"));
            }
            if torn {
                backups.garbage_collect().expect("collected");
                assert_eq!(files(&at), listed, "{what}");
            }
            let id = backups.create_new_backup(&db).expect("a backup");
            assert_eq!(id, 4, "{what}");
            backups
                .verify_backup(id, true)
                .unwrap_or_else(|e| panic!("{what}: {e}"));
            let to = at.join("restored");
            restored(&at, 2, &to).unwrap_or_else(|e| panic!("{what}: {e}"));
            expect_contents(&to, &models[1], &what);
        }
    }
}

#[test]
fn a_deletion_that_was_interrupted_is_finished() {
    let home = tempfile::tempdir().expect("a directory");
    let (dir, models) = three(home.path());
    // The meta file is the first to go.
    fs::remove_file(dir.join("meta/1")).expect("removed");
    let backups = engine(&dir);
    assert_eq!(backups.get_backup_info().len(), 2);
    backups.delete_backup(2).expect("deleted");
    let to = home.path().join("restored");
    restored(&dir, 3, &to).expect("restored");
    expect_contents(&to, &models[2], "the one that is left");
    let needed: Vec<PathBuf> = backups
        .get_backup_info()
        .into_iter()
        .flat_map(|b| b.file_details)
        .map(|f| PathBuf::from(f.relative_filename))
        .collect();
    for file in files(&dir) {
        let text = file.display().to_string();
        let is_needed = needed.contains(&file) || text == "meta/3" || text == "BACKUP_LOCK";
        assert!(is_needed, "{text} was left");
    }
}
