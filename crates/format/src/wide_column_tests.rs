//! Tests of wide-column entities.

use super::*;
use proptest::prelude::*;

#[test]
fn an_entity_has_the_bytes_of_rocksdb() {
    let columns = [
        Column::new(b"c2", b"v2"),
        Column::new(b"", b"dflt"),
        Column::new(b"c1", b"v1"),
    ];
    let mut out = Vec::new();
    encode(&columns, &mut out).expect("names differ");
    assert_eq!(out, b"\x01\x03\x00\x04\x02c1\x02\x02c2\x02dfltv1v2");
    let decoded = decode(&out).expect("own bytes");
    assert_eq!(decoded, [columns[1], columns[2], columns[0]]);
    assert_eq!(default_column(&out).expect("own bytes"), Some(columns[1]));
}

#[test]
fn version_two_is_read() {
    // Two columns: "a" inline "xy", "b" a blob index of five bytes.
    let entity = b"\x02\x02\x02\x02\x02\x01\x11\x01\x01\x02\x05abxy\x01\x0a\x47\x1c\x00";
    let columns = decode(entity).expect("well formed");
    assert_eq!(columns[0], Column::new(b"a", b"xy"));
    assert_eq!(
        columns[1],
        Column {
            name: b"b",
            value: b"\x01\x0a\x47\x1c\x00",
            in_blob: true
        }
    );
    let mut indexes = Vec::new();
    let note = |index: &[u8]| {
        indexes.push(index.to_vec());
        Ok(())
    };
    blob_indexes(entity, note).expect("well formed");
    assert_eq!(indexes, [b"\x01\x0a\x47\x1c\x00"]);
    assert_eq!(default_column(entity).expect("well formed"), None);
    for cut in 0..entity.len() {
        assert!(decode(&entity[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn values_in_blob_files_are_put_in_place() {
    let split = b"\x02\x02\x02\x02\x02\x01\x11\x01\x01\x02\x05abxy\x01\x0a\x47\x1c\x00";
    let mut whole = Vec::new();
    let joined = join_blobs(split, &mut whole, |index, value| {
        assert_eq!(index.len(), 5);
        value.extend_from_slice(b"from a file");
        Ok(())
    });
    assert!(joined.expect("well formed"));
    let columns = [Column::new(b"a", b"xy"), Column::new(b"b", b"from a file")];
    assert_eq!(decode(&whole).expect("well formed"), columns);
    let nothing_to_read = |_: &[u8], _: &mut Vec<u8>| panic!("no value is in a file");
    let mut out = Vec::new();
    assert!(!join_blobs(&whole, &mut out, nothing_to_read).expect("well formed"));
    assert_eq!((out.len(), may_be_split(&whole)), (0, false));
    let failed = join_blobs(split, &mut out, |_, _| Err(Error::corruption("a bad file")));
    assert_eq!((failed.is_err(), out.len()), (true, 0));
}

#[test]
fn disorder_and_leftovers_are_refused() {
    assert!(
        encode(
            &[Column::new(b"a", b""), Column::new(b"a", b"")],
            &mut Vec::new()
        )
        .is_err()
    );
    for bytes in [
        &b"\x01\x02\x01b\x00\x01a\x00"[..],
        b"\x01\x02\x01a\x00\x01a\x00",
        b"\x01\x01\x01a\x00x",
        b"\x03\x00",
        b"\x00\x00",
        b"\x01\xff\xff\xff\xff\x0f",
        b"\x02\x01\x01\x01\x01\x07\x01\x00a",
    ] {
        assert!(decode(bytes).is_err(), "{bytes:?}");
    }
    assert_eq!(decode(b"\x01\x00").expect("no columns"), []);
}

proptest! {
    #[test]
    fn entities_round_trip(map in prop::collection::btree_map(any::<Vec<u8>>(), any::<Vec<u8>>(), 0..20)) {
        let columns: Vec<Column<'_>> = map.iter().rev().map(|(n, v)| Column::new(n, v)).collect();
        let mut out = Vec::new();
        encode(&columns, &mut out).expect("names differ");
        let decoded = decode(&out).expect("own bytes");
        prop_assert!(decoded.iter().map(|c| (c.name, c.value)).eq(
            map.iter().map(|(n, v)| (&n[..], &v[..]))));
    }

    #[test]
    fn hostile_bytes_never_panic(version in 0..4u8, bytes: Vec<u8>) {
        let bytes = [&[version][..], &bytes].concat();
        let _ = decode(&bytes);
        let _ = join_blobs(&bytes, &mut Vec::new(), |_, _| Ok(()));
    }
}
