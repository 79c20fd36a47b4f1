//! One library with one database, and what is open in it.
//!
//! Every pointer here comes from the loaded library, is given back once, and is used by one thread.
//! The functions that a kind of call needs were looked up before the kind is drawn, so
//! [`c!`](crate::api) may expect them. What a call answers is text: values, errors with the
//! directory's name taken out, counts.
//!
//! The file is split by theme: `subject/{open,data,iterate,admin,side,aside,txn}.rs`.
#![allow(unsafe_code)]

mod admin;
mod aside;
mod data;
mod iterate;
mod open;
mod side;
mod txn;

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::ptr;

pub(super) use super::answer::{CallResult, hash, show};
use super::api::c;
pub(super) use super::api::{Api, H, T, V};
use super::call::{Call, Order, Record};
use super::callbacks::bytes;
use super::{options, tolerated};
use crate::{Failure, Result};
use open::Mode;

/// An open column family.
struct Family {
    name: String,
    handle: H,
}

/// An open iterator, and what it points into.
struct OpenIter {
    handle: H,
    read: H,
    lower: Vec<u8>,
    upper: Vec<u8>,
    order: Order,
}

/// A library, its database, and what is open.
pub(super) struct LibraryState {
    api: Api,
    /// Functions that the other library lacks.
    absent: BTreeSet<&'static str>,
    /// Holds `db` and everything beside it.
    pub(super) base: PathBuf,
    db: H,
    /// Options by the family's name; the first are also those of the database.
    options: Vec<(&'static str, H)>,
    /// The text of the options that every family has.
    base_options: String,
    own_order_ranges: bool,
    /// Bytes of the cache of values in blob files; 0 for none.
    blob_cache: usize,
    /// Names of families whose blob files were turned on while they were open.
    separated: BTreeSet<String>,
    /// The reversed order.
    order: H,
    write: H,
    /// Plain reads, in total order.
    read: H,
    flush: H,
    families: Vec<Family>,
    dropped: Vec<Family>,
    /// Names of families that ranges were deleted in.
    ranged: BTreeSet<String>,
    snapshots: Vec<H>,
    iterators: Vec<OpenIter>,
    files: u64,
}

fn at(data: &[u8]) -> T {
    data.as_ptr().cast()
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).expect("zero bytes were taken out")
}

fn c_path(path: &Path) -> CString {
    c_text(&path.to_string_lossy())
}

impl LibraryState {
    /// Loads the library at `library` for a database below `base`.
    pub(super) fn load(library: &Path, base: &Path) -> Result<LibraryState> {
        let api = Api::load(library)?;
        let needed = ["open_column_families", "close", "free", "options_create"];
        if let Some(name) = needed.iter().find(|name| api.missing.contains(*name)) {
            let place = library.display();
            return Err(Failure::new(format!("{place} has no rocksdb_{name}")));
        }
        let none = ptr::null_mut();
        Ok(LibraryState {
            api,
            absent: BTreeSet::new(),
            base: base.to_owned(),
            db: none,
            options: Vec::new(),
            base_options: String::new(),
            own_order_ranges: false,
            blob_cache: 0,
            separated: BTreeSet::new(),
            order: none,
            write: none,
            read: none,
            flush: none,
            families: Vec::new(),
            dropped: Vec::new(),
            ranged: BTreeSet::new(),
            snapshots: Vec::new(),
            iterators: Vec::new(),
            files: 0,
        })
    }

    /// Functions of the table that this library lacks.
    pub(super) fn lacks(&self, name: &str) -> bool {
        self.api.missing.contains(name) || self.absent.contains(name)
    }

    /// Returns whether one of the libraries is older than RocksDB 8.
    pub(crate) fn is_old(&self) -> bool {
        self.lacks("wait_for_compact")
    }

    /// Does without what the other library lacks, so that both make the same calls.
    pub(super) fn level(&mut self, other: &LibraryState) {
        self.absent.extend(&other.api.missing);
    }

    /// Makes the call and tells what came back.
    pub(super) fn apply(&mut self, call: &Call) -> CallResult {
        self.note_ranges(call);
        match call {
            Call::Put(family, key, value) => self.put(*family, key, value).into(),
            Call::Delete(family, key) => self.delete(*family, key).into(),
            Call::PutOnce(n) => self
                .put(0, format!("once{n:06}").as_bytes(), b"once")
                .into(),
            Call::SingleDelete(n) => self.single_delete(format!("once{n:06}").as_bytes()).into(),
            Call::Merge(family, key, value) => self.merge(*family, key, value).into(),
            Call::DeleteRange(family, begin, end) => self.delete_range(*family, begin, end).into(),
            Call::Batch(records) => self.batch(records).into(),
            Call::GarbageBatch(bytes) => self.garbage_batch(bytes).into(),
            Call::IndexedBatch(overwrite, records, probes) => {
                self.indexed_batch(*overwrite, records, probes).into()
            }
            Call::Get(family, key, snapshot) => self.get(*family, key, *snapshot).into(),
            Call::GetPinned(family, key, snapshot) => {
                self.get_pinned(*family, key, *snapshot).into()
            }
            Call::GetIntoBuffer(family, key, room) => {
                self.get_into_buffer(*family, key, *room).into()
            }
            Call::MultiGet(keys, snapshot) => self.multi_get(keys, *snapshot).into(),
            Call::BatchedMultiGet(family, keys, snapshot, sorted) => self
                .batched_multi_get(*family, keys, *snapshot, *sorted)
                .into(),
            Call::PutWith(family, key, value, flags) => {
                self.put_with(*family, key, value, *flags).into()
            }
            Call::BatchSeen(records) => self.batch_seen(records).into(),
            Call::Iterators(families, key) => self.iterators(families, key).into(),
            Call::KeyMayExist(family, key) => self.key_may_exist(*family, key).into(),
            Call::IterNew(plan) => self.iter_new(plan).into(),
            Call::IterStep(index, steps) => self.iter_steps(*index, steps).into(),
            Call::IterDrop(index) => self.iter_drop(*index).into(),
            Call::SnapshotNew => self.snapshot_new().into(),
            Call::SnapshotDrop(index) => self.snapshot_drop(*index).into(),
            Call::Sequence => self.sequence().into(),
            Call::Digest(family) => self.digest_family(*family).into(),
            _ => self.administer(call),
        }
    }

    /// RocksDB has no tailing iterators over ranges that were deleted, so it matters where that
    /// was.
    fn note_ranges(&mut self, call: &Call) {
        let of = |record: &Record| match record {
            Record::DeleteRange(family, ..) => Some(*family),
            _ => None,
        };
        match call {
            Call::DeleteRange(family, ..)
            | Call::FilesInRange(family, ..)
            | Call::IngestMany(family, ..) => self.note_range(*family),
            Call::Batch(records) | Call::BatchSeen(records) => {
                records
                    .iter()
                    .filter_map(of)
                    .for_each(|f| self.note_range(f));
            }
            // It has the ranges of the family it is made of, as far as these are known here.
            Call::Export(family, ..) if self.ranged.contains(&self.family(*family).name) => {
                for (kind, number) in [('i', 0), ('i', 1), ('i', 2), ('r', 0), ('r', 1), ('r', 2)] {
                    self.ranged.insert(format!("{kind}{number}"));
                    self.ranged.insert(format!("u{number}"));
                }
            }
            _ => {}
        }
    }

    fn administer(&mut self, call: &Call) -> CallResult {
        match call {
            Call::CreateFamily(name) => self.create_family(name).into(),
            Call::DropFamily(family) => self.drop_family(*family).into(),
            Call::DroppedFamily(index, key) => self.dropped_family(*index, key).into(),
            Call::ListFamilies => self.list_families().into(),
            Call::Flush(family) => self.flush(*family).into(),
            Call::FlushAll => self.flush_all().into(),
            Call::FlushWal(sync) => self.flush_wal(*sync).into(),
            Call::CompactRange(family, begin, end) => self
                .compact_range(*family, begin.as_deref(), end.as_deref())
                .into(),
            Call::SuggestCompactRange(family, begin, end) => {
                self.suggest_compact_range(*family, begin, end).into()
            }
            Call::Property(family, name) => self.property(*family, name).into(),
            Call::PropertyInt(family, name) => self.property_int(*family, name).into(),
            Call::ApproximateSizes(family, ranges) => self.approximate_sizes(*family, ranges),
            Call::SetOptions(family, name, value) => self.set_options(*family, name, value).into(),
            Call::SetDbOptions(name, value) => self.set_db_options(name, value).into(),
            Call::OptionsString(text) => self.options_string(text).into(),
            Call::FileDeletions => self.file_deletions().into(),
            Call::Identity => self.identity().into(),
            Call::LiveFiles => self.live_files(),
            Call::UpdatesSince(back) => self.updates_since(*back).into(),
            Call::Checkpoint => self.checkpoint().into(),
            Call::Backup => self.backup().into(),
            Call::Ingest(family, moves, entries) => self.ingest(*family, *moves, entries).into(),
            Call::IngestMany(family, entries, ranges) => {
                self.ingest_many(*family, entries, ranges).into()
            }
            Call::Optimistic(script) => self.transactions(script, Mode::Optimistic).into(),
            Call::Pessimistic(script) => self.transactions(script, Mode::Pessimistic).into(),
            Call::CompactOptions(family, begin, end, bottommost, level) => {
                let (begin, end) = (begin.as_deref(), end.as_deref());
                self.compact_with(*family, begin, end, *bottommost, *level)
                    .into()
            }
            Call::FilesInRange(family, begin, end) => {
                self.files_in_range(*family, begin, end).into()
            }
            Call::Settled(family) => self.settled(*family),
            Call::Export(family, moves, number) => self.export(*family, *moves, *number).into(),
            Call::Ttl(entries, keys) => self.ttl(entries, keys).into(),
            Call::Filtered(first, second) => self.filtered(first, second).into(),
            Call::Destroy => self.destroy_copy().into(),
            Call::Tickers(family, keys) => self.tickers(*family, keys).into(),
            Call::Secondary => self.secondary().into(),
            Call::ReadOnly => self.read_only().into(),
            Call::Reopen => self.reopen().into(),
            Call::OpenWithout => self.open_without().into(),
            // The driver swaps the directories of both.
            _ => String::new().into(),
        }
    }

    /// How a call with an error pointer ended.
    fn ended(&self, error: V) -> String {
        match self.error(error) {
            None => "ok".into(),
            Some(text) => format!("error {text}"),
        }
    }

    /// The error's text without the directory and without numbers of threads and times; frees it.
    fn error(&self, error: V) -> Option<String> {
        if error.is_null() {
            return None;
        }
        // SAFETY: the library left a zero-terminated text.
        let text = unsafe { CStr::from_ptr(error) }.to_string_lossy();
        let all = self.base.parent().unwrap_or(&self.base);
        let name = |own: &str| all.join(own).to_string_lossy().into_owned();
        let text = text
            .replace(&name("a"), "<dir>")
            .replace(&name("b"), "<dir>");
        c!(self, free, error.cast());
        Some(tolerated::marked(&text))
    }

    /// A value that the library allocated, for a person; frees it.
    fn taken(&self, value: V, size: usize) -> String {
        if value.is_null() {
            return "none".into();
        }
        // SAFETY: the library says that `size` bytes are there.
        let shown = show(unsafe { bytes(value, size) });
        c!(self, free, value.cast());
        shown
    }

    fn family(&self, index: usize) -> &Family {
        &self.families[index % self.families.len()]
    }

    fn handle(&self, index: usize) -> H {
        self.family(index).handle
    }

    /// Returns whether a family has the reversed order.
    fn is_reversed(&self, index: usize) -> bool {
        options::is_reversed(&self.family(index).name)
    }

    /// Ranges may be deleted in the family from here on.
    fn note_range(&mut self, index: usize) {
        let name = &self.family(index).name;
        if self.ranged.contains(name) {
            return;
        }
        self.ranged.insert(name.clone());
        let tails = |iter: &OpenIter| iter.order == Order::Tailing;
        while let Some(tailing) = self.iterators.iter().position(tails) {
            self.iter_drop(tailing);
        }
    }

    fn in_order(&self, index: usize, a: &[u8], b: &[u8]) -> bool {
        if self.is_reversed(index) {
            a >= b
        } else {
            a <= b
        }
    }
}
