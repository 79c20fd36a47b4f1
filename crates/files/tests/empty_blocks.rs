//! Blocks that could be read as empty: what a writer makes is taken, and all else is damage with a
//! file and an offset.

use esker_codec::checksum::ChecksumType;
use esker_env::{Env, ReadOptions, WriteOptions};
use esker_files::table::{
    LookupKey, ReadContext, TableReader, TableReaderOptions, read_properties,
};
use esker_format::block::{BlockBuilder, BlockHandle, IndexBlockBuilder, IndexForm};
use esker_format::footer::Footer;
use esker_format::key::append_internal;
use esker_format::properties::TableProperties;
use esker_format::{Cursor, Seq, ValueType};
use esker_status::{ErrorKind, Result};
use std::path::PathBuf;
use std::sync::Arc;

/// Blocks without entries: no restart points, room for some and none, and two of them.
const NO_BLOCKS: [&[u8]; 4] = [
    &[0; 4],
    &[0; 8],
    &[0, 0, 0, 0, 0, 0, 0, 0x10],
    &[0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0],
];
/// A block without entries as a writer makes it.
const EMPTY: &[u8] = &[0, 0, 0, 0, 1, 0, 0, 0];

fn key(user: &str, seq: u64, kind: ValueType) -> Vec<u8> {
    let mut out = Vec::new();
    append_internal(&mut out, user.as_bytes(), Seq(seq), kind);
    out
}

fn entry(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut b = BlockBuilder::new(16);
    b.add(key, value);
    b.finish().to_vec()
}

/// The blocks of a table; those that are `None` are made right.
#[derive(Default)]
struct Parts {
    data: Option<Vec<u8>>,
    partition: Option<Vec<u8>>,
    index: Option<Vec<u8>>,
    properties: Option<Vec<u8>>,
    range_del: Option<Vec<u8>>,
    metaindex: Option<Vec<u8>>,
    said: TableProperties,
}

/// A file, and where its index, properties, range deletions and metaindex are.
struct Made {
    _dir: tempfile::TempDir,
    path: PathBuf,
    partition: u64,
    index: u64,
    properties: u64,
    range_del: u64,
    metaindex: u64,
}

fn put(file: &mut Vec<u8>, block: &[u8]) -> BlockHandle {
    let offset = file.len() as u64;
    let size = block.len() as u64;
    file.extend_from_slice(block);
    file.push(0);
    file.extend(ChecksumType::Xxh3.compute(block, 0).to_le_bytes());
    BlockHandle { offset, size }
}

fn index_of(handle: BlockHandle) -> Vec<u8> {
    let mut b = IndexBlockBuilder::new(IndexForm::default(), 1);
    b.add(&key("k", 9, ValueType::Value), handle, b"");
    b.finish().to_vec()
}

fn made(parts: &Parts) -> Result<Made> {
    let mut file = Vec::new();
    let sound = entry(&key("k", 9, ValueType::Value), b"v");
    let data = put(&mut file, parts.data.as_ref().unwrap_or(&sound));
    let leaf = parts.partition.as_ref().map(|p| put(&mut file, p));
    let sound = index_of(leaf.unwrap_or(data));
    let index = put(&mut file, parts.index.as_ref().unwrap_or(&sound));
    let mut b = BlockBuilder::new(1);
    for (name, value) in parts.said.encode() {
        b.add(&name, &value);
    }
    let sound = b.finish().to_vec();
    let properties = put(&mut file, parts.properties.as_ref().unwrap_or(&sound));
    let range_del = parts.range_del.as_ref().map(|r| put(&mut file, r));
    let mut b = BlockBuilder::new(1);
    b.add(b"rocksdb.properties", &properties.encode());
    if let Some(handle) = range_del {
        b.add(b"rocksdb.range_del", &handle.encode());
    }
    let sound = b.finish().to_vec();
    let metaindex = put(&mut file, parts.metaindex.as_ref().unwrap_or(&sound));
    let footer = Footer {
        version: 5,
        checksum: ChecksumType::Xxh3,
        metaindex,
        index,
        base_context_checksum: 0,
    };
    let tail = footer.encode(file.len() as u64)?;
    file.extend_from_slice(&tail);
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("000007.sst");
    let mut out = Env::posix().fs.create(&path, WriteOptions::default())?;
    out.append(&file)?;
    out.close()?;
    Ok(Made {
        _dir: dir,
        path,
        partition: leaf.map_or(0, |h| h.offset),
        index: index.offset,
        properties: properties.offset,
        range_del: range_del.map_or(0, |h| h.offset),
        metaindex: metaindex.offset,
    })
}

fn open(made: &Made) -> Result<Arc<TableReader>> {
    let file = Env::posix()
        .fs
        .open_read(&made.path, ReadOptions::default())?;
    let size = file.len();
    TableReader::open(file, size, TableReaderOptions::default())
}

#[track_caller]
fn is_damage<T>(outcome: Result<T>, made: &Made, offset: u64) {
    let Err(e) = outcome else {
        panic!("the block at {offset} was read");
    };
    assert_eq!(e.kind(), ErrorKind::Corruption, "{e}");
    assert_eq!(e.file(), Some(made.path.as_path()), "{e}");
    assert_eq!(e.offset(), Some(offset), "{e}");
}

/// Entries of a walk in each direction and of a Get.
fn read(table: &Arc<TableReader>) -> [Result<usize>; 3] {
    let ctx = ReadContext::default();
    let [there, back] = [true, false].map(|forward| {
        let (mut c, mut n) = (table.cursor(&ctx), 0);
        if forward {
            c.seek_to_first()
        } else {
            c.seek_to_last()
        }
        while c.valid() {
            n += 1;
            if forward { c.next() } else { c.prev() }
        }
        c.status().map(|()| n)
    });
    let wanted = key("k", 9, ValueType::SEEK);
    let mut found = 0;
    let got = table.get(&ctx, &LookupKey::new(&wanted, 0), |_| {
        found += 1;
        true
    });
    [there, back, got.map(|()| found)]
}

#[test]
fn a_table_whose_parts_are_right_is_read() -> Result<()> {
    let table = open(&made(&Parts::default())?)?;
    for n in read(&table) {
        assert_eq!(n?, 1);
    }
    Ok(())
}

#[test]
fn a_data_block_without_entries_is_damage() -> Result<()> {
    for block in NO_BLOCKS.into_iter().chain([EMPTY]) {
        let made = made(&Parts {
            data: Some(block.to_vec()),
            ..Parts::default()
        })?;
        let table = open(&made)?;
        for outcome in read(&table) {
            is_damage(outcome, &made, 0);
        }
        assert!(table.verify().is_err());
    }
    Ok(())
}

#[test]
fn an_index_without_restart_points_is_damage() -> Result<()> {
    for block in NO_BLOCKS {
        let made = made(&Parts {
            index: Some(block.to_vec()),
            ..Parts::default()
        })?;
        is_damage(open(&made), &made, made.index);
    }
    Ok(())
}

#[test]
fn an_empty_index_is_damage_where_there_are_data_blocks() -> Result<()> {
    let parts = |num_data_blocks| Parts {
        index: Some(EMPTY.to_vec()),
        said: TableProperties {
            num_data_blocks,
            ..TableProperties::default()
        },
        ..Parts::default()
    };
    let wrong = made(&parts(1))?;
    is_damage(open(&wrong), &wrong, wrong.index);
    // The index of a table that has range deletions alone.
    for n in read(&open(&made(&parts(0))?)?) {
        assert_eq!(n?, 0);
    }
    Ok(())
}

#[test]
fn a_partition_of_the_index_without_entries_is_damage() -> Result<()> {
    for block in NO_BLOCKS.into_iter().chain([EMPTY]) {
        let made = made(&Parts {
            partition: Some(block.to_vec()),
            said: TableProperties {
                index_type: Some(2),
                ..TableProperties::default()
            },
            ..Parts::default()
        })?;
        let table = open(&made)?;
        for outcome in read(&table) {
            is_damage(outcome, &made, made.partition);
        }
    }
    Ok(())
}

#[test]
fn a_metaindex_without_restart_points_is_damage() -> Result<()> {
    for block in NO_BLOCKS {
        let made = made(&Parts {
            metaindex: Some(block.to_vec()),
            ..Parts::default()
        })?;
        is_damage(open(&made), &made, made.metaindex);
        let file = Env::posix()
            .fs
            .open_read(&made.path, ReadOptions::default())?;
        is_damage(read_properties(file), &made, made.metaindex);
    }
    // A table without meta blocks.
    let bare = made(&Parts {
        metaindex: Some(EMPTY.to_vec()),
        ..Parts::default()
    })?;
    for n in read(&open(&bare)?) {
        assert_eq!(n?, 1);
    }
    Ok(())
}

#[test]
fn properties_without_entries_are_damage() -> Result<()> {
    for block in NO_BLOCKS.into_iter().chain([EMPTY]) {
        let made = made(&Parts {
            properties: Some(block.to_vec()),
            ..Parts::default()
        })?;
        is_damage(open(&made), &made, made.properties);
    }
    Ok(())
}

#[test]
fn range_deletions_that_the_properties_count_must_be_there() -> Result<()> {
    let parts = |block: &[u8], num_range_deletions| Parts {
        range_del: Some(block.to_vec()),
        said: TableProperties {
            num_range_deletions,
            ..TableProperties::default()
        },
        ..Parts::default()
    };
    for block in NO_BLOCKS {
        let made = made(&parts(block, 0))?;
        is_damage(open(&made), &made, made.range_del);
    }
    let wrong = made(&parts(EMPTY, 2))?;
    is_damage(open(&wrong), &wrong, wrong.range_del);
    assert!(
        open(&made(&parts(EMPTY, 0))?)?
            .range_tombstones()
            .is_empty()
    );
    let one = entry(&key("a", 9, ValueType::RangeDeletion), b"c");
    assert_eq!(open(&made(&parts(&one, 1))?)?.range_tombstones().len(), 1);
    Ok(())
}
