//! Tests of version edits.

use super::*;
use crate::blob_groups::{BlobGroup, BlobTier};
use crate::key::ValueType;
use proptest::prelude::*;

fn full_file() -> NewFile {
    NewFile {
        number: FileNo(9),
        path_id: 3,
        size: 4096,
        smallest: InternalKey::new(b"a", Seq(5), ValueType::Value),
        largest: InternalKey::range_end_sentinel(b"z"),
        smallest_seq: Seq(5),
        largest_seq: Seq(700),
        marked_for_compaction: true,
        oldest_blob_file: Some(FileNo(4)),
        oldest_ancestor_time: 1_700_000_000,
        creation_time: 1_700_000_001,
        checksum: vec![1, 2, 3, 4],
        checksum_function: "FileChecksumCrc32c".to_owned(),
        temperature: 8,
        min_timestamp: vec![0; 8],
        max_timestamp: vec![9; 8],
        unique_id: Some([11, 12]),
        epoch_number: 3,
        compensated_range_deletion_size: 77,
        tail_size: 300,
        timestamps_persisted: false,
        open_metadata: b"opaque".to_vec(),
    }
}

fn full_edit() -> VersionEdit {
    VersionEdit {
        db_id: Some("3f2504e0-4f89-41d3-9a0c-0305e82c3301".to_owned()),
        comparator: Some("leveldb.BytewiseComparator".to_owned()),
        log_number: Some(FileNo(7)),
        prev_log_number: Some(FileNo(0)),
        next_file_number: Some(FileNo(12)),
        max_column_family: Some(FamilyId(2)),
        min_log_number_to_keep: Some(FileNo(6)),
        last_sequence: Some(Seq(700)),
        compact_cursors: vec![(Level(1), InternalKey::new(b"c", Seq(1), ValueType::Value))],
        deleted_files: vec![(Level(0), FileNo(5)), (Level(6), FileNo(6))],
        new_files: vec![(Level(1), full_file()), (Level(2), full_file())],
        blob_additions: vec![BlobAddition {
            number: FileNo(10),
            total_count: 3,
            total_bytes: 999,
            checksum_method: "SHA1".to_owned(),
            checksum_value: vec![7; 20],
            tier: BlobTier::Medium(BlobGroup {
                number: FileNo(9),
                level: Level(5),
            }),
        }],
        blob_garbage: vec![BlobGarbage {
            number: FileNo(4),
            count: 1,
            bytes: 50,
        }],
        wal_additions: vec![WalAddition {
            number: FileNo(4),
            synced_size: Some(185),
        }],
        wal_deletion: Some(FileNo(4)),
        family: FamilyId(2),
        family_add: Some("extra".to_owned()),
        family_drop: true,
        remaining_in_group: Some(1),
        full_history_ts_low: Some(vec![1; 8]),
        persist_user_defined_timestamps: Some(false),
        subcompaction_progress: Some(vec![1]),
        last_compacted_manifest_size: Some(5000),
        known_logs: Some(KnownLogs {
            newest: FileNo(300),
            before: FileNo(299),
            before_end: 6_500,
            end: Some(70_000),
            synced: Some((FileNo(299), 6_000)),
        }),
    }
}

#[test]
fn every_field_round_trips() {
    let edit = full_edit();
    assert_eq!(
        VersionEdit::decode(&edit.encode()).expect("own bytes"),
        edit
    );
    assert_eq!(
        VersionEdit::decode(&[]).expect("no effect"),
        VersionEdit::default()
    );
    assert!(VersionEdit::default().encode().is_empty());
}

#[test]
fn a_wal_addition_has_the_bytes_of_rocksdb() {
    let edit = VersionEdit {
        wal_additions: vec![WalAddition {
            number: FileNo(4),
            synced_size: Some(185),
        }],
        ..Default::default()
    };
    // Tag 8199 as a varint, then the length-prefixed body.
    assert_eq!(edit.encode(), [0x87, 0x40, 5, 0x04, 0x02, 0xb9, 0x01, 0x01]);
}

#[test]
fn a_plain_file_has_only_the_fields_that_every_version_knows() {
    let key = InternalKey::new(b"k", Seq(1), ValueType::Value);
    let file = NewFile {
        number: FileNo(7),
        smallest: key.clone(),
        largest: key,
        ..Default::default()
    };
    let mut edit = VersionEdit::default();
    edit.add_file(Level(0), file);
    let bytes = edit.encode();
    // The end: times 0 in fields 5 and 6, then the end marker; no checksum, no epoch, no id.
    assert!(bytes.ends_with(&[5, 1, 0, 6, 1, 0, 1]), "{bytes:?}");
}

#[test]
fn the_min_log_number_is_fixed_width_in_the_first_file_only() {
    let mut edit = full_edit();
    let field = [3, 8, 6, 0, 0, 0, 0, 0, 0, 0];
    let count = |bytes: &[u8]| bytes.windows(field.len()).filter(|w| *w == field).count();
    assert_eq!(count(&edit.encode()), 1);
    edit.min_log_number_to_keep = None;
    assert_eq!(count(&edit.encode()), 0);
}

#[test]
fn the_old_forms_of_new_files_are_read() {
    let key = InternalKey::new(b"k", Seq(1), ValueType::Value);
    let k = [&[9u8][..], key.as_bytes()].concat();
    let seven = [&[7u8, 1, 5, 100][..], &k, &k].concat();
    let hundred = [&[100u8, 1, 5, 100][..], &k, &k, &[1, 9]].concat();
    let hundred_two = [&[102u8, 1, 5, 2, 100][..], &k, &k, &[1, 9]].concat();
    for (bytes, path, largest) in [(seven, 0, 0), (hundred, 0, 9), (hundred_two, 2, 9)] {
        let edit = VersionEdit::decode(&bytes).expect("an old form");
        let (level, f) = &edit.new_files[0];
        assert_eq!((*level, f.number, f.size), (Level(1), FileNo(5), 100));
        assert_eq!((f.path_id, f.largest_seq), (path, Seq(largest)));
    }
}

#[test]
fn unknown_tags_and_fields_follow_their_bits() {
    // 9000 has bit 13: skipped. 11 has not: fatal.
    assert_eq!(
        VersionEdit::decode(&[0xa8, 0x46, 2, 1, 2]).expect("skipped"),
        VersionEdit::default()
    );
    assert!(
        VersionEdit::decode(&[0xa8, 0x46, 9, 1, 2]).is_err(),
        "its length is checked"
    );
    assert!(
        VersionEdit::decode(&[11, 1])
            .expect_err("fatal")
            .message()
            .contains("unknown tag")
    );
    let key = InternalKey::new(b"k", Seq(1), ValueType::Value);
    let k = [&[9u8][..], key.as_bytes()].concat();
    let with = |field: u8| [&[103u8, 0, 7, 9][..], &k, &k, &[1, 1, field, 1, 0, 1]].concat();
    assert!(VersionEdit::decode(&with(40)).is_ok());
    assert!(VersionEdit::decode(&with(66)).is_err());
}

#[test]
fn impossible_numbers_are_refused() {
    for bytes in [
        &[6, 0x80, 2, 5][..],                                          // level 256
        &[6, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40], // file 2^62
        &[4, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],    // sequence 2^56
        &[2],                                                          // no body
        &[1, 5, b'a'],                                                 // short name
        &[0x86, 0x40, 0],                                              // empty ts_low
        &[0x80],                                                       // half a tag
    ] {
        assert!(
            VersionEdit::decode(bytes)
                .expect_err("refused")
                .is_corruption(),
            "{bytes:?}"
        );
    }
}

proptest! {
    #[test]
    fn hostile_bytes_never_panic(bytes: Vec<u8>) {
        let _ = VersionEdit::decode(&bytes);
    }
}

#[test]
fn mutated_edits_never_panic() {
    let whole = full_edit().encode();
    let understood = |bytes: &[u8]| {
        if let Ok(edit) = VersionEdit::decode(bytes) {
            // What was understood can be said again.
            assert_eq!(
                VersionEdit::decode(&edit.encode()).expect("own bytes"),
                edit,
                "{bytes:?}"
            );
        }
    };
    for cut in 0..whole.len() {
        understood(&whole[..cut]);
    }
    for at in 0..whole.len() {
        for byte in 0..=u8::MAX {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            understood(&bytes);
        }
    }
}
