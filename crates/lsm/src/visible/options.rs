//! Options that a reader gives its iterator.

use super::hidden::HiddenLimits;
use super::known::KnownDeletions;
use crate::merge_operator::MergeOperator;
use esker_format::blob::BlobIndex;
use esker_format::{KeyOrder, Seq, timestamp};
use esker_status::{Error, Result};
use std::sync::Arc;

/// Fetches values that are not in the tree itself.
pub trait ValueResolver: Send + Sync {
    /// Puts the value that the encoded blob `index` of `user_key` points at into `out`, which is
    /// empty. The key is without its timestamp.
    fn blob(&self, user_key: &[u8], index: &[u8], out: &mut Vec<u8>) -> Result<()>;
}

/// For readers of tables alone: a value in a blob file is an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBlobs;

impl ValueResolver for NoBlobs {
    fn blob(&self, _user_key: &[u8], index: &[u8], _out: &mut Vec<u8>) -> Result<()> {
        let place = match BlobIndex::decode(index)? {
            BlobIndex::Blob { file, offset, .. } => format!("offset {offset} of blob file {file}"),
            BlobIndex::InlinedTtl { .. } => "an index of RocksDB's stacked BlobDB".to_owned(),
        };
        Err(Error::not_supported(format!(
            "the value is at {place}, which a reader of tables alone does not read"
        ))
        .with_hint("read the key through its database"))
    }
}

/// The length of a user key's prefix; `None` when the key is outside the extractor's domain.
pub type PrefixLength = Arc<dyn Fn(&[u8]) -> Option<usize> + Send + Sync>;

/// The reader's wishes. Keys and bounds are without timestamps.
#[derive(Clone)]
pub struct VisibleOptions {
    /// The order of user keys.
    pub order: KeyOrder,
    /// The newest write that the reader sees.
    pub snapshot: Seq,
    /// The newest timestamp that the reader sees; in families with timestamps, and only there.
    pub read_timestamp: Option<Vec<u8>>,
    /// Every version that the reader sees is shown, deletions too, down to this timestamp; not just
    /// the newest of a key.
    pub oldest_timestamp: Option<Vec<u8>>,
    /// No key before this one.
    pub lower: Option<Vec<u8>>,
    /// Only keys before this one.
    pub upper: Option<Vec<u8>>,
    /// Stop where the prefix differs from that of the seek target.
    pub prefix_same_as_start: bool,
    /// The prefix extractor; without one `prefix_same_as_start` has no effect.
    pub prefix: Option<PrefixLength>,
    /// How many hidden entries of a key to step over before seeking past them. RocksDB's default:
    /// 8.
    pub max_sequential_skip: u64,
    /// How many hidden entries one call may pass before it ends with `Incomplete`; 0 for any
    /// number.
    pub max_skippable_internal_keys: u64,
    /// Stretches of at least this many deleted keys are noted; 0 for none. Not in orders with
    /// timestamps.
    pub min_deleted_run: u32,
    /// From how many hidden entries of the newest run on the owner is told.
    pub hidden_limits: HiddenLimits,
    /// Ranges that are known to be deleted; none are looked up or noted without.
    pub known: Option<KnownDeletions>,
    /// Combines operands; without one an operand is an error.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// Reads blobs; without one a blob index is an error.
    pub resolver: Option<Arc<dyn ValueResolver>>,
    /// Leaves values in blob files unread until `VisibleCursor::prepare_value`. Not where versions
    /// are shown one by one.
    pub unprepared: bool,
}

/// Replaces a bound in place: programs change those of an iterator with every seek.
pub fn set_bound(to: &mut Option<Vec<u8>>, bound: Option<&[u8]>) {
    match (to, bound) {
        (Some(to), Some(bound)) => {
            to.clear();
            to.extend_from_slice(bound);
        }
        (to, bound) => *to = bound.map(<[u8]>::to_vec),
    }
}

impl VisibleOptions {
    /// Everything that `snapshot` sees, in order.
    pub fn new(order: KeyOrder, snapshot: Seq) -> Self {
        VisibleOptions {
            order,
            snapshot,
            read_timestamp: None,
            oldest_timestamp: None,
            lower: None,
            upper: None,
            prefix_same_as_start: false,
            prefix: None,
            max_sequential_skip: 8,
            max_skippable_internal_keys: 0,
            min_deleted_run: 0,
            hidden_limits: HiddenLimits::default(),
            known: None,
            merge_operator: None,
            resolver: None,
            unprepared: false,
        }
    }

    /// Makes user keys of the bounds, which sort before every version of theirs.
    pub(super) fn pad_bounds(&mut self, ts: usize) {
        for bound in [&mut self.lower, &mut self.upper].into_iter().flatten() {
            bound.resize(bound.len() + ts, timestamp::GREATEST);
        }
    }

    /// Hidden entries of a key that a walk forward steps over before it does anything else: none
    /// where each is counted.
    pub(super) fn plain_steps(&self) -> u64 {
        if self.hidden_limits.is_any() {
            0
        } else {
            self.max_sequential_skip
        }
    }

    pub(super) fn blob(&self, user_key: &[u8], index: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match &self.resolver {
            Some(resolver) => resolver.blob(user_key, index, out),
            None => NoBlobs.blob(user_key, index, out),
        }
    }

    pub(super) fn prefix_length(&self, user: &[u8]) -> Option<usize> {
        self.prefix.as_ref().and_then(|p| p(user))
    }

    pub(super) fn prefix_of(&self, user: &[u8]) -> Option<Vec<u8>> {
        self.prefix_length(user)
            .and_then(|n| user.get(..n))
            .map(<[u8]>::to_vec)
    }
}

/// Counts of what a cursor passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VisibleCounters {
    /// Positionings by the user.
    pub seeks: u64,
    /// Entries that were not shown: older versions, deletions, writes after the snapshot.
    pub internal_keys_skipped: u64,
    /// Of those, deletions.
    pub deletions_skipped: u64,
    /// Of those, writes after the snapshot.
    pub recent_skipped: u64,
    /// Seeks of the child past many hidden entries.
    pub reseeks: u64,
    /// Entries hidden by range deletions.
    pub range_deleted: u64,
    /// Full merges done.
    pub merges: u64,
}
