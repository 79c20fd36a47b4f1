//! Backups. Plain options are generated.

use crate::boundary::{Env, Outcome, handles};
use crate::database::Database;
use crate::logger::Logging;
use crate::options::SharedEnv;
use crate::shared::{SharedValue, change, dispose, give, value};
use crate::tuning::Limiter;
use crate::{disposals, natives};
use esker_backup::{
    BackupEngine, BackupEngineOptions, BackupInfo, CreateBackupOptions, RestoreMode, RestoreOptions,
};
use esker_sync::Arc;
use jni_sys::{jint, jlong, jobject, jvalue};

/// A directory of backups.
struct Backups(BackupEngine);

fn with<R>(backups: jlong, body: impl FnOnce(&BackupEngine) -> esker::Result<R>) -> Outcome<R> {
    Ok(body(&handles::hold::<Backups>(backups)?.0)?)
}

/// The number of a backup; no backup has a negative one.
fn number(id: jint) -> Outcome<u32> {
    let none = |_| esker::Error::not_found("Backup not found");
    Ok(u32::try_from(id).map_err(none)?)
}

fn create(backups: jlong, db: jlong, flush: bool, metadata: &[u8]) -> Outcome<()> {
    let database = handles::hold::<Database>(db)?;
    let mut options = CreateBackupOptions::default();
    options.flush_before_backup = flush;
    let db = database.open()?;
    with(backups, |b| b.create_new_backup_opt(db, &options, metadata))?;
    Ok(())
}

fn info(env: Env<'_>, backup: &BackupInfo) -> Outcome<jobject> {
    // Java shows none as null.
    let metadata = match &backup.app_metadata[..] {
        [] => std::ptr::null_mut(),
        bytes => env.string(&String::from_utf8_lossy(bytes))?,
    };
    let arguments = [
        jvalue {
            i: backup.backup_id as jint,
        },
        jvalue {
            j: backup.timestamp as jlong,
        },
        jvalue {
            j: backup.size as jlong,
        },
        jvalue {
            i: backup.number_files as jint,
        },
        jvalue { l: metadata },
    ];
    let made = env.construct(
        "org/rocksdb/BackupInfo",
        "(IJJILjava/lang/String;)V",
        &arguments,
    )?;
    env.forget(metadata);
    Ok(made)
}

natives! {
    fn Java_org_rocksdb_BackupEngine_open(env, world: jlong, options: jlong) -> jlong {
        let world = handles::hold::<SharedEnv>(world)?.env();
        let options = BackupEngineOptions::clone(&*value::<BackupEngineOptions>(options)?);
        Ok(handles::give(Backups(BackupEngine::open(options, &world)?)))
    }

    fn Java_org_rocksdb_BackupEngine_createNewBackup(
        env, backups: jlong, db: jlong, flush: bool
    ) {
        create(backups, db, flush, b"")
    }

    fn Java_org_rocksdb_BackupEngine_createNewBackupWithMetadata(
        env, backups: jlong, db: jlong, metadata: jobject, flush: bool
    ) {
        create(backups, db, flush, env.text(metadata)?.as_bytes())
    }

    fn Java_org_rocksdb_BackupEngine_getBackupInfo(env, backups: jlong) -> jobject {
        let all = with(backups, |b| Ok(b.get_backup_info()))?;
        env.list(all.len(), |at| info(env, &all[at]))
    }

    fn Java_org_rocksdb_BackupEngine_getCorruptedBackups(env, backups: jlong) -> jobject {
        let all = with(backups, |b| Ok(b.get_corrupted_backups()))?;
        let all: Vec<jint> = all.into_iter().map(|(id, _)| id as jint).collect();
        env.new_ints(&all)
    }

    fn Java_org_rocksdb_BackupEngine_garbageCollect(env, backups: jlong) {
        with(backups, |b| b.garbage_collect())
    }

    fn Java_org_rocksdb_BackupEngine_purgeOldBackups(env, backups: jlong, keep: jint) {
        let keep = u32::try_from(crate::boundary::count(keep)?).unwrap_or(u32::MAX);
        with(backups, |b| b.purge_old_backups(keep))
    }

    fn Java_org_rocksdb_BackupEngine_deleteBackup(env, backups: jlong, id: jint) {
        let id = number(id)?;
        with(backups, |b| b.delete_backup(id))
    }

    fn Java_org_rocksdb_BackupEngine_restoreDbFromBackup(
        env, backups: jlong, id: jint, db_dir: jobject, wal_dir: jobject, options: jlong
    ) {
        let (db_dir, wal_dir) = (env.text(db_dir)?, env.text(wal_dir)?);
        let options = **value::<RestoreOptions>(options)?;
        let id = number(id)?;
        with(backups, |b| b.restore_db_from_backup(id, &db_dir, &wal_dir, &options))
    }

    fn Java_org_rocksdb_BackupEngine_restoreDbFromLatestBackup(
        env, backups: jlong, db_dir: jobject, wal_dir: jobject, options: jlong
    ) {
        let (db_dir, wal_dir) = (env.text(db_dir)?, env.text(wal_dir)?);
        let options = **value::<RestoreOptions>(options)?;
        with(backups, |b| b.restore_db_from_latest_backup(&db_dir, &wal_dir, &options))
    }

    fn Java_org_rocksdb_BackupEngine_disposeInternal
        | Java_org_rocksdb_BackupEngine_disposeInternalJni(env, backups: jlong) {
        dispose::<Backups>(backups)
    }

    fn Java_org_rocksdb_RestoreOptions_newRestoreOptions(env, keep_logs: bool) -> jlong {
        Ok(give(RestoreOptions::new(keep_logs, RestoreMode::PurgeAllFiles)))
    }

    fn Java_org_rocksdb_BackupEngineOptions_newBackupEngineOptions
        | Java_org_rocksdb_BackupableDBOptions_newBackupableDBOptions(
        env, path: jobject
    ) -> jlong {
        Ok(give(BackupEngineOptions::new(env.text(path)?)))
    }

    fn Java_org_rocksdb_BackupEngineOptions_backupDir
        | Java_org_rocksdb_BackupableDBOptions_backupDir(env, options: jlong) -> jobject {
        env.string(&value::<BackupEngineOptions>(options)?.backup_dir.to_string_lossy())
    }

    fn Java_org_rocksdb_BackupEngineOptions_setBackupEnv
        | Java_org_rocksdb_BackupableDBOptions_setBackupEnv(env, options: jlong, world: jlong) {
        let world = handles::hold::<SharedEnv>(world)?.env();
        change::<BackupEngineOptions>(options, |o| o.backup_env = Some(world))
    }

    fn Java_org_rocksdb_BackupEngineOptions_setBackupRateLimiter
        | Java_org_rocksdb_BackupableDBOptions_setBackupRateLimiter(
        env, options: jlong, limiter: jlong
    ) {
        let limiter = Arc::clone(&handles::hold::<Limiter>(limiter)?.0);
        change::<BackupEngineOptions>(options, |o| o.backup_rate_limiter = Some(limiter))
    }

    fn Java_org_rocksdb_BackupEngineOptions_setRestoreRateLimiter
        | Java_org_rocksdb_BackupableDBOptions_setRestoreRateLimiter(
        env, options: jlong, limiter: jlong
    ) {
        let limiter = Arc::clone(&handles::hold::<Limiter>(limiter)?.0);
        change::<BackupEngineOptions>(options, |o| o.restore_rate_limiter = Some(limiter))
    }

    /// Backups log nothing: errors reach the caller.
    fn Java_org_rocksdb_BackupEngineOptions_setInfoLog
        | Java_org_rocksdb_BackupableDBOptions_setInfoLog(env, options: jlong, logger: jlong) {
        handles::hold::<Logging>(logger)?;
        value::<BackupEngineOptions>(options)?;
        Ok(())
    }
}

disposals! {
    SharedValue<RestoreOptions>: Java_org_rocksdb_RestoreOptions_disposeInternal
        | Java_org_rocksdb_RestoreOptions_disposeInternalJni;
    SharedValue<BackupEngineOptions>: Java_org_rocksdb_BackupEngineOptions_disposeInternal
        | Java_org_rocksdb_BackupEngineOptions_disposeInternalJni
        | Java_org_rocksdb_BackupableDBOptions_disposeInternal;
}
