//! Databases with transactions, of both kinds, and how their transactions begin.

use crate::boundary::{Env, Outcome, handles};
use crate::database::{Database, Transactions};
use crate::filters;
use crate::open::{default_only, described, names_of, to_open, with_families};
use crate::shared::{SharedValue, change, give, value};
use crate::transaction::Txn;
use crate::{disposals, natives};
use esker::{FamilyDescriptor, Options, WriteOptions};
use esker_txn::{
    DeadlockPath, OptimisticTransactionDb, OptimisticTransactionDbOptions,
    OptimisticTransactionOptions, Transaction, TransactionDb, TransactionDbOptions,
    TransactionOptions, TransactionState, WritePolicy,
};
use jni_sys::{jbyte, jint, jlong, jobject, jvalue};

fn locking<R>(db: jlong, body: impl FnOnce(&TransactionDb) -> Outcome<R>) -> Outcome<R> {
    let database = handles::hold::<Database>(db)?;
    database.open()?;
    match &database.transactions {
        Transactions::Locking(locking) => body(locking),
        _ => Err(crate::boundary::stale(db, "TransactionDB")),
    }
}

fn optimistic<R>(
    db: jlong,
    body: impl FnOnce(&OptimisticTransactionDb) -> Outcome<R>,
) -> Outcome<R> {
    let database = handles::hold::<Database>(db)?;
    database.open()?;
    match &database.transactions {
        Transactions::Optimistic(optimistic) => body(optimistic),
        _ => Err(crate::boundary::stale(db, "OptimisticTransactionDB")),
    }
}

/// How transactions work.
fn how(options: jlong) -> Outcome<TransactionDbOptions> {
    Ok(TransactionDbOptions::clone(
        &*value::<TransactionDbOptions>(options)?,
    ))
}

/// A database whose transactions lock keys, opened as `options` say.
fn over_locking(
    path: &str,
    options: Options,
    families: Vec<FamilyDescriptor>,
    transactions: jlong,
) -> Outcome<Database> {
    let transactions = how(transactions)?;
    let space = options.db.sst_file_manager.clone();
    let db = TransactionDb::open_families(path, options, families, transactions)?;
    let database = Database::new(db.base().clone(), Transactions::Locking(db));
    Ok(database.watched(space))
}

/// A database whose transactions look for conflicts, opened as `options` say.
fn over_optimistic(
    path: &str,
    options: Options,
    families: Vec<FamilyDescriptor>,
) -> Outcome<Database> {
    let how = OptimisticTransactionDbOptions::default();
    let space = options.db.sst_file_manager.clone();
    let db = OptimisticTransactionDb::open_families(path, options, families, &how)?;
    let database = Database::new(db.base().clone(), Transactions::Optimistic(db));
    Ok(database.watched(space))
}

fn begin_locking(db: jlong, write: jlong, options: &TransactionOptions) -> Outcome<jlong> {
    let write = **value::<WriteOptions>(write)?;
    locking(db, |locking| {
        let txn = locking.begin_opt(write, options);
        Ok(Txn::give(txn, db, options.deadlock_detect))
    })
}

fn begin_optimistic(
    db: jlong,
    write: jlong,
    options: OptimisticTransactionOptions,
) -> Outcome<jlong> {
    let write = **value::<WriteOptions>(write)?;
    optimistic(db, |optimistic| {
        Ok(Txn::give(optimistic.begin_opt(write, options), db, false))
    })
}

/// Begins anew in the memory of an old transaction, whose handle stays.
fn renew(old: jlong, detects: bool, how: impl FnOnce(&mut Transaction)) -> Outcome<jlong> {
    let held = handles::hold::<Txn>(old)?;
    let mut txn = held.txn.lock();
    how(&mut txn);
    held.renewed(detects);
    Ok(old)
}

/// Gives Java what was prepared before the database was opened, once.
fn restore(db: jlong) -> Outcome<()> {
    let found = locking(db, |locking| Ok(locking.prepared_transactions()?))?;
    let database = handles::hold::<Database>(db)?;
    for txn in found {
        let name = String::from_utf8_lossy(txn.name()).into_owned();
        database
            .named
            .add(name, Txn::give(txn, db, false), Txn::is_there);
    }
    Ok(())
}

/// The state of a transaction that is not gone.
fn state(txn: jlong) -> Option<TransactionState> {
    let state = handles::find::<Txn>(txn)?.txn.lock().state();
    Some(state)
}

natives! {
    fn Java_org_rocksdb_TransactionDB_open__JJLjava_lang_String_2(
        env, options: jlong, transactions: jlong, path: jobject
    ) -> jlong {
        let options = to_open(env, options)?;
        let families = default_only(&options);
        Ok(handles::give(over_locking(&env.text(path)?, options, families, transactions)?))
    }

    fn Java_org_rocksdb_TransactionDB_open__JJLjava_lang_String_2_3_3B_3J(
        env, options: jlong, transactions: jlong, path: jobject, names: jobject,
        family_options: jobject
    ) -> jobject {
        let options = to_open(env, options)?;
        let families = described(env, names, family_options)?;
        let names = names_of(&families);
        let database = over_locking(&env.text(path)?, options, families, transactions)?;
        with_families(env, database, &names)
    }

    fn Java_org_rocksdb_OptimisticTransactionDB_open__JLjava_lang_String_2(
        env, options: jlong, path: jobject
    ) -> jlong {
        let options = to_open(env, options)?;
        let families = default_only(&options);
        Ok(handles::give(over_optimistic(&env.text(path)?, options, families)?))
    }

    fn Java_org_rocksdb_OptimisticTransactionDB_open__JLjava_lang_String_2_3_3B_3J(
        env, options: jlong, path: jobject, names: jobject, family_options: jobject
    ) -> jobject {
        let options = to_open(env, options)?;
        let families = described(env, names, family_options)?;
        let names = names_of(&families);
        with_families(env, over_optimistic(&env.text(path)?, options, families)?, &names)
    }

    fn Java_org_rocksdb_TransactionDB_beginTransaction__JJ(env, db: jlong, write: jlong) -> jlong {
        begin_locking(db, write, &TransactionOptions::default())
    }

    fn Java_org_rocksdb_TransactionDB_beginTransaction__JJJ(
        env, db: jlong, write: jlong, options: jlong
    ) -> jlong {
        begin_locking(db, write, &*value::<TransactionOptions>(options)?)
    }

    fn Java_org_rocksdb_TransactionDB_beginTransaction_1withOld__JJJ(
        env, db: jlong, write: jlong, old: jlong
    ) -> jlong {
        let write = **value::<WriteOptions>(write)?;
        locking(db, |locking| {
            renew(old, false, |t| locking.begin_again(t, write, &TransactionOptions::default()))
        })
    }

    fn Java_org_rocksdb_TransactionDB_beginTransaction_1withOld__JJJJ(
        env, db: jlong, write: jlong, options: jlong, old: jlong
    ) -> jlong {
        let write = **value::<WriteOptions>(write)?;
        let options = value::<TransactionOptions>(options)?;
        locking(db, |locking| {
            renew(old, options.deadlock_detect, |t| locking.begin_again(t, write, &options))
        })
    }

    fn Java_org_rocksdb_OptimisticTransactionDB_beginTransaction__JJ(
        env, db: jlong, write: jlong
    ) -> jlong {
        begin_optimistic(db, write, OptimisticTransactionOptions::default())
    }

    fn Java_org_rocksdb_OptimisticTransactionDB_beginTransaction__JJJ(
        env, db: jlong, write: jlong, options: jlong
    ) -> jlong {
        begin_optimistic(db, write, **value::<OptimisticTransactionOptions>(options)?)
    }

    fn Java_org_rocksdb_OptimisticTransactionDB_beginTransaction_1withOld__JJJ(
        env, db: jlong, write: jlong, old: jlong
    ) -> jlong {
        let write = **value::<WriteOptions>(write)?;
        let options = OptimisticTransactionOptions::default();
        optimistic(db, |o| renew(old, false, |t| o.begin_again(t, write, options)))
    }

    fn Java_org_rocksdb_OptimisticTransactionDB_beginTransaction_1withOld__JJJJ(
        env, db: jlong, write: jlong, options: jlong, old: jlong
    ) -> jlong {
        let write = **value::<WriteOptions>(write)?;
        let options = **value::<OptimisticTransactionOptions>(options)?;
        optimistic(db, |o| renew(old, false, |t| o.begin_again(t, write, options)))
    }

    /// The database below: what is written to it takes no part in transactions.
    fn Java_org_rocksdb_OptimisticTransactionDB_getBaseDB(env, db: jlong) -> jlong {
        let database = handles::hold::<Database>(db)?;
        let below = database.open()?.clone();
        let make = || handles::give_owned(Database::below(below, Transactions::None), db);
        Ok(*database.base.get_or_init(make))
    }

    /// 0 for a name that no transaction has, or one that has ended.
    fn Java_org_rocksdb_TransactionDB_getTransactionByName(
        env, db: jlong, name: jobject
    ) -> jlong {
        let name = env.text(name)?;
        restore(db)?;
        let database = handles::hold::<Database>(db)?;
        let all = database.named.handles();
        let known = all.into_iter().find(|(known, _)| *known == name);
        Ok(known.map_or(0, |(_, txn)| match state(txn) {
            None | Some(TransactionState::Committed | TransactionState::RolledBack) => 0,
            Some(_) => txn,
        }))
    }

    fn Java_org_rocksdb_TransactionDB_getAllPreparedTransactions(env, db: jlong) -> jobject {
        restore(db)?;
        let all = handles::hold::<Database>(db)?.named.handles();
        let is_prepared = |txn: &jlong| state(*txn) == Some(TransactionState::Prepared);
        let all: Vec<jlong> = all.into_iter().map(|(_, txn)| txn).filter(is_prepared).collect();
        env.new_longs(&all)
    }

    /// By the number of the family.
    fn Java_org_rocksdb_TransactionDB_getLockStatusData(env, db: jlong) -> jobject {
        let locks = locking(db, |locking| Ok(locking.lock_status()))?;
        env.reserve(locks.len() * 4 + 16)?;
        let mut entries = Vec::new();
        for lock in locks {
            let holders: Vec<jlong> = lock.holders.iter().map(|id| *id as jlong).collect();
            let arguments = [
                jvalue { l: env.string(&String::from_utf8_lossy(&lock.key))? },
                jvalue { l: env.new_longs(&holders)? },
                jvalue { z: lock.exclusive },
            ];
            let class = "org/rocksdb/TransactionDB$KeyLockInfo";
            let info = env.construct(class, "(Ljava/lang/String;[JZ)V", &arguments)?;
            entries.push((env.long(u64::from(lock.family))?, info));
        }
        env.map(&entries)
    }

    fn Java_org_rocksdb_TransactionDB_getDeadlockInfoBuffer(env, db: jlong) -> jobject {
        let found = locking(db, |locking| Ok(locking.deadlocks()))?;
        env.objects("org/rocksdb/TransactionDB$DeadlockPath", found.len(), |at| {
            deadlock(env, &found[at])
        })
    }

    fn Java_org_rocksdb_TransactionDB_setDeadlockInfoBufferSize(env, db: jlong, size: jint) {
        let size = u32::try_from(size).unwrap_or(0);
        locking(db, |locking| {
            locking.set_max_num_deadlocks(size);
            Ok(())
        })
    }

    fn Java_org_rocksdb_TransactionDBOptions_newTransactionDBOptions(env) -> jlong {
        Ok(give(TransactionDbOptions::default()))
    }

    fn Java_org_rocksdb_TransactionDBOptions_getWritePolicy(env, o: jlong) -> jbyte {
        Ok(value::<TransactionDbOptions>(o)?.write_policy as jbyte)
    }

    fn Java_org_rocksdb_TransactionDBOptions_setWritePolicy(env, o: jlong, policy: jbyte) {
        change::<TransactionDbOptions>(o, |o| {
            o.write_policy = match policy {
                1 => WritePolicy::Prepared,
                2 => WritePolicy::Unprepared,
                _ => WritePolicy::Committed,
            };
        })
    }

    fn Java_org_rocksdb_TransactionOptions_newTransactionOptions(env) -> jlong {
        Ok(give(TransactionOptions::default()))
    }

    fn Java_org_rocksdb_OptimisticTransactionOptions_newOptimisticTransactionOptions(
        env
    ) -> jlong {
        Ok(give(OptimisticTransactionOptions::default()))
    }

    /// The changes of a transaction stand in the order of their families, whatever is said here.
    fn Java_org_rocksdb_OptimisticTransactionOptions_setComparator(
        env, o: jlong, comparator: jlong
    ) {
        filters::order(comparator)?;
        value::<OptimisticTransactionOptions>(o)?;
        Ok(())
    }
}

fn deadlock(env: Env<'_>, path: &DeadlockPath) -> Outcome<jobject> {
    let class = "org/rocksdb/TransactionDB$DeadlockInfo";
    let infos = env.objects(class, path.path.len(), |at| {
        let info = &path.path[at];
        let arguments = [
            jvalue {
                j: info.transaction as jlong,
            },
            jvalue {
                j: jlong::from(info.family),
            },
            jvalue {
                l: env.string(&String::from_utf8_lossy(&info.waiting_key))?,
            },
            jvalue { z: info.exclusive },
        ];
        env.construct(class, "(JJLjava/lang/String;Z)V", &arguments)
    })?;
    let arguments = [
        jvalue { l: infos },
        jvalue {
            z: path.limit_exceeded,
        },
    ];
    let descriptor = "([Lorg/rocksdb/TransactionDB$DeadlockInfo;Z)V";
    env.construct(
        "org/rocksdb/TransactionDB$DeadlockPath",
        descriptor,
        &arguments,
    )
}

disposals! {
    SharedValue<TransactionDbOptions>: Java_org_rocksdb_TransactionDBOptions_disposeInternal
        | Java_org_rocksdb_TransactionDBOptions_disposeInternalJni;
    SharedValue<TransactionOptions>: Java_org_rocksdb_TransactionOptions_disposeInternal
        | Java_org_rocksdb_TransactionOptions_disposeInternalJni;
    SharedValue<OptimisticTransactionOptions>:
        Java_org_rocksdb_OptimisticTransactionOptions_disposeInternal
        | Java_org_rocksdb_OptimisticTransactionOptions_disposeInternalJni;
}
