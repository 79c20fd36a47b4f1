//! Point reads.

use crate::boundary::{Env, Fault, Outcome, handles};
use crate::call_options::ReadState;
use crate::database::Database;
use crate::natives;
use crate::shared::value;
use esker::{Error, FamilyHandle, PinnedValue, ReadOptions};
use jni_sys::{jint, jlong, jobject};
use std::ptr;

/// Reads one key.
#[inline]
fn read<R>(
    db: jlong,
    family: jlong,
    key: &[u8],
    options: jlong,
    found: impl FnOnce(Option<PinnedValue>) -> Outcome<R>,
) -> Outcome<R> {
    let database = handles::hold::<Database>(db)?;
    let state;
    let plain;
    let (options, snapshot) = if options == 0 {
        plain = ReadOptions::default();
        (&plain, None)
    } else {
        state = value::<ReadState>(options)?;
        (&*state.read, state.snapshot.as_ref())
    };
    let answer = database.with_family(family, |db, family| {
        Ok(db.get_opt(family, key, options, snapshot)?)
    })?;
    found(answer)
}

#[inline]
fn to_array(env: Env<'_>, answer: Option<PinnedValue>) -> Outcome<jobject> {
    match answer {
        Some(value) => env.new_array(&value),
        None => Ok(ptr::null_mut()),
    }
}

/// -1 for a key that is not there, otherwise the length of its value.
fn to_room(
    env: Env<'_>,
    answer: Option<PinnedValue>,
    to: jobject,
    offset: jint,
    room: jint,
) -> Outcome<jint> {
    answer.map_or(Ok(-1), |value| env.fill_array(to, offset, room, &value))
}

natives! {
    fn Java_org_rocksdb_RocksDB_get__J_3BII(
        env, db: jlong, key: jobject, offset: jint, length: jint
    ) -> jobject {
        let key = env.region(key, offset, length)?;
        read(db, 0, &key, 0, |answer| to_array(env, answer))
    }

    fn Java_org_rocksdb_RocksDB_get__J_3BIIJ(
        env, db: jlong, key: jobject, offset: jint, length: jint, family: jlong
    ) -> jobject {
        let key = env.region(key, offset, length)?;
        read(db, family, &key, 0, |answer| to_array(env, answer))
    }

    fn Java_org_rocksdb_RocksDB_get__JJ_3BII(
        env, db: jlong, options: jlong, key: jobject, offset: jint, length: jint
    ) -> jobject {
        let key = env.region(key, offset, length)?;
        read(db, 0, &key, options, |answer| to_array(env, answer))
    }

    fn Java_org_rocksdb_RocksDB_get__JJ_3BIIJ(
        env, db: jlong, options: jlong, key: jobject, offset: jint, length: jint, family: jlong
    ) -> jobject {
        let key = env.region(key, offset, length)?;
        read(db, family, &key, options, |answer| to_array(env, answer))
    }

    fn Java_org_rocksdb_RocksDB_get__J_3BII_3BII(
        env, db: jlong, key: jobject, offset: jint, length: jint, to: jobject, at: jint, room: jint
    ) -> jint {
        let key = env.region(key, offset, length)?;
        read(db, 0, &key, 0, |answer| to_room(env, answer, to, at, room))
    }

    fn Java_org_rocksdb_RocksDB_get__J_3BII_3BIIJ(
        env, db: jlong, key: jobject, offset: jint, length: jint, to: jobject, at: jint, room: jint,
        family: jlong
    ) -> jint {
        let key = env.region(key, offset, length)?;
        read(db, family, &key, 0, |answer| to_room(env, answer, to, at, room))
    }

    fn Java_org_rocksdb_RocksDB_get__JJ_3BII_3BII(
        env, db: jlong, options: jlong, key: jobject, offset: jint, length: jint, to: jobject,
        at: jint, room: jint
    ) -> jint {
        let key = env.region(key, offset, length)?;
        read(db, 0, &key, options, |answer| to_room(env, answer, to, at, room))
    }

    fn Java_org_rocksdb_RocksDB_get__JJ_3BII_3BIIJ(
        env, db: jlong, options: jlong, key: jobject, offset: jint, length: jint, to: jobject,
        at: jint, room: jint, family: jlong
    ) -> jint {
        let key = env.region(key, offset, length)?;
        read(db, family, &key, options, |answer| to_room(env, answer, to, at, room))
    }

    fn Java_org_rocksdb_RocksDB_getDirect(
        env, db: jlong, options: jlong, key: jobject, offset: jint, length: jint, to: jobject,
        at: jint, room: jint, family: jlong
    ) -> jint {
        let key = env.direct(key, offset, length)?;
        read(db, family, key, options, |answer| {
            answer.map_or(Ok(-1), |value| env.fill_direct(to, at, room, &value))
        })
    }

    fn Java_org_rocksdb_RocksDB_multiGet__J_3_3B_3I_3I(
        env, db: jlong, keys: jobject, offsets: jobject, lengths: jobject
    ) -> jobject {
        multi_get(env, db, 0, (keys, offsets, lengths), None)
    }

    fn Java_org_rocksdb_RocksDB_multiGet__J_3_3B_3I_3I_3J(
        env, db: jlong, keys: jobject, offsets: jobject, lengths: jobject, families: jobject
    ) -> jobject {
        multi_get(env, db, 0, (keys, offsets, lengths), Some(families))
    }

    fn Java_org_rocksdb_RocksDB_multiGet__JJ_3_3B_3I_3I(
        env, db: jlong, options: jlong, keys: jobject, offsets: jobject, lengths: jobject
    ) -> jobject {
        multi_get(env, db, options, (keys, offsets, lengths), None)
    }

    fn Java_org_rocksdb_RocksDB_multiGet__JJ_3_3B_3I_3I_3J(
        env, db: jlong, options: jlong, keys: jobject, offsets: jobject, lengths: jobject,
        families: jobject
    ) -> jobject {
        multi_get(env, db, options, (keys, offsets, lengths), Some(families))
    }

    fn Java_org_rocksdb_RocksDB_keyMayExist(
        env, db: jlong, family: jlong, _options: jlong, key: jobject, offset: jint, length: jint
    ) -> bool {
        let key = env.region(key, offset, length)?;
        let database = handles::hold::<Database>(db)?;
        database.with_family(family, |db, family| Ok(db.key_may_exist(family, &key)))
    }

    fn Java_org_rocksdb_RocksDB_keyMayExistDirect(
        env, db: jlong, family: jlong, _options: jlong, key: jobject, offset: jint, length: jint
    ) -> bool {
        let key = env.direct(key, offset, length)?;
        let database = handles::hold::<Database>(db)?;
        database.with_family(family, |db, family| Ok(db.key_may_exist(family, key)))
    }

    fn Java_org_rocksdb_RocksDB_keyExists(
        env, db: jlong, family: jlong, options: jlong, key: jobject, offset: jint, length: jint
    ) -> bool {
        let key = env.region(key, offset, length)?;
        read(db, family, &key, options, |answer| Ok(answer.is_some()))
    }

    fn Java_org_rocksdb_RocksDB_keyExistsDirect(
        env, db: jlong, family: jlong, options: jlong, key: jobject, offset: jint, length: jint
    ) -> bool {
        let key = env.direct(key, offset, length)?;
        read(db, family, key, options, |answer| Ok(answer.is_some()))
    }
}

/// Reads several keys of one moment; those that are not there are null.
fn multi_get(
    env: Env<'_>,
    db: jlong,
    options: jlong,
    (keys, offsets, lengths): (jobject, jobject, jobject),
    families: Option<jobject>,
) -> Outcome<jobject> {
    let (offsets, lengths) = (env.ints(offsets)?, env.ints(lengths)?);
    let mut places = offsets.into_iter().zip(lengths);
    let keys = env.each(keys, |key| {
        let (offset, length) = places.next().ok_or_else(too_few)?;
        env.region(key, offset, length)
    })?;
    let database = handles::hold::<Database>(db)?;
    let families = match families {
        Some(families) => database.families(&env.longs(families)?)?,
        None => vec![database.default.clone(); keys.len()],
    };
    if families.len() != keys.len() {
        return Err(Fault::Message(
            "Insufficient column family handles provided.".to_owned(),
        ));
    }
    let asked: Vec<_> = families.iter().zip(&keys).collect();
    let state = match options {
        0 => None,
        options => Some(value::<ReadState>(options)?),
    };
    let plain = ReadOptions::default();
    let (options, snapshot) = match &state {
        Some(state) => (&*state.read, state.snapshot.as_ref()),
        None => (&plain, None),
    };
    let found = database
        .open()?
        .multi_get_families(&asked, options, snapshot);
    // As RocksDB's library: a key whose read failed is shown as one that is not there.
    let found: Vec<Option<PinnedValue>> = found.into_iter().map(|f| f.ok().flatten()).collect();
    env.objects("[B", found.len(), |at| match &found[at] {
        Some(value) => env.new_array(value),
        None => Ok(ptr::null_mut()),
    })
}

/// The families of `count` keys: the default one where none is named, one for all, or one for each.
fn each_family(database: &Database, named: &[jlong], count: usize) -> Outcome<Vec<FamilyHandle>> {
    match database.families(named)? {
        none if none.is_empty() => Ok(vec![database.default.clone(); count]),
        one if one.len() == 1 => Ok(vec![one[0].clone(); count]),
        all if all.len() == count => Ok(all),
        _ => Err(Fault::Message(
            "Insufficient column family handles provided.".to_owned(),
        )),
    }
}

natives! {
    /// Reads into direct buffers: what fits of each value, its whole size, and its status.
    fn Java_org_rocksdb_RocksDB_multiGet__JJ_3J_3Ljava_nio_ByteBuffer_2_3I_3I_3Ljava_nio_ByteBuffer_2_3I_3Lorg_rocksdb_Status_2(
        env, db: jlong, options: jlong, families: jobject, keys: jobject, offsets: jobject,
        lengths: jobject, values: jobject, sizes: jobject, statuses: jobject
    ) {
        let (offsets, lengths) = (env.ints(offsets)?, env.ints(lengths)?);
        let mut places = offsets.into_iter().zip(lengths);
        let keys = env.each(keys, |key| {
            let (offset, length) = places.next().ok_or_else(too_few)?;
            Ok(env.direct(key, offset, length)?.to_vec())
        })?;
        let database = handles::hold::<Database>(db)?;
        let named = env.longs(families)?;
        let families = each_family(&database, &named, keys.len())?;
        let asked: Vec<_> = families.iter().zip(&keys).collect();
        let state = value::<ReadState>(options)?;
        let found =
            database.open()?.multi_get_families(&asked, &state.read, state.snapshot.as_ref());
        let mut lengths = vec![0; found.len()];
        for (at, found) in found.into_iter().enumerate() {
            let status = match found {
                Ok(Some(value)) => {
                    let buffer = env.element(values, at)?;
                    let room = env.direct_all(buffer)?.len() as jint;
                    lengths[at] = env.fill_direct(buffer, 0, room, &value)?;
                    env.forget(buffer);
                    env.status(None)?
                }
                Ok(None) => env.status(Some(&Error::not_found("")))?,
                Err(error) => env.status(Some(&error))?,
            };
            env.set(statuses, at, status)?;
            env.forget(status);
        }
        env.fill_ints(sizes, &lengths)
    }

    /// First 0 for no, 1 for maybe, 2 for yes, and then the size of the value.
    fn Java_org_rocksdb_RocksDB_keyMayExistDirectFoundValue(
        env, db: jlong, family: jlong, _options: jlong, key: jobject, offset: jint, length: jint,
        to: jobject, at: jint, room: jint
    ) -> jobject {
        let key = env.direct(key, offset, length)?;
        let database = handles::hold::<Database>(db)?;
        let (may, known) = database.with_family(family, |db, family| {
            let mut options = ReadOptions::default();
            options.read_tier = esker::options::ReadTier::BlockCache;
            let may = db.key_may_exist(family, key);
            let known = if may {
                db.get_opt(family, key, &options, None).ok().flatten()
            } else {
                None
            };
            Ok((may, known))
        })?;
        let size = match &known {
            Some(value) => env.fill_direct(to, at, room, value)?,
            None => 0,
        };
        env.new_ints(&[jint::from(may) + jint::from(known.is_some()), size])
    }
}

fn too_few() -> Fault {
    Fault::Error(Error::invalid_argument(
        "fewer offsets or lengths than keys",
    ))
}
