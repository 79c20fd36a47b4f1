//! Reads of transactions.

use crate::boundary::{Env, Fault, Outcome};
use crate::natives;
use crate::transaction::{Lock, get, multi_get};
use esker::PinnedValue;
use jni_sys::{jint, jlong, jobject};
use std::ptr;

fn to_array(env: Env<'_>, found: Option<PinnedValue>) -> Outcome<jobject> {
    found.map_or(Ok(ptr::null_mut()), |value| env.new_array(&value))
}

/// -1 for a key that is not there, otherwise the length of its value.
fn to_room(
    env: Env<'_>,
    found: Option<PinnedValue>,
    to: jobject,
    offset: jint,
    room: jint,
) -> Outcome<jint> {
    found.map_or(Ok(-1), |value| env.fill_array(to, offset, room, &value))
}

fn to_direct(
    env: Env<'_>,
    found: Option<PinnedValue>,
    to: jobject,
    offset: jint,
    room: jint,
) -> Outcome<jint> {
    found.map_or(Ok(-1), |value| env.fill_direct(to, offset, room, &value))
}

/// The values of several keys.
fn several(
    env: Env<'_>,
    (txn, options): (jlong, jlong),
    keys: jobject,
    families: &[jlong],
    for_update: bool,
) -> Outcome<jobject> {
    let keys = env.each(keys, |key| Ok(env.array(key)?.to_vec()))?;
    if !families.is_empty() && families.len() != keys.len() {
        return Err(Fault::Message(
            "Insufficient column family handles provided.".to_owned(),
        ));
    }
    let found = multi_get(txn, options, families, &keys, for_update)?;
    env.objects("[B", found.len(), |at| match &found[at] {
        Some(value) => env.new_array(value),
        None => Ok(ptr::null_mut()),
    })
}

natives! {
    fn Java_org_rocksdb_Transaction_get__JJ_3BI(
        env, txn: jlong, options: jlong, key: jobject, n: jint
    ) -> jobject {
        let key = env.region(key, 0, n)?;
        to_array(env, get(txn, options, 0, &key, None)?)
    }

    fn Java_org_rocksdb_Transaction_get__JJ_3BIJ(
        env, txn: jlong, options: jlong, key: jobject, n: jint, family: jlong
    ) -> jobject {
        let key = env.region(key, 0, n)?;
        to_array(env, get(txn, options, family, &key, None)?)
    }

    fn Java_org_rocksdb_Transaction_get__JJ_3BIIJ(
        env, txn: jlong, options: jlong, key: jobject, at: jint, n: jint, family: jlong
    ) -> jobject {
        let key = env.region(key, at, n)?;
        to_array(env, get(txn, options, family, &key, None)?)
    }

    fn Java_org_rocksdb_Transaction_get__JJ_3BII_3BIIJ(
        env, txn: jlong, options: jlong, key: jobject, at: jint, n: jint, to: jobject,
        offset: jint, room: jint, family: jlong
    ) -> jint {
        let key = env.region(key, at, n)?;
        to_room(env, get(txn, options, family, &key, None)?, to, offset, room)
    }

    fn Java_org_rocksdb_Transaction_getDirect(
        env, txn: jlong, options: jlong, key: jobject, at: jint, n: jint, to: jobject,
        offset: jint, room: jint, family: jlong
    ) -> jint {
        let key = env.direct(key, at, n)?;
        to_direct(env, get(txn, options, family, key, None)?, to, offset, room)
    }

    fn Java_org_rocksdb_Transaction_getForUpdate__JJ_3BIZZ(
        env, txn: jlong, options: jlong, key: jobject, n: jint, exclusive: bool, validate: bool
    ) -> jobject {
        let key = env.region(key, 0, n)?;
        to_array(env, get(txn, options, 0, &key, Lock::new(exclusive, validate))?)
    }

    fn Java_org_rocksdb_Transaction_getForUpdate__JJ_3BIJZZ(
        env, txn: jlong, options: jlong, key: jobject, n: jint, family: jlong, exclusive: bool,
        validate: bool
    ) -> jobject {
        let key = env.region(key, 0, n)?;
        to_array(env, get(txn, options, family, &key, Lock::new(exclusive, validate))?)
    }

    fn Java_org_rocksdb_Transaction_getForUpdate__JJ_3BIIJZZ(
        env, txn: jlong, options: jlong, key: jobject, at: jint, n: jint, family: jlong,
        exclusive: bool, validate: bool
    ) -> jobject {
        let key = env.region(key, at, n)?;
        to_array(env, get(txn, options, family, &key, Lock::new(exclusive, validate))?)
    }

    fn Java_org_rocksdb_Transaction_getForUpdate__JJ_3BII_3BIIJZZ(
        env, txn: jlong, options: jlong, key: jobject, at: jint, n: jint, to: jobject,
        offset: jint, room: jint, family: jlong, exclusive: bool, validate: bool
    ) -> jint {
        let key = env.region(key, at, n)?;
        let found = get(txn, options, family, &key, Lock::new(exclusive, validate))?;
        to_room(env, found, to, offset, room)
    }

    fn Java_org_rocksdb_Transaction_getDirectForUpdate(
        env, txn: jlong, options: jlong, key: jobject, at: jint, n: jint, to: jobject,
        offset: jint, room: jint, family: jlong, exclusive: bool, validate: bool
    ) -> jint {
        let key = env.direct(key, at, n)?;
        let found = get(txn, options, family, key, Lock::new(exclusive, validate))?;
        to_direct(env, found, to, offset, room)
    }

    fn Java_org_rocksdb_Transaction_multiGet__JJ_3_3B(
        env, txn: jlong, options: jlong, keys: jobject
    ) -> jobject {
        several(env, (txn, options), keys, &[], false)
    }

    fn Java_org_rocksdb_Transaction_multiGet__JJ_3_3B_3J(
        env, txn: jlong, options: jlong, keys: jobject, families: jobject
    ) -> jobject {
        several(env, (txn, options), keys, &env.longs(families)?, false)
    }

    fn Java_org_rocksdb_Transaction_multiGet__JJJ_3_3B(
        env, txn: jlong, options: jlong, family: jlong, keys: jobject
    ) -> jobject {
        let families = vec![family; env.array_length(keys)?];
        several(env, (txn, options), keys, &families, false)
    }

    fn Java_org_rocksdb_Transaction_multiGetForUpdate__JJ_3_3B(
        env, txn: jlong, options: jlong, keys: jobject
    ) -> jobject {
        several(env, (txn, options), keys, &[], true)
    }

    fn Java_org_rocksdb_Transaction_multiGetForUpdate__JJ_3_3B_3J(
        env, txn: jlong, options: jlong, keys: jobject, families: jobject
    ) -> jobject {
        several(env, (txn, options), keys, &env.longs(families)?, true)
    }
}
