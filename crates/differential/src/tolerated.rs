//! Differences between two libraries that are allowed.

use super::answer::CallResult;
use super::call::Call;

/// Differences that are allowed between two libraries: the rule's name, what it is about, and why
/// that is not a fault. A run counts how often each was needed.
pub const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "sizes",
        "approximate sizes, and counts of entries in files",
        "each library decides by itself when to flush and compact; they have to be alike within 1 MiB or a factor of 3",
    ),
    (
        "settled size",
        "the estimated size of a family that was compacted into one level",
        "blocks and filters are cut alike, not the same: within a fifth, or 16 KiB",
    ),
    (
        "error words",
        "what follows the kind in the text of an error",
        "RocksDB's words change from version to version, and ours say more; the kind (\"Corruption\", \"IO error\", ...) has to agree",
    ),
    (
        "may exist",
        "a key may exist with an empty value that it does not have",
        "RocksDB says that it found a value when it could not look without reading a file; ours does not",
    ),
    (
        "numbers in options",
        "write_buffer_size=12x and write_buffer_size=-1",
        "RocksDB takes what it can read of a number, and a negative one as a huge one; ours says that it is none",
    ),
    (
        "updates behind an empty log",
        "updates since a sequence number where logs are compressed: the oldest are left out",
        "RocksDB counts a compressed log without batches as beginning at 1 and leaves out the logs before it",
    ),
    (
        "ends of logs",
        "updates since a sequence number: a batch without operations where a log of ours ends",
        "a log of ours says in its last record that it is whole; RocksDB shows the record to whoever reads the log, ours does not",
    ),
    (
        "pace of writers",
        "the rate that slowed writers share",
        "it follows from how fast flushes and compactions went in this run; not slowed on one side may be slowed on the other",
    ),
    (
        "flush of a dropped family",
        "whether a family that was dropped can be flushed",
        "it can when nothing of it was in memory, and each library decides by itself when to flush",
    ),
];

/// Returns whether one library is right, and the other says that it found an empty value which is
/// not there.
fn is_empty_promise(left: &CallResult, right: &CallResult) -> bool {
    let empty = |answer: &CallResult| {
        answer
            .text
            .starts_with("wrong: may exist 1, value \"\", but ")
    };
    (empty(left) && right.text == "right") || (empty(right) && left.text == "right")
}

/// Returns whether one library left out the oldest updates, as RocksDB does behind an empty log.
fn is_cut_short(left: &str, right: &str) -> bool {
    let (short, long) = if left.len() < right.len() {
        (left, right)
    } else {
        (right, left)
    };
    short == "ok"
        || long
            .strip_suffix(short)
            .is_some_and(|more| more.ends_with(", "))
}

/// The answer where a log ends.
pub(super) const END_OF_LOG: &str = "the end of a log";

/// An answer about updates without the ends of logs.
fn updates_only(text: &str) -> String {
    text.replace(&format!("{END_OF_LOG}, "), "")
}

/// Returns whether answers about a dropped family differ in the word on its flush alone.
fn is_flush_of_dropped(left: &str, right: &str) -> bool {
    let plain = |text: &str| {
        let text = kinds_only(text);
        text.replacen("flush error Column family dropped", "flush ok", 1)
    };
    plain(left) == plain(right)
}

/// Returns whether two answers tell the rate of slowed writers, which follows from the speed of the
/// machine.
fn are_paces(property: &str, left: &str, right: &str) -> bool {
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    property == "rocksdb.actual-delayed-write-rate" && is_number(left) && is_number(right)
}

/// How two answers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Same,
    /// Not the same, by a rule of [`ALLOWED`].
    Allowed(&'static str),
    Differs,
}

/// Sizes that depend on when files were made.
fn alike(left: u64, right: u64) -> bool {
    let (low, high) = (left.min(right), left.max(right));
    high - low <= 1 << 20 || high / 3 <= low
}

/// Sizes of the same entries in one level.
fn close(left: u64, right: u64) -> bool {
    left.abs_diff(right) <= (left.max(right) / 5).max(16 << 10)
}

/// An error's text with what follows its kind in brackets.
pub(super) fn marked(text: &str) -> String {
    match text.split_once(": ") {
        Some((kind, words)) => format!("{kind}\u{ab}{words}\u{bb}"),
        None => text.to_owned(),
    }
}

/// Text without what [`marked`] bracketed.
fn kinds_only(text: &str) -> String {
    let mut depth = 0;
    let keep = |c: &char| {
        match c {
            '\u{ab}' => depth += 1,
            '\u{bb}' => depth -= 1,
            _ => return depth == 0,
        }
        false
    };
    text.chars().filter(keep).collect()
}

/// Texts of options that RocksDB takes although they say nothing sound.
fn is_unsound(text: &str) -> bool {
    text == "write_buffer_size=12x" || text == "write_buffer_size=-1"
}

/// How the answers to a call compare.
pub(super) fn compare(
    call: &Call,
    options: &str,
    left: &CallResult,
    right: &CallResult,
) -> Verdict {
    let words = left.text != right.text;
    if words && kinds_only(&left.text) != kinds_only(&right.text) {
        let one = left.text.starts_with("error") != right.text.starts_with("error");
        return match call {
            Call::OptionsString(text) if is_unsound(text) && one => {
                Verdict::Allowed("numbers in options")
            }
            Call::UpdatesSince(_) => {
                let (left, right) = (updates_only(&left.text), updates_only(&right.text));
                let compressed = options.contains("wal_compression=kZSTD");
                if left == right {
                    Verdict::Allowed("ends of logs")
                } else if compressed && is_cut_short(&left, &right) {
                    Verdict::Allowed("updates behind an empty log")
                } else {
                    Verdict::Differs
                }
            }
            Call::DroppedFamily(..) if is_flush_of_dropped(&left.text, &right.text) => {
                Verdict::Allowed("flush of a dropped family")
            }
            Call::PropertyInt(_, name) if are_paces(name, &left.text, &right.text) => {
                Verdict::Allowed("pace of writers")
            }
            Call::KeyMayExist(..) if is_empty_promise(left, right) => Verdict::Allowed("may exist"),
            _ => Verdict::Differs,
        };
    }
    let (rule, fits): (_, fn(u64, u64) -> bool) = match call {
        Call::Settled(_) => ("settled size", close),
        _ => ("sizes", alike),
    };
    let mut pairs = left.sizes.iter().zip(&right.sizes);
    if left.sizes.len() != right.sizes.len() || !pairs.all(|(a, b)| fits(*a, *b)) {
        return Verdict::Differs;
    }
    match (words, left.sizes != right.sizes) {
        (true, _) => Verdict::Allowed("error words"),
        (_, true) => Verdict::Allowed(rule),
        _ => Verdict::Same,
    }
}
