//! Calls that concern an open database as a whole.

use crate::boundary::{Outcome, handles};
use crate::call_options::{FlushState, ReadState};
use crate::database::{Database, Family};
use crate::natives;
use crate::refusal::not_supported;
use crate::shared::{dispose, value};
use crate::slice::slice_of;
use esker::options::{LoadRules, OptionSet};
use esker::{CompactRangeOptions, Error, FamilyHandle};
use esker_sync::atomic::Ordering;
use jni_sys::{jint, jlong, jobject};
use std::fmt::Write as _;

/// Ends a database and everything that goes with it.
fn end(db: jlong) -> Outcome<()> {
    let database = handles::hold::<Database>(db)?;
    // Iterators and snapshots first: they are what keeps a database from closing.
    if let Some(base) = database.base.get() {
        handles::close_owned(*base);
    }
    handles::close_owned(db);
    if !database.is_closed.swap(true, Ordering::Relaxed) {
        // Callers that need failures call `closeE`.
        database.listed.unlist();
        let _ = database.db.close();
    }
    drop(database);
    dispose::<Database>(db)
}

/// Options as Java's side parses them, which wants a value for each name.
fn in_words<S: OptionSet>(options: &S) -> String {
    let mut text = String::new();
    for entry in S::entries() {
        let value = (entry.get)(options);
        if !value.is_empty() {
            let _ = write!(text, "{}={value};", entry.info.name);
        }
    }
    text
}

natives! {
    fn Java_org_rocksdb_RocksDB_closeDatabase | Java_org_rocksdb_TtlDB_closeDatabase
        | Java_org_rocksdb_TransactionDB_closeDatabase
        | Java_org_rocksdb_OptimisticTransactionDB_closeDatabase(
        env, db: jlong
    ) {
        let database = handles::hold::<Database>(db)?;
        let db = database.open()?;
        database.is_closed.store(true, Ordering::Relaxed);
        database.listed.unlist();
        let outcome = db.close();
        if outcome.is_err() {
            database.is_closed.store(false, Ordering::Relaxed);
        }
        Ok(outcome?)
    }

    fn Java_org_rocksdb_RocksDB_disposeInternal | Java_org_rocksdb_RocksDB_disposeInternalJni
        | Java_org_rocksdb_TtlDB_disposeInternal | Java_org_rocksdb_TtlDB_disposeInternalJni
        | Java_org_rocksdb_TransactionDB_disposeInternal
        | Java_org_rocksdb_TransactionDB_disposeInternalJni
        | Java_org_rocksdb_OptimisticTransactionDB_disposeInternal
        | Java_org_rocksdb_OptimisticTransactionDB_disposeInternalJni(
        env, db: jlong
    ) {
        end(db)
    }

    fn Java_org_rocksdb_RocksDB_getDefaultColumnFamily(env, db: jlong) -> jlong {
        let database = handles::hold::<Database>(db)?;
        let family = database.open()?.default_family_handle();
        let make = || handles::give_owned(Family::new(family), db);
        Ok(*database.default_handle.get_or_init(make))
    }

    fn Java_org_rocksdb_RocksDB_getName(env, db: jlong) -> jobject {
        let database = handles::hold::<Database>(db)?;
        env.string(&database.open()?.path().to_string_lossy())
    }

    fn Java_org_rocksdb_RocksDB_getLatestSequenceNumber(env, db: jlong) -> jlong {
        Ok(handles::hold::<Database>(db)?.open()?.latest_sequence_number() as jlong)
    }

    /// Of all families of one moment when there are several.
    fn Java_org_rocksdb_RocksDB_flush(env, db: jlong, options: jlong, families: jobject) {
        let database = handles::hold::<Database>(db)?;
        let options = &value::<FlushState>(options)?.flush;
        if families.is_null() {
            return Ok(database.open()?.flush_cf(&database.default, options)?);
        }
        let families = database.families(&env.longs(families)?)?;
        let families: Vec<&FamilyHandle> = families.iter().collect();
        Ok(database.open()?.flush_families(&families, options)?)
    }

    fn Java_org_rocksdb_RocksDB_flushWal(env, db: jlong, sync: bool) {
        Ok(handles::hold::<Database>(db)?.open()?.flush_wal(sync)?)
    }

    fn Java_org_rocksdb_RocksDB_syncWal(env, db: jlong) {
        Ok(handles::hold::<Database>(db)?.open()?.sync_wal()?)
    }

    fn Java_org_rocksdb_RocksDB_compactRange(
        env, db: jlong, begin: jobject, begin_length: jint, end: jobject, end_length: jint,
        options: jlong, family: jlong
    ) {
        let database = handles::hold::<Database>(db)?;
        let edge = |array: jobject, length: jint| {
            if array.is_null() || length < 0 {
                return Ok(None);
            }
            env.region(array, 0, length).map(Some)
        };
        let begin = edge(begin, begin_length)?;
        let end = edge(end, end_length)?;
        let chosen;
        let default = CompactRangeOptions::default();
        let options = if options == 0 {
            &default
        } else {
            chosen = value::<CompactRangeOptions>(options)?;
            &**chosen
        };
        database.with_family(family, |db, family| {
            Ok(db.compact_range_opt(family, begin.as_deref(), end.as_deref(), options)?)
        })
    }

    fn Java_org_rocksdb_RocksDB_cancelAllBackgroundWork(env, db: jlong, wait: bool) {
        Ok(handles::hold::<Database>(db)?.open()?.cancel_background_work(wait)?)
    }

    fn Java_org_rocksdb_RocksDB_pauseBackgroundWork(env, db: jlong) {
        Ok(handles::hold::<Database>(db)?.open()?.pause_background_work()?)
    }

    fn Java_org_rocksdb_RocksDB_continueBackgroundWork(env, db: jlong) {
        handles::hold::<Database>(db)?.open()?.continue_background_work();
        Ok(())
    }

    fn Java_org_rocksdb_RocksDB_abortAllCompactions(env, db: jlong) {
        handles::hold::<Database>(db)?.open()?.abort_all_compactions();
        Ok(())
    }

    fn Java_org_rocksdb_RocksDB_resumeAllCompactions(env, db: jlong) {
        handles::hold::<Database>(db)?.open()?.resume_all_compactions();
        Ok(())
    }

    fn Java_org_rocksdb_RocksDB_disableFileDeletions(env, db: jlong) {
        handles::hold::<Database>(db)?.open()?.disable_file_deletions();
        Ok(())
    }

    fn Java_org_rocksdb_RocksDB_numberLevels(env, db: jlong, family: jlong) -> jint {
        let levels = |f: &FamilyHandle| f.options().num_levels;
        handles::hold::<Database>(db)?.with_family(family, |_, f| Ok(levels(f) as jint))
    }

    /// RocksDB keeps the method for programs of long ago: always 0.
    fn Java_org_rocksdb_RocksDB_maxMemCompactionLevel(env, db: jlong, family: jlong) -> jint {
        handles::hold::<Database>(db)?.with_family(family, |_, _| Ok(0))
    }

    fn Java_org_rocksdb_RocksDB_level0StopWriteTrigger(env, db: jlong, family: jlong) -> jint {
        let trigger = |f: &FamilyHandle| f.options().level0_stop_writes_trigger;
        handles::hold::<Database>(db)?.with_family(family, |_, f| Ok(trigger(f) as jint))
    }

    fn Java_org_rocksdb_RocksDB_enableFileDeletions__J(env, db: jlong) {
        handles::hold::<Database>(db)?.open()?.enable_file_deletions(false);
        Ok(())
    }

    fn Java_org_rocksdb_RocksDB_enableFileDeletions__JZ(env, db: jlong, force: bool) {
        handles::hold::<Database>(db)?.open()?.enable_file_deletions(force);
        Ok(())
    }

    fn Java_org_rocksdb_RocksDB_tryCatchUpWithPrimary(env, db: jlong) {
        Ok(handles::hold::<Database>(db)?.open()?.try_catch_up_with_primary()?)
    }

    fn Java_org_rocksdb_RocksDB_verifyChecksum(env, db: jlong) {
        Ok(handles::hold::<Database>(db)?.open()?.verify_checksums()?)
    }

    fn Java_org_rocksdb_RocksDB_resetStats(env, db: jlong) {
        handles::hold::<Database>(db)?.open()?.reset_stats();
        Ok(())
    }

    fn Java_org_rocksdb_RocksDB_promoteL0(env, db: jlong, family: jlong, level: jint) {
        let database = handles::hold::<Database>(db)?;
        let level = u8::try_from(level).map_err(|_| {
            Error::invalid_argument(format!("Target level {level} does not exist"))
        })?;
        database.with_family(family, |db, family| Ok(db.promote_l0(family, level)?))
    }

    /// All keys are suggested; the slices that are answered have no bytes, as in RocksDB.
    fn Java_org_rocksdb_RocksDB_suggestCompactRange(env, db: jlong, family: jlong) -> jobject {
        let database = handles::hold::<Database>(db)?;
        database.with_family(family, |db, f| Ok(db.suggest_compact_range(f, None, None)?))?;
        env.new_longs(&[slice_of(Some(&[])), slice_of(Some(&[]))])
    }

    fn Java_org_rocksdb_RocksDB_getOptions(env, db: jlong, family: jlong) -> jobject {
        let database = handles::hold::<Database>(db)?;
        let text = database.with_family(family, |_, f| Ok(in_words(&f.options())))?;
        env.string(&text)
    }

    fn Java_org_rocksdb_RocksDB_getDBOptions(env, db: jlong) -> jobject {
        let database = handles::hold::<Database>(db)?;
        let db = database.open()?;
        if db.is_read_only() {
            return Err(not_supported("RocksDB.getDBOptions of a database opened for reading").into());
        }
        // Written when it was opened, and whenever they change.
        let rules = LoadRules { ignore_unknown: true, strict: false };
        let options = esker::load_latest_options(db.path(), db.env(), rules)?;
        env.string(&in_words(&options.db))
    }

    fn Java_org_rocksdb_RocksDB_enableAutoCompaction(env, db: jlong, families: jobject) {
        let database = handles::hold::<Database>(db)?;
        let db = database.open()?;
        for family in database.families(&env.longs(families)?)? {
            db.set_options(&family, &[("disable_auto_compactions", "false")])?;
        }
        Ok(())
    }

    fn Java_org_rocksdb_RocksDB_setOptions(
        env, db: jlong, family: jlong, keys: jobject, values: jobject
    ) {
        let keys = env.each(keys, |k| env.text(k))?;
        let values = env.each(values, |v| env.text(v))?;
        let changes: Vec<(&str, &str)> = pairs(&keys, &values);
        let database = handles::hold::<Database>(db)?;
        database.with_family(family, |db, family| Ok(db.set_options(family, &changes)?))
    }

    fn Java_org_rocksdb_RocksDB_setDBOptions(env, db: jlong, keys: jobject, values: jobject) {
        let keys = env.each(keys, |k| env.text(k))?;
        let values = env.each(values, |v| env.text(v))?;
        let changes: Vec<(&str, &str)> = pairs(&keys, &values);
        Ok(handles::hold::<Database>(db)?.open()?.set_db_options(&changes)?)
    }

    fn Java_org_rocksdb_RocksDB_iterator__J(env, db: jlong) -> jlong {
        crate::iterator::over(db, 0, None)
    }

    fn Java_org_rocksdb_RocksDB_iterator__JJ(env, db: jlong, options: jlong) -> jlong {
        let state = value::<ReadState>(options)?;
        crate::iterator::over(db, 0, Some(&state))
    }

    fn Java_org_rocksdb_RocksDB_iteratorCF__JJ(env, db: jlong, family: jlong) -> jlong {
        crate::iterator::over(db, family, None)
    }

    fn Java_org_rocksdb_RocksDB_iterator__JJJ | Java_org_rocksdb_RocksDB_iteratorCF__JJJ(
        env, db: jlong, family: jlong, options: jlong
    ) -> jlong {
        let state = value::<ReadState>(options)?;
        crate::iterator::over(db, family, Some(&state))
    }
}

fn pairs<'a>(keys: &'a [String], values: &'a [String]) -> Vec<(&'a str, &'a str)> {
    let both = keys.iter().zip(values);
    both.map(|(k, v)| (k.as_str(), v.as_str())).collect()
}
