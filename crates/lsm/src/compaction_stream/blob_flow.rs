//! References to blob files that come into a stream and go out of it.

use esker_format::blob_refs::BlobRefs;

/// Sums of a stream that counts them.
#[derive(Debug, Default)]
pub(super) struct BlobFlow {
    /// Of the entries that it left behind.
    pub(super) read: BlobRefs,
    /// Of those that it handed out unchanged.
    pub(super) passed: BlobRefs,
}
