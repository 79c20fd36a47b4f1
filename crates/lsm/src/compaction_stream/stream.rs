//! The stream's state, options, counters and outer moves.

use super::blob_flow::BlobFlow;
use super::operands::MergeState;
use crate::compaction_filter::CompactionFilter;
use crate::merge_operator::MergeOperator;
use crate::tombstone::CompactionTombstones;
use crate::visible::{NoBlobs, ValueResolver};
use esker_format::key::{TRAILER_LEN, append_internal, pack, seq_of, user_key};
use esker_format::{Cursor, KeyOrder, Level, Seq, ValueType, timestamp, wide_column};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use std::sync::Arc;

/// Answers a question about a user key.
pub type KeyProbe<'a> = Box<dyn FnMut(&[u8]) -> bool + Send + 'a>;

/// Facts about the job and its place in the tree.
pub struct StreamOptions<'a> {
    /// The order of user keys.
    pub order: KeyOrder,
    /// The live snapshots, ascending, without repeats; the tombstones must have been made with the
    /// same.
    pub snapshots: Vec<Seq>,
    /// The oldest snapshot that transactions check conflicts against; [`Seq::MAX`] for none.
    pub earliest_write_conflict_snapshot: Seq,
    /// True if no level below the output holds keys in the job's range.
    pub bottommost: bool,
    /// Files may be ingested at the bottom later: deletions stay and sequences are not zeroed.
    pub allow_ingest_behind: bool,
    /// In an order with timestamps: versions below this one that a newer one hides may go; `None`
    /// keeps all.
    pub full_history_ts_low: Option<Arc<Vec<u8>>>,
    /// Sequences after this stay, to tell the age of data; [`Seq::MAX`] keeps none.
    pub preserve_seqno_after: Seq,
    /// The level that the filter is told.
    pub level: Level,
    /// True if a deletion under a single deletion is an error; else it is only counted.
    pub enforce_single_del_contracts: bool,
    /// Count every input entry, also those that a filter's skip passes over.
    pub must_count_input_entries: bool,
    /// Combines operands; without one an operand is an error.
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    /// The application's filter.
    pub filter: Option<Arc<dyn CompactionFilter>>,
    /// Reads blobs, for merges and filters.
    pub resolver: Arc<dyn ValueResolver>,
    /// Counts the references to blob files that come in and go out.
    pub counts_blobs: bool,
    /// Tells whether no level below the output holds the user key. `None` for flushes, which know
    /// nothing of it.
    pub key_not_exists_beyond: Option<KeyProbe<'a>>,
    /// Asked now and then; `true` ends the stream with `Aborted`.
    pub cancelled: Option<Box<dyn FnMut() -> bool + Send + 'a>>,
}

impl StreamOptions<'_> {
    /// A flush without snapshots.
    pub fn new(order: KeyOrder) -> Self {
        StreamOptions {
            order,
            snapshots: Vec::new(),
            earliest_write_conflict_snapshot: Seq::MAX,
            bottommost: false,
            allow_ingest_behind: false,
            full_history_ts_low: None,
            preserve_seqno_after: Seq::MAX,
            level: Level::L0,
            enforce_single_del_contracts: true,
            must_count_input_entries: true,
            merge_operator: None,
            filter: None,
            resolver: Arc::new(NoBlobs),
            counts_blobs: false,
            key_not_exists_beyond: None,
            cancelled: None,
        }
    }
}

/// Counts of entries that came in, and of the reasons why some did not go out; named as in
/// RocksDB's `CompactionIterationStats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounters {
    /// Entries taken from the input, the skipped ones included: compared with the tables' entry
    /// counts.
    pub num_itered: u64,
    /// Entries that the rules looked at one by one.
    pub num_input_records: u64,
    /// Deletions and single deletions among them.
    pub num_input_deletion_records: u64,
    /// Values with a preferred sequence among them.
    pub num_input_timed_put_records: u64,
    /// Bytes of internal keys among them.
    pub total_input_raw_key_bytes: u64,
    /// Bytes of values among them.
    pub total_input_raw_value_bytes: u64,
    /// Entries handed out.
    pub num_output_records: u64,
    /// Removed by the filter.
    pub num_record_drop_user: u64,
    /// Hidden by a newer version or a range deletion.
    pub num_record_drop_hidden: u64,
    /// Deletions with nothing left to delete.
    pub num_record_drop_obsolete: u64,
    /// Covered by a range deletion.
    pub num_record_drop_range_del: u64,
    /// Deletions dropped above the bottom level.
    pub num_optimized_del_drop_obsolete: u64,
    /// Single deletions dropped without meeting a value.
    pub num_single_del_fallthru: u64,
    /// Single deletions that met something else than one value.
    pub num_single_del_mismatch: u64,
    /// Values that took their preferred sequence.
    pub num_timed_put_swap_preferred_seqno: u64,
    /// Blobs read for merges and filters, and from files that are left.
    pub num_blobs_read: u64,
    /// Bytes of them.
    pub total_blob_bytes_read: u64,
    /// Live blobs that were written to new files.
    pub num_blobs_relocated: u64,
    /// Bytes of them.
    pub total_blob_bytes_relocated: u64,
    /// Entries of corrupt form; the stream ends at the first.
    pub num_input_corrupt_records: u64,
}

/// Where the value of the current entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueAt {
    /// The input stands on the entry.
    Input,
    /// The first bytes of the input's value: a preferred sequence was cut off.
    InputHead(usize),
    /// It is empty.
    Empty,
    /// In the filter's buffer, or among the outputs of a merge.
    Buffer,
    /// It is in a new blob file: the index takes its place.
    Index,
    /// It was read from a blob file.
    Blob,
}

/// The filtered, merged and cleaned sequence of entries that a job writes.
pub struct CompactionStream<'a, C> {
    pub(super) input: C,
    pub(super) options: StreamOptions<'a>,
    pub(super) tombstones: CompactionTombstones,
    pub(super) counters: StreamCounters,
    pub(super) earliest_snapshot: Seq,
    pub(super) latest_snapshot: Seq,
    /// True if the stream works at the bottom, where sequences can be zeroed.
    pub(super) bottom: bool,
    /// Bytes of timestamp at the end of user keys.
    pub(super) ts: usize,
    /// The current version's timestamp is below the history that is kept.
    pub(super) is_old: bool,
    pub(super) error: Option<Error>,
    pub(super) valid: bool,
    /// The input already stands on the next entry to look at.
    pub(super) at_next: bool,
    pub(super) current_key: Vec<u8>,
    pub(super) seq: Seq,
    pub(super) kind: ValueType,
    pub(super) value_at: ValueAt,
    pub(super) value_buf: Vec<u8>,
    pub(super) has_current_user_key: bool,
    pub(super) has_outputted_key: bool,
    pub(super) last_key_seq_zeroed: bool,
    pub(super) clear_and_output_next_key: bool,
    pub(super) current_sequence: Seq,
    pub(super) current_snapshot: Seq,
    pub(super) skip_until: Vec<u8>,
    pub(super) merge: MergeState,
    /// The encoded index of a value that was put into a blob file.
    pub(super) index_buf: Vec<u8>,
    /// A value from a blob file.
    pub(super) blob_buf: Vec<u8>,
    /// Counts of references to blob files, where they are kept.
    pub(super) blob_flow: Option<Box<BlobFlow>>,
    since_check: u32,
}

impl<'a, C: Cursor> CompactionStream<'a, C> {
    /// Over `input` (merged, all versions), with the range deletions of the same inputs.
    ///
    /// `InvalidArgument` when the snapshots do not ascend.
    pub fn new(
        input: C,
        tombstones: CompactionTombstones,
        options: StreamOptions<'a>,
    ) -> Result<Self> {
        if !options.snapshots.is_sorted_by(|a, b| a < b) {
            return Err(Error::invalid_argument("snapshots must ascend"));
        }
        let tombstones = tombstones.with_history_from(
            options
                .full_history_ts_low
                .as_ref()
                .map(|low| low.as_slice()),
        );
        Ok(CompactionStream {
            input,
            tombstones,
            counters: StreamCounters::default(),
            earliest_snapshot: options.snapshots.first().copied().unwrap_or(Seq::MAX),
            latest_snapshot: options.snapshots.last().copied().unwrap_or(Seq::ZERO),
            bottom: options.bottommost && !options.allow_ingest_behind,
            ts: options.order.timestamp_size(),
            is_old: false,
            blob_flow: options.counts_blobs.then(Box::default),
            options,
            error: None,
            valid: false,
            at_next: false,
            current_key: Vec::new(),
            seq: Seq::ZERO,
            kind: ValueType::Value,
            value_at: ValueAt::Empty,
            value_buf: Vec::new(),
            has_current_user_key: false,
            has_outputted_key: false,
            last_key_seq_zeroed: false,
            clear_and_output_next_key: false,
            current_sequence: Seq::MAX,
            current_snapshot: Seq::ZERO,
            skip_until: Vec::new(),
            merge: MergeState::default(),
            index_buf: Vec::new(),
            blob_buf: Vec::new(),
            since_check: 0,
        })
    }

    /// To the first entry of the input's whole range.
    pub fn seek_to_first(&mut self) {
        self.input.seek_to_first();
        self.start();
    }

    /// To the first entry of a user key at or after `user`: for sub-compactions.
    pub fn seek(&mut self, user: &[u8]) {
        let mut target = Vec::with_capacity(user.len() + TRAILER_LEN);
        append_internal(&mut target, user, Seq::MAX, ValueType::SEEK);
        self.input.seek(&target);
        self.start();
    }

    fn start(&mut self) {
        self.has_current_user_key = false;
        self.clear_and_output_next_key = false;
        self.merge.clear();
        self.next_from_input();
        self.prepare_output();
    }

    /// Returns whether the stream stands on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.valid
    }

    /// The internal key to write; only while valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.current_key
    }

    /// The user key; only while valid.
    #[inline]
    pub fn user_key(&self) -> &[u8] {
        user_key(&self.current_key)
    }

    /// The user key without its timestamp.
    pub(super) fn bare_key(&self) -> &[u8] {
        timestamp::bare(self.user_key(), self.options.order.timestamp_size())
    }

    /// The sequence of the current entry.
    #[inline]
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The type of the current entry.
    #[inline]
    pub fn kind(&self) -> ValueType {
        self.kind
    }

    /// The value to write; only while valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.value_at {
            ValueAt::Input => self.input.value(),
            ValueAt::InputHead(len) => &self.input.value()[..len],
            ValueAt::Empty => &[],
            ValueAt::Buffer => self.merge.current_value().unwrap_or(&self.value_buf),
            ValueAt::Index => &self.index_buf,
            ValueAt::Blob => &self.blob_buf,
        }
    }

    /// `Ok`, or why the stream ended; a job must look before it believes that the input is
    /// finished.
    pub fn status(&self) -> Result<()> {
        match &self.error {
            Some(e) => Err(e.clone()),
            None if !self.valid => self.input.status(),
            None => Ok(()),
        }
    }

    /// The counts up to now.
    pub fn counters(&self) -> &StreamCounters {
        &self.counters
    }

    /// The tombstones, to be written at each cut ([`CompactionTombstones::finish_file`]).
    pub fn tombstones(&mut self) -> &mut CompactionTombstones {
        &mut self.tombstones
    }

    /// The current internal key together with the tombstones: what ending a file before this entry
    /// needs.
    pub fn key_and_tombstones(&mut self) -> (Option<&[u8]>, &mut CompactionTombstones) {
        (
            self.valid.then_some(self.current_key.as_slice()),
            &mut self.tombstones,
        )
    }

    /// The input, for its own figures.
    pub fn input(&self) -> &C {
        &self.input
    }

    /// To the next entry; only while valid.
    pub fn next(&mut self) {
        debug_assert!(self.valid, "next on a stream that is not valid");
        if self.merge.is_active() {
            if self.merge.advance() {
                self.take_merge_output();
            } else {
                if self.merge.in_progress {
                    // Only operands went out: their base, if it comes next, is not hidden by them.
                    self.has_current_user_key = false;
                }
                self.merge.clear();
                self.next_from_input();
            }
        } else {
            if !self.at_next {
                self.advance_input();
            }
            self.next_from_input();
        }
        if self.valid {
            self.has_outputted_key = true;
        }
        self.prepare_output();
    }

    #[inline]
    pub(super) fn advance_input(&mut self) {
        self.counters.num_itered += 1;
        if self.blob_flow.is_some() {
            self.count_blob();
        }
        self.input.next();
    }

    /// Takes note of whether the version that the input stands on is below the history that is
    /// kept. True when it is the next one of the current key and that was below as well: to readers
    /// they are one key then, whose newest version hides the others. Only in an order with
    /// timestamps.
    pub(super) fn enter_history(&mut self) -> bool {
        let Some(low) = &self.options.full_history_ts_low else {
            return false;
        };
        let at = timestamp::of(user_key(self.input.key()), self.ts);
        let is_old = self.options.order.compare_timestamp(at, low).is_lt();
        let was_old = std::mem::replace(&mut self.is_old, is_old);
        self.has_current_user_key && was_old && is_old && self.input_is_same_key()
    }

    /// Forgets the timestamp of a version that everybody sees.
    #[inline]
    fn zero_timestamp(&mut self) {
        if self.ts > 0 {
            let end = self.current_key.len() - TRAILER_LEN;
            self.current_key[end - self.ts..end].fill(timestamp::SMALLEST);
        }
    }

    /// Puts sequence and type of the current entry into the key.
    #[inline]
    pub(super) fn set_trailer(&mut self, seq: Seq, kind: ValueType) {
        self.seq = seq;
        self.kind = kind;
        if let Some(t) = self.current_key.last_chunk_mut::<TRAILER_LEN>() {
            *t = pack(seq, kind).to_le_bytes();
        }
    }

    #[cold]
    pub(super) fn fail(&mut self, error: Error) {
        self.error = Some(error);
        self.valid = false;
        self.merge.clear();
    }

    /// The end of the stripe of `seq` (the first snapshot that sees it) and the snapshot before it,
    /// which may be of sequence zero: what is ingested into an empty database has that.
    #[inline]
    pub(super) fn stripe(&self, seq: Seq) -> (Seq, Option<Seq>) {
        let snapshots = &self.options.snapshots;
        if snapshots.is_empty() || seeded(Bug::SnapshotForgotten) {
            return (Seq::MAX, None);
        }
        let i = snapshots.partition_point(|s| *s < seq);
        let end = snapshots.get(i).copied().unwrap_or(Seq::MAX);
        (end, i.checked_sub(1).map(|before| snapshots[before]))
    }

    /// Asks now and then whether the job goes on.
    #[inline]
    pub(super) fn keep_going(&mut self) -> bool {
        self.since_check += 1;
        if self.since_check < 256 {
            return true;
        }
        self.since_check = 0;
        let cancelled = self.options.cancelled.as_mut().is_some_and(|asked| asked());
        if cancelled {
            self.fail(Error::aborted("the job was cancelled"));
        }
        !cancelled
    }

    /// Counts the entry, and zeroes its sequence where that is safe.
    #[inline]
    fn prepare_output(&mut self) {
        if !self.valid {
            return;
        }
        self.counters.num_output_records += 1;
        let stays = matches!(
            self.kind,
            ValueType::Merge
                | ValueType::Deletion
                | ValueType::SingleDeletion
                | ValueType::DeletionWithTimestamp
        );
        if self.bottom
            && !stays
            && self.seq <= self.earliest_snapshot
            && self.seq <= self.options.preserve_seqno_after
            // A blob's record has the whole key, timestamp and all.
            && (self.ts == 0 || self.is_old && !self.has_blobs())
        {
            self.zero_timestamp();
            self.set_trailer(Seq::ZERO, self.kind);
            self.last_key_seq_zeroed = true;
        }
    }

    /// Returns whether the current entry may refer to blob files.
    fn has_blobs(&self) -> bool {
        self.kind == ValueType::BlobIndex
            || self.kind == ValueType::WideColumnEntity && wide_column::may_be_split(self.value())
    }

    /// Returns whether nothing older than the output can exist for the key.
    pub(super) fn gone_beyond(&mut self) -> bool {
        if seeded(Bug::DeletionDroppedEarly) {
            return true;
        }
        let user = user_key(&self.current_key);
        self.options
            .key_not_exists_beyond
            .as_mut()
            .is_some_and(|gone| gone(user))
    }

    /// Returns whether the input stands on another entry of the current user key and, where keys
    /// have them, its timestamp.
    #[inline]
    pub(super) fn input_is_same_version(&self) -> bool {
        self.input.valid()
            && self
                .options
                .order
                .equal(user_key(self.input.key()), user_key(&self.current_key))
    }

    /// Returns whether the input stands on another entry of the current user key, whatever its
    /// timestamp.
    #[inline]
    pub(super) fn input_is_same_key(&self) -> bool {
        self.input.valid()
            && self
                .options
                .order
                .same_without_timestamp(user_key(self.input.key()), user_key(&self.current_key))
    }

    #[inline]
    pub(super) fn input_seq(&self) -> Seq {
        seq_of(self.input.key())
    }
}
