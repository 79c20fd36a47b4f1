//! Reads that are begun before one is waited for (`async_io`, and direct reads): those of a seek in
//! all runs, and those of several keys. Seeks that read as far as walks went before. What is read,
//! and that such an iterator shows what any other shows.

mod common;

use common::Rng;
use common::numbered::{key, put};
use esker::env::{
    AlignedBuf, Env, FileSystem, MemFs, PendingRead, RandomAccessFile, ReadOptions as FileOptions,
    WritableFile, WriteOptions,
};
use esker::options::ReadTier;
use esker::{Db, DbIterator, Error, ErrorKind, Options, PinnedValue, ReadOptions, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Kind of request to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Begin,
    Read,
}

#[derive(Debug, Default)]
struct Noted {
    asked: Vec<Asked>,
    /// Reads of tables fail.
    fails: bool,
    /// Tables say that their reads are direct.
    is_direct: bool,
}

/// A disk in memory that notes how tables are read.
#[derive(Clone, Debug, Default)]
struct Disk {
    disk: MemFs,
    noted: Arc<Mutex<Noted>>,
}

impl Disk {
    fn with<R>(&self, look: impl FnOnce(&mut Noted) -> R) -> R {
        look(&mut self.noted.lock().expect("nobody panics"))
    }
    /// Returns the requests to tables that `act` makes.
    fn asked(&self, act: impl FnOnce()) -> Vec<Asked> {
        self.with(|n| n.asked.clear());
        act();
        self.with(|n| std::mem::take(&mut n.asked))
    }
}

#[derive(Debug)]
struct Table {
    file: Arc<dyn RandomAccessFile>,
    disk: Disk,
}

impl Table {
    fn get(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        if self.disk.with(|n| n.fails) {
            return Err(Error::new(ErrorKind::Io, "unreadable"));
        }
        self.file.read_at(offset, buf)
    }
}

impl RandomAccessFile for Table {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.disk.with(|n| n.asked.push(Asked::Read));
        self.get(offset, buf)
    }
    fn begin_read(self: Arc<Self>, offset: u64, len: usize) -> PendingRead {
        self.disk.with(|n| n.asked.push(Asked::Begin));
        assert!(offset.is_multiple_of(4096) && len.is_multiple_of(4096));
        let mut buffer = AlignedBuf::new(len);
        let got = self.get(offset, &mut buffer.as_mut_slice()[..len]);
        PendingRead::done(buffer, got)
    }
    fn is_direct(&self) -> bool {
        self.disk.with(|n| n.is_direct)
    }
    fn len(&self) -> u64 {
        self.file.len()
    }
    fn path(&self) -> &Path {
        self.file.path()
    }
}

impl FileSystem for Disk {
    fn open_read(&self, path: &Path, options: FileOptions) -> Result<Arc<dyn RandomAccessFile>> {
        let file = self.disk.open_read(path, options)?;
        if path.extension().is_none_or(|e| e != "sst") {
            return Ok(file);
        }
        Ok(Arc::new(Table {
            file,
            disk: self.clone(),
        }))
    }
    fn create(&self, path: &Path, options: WriteOptions) -> Result<Box<dyn WritableFile>> {
        self.disk.create(path, options)
    }
    common::pass_on!(disk);
}

/// Four tables of level 0 with the same range of keys, and no compactions.
fn four_tables() -> (Disk, Db) {
    four_tables_of("")
}

/// Four such tables in small blocks, so that keys are far apart, and with filters.
fn four_tables_of_small_blocks() -> (Disk, Db) {
    four_tables_of("block_based_table_factory={block_size=1024;filter_policy=bloomfilter:20}")
}

fn four_tables_of(changes: &str) -> (Disk, Db) {
    let disk = Disk::default();
    let env = Env {
        fs: Arc::new(disk.clone()),
        ..Env::in_memory()
    };
    let options = Options::new()
        .create_if_missing(true)
        .env(env)
        .set_all("disable_auto_compactions=true;compaction_for_reads=false")
        .and_then(|o| o.set_all(changes))
        .expect("these options exist");
    let db = Db::open("/db", options).expect("opened");
    for table in 0..4 {
        put(&db, (0..4_000).filter(|n| n % 4 == table));
        db.flush().expect("flushed");
    }
    (disk, db)
}

fn at_once() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.async_io = true;
    options
}

fn iterator(db: &Db, options: ReadOptions) -> DbIterator {
    db.iter_opt(&db.default_family_handle(), options, None)
}

#[test]
fn all_reads_are_begun_before_the_first_is_waited_for() {
    use Asked::{Begin, Read};
    let (disk, db) = four_tables();
    let mut plain = iterator(&db, ReadOptions::default());
    assert_eq!(disk.asked(|| plain.seek(key(100))), [Read; 4]);
    let mut it = iterator(&db, at_once());
    assert_eq!(disk.asked(|| it.seek(key(100))), [], "all are in the cache");
    let one_by_itself = [Begin, Begin, Begin, Read];
    assert_eq!(disk.asked(|| it.seek(key(2_000))), one_by_itself);
    assert_eq!(it.key(), key(2_000));
    // In the blocks that are held.
    assert_eq!(disk.asked(|| it.seek(key(2_001))), []);
    assert_eq!(disk.asked(|| it.seek_for_prev(key(3_900))), one_by_itself);
    assert_eq!(it.key(), key(3_900));
    it.status().expect("read");
    // Without I/O nothing is begun.
    let mut options = at_once();
    options.read_tier = ReadTier::BlockCache;
    let mut it = iterator(&db, options);
    assert_eq!(disk.asked(|| it.seek(key(1_000))), []);
    assert_eq!(
        it.status().expect_err("not cached").kind(),
        ErrorKind::Incomplete
    );
}

/// Keys of which each is in a block of its own: five in each table.
fn far_apart() -> Vec<Vec<u8>> {
    (0..20).map(|n| key(n * 200 + n % 4)).collect()
}

fn get(db: &Db, options: &ReadOptions, keys: &[Vec<u8>]) -> Vec<Result<Option<PinnedValue>>> {
    db.multi_get_opt(&db.default_family_handle(), keys, options, None)
}

/// Reads keys, all of which are there, and returns what that asks of tables.
fn asked_by_get(disk: &Disk, db: &Db, options: &ReadOptions, keys: &[Vec<u8>]) -> Vec<Asked> {
    disk.asked(|| {
        for (got, key) in get(db, options, keys).into_iter().zip(keys) {
            let value = got.expect("read").expect("there");
            let n = u32::from_le_bytes(value.as_ref().try_into().expect("a number"));
            assert_eq!(common::numbered::key(n), *key);
        }
    })
}

#[test]
fn a_multi_get_begins_its_reads_before_it_waits_for_one() {
    let (disk, db) = four_tables_of_small_blocks();
    let keys = far_apart();
    let begins = asked_by_get(&disk, &db, &at_once(), &keys);
    assert_eq!(begins, [Asked::Begin; 20], "in groups of sixteen");
    assert_eq!(asked_by_get(&disk, &db, &at_once(), &keys), []);
    let (disk, db) = four_tables_of_small_blocks();
    let plain = ReadOptions::default();
    assert_eq!(asked_by_get(&disk, &db, &plain, &keys), [Asked::Read; 20]);
}

#[test]
fn keys_of_one_block_share_its_read_and_one_by_itself_is_not_begun() {
    use Asked::{Begin, Read};
    let (disk, db) = four_tables_of_small_blocks();
    disk.with(|n| n.is_direct = true);
    let options = ReadOptions::default();
    let asked = |keys: &[Vec<u8>]| asked_by_get(&disk, &db, &options, keys);
    assert_eq!(asked(&[key(101), key(105), key(3_101)]), [Begin, Begin]);
    assert_eq!(asked(&[key(2_102), key(2_106)]), [Read]);
    // Without I/O nothing is begun.
    let mut cached = at_once();
    cached.read_tier = ReadTier::BlockCache;
    for result in get(&db, &cached, &[key(100), key(3_103)]) {
        assert_eq!(
            result.expect_err("not cached").kind(),
            ErrorKind::Incomplete
        );
    }
}

#[test]
fn keys_whose_reads_fail_say_so() {
    let (disk, db) = four_tables_of_small_blocks();
    let keys = far_apart();
    disk.with(|n| n.fails = true);
    for result in get(&db, &at_once(), &keys) {
        assert_eq!(result.expect_err("unreadable").kind(), ErrorKind::Io);
    }
    disk.with(|n| n.fails = false);
    assert_eq!(asked_by_get(&disk, &db, &at_once(), &keys).len(), 20);
}

#[test]
fn a_read_that_fails_is_told_and_tried_anew() {
    let (disk, db) = four_tables();
    let mut it = iterator(&db, at_once());
    disk.with(|n| n.fails = true);
    it.seek(key(2_000));
    assert!(!it.valid());
    assert_eq!(it.status().expect_err("unreadable").kind(), ErrorKind::Io);
    disk.with(|n| n.fails = false);
    it.seek(key(2_000));
    assert_eq!(it.key(), key(2_000));
    it.status().expect("readable");
}

#[test]
fn a_seek_reads_as_far_as_walks_went() {
    for is_direct in [true, false] {
        let (disk, db) = four_tables();
        disk.with(|n| n.is_direct = is_direct);
        // Blocks of about 200 entries in each of four tables.
        let scan = |steps: u32| {
            let mut options = ReadOptions::default();
            options.fill_cache = false;
            let mut it = iterator(&db, options);
            it.seek(key(0));
            for n in 0..steps {
                assert_eq!(it.key(), key(n));
                it.next();
            }
        };
        let reads = |steps| disk.asked(|| scan(steps)).len();
        let first = reads(1_500);
        (0..60).for_each(|_| scan(1_500));
        let later = reads(1_500);
        if is_direct {
            assert!(later < first && later <= 5, "{first}, {later}");
        } else {
            assert_eq!(later, first);
        }
        (0..60).for_each(|_| scan(1));
        assert_eq!(reads(1_500), first, "walks have become short");
    }
}

/// Returns the entry at an iterator, if it has not ended.
fn shows(it: &DbIterator) -> Option<(&[u8], &[u8])> {
    it.status().expect("reads");
    it.entry()
}

fn moves_as_a_map(changes: &str, direct: bool) {
    let seed = common::number("ESKER_SEED", 1);
    for seed in seed..seed + 3 {
        let dir = tempfile::tempdir().expect("a directory");
        let mut options = Options::new().create_if_missing(true);
        options = options
            .set_all(
                "write_buffer_size=65536;compression=kNoCompression;\
                 block_based_table_factory={block_size=512;block_cache=32K}",
            )
            .and_then(|o| o.set_all(changes))
            .expect("these options exist");
        options.db.use_direct_reads = direct;
        let db = Db::open(dir.path(), options).expect("opens");
        let (mut rng, mut model) = (Rng::new(seed), BTreeMap::new());
        for _ in 0..6_000 {
            let n = rng.below(2_000) as u32;
            if rng.one_in(5) {
                db.delete(key(n)).expect("deleted");
                model.remove(&key(n));
            } else {
                let value = vec![n as u8; rng.below(100) as usize];
                db.put(key(n), &value).expect("put");
                model.insert(key(n), value);
            }
        }
        let mut it = iterator(&db, at_once());
        let mut at: Option<Vec<u8>> = None;
        for round in 0..3_000 {
            if round % 20 == 0 {
                let keys: Vec<_> = (0..30).map(|_| key(rng.below(2_050) as u32)).collect();
                for (got, key) in get(&db, &at_once(), &keys).into_iter().zip(&keys) {
                    let got = got.expect("read");
                    let got = got.as_ref().map(AsRef::as_ref);
                    assert_eq!(got, model.get(key).map(Vec::as_slice), "seed {seed}");
                }
            }
            let target = key(rng.below(2_050) as u32);
            let entry = match (rng.below(6), at) {
                (0 | 1, _) => {
                    it.seek(&target);
                    model.range(target..).next()
                }
                (2, _) => {
                    it.seek_for_prev(&target);
                    model.range(..=target).next_back()
                }
                (3, Some(at)) => {
                    it.prev();
                    model.range(..at).next_back()
                }
                (_, Some(at)) => {
                    it.next();
                    model.range(at..).nth(1)
                }
                (_, None) => {
                    it.seek_to_last();
                    model.iter().next_back()
                }
            };
            let entry = entry.map(|(k, v)| (k.as_slice(), v.as_slice()));
            assert_eq!(shows(&it), entry, "seed {seed}");
            at = entry.map(|(k, _)| k.to_vec());
        }
    }
}

#[test]
fn an_iterator_shows_what_a_map_shows() {
    moves_as_a_map("", false);
    moves_as_a_map("disable_auto_compactions=true", false);
    moves_as_a_map(
        "block_based_table_factory={index_type=kTwoLevelIndexSearch;metadata_block_size=256;\
         partition_filters=false;block_size=512;block_cache=32K}",
        false,
    );
}

#[test]
fn direct_reads_are_begun_without_the_option() {
    moves_as_a_map("disable_auto_compactions=true", true);
}
