//! The list of cached blocks: written, read, and damaged.

use super::*;

type Tables = Vec<(u64, Vec<u64>)>;

fn written(tables: &[(u64, &[u64])]) -> Vec<u8> {
    let mut writer = SavedCacheWriter::default();
    for (number, offsets) in tables {
        writer.add(FileNo(*number), offsets);
    }
    writer.finish()
}

fn read(bytes: &[u8]) -> Result<Tables> {
    let saved = SavedCache::decode(bytes.to_vec())?;
    let all: Tables = saved
        .tables()
        .map(|t| (t.number.0, t.offsets().collect()))
        .collect();
    let counted: Vec<u64> = saved.tables().map(|t| t.count).collect();
    let listed: Vec<u64> = all.iter().map(|(_, o)| o.len() as u64).collect();
    assert_eq!(counted, listed);
    assert_eq!(saved.blocks(), listed.iter().sum::<u64>());
    Ok(all)
}

/// With the checksum of what is before it.
fn sealed(body: &[u8]) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], &[VERSION], body].concat();
    let sum = mask(crc32c(&bytes));
    put_fixed32(&mut bytes, sum);
    bytes
}

const SOME: &[(u64, &[u64])] = &[
    (0, &[0]),
    (7, &[0, 1, 4_000, 8_123]),
    (9, &[u64::MAX - 1, u64::MAX]),
    ((1 << 62) - 1, &[5]),
];

#[test]
fn what_is_written_is_read() -> Result<()> {
    for n in 0..=SOME.len() {
        let expected: Tables = SOME[..n].iter().map(|(f, o)| (*f, o.to_vec())).collect();
        assert_eq!(read(&written(&SOME[..n]))?, expected);
    }
    assert_eq!(read(&written(&[(3, &[]), (5, &[1])]))?, [(5, vec![1])]);
    Ok(())
}

#[test]
fn the_layout_is_the_one_described() {
    let body = [7, 2, 0, 0xa0, 0x1f, 2, 1, 5];
    assert_eq!(written(&[(7, &[0, 4_000]), (9, &[5])]), sealed(&body));
}

#[test]
fn damage_at_every_byte_is_found() {
    let whole = written(SOME);
    for at in 0..whole.len() {
        assert!(read(&whole[..at]).is_err(), "cut at {at}");
        for bit in 0..8 {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            assert!(read(&damaged).is_err(), "bit {bit} of byte {at}");
        }
    }
    let longer = [&whole[..], &[0]].concat();
    assert!(read(&longer).is_err());
}

#[test]
fn hostile_counts_and_numbers_are_refused() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    let refused: [(&str, Vec<u8>); 8] = [
        ("no count", vec![7]),
        ("a count of nothing", vec![7, 0]),
        ("fewer offsets than counted", vec![7, 3, 1, 1]),
        ("a count without end", [&[7], &huge[..], &[1, 1]].concat()),
        ("an offset twice", vec![7, 2, 1, 0]),
        ("a table twice", vec![7, 1, 1, 0, 1, 1]),
        ("an offset past the last", [&[7, 2, 1], &huge[..]].concat()),
        ("a number past the last", [&huge[..], &[1, 1]].concat()),
    ];
    for (what, body) in refused {
        let error = read(&sealed(&body)).expect_err(what);
        assert!(error.is_corruption(), "{what}: {error}");
    }
    assert_eq!(read(&sealed(&[7, 1, 1])).expect("good"), [(7, vec![1])]);
}

#[test]
fn a_newer_version_is_told_apart_from_damage() {
    let mut bytes = [&MAGIC[..], &[VERSION + 1]].concat();
    let sum = mask(crc32c(&bytes));
    put_fixed32(&mut bytes, sum);
    let error = read(&bytes).expect_err("it is newer");
    assert_eq!(error.kind(), esker_status::ErrorKind::NotSupported);
}
