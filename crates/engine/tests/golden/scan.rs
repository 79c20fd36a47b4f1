//! Everything that a database answers: scans both ways, seeks and point reads must agree, and their
//! text has a digest.

use esker::{Db, Error, ReadOptions, Result};
use md5::{Digest, Md5};
use std::fmt::Write as _;

/// The text of a scan in short.
pub(crate) struct Found {
    pub(crate) entries: usize,
    pub(crate) md5: String,
}

/// One line for each entry, `FAMILY hexkey hexvalue`, as a digest.
#[derive(Default)]
pub(crate) struct Text {
    md5: Md5,
    entries: usize,
    line: String,
}

impl Text {
    /// Adds an entry.
    pub(crate) fn add(&mut self, family: &str, key: &[u8], value: &[u8]) {
        let line = &mut self.line;
        line.clear();
        line.push_str(family);
        for part in [key, value] {
            line.push(' ');
            for byte in part {
                let _ = write!(line, "{byte:02x}");
            }
        }
        line.push('\n');
        self.md5.update(line.as_bytes());
        self.entries += 1;
    }

    /// The digest of all that was added.
    pub(crate) fn finish(self) -> Found {
        let mut md5 = String::new();
        for byte in self.md5.finalize() {
            let _ = write!(md5, "{byte:02x}");
        }
        Found {
            entries: self.entries,
            md5,
        }
    }
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn differs(family: &str, what: &str, key: &[u8]) -> Error {
    let key = key.escape_ascii();
    Error::corruption(format!("{what} differs from the scan at {family}/{key}"))
}

fn total_order() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.total_order_seek = true;
    options
}

/// The digest of a forward scan of all families, once everything else that reads agreed with it.
pub(crate) fn digest_of(db: &Db) -> Result<Found> {
    let mut text = Text::default();
    for family in db.families() {
        let mut entries: Entries = Vec::new();
        let mut it = db.iter_opt(&family, total_order(), None);
        it.seek_to_first();
        while it.valid() {
            entries.push((it.key().to_vec(), it.value().to_vec()));
            it.next();
        }
        it.status()?;
        drop(it);
        for (key, value) in &entries {
            text.add(family.name(), key, value);
        }
        check_backward(db, &family, &entries)?;
        check_points(db, &family, &entries)?;
        check_seeks(db, &family, &entries)?;
    }
    Ok(text.finish())
}

fn check_backward(db: &Db, family: &esker::FamilyHandle, entries: &Entries) -> Result<()> {
    let mut it = db.iter_opt(family, total_order(), None);
    it.seek_to_last();
    for (key, value) in entries.iter().rev() {
        if !it.valid() || it.key() != key || it.value() != value {
            it.status()?;
            return Err(differs(family.name(), "the backward scan", key));
        }
        it.prev();
    }
    if it.valid() {
        return Err(differs(family.name(), "the backward scan's end", it.key()));
    }
    it.status()
}

/// Every key must be found, and a key just after it must not.
fn check_points(db: &Db, family: &esker::FamilyHandle, entries: &Entries) -> Result<()> {
    for (key, value) in entries {
        if db.get_cf(family, key)?.as_ref() != Some(value) {
            return Err(differs(family.name(), "the point read", key));
        }
    }
    let options = ReadOptions::default();
    let found = db.multi_get_opt(family, entries.iter().map(|(k, _)| k), &options, None);
    for ((key, value), found) in entries.iter().zip(found) {
        if found?.as_deref() != Some(&value[..]) {
            return Err(differs(family.name(), "the read of many", key));
        }
    }
    let order = family.order();
    for (key, _) in entries {
        let after = [&key[..], b"\0"].concat();
        let found = entries.binary_search_by(|(k, _)| order.compare_bare(k, &after));
        if found.is_err() && db.get_cf(family, &after)?.is_some() {
            return Err(differs(family.name(), "the read of an absent key", &after));
        }
    }
    Ok(())
}

/// Seeks to some keys, and to the gaps after them, from both sides.
fn check_seeks(db: &Db, family: &esker::FamilyHandle, entries: &Entries) -> Result<()> {
    let order = family.order();
    let mut it = db.iter_opt(family, total_order(), None);
    for at in (0..entries.len()).step_by(13) {
        let (key, value) = &entries[at];
        let gap = [&key[..], b"\0"].concat();
        it.seek(key);
        if it.entry() != Some((key, value)) {
            it.status()?;
            return Err(differs(family.name(), "the seek", key));
        }
        it.seek_for_prev(&gap);
        let before = entries.partition_point(|(k, _)| order.compare_bare(k, &gap).is_le());
        let before = before.checked_sub(1).map(|at| &entries[at]);
        if it.entry().map(|(k, _)| k) != before.map(|(k, _)| &k[..]) {
            it.status()?;
            return Err(differs(family.name(), "the seek for the previous", &gap));
        }
        it.seek(&gap);
        let after = entries.partition_point(|(k, _)| order.compare_bare(k, &gap).is_lt());
        let after = entries.get(after);
        if it.entry().map(|(k, _)| k) != after.map(|(k, _)| &k[..]) {
            it.status()?;
            return Err(differs(family.name(), "the seek into a gap", &gap));
        }
    }
    it.status()
}
