//! The target for directories of backups: their lists of files, and what those lead to.

use super::database::{DIR, alone, disk_of, files_of, options};
use super::{LARGE, Seed, Target};
use crate::mutate::{self, Source};
use crate::parts;
use esker::{Db, Result};
use esker_backup::{BackupEngine, BackupEngineOptions, BackupEngineReadOnly, RestoreOptions};
use esker_sim::disk::SimFs;
use esker_sim::sim_env::SimEnv;

pub(super) const TARGETS: &[Target] = &[Target {
    name: "backup",
    about: "directories of backups: listed, verified, restored, added to, collected",
    run: backup,
    seeds: directories,
    change,
    memory: LARGE,
}];

const BACKUPS: &str = "/backups";
const RESTORED: &str = "/restored";

fn made(schema: i32) -> Vec<u8> {
    let make = |world: &SimEnv| -> Result<Vec<u8>> {
        let disk = SimFs::new().without_log();
        let o = options(world, &disk);
        let env = o.env.clone().expect("set above");
        let db = Db::open(DIR, o)?;
        let mut how = BackupEngineOptions::new(BACKUPS);
        how.schema_version = schema;
        let engine = BackupEngine::open(how, &env)?;
        for i in 0..2 {
            db.put(format!("key{i}"), vec![b'v'; 50])?;
            db.flush()?;
            engine.create_new_backup(&db)?;
        }
        drop(db);
        let mut files = files_of(BACKUPS, &disk);
        // The options are as long as all the rest.
        for (name, bytes) in &mut files {
            if name.contains("OPTIONS") {
                bytes.clear();
            }
        }
        Ok(parts::join(&files))
    };
    alone(make).expect("backups of our own")
}

fn directories() -> Vec<Seed> {
    vec![("schema-1", made(1)), ("schema-2", made(2))]
}

fn change(input: &mut Vec<u8>, source: &mut Source<'_>) {
    let mut files = parts::split(input);
    if files.is_empty() {
        return mutate::bytes(input, source);
    }
    let lists: Vec<usize> = (0..files.len())
        .filter(|i| files[*i].0.starts_with("meta/"))
        .collect();
    let at = if lists.is_empty() || source.rng.one_in(4) {
        source.rng.index(files.len())
    } else {
        *source.rng.pick(&lists)
    };
    let mut none = Source {
        rng: source.rng.fork(),
        others: &[],
    };
    match source.rng.below(10) {
        0 if files.len() > 1 => drop(files.remove(at)),
        1 => files[at].0 = format!("meta/{}", source.number()),
        _ => mutate::text(&mut files[at].1, &mut none),
    }
    *input = parts::join(&files);
    input.truncate(mutate::LONGEST);
}

fn backup(input: &[u8]) {
    let files = parts::split(input);
    alone(|world| {
        let disk = disk_of(BACKUPS, &files);
        let o = options(world, &disk);
        let env = o.env.clone().expect("set above");
        let before = disk.image().list();
        let mut restored = false;
        if let Ok(engine) = BackupEngineReadOnly::open(BackupEngineOptions::new(BACKUPS), &env) {
            for info in engine.get_backup_info().into_iter().take(4) {
                let sound = engine.verify_backup(info.backup_id, true).is_ok();
                let done = engine.restore_db_from_backup(
                    info.backup_id,
                    RESTORED,
                    RESTORED,
                    &RestoreOptions::default(),
                );
                assert!(
                    !sound || done.is_ok(),
                    "a verified backup cannot be restored: {done:?}"
                );
                restored |= done.is_ok();
            }
            let _ = engine.get_corrupted_backups();
        }
        let after = disk.image().list();
        for path in after.keys().filter(|p| !before.contains_key(*p)) {
            assert!(path.starts_with(RESTORED), "a restore wrote {path}");
        }
        for (path, bytes) in &before {
            assert!(
                after.get(path) == Some(bytes),
                "{path} was changed by a restore"
            );
        }
        if restored {
            drop(Db::open(RESTORED, o.clone().create_if_missing(false)));
        }
        let Ok(engine) = BackupEngine::open(BackupEngineOptions::new(BACKUPS), &env) else {
            return;
        };
        let _ = engine.garbage_collect();
        let db = Db::open(DIR, o).expect("a new database");
        db.put("key", "value").expect("written");
        if let Ok(id) = engine.create_new_backup(&db) {
            let verified = engine.verify_backup(id, true);
            assert!(verified.is_ok(), "a new backup is not whole: {verified:?}");
        }
        let _ = engine.purge_old_backups(1);
    });
}
