//! Properties of a database.

use crate::boundary::{Fault, Outcome, handles};
use crate::database::Database;
use crate::natives;
use esker::{Error, ErrorKind};
use jni_sys::{jint, jlong, jobject};

/// A property that does not exist.
fn unknown<T>(found: Option<T>) -> Outcome<T> {
    found.ok_or_else(|| Fault::Error(Error::new(ErrorKind::NotFound, "")))
}

natives! {
    fn Java_org_rocksdb_RocksDB_getProperty(
        env, db: jlong, family: jlong, name: jobject, _length: jint
    ) -> jobject {
        let name = env.text(name)?;
        let database = handles::hold::<Database>(db)?;
        let found =
            database.with_family(family, |db, family| Ok(db.property_cf(family, &name)))?;
        env.string(&unknown(found)?)
    }

    fn Java_org_rocksdb_RocksDB_getLongProperty(
        env, db: jlong, family: jlong, name: jobject, _length: jint
    ) -> jlong {
        let name = env.text(name)?;
        let database = handles::hold::<Database>(db)?;
        let found =
            database.with_family(family, |db, family| Ok(db.int_property(family, &name)))?;
        Ok(unknown(found)? as jlong)
    }

    fn Java_org_rocksdb_RocksDB_getAggregatedLongProperty(
        env, db: jlong, name: jobject, _length: jint
    ) -> jlong {
        let name = env.text(name)?;
        let found = handles::hold::<Database>(db)?.open()?.aggregated_int_property(&name);
        Ok(unknown(found)? as jlong)
    }

    fn Java_org_rocksdb_RocksDB_getMapProperty(
        env, db: jlong, family: jlong, name: jobject, _length: jint
    ) -> jobject {
        let name = env.text(name)?;
        let database = handles::hold::<Database>(db)?;
        let found =
            database.with_family(family, |db, family| Ok(db.map_property(family, &name)))?;
        let found = unknown(found)?;
        env.reserve(2 * found.len() + 16)?;
        let mut entries = Vec::new();
        for (key, value) in found {
            entries.push((env.string(&key)?, env.string(&value)?));
        }
        env.map(&entries)
    }

    fn Java_org_rocksdb_RocksDB_getApproximateMemTableStats(
        env, db: jlong, family: jlong, begin: jlong, end: jlong
    ) -> jobject {
        let begin = handles::hold::<crate::slice::Slice>(begin)?;
        let end = handles::hold::<crate::slice::Slice>(end)?;
        let database = handles::hold::<Database>(db)?;
        let (count, size) = database.with_family(family, |db, family| {
            Ok(db.approximate_memtable_stats(family, &**begin.bytes(), &**end.bytes()))
        })?;
        env.new_longs(&[count as jlong, size as jlong])
    }
}
