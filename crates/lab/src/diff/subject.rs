//! One library with one database, and what is open in it.
//!
//! Every pointer here comes from the loaded library, is given back once, and is used by one thread. The
//! functions that a kind of call needs were looked up before the kind is drawn, so [`c!`](self) may expect them.
//! What a call answers is text: values, errors with the directory's name taken out, counts.
//!
//! The file is split by theme: `subject/{open,data,iterate,admin,side}.rs`.
#![allow(unsafe_code)]

/// Calls a function of the library.
macro_rules! c {
    ($self:expr, $function:ident $(, $argument:expr)* $(,)?) => {{
        let function = $self.api.$function.expect("kinds that need a missing function are not drawn");
        // SAFETY: handles come from this library and are alive; buffers outlive the call.
        unsafe { function($($argument),*) }
    }};
}

mod admin;
mod data;
mod iterate;
mod open;
mod side;

use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};
use std::ptr;

use super::api::{Api, H, T, V};
use super::call::Call;
use super::callbacks::bytes;
use super::tolerated;
use crate::{Failure, Result};

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
    prefix: bool,
}

/// What a library answered: text that has to agree, and sizes that have to be alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) sizes: Vec<u64>,
}

impl From<String> for Answer {
    fn from(text: String) -> Answer {
        Answer {
            text,
            sizes: Vec::new(),
        }
    }
}

/// A library, its database, and what is open.
pub(super) struct Subject {
    api: Api,
    /// Holds `db` and everything beside it.
    pub(super) base: PathBuf,
    db: H,
    /// Options of families in byte order, and of the database.
    forward: H,
    /// Options of the family in reversed order.
    reverse: H,
    /// The comparator behind `reverse`.
    order: H,
    write: H,
    /// Plain reads, in total order.
    read: H,
    flush: H,
    families: Vec<Family>,
    dropped: Vec<Family>,
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

/// Bytes for a person, exactly when short.
pub(super) fn show(bytes: &[u8]) -> String {
    if bytes.len() <= 48 {
        return format!("\"{}\"", bytes.escape_ascii());
    }
    let hash = hash(0, bytes);
    let head = bytes[..16].escape_ascii();
    format!("\"{head}\"...({} bytes, {hash:016x})", bytes.len())
}

/// FNV-1a, going on from `seed`.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let begin = seed ^ 0xcbf2_9ce4_8422_2325;
    bytes.iter().fold(begin, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

impl Subject {
    /// Loads the library at `library` for a database below `base`.
    pub(super) fn load(library: &Path, base: &Path) -> Result<Subject> {
        let api = Api::load(library)?;
        let needed = ["open_column_families", "close", "free", "options_create"];
        if let Some(name) = needed.iter().find(|name| api.missing.contains(*name)) {
            let place = library.display();
            return Err(Failure::new(format!("{place} has no rocksdb_{name}")));
        }
        let none = ptr::null_mut();
        Ok(Subject {
            api,
            base: base.to_owned(),
            db: none,
            forward: none,
            reverse: none,
            order: none,
            write: none,
            read: none,
            flush: none,
            families: Vec::new(),
            dropped: Vec::new(),
            snapshots: Vec::new(),
            iterators: Vec::new(),
            files: 0,
        })
    }

    /// Functions of the table that this library lacks.
    pub(super) fn lacks(&self, name: &str) -> bool {
        self.api.missing.contains(name)
    }

    /// Makes the call and tells what came back.
    pub(super) fn apply(&mut self, call: &Call) -> Answer {
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
            Call::MultiGet(keys) => self.multi_get(keys).into(),
            Call::BatchedMultiGet(family, keys) => self.batched_multi_get(*family, keys).into(),
            Call::KeyMayExist(family, key) => self.key_may_exist(*family, key).into(),
            Call::IterNew(family, lower, upper, snapshot, prefix) => self
                .iter_new(
                    *family,
                    lower.as_deref(),
                    upper.as_deref(),
                    *snapshot,
                    *prefix,
                )
                .into(),
            Call::IterStep(index, steps) => self.iter_steps(*index, steps).into(),
            Call::IterDrop(index) => self.iter_drop(*index).into(),
            Call::SnapshotNew => self.snapshot_new().into(),
            Call::SnapshotDrop(index) => self.snapshot_drop(*index).into(),
            Call::Sequence => self.sequence().into(),
            Call::Digest(family) => self.digest_family(*family).into(),
            _ => self.administer(call),
        }
    }

    fn administer(&mut self, call: &Call) -> Answer {
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
            Call::UpdatesSince => self.updates_since().into(),
            Call::Checkpoint => self.checkpoint().into(),
            Call::Backup => self.backup().into(),
            Call::Ingest(family, moves, entries) => self.ingest(*family, *moves, entries).into(),
            Call::Optimistic(script) => self.optimistic(script).into(),
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

    /// Whether a family has the reversed order.
    fn is_reversed(&self, index: usize) -> bool {
        self.family(index).name == "rev"
    }

    fn in_order(&self, index: usize, a: &[u8], b: &[u8]) -> bool {
        match self.is_reversed(index) {
            true => a >= b,
            false => a <= b,
        }
    }
}
