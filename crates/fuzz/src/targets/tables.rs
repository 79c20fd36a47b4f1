//! Targets for table files: as they are, and put together from blocks so that every checksum is
//! right.

use super::blocks::amplified;
use super::{LARGE, Seed, Target};
use crate::input::{FileOf, Sink};
use crate::mutate::{self, Source};
use crate::parts::{self, Parts};
use crate::repair;
use esker_codec::checksum::ChecksumType;
use esker_codec::compress::{Codec, CompressionOptions};
use esker_files::table::{
    DataBlockIndexType, IndexType, LookupKey, ReadContext, ReadCounters, TableBuilder,
    TableBuilderOptions, TableOptions, TableReader, TableReaderOptions, read_properties,
};
use esker_format::block::{Block, BlockBuilder, BlockCursor, BlockHandle};
use esker_format::filter::FilterPolicy;
use esker_format::footer::Footer;
use esker_format::key::append_internal;
use esker_format::{Cursor, FileNo, PrefixExtractor, RawTombstone, Seq, ValueType};
use esker_status::Result;
use std::sync::Arc;

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "table",
        about: "whole table files: opened, walked both ways, searched, verified",
        run: table,
        seeds: tables,
        change: change_table,
        memory: LARGE,
    },
    Target {
        name: "table-blocks",
        about: "tables put together from changed blocks, with right checksums and footer",
        run: assembled,
        seeds: taken_apart,
        change: change_blocks,
        memory: LARGE,
    },
];

/// Entries that are looked at in one walk.
const ENTRIES_MAX: usize = 50_000;

fn key(user: &str, seq: u64, kind: ValueType) -> Vec<u8> {
    let mut out = Vec::new();
    append_internal(&mut out, user.as_bytes(), Seq(seq), kind);
    out
}

fn prefix() -> Option<PrefixExtractor> {
    Some(PrefixExtractor::Fixed(3))
}

/// A table of some sixty entries, versions and tombstones among them.
pub(super) fn build(table: TableOptions, compression: Codec, dictionary: u32) -> Vec<u8> {
    let options = TableBuilderOptions {
        table: TableOptions {
            block_size: 512,
            metadata_block_size: 128,
            ..table
        },
        compression,
        compression_opts: CompressionOptions {
            max_dict_bytes: dictionary,
            ..CompressionOptions::default()
        },
        prefix_extractor: prefix(),
        db_id: "0a1b2c3d-0000-4000-8000-0123456789ab".to_owned(),
        db_session_id: "ABCDEFGHIJ0123456789".to_owned(),
        file_no: FileNo(7),
        ..TableBuilderOptions::default()
    };
    let made = || -> Result<Vec<u8>> {
        let (sink, file) = Sink::new();
        let mut b = TableBuilder::new(file, options)?;
        for i in 0..60u64 {
            let user = format!("key{i:04}");
            if i % 10 == 0 {
                b.add(&key(&user, 900 - i, ValueType::Deletion), b"")?;
            }
            b.add(
                &key(&user, 100 + i, ValueType::Value),
                format!("value {i} ").repeat(4).as_bytes(),
            )?;
        }
        let range = |start: &str, end: &str, seq| RawTombstone {
            start: start.into(),
            end: end.into(),
            seq: Seq(seq),
        };
        b.add_tombstone(&range("key0003", "key0009", 500));
        b.add_tombstone(&range("key0005", "key0040", 50));
        b.finish()?;
        Ok(sink.bytes())
    };
    made().expect("a table of our own")
}

fn of_version(format_version: u32) -> TableOptions {
    TableOptions {
        format_version,
        ..TableOptions::default()
    }
}

fn tables() -> Vec<Seed> {
    let partitioned = TableOptions {
        index_type: IndexType::TwoLevelIndexSearch,
        partition_filters: true,
        filter_policy: Some(FilterPolicy::ribbon(10.0, 0)),
        ..of_version(6)
    };
    let hashed = TableOptions {
        data_block_index_type: DataBlockIndexType::BinaryAndHash,
        index_block_restart_interval: 8,
        filter_policy: Some(FilterPolicy::bloom(10.0)),
        ..of_version(5)
    };
    let first_keys = TableOptions {
        index_type: IndexType::BinarySearchWithFirstKey,
        ..of_version(7)
    };
    let old = TableOptions {
        checksum: ChecksumType::Crc32c,
        filter_policy: Some(FilterPolicy::bloom(10.0)),
        ..of_version(2)
    };
    let hash_search = TableOptions {
        index_type: IndexType::HashSearch,
        ..of_version(4)
    };
    vec![
        ("v6-partitioned", build(partitioned, Codec::None, 0)),
        ("v5-hash-index", build(hashed, Codec::None, 0)),
        ("v7-first-keys", build(first_keys, Codec::Lz4, 0)),
        ("v2-crc", build(old, Codec::Snappy, 0)),
        ("v4-hash-search", build(hash_search, Codec::Zlib, 0)),
        ("v5-dictionary", build(of_version(5), Codec::Zstd, 256)),
    ]
}

pub(super) fn change_table(input: &mut Vec<u8>, source: &mut Source<'_>) {
    mutate::bytes(input, source);
    if !source.rng.one_in(4) {
        repair::table(input);
    }
}

fn open(input: &[u8], seq: Option<Seq>) -> Result<Arc<TableReader>> {
    let options = TableReaderOptions {
        prefix_extractor: prefix(),
        largest_seq: seq,
        ..TableReaderOptions::default()
    };
    TableReader::open(FileOf::of(input), input.len() as u64, options)
}

fn table(input: &[u8]) {
    let _ = read_properties(FileOf::of(input));
    let Ok(reader) = open(input, None) else {
        return;
    };
    let ctx = ReadContext::default();
    let mut keys = vec![
        key("key0007", 1000, ValueType::Value),
        key("", 0, ValueType::Value),
    ];
    let mut c = reader.cursor(&ctx);
    let mut forward = 0;
    c.seek_to_first();
    while c.valid() && forward < ENTRIES_MAX {
        if forward % 16 == 0 && keys.len() < 20 {
            keys.push(c.key().to_vec());
        }
        forward += 1;
        c.next();
    }
    let sound = !c.valid() && c.status().is_ok();
    if sound && forward == 0 {
        let p = reader.properties();
        assert_eq!(p.num_data_blocks, 0, "blocks of data are read as nothing");
    }
    let said = reader.properties().num_range_deletions;
    assert!(
        said == 0 || !reader.range_tombstones().is_empty(),
        "range deletions are read as none"
    );
    let mut backward = 0;
    c.seek_to_last();
    while c.valid() && backward < ENTRIES_MAX {
        backward += 1;
        c.prev();
    }
    let verified = reader.verify().is_ok();
    if sound && verified && !c.valid() && c.status().is_ok() && forward < ENTRIES_MAX {
        assert_eq!(forward, backward, "entries forward and backward");
    }
    for k in &keys {
        c.seek(k);
        c.seek_for_prev(k);
        if k.len() >= 8 {
            let lookup = LookupKey::new(k, 0);
            let _ = reader.get(&ctx, &lookup, |e| e.key().len() > e.value().len());
            let _ = reader.may_contain(&ctx, &lookup);
            let _ = reader.prefix_may_match(&ctx, &k[..3], &ReadCounters::default());
            let _ = reader.approximate_offset_of(&ctx, k);
        }
    }
    let _ = reader.anchors(&ctx, 10);
    for (kind, handle) in reader
        .block_handles()
        .unwrap_or_default()
        .into_iter()
        .take(1000)
    {
        let _ = reader.read_block(kind, handle, true);
    }
    let _ = (
        reader.range_tombstones().len(),
        reader.memory_usage(),
        reader.global_seqno_offset(),
    );
    let _ = open(input, Some(Seq(7))).map(|r| r.verify());
}

// ---- put together ----

/// The blocks of a table, uncompressed, under their names in the metaindex; `data` for each data
/// block, in order.
fn taken_apart() -> Vec<Seed> {
    let partitioned = TableOptions {
        index_type: IndexType::TwoLevelIndexSearch,
        partition_filters: true,
        filter_policy: Some(FilterPolicy::bloom(10.0)),
        ..of_version(5)
    };
    let plain = TableOptions {
        filter_policy: Some(FilterPolicy::bloom(10.0)),
        index_block_restart_interval: 4,
        ..of_version(5)
    };
    let mut tombstones = take_apart(&build(plain.clone(), Codec::None, 0));
    for (name, block) in &mut tombstones {
        if name == "rocksdb.range_del" {
            *block = amplified(b"z", true);
        }
    }
    vec![
        (
            "plain",
            parts::join(&take_apart(&build(plain, Codec::None, 0))),
        ),
        (
            "partitioned",
            parts::join(&take_apart(&build(partitioned, Codec::None, 0))),
        ),
        ("amplified-tombstones", parts::join(&tombstones)),
    ]
}

/// Everything up to the first meta block stays one piece, with its trailers: handles in the index
/// lead into it.
fn take_apart(file: &[u8]) -> Parts {
    let footer =
        Footer::decode(&file[file.len() - 53..], file.len() as u64).expect("our own footer");
    let piece = |h: BlockHandle| file[h.offset as usize..(h.offset + h.size) as usize].to_vec();
    let meta = Block::parse(piece(footer.metaindex)).expect("our own block");
    let mut cursor = BlockCursor::over_names(&meta);
    let mut out: Parts = Vec::new();
    let mut first = footer.metaindex.offset.min(footer.index.offset);
    cursor.seek_to_first();
    while cursor.valid() {
        let handle = BlockHandle::decode(cursor.value()).expect("our own handle");
        first = first.min(handle.offset);
        out.push((
            String::from_utf8_lossy(cursor.key()).into_owned(),
            piece(handle),
        ));
        cursor.next();
    }
    out.push(("index".to_owned(), piece(footer.index)));
    out.insert(0, ("data".to_owned(), file[..first as usize].to_vec()));
    out
}

/// Puts a file together: trailers, a metaindex of whatever blocks there are, a footer.
fn put_together(parts: &Parts) -> Vec<u8> {
    let checksum = ChecksumType::Xxh3;
    let mut file = Vec::new();
    let mut named = Vec::new();
    let mut index = BlockHandle::NULL;
    let put = |file: &mut Vec<u8>, block: &[u8]| {
        let handle = BlockHandle {
            offset: file.len() as u64,
            size: block.len() as u64,
        };
        file.extend_from_slice(block);
        file.push(0);
        file.extend(checksum.compute(block, 0).to_le_bytes());
        handle
    };
    for (name, block) in parts {
        match name.as_str() {
            "data" => file.extend_from_slice(block),
            "index" => index = put(&mut file, block),
            _ => named.push((name.clone(), put(&mut file, block))),
        }
    }
    named.sort();
    named.dedup_by(|a, b| a.0 == b.0);
    let mut b = BlockBuilder::new(1);
    named
        .iter()
        .for_each(|(name, handle)| b.add(name.as_bytes(), &handle.encode()));
    let metaindex = put(&mut file, b.finish());
    let footer = Footer {
        version: 5,
        checksum,
        metaindex,
        index,
        base_context_checksum: 0,
    };
    let footer = footer
        .encode(file.len() as u64)
        .expect("a footer of version 5");
    file.extend_from_slice(&footer);
    // The data blocks' trailers.
    repair::table(&mut file);
    file
}

/// Replacements of a block that has none of its entries, in forms that a writer makes and that it
/// does not.
const EMPTIED: [&[u8]; 4] = [
    &[0; 4],
    &[0; 8],
    &[0, 0, 0, 0, 1, 0, 0, 0],
    &[0, 0, 0, 0, 0, 0, 0, 0x10],
];

fn change_blocks(input: &mut Vec<u8>, source: &mut Source<'_>) {
    let mut all = parts::split(input);
    if all.is_empty() {
        return mutate::bytes(input, source);
    }
    let at = source.rng.index(all.len());
    let mut none = Source {
        rng: source.rng.fork(),
        others: &[],
    };
    match source.rng.below(12) {
        0 => drop(all.remove(at)),
        1 => {
            let other = source.rng.index(all.len());
            all[at].1 = all[other].1.clone();
        }
        2 => all[at].1 = source.rng.pick(&EMPTIED).to_vec(),
        _ => mutate::bytes(&mut all[at].1, &mut none),
    }
    *input = parts::join(&all);
    input.truncate(mutate::LONGEST);
}

fn assembled(input: &[u8]) {
    table(&put_together(&parts::split(input)));
}
