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
        "whether a key may exist",
        "false positives are allowed; a key that exists must not be denied",
    ),
    (
        "times, thread numbers and directories in the texts of errors",
        "they are different by nature",
    ),
];

/// Sizes that depend on when files were made.
fn alike(left: u64, right: u64) -> bool {
    let (low, high) = (left.min(right), left.max(right));
    high - low <= 1 << 20 || high / 3 <= low
}

/// Whether two answers to a call of this kind are as good as the same.
pub(super) fn agree(_kind: &str, left: &Answer, right: &Answer) -> bool {
    let sizes = left.sizes.len() == right.sizes.len();
    let mut pairs = left.sizes.iter().zip(&right.sizes);
    left.text == right.text && sizes && pairs.all(|(a, b)| alike(*a, *b))
}
