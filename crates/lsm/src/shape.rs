//! A tree as text, in and out: for tests, which read as pictures, and for people.
//!
//! ```text
//! L0: 9[a-c]@20..29 8[b-x]@10..19
//! L6: 3[a-f]#64M 4[f-k)#1K*
//! ```
//! One line per level with files, in the level's order. A file is `number[smallest-largest]`; `)`
//! instead of `]` says that the largest key is a range tombstone's exclusive end. Then, where they
//! are not the default: `#size` (bytes, or with K, M, G; default 1M), `@smallest..largest` sequence
//! (default 0..0), `e` epoch number, `b` oldest blob file, `d` point deletions of entries (`d3/10`;
//! `d0/10` is only read), `r` bytes that its range deletions cover, `*` marked for compaction. Keys
//! are escaped as in Rust byte strings; what has a meaning here is escaped as `\xNN`.
//! Thread-safety: pure functions.

use crate::blob_groups;
use crate::edit::{TreeEdit, apply};
use crate::file::{FileMeta, FileStats};
use crate::pick::Policy;
use crate::plan::{Busy, Plan, PlanKind};
use crate::score::{pending_compaction_bytes, scores};
use crate::space::SpaceUse;
use crate::version::{BlobFile, Version};
use esker_format::{FileNo, InternalKey, KeyOrder, Level, Seq, ValueType};
use esker_status::{Error, Result};
use std::fmt::Write;
use std::sync::Arc;

const DEFAULT_SIZE: u64 = 1 << 20;

/// The picture of a tree; one that [`parse`] reads back to an equal tree as far as the notation
/// goes.
pub fn draw(version: &Version) -> String {
    let mut out = String::new();
    for (level, files) in version
        .levels()
        .iter()
        .enumerate()
        .filter(|(_, files)| !files.is_empty())
    {
        let _ = write!(out, "L{level}:");
        for f in files.files() {
            out.push(' ');
            draw_file(&mut out, f);
        }
        out.push('\n');
    }
    out
}

fn draw_file(out: &mut String, f: &FileMeta) {
    let close = if f.largest.is_range_end_sentinel() {
        ')'
    } else {
        ']'
    };
    let (lo, hi) = (escape(f.smallest.user()), escape(f.largest.user()));
    let _ = write!(out, "{}[{lo}-{hi}{close}", f.number);
    if f.size != DEFAULT_SIZE {
        let _ = write!(out, "#{}", short_size(f.size));
    }
    if (f.smallest_seq, f.largest_seq) != (Seq::ZERO, Seq::ZERO) {
        let _ = write!(out, "@{}..{}", f.smallest_seq, f.largest_seq);
    }
    if f.epoch != 0 {
        let _ = write!(out, "e{}", f.epoch);
    }
    if let Some(blob) = f.oldest_blob_file {
        let _ = write!(out, "b{blob}");
    }
    let points = f.stats.get().map(FileStats::points);
    if let Some((entries, deletions)) = points.filter(|(_, deletions)| *deletions > 0) {
        let _ = write!(out, "d{deletions}/{entries}");
    }
    if f.compensated_range_deletion_size != 0 {
        let covered = short_size(f.compensated_range_deletion_size);
        let _ = write!(out, "r{covered}");
    }
    if f.marked_for_compaction {
        out.push('*');
    }
}

fn escape(key: &[u8]) -> String {
    let mut out = String::with_capacity(key.len());
    for &b in key {
        match b {
            b'-' | b']' | b')' | b'[' | b' ' => {
                let _ = write!(out, "\\x{b:02x}");
            }
            _ => {
                let _ = write!(out, "{}", b.escape_ascii());
            }
        }
    }
    out
}

fn short_size(bytes: u64) -> String {
    let unit = |shift: u32, name: &str| {
        (bytes != 0 && bytes.trailing_zeros() >= shift).then(|| format!("{}{name}", bytes >> shift))
    };
    unit(30, "G")
        .or_else(|| unit(20, "M"))
        .or_else(|| unit(10, "K"))
        .unwrap_or_else(|| bytes.to_string())
}

/// The plan in one line: `L0 9 8 + L6 3 -> L6 merge LevelL0FilesNum`.
pub fn draw_plan(plan: Option<&Plan>) -> String {
    let Some(plan) = plan else {
        return "nothing".to_owned();
    };
    let mut out = String::new();
    for (i, inputs) in plan.inputs.iter().enumerate() {
        let _ = write!(out, "{}L{}", if i == 0 { "" } else { " + " }, inputs.level);
        for f in &inputs.files {
            let _ = write!(out, " {}", f.number);
        }
    }
    let kind = match plan.kind {
        PlanKind::Merge => "merge",
        PlanKind::TrivialMove => "move",
        PlanKind::Delete => "delete",
    };
    let _ = write!(out, " -> L{} {kind} {:?}", plan.output_level, plan.reason);
    out
}

/// A table for people: files, bytes, target and score of each level, and the compaction debt.
pub fn summary(version: &Version, policy: &Policy, busy: &Busy) -> String {
    let scores = scores(version, policy, busy);
    let mut out = format!(
        "{:>5} {:>7} {:>15} {:>15} {:>7}\n",
        "level", "files", "bytes", "target", "score"
    );
    for (l, files) in (0u8..).zip(version.levels()) {
        let level = Level(l);
        let target = match scores.targets.of(level) {
            target if level > Level::L0 && target < u64::MAX => target.to_string(),
            _ => "-".to_owned(),
        };
        let base = if level == scores.targets.base_level {
            " base"
        } else {
            ""
        };
        let score = scores.of(level);
        let _ = writeln!(
            out,
            "{:>5} {:>7} {:>15} {target:>15} {score:>7.2}{base}",
            l,
            files.len(),
            files.bytes()
        );
    }
    let _ = writeln!(
        out,
        "pending compaction bytes: {}",
        pending_compaction_bytes(version, policy)
    );
    if let Some(space) = SpaceUse::of(version, policy, scores.targets.base_level) {
        let _ = writeln!(
            out,
            "space: {} bytes, {} of them alive at least, bound {}",
            space.taken, space.live, space.bound
        );
    }
    out
}

/// Contents of blob files in one line, and of their groups in one for each level; empty where there
/// are none.
pub fn blob_summary(version: &Version, busy: &Busy) -> String {
    let blobs = version.blob_files().values();
    let sum = |of: fn(&BlobFile) -> u64| blobs.clone().map(|b| of(b)).sum::<u64>();
    let (total, garbage) = (sum(|b| b.total_bytes), sum(|b| b.garbage_bytes));
    if total == 0 {
        return String::new();
    }
    let mut out = format!(
        "blob files: {}, live bytes {}, garbage bytes {garbage}, in flight up to {}\n",
        blobs.len(),
        total.saturating_sub(garbage),
        busy.output_bytes()
    );
    for (level, of) in blob_groups::sums(version) {
        let (groups, files) = (of.groups, of.files);
        let live = of.bytes.saturating_sub(of.garbage);
        let _ = writeln!(
            out,
            "medium values of level {level}: groups {groups}, blob files {files}, \
             live bytes {live}, garbage bytes {}",
            of.garbage
        );
    }
    out
}

/// Reads a picture. The tree passes the same checks as one from a MANIFEST.
pub fn parse(text: &str, order: KeyOrder, num_levels: usize) -> Result<Version> {
    let mut edit = TreeEdit::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (level, files) = line
            .split_once(':')
            .ok_or_else(|| wrong(line, "a level and a colon"))?;
        let level = level.strip_prefix('L').and_then(|l| l.parse().ok());
        let level = Level(level.ok_or_else(|| wrong(line, "a level such as L0"))?);
        for file in files.split_whitespace() {
            edit.added.push((level, Arc::new(parse_file(file)?)));
        }
    }
    apply(&Version::empty(order, num_levels), &[edit])
}

#[cold]
fn wrong(text: &str, expected: &str) -> Error {
    Error::invalid_argument(format!("{expected} expected in {text:?}"))
}

fn parse_file(text: &str) -> Result<FileMeta> {
    let form = || wrong(text, "number[smallest-largest]");
    let (number, rest) = text.split_once('[').ok_or_else(form)?;
    let (lo, rest) = rest.split_once('-').ok_or_else(form)?;
    let close = rest.find([']', ')']).ok_or_else(form)?;
    let (hi, exclusive, marks) = (
        &rest[..close],
        rest[close..].starts_with(')'),
        &rest[close + 1..],
    );
    let number = FileNo(number.parse().map_err(|_| form())?);
    let mut f = FileMeta {
        number,
        size: DEFAULT_SIZE,
        ..FileMeta::default()
    };
    parse_marks(&mut f, marks)
        .ok_or_else(|| wrong(text, "marks #size @lo..hi eN bN dN/N rsize *"))?;
    let (lo, hi) = (
        unescape(lo).ok_or_else(form)?,
        unescape(hi).ok_or_else(form)?,
    );
    f.smallest = InternalKey::new(&lo, f.largest_seq, ValueType::Value);
    f.largest = if exclusive {
        InternalKey::range_end_sentinel(&hi)
    } else {
        InternalKey::new(&hi, f.smallest_seq, ValueType::Value)
    };
    Ok(f)
}

fn parse_marks(f: &mut FileMeta, marks: &str) -> Option<()> {
    let mut rest = marks;
    while let Some(mark) = rest.chars().next() {
        rest = &rest[mark.len_utf8()..];
        let end = rest
            .find(['#', '@', 'e', 'b', 'd', 'r', '*'])
            .unwrap_or(rest.len());
        let (value, after) = rest.split_at(end);
        rest = after;
        match mark {
            '#' => f.size = parse_size(value)?,
            '@' => {
                let (lo, hi) = value.split_once("..")?;
                (f.smallest_seq, f.largest_seq) = (Seq(lo.parse().ok()?), Seq(hi.parse().ok()?));
            }
            'e' => f.epoch = value.parse().ok()?,
            'b' => f.oldest_blob_file = Some(FileNo(value.parse().ok()?)),
            'd' => {
                let (deletions, entries) = value.split_once('/')?;
                let stats = FileStats {
                    num_entries: entries.parse().ok()?,
                    num_deletions: deletions.parse().ok()?,
                    ..FileStats::default()
                };
                f.stats.set(stats).ok()?;
            }
            'r' => f.compensated_range_deletion_size = parse_size(value)?,
            '*' if value.is_empty() => f.marked_for_compaction = true,
            _ => return None,
        }
    }
    Some(())
}

fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.chars().last()? {
        'K' => (&text[..text.len() - 1], 10),
        'M' => (&text[..text.len() - 1], 20),
        'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        if b != b'\\' {
            out.push(b);
            continue;
        }
        out.push(match bytes.next()? {
            b'x' => {
                let digit = |b: u8| char::from(b).to_digit(16);
                let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            other => other,
        });
    }
    Some(out)
}
