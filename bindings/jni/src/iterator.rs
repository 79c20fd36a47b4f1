//! Iterators over a database.

use crate::boundary::{Outcome, handles};
use crate::call_options::ReadState;
use crate::database::Database;
use crate::shared::{ExclusiveValue, value};
use crate::snapshot::SharedSnapshot;
use crate::{disposals, natives};
use esker::{DbIterator, Error, ReadOptions, Result, Snapshot, SstFileIterator};
use esker_txn::MergedIterator;
use jni_sys::{jint, jlong, jobject};

/// A place in the order of keys.
pub(crate) type Iter = ExclusiveValue<Walk>;

/// The data that an iterator walks.
#[allow(
    clippy::large_enum_variant,
    reason = "the plain iterator is the common case and stays in place"
)]
pub(crate) enum Walk {
    /// A database.
    Base(DbIterator),
    /// A database with a batch on top.
    Merged(Box<MergedIterator>),
    /// A table file.
    Table(Box<SstFileIterator>),
    /// Nothing: it was given away.
    Gone,
}

/// Calls a method that both kinds have.
macro_rules! both {
    ($walk:expr, $method:ident($($arg:expr),*), $gone:expr) => {
        match $walk {
            Walk::Base(it) => it.$method($($arg),*),
            Walk::Merged(it) => it.$method($($arg),*),
            Walk::Table(it) => it.$method($($arg),*),
            Walk::Gone => $gone,
        }
    };
}

impl Walk {
    /// Java's iterators are not valid before they are placed.
    fn valid(&self) -> bool {
        !matches!(self, Walk::Base(it) if !it.is_placed()) && both!(self, valid(), false)
    }

    /// Key and value; both empty where the iterator stands nowhere.
    fn entry(&self) -> (&[u8], &[u8]) {
        both!(self, entry(), None).unwrap_or_default()
    }

    fn key(&self) -> &[u8] {
        self.entry().0
    }

    fn value(&self) -> &[u8] {
        self.entry().1
    }

    fn status(&self) -> Result<()> {
        both!(
            self,
            status(),
            Err(Error::invalid_argument("the iterator was given away"))
        )
    }

    fn refresh(&mut self, snapshot: Option<&Snapshot>) -> Result<()> {
        match self {
            Walk::Base(it) => it.refresh(snapshot),
            _ => Err(Error::not_supported("Refresh() is not supported")),
        }
    }
}

/// An iterator over a family.
pub(crate) fn over(db: jlong, family: jlong, state: Option<&ReadState>) -> Outcome<jlong> {
    let database = handles::hold::<Database>(db)?;
    database.with_family(family, |base, family| {
        let walk = match state {
            Some(s) => base.iter_opt(family, s.read.0.clone(), s.snapshot.as_ref()),
            None => base.iter_opt(family, ReadOptions::default(), None),
        };
        Ok(handles::give_owned(Iter::new(Walk::Base(walk)), db))
    })
}

/// Moves an iterator.
macro_rules! moves {
    ($($method:ident: $($name:ident)|+;)*) => {$(
        natives! {
            fn $($name)|+(env, iterator: jlong) {
                both!(&mut *handles::hold::<Iter>(iterator)?.lock(), $method(), ());
                Ok(())
            }
        }
    )*};
}

moves! {
    seek_to_first: Java_org_rocksdb_RocksIterator_seekToFirst0
        | Java_org_rocksdb_RocksIterator_seekToFirst0Jni
        | Java_org_rocksdb_SstFileReaderIterator_seekToFirst0
        | Java_org_rocksdb_SstFileReaderIterator_seekToFirst0Jni;
    seek_to_last: Java_org_rocksdb_RocksIterator_seekToLast0
        | Java_org_rocksdb_RocksIterator_seekToLast0Jni
        | Java_org_rocksdb_SstFileReaderIterator_seekToLast0
        | Java_org_rocksdb_SstFileReaderIterator_seekToLast0Jni;
    next: Java_org_rocksdb_RocksIterator_next0 | Java_org_rocksdb_RocksIterator_next0Jni
        | Java_org_rocksdb_SstFileReaderIterator_next0
        | Java_org_rocksdb_SstFileReaderIterator_next0Jni;
    prev: Java_org_rocksdb_RocksIterator_prev0 | Java_org_rocksdb_RocksIterator_prev0Jni
        | Java_org_rocksdb_SstFileReaderIterator_prev0
        | Java_org_rocksdb_SstFileReaderIterator_prev0Jni;
}

fn seek(iterator: jlong, target: &[u8]) -> Outcome<()> {
    both!(
        &mut *handles::hold::<Iter>(iterator)?.lock(),
        seek(target),
        ()
    );
    Ok(())
}

fn seek_for_prev(iterator: jlong, target: &[u8]) -> Outcome<()> {
    both!(
        &mut *handles::hold::<Iter>(iterator)?.lock(),
        seek_for_prev(target),
        ()
    );
    Ok(())
}

natives! {
    fn Java_org_rocksdb_RocksIterator_isValid0 | Java_org_rocksdb_RocksIterator_isValid0Jni
        | Java_org_rocksdb_SstFileReaderIterator_isValid0
        | Java_org_rocksdb_SstFileReaderIterator_isValid0Jni(
        env, iterator: jlong
    ) -> bool {
        Ok(handles::hold::<Iter>(iterator)?.lock().valid())
    }

    fn Java_org_rocksdb_RocksIterator_seek0 | Java_org_rocksdb_RocksIterator_seek0Jni
        | Java_org_rocksdb_SstFileReaderIterator_seek0
        | Java_org_rocksdb_SstFileReaderIterator_seek0Jni(
        env, iterator: jlong, target: jobject, length: jint
    ) {
        seek(iterator, &env.region(target, 0, length)?)
    }

    fn Java_org_rocksdb_RocksIterator_seekByteArray0
        | Java_org_rocksdb_RocksIterator_seekByteArray0Jni
        | Java_org_rocksdb_SstFileReaderIterator_seekByteArray0
        | Java_org_rocksdb_SstFileReaderIterator_seekByteArray0Jni(
        env, iterator: jlong, target: jobject, offset: jint, length: jint
    ) {
        seek(iterator, &env.region(target, offset, length)?)
    }

    fn Java_org_rocksdb_RocksIterator_seekDirect0 | Java_org_rocksdb_RocksIterator_seekDirect0Jni
        | Java_org_rocksdb_SstFileReaderIterator_seekDirect0
        | Java_org_rocksdb_SstFileReaderIterator_seekDirect0Jni(
        env, iterator: jlong, target: jobject, offset: jint, length: jint
    ) {
        seek(iterator, env.direct(target, offset, length)?)
    }

    fn Java_org_rocksdb_RocksIterator_seekForPrev0
        | Java_org_rocksdb_RocksIterator_seekForPrev0Jni
        | Java_org_rocksdb_SstFileReaderIterator_seekForPrev0
        | Java_org_rocksdb_SstFileReaderIterator_seekForPrev0Jni(
        env, iterator: jlong, target: jobject, length: jint
    ) {
        seek_for_prev(iterator, &env.region(target, 0, length)?)
    }

    fn Java_org_rocksdb_RocksIterator_seekForPrevByteArray0
        | Java_org_rocksdb_RocksIterator_seekForPrevByteArray0Jni
        | Java_org_rocksdb_SstFileReaderIterator_seekForPrevByteArray0
        | Java_org_rocksdb_SstFileReaderIterator_seekForPrevByteArray0Jni(
        env, iterator: jlong, target: jobject, offset: jint, length: jint
    ) {
        seek_for_prev(iterator, &env.region(target, offset, length)?)
    }

    fn Java_org_rocksdb_RocksIterator_seekForPrevDirect0
        | Java_org_rocksdb_RocksIterator_seekForPrevDirect0Jni
        | Java_org_rocksdb_SstFileReaderIterator_seekForPrevDirect0
        | Java_org_rocksdb_SstFileReaderIterator_seekForPrevDirect0Jni(
        env, iterator: jlong, target: jobject, offset: jint, length: jint
    ) {
        seek_for_prev(iterator, env.direct(target, offset, length)?)
    }

    fn Java_org_rocksdb_RocksIterator_status0 | Java_org_rocksdb_RocksIterator_status0Jni
        | Java_org_rocksdb_SstFileReaderIterator_status0
        | Java_org_rocksdb_SstFileReaderIterator_status0Jni(
        env, iterator: jlong
    ) {
        Ok(handles::hold::<Iter>(iterator)?.lock().status()?)
    }

    fn Java_org_rocksdb_RocksIterator_refresh0 | Java_org_rocksdb_RocksIterator_refresh0Jni
        | Java_org_rocksdb_SstFileReaderIterator_refresh0
        | Java_org_rocksdb_SstFileReaderIterator_refresh0Jni(
        env, iterator: jlong
    ) {
        Ok(handles::hold::<Iter>(iterator)?.lock().refresh(None)?)
    }

    fn Java_org_rocksdb_RocksIterator_refresh1
        | Java_org_rocksdb_SstFileReaderIterator_refresh1(env, iterator: jlong, snapshot: jlong) {
        let moment = handles::hold_if::<SharedSnapshot>(snapshot)?;
        let snapshot = moment.as_ref().map(|m| &m.0);
        Ok(handles::hold::<Iter>(iterator)?.lock().refresh(snapshot)?)
    }

    fn Java_org_rocksdb_RocksIterator_key0
        | Java_org_rocksdb_SstFileReaderIterator_key0(env, iterator: jlong) -> jobject {
        env.new_array(handles::hold::<Iter>(iterator)?.lock().key())
    }

    fn Java_org_rocksdb_RocksIterator_value0
        | Java_org_rocksdb_SstFileReaderIterator_value0(env, iterator: jlong) -> jobject {
        env.new_array(handles::hold::<Iter>(iterator)?.lock().value())
    }

    fn Java_org_rocksdb_RocksIterator_keyByteArray0
        | Java_org_rocksdb_SstFileReaderIterator_keyByteArray0(
        env, iterator: jlong, to: jobject, offset: jint, room: jint
    ) -> jint {
        env.fill_array(to, offset, room, handles::hold::<Iter>(iterator)?.lock().key())
    }

    fn Java_org_rocksdb_RocksIterator_valueByteArray0
        | Java_org_rocksdb_SstFileReaderIterator_valueByteArray0(
        env, iterator: jlong, to: jobject, offset: jint, room: jint
    ) -> jint {
        env.fill_array(to, offset, room, handles::hold::<Iter>(iterator)?.lock().value())
    }

    fn Java_org_rocksdb_RocksIterator_keyDirect0
        | Java_org_rocksdb_SstFileReaderIterator_keyDirect0(
        env, iterator: jlong, to: jobject, offset: jint, room: jint
    ) -> jint {
        env.fill_direct(to, offset, room, handles::hold::<Iter>(iterator)?.lock().key())
    }

    fn Java_org_rocksdb_RocksIterator_valueDirect0
        | Java_org_rocksdb_SstFileReaderIterator_valueDirect0(
        env, iterator: jlong, to: jobject, offset: jint, room: jint
    ) -> jint {
        env.fill_direct(to, offset, room, handles::hold::<Iter>(iterator)?.lock().value())
    }

    /// All of one moment.
    fn Java_org_rocksdb_RocksDB_iterators(
        env, db: jlong, families: jobject, options: jlong
    ) -> jobject {
        let state = value::<ReadState>(options)?;
        let database = handles::hold::<Database>(db)?;
        let moment = match &state.snapshot {
            Some(given) => given.clone(),
            None => database.open()?.snapshot(),
        };
        let mut made = Vec::new();
        for family in database.families(&env.longs(families)?)? {
            let walk = database.open()?.iter_opt(&family, state.read.0.clone(), Some(&moment));
            made.push(handles::give_owned(Iter::new(Walk::Base(walk)), db));
        }
        env.new_longs(&made)
    }
}

disposals! {
    Iter: Java_org_rocksdb_RocksIterator_disposeInternal
        | Java_org_rocksdb_RocksIterator_disposeInternalJni
        | Java_org_rocksdb_SstFileReaderIterator_disposeInternal
        | Java_org_rocksdb_SstFileReaderIterator_disposeInternalJni;
}
