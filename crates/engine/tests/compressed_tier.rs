//! A block cache before a second tier of compressed blocks, against counts of what was read.

use esker::observe::{Statistics, Ticker};
use esker::options::ReadTier;
use esker::{Db, Options, ReadOptions};
use std::path::Path;
use std::sync::Arc;

/// Far more than the cache holds, and less than the tier does.
const KEYS: u32 = 3_000;
const LRU: &str = "capacity=100K;num_shard_bits=0;high_pri_pool_ratio=0.0;";
const CLOCK: &str = "id=AutoHyperClockCache;capacity=200K;num_shard_bits=0;";

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn value(n: u32) -> Vec<u8> {
    let mut value = n.to_le_bytes().to_vec();
    value.resize(400, b'v');
    value
}

struct Case {
    db: Db,
    statistics: Arc<Statistics>,
}

impl Case {
    /// One table, whose blocks are not compressed in the file.
    fn new(dir: &Path, first: &str) -> Case {
        let text = format!(
            "{{cache_index_and_filter_blocks=false;block_cache={{{first}secondary_cache=\
             {{compressed_secondary_cache://capacity=4M;num_shard_bits=0}}}}}}"
        );
        let mut options = Options::new()
            .create_if_missing(true)
            .set("compression", "kNoCompression")
            .and_then(|o| o.set("block_based_table_factory", &text))
            .expect("options");
        options.family.disable_auto_compactions = true;
        options.family.compaction_for_reads = false;
        let statistics = Statistics::new();
        options.db.statistics = Some(Arc::clone(&statistics));
        let db = Db::open(dir, options).expect("opened");
        for n in 0..KEYS {
            db.put(key(n), value(n)).expect("written");
        }
        db.flush().expect("flushed");
        Case { db, statistics }
    }

    fn get(&self, n: u32, options: &ReadOptions) -> esker::Result<()> {
        let family = self.db.default_family_handle();
        let found = self.db.get_opt(&family, key(n), options, None)?;
        assert_eq!(found.as_deref(), Some(&*value(n)), "key {n}");
        Ok(())
    }

    /// Reads all keys, each twice, so that no block leaves unused.
    fn read_all(&self) {
        for n in 0..KEYS {
            self.get(n, &ReadOptions::default()).expect("read");
            self.get(n, &ReadOptions::default()).expect("read");
        }
    }

    /// Misses of data blocks, and hits of the tier.
    fn counts(&self) -> (u64, u64) {
        let of = |ticker| self.statistics.ticker(ticker);
        assert_eq!(
            of(Ticker::SecondaryCacheHits),
            of(Ticker::SecondaryCacheDataHits)
        );
        (
            of(Ticker::BlockCacheDataMiss),
            of(Ticker::SecondaryCacheHits),
        )
    }
}

#[test]
fn blocks_that_left_come_back_without_a_read() {
    for first in [LRU, CLOCK] {
        let dir = tempfile::tempdir().expect("a directory");
        let case = Case::new(dir.path(), first);
        case.read_all();
        // A clock lets a block in at its second coming.
        case.read_all();
        let before = case.counts();
        assert!(
            before.0 > 200,
            "{first}: they are read at first: {before:?}"
        );
        case.read_all();
        let after = case.counts();
        assert_eq!(after.0, before.0, "{first}: a block was read again");
        assert!(after.1 - before.1 > 200, "{first}: {before:?} {after:?}");
        let text = case.db.property("rocksdb.block-cache-entry-stats");
        let text = text.expect("a text");
        assert!(text.contains("Second tier of the block cache"), "{text}");
    }
}

#[test]
fn a_scan_does_not_fill_the_tier() {
    let dir = tempfile::tempdir().expect("a directory");
    let case = Case::new(dir.path(), CLOCK);
    let mut walk = case.db.iter();
    walk.seek_to_first();
    let mut seen = 0;
    while walk.valid() {
        seen += 1;
        walk.next();
    }
    walk.status().expect("read");
    assert_eq!(seen, KEYS);
    let text = case.db.property("rocksdb.block-cache-entry-stats");
    let text = text.expect("a text");
    assert!(text.contains("occupancy: 0\n"), "{text}");
}

#[test]
fn a_read_of_the_cache_alone_looks_into_the_tier() {
    let dir = tempfile::tempdir().expect("a directory");
    let case = Case::new(dir.path(), LRU);
    case.read_all();
    let mut options = ReadOptions::default();
    options.read_tier = ReadTier::BlockCache;
    for n in 0..KEYS {
        case.get(n, &options).expect("no read is needed");
    }
}

#[test]
fn a_read_that_does_not_fill_the_cache_leaves_the_tier_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let case = Case::new(dir.path(), LRU);
    case.read_all();
    let misses = case.counts().0;
    let mut options = ReadOptions::default();
    options.fill_cache = false;
    for _ in 0..2 {
        for n in 0..KEYS / 2 {
            case.get(n, &options).expect("read");
        }
    }
    let (after, hits) = case.counts();
    assert_eq!(after, misses);
    assert!(hits > 300, "each block is found twice: {hits}");
}

#[test]
fn a_memory_budget_refuses_a_second_tier() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = Options::new().create_if_missing(true);
    options.db.memory_budget = 64 << 20;
    options
        .set_in_place(
            "block_cache",
            "{capacity=1M;secondary_cache={compressed_secondary_cache://capacity=1M}}",
        )
        .expect("an option");
    let refused = Db::open(dir.path(), options).expect_err("it has no effect there");
    assert!(refused.to_string().contains("block_cache"), "{refused}");
}
