//! Writes of single keys, and of batches.

use crate::batch::{Batch, Change, IndexedBatch};
use crate::boundary::{Outcome, handles};
use crate::database::{Database, Transactions};
use crate::natives;
use crate::shared::value;
use esker::{Db, Error, FamilyHandle, Result, WriteOptions};
use jni_sys::{jint, jlong, jobject};

/// Carries a write out.
#[inline]
fn write(db: jlong, family: jlong, options: jlong, change: &Change<'_>) -> Outcome<()> {
    let database = handles::hold::<Database>(db)?;
    if options == 0 {
        let plain = WriteOptions::default();
        return database.with_family(family, |db, family| {
            apply(&database, db, family, change, &plain)
        });
    }
    let options = value::<WriteOptions>(options)?;
    database.with_family(family, |db, family| {
        apply(&database, db, family, change, &options)
    })
}

#[inline]
fn apply(
    database: &Database,
    db: &Db,
    family: &FamilyHandle,
    change: &Change<'_>,
    options: &WriteOptions,
) -> Outcome<()> {
    if !matches!(database.transactions, Transactions::None) {
        return Ok(beside_transactions(database, db, family, change, options)?);
    }
    Ok(plainly(db, family, change, options)?)
}

#[inline]
fn plainly(
    db: &Db,
    family: &FamilyHandle,
    change: &Change<'_>,
    options: &WriteOptions,
) -> Result<()> {
    match *change {
        Change::Put(key, value) => db.put_opt(family, key, value, options),
        Change::Merge(key, operand) => db.merge_opt(family, key, operand, options),
        Change::Delete(key) => db.delete_opt(family, key, options),
        Change::SingleDelete(key) => db.single_delete_opt(family, key, options),
        Change::DeleteRange(begin, end) => db.delete_range_opt(family, begin, end, options),
    }
}

/// A write to a database with transactions: where they lock keys, it waits for its key's lock.
fn beside_transactions(
    database: &Database,
    db: &Db,
    family: &FamilyHandle,
    change: &Change<'_>,
    options: &WriteOptions,
) -> Result<()> {
    if matches!(change, Change::DeleteRange(..)) {
        return Err(Error::not_supported(""));
    }
    let Transactions::Locking(locking) = &database.transactions else {
        return plainly(db, family, change, options);
    };
    match *change {
        Change::Put(key, value) => locking.put_opt(family, key, value, options),
        Change::Merge(key, operand) => locking.merge_opt(family, key, operand, options),
        Change::Delete(key) => locking.delete_opt(family, key, options),
        Change::SingleDelete(key) => locking.single_delete_opt(family, key, options),
        Change::DeleteRange(..) => locking.delete_range(),
    }
}

/// Writes a batch.
fn write_batch(db: jlong, options: jlong, batch: &mut esker::WriteBatch) -> Outcome<()> {
    let database = handles::hold::<Database>(db)?;
    let options = match options {
        0 => WriteOptions::default(),
        options => **value::<WriteOptions>(options)?,
    };
    let db = database.open()?;
    Ok(match &database.transactions {
        Transactions::None => db.write_opt(batch, &options),
        Transactions::Locking(locking) => locking.write(batch, &options),
        Transactions::Optimistic(optimistic) => optimistic.write(batch, &options),
    }?)
}

/// Writes of a key and a value, of a key, or of a range: with and without options, with and without
/// a family.
macro_rules! pair {
    ($change:ident: $plain:ident, $family:ident, $options:ident, $both:ident) => {
        natives! {
            fn $plain(
                env, db: jlong, key: jobject, at: jint, n: jint, value: jobject, from: jint,
                m: jint
            ) {
                let (key, value) = (env.region(key, at, n)?, env.region(value, from, m)?);
                write(db, 0, 0, &Change::$change(&key, &value))
            }

            fn $family(
                env, db: jlong, key: jobject, at: jint, n: jint, value: jobject, from: jint,
                m: jint, family: jlong
            ) {
                let (key, value) = (env.region(key, at, n)?, env.region(value, from, m)?);
                write(db, family, 0, &Change::$change(&key, &value))
            }

            fn $options(
                env, db: jlong, options: jlong, key: jobject, at: jint, n: jint, value: jobject,
                from: jint, m: jint
            ) {
                let (key, value) = (env.region(key, at, n)?, env.region(value, from, m)?);
                write(db, 0, options, &Change::$change(&key, &value))
            }

            fn $both(
                env, db: jlong, options: jlong, key: jobject, at: jint, n: jint, value: jobject,
                from: jint, m: jint, family: jlong
            ) {
                let (key, value) = (env.region(key, at, n)?, env.region(value, from, m)?);
                write(db, family, options, &Change::$change(&key, &value))
            }
        }
    };
}

pair!(
    Put: Java_org_rocksdb_RocksDB_put__J_3BII_3BII,
    Java_org_rocksdb_RocksDB_put__J_3BII_3BIIJ,
    Java_org_rocksdb_RocksDB_put__JJ_3BII_3BII,
    Java_org_rocksdb_RocksDB_put__JJ_3BII_3BIIJ
);
pair!(
    Merge: Java_org_rocksdb_RocksDB_merge__J_3BII_3BII,
    Java_org_rocksdb_RocksDB_merge__J_3BII_3BIIJ,
    Java_org_rocksdb_RocksDB_merge__JJ_3BII_3BII,
    Java_org_rocksdb_RocksDB_merge__JJ_3BII_3BIIJ
);
pair!(
    DeleteRange: Java_org_rocksdb_RocksDB_deleteRange__J_3BII_3BII,
    Java_org_rocksdb_RocksDB_deleteRange__J_3BII_3BIIJ,
    Java_org_rocksdb_RocksDB_deleteRange__JJ_3BII_3BII,
    Java_org_rocksdb_RocksDB_deleteRange__JJ_3BII_3BIIJ
);

natives! {
    fn Java_org_rocksdb_RocksDB_delete__J_3BII(env, db: jlong, key: jobject, at: jint, n: jint) {
        let key = env.region(key, at, n)?;
        write(db, 0, 0, &Change::Delete(&key))
    }

    fn Java_org_rocksdb_RocksDB_delete__J_3BIIJ(
        env, db: jlong, key: jobject, at: jint, n: jint, family: jlong
    ) {
        let key = env.region(key, at, n)?;
        write(db, family, 0, &Change::Delete(&key))
    }

    fn Java_org_rocksdb_RocksDB_delete__JJ_3BII(
        env, db: jlong, options: jlong, key: jobject, at: jint, n: jint
    ) {
        let key = env.region(key, at, n)?;
        write(db, 0, options, &Change::Delete(&key))
    }

    fn Java_org_rocksdb_RocksDB_delete__JJ_3BIIJ(
        env, db: jlong, options: jlong, key: jobject, at: jint, n: jint, family: jlong
    ) {
        let key = env.region(key, at, n)?;
        write(db, family, options, &Change::Delete(&key))
    }

    fn Java_org_rocksdb_RocksDB_singleDelete__J_3BI(env, db: jlong, key: jobject, n: jint) {
        let key = env.region(key, 0, n)?;
        write(db, 0, 0, &Change::SingleDelete(&key))
    }

    fn Java_org_rocksdb_RocksDB_singleDelete__J_3BIJ(
        env, db: jlong, key: jobject, n: jint, family: jlong
    ) {
        let key = env.region(key, 0, n)?;
        write(db, family, 0, &Change::SingleDelete(&key))
    }

    fn Java_org_rocksdb_RocksDB_singleDelete__JJ_3BI(
        env, db: jlong, options: jlong, key: jobject, n: jint
    ) {
        let key = env.region(key, 0, n)?;
        write(db, 0, options, &Change::SingleDelete(&key))
    }

    fn Java_org_rocksdb_RocksDB_singleDelete__JJ_3BIJ(
        env, db: jlong, options: jlong, key: jobject, n: jint, family: jlong
    ) {
        let key = env.region(key, 0, n)?;
        write(db, family, options, &Change::SingleDelete(&key))
    }

    fn Java_org_rocksdb_RocksDB_putDirect(
        env, db: jlong, options: jlong, key: jobject, at: jint, n: jint, value: jobject,
        from: jint, m: jint, family: jlong
    ) {
        let (key, value) = (env.direct(key, at, n)?, env.direct(value, from, m)?);
        write(db, family, options, &Change::Put(key, value))
    }

    fn Java_org_rocksdb_RocksDB_mergeDirect(
        env, db: jlong, options: jlong, key: jobject, at: jint, n: jint, value: jobject,
        from: jint, m: jint, family: jlong
    ) {
        let (key, value) = (env.direct(key, at, n)?, env.direct(value, from, m)?);
        write(db, family, options, &Change::Merge(key, value))
    }

    fn Java_org_rocksdb_RocksDB_deleteDirect(
        env, db: jlong, options: jlong, key: jobject, at: jint, n: jint, family: jlong
    ) {
        let key = env.direct(key, at, n)?;
        write(db, family, options, &Change::Delete(key))
    }

    fn Java_org_rocksdb_RocksDB_write0(env, db: jlong, options: jlong, batch: jlong) {
        let batch = handles::hold::<Batch>(batch)?;
        write_batch(db, options, &mut batch.lock().batch)
    }

    fn Java_org_rocksdb_RocksDB_write1(env, db: jlong, options: jlong, batch: jlong) {
        let batch = handles::hold::<IndexedBatch>(batch)?;
        let batch = batch.lock();
        let database = handles::hold::<Database>(db)?;
        if matches!(database.transactions, Transactions::None) {
            let options = match options {
                0 => WriteOptions::default(),
                options => **value::<WriteOptions>(options)?,
            };
            return Ok(batch.write(database.open()?, &options)?);
        }
        write_batch(db, options, &mut batch.to_batch())
    }
}
