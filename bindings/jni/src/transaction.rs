//! Transactions of both kinds: Java has one class for them.

use crate::batch::{Batch, IndexedBatch};
use crate::boundary::{Env, Method, Outcome, handles, upcall::Target};
use crate::call_options::ReadState;
use crate::database::{Database, Family, other_database};
use crate::iterator::{Iter, Walk};
use crate::natives;
use crate::refusal::not_supported;
use crate::shared::{ExclusiveValue, change, dispose, give_owned, value};
use crate::snapshot::SharedSnapshot;
use esker::{FamilyHandle, PinnedValue, ReadOptions, Snapshot, WriteOptions};
use esker_sync::atomic::{AtomicBool, AtomicI64, Ordering};
use esker_sync::{Arc, Mutex, Rank};
use esker_txn::{Transaction, TransactionState};
use jni_sys::{jbyte, jint, jlong, jobject, jvalue};

/// A transaction that Java holds.
pub(crate) struct Txn {
    pub(crate) txn: ExclusiveValue<Transaction>,
    default: FamilyHandle,
    /// The handle of its database.
    owner: jlong,
    pub(crate) detects_deadlocks: AtomicBool,
    /// The log that has it prepared, as Java said it; `None` where only the engine knows.
    log_number: Mutex<Option<jlong>>,
    lent: PartHandles,
    due: Arc<PendingNotifications>,
}

/// Handles of parts of a transaction, which go with it; 0 for those that nobody asked for.
#[derive(Default)]
struct PartHandles {
    snapshot: AtomicI64,
    batch: AtomicI64,
    options: AtomicI64,
}

impl PartHandles {
    fn give_back(&self) {
        for lent in [&self.snapshot, &self.batch, &self.options] {
            handles::take(lent.swap(0, Ordering::Relaxed));
        }
    }
}

impl Drop for PartHandles {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// A Java object that wants to know of a snapshot, and its method.
type SnapshotNotifier = Arc<(Target, Method)>;

/// A notifier behind a handle.
pub(crate) struct Notifier(SnapshotNotifier);

/// Snapshots that were taken, and whom to tell once the transaction is free again: what is told may
/// use it.
struct PendingNotifications {
    is_any: AtomicBool,
    told: Mutex<Vec<(Snapshot, SnapshotNotifier)>>,
}

impl Txn {
    /// Returns whether a handle is that of a transaction.
    pub(crate) fn is_there(txn: jlong) -> bool {
        handles::find::<Txn>(txn).is_some()
    }

    /// Gives Java a transaction of the database behind `owner`.
    pub(crate) fn give(txn: Transaction, owner: jlong, detects_deadlocks: bool) -> jlong {
        let default = txn.db().default_family_handle();
        let log_number = (txn.state() != TransactionState::Prepared).then_some(0);
        handles::give_owned(
            Txn {
                txn: ExclusiveValue::new(txn),
                default,
                owner,
                detects_deadlocks: AtomicBool::new(detects_deadlocks),
                log_number: Mutex::new(Rank::LEAF, log_number),
                lent: PartHandles::default(),
                due: Arc::new(PendingNotifications {
                    is_any: AtomicBool::new(false),
                    told: Mutex::new(Rank::LEAF, Vec::new()),
                }),
            },
            owner,
        )
    }

    /// The transaction began anew: what was lent of it is no longer its.
    pub(crate) fn renewed(&self, detects_deadlocks: bool) {
        self.detects_deadlocks
            .store(detects_deadlocks, Ordering::Relaxed);
        *self.log_number.lock() = Some(0);
        self.lent.give_back();
    }

    /// The family behind a handle, which must be of the transaction's database.
    fn family(&self, txn: &Transaction, family: jlong) -> Outcome<FamilyHandle> {
        if family == 0 {
            return Ok(self.default.clone());
        }
        let family = handles::hold::<Family>(family)?;
        if !txn.db().owns(&family.0) {
            return Err(other_database(&family.0));
        }
        Ok(family.0.clone())
    }

    fn tell(&self) -> Outcome<()> {
        if !self.due.is_any.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let due = std::mem::take(&mut *self.due.told.lock());
        for (snapshot, notifier) in due {
            let handle = self.lend_snapshot(&snapshot);
            let (target, method) = &*notifier;
            target
                .calling(|env, object| env.call_void(object, *method, &[jvalue { j: handle }]))?;
        }
        Ok(())
    }

    /// The handle of a snapshot of this transaction's: the same one for the same snapshot.
    fn lend_snapshot(&self, snapshot: &Snapshot) -> jlong {
        let known = self.lent.snapshot.load(Ordering::Relaxed);
        if let Some(moment) = handles::find::<SharedSnapshot>(known)
            && moment.0.sequence() == snapshot.sequence()
        {
            return known;
        }
        let made = handles::give_owned(SharedSnapshot(snapshot.clone()), self.owner);
        handles::take(self.lent.snapshot.swap(made, Ordering::Relaxed));
        made
    }
}

/// Uses a transaction.
fn on<R>(txn: jlong, body: impl FnOnce(&Txn, &mut Transaction) -> Outcome<R>) -> Outcome<R> {
    let held = handles::hold::<Txn>(txn)?;
    let outcome = body(&held, &mut held.txn.lock());
    held.tell()?;
    outcome
}

/// Uses a transaction in one family.
fn within<R>(
    txn: jlong,
    family: jlong,
    body: impl FnOnce(&mut Transaction, &FamilyHandle) -> esker::Result<R>,
) -> Outcome<R> {
    on(txn, |held, txn| {
        let family = held.family(txn, family)?;
        Ok(body(txn, &family)?)
    })
}

/// Key or value that comes in parts.
fn joined(env: Env<'_>, parts: jobject) -> Outcome<Vec<u8>> {
    Ok(env.each(parts, |part| env.array(part))?.concat())
}

/// Changes of a key and a value: of arrays, with and without a family, and of parts.
macro_rules! two {
    ($($method:ident: $($name:ident)|+ [$($named:ident)|+];)*) => {$(natives! {
        fn $($name)|+(
            env, txn: jlong, key: jobject, at: jint, n: jint, value: jobject, from: jint, m: jint
        ) {
            let (key, value) = (env.region(key, at, n)?, env.region(value, from, m)?);
            within(txn, 0, |t, family| t.$method(family, &key, &value))
        }

        fn $($named)|+(
            env, txn: jlong, key: jobject, at: jint, n: jint, value: jobject, from: jint, m: jint,
            family: jlong, _tracked: bool
        ) {
            let (key, value) = (env.region(key, at, n)?, env.region(value, from, m)?);
            within(txn, family, |t, family| t.$method(family, &key, &value))
        }
    })*};
}

/// Changes of a key and a value as jars before 8.10 have them, and untracked ones.
macro_rules! two_whole {
    ($($method:ident: $($name:ident)|+ [$($named:ident)|+];)*) => {$(natives! {
        fn $($name)|+(env, txn: jlong, key: jobject, n: jint, value: jobject, m: jint) {
            let (key, value) = (env.region(key, 0, n)?, env.region(value, 0, m)?);
            within(txn, 0, |t, family| t.$method(family, &key, &value))
        }

        fn $($named)|+(
            env, txn: jlong, key: jobject, n: jint, value: jobject, m: jint, family: jlong
        ) {
            let (key, value) = (env.region(key, 0, n)?, env.region(value, 0, m)?);
            within(txn, family, |t, family| t.$method(family, &key, &value))
        }
    })*};
}

/// Changes of a key: whole, and in parts.
macro_rules! one {
    ($($method:ident: $name:ident, $named:ident, $parts:ident, $both:ident;)*) => {$(natives! {
        fn $name(env, txn: jlong, key: jobject, n: jint) {
            let key = env.region(key, 0, n)?;
            within(txn, 0, |t, family| t.$method(family, &key))
        }

        fn $named(env, txn: jlong, key: jobject, n: jint, family: jlong, _tracked: bool) {
            let key = env.region(key, 0, n)?;
            within(txn, family, |t, family| t.$method(family, &key))
        }

        fn $parts(env, txn: jlong, key: jobject, _count: jint) {
            let key = joined(env, key)?;
            within(txn, 0, |t, family| t.$method(family, &key))
        }

        fn $both(env, txn: jlong, key: jobject, _count: jint, family: jlong, _tracked: bool) {
            let key = joined(env, key)?;
            within(txn, family, |t, family| t.$method(family, &key))
        }
    })*};
}

two! {
    put_cf: Java_org_rocksdb_Transaction_put__J_3BII_3BII
        [Java_org_rocksdb_Transaction_put__J_3BII_3BIIJZ];
    merge_cf: Java_org_rocksdb_Transaction_merge__J_3BII_3BII
        [Java_org_rocksdb_Transaction_merge__J_3BII_3BIIJZ];
}

two_whole! {
    put_untracked: Java_org_rocksdb_Transaction_putUntracked__J_3BI_3BI
        [Java_org_rocksdb_Transaction_putUntracked__J_3BI_3BIJ];
    merge_untracked: Java_org_rocksdb_Transaction_mergeUntracked__J_3BI_3BI
        [Java_org_rocksdb_Transaction_mergeUntracked__J_3BI_3BIJ];
}

one! {
    delete_cf: Java_org_rocksdb_Transaction_delete__J_3BI,
        Java_org_rocksdb_Transaction_delete__J_3BIJZ, Java_org_rocksdb_Transaction_delete__J_3_3BI,
        Java_org_rocksdb_Transaction_delete__J_3_3BIJZ;
    single_delete_cf: Java_org_rocksdb_Transaction_singleDelete__J_3BI,
        Java_org_rocksdb_Transaction_singleDelete__J_3BIJZ,
        Java_org_rocksdb_Transaction_singleDelete__J_3_3BI,
        Java_org_rocksdb_Transaction_singleDelete__J_3_3BIJZ;
}

// A key that is said to be tracked is tracked again, which changes nothing.
natives! {
    fn Java_org_rocksdb_Transaction_put__J_3BI_3BI(
        env, txn: jlong, key: jobject, n: jint, value: jobject, m: jint
    ) {
        let (key, value) = (env.region(key, 0, n)?, env.region(value, 0, m)?);
        within(txn, 0, |t, family| t.put_cf(family, &key, &value))
    }

    fn Java_org_rocksdb_Transaction_put__J_3BI_3BIJZ(
        env, txn: jlong, key: jobject, n: jint, value: jobject, m: jint, family: jlong,
        _tracked: bool
    ) {
        let (key, value) = (env.region(key, 0, n)?, env.region(value, 0, m)?);
        within(txn, family, |t, family| t.put_cf(family, &key, &value))
    }

    fn Java_org_rocksdb_Transaction_merge__J_3BI_3BI(
        env, txn: jlong, key: jobject, n: jint, value: jobject, m: jint
    ) {
        let (key, value) = (env.region(key, 0, n)?, env.region(value, 0, m)?);
        within(txn, 0, |t, family| t.merge_cf(family, &key, &value))
    }

    fn Java_org_rocksdb_Transaction_merge__J_3BI_3BIJZ(
        env, txn: jlong, key: jobject, n: jint, value: jobject, m: jint, family: jlong,
        _tracked: bool
    ) {
        let (key, value) = (env.region(key, 0, n)?, env.region(value, 0, m)?);
        within(txn, family, |t, family| t.merge_cf(family, &key, &value))
    }

    fn Java_org_rocksdb_Transaction_put__J_3_3BI_3_3BI(
        env, txn: jlong, key: jobject, _keys: jint, value: jobject, _values: jint
    ) {
        let (key, value) = (joined(env, key)?, joined(env, value)?);
        within(txn, 0, |t, family| t.put_cf(family, &key, &value))
    }

    fn Java_org_rocksdb_Transaction_put__J_3_3BI_3_3BIJZ(
        env, txn: jlong, key: jobject, _keys: jint, value: jobject, _values: jint, family: jlong,
        _tracked: bool
    ) {
        let (key, value) = (joined(env, key)?, joined(env, value)?);
        within(txn, family, |t, family| t.put_cf(family, &key, &value))
    }

    fn Java_org_rocksdb_Transaction_putUntracked__J_3_3BI_3_3BI(
        env, txn: jlong, key: jobject, _keys: jint, value: jobject, _values: jint
    ) {
        let (key, value) = (joined(env, key)?, joined(env, value)?);
        within(txn, 0, |t, family| t.put_untracked(family, &key, &value))
    }

    fn Java_org_rocksdb_Transaction_putUntracked__J_3_3BI_3_3BIJ(
        env, txn: jlong, key: jobject, _keys: jint, value: jobject, _values: jint, family: jlong
    ) {
        let (key, value) = (joined(env, key)?, joined(env, value)?);
        within(txn, family, |t, family| t.put_untracked(family, &key, &value))
    }

    fn Java_org_rocksdb_Transaction_putDirect__JLjava_nio_ByteBuffer_2IILjava_nio_ByteBuffer_2II(
        env, txn: jlong, key: jobject, at: jint, n: jint, value: jobject, from: jint, m: jint
    ) {
        let (key, value) = (env.direct(key, at, n)?, env.direct(value, from, m)?);
        within(txn, 0, |t, family| t.put_cf(family, key, value))
    }

    fn Java_org_rocksdb_Transaction_putDirect__JLjava_nio_ByteBuffer_2IILjava_nio_ByteBuffer_2IIJZ(
        env, txn: jlong, key: jobject, at: jint, n: jint, value: jobject, from: jint, m: jint,
        family: jlong, _tracked: bool
    ) {
        let (key, value) = (env.direct(key, at, n)?, env.direct(value, from, m)?);
        within(txn, family, |t, family| t.put_cf(family, key, value))
    }

    fn Java_org_rocksdb_Transaction_mergeDirect__JLjava_nio_ByteBuffer_2IILjava_nio_ByteBuffer_2II(
        env, txn: jlong, key: jobject, at: jint, n: jint, value: jobject, from: jint, m: jint
    ) {
        let (key, value) = (env.direct(key, at, n)?, env.direct(value, from, m)?);
        within(txn, 0, |t, family| t.merge_cf(family, key, value))
    }

    fn Java_org_rocksdb_Transaction_mergeDirect__JLjava_nio_ByteBuffer_2IILjava_nio_ByteBuffer_2IIJZ(
        env, txn: jlong, key: jobject, at: jint, n: jint, value: jobject, from: jint, m: jint,
        family: jlong, _tracked: bool
    ) {
        let (key, value) = (env.direct(key, at, n)?, env.direct(value, from, m)?);
        within(txn, family, |t, family| t.merge_cf(family, key, value))
    }

    fn Java_org_rocksdb_Transaction_mergeUntracked__J_3BII_3BIIJ(
        env, txn: jlong, key: jobject, at: jint, n: jint, value: jobject, from: jint, m: jint,
        family: jlong
    ) {
        let (key, value) = (env.region(key, at, n)?, env.region(value, from, m)?);
        within(txn, family, |t, family| t.merge_untracked(family, &key, &value))
    }

    fn Java_org_rocksdb_Transaction_mergeUntrackedDirect(
        env, txn: jlong, key: jobject, at: jint, n: jint, value: jobject, from: jint, m: jint,
        family: jlong
    ) {
        let (key, value) = (env.direct(key, at, n)?, env.direct(value, from, m)?);
        within(txn, family, |t, family| t.merge_untracked(family, key, value))
    }

    fn Java_org_rocksdb_Transaction_deleteUntracked__J_3BI(
        env, txn: jlong, key: jobject, n: jint
    ) {
        let key = env.region(key, 0, n)?;
        within(txn, 0, |t, family| t.delete_untracked(family, &key))
    }

    fn Java_org_rocksdb_Transaction_deleteUntracked__J_3BIJ(
        env, txn: jlong, key: jobject, n: jint, family: jlong
    ) {
        let key = env.region(key, 0, n)?;
        within(txn, family, |t, family| t.delete_untracked(family, &key))
    }

    fn Java_org_rocksdb_Transaction_deleteUntracked__J_3_3BI(
        env, txn: jlong, key: jobject, _count: jint
    ) {
        let key = joined(env, key)?;
        within(txn, 0, |t, family| t.delete_untracked(family, &key))
    }

    fn Java_org_rocksdb_Transaction_deleteUntracked__J_3_3BIJ(
        env, txn: jlong, key: jobject, _count: jint, family: jlong
    ) {
        let key = joined(env, key)?;
        within(txn, family, |t, family| t.delete_untracked(family, &key))
    }

    fn Java_org_rocksdb_Transaction_putLogData(env, txn: jlong, data: jobject, n: jint) {
        let data = env.region(data, 0, n)?;
        on(txn, |_, t| Ok(t.log_data(&data)?))
    }

    fn Java_org_rocksdb_Transaction_undoGetForUpdate__J_3BI(
        env, txn: jlong, key: jobject, n: jint
    ) {
        let key = env.region(key, 0, n)?;
        within(txn, 0, |t, family| {
            t.undo_get_for_update(family, &key);
            Ok(())
        })
    }

    fn Java_org_rocksdb_Transaction_undoGetForUpdate__J_3BIJ(
        env, txn: jlong, key: jobject, n: jint, family: jlong
    ) {
        let key = env.region(key, 0, n)?;
        within(txn, family, |t, family| {
            t.undo_get_for_update(family, &key);
            Ok(())
        })
    }

    fn Java_org_rocksdb_Transaction_rebuildFromWriteBatch(env, txn: jlong, batch: jlong) {
        let batch = handles::hold::<Batch>(batch)?.lock().batch.clone();
        on(txn, |_, t| Ok(t.rebuild_from_batch(&batch)?))
    }

    fn Java_org_rocksdb_Transaction_getIterator__JJ(env, txn: jlong, options: jlong) -> jlong {
        iterator(txn, options, 0)
    }

    fn Java_org_rocksdb_Transaction_getIterator__JJJ(
        env, txn: jlong, options: jlong, family: jlong
    ) -> jlong {
        iterator(txn, options, family)
    }

    fn Java_org_rocksdb_AbstractTransactionNotifier_createNewTransactionNotifier(env) -> jlong {
        let class = env.class("org/rocksdb/AbstractTransactionNotifier")?;
        let method = env.method(class, "snapshotCreated", "(J)V")?;
        let target = Target::new(env, env.this())?;
        Ok(handles::give(Notifier(Arc::new((target, method)))))
    }

    fn Java_org_rocksdb_Transaction_setSnapshotOnNextOperation__JJ(
        env, txn: jlong, notifier: jlong
    ) {
        let notifier = Arc::clone(&handles::hold::<Notifier>(notifier)?.0);
        on(txn, |held, t| {
            let due = Arc::clone(&held.due);
            t.set_snapshot_on_next_operation_and_notify(move |snapshot| {
                due.told.lock().push((snapshot.clone(), Arc::clone(&notifier)));
                due.is_any.store(true, Ordering::Relaxed);
            });
            Ok(())
        })
    }

    fn Java_org_rocksdb_Transaction_getSnapshot(env, txn: jlong) -> jlong {
        on(txn, |held, t| Ok(t.snapshot().map_or(0, |s| held.lend_snapshot(s))))
    }

    /// The transaction's own batch, which goes with it.
    fn Java_org_rocksdb_Transaction_getWriteBatch(env, txn: jlong) -> jlong {
        on(txn, |held, t| {
            let known = held.lent.batch.load(Ordering::Relaxed);
            if known != 0 {
                return Ok(known);
            }
            let batch = IndexedBatch::new(t.indexed_batch().clone());
            let made = handles::give_owned(batch, held.owner);
            held.lent.batch.store(made, Ordering::Relaxed);
            Ok(made)
        })
    }

    /// Options that the transaction writes with; what is set there holds for its commit.
    fn Java_org_rocksdb_Transaction_getWriteOptions(env, txn: jlong) -> jlong {
        on(txn, |held, t| {
            let known = held.lent.options.load(Ordering::Relaxed);
            if known != 0 {
                return Ok(known);
            }
            let made = give_owned(*t.write_options(), held.owner);
            held.lent.options.store(made, Ordering::Relaxed);
            Ok(made)
        })
    }

    fn Java_org_rocksdb_Transaction_setWriteOptions(env, txn: jlong, options: jlong) {
        let options = **value::<WriteOptions>(options)?;
        on(txn, |held, t| {
            t.set_write_options(options);
            match held.lent.options.load(Ordering::Relaxed) {
                0 => Ok(()),
                lent => change::<WriteOptions>(lent, |o| *o = options),
            }
        })
    }

    fn Java_org_rocksdb_Transaction_prepare(env, txn: jlong) {
        on(txn, |held, t| {
            held.take_options(t);
            t.prepare()?;
            *held.log_number.lock() = None;
            Ok(())
        })
    }

    /// Logs are kept for what is prepared in them in any case: the number is told, without effect.
    fn Java_org_rocksdb_Transaction_setLogNumber(env, txn: jlong, number: jlong) {
        on(txn, |held, _| {
            *held.log_number.lock() = Some(number);
            Ok(())
        })
    }

    fn Java_org_rocksdb_Transaction_getLogNumber(env, txn: jlong) -> jlong {
        on(txn, |held, _| {
            let number = *held.log_number.lock();
            let what = "Transaction.getLogNumber of a prepared transaction";
            number.ok_or_else(|| not_supported(what).into())
        })
    }

    fn Java_org_rocksdb_Transaction_commit(env, txn: jlong) {
        on(txn, |held, t| {
            held.take_options(t);
            Ok(t.commit()?)
        })
    }

    fn Java_org_rocksdb_Transaction_setName(env, txn: jlong, name: jobject) {
        let name = env.text(name)?;
        let owner = on(txn, |held, t| {
            t.set_name(name.as_bytes())?;
            Ok(held.owner)
        })?;
        handles::hold::<Database>(owner)?.named.add(name, txn, Txn::is_there);
        Ok(())
    }

    fn Java_org_rocksdb_Transaction_getName(env, txn: jlong) -> jobject {
        let name = on(txn, |_, t| Ok(String::from_utf8_lossy(t.name()).into_owned()))?;
        env.string(&name)
    }

    fn Java_org_rocksdb_Transaction_isDeadlockDetect(env, txn: jlong) -> bool {
        Ok(handles::hold::<Txn>(txn)?.detects_deadlocks.load(Ordering::Relaxed))
    }

    /// Calls of one transaction come one after the other: one that gets here waits for nothing.
    fn Java_org_rocksdb_Transaction_getWaitingTxns(env, txn: jlong) -> jobject {
        on(txn, |_, _| Ok(()))?;
        let class = env.class_of(env.this())?;
        let descriptor = "(JLjava/lang/String;[J)Lorg/rocksdb/Transaction$WaitingTransactions;";
        let method = env.method(class, "newWaitingTransactions", descriptor)?;
        let arguments = [
            jvalue { j: 0 },
            jvalue { l: env.string("")? },
            jvalue { l: env.new_longs(&[])? },
        ];
        env.call_object(env.this(), method, &arguments)
    }

    fn Java_org_rocksdb_Transaction_disposeInternal(env, txn: jlong) {
        dispose::<Txn>(txn)
    }

    fn Java_org_rocksdb_AbstractTransactionNotifier_disposeInternal
        | Java_org_rocksdb_AbstractTransactionNotifier_disposeInternalJni(env, notifier: jlong) {
        dispose::<Notifier>(notifier)
    }
}

impl Txn {
    /// Options that were changed through their handle.
    fn take_options(&self, txn: &mut Transaction) {
        let lent = self.lent.options.load(Ordering::Relaxed);
        if lent != 0
            && let Ok(options) = value::<WriteOptions>(lent)
        {
            txn.set_write_options(**options);
        }
    }
}

/// Methods of a transaction alone.
macro_rules! plain {
    ($($(($ret:ty))? |$t:ident $(, $arg:ident: $ty:ty)?| $body:expr; $name:ident;)*) => {$(
    natives! {
        fn $name(env, txn: jlong $(, $arg: $ty)?) $(-> $ret)? {
            on(txn, |_, $t| $body)
        }
    }
    )*};
}

plain! {
    |t| { t.set_snapshot(); Ok(()) }; Java_org_rocksdb_Transaction_setSnapshot;
    |t| { t.set_snapshot_on_next_operation(); Ok(()) };
        Java_org_rocksdb_Transaction_setSnapshotOnNextOperation__J;
    |t| { t.clear_snapshot(); Ok(()) }; Java_org_rocksdb_Transaction_clearSnapshot;
    |t| Ok(t.rollback()?); Java_org_rocksdb_Transaction_rollback;
    |t| { t.set_save_point(); Ok(()) }; Java_org_rocksdb_Transaction_setSavePoint;
    |t| Ok(t.rollback_to_save_point()?); Java_org_rocksdb_Transaction_rollbackToSavePoint;
    |t| { t.set_indexing(false); Ok(()) }; Java_org_rocksdb_Transaction_disableIndexing;
    |t| { t.set_indexing(true); Ok(()) }; Java_org_rocksdb_Transaction_enableIndexing;
    |t, ms: jlong| { t.set_lock_timeout(ms); Ok(()) };
        Java_org_rocksdb_Transaction_setLockTimeout;
    (jlong) |t| Ok(t.num_keys() as jlong); Java_org_rocksdb_Transaction_getNumKeys;
    (jlong) |t| Ok(t.num_puts() as jlong); Java_org_rocksdb_Transaction_getNumPuts;
    (jlong) |t| Ok(t.num_deletes() as jlong); Java_org_rocksdb_Transaction_getNumDeletes;
    (jlong) |t| Ok(t.num_merges() as jlong); Java_org_rocksdb_Transaction_getNumMerges;
    (jlong) |t| Ok(t.elapsed_ms() as jlong); Java_org_rocksdb_Transaction_getElapsedTime;
    (jlong) |t| Ok(t.id() as jlong); Java_org_rocksdb_Transaction_getID;
    (jlong) |t| Ok(t.id() as jlong); Java_org_rocksdb_Transaction_getId;
    (jbyte) |t| Ok(t.state() as jbyte); Java_org_rocksdb_Transaction_getState;
}

fn iterator(txn: jlong, options: jlong, family: jlong) -> Outcome<jlong> {
    let state = value::<ReadState>(options)?;
    on(txn, |held, t| {
        let family = held.family(t, family)?;
        let walk = t.iter_opt(
            &family,
            ReadOptions::clone(&state.read),
            state.snapshot.as_ref(),
        );
        let walk = Walk::Merged(Box::new(walk));
        Ok(handles::give_owned(Iter::new(walk), held.owner))
    })
}

/// How a key is locked before it is read.
#[derive(Clone, Copy)]
pub(crate) struct Lock {
    exclusive: bool,
    validate: bool,
}

impl Lock {
    pub(crate) fn new(exclusive: bool, validate: bool) -> Option<Lock> {
        Some(Lock {
            exclusive,
            validate,
        })
    }
}

/// Reads a key.
pub(crate) fn get(
    txn: jlong,
    options: jlong,
    family: jlong,
    key: &[u8],
    lock: Option<Lock>,
) -> Outcome<Option<PinnedValue>> {
    let state = value::<ReadState>(options)?;
    let snapshot = state.snapshot.as_ref();
    within(txn, family, |t, family| match lock {
        None => t.get_opt(family, key, &state.read, snapshot),
        Some(lock) => t.get_for_update_opt(
            family,
            key,
            &state.read,
            snapshot,
            lock.exclusive,
            lock.validate,
        ),
    })
}

/// Reads several keys; one whose read fails is shown as one that is not there.
pub(crate) fn multi_get(
    txn: jlong,
    options: jlong,
    families: &[jlong],
    keys: &[Vec<u8>],
    for_update: bool,
) -> Outcome<Vec<Option<PinnedValue>>> {
    let state = value::<ReadState>(options)?;
    let snapshot = state.snapshot.as_ref();
    on(txn, |held, t| {
        let mut all = Vec::with_capacity(keys.len());
        for at in 0..keys.len() {
            let family = families.get(at).copied().unwrap_or(0);
            all.push(held.family(t, family)?);
        }
        let asked: Vec<_> = all.iter().zip(keys).collect();
        let found = if for_update {
            t.multi_get_for_update_opt(&asked, &state.read, snapshot)
        } else {
            t.multi_get_opt(&asked, &state.read, snapshot)
        };
        Ok(found.into_iter().map(|f| f.ok().flatten()).collect())
    })
}
