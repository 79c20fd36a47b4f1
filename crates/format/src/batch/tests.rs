//! Tests of building and reading batches.

use super::*;
use crate::ids::FamilyId;
use crate::wide_column::Column;
use proptest::prelude::*;

const CF: FamilyId = FamilyId(300);

fn every_record() -> WriteBatch {
    let mut b = WriteBatch::new();
    b.mark_noop().expect("fits");
    for family in [FamilyId::DEFAULT, CF] {
        b.put_cf(family, b"k", b"v").expect("fits");
        b.delete_cf(family, b"k").expect("fits");
        b.single_delete_cf(family, b"k").expect("fits");
        b.merge_cf(family, b"k", b"+1").expect("fits");
        b.delete_range_cf(family, b"a", b"z").expect("fits");
        b.put_entity_cf(
            family,
            b"k",
            &[Column::new(b"c", b"1"), Column::new(b"", b"0")],
        )
        .expect("fits");
        b.timed_put_cf(family, b"k", b"v", 77).expect("fits");
        b.put_blob_index_cf(family, b"k", b"\x01\x0a\x47\x1c\x00")
            .expect("fits");
    }
    b.log_data(b"note").expect("fits");
    b.mark_end_prepare(PrepareKind::Committed, b"xid")
        .expect("starts with a no-op");
    b.mark_commit(b"xid").expect("fits");
    b.mark_commit_with_timestamp(b"8 bytes.", b"xid")
        .expect("fits");
    b.mark_rollback(b"xid").expect("fits");
    b
}

#[test]
fn a_put_has_the_bytes_of_rocksdb() {
    let mut b = WriteBatch::new();
    b.put(b"a", b"1").expect("fits");
    b.set_seq(Seq(1));
    assert_eq!(b.data(), b"\x01\0\0\0\0\0\0\0\x01\0\0\0\x01\x01a\x011");
    assert_eq!(encode_header(Seq(1), 1), b.data()[..HEADER_LEN]);
}

#[test]
fn every_record_is_read_back() {
    let b = every_record();
    assert_eq!(b.count(), 16);
    let records: Vec<Record<'_>> = b.records().collect::<Result<_, _>>().expect("own bytes");
    assert_eq!(records.len(), 22);
    assert_eq!(records[0], Record::BeginPrepare(PrepareKind::Committed));
    assert_eq!(
        records[1],
        Record::Put {
            family: FamilyId(0),
            key: b"k",
            value: b"v"
        }
    );
    assert_eq!(
        records[9],
        Record::Put {
            family: CF,
            key: b"k",
            value: b"v"
        }
    );
    assert_eq!(
        records[13],
        Record::DeleteRange {
            family: CF,
            begin: b"a",
            end: b"z"
        }
    );
    let Record::TimedPut { packed, .. } = records[7] else {
        panic!("{:?}", records[7])
    };
    assert_eq!(unpack_timed(packed), Some((&b"v"[..], 77)));
    assert_eq!(records[21], Record::Rollback { xid: b"xid" });
    let again = WriteBatch::from_bytes(b.data().to_vec()).expect("own bytes");
    for has in [
        WriteBatch::has_put,
        WriteBatch::has_delete,
        WriteBatch::has_single_delete,
        WriteBatch::has_delete_range,
        WriteBatch::has_merge,
        WriteBatch::has_put_entity,
        WriteBatch::has_timed_put,
        WriteBatch::has_blob_index,
        WriteBatch::has_begin_prepare,
        WriteBatch::has_end_prepare,
        WriteBatch::has_commit,
        WriteBatch::has_rollback,
    ] {
        assert!(has(&b) && has(&again) && !has(&WriteBatch::new()));
    }
}

#[test]
fn parts_make_the_same_bytes() {
    let (mut whole, mut parts) = (WriteBatch::new(), WriteBatch::new());
    whole.put_cf(CF, b"key", b"value").expect("fits");
    whole.merge_cf(CF, b"key", b"").expect("fits");
    whole.delete(b"key").expect("fits");
    whole.single_delete(b"key").expect("fits");
    whole.delete_range(b"ab", b"cd").expect("fits");
    parts
        .put_parts(CF, &[b"k", b"", b"ey"], &[b"val", b"ue"])
        .expect("fits");
    parts.merge_parts(CF, &[b"key"], &[]).expect("fits");
    parts
        .delete_parts(FamilyId(0), &[b"ke", b"y"])
        .expect("fits");
    parts
        .single_delete_parts(FamilyId(0), &[b"ke", b"y"])
        .expect("fits");
    parts
        .delete_range_parts(FamilyId(0), &[b"a", b"b"], &[b"c", b"d"])
        .expect("fits");
    assert_eq!(whole.data(), parts.data());
}

#[test]
fn save_points_nest_and_roll_back() {
    let mut b = WriteBatch::new();
    assert!(b.rollback_to_save_point().expect_err("none").is_not_found());
    b.put(b"a", b"1").expect("fits");
    b.set_save_point();
    let before = b.data().to_vec();
    b.delete(b"a").expect("fits");
    b.set_save_point();
    b.merge(b"a", b"2").expect("fits");
    b.pop_save_point().expect("the inner one");
    b.rollback_to_save_point().expect("the outer one");
    assert_eq!(b.data(), before);
    assert!(!b.has_merge() && !b.has_delete() && b.has_put());
    assert!(b.pop_save_point().expect_err("none").is_not_found());
}

#[test]
fn a_refused_record_leaves_no_trace() {
    let mut b = WriteBatch::new();
    b.put(b"a", b"1").expect("fits");
    b.set_max_bytes(b.data_size() + 3);
    let before = b.data().to_vec();
    let e = b.put(b"b", b"2").expect_err("too long");
    assert_eq!(e.subcode(), esker_status::Subcode::MemoryLimit);
    assert!(b.log_data(b"1234").is_err() && b.mark_commit(b"1234").is_err());
    assert_eq!(b.data(), before);
    assert!(!b.has_commit());
}

#[test]
fn appending_honours_the_log_mark() {
    let mut a = WriteBatch::new();
    a.put(b"a", b"1").expect("fits");
    a.mark_wal_termination_point();
    a.delete(b"a").expect("fits");
    let (mut all, mut logged) = (WriteBatch::new(), WriteBatch::new());
    all.append(&a, false).expect("fits");
    logged.append(&a, true).expect("fits");
    assert_eq!(
        (all.count(), logged.count(), a.wal_mark().count()),
        (2, 1, 1)
    );
    assert_eq!(logged.body(), a.wal_body());
    assert!(all.has_delete() && !logged.has_delete());
    a.clear();
    assert!(a.is_empty() && a.wal_body().is_empty() && !a.has_put());
}

#[test]
fn a_wrong_count_and_an_unknown_tag_are_found() {
    let mut b = WriteBatch::new();
    b.put(b"a", b"1").expect("fits");
    let mut bytes = b.data().to_vec();
    bytes[8] = 2;
    let e = BatchReader::parse(&bytes)
        .and_then(|r| r.verify())
        .expect_err("count");
    assert!(e.message().contains("wrong count"), "{e}");
    bytes[8] = 1;
    for tag in [0x14, 0x1a, 0x7f, 0xff] {
        bytes[12] = tag;
        let mut records = BatchReader::parse(&bytes).expect("a header").records();
        assert!(records.next().is_some_and(|r| r.is_err()));
        assert!(records.next().is_none(), "an error ends the iteration");
    }
    assert!(BatchReader::parse(&bytes[..11]).is_err());
    assert!(
        BatchReader::parse(&[0; 12])
            .expect("empty")
            .verify()
            .is_ok()
    );
}

proptest! {
    #[test]
    fn any_records_round_trip(ops in prop::collection::vec(
        (0..5u8, any::<u32>(), any::<Vec<u8>>(), any::<Vec<u8>>()), 0..40)
    ) {
        let mut b = WriteBatch::new();
        for (op, family, key, value) in &ops {
            let family = FamilyId(*family);
            match op {
                0 => b.put_cf(family, key, value),
                1 => b.delete_cf(family, key),
                2 => b.merge_cf(family, key, value),
                3 => b.delete_range_cf(family, key, value),
                _ => b.single_delete_cf(family, key),
            }.expect("fits");
        }
        prop_assert_eq!(b.count() as usize, ops.len());
        for (record, (op, f, k, v)) in b.records().zip(&ops) {
            let family = FamilyId(*f);
            let expected = match op {
                0 => Record::Put { family, key: k, value: v },
                1 => Record::Delete { family, key: k },
                2 => Record::Merge { family, key: k, operand: v },
                3 => Record::DeleteRange { family, begin: k, end: v },
                _ => Record::SingleDelete { family, key: k },
            };
            prop_assert_eq!(record.expect("own bytes"), expected);
        }
        prop_assert!(b.reader().verify().is_ok());
    }

    #[test]
    fn hostile_bytes_never_panic(bytes: Vec<u8>) {
        if let Ok(r) = BatchReader::parse(&bytes) {
            prop_assert!(r.records().count() <= bytes.len() + 1);
        }
        prop_assert!(Records::over_body(&bytes).count() <= bytes.len() + 1);
    }

    #[test]
    fn mutated_batches_never_panic(at in 0..200usize, bit in 0..8u8) {
        let mut bytes = every_record().into_bytes();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        let _ = BatchReader::parse(&bytes).and_then(|r| r.verify());
    }
}

#[test]
fn values_that_do_not_decode_are_not_taken_over() {
    let mut bad = WriteBatch::new();
    bad.put_blob_index_cf(FamilyId::DEFAULT, b"key", b"value")
        .expect("a batch has room");
    let e = WriteBatch::from_bytes(bad.into_bytes()).expect_err("no blob index");
    assert!(e.is_corruption(), "{e}");
    let mut bad = WriteBatch::new();
    bad.put_encoded_entity_cf(FamilyId::DEFAULT, b"key", &[9])
        .expect("a batch has room");
    let e = WriteBatch::from_bytes(bad.into_bytes()).expect_err("no entity");
    assert!(e.is_corruption(), "{e}");
}
