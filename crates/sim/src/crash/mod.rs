//! The states of a disk after a power cut.
//!
//! A [`Point`] walks a [`DiskLog`] to an operation and knows, for each file, what is sure
//! (`durable`) and what a process sees (`current`), and which changes of names are not sure yet.
//! [`Point::state`] makes one of the states that may be found afterwards; which one follows from
//! the variant and a seed alone, so log, cut, variant and seed replay it exactly.
//!
//! Two sets of rules:
//! - *strict*: only what POSIX promises. Data is sure after fsync of the file, a name after fsync
//!   of its directory. Everything else is kept or lost independently, in sectors of 512 bytes which
//!   are written whole: new, old, zero, random, or what another file had there. Changes of names
//!   are atomic each (a rename never leaves neither name) and may be lost one by one.
//! - *ext4*: `data=ordered` with delayed allocation. Changes of names are committed in order, and
//!   the state after operation k with all of them is the state of a journal committed up to k
//!   (earlier commits are earlier cuts). Data that was not synced is a prefix of what was written,
//!   cut at a page or at a write; behind what is sure, to the end of that block, it may read as
//!   zeros. A file that was renamed over another has its data (`auto_da_alloc`).
//!
//! Invariant: a state never lacks what was promised, and a state of the variant [`Variant::Kept`]
//! is what a process that dies leaves to the next.
//!
//! Rejected: enumerating every subset (2 to the number of sectors; the seeded choice finds the
//! same bugs in a sample), and modelling blocks below files (a journal's own blocks are not ours to
//! test).
//!
//! Values; used by one thread.

use crate::disk_log::{DiskLog, Image, Ino, Node, Op, Pages, Place, overwrite};
use crate::rng::Rng;
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The unit that a disk writes whole.
pub const SECTOR: usize = 512;
/// The unit that a filesystem allocates.
const PAGE: usize = 4096;

/// Which of the possible states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Variant {
    /// Strict: nothing that is not sure.
    Lost,
    /// Everything: the process died and the machine did not.
    Kept,
    /// Strict: names are kept, data that is not sure is lost.
    DataLost,
    /// Strict: data is kept, changes of names that are not sure are lost.
    NamesLost,
    /// Strict: what is not sure in one file is lost, everything else is kept.
    OneFile,
    /// Strict: one change of a name is lost, everything else is kept.
    OneName,
    /// Strict: names are kept, each file is torn somewhere in what is not sure.
    Torn,
    /// Strict: everything that is not sure, each for itself.
    Mixed,
    /// ext4: no write-back happened.
    Ext4Lost,
    /// ext4: each file was written back up to somewhere.
    Ext4Mixed,
}

/// Every variant with its name.
pub const VARIANTS: &[(Variant, &str)] = &[
    (Variant::Lost, "lost"),
    (Variant::Kept, "kept"),
    (Variant::DataLost, "data-lost"),
    (Variant::NamesLost, "names-lost"),
    (Variant::OneFile, "one-file"),
    (Variant::OneName, "one-name"),
    (Variant::Torn, "torn"),
    (Variant::Mixed, "mixed"),
    (Variant::Ext4Lost, "ext4-lost"),
    (Variant::Ext4Mixed, "ext4-mixed"),
];

impl Variant {
    /// Returns whether the seed makes a difference.
    pub fn is_random(self) -> bool {
        matches!(
            self,
            Variant::OneFile
                | Variant::OneName
                | Variant::Torn
                | Variant::Mixed
                | Variant::Ext4Mixed
        )
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = VARIANTS.iter().find(|(v, _)| v == self);
        f.write_str(found.map_or("unknown", |(_, n)| n))
    }
}

impl FromStr for Variant {
    type Err = Error;

    fn from_str(text: &str) -> Result<Variant> {
        let found = VARIANTS.iter().find(|(_, n)| *n == text);
        found
            .map(|(v, _)| *v)
            .ok_or_else(|| Error::invalid_argument(format!("{text} is not a kind of crash state")))
    }
}

/// A power cut: after which operation, and what was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The operations before this one happened.
    pub at: usize,
    /// Which kind of state.
    pub variant: Variant,
    /// Which of that kind.
    pub seed: u64,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}#{}", self.variant, self.at, self.seed)
    }
}

impl FromStr for Cut {
    type Err = Error;

    fn from_str(text: &str) -> Result<Cut> {
        let wrong = || Error::invalid_argument(format!("a cut is VARIANT@AT#SEED, not {text}"));
        let (variant, rest) = text.split_once('@').ok_or_else(wrong)?;
        let (at, seed) = rest.split_once('#').ok_or_else(wrong)?;
        Ok(Cut {
            variant: variant.parse()?,
            at: at.parse().map_err(|_| wrong())?,
            seed: seed.parse().map_err(|_| wrong())?,
        })
    }
}

/// A file at a point of the log.
#[derive(Clone, Debug, Default)]
struct FileState {
    /// The durable bytes.
    durable: Arc<Vec<u8>>,
    /// The bytes that a process sees.
    current: Arc<Vec<u8>>,
    /// Lengths that it had since it was last synced.
    ends: Vec<usize>,
    /// Bytes that a failed fsync left unwritten on clean pages: a later fsync does not write them.
    doubtful: Vec<(usize, usize)>,
    /// Under ext4's rules at least this many bytes are there.
    allocated: usize,
}

impl FileState {
    fn sync(&mut self) {
        self.ends.clear();
        if self.doubtful.is_empty() {
            self.durable = Arc::clone(&self.current);
            return;
        }
        let mut sure = self.current.to_vec();
        for &(from, to) in &self.doubtful {
            for (at, byte) in sure.iter_mut().enumerate().take(to).skip(from) {
                *byte = self.durable.get(at).copied().unwrap_or(0);
            }
        }
        self.durable = Arc::new(sure);
    }

    fn fail_sync(&mut self, pages: Pages) {
        match pages {
            Pages::Kept => {
                let range = (self.durable.len(), self.current.len());
                if range.0 < range.1 {
                    self.doubtful.push(range);
                }
            }
            Pages::Reverted => self.current = Arc::clone(&self.durable),
            Pages::Dropped => {
                let len = self.current.len();
                let mut bytes = self.durable.to_vec();
                bytes.resize(len, 0);
                self.current = Arc::new(bytes);
            }
        }
    }

    fn is_sure(&self) -> bool {
        Arc::ptr_eq(&self.durable, &self.current)
    }
}

/// A change of names that is not sure: `set` and `unset` happen together.
#[derive(Clone, Debug)]
struct Change {
    set: Option<(Place, Node)>,
    unset: Option<(Place, Node)>,
}

impl Change {
    fn touches(&self, dir: crate::disk_log::DirNo) -> bool {
        let in_dir = |p: &Option<(Place, Node)>| p.as_ref().is_some_and(|((d, _), _)| *d == dir);
        in_dir(&self.set) || in_dir(&self.unset)
    }

    fn apply(&self, to: &mut Image) {
        if let Some((at, node)) = &self.unset {
            let names = to.dir_mut(at.0);
            if names.get(&at.1) == Some(node) {
                names.remove(&at.1);
            }
        }
        if let Some((at, node)) = &self.set {
            if let Node::Dir(d) = node {
                to.dir_mut(*d);
            }
            to.dir_mut(at.0).insert(Arc::clone(&at.1), *node);
        }
    }
}

/// A log walked up to an operation.
#[derive(Clone, Debug)]
pub struct Point {
    at: usize,
    files: Vec<FileState>,
    /// Names that are sure; its files are not used.
    names: Image,
    /// Changes of names that are not sure, oldest first.
    changes: Vec<Change>,
}

impl Point {
    /// Before the first operation of `log`.
    pub fn start(log: &DiskLog) -> Self {
        let file = |bytes: &Arc<Vec<u8>>| FileState {
            durable: Arc::clone(bytes),
            current: Arc::clone(bytes),
            ..FileState::default()
        };
        Point {
            at: 0,
            files: log.base.files.iter().map(file).collect(),
            names: Image {
                files: Vec::new(),
                dirs: log.base.dirs.clone(),
            },
            changes: Vec::new(),
        }
    }

    /// After the first `at` operations of `log`.
    pub fn at(log: &DiskLog, at: usize) -> Self {
        let mut point = Self::start(log);
        point.advance(log, at);
        point
    }

    /// Where it is.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Goes on to operation `to` of the same log; never back.
    pub fn advance(&mut self, log: &DiskLog, to: usize) {
        let to = to.min(log.ops.len());
        while self.at < to {
            self.apply(&log.ops[self.at]);
            self.at += 1;
        }
    }

    fn file(&mut self, file: Ino) -> &mut FileState {
        let at = file.0 as usize;
        if self.files.len() <= at {
            self.files.resize_with(at + 1, FileState::default);
        }
        &mut self.files[at]
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Write { file, offset, data } => {
                let f = self.file(*file);
                f.ends.push(f.current.len());
                overwrite(Arc::make_mut(&mut f.current), *offset, data);
            }
            Op::Truncate { file, len } => {
                let f = self.file(*file);
                let len = usize::try_from(*len).unwrap_or(usize::MAX);
                f.ends.push(f.current.len());
                Arc::make_mut(&mut f.current).resize(len, 0);
            }
            Op::Sync { file } => self.file(*file).sync(),
            Op::SyncFailed { file, pages } => self.file(*file).fail_sync(*pages),
            Op::Close { .. } | Op::Lock { .. } => {}
            Op::Create { at, file } => {
                self.file(*file);
                self.change(Some((at, Node::File(*file))), None);
            }
            Op::Link { at, file } => self.change(Some((at, Node::File(*file))), None),
            Op::Mkdir { at, dir } => self.change(Some((at, Node::Dir(*dir))), None),
            Op::Remove { at, file } => self.change(None, Some((at, Node::File(*file)))),
            Op::Rmdir { at, dir } => self.change(None, Some((at, Node::Dir(*dir)))),
            Op::Rename {
                from,
                to,
                node,
                replaced,
            } => {
                if let (Node::File(file), Some(_)) = (node, replaced) {
                    let f = self.file(*file);
                    f.allocated = f.current.len();
                }
                self.change(Some((to, *node)), Some((from, *node)));
            }
            Op::SyncDir { dir } => {
                let changes = std::mem::take(&mut self.changes);
                for change in changes {
                    if change.touches(*dir) {
                        change.apply(&mut self.names);
                    } else {
                        self.changes.push(change);
                    }
                }
            }
        }
    }

    fn change(&mut self, set: Option<(&Place, Node)>, unset: Option<(&Place, Node)>) {
        let own = |p: Option<(&Place, Node)>| p.map(|(at, node)| (at.clone(), node));
        self.changes.push(Change {
            set: own(set),
            unset: own(unset),
        });
    }

    /// Returns whether anything is not sure.
    pub fn has_unsure(&self) -> bool {
        !self.changes.is_empty() || self.files.iter().any(|f| !f.is_sure())
    }

    /// One of the states that may be found after a power cut here.
    pub fn state(&self, variant: Variant, seed: u64) -> Image {
        let mut rng = Rng::new(seed);
        let mut out = self.names.clone();
        for change in self.kept_changes(variant, &mut rng) {
            change.apply(&mut out);
        }
        let unsure: Vec<usize> = (0..self.files.len())
            .filter(|i| !self.files[*i].is_sure())
            .collect();
        let victim = match unsure.len() {
            0 => usize::MAX,
            n => unsure[rng.index(n)],
        };
        out.files = (0..self.files.len())
            .map(|i| self.bytes(i, variant, victim, &mut rng))
            .collect();
        out
    }

    /// Where `image`, a state of this point, differs from what a process saw, one line for each
    /// file.
    pub fn describe(&self, image: &Image) -> String {
        use std::fmt::Write as _;
        let kept = self.state(Variant::Kept, 0);
        let (seen, left) = (kept.list(), image.list());
        let mut out = String::new();
        let paths: std::collections::BTreeSet<_> = seen.keys().chain(left.keys()).collect();
        for path in paths {
            // Writing into a string does not fail.
            let _ = match (seen.get(path), left.get(path)) {
                (Some(a), None) => writeln!(out, "{path}: {} bytes, gone", a.len()),
                (None, Some(b)) => writeln!(out, "{path}: {} bytes, back again", b.len()),
                (Some(a), Some(b)) if a == b => Ok(()),
                (Some(a), Some(b)) => {
                    let sure = self.files.iter().find(|f| Arc::ptr_eq(&f.current, a));
                    let sure = sure.map_or(0, |f| f.durable.len());
                    let same = a.iter().zip(b.iter()).take_while(|(x, y)| x == y).count();
                    writeln!(
                        out,
                        "{path}: {} of {} bytes, {sure} sure, the first {same} are the same",
                        b.len(),
                        a.len()
                    )
                }
                (None, None) => Ok(()),
            };
        }
        out
    }

    fn kept_changes(&self, variant: Variant, rng: &mut Rng) -> Vec<&Change> {
        let all = self.changes.iter();
        match variant {
            Variant::Lost | Variant::NamesLost => Vec::new(),
            Variant::OneName => {
                let lost = rng.index(self.changes.len());
                all.enumerate()
                    .filter(|(i, _)| *i != lost)
                    .map(|(_, c)| c)
                    .collect()
            }
            Variant::Mixed => match rng.below(4) {
                // A prefix, as most filesystems leave it.
                0 => {
                    let n = rng.index(self.changes.len() + 1);
                    all.take(n).collect()
                }
                1 => all.collect(),
                _ => {
                    let kept = 1 + rng.below(7);
                    all.filter(|_| rng.below(8) < kept).collect()
                }
            },
            _ => all.collect(),
        }
    }

    fn bytes(&self, index: usize, variant: Variant, victim: usize, rng: &mut Rng) -> Arc<Vec<u8>> {
        let file = &self.files[index];
        if file.is_sure() {
            return Arc::clone(&file.durable);
        }
        let lost = match variant {
            Variant::Lost | Variant::DataLost => true,
            Variant::OneFile => index == victim,
            Variant::Kept | Variant::NamesLost | Variant::OneName => false,
            Variant::Torn => return Arc::new(torn(file, rng)),
            Variant::Mixed => return self.mixed(file, rng),
            Variant::Ext4Lost => return Arc::new(prefix(file, file.durable.len(), rng)),
            Variant::Ext4Mixed => {
                let end = some_end(file, PAGE, rng);
                return Arc::new(prefix(file, end, rng));
            }
        };
        Arc::clone(if lost { &file.durable } else { &file.current })
    }

    fn mixed(&self, file: &FileState, rng: &mut Rng) -> Arc<Vec<u8>> {
        match rng.below(6) {
            0 => Arc::clone(&file.durable),
            1 => Arc::clone(&file.current),
            2 => Arc::new(torn(file, rng)),
            _ => Arc::new(self.scattered(file, rng)),
        }
    }

    /// Each sector that is not sure for itself, and a length between the two.
    fn scattered(&self, file: &FileState, rng: &mut Rng) -> Vec<u8> {
        let mut out = file.durable.to_vec();
        let len = if rng.one_in(2) {
            file.current.len()
        } else {
            some_end(file, SECTOR, rng)
        };
        out.resize(len, 0);
        // How likely a sector is the new one, and what else it is.
        let likely = 1 + rng.below(7);
        let kind = rng.below(4);
        let other = &self.files[rng.index(self.files.len())].current;
        let mut at = 0;
        while at < len {
            let end = (at + SECTOR).min(len);
            let new = file.current.get(at..end.min(file.current.len()));
            let new = new.unwrap_or(&[]);
            let is_sure = file.durable.get(at..at + new.len()) == Some(new);
            if !is_sure {
                // What is sure of a sector stays: the rest of it was not written.
                let sure = file.durable.len().clamp(at, end);
                if rng.below(8) < likely {
                    out[at..at + new.len()].copy_from_slice(new);
                } else if kind == 2 {
                    out[sure..end]
                        .iter_mut()
                        .for_each(|b| *b = rng.next_u64() as u8);
                } else if kind == 3 {
                    let stale = other.get(sure..end.min(other.len())).unwrap_or(&[]);
                    out[sure..sure + stale.len()].copy_from_slice(stale);
                }
            }
            at = end;
        }
        out
    }
}

/// A length between what is sure and what was seen: at a write, or at a boundary of `unit` bytes.
fn some_end(file: &FileState, unit: usize, rng: &mut Rng) -> usize {
    let (low, high) = (file.durable.len(), file.current.len());
    let (low, high) = (low.min(high), low.max(high));
    match rng.below(4) {
        0 => high,
        1 if !file.ends.is_empty() => (*rng.pick(&file.ends)).clamp(low, high),
        _ => {
            let at = low + rng.index(high - low + 1);
            (at - at % unit).clamp(low, high)
        }
    }
}

/// The new data up to somewhere, and there it ends or goes on as zeros.
fn torn(file: &FileState, rng: &mut Rng) -> Vec<u8> {
    let end = some_end(file, SECTOR, rng);
    let mut out = file.durable.to_vec();
    let new = &file.current[..end.min(file.current.len())];
    if out.len() < end {
        out.resize(end, 0);
    }
    out[..new.len()].copy_from_slice(new);
    if rng.one_in(2) {
        out.resize(file.current.len().max(end), 0);
    } else {
        out.truncate(end);
    }
    out
}

/// Returns the bytes that ext4 leaves of a file written back up to `end`.
fn prefix(file: &FileState, end: usize, rng: &mut Rng) -> Vec<u8> {
    let end = end.max(file.allocated).min(file.current.len());
    let mut out = file.current[..end].to_vec();
    let sure = file.durable.len().max(file.allocated);
    // The block that held the end is not waited for by the journal when its length grows.
    let block = sure.next_multiple_of(PAGE).min(out.len());
    if sure < block && rng.one_in(3) {
        out[sure..block].fill(0);
    }
    if out.len() < file.durable.len() && file.ends.is_empty() {
        return file.durable.to_vec();
    }
    out
}

/// Returns the durable bytes of one file at the end of `log`.
pub(crate) fn durable_bytes(log: &DiskLog, file: Ino) -> Vec<u8> {
    let mut state = FileState::default();
    if let Some(bytes) = log.base.files.get(file.0 as usize) {
        state.durable = Arc::clone(bytes);
        state.current = Arc::clone(bytes);
    }
    let mut names = BTreeMap::new();
    names.insert(file, state);
    let mut point = Point {
        at: 0,
        files: vec![FileState::default(); file.0 as usize],
        names: Image::default(),
        changes: Vec::new(),
    };
    point.files.extend(names.into_values());
    for op in &log.ops {
        let own = match op {
            Op::Write { file: f, .. }
            | Op::Truncate { file: f, .. }
            | Op::Sync { file: f }
            | Op::SyncFailed { file: f, .. } => *f == file,
            _ => false,
        };
        if own {
            point.apply(op);
        }
    }
    point.files[file.0 as usize].durable.to_vec()
}
