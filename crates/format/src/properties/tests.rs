//! Encoded names and values, order, tolerance, round trips.

use super::*;
use proptest::prelude::*;

fn find<'a>(pairs: &'a [(Vec<u8>, Vec<u8>)], name: &str) -> Option<&'a [u8]> {
    pairs
        .iter()
        .find(|(n, _)| n == name.as_bytes())
        .map(|(_, v)| v.as_slice())
}

#[test]
fn values_are_stored_as_rocksdb_stores_them() {
    let mut p = TableProperties {
        num_entries: 300,
        index_type: Some(2),
        index_key_is_user_key: true,
        whole_key_filtering: Some(true),
        prefix_filtering: Some(false),
        external_sst_file_version: Some(2),
        external_sst_file_global_seqno: Some(77),
        comparator_name: "leveldb.BytewiseComparator".into(),
        embedded_blob_stats: Some((3, 1000)),
        ..TableProperties::default()
    };
    p.user_collected.insert(b"mine".to_vec(), b"1".to_vec());
    p.user_collected
        .insert(b"rocksdb.num.entries".to_vec(), b"shadow".to_vec());
    let pairs = p.encode();
    assert!(pairs.windows(2).all(|w| w[0].0 < w[1].0));
    for (name, value) in [
        ("rocksdb.num.entries", Some(&[0xac, 0x02][..])),
        ("rocksdb.block.based.table.index.type", Some(&[2, 0, 0, 0])),
        ("rocksdb.index.key.is.user.key", Some(&[1])),
        ("rocksdb.index.value.is.delta.encoded", Some(&[0])),
        ("rocksdb.block.based.table.whole.key.filtering", Some(b"1")),
        ("rocksdb.block.based.table.prefix.filtering", Some(b"0")),
        ("rocksdb.external_sst_file.version", Some(&[2, 0, 0, 0])),
        (
            "rocksdb.external_sst_file.global_seqno",
            Some(&[77, 0, 0, 0, 0, 0, 0, 0]),
        ),
        ("rocksdb.embedded.blob.stats", Some(&[3, 0xe8, 0x07])),
        ("mine", Some(b"1")),
        ("rocksdb.user.defined.timestamps.persisted", None),
        ("rocksdb.filter.policy", None),
        ("rocksdb.index.partitions", None),
        ("rocksdb.key.largest.seqno", None),
    ] {
        assert_eq!(find(&pairs, name), value, "{name}");
    }
    p.user_collected.remove(b"rocksdb.num.entries".as_slice());
    assert_eq!(TableProperties::decode(pairs).unwrap(), p);
}

#[test]
fn odd_values_are_tolerated_and_disorder_is_not() {
    let pairs: [(&str, &[u8]); 5] = [
        ("rocksdb.block.based.table.whole.key.filtering", b"x"),
        ("rocksdb.data.size", &[0x80]),
        ("rocksdb.num.entries", &[5, 99, 99]),
        ("rocksdb.user.defined.timestamps.persisted", &[0]),
        ("unknown", b"kept"),
    ];
    let p = TableProperties::decode(pairs).unwrap();
    assert_eq!(
        (p.whole_key_filtering, p.data_size, p.num_entries),
        (None, 0, 5)
    );
    assert!(!p.user_defined_timestamps_persisted);
    assert_eq!(
        p.user_collected
            .get(b"unknown".as_slice())
            .map(Vec::as_slice),
        Some(b"kept".as_slice())
    );
    for disorder in [[("b", b""), ("a", b"")], [("a", b""), ("a", b"")]] {
        assert!(
            TableProperties::decode(disorder)
                .unwrap_err()
                .is_corruption()
        );
    }
}

#[test]
fn absent_properties_mean_their_defaults() {
    let p = TableProperties::decode(Vec::<(&str, &str)>::new()).unwrap();
    assert_eq!(p, TableProperties::default());
    assert!(
        p.user_defined_timestamps_persisted && p.index_type.is_none() && p.unique_id().is_none()
    );
    assert_eq!(p.column_family_id, 0x7fff_ffff);
}

#[test]
fn sequence_times_are_delta_encoded() {
    let mut p = TableProperties::default();
    assert_eq!(p.seqno_times().unwrap(), []);
    let pairs = [(10, 1000), (20, 1005), (500, 2000)];
    p.set_seqno_times(&pairs);
    assert_eq!(p.seqno_to_time_mapping[..3], [3, 10, 0xe8]);
    assert_eq!(p.seqno_times().unwrap(), pairs);
    p.seqno_to_time_mapping = vec![0xff, 0xff, 0xff, 0xff, 0x0f, 1, 1];
    assert!(p.seqno_times().unwrap_err().is_corruption());
}

#[test]
fn a_patched_global_sequence_number_can_be_cleared() {
    let mut block = b"..rocksdb.external_sst_file.global_seqno".to_vec();
    block.extend(77u64.to_le_bytes());
    block.extend(b"tail");
    let cleared = without_global_seqno(&block).expect("the property is there");
    assert_eq!(cleared[..40], block[..40]);
    assert_eq!(cleared[40..48], [0; 8]);
    assert_eq!(cleared[48..], *b"tail");
    assert_eq!(without_global_seqno(&block[..44]), None);
    assert_eq!(without_global_seqno(b"nothing"), None);
}

#[test]
fn names_are_unique_and_start_alike() {
    let mut names = TableProperties::NAMES.to_vec();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), TableProperties::NAMES.len());
    assert!(names.iter().all(|n| n.starts_with("rocksdb.")));
}

proptest! {
    #[test]
    fn arbitrary_pairs_decode_and_settle(pairs in proptest::collection::btree_map(
        prop_oneof![
            proptest::sample::select(TableProperties::NAMES).prop_map(|n| n.as_bytes().to_vec()),
            proptest::collection::vec(any::<u8>(), 0..6),
        ],
        proptest::collection::vec(any::<u8>(), 0..12),
        0..30,
    )) {
        let first = TableProperties::decode(&pairs).unwrap();
        let _ = first.seqno_times();
        let again = TableProperties::decode(first.encode()).unwrap();
        prop_assert_eq!(again, first);
    }
}
