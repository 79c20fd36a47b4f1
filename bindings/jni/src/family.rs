//! Column families: made, dropped, listed, described.

use crate::boundary::{Outcome, handles};
use crate::database::{Database, Family, Transactions};
use crate::natives;
use crate::options_file::descriptor;
use crate::shared::{dispose, value};
use esker::{Db, FamilyHandle, Options};
use esker_sync::atomic::Ordering;
use jni_sys::{jint, jlong, jobject};

fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The family is dropped: its files go with the handle.
fn mark_dropped(family: jlong) {
    if let Some(family) = handles::find::<Family>(family) {
        family.1.store(true, Ordering::Relaxed);
    }
}

/// Drops a family; its locks go with it.
fn drop_one(database: &Database, db: &Db, family: &FamilyHandle) -> Outcome<()> {
    Ok(match &database.transactions {
        Transactions::Locking(locking) => locking.drop_family(family),
        _ => db.drop_family(family),
    }?)
}

fn create(db: jlong, name: &str, options: jlong) -> Outcome<jlong> {
    let options = value::<Options>(options)?.family.clone();
    let database = handles::hold::<Database>(db)?;
    let db_open = database.open()?;
    let family = match &database.transactions {
        Transactions::None => db_open.create_family(name, options),
        Transactions::Locking(locking) => locking.create_family(name, options),
        Transactions::Optimistic(optimistic) => optimistic.create_family(name, options),
    }?;
    Ok(handles::give_owned(Family::new(family), db))
}

natives! {
    fn Java_org_rocksdb_RocksDB_createColumnFamily(
        env, db: jlong, named: jobject, length: jint, options: jlong
    ) -> jlong {
        create(db, &name(&env.region(named, 0, length)?), options)
    }

    fn Java_org_rocksdb_RocksDB_createColumnFamilies__JJ_3_3B(
        env, db: jlong, options: jlong, names: jobject
    ) -> jobject {
        let names = env.each(names, |n| env.array(n))?;
        let made: Result<Vec<jlong>, _> =
            names.iter().map(|n| create(db, &name(n), options)).collect();
        env.new_longs(&made?)
    }

    fn Java_org_rocksdb_RocksDB_createColumnFamilies__J_3J_3_3B(
        env, db: jlong, options: jobject, names: jobject
    ) -> jobject {
        let names = env.each(names, |n| env.array(n))?;
        let options = env.longs(options)?;
        let made: Result<Vec<jlong>, _> =
            names.iter().zip(options).map(|(n, o)| create(db, &name(n), o)).collect();
        env.new_longs(&made?)
    }

    fn Java_org_rocksdb_RocksDB_dropColumnFamily(env, db: jlong, family: jlong) {
        let database = handles::hold::<Database>(db)?;
        database.with_family(family, |db, family| drop_one(&database, db, family))?;
        mark_dropped(family);
        Ok(())
    }

    fn Java_org_rocksdb_RocksDB_dropColumnFamilies(env, db: jlong, families: jobject) {
        let database = handles::hold::<Database>(db)?;
        let all = env.longs(families)?;
        let families = database.families(&all)?;
        let db = database.open()?;
        if matches!(database.transactions, Transactions::Locking(_)) {
            families.iter().try_for_each(|family| drop_one(&database, db, family))?;
        } else {
            db.drop_families(&families.iter().collect::<Vec<_>>())?;
        }
        all.into_iter().for_each(mark_dropped);
        Ok(())
    }

    fn Java_org_rocksdb_ColumnFamilyHandle_getName(env, family: jlong) -> jobject {
        env.new_array(handles::hold::<Family>(family)?.0.name().as_bytes())
    }

    fn Java_org_rocksdb_ColumnFamilyHandle_getDescriptor(env, family: jlong) -> jobject {
        let family = handles::hold::<Family>(family)?;
        descriptor(env, family.0.name(), family.0.options())
    }

    fn Java_org_rocksdb_ColumnFamilyHandle_getID(env, family: jlong) -> jint {
        Ok(handles::hold::<Family>(family)?.0.id() as jint)
    }

    /// When it was the last hold on a family that was dropped, its files go now.
    fn Java_org_rocksdb_ColumnFamilyHandle_disposeInternal
        | Java_org_rocksdb_ColumnFamilyHandle_disposeInternalJni(env, family: jlong) {
        let held = handles::find::<Family>(family);
        let told = held.map_or((0, false), |h| (h.owner(), h.1.load(Ordering::Relaxed)));
        dispose::<Family>(family)?;
        let (owner, is_dropped) = told;
        if is_dropped
            && let Some(database) = handles::find::<Database>(owner)
            && let Ok(db) = database.open()
        {
            db.delete_unused_files();
        }
        Ok(())
    }
}
