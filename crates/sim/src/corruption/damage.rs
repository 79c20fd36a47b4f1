//! Changes of a file of a database at rest: values with a text of their own, which replays them.

use crate::Rng;
use crate::disk::{Image, Node};
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A change of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// One bit is the other one: byte and bit.
    Flip(usize, u8),
    /// Bytes from the first on are zero: where, how many.
    Zero(usize, usize),
    /// Two blocks are in each other's place: their starts and their length.
    Swap(usize, usize, usize),
    /// The file ends here.
    Cut(usize),
    /// The file is gone.
    Delete,
}

/// The recovery modes, by their names in options.
pub const MODES: [&str; 4] = [
    "kPointInTimeRecovery",
    "kTolerateCorruptedTailRecords",
    "kAbsoluteConsistency",
    "kSkipAnyCorruptedRecords",
];

/// A file and what is done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file's path.
    pub path: String,
    /// The change.
    pub change: Change,
    /// The recovery mode of the open that follows: an index into [`MODES`].
    pub mode: usize,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}:", MODES[self.mode], self.path)?;
        match self.change {
            Change::Flip(at, bit) => write!(f, "flip@{at}.{bit}"),
            Change::Zero(at, len) => write!(f, "zero@{at}+{len}"),
            Change::Swap(a, b, len) => write!(f, "swap@{a}~{b}+{len}"),
            Change::Cut(at) => write!(f, "cut@{at}"),
            Change::Delete => write!(f, "delete"),
        }
    }
}

impl FromStr for Damage {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::invalid_argument(format!("no damage: {text}"));
        let (mode, rest) = text.split_once(' ').ok_or_else(wrong)?;
        let mode = MODES.iter().position(|m| *m == mode).ok_or_else(wrong)?;
        let (path, change) = rest.rsplit_once(':').ok_or_else(wrong)?;
        let (what, numbers) = change.split_once('@').unwrap_or((change, ""));
        let numbers = numbers.split(['.', '+', '~']).filter(|n| !n.is_empty());
        let numbers: std::result::Result<Vec<usize>, _> = numbers.map(str::parse).collect();
        let change = match (what, &*numbers.map_err(|_| wrong())?) {
            ("flip", &[at, bit @ 0..8]) => Change::Flip(at, bit as u8),
            ("zero", &[at, len]) => Change::Zero(at, len),
            ("swap", &[a, b, len]) => Change::Swap(a, b, len),
            ("cut", &[at]) => Change::Cut(at),
            ("delete", []) => Change::Delete,
            _ => return Err(wrong()),
        };
        let path = path.to_owned();
        Ok(Damage { path, change, mode })
    }
}

impl Damage {
    /// Random damage to one of `files`: mostly flipped bits, and more often in small files than
    /// their size says.
    pub fn draw(files: &BTreeMap<String, Arc<Vec<u8>>>, rng: &mut Rng) -> Damage {
        let paths: Vec<&String> = files.keys().collect();
        let path = (*rng.pick(&paths)).clone();
        let len = files[&path].len();
        let change = match rng.below(40) {
            _ if len == 0 => Change::Delete,
            0 => Change::Delete,
            1..5 => Change::Cut(rng.index(len)),
            5..7 => {
                let at = rng.index(len);
                Change::Zero(at, (1 + rng.index(600)).min(len - at))
            }
            7..9 if len > 2 => {
                let size = 1 + rng.index((len / 2).min(512));
                Change::Swap(rng.index(len - size), rng.index(len - size), size)
            }
            _ => Change::Flip(rng.index(len), rng.below(8) as u8),
        };
        // The first mode is the default.
        let mode = if rng.one_in(2) {
            0
        } else {
            rng.index(MODES.len())
        };
        Damage { path, change, mode }
    }

    /// Every bit of every byte of every file, every length, and no file, in the default mode.
    pub fn every(files: &BTreeMap<String, Arc<Vec<u8>>>) -> impl Iterator<Item = Damage> + use<'_> {
        files.iter().flat_map(|(path, bytes)| {
            let flips =
                (0..bytes.len()).flat_map(|at| (0..8).map(move |bit| Change::Flip(at, bit)));
            let cuts = (0..bytes.len()).map(Change::Cut);
            flips
                .chain(cuts)
                .chain([Change::Delete])
                .map(|change| Damage {
                    path: path.clone(),
                    change,
                    mode: 0,
                })
        })
    }

    /// Each file gone, in each mode.
    pub(super) fn deletions(
        files: &BTreeMap<String, Arc<Vec<u8>>>,
    ) -> impl Iterator<Item = Damage> + use<'_> {
        files.keys().flat_map(|path| {
            (0..MODES.len()).map(|mode| Damage {
                path: path.clone(),
                change: Change::Delete,
                mode,
            })
        })
    }

    /// The bytes after the damage, or `None` when the file is gone. Damage beyond the end of a file
    /// that earlier damage has cut changes nothing.
    pub(super) fn apply(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut out = bytes.to_vec();
        let end = match self.change {
            Change::Flip(at, _) => at + 1,
            Change::Zero(at, len) => at + len,
            Change::Swap(a, b, len) => a.max(b) + len,
            Change::Cut(_) | Change::Delete => 0,
        };
        if end > bytes.len() {
            return Some(out);
        }
        match self.change {
            Change::Flip(at, bit) => out[at] ^= 1 << bit,
            Change::Zero(at, len) => out[at..at + len].fill(0),
            Change::Swap(a, b, len) => {
                out[a..a + len].copy_from_slice(&bytes[b..b + len]);
                out[b..b + len].copy_from_slice(&bytes[a..a + len]);
            }
            Change::Cut(at) => out.truncate(at),
            Change::Delete => return None,
        }
        Some(out)
    }
}

/// The disk with one more damage; `None` when that changes nothing.
pub(super) fn damaged(whole: &Image, damage: &Damage) -> Option<Image> {
    let (dir, name) = damage.path.rsplit_once('/')?;
    let mut image = whole.clone();
    let holder = whole.dirs.iter().position(|entries| {
        matches!(entries.get(name), Some(Node::File(f))
            if Arc::ptr_eq(&whole.files[f.0 as usize], &whole.list()[&format!("{dir}/{name}")]))
    })?;
    let Some(Node::File(file)) = image.dirs[holder].get(name).copied() else {
        return None;
    };
    let before = &whole.files[file.0 as usize];
    match damage.apply(before) {
        None => _ = image.dirs[holder].remove(name),
        Some(after) if after == **before => return None,
        Some(after) => image.files[file.0 as usize] = Arc::new(after),
    }
    Some(image)
}
