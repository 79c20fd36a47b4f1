//! Every version's bytes, round trips, and damage.

use super::*;
use proptest::prelude::*;

const OFFSET: u64 = 10_000;

fn footer(version: u32, checksum: ChecksumType) -> Footer {
    let extended = version >= 6;
    Footer {
        version,
        checksum,
        metaindex: BlockHandle {
            offset: OFFSET - 5 - 300,
            size: 300,
        },
        index: if extended {
            BlockHandle::NULL
        } else {
            BlockHandle {
                offset: 8000,
                size: 1000,
            }
        },
        base_context_checksum: if extended { 0x1234_5678 } else { 0 },
    }
}

#[test]
fn every_written_version_comes_back() {
    for version in FORMAT_VERSION_MIN_WRITTEN..=FORMAT_VERSION_MAX {
        for kind in (0..5).filter_map(ChecksumType::from_u8) {
            let footer = footer(version, kind);
            let bytes = footer.encode(OFFSET).unwrap();
            assert_eq!(Footer::decode(&bytes, OFFSET + 53).unwrap(), footer);
            let longer = [&[7; 100], bytes.as_slice()].concat();
            assert_eq!(Footer::decode(&longer, OFFSET + 53).unwrap(), footer);
        }
    }
}

#[test]
fn version_five_has_the_documented_layout() {
    let bytes = footer(5, ChecksumType::Xxh3).encode(OFFSET).unwrap();
    let mut expected = vec![4u8, 0xdf, 0x4b, 0xac, 0x02, 0xc0, 0x3e, 0xe8, 0x07];
    expected.resize(41, 0);
    expected.extend([5, 0, 0, 0, 0xf7, 0xcf, 0xf4, 0x85, 0xb7, 0x41, 0xe2, 0x88]);
    assert_eq!(bytes.as_slice(), expected);
}

#[test]
fn old_versions_are_read_but_not_written() {
    let mut v1 = footer(2, ChecksumType::Crc32c).encode(OFFSET).unwrap();
    v1[41] = 1;
    assert_eq!(Footer::decode(&v1, OFFSET + 53).unwrap().version, 1);
    let mut v0 = v1[1..41].to_vec();
    v0.extend(MAGIC_V0.to_le_bytes());
    let decoded = Footer::decode(&v0, OFFSET + 48).unwrap();
    assert_eq!(
        decoded,
        Footer {
            version: 0,
            ..footer(2, ChecksumType::Crc32c)
        }
    );
    assert_eq!(
        (
            decoded.len_in_file(),
            footer(5, ChecksumType::None).len_in_file()
        ),
        (48, 53)
    );
    for version in [0, 1, 8] {
        assert!(
            Footer {
                version,
                ..footer(5, ChecksumType::Xxh3)
            }
            .encode(OFFSET)
            .is_err()
        );
    }
}

#[test]
fn damage_is_named() {
    let good = footer(6, ChecksumType::Crc32c).encode(OFFSET).unwrap();
    let decode = |bytes: &[u8]| Footer::decode(bytes, OFFSET + 53);
    for at in (0..33).chain(45..53).filter(|at| *at != 0) {
        let mut bad = good;
        bad[at] ^= 0x10;
        assert!(decode(&bad).is_err(), "byte {at}");
    }
    assert!(
        Footer::decode(&good, OFFSET + 54).is_err(),
        "another offset is another context"
    );
    assert!(
        Footer::decode(&good[1..], OFFSET + 53)
            .unwrap_err()
            .is_corruption()
    );
    assert!(decode(&good[..52]).is_err());
    assert!(decode(b"").unwrap_err().is_corruption());
    let mut future = footer(5, ChecksumType::Xxh3).encode(OFFSET).unwrap();
    future[41] = 8;
    assert!(
        decode(&future)
            .unwrap_err()
            .to_string()
            .contains("format version 8")
    );
    let plain = [vec![0; 45], MAGIC_PLAIN[0].to_le_bytes().to_vec()].concat();
    assert!(decode(&plain).unwrap_err().to_string().contains("plain"));
    let far = Footer {
        index: BlockHandle {
            offset: OFFSET,
            size: 10,
        },
        ..footer(5, ChecksumType::Xxh3)
    };
    assert!(
        decode(&far.encode(OFFSET).unwrap())
            .unwrap_err()
            .is_corruption()
    );
    let apart = Footer {
        metaindex: BlockHandle { offset: 5, size: 9 },
        ..footer(7, ChecksumType::Xxh3)
    };
    assert!(apart.encode(OFFSET).is_err());
    let baseless = Footer {
        base_context_checksum: 0,
        ..footer(7, ChecksumType::Xxh3)
    };
    assert!(baseless.encode(OFFSET).is_err());
}

#[test]
fn handles_know_where_they_end() {
    let handle = BlockHandle {
        offset: 100,
        size: 20,
    };
    assert_eq!(handle.end(), Some(125));
    assert!(handle.check_within(125).is_ok() && handle.check_within(124).is_err());
    assert!(
        BlockHandle {
            offset: u64::MAX,
            size: 1
        }
        .check_within(u64::MAX)
        .is_err()
    );
    assert!(BlockHandle::NULL.is_null() && !handle.is_null());
}

proptest! {
    #[test]
    fn handles_round_trip(offset: u64, size: u64, junk in proptest::collection::vec(any::<u8>(), 0..3)) {
        let handle = BlockHandle { offset, size };
        let mut bytes = handle.encode();
        prop_assert!(bytes.len() <= HANDLE_LEN_MAX);
        bytes.extend(junk);
        prop_assert_eq!(BlockHandle::decode(&bytes).unwrap(), handle);
    }

    #[test]
    fn hostile_footers_never_panic(mut tail in proptest::collection::vec(any::<u8>(), 53), version in 0u8..9, size: u64, old: bool) {
        tail[41..45].copy_from_slice(&[version, 0, 0, 0]);
        tail[45..].copy_from_slice(&if old { MAGIC_V0 } else { MAGIC }.to_le_bytes());
        tail[0] %= 6;
        if version > 5 {
            tail[1..5].copy_from_slice(&EXTENDED_MAGIC);
            tail[33..41].fill(0);
        }
        if let Ok(footer) = Footer::decode(&tail, size) {
            prop_assert!(footer.metaindex.end().unwrap() <= size);
        }
    }
}
