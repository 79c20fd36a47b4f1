//! What two libraries may answer differently.

use super::subject::Answer;

/// What may differ between two libraries, and why that is not a fault.
pub const TOLERATED: &[(&str, &str)] = &[
    (
        "approximate sizes and counts of entries in files",
        "each library decides by itself when to flush and compact; they have to be alike within 1 MiB or a factor of 3",
    ),
    (
        "the identity of a database",
        "it is random; its shape is compared",
    ),
    (
        "how many snapshots are held, and the oldest (not asked)",
        "a snapshot that was released while read options name it is still held by ours, so that their reads stay sound",
    ),
    (
        "whether a key may exist",
        "false positives are allowed; a key that exists must not be denied",
    ),
    (
        "what follows the kind in the text of an error",
        "RocksDB's words change from version to version, and ours say more; the kind (\"Corruption\", \"IO error\", ...) has to agree",
    ),
];

/// Sizes that depend on when files were made.
fn alike(left: u64, right: u64) -> bool {
    let (low, high) = (left.min(right), left.max(right));
    high - low <= 1 << 20 || high / 3 <= low
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

/// Whether two answers to a call of this kind are as good as the same.
pub(super) fn agree(left: &Answer, right: &Answer) -> bool {
    let sizes = left.sizes.len() == right.sizes.len();
    let mut pairs = left.sizes.iter().zip(&right.sizes);
    (left.text == right.text || kinds_only(&left.text) == kinds_only(&right.text))
        && sizes
        && pairs.all(|(a, b)| alike(*a, *b))
}
