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

/// A file of `count` values of `len` bytes, each of its own number.
fn numbered(count: u8, len: usize) -> (BlobFileReader, Vec<BlobIndex>) {
    numbered_in(FileNo(1), count, len)
}

fn numbered_in(number: FileNo, count: u8, len: usize) -> (BlobFileReader, Vec<BlobIndex>) {
    let fs = Env::in_memory().fs;
    let file = fs.create(Path::new(PATH), Default::default());
    let compressor = Compressor::new(Codec::None, CompressionOptions::default(), None);
    let family = FamilyId(2);
    let mut builder = BlobFileBuilder::new(
        file.expect("creates"),
        number,
        family,
        compressor.expect("a compressor"),
    )
    .expect("starts");
    let add = |n: u8| builder.add(&[n], &vec![n; len]).expect("adds");
    let indexes = (0..count).map(add).collect();
    builder.finish().expect("finishes");
    let reader = BlobFileReader::open(&*fs, Path::new(PATH), number, family);
    (reader.expect("opens"), indexes)
}

#[test]
fn several_values_are_shown_by_their_places_among_the_requests() {
    for (len, verify) in [(100, true), (100, false), (70_000, true), (5_000, true)] {
        let (reader, indexes) = numbered(100, len);
        let wanted = [7u8, 3, 99, 4, 3, 0, 50];
        let keys: Vec<_> = wanted.iter().map(|n| [*n]).collect();
        let requests: Vec<_> = keys
            .iter()
            .map(|key| BlobRequest {
                user_key: key,
                timestamp_size: 0,
                index: &indexes[usize::from(key[0])],
                verify,
            })
            .collect();
        let mut found = vec![None; wanted.len()];
        let bytes = reader.read_many(&requests, |at, value| {
            assert!(found[at].replace(value.expect("reads")).is_none());
        });
        for (n, value) in wanted.iter().zip(found) {
            assert_eq!(value, Some(vec![*n; len]));
        }
        let least = 6 * if verify { len + 33 } else { len };
        assert!(bytes >= least, "{bytes}");
    }
}

#[test]
fn one_wrong_request_fails_alone() {
    let (reader, indexes) = numbered(10, 100);
    let request = |user_key, n: usize| BlobRequest {
        user_key,
        timestamp_size: 0,
        index: &indexes[n],
        verify: true,
    };
    let beyond = BlobIndex::blob(FileNo(1), 1 << 40, 100, 0);
    let requests = [
        request(&[2], 2),
        request(&[9], 3),
        BlobRequest {
            index: &beyond,
            ..request(&[4], 4)
        },
        request(&[5], 5),
    ];
    let mut found = Vec::new();
    reader.read_many(&requests, |at, value| found.push((at, value.is_ok())));
    found.sort_unstable();
    assert_eq!(found, [(0, true), (1, false), (2, false), (3, true)]);
}

#[test]
fn windows_open_when_values_come_in_a_row() {
    let (reader, indexes) = numbered(100, 1_000);
    let mut out = Vec::new();
    let mut read = |ahead: &mut BlobReadAhead, n: u8| {
        let request = BlobRequest {
            user_key: &[n],
            timestamp_size: 0,
            index: &indexes[usize::from(n)],
            verify: true,
        };
        let bytes = ahead
            .read(&reader, || None, &request, &mut out)
            .expect("reads");
        assert_eq!(out, vec![n; 1_000]);
        bytes
    };
    let mut ahead = BlobReadAhead::new(0);
    assert_eq!([0, 1].map(|n| read(&mut ahead, n)), [1_033, 1_033]);
    assert_eq!(read(&mut ahead, 2), 16 << 10);
    assert_eq!([3, 4, 16].map(|n| read(&mut ahead, n)), [0; 3]);
    assert_eq!(read(&mut ahead, 17), 32 << 10, "twice as much");
    // Back and far away, it begins anew.
    assert_eq!([20, 17, 90].map(|n| read(&mut ahead, n)), [0, 0, 1_033]);
    ahead.clear();
    assert_eq!(read(&mut ahead, 91), 1_033);
    let mut fixed = BlobReadAhead::new(5_000);
    assert_eq!(read(&mut fixed, 50), 5_000);
    assert_eq!(read(&mut fixed, 51), 0);
    assert_eq!(read(&mut fixed, 10), 5_000);
    // Nothing is read beyond the last record.
    assert_eq!(read(&mut fixed, 99), 1_033);
    let mut small = BlobReadAhead::new(1_000);
    assert_eq!([5, 6].map(|n| read(&mut small, n)), [1_033; 2]);
}

#[test]
fn files_of_one_group_share_a_window() {
    let files: Vec<_> = (1..5).map(|n| numbered_in(FileNo(n), 20, 1_000)).collect();
    let walk = |group: Option<FileNo>| {
        let mut ahead = BlobReadAhead::new(0);
        let mut out = Vec::new();
        let mut reads = Vec::new();
        for (reader, indexes) in &files {
            for (n, index) in (0u8..).zip(indexes) {
                let request = BlobRequest {
                    user_key: &[n],
                    timestamp_size: 0,
                    index,
                    verify: true,
                };
                let read = ahead.read(reader, || group, &request, &mut out);
                assert_eq!(out, vec![n; 1_000]);
                reads.push(read.expect("reads"));
            }
        }
        reads.into_iter().filter(|bytes| *bytes > 0).count()
    };
    // Two values alone, and two windows: of the first file, and of each without a group.
    assert_eq!(walk(None), 4 * 4);
    assert_eq!(
        walk(Some(FileNo(1))),
        4 + 3,
        "one read for each of the others"
    );
}
