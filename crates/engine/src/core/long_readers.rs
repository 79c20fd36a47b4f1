//! Holders of space: what keeps much of a database from going. Iterators over views that were
//! replaced, snapshots, and calls that turn deletions off, as checkpoints and backups do while they
//! run.
//!
//! An iterator holds the tables, blob files and memtables of its view that the present one no
//! longer has. A snapshot keeps versions that newer ones hide: at most as many bytes as were
//! written since, which is what is told. Where deletions are off, all obsolete files stay. A holder
//! is told of from a tenth of the family's tree on, and from what a bound on space leaves.
//!
//! Thread-safety: any thread looks. No lock of readers or writers is held over a look.

use super::Core;
use crate::family::{Family, View, open_iterators};
use esker_format::Seq;
use esker_lsm::version::Version;
use esker_sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use esker_sync::{Arc, Mutex, Rank};
use std::collections::HashSet;
use std::fmt::Write as _;

/// A reader is told of from this part of the tree on.
const TOLD_PART: u64 = 10;
/// And from this size on.
const TOLD_BYTES: u64 = 1 << 20;
/// A reader that is so old is told of in the LOG.
const TOLD_AGE_US: u64 = 60_000_000;
/// Time between two looks of the background.
const LOOK_US: u64 = 10_000_000;
/// Time after which the same readers are told of again.
const AGAIN_US: u64 = 3_600_000_000;

/// A kind of holder, with what tells one from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Holder {
    /// Iterators, by the identity of their view.
    Iterators(u64),
    /// A snapshot, by its number.
    Snapshot(u64),
    /// Calls that turned deletions off.
    NoDeletions,
}

/// A reader, or readers of the same view, that hold much.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LongReader {
    holder: Holder,
    /// Empty for all families.
    family: String,
    bytes: u64,
    /// Bytes of the family's tree, with its blob files.
    tree: u64,
    age_us: u64,
    /// Bytes that a bound on the family's space leaves beside what is alive.
    room: Option<u64>,
    /// One for each iterator that is known; the first one of a snapshot.
    threads: Vec<u64>,
    /// Obsolete files that stay, and the calls that they stay for.
    kept: (usize, usize),
}

impl LongReader {
    fn is_worth_telling(&self) -> bool {
        let is_much = self.bytes >= TOLD_BYTES && self.bytes >= self.tree / TOLD_PART;
        is_much || self.passes_bound()
    }

    /// Returns whether it may keep more from going than the bound on the family's space allows.
    fn passes_bound(&self) -> bool {
        self.room.is_some_and(|room| self.bytes > room)
    }

    /// One line, as the property shows it and the LOG.
    fn line(&self) -> String {
        let percent = (self.bytes as f64 * 100.0 / self.tree.max(1) as f64).round();
        let (bytes, age) = (self.bytes, self.age_us / 1_000_000);
        let mut threads = String::new();
        for thread in &self.threads {
            // Writing to a string cannot fail.
            let _ = write!(threads, " {thread}");
        }
        let family = &self.family;
        let bound = if self.passes_bound() {
            ": more than max_space_amplification_percent leaves"
        } else {
            ""
        };
        match self.holder {
            Holder::Snapshot(seq) => format!(
                "[{family}] the snapshot at {seq} keeps up to {bytes} bytes of older versions \
                 ({percent} % of the tree), for {age} s, taken by thread{threads}{bound}"
            ),
            Holder::Iterators(_) if self.threads.is_empty() => format!(
                "[{family}] readers that are not listed hold {bytes} bytes that were replaced \
                 ({percent} % of the tree), for at least {age} s{bound}"
            ),
            Holder::Iterators(_) => format!(
                "[{family}] {} iterators hold {bytes} bytes that were replaced ({percent} % of \
                 the tree), for at least {age} s, made by thread{threads}{bound}",
                self.threads.len()
            ),
            Holder::NoDeletions => format!(
                "deletions are off for {age} s, by {} checkpoints, backups or calls of \
                 disable_file_deletions: {} obsolete files of {bytes} bytes stay ({percent} % of \
                 all trees){bound}",
                self.kept.1, self.kept.0
            ),
        }
    }
}

/// When the background looked last, and of whom it told.
#[derive(Debug)]
pub(crate) struct LongReaderState {
    looked_us: AtomicU64,
    /// Somebody may hold much.
    is_wanted: AtomicBool,
    told: Mutex<(u64, HashSet<Holder>)>,
}

impl Default for LongReaderState {
    fn default() -> Self {
        LongReaderState {
            looked_us: AtomicU64::new(0),
            is_wanted: AtomicBool::new(false),
            told: Mutex::new(Rank::LEAF, (0, HashSet::new())),
        }
    }
}

impl Core {
    /// Returns whether [`Core::tell_long_readers`] has something to do.
    pub(crate) fn is_long_reader_look_due(&self) -> bool {
        let now_us = self.services.env.clock.now_us();
        let since = now_us.saturating_sub(self.background.long_readers.looked_us.load(Relaxed));
        let state = &self.background.long_readers;
        if since >= LOOK_US {
            state.looked_us.store(now_us, Relaxed);
            let mut families = self.trees.families.all().into_iter();
            let may_hold = self.reads.snapshots.oldest().is_some()
                || !self.trees.obsolete_files.is_enabled()
                || families.any(|family| family.has_old_views());
            state.is_wanted.store(may_hold, Relaxed);
        }
        state.is_wanted.load(Relaxed)
    }

    /// Writes into the LOG which readers keep much from going, when that is due.
    pub(crate) fn tell_long_readers(&self) {
        let state = &self.background.long_readers;
        if !state.is_wanted.swap(false, Relaxed) {
            return;
        }
        let now_us = self.services.env.clock.now_us();
        let found = self.long_readers();
        let mut told = state.told.lock();
        if now_us.saturating_sub(told.0) >= AGAIN_US {
            *told = (now_us, HashSet::new());
        }
        let old = found
            .iter()
            .filter(|reader| reader.age_us >= TOLD_AGE_US || reader.passes_bound());
        let new: Vec<_> = old.filter(|reader| told.1.insert(reader.holder)).collect();
        drop(told);
        for reader in new {
            let log = &self.services.info_log;
            log.warn(format_args!("{}", reader.line()));
        }
    }

    /// The readers that keep much from going, a line each.
    pub(crate) fn long_readers_text(&self) -> String {
        let mut text = String::new();
        for reader in self.long_readers() {
            text.push_str(&reader.line());
            text.push('\n');
        }
        text
    }

    fn long_readers(&self) -> Vec<LongReader> {
        let mut found = Vec::new();
        for family in self.trees.families.all() {
            self.add_iterators(&family, &mut found);
            self.add_snapshots(&family, &mut found);
        }
        found.extend(self.kept_files());
        found.retain(LongReader::is_worth_telling);
        found
    }

    fn add_iterators(&self, family: &Family, found: &mut Vec<LongReader>) {
        let now_us = self.services.env.clock.now_us();
        let present = family.view();
        for (view, age_us) in family.old_views(now_us) {
            found.push(LongReader {
                holder: Holder::Iterators(view.id.0),
                family: family.name.clone(),
                bytes: replaced_bytes(&view, &present),
                tree: tree_bytes(&present.version),
                age_us,
                room: room_of(family, &present),
                threads: open_iterators::holders(view.id.0),
                kept: (0, 0),
            });
        }
    }

    fn add_snapshots(&self, family: &Family, found: &mut Vec<LongReader>) {
        let present = family.view();
        let now = self.services.env.clock.unix_us() / 1_000_000;
        for held in self.reads.snapshots.held() {
            found.push(LongReader {
                holder: Holder::Snapshot(held.seq.0),
                family: family.name.clone(),
                bytes: bytes_since(&present.version, held.seq),
                tree: tree_bytes(&present.version),
                age_us: now.saturating_sub(held.taken_unix) * 1_000_000,
                room: room_of(family, &present),
                threads: vec![held.thread],
                kept: (0, 0),
            });
        }
    }

    /// Obsolete files that stay because deletions are off.
    fn kept_files(&self) -> Option<LongReader> {
        let kept = self.trees.obsolete_files.kept()?;
        let families = self.trees.families.all().into_iter();
        let looked: Vec<_> = families
            .map(|family| {
                let present = family.view();
                (tree_bytes(&present.version), room_of(&family, &present))
            })
            .collect();
        let now_us = self.services.env.clock.now_us();
        Some(LongReader {
            holder: Holder::NoDeletions,
            family: String::new(),
            bytes: kept.bytes,
            tree: looked.iter().map(|(tree, _)| tree).sum(),
            age_us: now_us.saturating_sub(kept.since_us),
            // Where one family has no bound, the files may be all its own.
            room: looked.iter().map(|(_, room)| *room).sum(),
            threads: Vec::new(),
            kept: (kept.files, kept.calls),
        })
    }
}

/// Bytes of tables and blob files.
fn tree_bytes(version: &Version) -> u64 {
    let blobs = version.blob_files().values();
    version.bytes() + blobs.map(|b| b.total_bytes).sum::<u64>()
}

/// Bytes that a bound on the family's space leaves beside what is alive.
fn room_of(family: &Family, present: &View) -> Option<u64> {
    let space = family.assessed(&present.version).tree.space?;
    Some(space.bound.saturating_sub(space.live))
}

/// Bytes of the tables, blob files and memtables of `view` that `present` lacks.
fn replaced_bytes(view: &View, present: &View) -> u64 {
    let kept: HashSet<_> = present
        .version
        .files()
        .map(|(_, file)| file.number)
        .collect();
    let gone = view
        .version
        .files()
        .filter(|(_, file)| !kept.contains(&file.number));
    let tables: u64 = if Arc::ptr_eq(&view.version, &present.version) {
        0
    } else {
        let tables: u64 = gone.map(|(_, file)| file.size).sum();
        let here = present.version.blob_files();
        let blobs = view.version.blob_files().values();
        let gone = blobs.filter(|b| !here.contains_key(&b.number));
        tables + gone.map(|b| b.total_bytes).sum::<u64>()
    };
    let memtables = |v: &View| -> Vec<_> {
        let all = v.unflushed().chain(&v.history);
        all.map(Arc::clone).collect()
    };
    let here: HashSet<_> = memtables(present).iter().map(|mem| mem.id()).collect();
    let old = memtables(view)
        .into_iter()
        .filter(|mem| !here.contains(&mem.id()));
    tables + old.map(|mem| mem.memory_usage() as u64).sum::<u64>()
}

/// About as many bytes of tables, and of the values that they refer to, as were written after
/// `seq`.
fn bytes_since(version: &Version, seq: Seq) -> u64 {
    let newer = version.files().map(|(_, file)| {
        let (from, to) = (file.smallest_seq.0, file.largest_seq.0);
        if to <= seq.0 {
            return 0.0;
        }
        let all = (to - from.min(to) + 1) as f64;
        let after = (to - seq.0.max(from.saturating_sub(1))) as f64;
        let bytes = file.size + file.blob_bytes().unwrap_or(0);
        bytes as f64 * (after / all).min(1.0)
    });
    newer.sum::<f64>() as u64
}
