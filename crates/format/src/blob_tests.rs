//! Tests of the blob encodings.

use super::*;
use proptest::prelude::*;

#[test]
fn an_index_has_the_bytes_of_rocksdb() {
    let index = BlobIndex::blob(FileNo(10), 71, 28, 0);
    let mut out = Vec::new();
    index.encode(&mut out);
    assert_eq!(out, [0x01, 0x0a, 0x47, 0x1c, 0x00]);
    assert_eq!(BlobIndex::decode(&out).expect("own bytes"), index);
    assert_eq!(index.file(), Some(FileNo(10)));
}

#[test]
fn damage_anywhere_is_found() {
    let record = BlobRecordHeader::new(b"key", b"value");
    let header = record.encode();
    assert_eq!(
        BlobRecordHeader::decode(&header).expect("own bytes"),
        record
    );
    assert!(record.verify_body(b"key", b"value").is_ok());
    assert!(record.verify_body(b"key", b"valuf").is_err());
    assert!(record.verify_body(b"keyv", b"alue").is_err());
    for at in 0..28 {
        let mut bad = header;
        bad[at] ^= 1;
        assert!(BlobRecordHeader::decode(&bad).is_err(), "byte {at}");
    }
    let footer = BlobFileFooter {
        blob_count: 3,
        expiration: (0, 0),
    };
    let bytes = footer.encode();
    assert_eq!(bytes.len(), FOOTER_LEN);
    assert_eq!(BlobFileFooter::decode(&bytes).expect("own bytes"), footer);
    for at in 0..FOOTER_LEN {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        assert!(BlobFileFooter::decode(&bad).is_err(), "byte {at}");
    }
    let header = BlobFileHeader {
        family: FamilyId(2),
        has_ttl: false,
        compression: 7,
        expiration: (0, 0),
    };
    let bytes = header.encode();
    assert_eq!(bytes.len(), HEADER_LEN);
    assert_eq!(BlobFileHeader::decode(&bytes).expect("own bytes"), header);
    for at in 0..8 {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        assert!(BlobFileHeader::decode(&bad).is_err(), "byte {at}");
    }
}

proptest! {
    #[test]
    fn indexes_round_trip(kind in 0..3u8, e: u64, f: u64, o: u64, s: u64, c: u8, value: Vec<u8>) {
        let index = match kind {
            0 => BlobIndex::InlinedTtl { expiration: e, value },
            1 => BlobIndex::blob(FileNo(f), o, s, c),
            _ => BlobIndex::Blob { expiration: Some(e), file: FileNo(f), offset: o, size: s, compression: c },
        };
        let mut out = Vec::new();
        index.encode(&mut out);
        prop_assert_eq!(BlobIndex::decode(&out).expect("own bytes"), index);
    }

    #[test]
    fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..70)) {
        let _ = BlobIndex::decode(&bytes);
        let _ = BlobFileHeader::decode(&bytes);
        let _ = BlobFileFooter::decode(&bytes);
        let _ = BlobRecordHeader::decode(&bytes);
    }
}
