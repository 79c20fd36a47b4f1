//! Targets for what `esker-format` decodes from plain bytes: batches, edits, footers, properties,
//! entities, indexes of blobs, keys and their orders.

use super::{SMALL, Seed, Target, same_again};
use crate::input::Cut;
use crate::mutate::{self, Source};
use crate::repair;
use esker_format::batch::{BatchReader, PrepareKind, Record, WriteBatch};
use esker_format::blob::{BlobFileFooter, BlobFileHeader, BlobIndex, BlobRecordHeader};
use esker_format::blob_groups::{BlobGroup, BlobGroups, BlobTier};
use esker_format::coding::Reader;
use esker_format::edit::{BlobAddition, BlobGarbage, NewFile, VersionEdit, WalAddition};
use esker_format::footer::{BlockHandle, FOOTER_LEN, Footer};
use esker_format::properties::TableProperties;
use esker_format::saved_cache::{SavedCache, SavedCacheWriter};
use esker_format::unique_id::{UniqueId, decode_session_id, encode_session_id};
use esker_format::wide_column::{self, Column};
use esker_format::{FamilyId, FileNo, InternalKey, KeyOrder, Level, ParsedKey, Seq, ValueType};
use esker_status::Result;

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "batch",
        about: "write batches: records, counts, timestamps, taken over by WriteBatch",
        run: batch,
        seeds: batches,
        change: change_batch,
        memory: SMALL,
    },
    Target {
        name: "edit",
        about: "version edits",
        run: edit,
        seeds: edits,
        change: mutate::bytes,
        memory: SMALL,
    },
    Target {
        name: "footer",
        about: "footers of tables, all format versions",
        run: footer,
        seeds: footers,
        change: change_footer,
        memory: SMALL,
    },
    Target {
        name: "entity",
        about: "wide-column entities, both versions",
        run: entity,
        seeds: entities,
        change: mutate::bytes,
        memory: SMALL,
    },
    Target {
        name: "blob-parts",
        about: "headers, footers and records of blob files, and blob indexes",
        run: blob_parts,
        seeds: blob_pieces,
        change: change_blob_part,
        memory: SMALL,
    },
    Target {
        name: "saved-cache",
        about: "lists of cached blocks",
        run: saved_cache,
        seeds: saved_caches,
        change: change_saved_cache,
        memory: SMALL,
    },
    Target {
        name: "keys",
        about: "internal keys, orders and the keys between keys, varints, unique and session ids",
        run: keys,
        seeds: some_keys,
        change: mutate::bytes,
        memory: SMALL,
    },
];

// ---- batches ----

/// A batch with every kind of record.
pub(super) fn every_record() -> Result<WriteBatch> {
    let mut b = WriteBatch::new();
    let other = repair::OTHER;
    b.mark_noop()?;
    b.put(b"key", b"value")?;
    b.put_cf(other, b"key1", &[b'v'; 200])?;
    b.delete(b"gone")?;
    b.single_delete_cf(other, b"once")?;
    b.merge(b"sum", b"\x01\0\0\0\0\0\0\0")?;
    b.delete_range_cf(other, b"a", b"c")?;
    let mut entity = Vec::new();
    wide_column::encode(
        &[Column::new(b"", b"plain"), Column::new(b"name", b"x")],
        &mut entity,
    )?;
    b.put_encoded_entity_cf(FamilyId::DEFAULT, b"wide", &entity)?;
    b.timed_put_cf(FamilyId::DEFAULT, b"timed", b"value", 1_700_000_000)?;
    let mut index = Vec::new();
    BlobIndex::blob(FileNo(9), 100, 20, 0).encode(&mut index);
    b.put_blob_index_cf(FamilyId::DEFAULT, b"blob", &index)?;
    b.log_data(b"for readers of the log")?;
    b.set_seq(Seq(77));
    Ok(b)
}

fn batches() -> Vec<Seed> {
    let made = || -> Result<Vec<Seed>> {
        let mut prepared = WriteBatch::new();
        prepared.mark_noop()?;
        prepared.put(b"k", b"v")?;
        prepared.mark_end_prepare(PrepareKind::Committed, b"xid1")?;
        let mut committed = WriteBatch::new();
        committed.mark_commit_with_timestamp(&[1; 8], b"xid1")?;
        committed.mark_rollback(b"xid2")?;
        let mut stamped = WriteBatch::new();
        stamped.put_with_timestamp(repair::OTHER, b"key", &[2; 8], b"value")?;
        stamped.delete_with_timestamp(repair::OTHER, b"key", &[3; 8])?;
        Ok(vec![
            ("every-record", every_record()?.into_bytes()),
            ("prepared", prepared.into_bytes()),
            ("committed", committed.into_bytes()),
            ("timestamps", stamped.into_bytes()),
            ("empty", WriteBatch::new().into_bytes()),
        ])
    };
    made().expect("our own batches")
}

pub(super) fn change_batch(input: &mut Vec<u8>, source: &mut Source<'_>) {
    mutate::bytes(input, source);
    if !source.rng.one_in(4) {
        repair::batch(input);
    }
}

/// Adds what a record says to another batch; false for kinds that go in by other ways.
fn add(record: &Record<'_>, to: &mut WriteBatch) -> Result<bool> {
    match *record {
        Record::Put { family, key, value } => to.put_cf(family, key, value)?,
        Record::Delete { family, key } => to.delete_cf(family, key)?,
        Record::SingleDelete { family, key } => to.single_delete_cf(family, key)?,
        Record::Merge {
            family,
            key,
            operand,
        } => to.merge_cf(family, key, operand)?,
        Record::DeleteRange { family, begin, end } => to.delete_range_cf(family, begin, end)?,
        Record::BlobIndex { family, key, index } => to.put_blob_index_cf(family, key, index)?,
        Record::LogData(blob) => to.log_data(blob)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn batch(input: &[u8]) {
    let Ok(reader) = BatchReader::parse(input) else {
        assert!(WriteBatch::from_bytes(input.to_vec()).is_err());
        return;
    };
    let sound = reader.verify().is_ok();
    let records: Vec<Record<'_>> = reader.records().map_while(Result::ok).collect();
    assert!(records.len() <= input.len());
    let values = records.iter().all(|r| match r {
        Record::BlobIndex { index, .. } => BlobIndex::decode(index).is_ok(),
        Record::PutEntity { entity, .. } => wide_column::decode(entity).is_ok(),
        _ => true,
    });
    let whole = WriteBatch::from_bytes(input.to_vec());
    assert_eq!(
        whole.is_ok(),
        sound && values,
        "two readers of one batch disagree"
    );
    let Ok(mut whole) = whole else { return };
    assert_eq!(whole.count(), reader.count());
    assert_eq!(whole.data(), input);

    let mut copy = WriteBatch::new();
    let all = records.iter().all(|r| add(r, &mut copy).unwrap_or(false));
    if all {
        copy.set_seq(reader.seq());
        let again: Vec<Record<'_>> = copy.records().map_while(Result::ok).collect();
        assert_eq!(records, again);
    }
    let mut twice = WriteBatch::new();
    if twice.append(&whole, false).is_ok() && twice.append(&whole, false).is_ok() {
        assert!(
            twice.reader().verify().is_ok(),
            "appended to itself it is damaged"
        );
    }
    // Every family has timestamps here, and then one of two.
    for of in [
        |_| Some(8),
        |f: FamilyId| Some(if f.0 % 2 == 1 { 8 } else { 0 }),
    ] {
        let _ = whole.check_timestamps(
            |f| of(f).unwrap_or(0),
            |_| esker_status::Error::corruption("none"),
        );
        if whole.update_timestamps(&[7; 8], of).is_ok() {
            assert!(whole.reader().verify().is_ok(), "timestamps damaged it");
        }
    }
    whole.set_save_point();
    if whole.put(b"after", b"the point").is_ok() {
        whole
            .rollback_to_save_point()
            .expect("there is a save point");
        assert!(whole.reader().verify().is_ok());
    }
}

// ---- edits ----

/// An edit with every field.
pub(super) fn every_field() -> VersionEdit {
    let mut e = VersionEdit::for_family(FamilyId(2));
    let key = |k: &[u8]| InternalKey::new(k, Seq(9), ValueType::Value);
    let file = NewFile {
        number: FileNo(12),
        size: 4096,
        smallest: key(b"a"),
        largest: key(b"zz"),
        smallest_seq: Seq(3),
        largest_seq: Seq(200),
        ..NewFile::default()
    };
    e.db_id = Some("0a1b2c3d-0000-4000-8000-0123456789ab".into());
    e.comparator = Some(KeyOrder::Bytewise.name().into());
    e.log_number = Some(FileNo(7));
    e.prev_log_number = Some(FileNo(0));
    e.next_file_number = Some(FileNo(20));
    e.max_column_family = Some(FamilyId(4));
    e.min_log_number_to_keep = Some(FileNo(6));
    e.last_sequence = Some(Seq(300));
    e.compact_cursors = vec![(Level(1), key(b"m"))];
    e.delete_file(Level(0), FileNo(11));
    e.add_file(Level(1), file);
    e.blob_additions = vec![BlobAddition {
        number: FileNo(9),
        tier: BlobTier::Medium(BlobGroup {
            number: FileNo(8),
            level: Level(6),
        }),
        ..BlobAddition::default()
    }];
    e.blob_garbage = vec![BlobGarbage::default()];
    e.remaining_in_group = Some(0);
    e.full_history_ts_low = Some(vec![0; 8]);
    e.persist_user_defined_timestamps = Some(true);
    e.last_compacted_manifest_size = Some(1000);
    e
}

fn edits() -> Vec<Seed> {
    let mut family = VersionEdit::for_family(FamilyId(5));
    family.family_add = Some("other".into());
    family.comparator = Some(KeyOrder::Bytewise.name().into());
    let mut drop = VersionEdit::for_family(FamilyId(5));
    drop.family_drop = true;
    let wal = VersionEdit {
        wal_additions: vec![
            WalAddition {
                number: FileNo(3),
                synced_size: None,
            },
            WalAddition {
                number: FileNo(4),
                synced_size: Some(99),
            },
        ],
        wal_deletion: Some(FileNo(3)),
        ..VersionEdit::default()
    };
    vec![
        ("every-field", every_field().encode()),
        ("family", family.encode()),
        ("drop", drop.encode()),
        ("wal", wal.encode()),
    ]
}

fn edit(input: &[u8]) {
    if let Ok(edit) = VersionEdit::decode(input) {
        same_again(&edit, VersionEdit::decode(&edit.encode()));
    }
}

// ---- footers ----

fn footers() -> Vec<Seed> {
    let footer = |version: u32, offset: u64| {
        let extended = version >= 6;
        let footer = Footer {
            version,
            checksum: esker_codec::checksum::ChecksumType::Xxh3,
            metaindex: BlockHandle {
                offset: offset - 105,
                size: 100,
            },
            index: if extended {
                BlockHandle::NULL
            } else {
                BlockHandle {
                    offset: 10,
                    size: 20,
                }
            },
            base_context_checksum: if extended { 12345 } else { 0 },
        };
        let mut bytes = offset.to_le_bytes().to_vec();
        bytes.extend(footer.encode(offset).expect("a footer that can be written"));
        bytes
    };
    vec![
        ("v2", footer(2, 1000)),
        ("v5", footer(5, 2000)),
        ("v6", footer(6, 1000)),
        ("v7", footer(7, 70_000)),
    ]
}

fn change_footer(input: &mut Vec<u8>, source: &mut Source<'_>) {
    mutate::bytes(input, source);
    if !source.rng.one_in(4) && input.len() > 8 {
        repair::footer(&mut input[8..]);
    }
}

/// The first eight bytes say where the footer stands in its file.
fn footer(input: &[u8]) {
    let Some((offset, tail)) = input.split_first_chunk::<8>() else {
        return;
    };
    for size in [
        u64::from_le_bytes(*offset).saturating_add(FOOTER_LEN as u64),
        tail.len() as u64,
        u64::MAX,
    ] {
        let Ok(footer) = Footer::decode(tail, size) else {
            continue;
        };
        let at = size - footer.len_in_file() as u64;
        assert!(footer.metaindex.end().is_some_and(|end| end <= at));
        if let Ok(bytes) = footer.encode(at) {
            same_again(&footer, Footer::decode(&bytes, size));
        }
    }
}

// ---- entities ----

fn entities() -> Vec<Seed> {
    let mut small = Vec::new();
    let columns = [
        Column::new(b"", b"default"),
        Column::new(b"a", b""),
        Column::new(b"long name", &[9; 300]),
    ];
    wide_column::encode(&columns, &mut small).expect("columns in order");
    // Version 2: types, then sections of sizes, names and values.
    let second = b"\x02\x02\x02\x02\x03\x01\x11\x01\x02\x03\x05axyvalueindex".to_vec();
    vec![("v1", small), ("v2", second)]
}

fn entity(input: &[u8]) {
    let default = wide_column::default_column(input);
    let mut whole = Vec::new();
    let joined = wide_column::join_blobs(input, &mut whole, |index, value| {
        value.extend_from_slice(index);
        Ok(())
    });
    let Ok(columns) = wide_column::decode(input) else {
        assert!(default.is_err() && !joined.is_ok_and(|joined| joined));
        return;
    };
    assert!(columns.windows(2).all(|w| w[0].name < w[1].name));
    let is_split = columns.iter().any(|c| c.in_blob);
    assert_eq!(joined.ok(), Some(is_split));
    if is_split {
        let whole = wide_column::decode(&whole).expect("what was just encoded");
        let values = |columns: &[Column<'_>]| -> Vec<_> {
            columns.iter().map(|c| c.value.to_vec()).collect()
        };
        assert_eq!(values(&whole), values(&columns));
    }
    let mut again = Vec::new();
    if wide_column::encode(&columns, &mut again).is_ok() {
        same_again(&columns, wide_column::decode(&again));
    }
}

// ---- blobs ----

fn blob_pieces() -> Vec<Seed> {
    let header = BlobFileHeader {
        family: FamilyId(1),
        has_ttl: false,
        compression: 7,
        expiration: (0, 0),
    };
    let footer = BlobFileFooter {
        blob_count: 3,
        ..BlobFileFooter::decode(&empty_footer()).expect("decodes")
    };
    let mut index = Vec::new();
    BlobIndex::blob(FileNo(300), 70_000, 1000, 7).encode(&mut index);
    let mut ttl = Vec::new();
    let mut groups = BlobGroups::default();
    for (file, level) in [(300, 0), (301, 6)] {
        let group = BlobGroup {
            number: FileNo(300),
            level: Level(level),
        };
        groups.insert(FileNo(file), group);
    }
    BlobIndex::InlinedTtl {
        expiration: 77,
        value: b"value".to_vec(),
    }
    .encode(&mut ttl);
    vec![
        ("header", header.encode()),
        (
            "record",
            BlobRecordHeader::new(b"key", b"value").encode().to_vec(),
        ),
        ("footer", footer.encode()),
        ("index", index),
        ("inlined", ttl),
        ("groups", groups.encode()),
    ]
}

/// The footer of a file without records.
fn empty_footer() -> Vec<u8> {
    let compressor =
        esker_codec::Compressor::new(esker_codec::Codec::None, Default::default(), None);
    let (sink, file) = crate::input::Sink::new();
    let builder = esker_files::blob::BlobFileBuilder::new(
        file,
        FileNo(1),
        FamilyId::DEFAULT,
        compressor.expect("no compression"),
    );
    builder
        .and_then(|b| b.finish())
        .expect("a sink takes everything");
    sink.bytes().split_off(esker_format::blob::HEADER_LEN)
}

fn change_blob_part(input: &mut Vec<u8>, source: &mut Source<'_>) {
    mutate::bytes(input, source);
    // All of them end with a checksum, or have it after 24 bytes.
    let at = match input.len() {
        30 => 26,
        32 if source.rng.one_in(2) => 24,
        32 => 28,
        _ => return,
    };
    let sum = esker_codec::checksum::mask(esker_codec::checksum::crc32c(&input[..at]));
    input[at..at + 4].copy_from_slice(&sum.to_le_bytes());
}

fn blob_parts(input: &[u8]) {
    if let Ok(header) = BlobFileHeader::decode(input) {
        same_again(&header, BlobFileHeader::decode(&header.encode()));
    }
    if let Ok(footer) = BlobFileFooter::decode(input) {
        same_again(&footer, BlobFileFooter::decode(&footer.encode()));
    }
    if let Ok(record) = BlobRecordHeader::decode(input) {
        same_again(&record, BlobRecordHeader::decode(&record.encode()));
        let _ = record.verify_body(input, input);
    }
    if let Ok(index) = BlobIndex::decode(input) {
        let mut again = Vec::new();
        index.encode(&mut again);
        same_again(&index, BlobIndex::decode(&again));
    }
    if let Ok(groups) = BlobGroups::decode(input) {
        same_again(&groups, BlobGroups::decode(&groups.encode()));
    }
}

// ---- lists of cached blocks ----

fn saved_caches() -> Vec<Seed> {
    let mut some = SavedCacheWriter::default();
    some.add(FileNo(7), &[0, 4_000, 8_123, 1 << 40]);
    some.add(FileNo(8), &[0]);
    some.add(FileNo(300), &[u64::MAX - 1, u64::MAX]);
    vec![
        ("some", some.finish()),
        ("none", SavedCacheWriter::default().finish()),
    ]
}

fn change_saved_cache(input: &mut Vec<u8>, source: &mut Source<'_>) {
    mutate::bytes(input, source);
    let Some(at) = input.len().checked_sub(4) else {
        return;
    };
    let sum = esker_codec::checksum::mask(esker_codec::checksum::crc32c(&input[..at]));
    input[at..].copy_from_slice(&sum.to_le_bytes());
}

fn saved_cache(input: &[u8]) {
    let Ok(saved) = SavedCache::decode(input.to_vec()) else {
        return;
    };
    let (mut again, mut blocks) = (SavedCacheWriter::default(), 0);
    for table in saved.tables() {
        let offsets: Vec<u64> = table.offsets().collect();
        assert_eq!(offsets.len() as u64, table.count);
        assert!(offsets.is_sorted_by(|a, b| a < b), "{offsets:?}");
        again.add(table.number, &offsets);
        blocks += table.count;
    }
    assert_eq!(saved.blocks(), blocks);
    // Numbers that were written in more bytes than they need are others.
    let again = SavedCache::decode(again.finish()).expect("what was read can be written");
    let listed = |saved: &SavedCache| -> Vec<(FileNo, Vec<u64>)> {
        let tables = saved.tables();
        tables.map(|t| (t.number, t.offsets().collect())).collect()
    };
    assert_eq!(listed(&saved), listed(&again));
}

// ---- keys ----

fn some_keys() -> Vec<Seed> {
    let key = InternalKey::new(b"key\xff", Seq::MAX, ValueType::Value);
    let mut seeds = vec![("internal", key.as_bytes().to_vec())];
    seeds.push(("session", b"\x14ABCDEFGHIJ0123456789\x08keyskeyt".to_vec()));
    seeds.push((
        "varints",
        vec![
            0x80, 0x80, 0x80, 0x80, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1,
        ],
    ));
    seeds
}

fn keys(input: &[u8]) {
    if let Ok(parsed) = ParsedKey::parse(input) {
        let again = InternalKey::new(parsed.user, parsed.seq, parsed.kind);
        assert_eq!(again.as_bytes(), input);
    }
    if let Ok(key) = InternalKey::from_encoded(input) {
        let _ = (key.is_range_end_sentinel(), key.user(), key.seq());
    }
    let mut cut = Cut(input);
    let (a, b) = (cut.piece(), cut.piece());
    for order in [
        KeyOrder::Bytewise,
        KeyOrder::ReverseBytewise,
        KeyOrder::BytewiseU64Ts,
        KeyOrder::ReverseBytewiseU64Ts,
    ] {
        assert_eq!(order.compare(a, b), order.compare(b, a).reverse());
        assert_eq!(
            order.compare_internal(a, b),
            order.compare_internal(b, a).reverse()
        );
        let (low, high) = if order.compare(a, b).is_lt() {
            (a, b)
        } else {
            (b, a)
        };
        let mut between = low.to_vec();
        order.find_shortest_separator(&mut between, high);
        assert!(order.compare(low, &between).is_le());
        assert!(order.compare(low, high).is_eq() || order.compare(&between, high).is_lt());
        let mut after = low.to_vec();
        order.find_short_successor(&mut after);
        assert!(order.compare(low, &after).is_le());
    }
    session(a);
    let id = UniqueId([a.len() as u64, b.len() as u64]);
    assert_eq!(UniqueId::from_bytes(id.to_bytes()), id);
    let (db, session) = (String::from_utf8_lossy(a), String::from_utf8_lossy(b));
    let _ = UniqueId::from_identity(&db, &session, 7);
    let _ = UniqueId::from_identity_forced(&db, &session, u64::MAX);

    let mut reader = Reader::new(input);
    while reader.varint64().is_ok() {}
    let mut reader = Reader::new(input);
    while reader.lptext().is_ok() {}
    let mut reader = Reader::new(input);
    while reader.varint32().is_ok() && reader.varsigned64().is_ok() {}
    let times = TableProperties {
        seqno_to_time_mapping: input.to_vec(),
        ..TableProperties::default()
    };
    if let Ok(pairs) = times.seqno_times() {
        let mut again = TableProperties::default();
        again.set_seqno_times(&pairs);
        same_again(&pairs, again.seqno_times());
    }
    let _ = esker_format::log::Predecessor::decode(input);
    if let Ok(sizes) = esker_format::log::decode_timestamp_sizes(input) {
        let mut again = Vec::new();
        esker_format::log::encode_timestamp_sizes(&sizes, &mut again);
        assert_eq!(again, input);
    }
}

fn session(id: &[u8]) {
    let text = String::from_utf8_lossy(id);
    if let Some((upper, lower)) = decode_session_id(&text)
        && text.len() == 20
        && upper < 1 << 39
    {
        let again = encode_session_id(upper, lower);
        assert_eq!(decode_session_id(&again), Some((upper, lower)), "{text}");
    }
}
