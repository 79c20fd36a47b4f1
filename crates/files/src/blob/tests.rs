//! Tests of blob files.

use super::*;
use esker_codec::compress::{Codec, CompressionOptions, Compressor};
use esker_env::Env;
use esker_format::blob::BlobIndex;
use esker_format::{FamilyId, FileNo};
use std::path::Path;

const PATH: &str = "/1.blob";

#[test]
fn values_come_back_and_damage_is_found() {
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
        let fs = Env::in_memory().fs;
        let file = fs
            .create(Path::new(PATH), Default::default())
            .expect("creates");
        let compressor =
            Compressor::new(codec, CompressionOptions::default(), None).expect("a compressor");
        let (number, family) = (FileNo(1), FamilyId(2));
        let mut builder = BlobFileBuilder::new(file, number, family, compressor).expect("starts");
        let value = b"value ".repeat(20);
        let keys: Vec<Vec<u8>> = (0..10u8).map(|i| vec![b'k'; usize::from(i) + 1]).collect();
        let indexes: Vec<BlobIndex> = keys
            .iter()
            .map(|k| builder.add(k, &value).expect("adds"))
            .collect();
        let addition = builder.finish().expect("finishes");
        let len = fs.metadata(Path::new(PATH)).expect("exists").len;
        assert_eq!((addition.total_count, addition.total_bytes), (10, len - 62));

        let open = || BlobFileReader::open(&*fs, Path::new(PATH), number, family);
        let reader = open().expect("opens");
        assert_eq!((reader.blob_count(), reader.codec()), (10, codec));
        let mut out = Vec::new();
        for (key, index) in keys.iter().zip(&indexes) {
            for verify in [false, true] {
                reader.get(key, index, verify, &mut out).expect("reads");
                assert_eq!(out, value);
            }
            assert!(
                reader
                    .get(&vec![b'x'; key.len()], index, true, &mut out)
                    .is_err()
            );
        }
        for (file, offset, size) in [
            (1, u64::MAX, 5),
            (1, 0, 5),
            (1, 70, u64::MAX),
            (1, len - 33, 5),
            (2, 63, 5),
        ] {
            let index = BlobIndex::blob(FileNo(file), offset, size, codec as u8);
            assert!(
                reader.get(b"k", &index, false, &mut out).is_err(),
                "{index:?}"
            );
        }
        assert!(BlobFileReader::open(&*fs, Path::new(PATH), number, FamilyId(3)).is_err());

        let mut bytes = fs.read_all(Path::new(PATH), len).expect("reads");
        bytes[30 + 32 + 1 + 3] ^= 1; // In the first value.
        let mut file = fs
            .create(Path::new(PATH), Default::default())
            .expect("creates");
        file.append(&bytes).expect("appends");
        file.close().expect("closes");
        let reader = open().expect("the ends are whole");
        let e = reader
            .get(&keys[0], &indexes[0], true, &mut out)
            .expect_err("damaged");
        assert!(e.is_corruption() && e.offset().is_some(), "{e}");

        fs.truncate(Path::new(PATH), len - 1).expect("cuts");
        assert!(open().is_err());
    }
}
