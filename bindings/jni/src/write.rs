//! Writes of single keys, and of batches.

use crate::batch::{Batch, IndexedBatch};
use crate::boundary::{Outcome, handles};
use crate::database::Database;
use crate::natives;
use crate::shared::value;
use esker::{Db, FamilyHandle, WriteOptions};
use jni_sys::{jint, jlong, jobject};

/// Carries a write out.
#[inline]
fn write(
    db: jlong,
    family: jlong,
    options: jlong,
    how: impl FnOnce(&Db, &FamilyHandle, &WriteOptions) -> esker::Result<()>,
) -> Outcome<()> {
    let database = handles::hold::<Database>(db)?;
    if options == 0 {
        let plain = WriteOptions::default();
        return database.with_family(family, |db, family| Ok(how(db, family, &plain)?));
    }
    let options = value::<WriteOptions>(options)?;
    database.with_family(family, |db, family| Ok(how(db, family, &options)?))
}

/// Writes of a key and a value, of a key, or of a range: with and without options, with and without
/// a family.
macro_rules! pair {
    ($method:ident: $plain:ident, $family:ident, $options:ident, $both:ident) => {
        natives! {
            fn $plain(
                env, db: jlong, key: jobject, at: jint, n: jint, value: jobject, from: jint,
                m: jint
            ) {
                let (key, value) = (env.region(key, at, n)?, env.region(value, from, m)?);
                write(db, 0, 0, |db, family, o| db.$method(family, &key, &value, o))
            }

            fn $family(
                env, db: jlong, key: jobject, at: jint, n: jint, value: jobject, from: jint,
                m: jint, family: jlong
            ) {
                let (key, value) = (env.region(key, at, n)?, env.region(value, from, m)?);
                write(db, family, 0, |db, family, o| db.$method(family, &key, &value, o))
            }

            fn $options(
                env, db: jlong, options: jlong, key: jobject, at: jint, n: jint, value: jobject,
                from: jint, m: jint
            ) {
                let (key, value) = (env.region(key, at, n)?, env.region(value, from, m)?);
                write(db, 0, options, |db, family, o| db.$method(family, &key, &value, o))
            }

            fn $both(
                env, db: jlong, options: jlong, key: jobject, at: jint, n: jint, value: jobject,
                from: jint, m: jint, family: jlong
            ) {
                let (key, value) = (env.region(key, at, n)?, env.region(value, from, m)?);
                write(db, family, options, |db, family, o| db.$method(family, &key, &value, o))
            }
        }
    };
}

pair!(
    put_opt: Java_org_rocksdb_RocksDB_put__J_3BII_3BII,
    Java_org_rocksdb_RocksDB_put__J_3BII_3BIIJ,
    Java_org_rocksdb_RocksDB_put__JJ_3BII_3BII,
    Java_org_rocksdb_RocksDB_put__JJ_3BII_3BIIJ
);
pair!(
    merge_opt: Java_org_rocksdb_RocksDB_merge__J_3BII_3BII,
    Java_org_rocksdb_RocksDB_merge__J_3BII_3BIIJ,
    Java_org_rocksdb_RocksDB_merge__JJ_3BII_3BII,
    Java_org_rocksdb_RocksDB_merge__JJ_3BII_3BIIJ
);
pair!(
    delete_range_opt: Java_org_rocksdb_RocksDB_deleteRange__J_3BII_3BII,
    Java_org_rocksdb_RocksDB_deleteRange__J_3BII_3BIIJ,
    Java_org_rocksdb_RocksDB_deleteRange__JJ_3BII_3BII,
    Java_org_rocksdb_RocksDB_deleteRange__JJ_3BII_3BIIJ
);

natives! {
    fn Java_org_rocksdb_RocksDB_delete__J_3BII(env, db: jlong, key: jobject, at: jint, n: jint) {
        let key = env.region(key, at, n)?;
        write(db, 0, 0, |db, family, o| db.delete_opt(family, &key, o))
    }

    fn Java_org_rocksdb_RocksDB_delete__J_3BIIJ(
        env, db: jlong, key: jobject, at: jint, n: jint, family: jlong
    ) {
        let key = env.region(key, at, n)?;
        write(db, family, 0, |db, family, o| db.delete_opt(family, &key, o))
    }

    fn Java_org_rocksdb_RocksDB_delete__JJ_3BII(
        env, db: jlong, options: jlong, key: jobject, at: jint, n: jint
    ) {
        let key = env.region(key, at, n)?;
        write(db, 0, options, |db, family, o| db.delete_opt(family, &key, o))
    }

    fn Java_org_rocksdb_RocksDB_delete__JJ_3BIIJ(
        env, db: jlong, options: jlong, key: jobject, at: jint, n: jint, family: jlong
    ) {
        let key = env.region(key, at, n)?;
        write(db, family, options, |db, family, o| db.delete_opt(family, &key, o))
    }

    fn Java_org_rocksdb_RocksDB_singleDelete__J_3BI(env, db: jlong, key: jobject, n: jint) {
        let key = env.region(key, 0, n)?;
        write(db, 0, 0, |db, family, o| db.single_delete_opt(family, &key, o))
    }

    fn Java_org_rocksdb_RocksDB_singleDelete__J_3BIJ(
        env, db: jlong, key: jobject, n: jint, family: jlong
    ) {
        let key = env.region(key, 0, n)?;
        write(db, family, 0, |db, family, o| db.single_delete_opt(family, &key, o))
    }

    fn Java_org_rocksdb_RocksDB_singleDelete__JJ_3BI(
        env, db: jlong, options: jlong, key: jobject, n: jint
    ) {
        let key = env.region(key, 0, n)?;
        write(db, 0, options, |db, family, o| db.single_delete_opt(family, &key, o))
    }

    fn Java_org_rocksdb_RocksDB_singleDelete__JJ_3BIJ(
        env, db: jlong, options: jlong, key: jobject, n: jint, family: jlong
    ) {
        let key = env.region(key, 0, n)?;
        write(db, family, options, |db, family, o| db.single_delete_opt(family, &key, o))
    }

    fn Java_org_rocksdb_RocksDB_putDirect(
        env, db: jlong, options: jlong, key: jobject, at: jint, n: jint, value: jobject,
        from: jint, m: jint, family: jlong
    ) {
        let (key, value) = (env.direct(key, at, n)?, env.direct(value, from, m)?);
        write(db, family, options, |db, family, o| db.put_opt(family, key, value, o))
    }

    fn Java_org_rocksdb_RocksDB_mergeDirect(
        env, db: jlong, options: jlong, key: jobject, at: jint, n: jint, value: jobject,
        from: jint, m: jint, family: jlong
    ) {
        let (key, value) = (env.direct(key, at, n)?, env.direct(value, from, m)?);
        write(db, family, options, |db, family, o| db.merge_opt(family, key, value, o))
    }

    fn Java_org_rocksdb_RocksDB_deleteDirect(
        env, db: jlong, options: jlong, key: jobject, at: jint, n: jint, family: jlong
    ) {
        let key = env.direct(key, at, n)?;
        write(db, family, options, |db, family, o| db.delete_opt(family, key, o))
    }

    fn Java_org_rocksdb_RocksDB_write0(env, db: jlong, options: jlong, batch: jlong) {
        let batch = handles::hold::<Batch>(batch)?;
        write(db, 0, options, |db, _, o| db.write_opt(&mut batch.lock().batch, o))
    }

    fn Java_org_rocksdb_RocksDB_write1(env, db: jlong, options: jlong, batch: jlong) {
        let batch = handles::hold::<IndexedBatch>(batch)?;
        write(db, 0, options, |db, _, o| batch.lock().write(db, o))
    }
}
