//! Reads whole table files that RocksDB wrote: footers, checksums, codecs, dictionaries,
//! properties, filters.
//!
//! Run with `ESKER_GOLDEN_DIR=DIR cargo test -p esker-format --test golden_tables -- --ignored`,
//! where DIR holds databases (at any depth). Blocks are walked by a deliberately simple reader of
//! this test's own.

use esker_codec::compress::{Codec, Dictionary, codecs_of_property, decompress};
use esker_format::coding::{Reader, fixed32_at};
use esker_format::filter::{FilterReader, KeyHash};
use esker_format::footer::{BlockHandle, FOOTER_LEN, Footer};
use esker_format::key::user_key;
use esker_format::properties::{self as props, TableProperties};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Counts of what was seen in all files, to show that the test saw something.
#[derive(Debug, Default)]
struct Seen {
    files: usize,
    keys: usize,
    filtered: usize,
    versions: BTreeMap<u32, usize>,
    codecs: BTreeMap<Codec, usize>,
    dictionaries: usize,
    /// Files whose unique id a MANIFEST beside them holds.
    identities: usize,
    kinds: BTreeMap<u8, usize>,
}

fn tables(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("the directory can be read") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            tables(&path, out);
        } else if path.extension().is_some_and(|e| e == "sst") {
            out.push(path);
        }
    }
}

struct Table<'a> {
    file: &'a [u8],
    footer: Footer,
    dict: Option<Dictionary>,
    codecs: BTreeMap<Codec, usize>,
}

impl Table<'_> {
    /// The raw bytes of a block, its checksum verified.
    fn block(&mut self, handle: BlockHandle, is_data: bool) -> Vec<u8> {
        handle
            .check_within(self.file.len() as u64)
            .expect("the block lies in the file");
        let (at, len) = (handle.offset as usize, handle.size as usize);
        let (stored, kind) = (&self.file[at..at + len], self.file[at + len]);
        let checksum = fixed32_at(self.file, at + len + 1).expect("inside the file");
        let computed = |stored: &[u8]| self.footer.block_checksum(stored, kind, handle.offset);
        if checksum != computed(stored) {
            let cleared = props::without_global_seqno(stored).expect("the checksum matches");
            assert_eq!(checksum, computed(&cleared), "block at {at}");
        }
        let codec = Codec::from_u8(kind).expect("a known codec");
        *self.codecs.entry(codec).or_default() += 1;
        let mut raw = Vec::new();
        let dict = self.dict.as_ref().filter(|_| is_data);
        decompress(codec, stored, dict, 1 << 24, &mut raw).expect("the block decompresses");
        raw
    }
}

/// Entries of a block with values stored in place; `delta` blocks hold handles without a length.
fn entries(block: &[u8], delta: bool, first_key: bool) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let word = fixed32_at(block, block.len() - 4).expect("a footer word");
    if word & 1 << 28 != 0 {
        return None;
    }
    let mut end = block.len() - 4 - 4 * (word & 0x0fff_ffff) as usize;
    if word & 1 << 31 != 0 {
        let buckets = u16::from_le_bytes([block[block.len() - 6], block[block.len() - 5]]);
        end -= usize::from(buckets) + 2;
    }
    let mut reader = Reader::new(&block[..end]);
    let (mut out, mut key, mut last) = (Vec::new(), Vec::new(), BlockHandle::NULL);
    while !reader.is_empty() {
        let (shared, unshared) = (reader.varint32().ok()?, reader.varint32().ok()?);
        let value_len = if delta { 0 } else { reader.varint32().ok()? };
        key.truncate(shared as usize);
        key.extend_from_slice(reader.bytes(unshared as usize).ok()?);
        let value = if delta {
            last = match shared {
                0 => BlockHandle::read(&mut reader).ok()?,
                _ => BlockHandle {
                    offset: last.end()?,
                    size: last.size.checked_add_signed(reader.varsigned64().ok()?)?,
                },
            };
            if first_key {
                reader.lpstr().ok()?;
            }
            last.encode()
        } else {
            reader.bytes(value_len as usize).ok()?.to_vec()
        };
        out.push((key.clone(), value));
    }
    Some(out)
}

fn manifest_holds(path: &Path, id: &[u8; 16]) -> bool {
    let dir = path.parent().expect("a file lies in a directory");
    let entries = std::fs::read_dir(dir)
        .expect("the directory can be read")
        .flatten();
    entries
        .filter(|e| e.file_name().to_string_lossy().starts_with("MANIFEST-"))
        .map(|e| std::fs::read(e.path()).expect("the MANIFEST can be read"))
        .any(|manifest| manifest.windows(16).any(|w| w == id))
}

fn check(path: &Path, seen: &mut Seen) {
    let file = std::fs::read(path).expect("the file can be read");
    let size = file.len() as u64;
    let footer = Footer::decode(&file, size).expect("the footer decodes");
    let encoded = footer
        .encode(size - FOOTER_LEN as u64)
        .expect("the footer encodes");
    assert_eq!(encoded, file[file.len() - FOOTER_LEN..]);
    let mut table = Table {
        file: &file,
        footer,
        dict: None,
        codecs: BTreeMap::new(),
    };

    let meta = table.block(footer.metaindex, false);
    let meta: BTreeMap<Vec<u8>, Vec<u8>> = entries(&meta, false, false)
        .expect("plain")
        .into_iter()
        .collect();
    let find = |name: &str| {
        meta.get(name.as_bytes())
            .map(|v| BlockHandle::decode(v).expect("a handle"))
    };
    let stored = table.block(find(props::PROPERTIES_BLOCK).expect("properties"), false);
    let stored = entries(&stored, false, false).expect("plain");
    let properties = TableProperties::decode(stored.clone()).expect("sorted");
    let again: BTreeMap<Vec<u8>, Vec<u8>> = properties.encode().into_iter().collect();
    for (name, value) in &stored {
        let optional =
            name.as_slice() == b"rocksdb.num.uniform.blocks" || value.is_empty() || value == &[0];
        assert!(
            again.get(name) == Some(value) || optional,
            "{}",
            name.escape_ascii()
        );
    }
    assert!(
        properties
            .user_collected
            .keys()
            .all(|n| !n.starts_with(b"rocksdb.")),
        "{properties:?}"
    );
    assert!(codecs_of_property(&properties.compression_name).is_some());
    let id = properties.unique_id().expect("an identity").to_bytes();
    seen.identities += usize::from(manifest_holds(path, &id));
    if let Some(handle) = find(props::COMPRESSION_DICT_BLOCK) {
        table.dict = Some(Dictionary::new(table.block(handle, false)).expect("not empty"));
        seen.dictionaries += 1;
    }

    let filter = find(props::FULL_FILTER_BLOCK)
        .map(|h| table.block(h, false))
        .unwrap_or_default();
    let reader = FilterReader::parse(&filter);
    if let Some(at) = filter.len().checked_sub(5) {
        *seen.kinds.entry(filter[at]).or_default() += 1;
    }
    let whole = properties.whole_key_filtering != Some(false);
    let timestamps = properties.comparator_name.contains("u64ts");
    for key in data_keys(&mut table, &properties, find(props::INDEX_BLOCK)) {
        seen.keys += 1;
        if whole && !timestamps && !filter.is_empty() {
            let key = user_key(&key);
            assert!(
                reader.may_match(&filter, key, KeyHash::of(key)),
                "{}",
                key.escape_ascii()
            );
            seen.filtered += 1;
        }
    }
    if !filter.is_empty() && !reader.is_always_true() {
        let absent = |i: u32| format!("no such key {i}").into_bytes();
        let hits = (0..2000)
            .filter(|i| reader.may_match(&filter, &absent(*i), KeyHash::of(&absent(*i))))
            .count();
        assert!(hits < 200, "{hits} false positives of 2000");
    }
    for (codec, n) in table.codecs {
        *seen.codecs.entry(codec).or_default() += n;
    }
    *seen.versions.entry(footer.version).or_default() += 1;
    seen.files += 1;
}

fn data_keys(
    table: &mut Table<'_>,
    properties: &TableProperties,
    index: Option<BlockHandle>,
) -> Vec<Vec<u8>> {
    let delta = properties.index_value_is_delta_encoded;
    let first_key = properties.index_type == Some(3);
    let handles = |table: &mut Table<'_>, at, first_key| {
        let block = table.block(at, false);
        let entries = entries(&block, delta, first_key).expect("index blocks hold values in place");
        entries
            .iter()
            .map(|(_, v)| BlockHandle::decode(v).expect("a handle"))
            .collect::<Vec<_>>()
    };
    let mut blocks = handles(table, index.unwrap_or(table.footer.index), first_key);
    if properties.index_type == Some(2) {
        blocks = blocks
            .into_iter()
            .flat_map(|at| handles(table, at, false))
            .collect();
    }
    let raw: Vec<Vec<u8>> = blocks.into_iter().map(|at| table.block(at, true)).collect();
    raw.iter()
        .filter_map(|block| entries(block, false, false))
        .flatten()
        .map(|(key, _)| key)
        .collect()
}

#[test]
#[ignore = "needs tables of RocksDB: ESKER_GOLDEN_DIR=DIR cargo test -p esker-format --test golden_tables -- --ignored"]
fn every_table_file_reads_whole() {
    let dir = std::env::var_os("ESKER_GOLDEN_DIR")
        .expect("ESKER_GOLDEN_DIR names a directory of databases");
    let mut paths = Vec::new();
    tables(Path::new(&dir), &mut paths);
    let mut seen = Seen::default();
    for path in &paths {
        eprintln!("{}", path.display());
        check(path, &mut seen);
    }
    println!("{seen:#?}");
    assert!(
        seen.files > 0 && seen.keys > 0,
        "no table files below the directory"
    );
}
