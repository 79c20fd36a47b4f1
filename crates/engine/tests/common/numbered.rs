//! Keys made of numbers, in their order, and what a database has of them.

use esker::{Db, DbIterator, ReadOptions, Snapshot};

/// The key of a number below a million.
pub(crate) fn key(n: u32) -> Vec<u8> {
    format!("k{n:06}").into_bytes()
}

/// The keys of `numbers`.
pub(crate) fn all(numbers: impl IntoIterator<Item = u32>) -> Vec<Vec<u8>> {
    numbers.into_iter().map(key).collect()
}

/// Writes each number under its key.
pub(crate) fn put(db: &Db, numbers: impl IntoIterator<Item = u32>) {
    for n in numbers {
        db.put(key(n), n.to_le_bytes()).expect("written");
    }
}

/// Deletes the keys of `numbers`.
pub(crate) fn delete(db: &Db, numbers: impl IntoIterator<Item = u32>) {
    for n in numbers {
        db.delete(key(n)).expect("deleted");
    }
}

/// All keys that an iterator shows, first to last.
pub(crate) fn forward(mut it: DbIterator) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    it.seek_to_first();
    while it.valid() {
        keys.push(it.key().to_vec());
        it.next();
    }
    it.status().expect("walks to the end");
    keys
}

/// Keys that a walk backward shows, in their order.
pub(crate) fn backward(mut it: DbIterator) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    it.seek_to_last();
    while it.valid() {
        keys.push(it.key().to_vec());
        it.prev();
    }
    it.status().expect("walks to the end");
    keys.reverse();
    keys
}

/// An iterator over the state of a snapshot.
pub(crate) fn at(db: &Db, snapshot: &Snapshot) -> DbIterator {
    let family = db.default_family_handle();
    db.iter_opt(&family, ReadOptions::default(), Some(snapshot))
}
