//! Calls and how a trace of them is drawn from a seed.
//!
//! Drawing knows nothing of what the libraries answer: indexes of snapshots, iterators and families
//! are taken modulo what is there, which is the same on both sides as long as they agree. The same
//! seed gives the same trace.

use super::draw::RandomStream;

/// A key or a value.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Bytes(Vec<u8>);

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        Bytes(bytes)
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&super::answer::show(self))
    }
}

/// A record of a batch or a transaction.
#[derive(Clone, Debug)]
pub(super) enum Record {
    Put(usize, Bytes, Bytes),
    Delete(usize, Bytes),
    Merge(usize, Bytes, Bytes),
    DeleteRange(usize, Bytes, Bytes),
    LogData(Bytes),
    SavePoint,
    RollbackToSavePoint,
    PopSavePoint,
}

/// A step of an iterator.
#[derive(Clone, Debug)]
pub(super) enum Step {
    First,
    Last,
    Seek(Bytes),
    SeekForPrev(Bytes),
    Next,
    Prev,
    Refresh,
}

/// A step in a script of transactions.
#[derive(Clone, Debug)]
pub(super) enum TxnStep {
    /// Begin the transaction of this number, with or without a snapshot.
    Begin(usize, bool),
    Write(usize, Record),
    Get(usize, usize, Bytes),
    GetForUpdate(usize, usize, Bytes),
    /// Write past all transactions.
    Outside(Record),
    /// Read at the transaction's own snapshot.
    GetAtSnapshot(usize, usize, Bytes),
    MultiGet(usize, Vec<(usize, Bytes)>),
    Scan(usize, usize),
    Commit(usize),
    Rollback(usize),
}

/// An entry of a table file that is ingested; keys get ordered by the family.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    Put(Bytes),
    Delete,
    Merge(Bytes),
}

/// How an iterator is made.
#[derive(Clone, Debug)]
pub(super) struct IterPlan {
    pub(super) family: usize,
    pub(super) lower: Option<Bytes>,
    pub(super) upper: Option<Bytes>,
    pub(super) snapshot: Option<usize>,
    pub(super) order: Order,
    /// Bits: verify checksums, leave the cache alone, read ahead, pin, read asynchronously, purge
    /// later.
    pub(super) hints: u8,
}

/// The keys that an iterator promises to visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Total,
    /// Those with the prefix of the key sought.
    Prefix,
    /// The library looks whether prefixes help.
    Auto,
    /// Also those written later; only forward.
    Tailing,
}

/// How a write is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteFlags {
    pub(super) sync: bool,
    pub(super) without_log: bool,
    pub(super) low_priority: bool,
}

/// One call, or one small script, that both libraries answer.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Put(usize, Bytes, Bytes),
    Delete(usize, Bytes),
    PutOnce(u64),
    SingleDelete(u64),
    Merge(usize, Bytes, Bytes),
    DeleteRange(usize, Bytes, Bytes),
    Batch(Vec<Record>),
    GarbageBatch(Bytes),
    IndexedBatch(bool, Vec<Record>, Vec<(usize, Bytes)>),
    Get(usize, Bytes, Option<usize>),
    GetPinned(usize, Bytes, Option<usize>),
    GetIntoBuffer(usize, Bytes, usize),
    MultiGet(Vec<(usize, Bytes)>, Option<usize>),
    BatchedMultiGet(usize, Vec<Bytes>, Option<usize>, bool),
    KeyMayExist(usize, Bytes),
    IterNew(IterPlan),
    IterStep(usize, Vec<Step>),
    IterDrop(usize),
    SnapshotNew,
    SnapshotDrop(usize),
    Sequence,
    CreateFamily(String),
    DropFamily(usize),
    DroppedFamily(usize, Bytes),
    ListFamilies,
    Flush(usize),
    FlushAll,
    FlushWal(bool),
    CompactRange(usize, Option<Bytes>, Option<Bytes>),
    SuggestCompactRange(usize, Bytes, Bytes),
    Property(usize, &'static str),
    PropertyInt(usize, &'static str),
    ApproximateSizes(usize, Vec<(Bytes, Bytes)>),
    SetOptions(usize, &'static str, &'static str),
    SetDbOptions(&'static str, &'static str),
    OptionsString(&'static str),
    FileDeletions,
    Identity,
    LiveFiles,
    UpdatesSince(u64),
    Checkpoint,
    Backup,
    Ingest(usize, bool, Vec<(Bytes, Entry)>),
    IngestMany(usize, Vec<(Bytes, Entry)>, Vec<(Bytes, Bytes)>),
    Optimistic(Vec<TxnStep>),
    Pessimistic(Vec<TxnStep>),
    PutWith(usize, Bytes, Bytes, WriteFlags),
    BatchSeen(Vec<Record>),
    Iterators(Vec<usize>, Bytes),
    CompactOptions(usize, Option<Bytes>, Option<Bytes>, u8, Option<i32>),
    FilesInRange(usize, Bytes, Bytes),
    Settled(usize),
    Export(usize, bool, usize),
    Ttl(Vec<(Bytes, Entry)>, Vec<Bytes>),
    Filtered(Vec<(Bytes, Entry)>, Vec<(Bytes, Entry)>),
    Destroy,
    Tickers(usize, Vec<Bytes>),
    Secondary,
    ReadOnly,
    Reopen,
    OpenWithout,
    Digest(usize),
    Swap,
}

/// A kind of call: its name, how often it is drawn, and what a library must export for it.
pub(super) struct CallKind {
    pub(super) name: &'static str,
    pub(super) weight: u32,
    pub(super) needs: &'static [&'static str],
}

macro_rules! kinds {
    ($($name:ident $weight:literal [$($need:ident),*];)*) => {
        /// Every kind of call.
        pub(super) const KINDS: &[CallKind] = &[
            $(CallKind { name: stringify!($name), weight: $weight, needs: &[$(stringify!($need)),*] },)*
        ];
    };
}

// `wait_for_compact` stands for RocksDB 8 and newer: before, `enable_file_deletions` had another
// parameter.
kinds! {
    Put 6000 [put_cf];
    Delete 1500 [delete_cf];
    PutOnce 300 [put_cf];
    SingleDelete 250 [singledelete_cf];
    Merge 1250 [merge_cf];
    DeleteRange 150 [delete_range_cf];
    Batch 1250 [writebatch_set_save_point, writebatch_pop_save_point, writebatch_delete_range_cf];
    GarbageBatch 4 [writebatch_create_from];
    IndexedBatch 300 [writebatch_wi_get_from_batch_and_db_cf, writebatch_wi_create_iterator_with_base_cf];
    Get 3500 [get_cf];
    GetPinned 2500 [get_pinned_cf];
    GetIntoBuffer 500 [get_into_buffer_cf];
    MultiGet 750 [multi_get_cf];
    BatchedMultiGet 750 [batched_multi_get_cf];
    KeyMayExist 400 [key_may_exist_cf];
    IterNew 750 [create_iterator_cf];
    IterStep 4500 [iter_seek_for_prev];
    IterDrop 500 [iter_destroy];
    SnapshotNew 200 [create_snapshot];
    SnapshotDrop 190 [release_snapshot];
    Sequence 300 [get_latest_sequence_number, snapshot_get_sequence_number];
    CreateFamily 6 [create_column_family];
    DropFamily 4 [drop_column_family];
    DroppedFamily 10 [writeoptions_set_ignore_missing_column_families];
    ListFamilies 4 [list_column_families];
    Flush 12 [flush_cf];
    FlushAll 4 [flush_cfs];
    FlushWal 10 [flush_wal];
    CompactRange 5 [compact_range_cf];
    SuggestCompactRange 4 [suggest_compact_range_cf];
    Property 200 [property_value_cf];
    PropertyInt 200 [property_int_cf];
    ApproximateSizes 150 [approximate_sizes_cf];
    SetOptions 10 [set_options_cf];
    SetDbOptions 10 [set_db_options];
    OptionsString 100 [get_options_from_string];
    FileDeletions 4 [wait_for_compact, disable_file_deletions, enable_file_deletions];
    Identity 4 [get_db_identity];
    LiveFiles 4 [livefiles_entries];
    UpdatesSince 10 [get_updates_since, wal_iter_get_batch];
    Checkpoint 2 [checkpoint_object_create];
    Backup 2 [backup_engine_create_new_backup_flush, backup_engine_verify_backup];
    Ingest 6 [sstfilewriter_create, ingest_external_file_cf];
    IngestMany 4 [sstfilewriter_delete_range, ingest_external_file_cf, delete_range_cf];
    PutWith 40 [writeoptions_disable_WAL, writeoptions_set_low_pri];
    BatchSeen 100 [writebatch_iterate_cf, writebatch_clear, writebatch_create_from];
    Iterators 10 [create_iterators];
    CompactOptions 3 [compact_range_cf_opt, compactoptions_set_bottommost_level_compaction];
    FilesInRange 4 [delete_file_in_range_cf, delete_range_cf];
    Settled 3 [wait_for_compact, compact_range_cf_opt];
    Export 2 [checkpoint_export_column_family, create_column_family_with_import];
    Ttl 2 [open_column_families_with_ttl];
    Filtered 2 [compactionfilter_create, options_set_compaction_filter, compact_range_cf];
    Destroy 1 [destroy_db];
    Tickers 10 [options_statistics_get_ticker_count];
    Pessimistic 4 [transactiondb_open_column_families, transactiondb_get_base_db, transaction_get_for_update_cf];
    Optimistic 4 [optimistictransactiondb_open_column_families, transaction_get_for_update_cf];
    Secondary 2 [wait_for_compact, open_as_secondary_column_families, try_catch_up_with_primary, disable_file_deletions];
    ReadOnly 2 [wait_for_compact, open_for_read_only_column_families, disable_file_deletions];
    Reopen 4 [open_column_families];
    OpenWithout 1 [open_column_families];
    Digest 4 [create_iterator_cf];
    Swap 2 [open_column_families];
}

/// Properties whose text both libraries owe each other.
const TEXTS: &[&str] = &[
    "rocksdb.background-errors",
    "rocksdb.is-file-deletions-enabled",
    "rocksdb.is-write-stopped",
    "rocksdb.nosuch",
    "rocksdb.",
    "",
    "rocksdb.num-files-at-level99",
    "rocksdb.num-files-at-levelx",
    "rocksdb.options-statistics.none",
];

/// Properties whose number both libraries owe each other.
const NUMBERS: &[&str] = &[
    "rocksdb.background-errors",
    "rocksdb.is-file-deletions-enabled",
    "rocksdb.is-write-stopped",
    "rocksdb.actual-delayed-write-rate",
    "rocksdb.num-snapshots",
    "rocksdb.oldest-snapshot-sequence",
    "rocksdb.block-cache-capacity",
    "rocksdb.nosuch",
    "rocksdb.stats",
];

/// Options that may change while a family is open, and some that may not.
const SETTINGS: &[(&str, &str)] = &[
    ("write_buffer_size", "98304"),
    ("write_buffer_size", "131072"),
    ("level0_file_num_compaction_trigger", "3"),
    ("level0_file_num_compaction_trigger", "5"),
    ("target_file_size_base", "100000"),
    ("max_bytes_for_level_base", "400000"),
    ("disable_auto_compactions", "false"),
    ("compression", "kNoCompression"),
    ("compression", "kSnappyCompression"),
    ("no_such_option", "1"),
    ("write_buffer_size", "many"),
    ("num_levels", "3"),
    ("max_sequential_skip_in_iterations", "16"),
    ("paranoid_file_checks", "true"),
    ("enable_blob_files", "true"),
    ("enable_blob_files", "false"),
    ("min_blob_size", "20"),
    ("min_blob_size", "200"),
    ("blob_file_size", "8192"),
    ("blob_compression_type", "kZSTD"),
    ("blob_compression_type", "kNoCompression"),
    ("enable_blob_garbage_collection", "true"),
    ("enable_blob_garbage_collection", "false"),
    ("blob_garbage_collection_age_cutoff", "1.0"),
    ("blob_garbage_collection_age_cutoff", "1.5"),
    ("blob_garbage_collection_force_threshold", "0.3"),
    ("blob_compaction_readahead_size", "16384"),
    ("blob_file_starting_level", "1"),
    ("blob_file_starting_level", "0"),
    ("prepopulate_blob_cache", "kFlushOnly"),
    ("prepopulate_blob_cache", "kDisable"),
    ("prepopulate_blob_cache", "kNever"),
];

/// Settings of the database.
const DB_SETTINGS: &[(&str, &str)] = &[
    ("max_background_jobs", "3"),
    ("stats_dump_period_sec", "0"),
    ("bytes_per_sync", "65536"),
    ("max_open_files", "-1"),
    ("not_a_db_option", "1"),
    ("max_background_jobs", "few"),
    ("create_if_missing", "true"),
    ("daily_offpeak_time_utc", "0:00-23:59"),
    ("daily_offpeak_time_utc", "23:30-04:00"),
    ("daily_offpeak_time_utc", "4:30-7:60"),
    ("daily_offpeak_time_utc", "7:00-07:00"),
    ("daily_offpeak_time_utc", ""),
];

/// Option strings, sound and not.
const STRINGS: &[&str] = &[
    "write_buffer_size=1M",
    "write_buffer_size=64k;max_open_files=100",
    "compression=kZSTD;num_levels=4",
    "compression=kNoSuchCompression",
    "no_such_option=1",
    "write_buffer_size",
    "write_buffer_size=",
    "write_buffer_size=-1",
    "write_buffer_size=12x",
    "max_open_files=-1",
    "target_file_size_base=1G;;",
    " write_buffer_size = 4096 ; ",
    "block_based_table_factory={block_size=8192;filter_policy=bloomfilter:10:false}",
    "block_based_table_factory={block_size=8192",
    "block_based_table_factory={no_such=1}",
    "create_if_missing=maybe",
    "",
    "=",
    "num_levels=99999999999",
];

const PREFIXES: &[&str] = &[
    "aaa",
    "aab",
    "abc",
    "bbb",
    "mno",
    "zz\0",
    "\u{7f}\u{7f}\u{7f}",
];

/// Draws a key: few prefixes and few numbers, so that keys meet again; sometimes an odd one.
fn key(draw: &mut RandomStream) -> Bytes {
    match draw.below(100) {
        0 => Bytes(Vec::new()),
        1..=4 => Bytes((0..draw.below(6)).map(|_| draw.below(256) as u8).collect()),
        5 => Bytes(vec![0xff; draw.below(5)]),
        _ => {
            let prefix = PREFIXES[draw.below(PREFIXES.len())];
            Bytes(format!("{prefix}{:03}", draw.below(400)).into_bytes())
        }
    }
}

fn value(draw: &mut RandomStream) -> Bytes {
    let length = match draw.below(60) {
        0 => 0,
        1 => 3000 + draw.below(3000),
        _ => draw.below(90),
    };
    // Half of them do not shrink.
    let letters = draw.below(2) == 0;
    let mut byte = || {
        if letters {
            b'a' + draw.below(26) as u8
        } else {
            draw.below(256) as u8
        }
    };
    Bytes((0..length).map(|_| byte()).collect())
}

fn pair(draw: &mut RandomStream) -> (Bytes, Bytes) {
    let begin = key(draw);
    let mut end = begin.clone();
    match draw.below(4) {
        0 => end = key(draw),
        1 => end.0.extend([draw.below(256) as u8]),
        _ => match end.0.last_mut() {
            Some(last) => *last = last.saturating_add(draw.below(9) as u8),
            None => end = key(draw),
        },
    }
    (begin, end)
}

fn record(draw: &mut RandomStream, savepoints: bool) -> Record {
    let family = draw.below(64);
    match draw.below(if savepoints { 100 } else { 90 }) {
        0..=54 => Record::Put(family, key(draw), value(draw)),
        55..=69 => Record::Delete(family, key(draw)),
        70..=89 => Record::Merge(family, key(draw), value(draw)),
        90 => Record::LogData(value(draw)),
        91..=92 => {
            let (begin, end) = pair(draw);
            Record::DeleteRange(family, begin, end)
        }
        93..=95 => Record::SavePoint,
        96..=97 => Record::RollbackToSavePoint,
        _ => Record::PopSavePoint,
    }
}

fn maybe<R>(
    draw: &mut RandomStream,
    one_in: usize,
    make: impl FnOnce(&mut RandomStream) -> R,
) -> Option<R> {
    (draw.below(one_in) == 0).then(|| make(draw))
}

fn steps(draw: &mut RandomStream) -> Vec<Step> {
    let count = 1 + draw.below(12);
    let step = |draw: &mut RandomStream| match draw.below(20) {
        0 => Step::First,
        1 => Step::Last,
        2..=5 => Step::Seek(key(draw)),
        6..=8 => Step::SeekForPrev(key(draw)),
        9..=14 => Step::Next,
        15..=18 => Step::Prev,
        _ => Step::Refresh,
    };
    (0..count).map(|_| step(draw)).collect()
}

fn transactions(draw: &mut RandomStream) -> Vec<TxnStep> {
    let mut script = vec![TxnStep::Begin(0, draw.below(2) == 0)];
    for _ in 0..5 + draw.below(25) {
        let txn = draw.below(3);
        script.push(match draw.below(20) {
            0..=1 => TxnStep::Begin(txn, draw.below(2) == 0),
            2..=7 => TxnStep::Write(txn, record(draw, true)),
            8..=10 => TxnStep::Get(txn, draw.below(64), key(draw)),
            11..=13 => TxnStep::GetForUpdate(txn, draw.below(64), key(draw)),
            14 => TxnStep::Outside(record(draw, false)),
            15 if draw.below(2) == 0 => TxnStep::GetAtSnapshot(txn, draw.below(64), key(draw)),
            15 => {
                let count = draw.below(6);
                let keys = (0..count).map(|_| (draw.below(64), key(draw)));
                TxnStep::MultiGet(txn, keys.collect())
            }
            16 => TxnStep::Scan(txn, draw.below(64)),
            17..=18 => TxnStep::Commit(txn),
            _ => TxnStep::Rollback(txn),
        });
    }
    script
}

fn entries(draw: &mut RandomStream, count: usize) -> Vec<(Bytes, Entry)> {
    let entry = |draw: &mut RandomStream| match draw.below(6) {
        0 => Entry::Delete,
        1 => Entry::Merge(value(draw)),
        _ => Entry::Put(value(draw)),
    };
    (0..count).map(|_| (key(draw), entry(draw))).collect()
}

/// Draws the arguments of a call of the given kind. `once` counts keys that are written once only.
pub(super) fn draw_call(kind: &str, draw: &mut RandomStream, once: &mut u64) -> Call {
    let family = draw.below(64);
    let index = draw.below(64);
    let snapshot = (draw.below(4) == 0).then_some(index);
    match kind {
        "Put" => Call::Put(family, key(draw), value(draw)),
        "Delete" => Call::Delete(family, key(draw)),
        "PutOnce" => {
            *once += 1;
            Call::PutOnce(*once)
        }
        "SingleDelete" => Call::SingleDelete(once.saturating_sub(draw.below(40) as u64)),
        "Merge" => Call::Merge(family, key(draw), value(draw)),
        "DeleteRange" => {
            let (begin, end) = pair(draw);
            Call::DeleteRange(family, begin, end)
        }
        "Batch" => {
            let count = draw.below(16);
            Call::Batch((0..count).map(|_| record(draw, true)).collect())
        }
        "GarbageBatch" => {
            let length = draw.below(40);
            Call::GarbageBatch(Bytes((0..length).map(|_| draw.below(6) as u8).collect()))
        }
        "IndexedBatch" => {
            let count = draw.below(12);
            let records = (0..count).map(|_| record(draw, false)).collect();
            let probes = (0..4).map(|_| (draw.below(64), key(draw))).collect();
            Call::IndexedBatch(draw.below(2) == 0, records, probes)
        }
        "Get" => Call::Get(family, key(draw), snapshot),
        "GetPinned" => Call::GetPinned(family, key(draw), snapshot),
        "GetIntoBuffer" => Call::GetIntoBuffer(family, key(draw), draw.below(120)),
        "MultiGet" => {
            let count = draw.below(12);
            let keys = (0..count).map(|_| (draw.below(64), key(draw))).collect();
            Call::MultiGet(keys, snapshot)
        }
        "BatchedMultiGet" => {
            let count = draw.below(40);
            let keys = (0..count).map(|_| key(draw)).collect();
            Call::BatchedMultiGet(family, keys, snapshot, draw.below(2) == 0)
        }
        "KeyMayExist" => Call::KeyMayExist(family, key(draw)),
        "IterNew" => Call::IterNew(IterPlan {
            family,
            lower: maybe(draw, 4, key),
            upper: maybe(draw, 4, key),
            snapshot,
            order: match draw.below(12) {
                0..=2 => Order::Prefix,
                3 => Order::Auto,
                4 => Order::Tailing,
                _ => Order::Total,
            },
            hints: match draw.below(2) {
                0 => 0,
                _ => draw.below(64) as u8,
            },
        }),
        "IterStep" => Call::IterStep(index, steps(draw)),
        "IterDrop" => Call::IterDrop(index),
        "SnapshotNew" => Call::SnapshotNew,
        "SnapshotDrop" => Call::SnapshotDrop(index),
        "Sequence" => Call::Sequence,
        "CreateFamily" => Call::CreateFamily(format!("c{}", draw.below(5))),
        "DropFamily" => Call::DropFamily(family),
        "DroppedFamily" => Call::DroppedFamily(family, key(draw)),
        "ListFamilies" => Call::ListFamilies,
        "Flush" => Call::Flush(family),
        "FlushAll" => Call::FlushAll,
        "FlushWal" => Call::FlushWal(draw.below(2) == 0),
        "CompactRange" => Call::CompactRange(family, maybe(draw, 2, key), maybe(draw, 2, key)),
        "SuggestCompactRange" => {
            let (begin, end) = pair(draw);
            Call::SuggestCompactRange(family, begin, end)
        }
        "Property" => Call::Property(family, TEXTS[draw.below(TEXTS.len())]),
        "PropertyInt" => Call::PropertyInt(family, NUMBERS[draw.below(NUMBERS.len())]),
        "ApproximateSizes" => {
            let count = 1 + draw.below(3);
            Call::ApproximateSizes(family, (0..count).map(|_| pair(draw)).collect())
        }
        "SetOptions" => {
            let (name, value) = SETTINGS[draw.below(SETTINGS.len())];
            Call::SetOptions(family, name, value)
        }
        "SetDbOptions" => {
            let (name, value) = DB_SETTINGS[draw.below(DB_SETTINGS.len())];
            Call::SetDbOptions(name, value)
        }
        "OptionsString" => Call::OptionsString(STRINGS[draw.below(STRINGS.len())]),
        "FileDeletions" => Call::FileDeletions,
        "Identity" => Call::Identity,
        "LiveFiles" => Call::LiveFiles,
        "UpdatesSince" => Call::UpdatesSince(1 + draw.below(8) as u64),
        "Checkpoint" => Call::Checkpoint,
        "Backup" => Call::Backup,
        "Ingest" => {
            let count = draw.below(40);
            Call::Ingest(family, draw.below(2) == 0, entries(draw, count))
        }
        "IngestMany" => {
            let count = 2 + draw.below(40);
            let ranges = (0..draw.below(3)).map(|_| pair(draw)).collect();
            Call::IngestMany(family, entries(draw, count), ranges)
        }
        "PutWith" => {
            let flags = WriteFlags {
                sync: draw.below(8) == 0,
                without_log: draw.below(4) == 0,
                low_priority: draw.below(2) == 0,
            };
            Call::PutWith(family, key(draw), value(draw), flags)
        }
        "BatchSeen" => {
            let count = draw.below(12);
            Call::BatchSeen((0..count).map(|_| record(draw, true)).collect())
        }
        "Iterators" => {
            let count = 1 + draw.below(4);
            Call::Iterators((0..count).map(|_| draw.below(64)).collect(), key(draw))
        }
        "CompactOptions" => {
            let (begin, end) = (maybe(draw, 2, key), maybe(draw, 2, key));
            let bottommost = draw.below(4) as u8;
            let level = maybe(draw, 3, |draw| draw.below(4) as i32);
            Call::CompactOptions(family, begin, end, bottommost, level)
        }
        "FilesInRange" => {
            let (begin, end) = pair(draw);
            Call::FilesInRange(family, begin, end)
        }
        "Settled" => Call::Settled(family),
        "Export" => Call::Export(family, draw.below(2) == 0, draw.below(3)),
        "Ttl" => {
            let count = draw.below(60);
            let keys = (0..8).map(|_| key(draw)).collect();
            Call::Ttl(entries(draw, count), keys)
        }
        "Filtered" => {
            let (first, second) = (draw.below(60), draw.below(30));
            Call::Filtered(entries(draw, first), entries(draw, second))
        }
        "Destroy" => Call::Destroy,
        "Tickers" => Call::Tickers(family, (0..6).map(|_| key(draw)).collect()),
        "Pessimistic" => Call::Pessimistic(transactions(draw)),
        "Optimistic" => Call::Optimistic(transactions(draw)),
        "Secondary" => Call::Secondary,
        "ReadOnly" => Call::ReadOnly,
        "Reopen" => Call::Reopen,
        "OpenWithout" => Call::OpenWithout,
        "Digest" => Call::Digest(family),
        _ => Call::Swap,
    }
}
