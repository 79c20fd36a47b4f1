//! Tests of MANIFESTs: groups, the ignored tail, and fatal damage with its place.

use super::*;
use crate::log::{LogWriter, LogWriterOptions};
use esker_env::Env;
use esker_format::edit::VersionEdit;
use esker_format::{FamilyId, FileNo, Seq};
use std::path::Path;

const PATH: &str = "/db/MANIFEST-000005";

fn edit(seq: u64, remaining: Option<u32>) -> VersionEdit {
    VersionEdit {
        last_sequence: Some(Seq(seq)),
        remaining_in_group: remaining,
        ..VersionEdit::default()
    }
}

/// A MANIFEST with these records, as bytes.
fn bytes_of(records: &[Vec<u8>]) -> Vec<u8> {
    let fs = Env::in_memory().fs;
    let file = fs
        .create(Path::new("/m"), Default::default())
        .expect("creates");
    let mut log = LogWriter::new(file, LogWriterOptions::default()).expect("a writer");
    records
        .iter()
        .for_each(|r| log.add_record(r).expect("adds"));
    log.close().expect("closes");
    fs.read_all(Path::new("/m"), u64::MAX).expect("reads")
}

fn reader(bytes: &[u8]) -> ManifestReader {
    let fs = Env::in_memory().fs;
    let mut file = fs
        .create(Path::new("/m"), Default::default())
        .expect("creates");
    file.append(bytes).expect("appends");
    file.close().expect("closes");
    ManifestReader::open(&*fs, Path::new("/m")).expect("opens")
}

/// The sizes of the groups, or the error.
fn groups(bytes: &[u8]) -> esker_status::Result<Vec<usize>> {
    let mut reader = reader(bytes);
    let mut sizes = Vec::new();
    while let Some(group) = reader.next_group()? {
        sizes.push(group.edits.len());
    }
    Ok(sizes)
}

#[test]
fn what_is_written_is_read() {
    let fs = Env::in_memory().fs;
    fs.create_dir_all(Path::new("/db")).expect("a directory");
    let (dir, number) = (Path::new("/db"), FileNo(5));
    let snapshot = [edit(1, None), edit(2, None)];
    let mut writer =
        ManifestWriter::create(&*fs, dir, number, Default::default(), &snapshot).expect("creates");
    let mut group = [edit(3, None), edit(4, None), edit(5, None)];
    writer.append_group(&mut group).expect("adds");
    let mut add = VersionEdit::for_family(FamilyId(1));
    add.family_add = Some("cf".to_owned());
    assert!(writer.append_group(&mut [add.clone()]).is_err());
    add.add_file(esker_format::Level(0), Default::default());
    assert!(writer.append(&[add]).is_err());
    writer.sync().expect("syncs");
    let len = writer.len();
    writer.close().expect("closes");

    let mut reader = ManifestReader::open(&*fs, Path::new(PATH)).expect("opens");
    let mut found = Vec::new();
    while let Some(group) = reader.next_group().expect("reads") {
        found.push(group.edits);
    }
    let [a, b] = snapshot;
    assert_eq!(found, [vec![a], vec![b], group.to_vec()]);
    assert_eq!(found[2][0].remaining_in_group, Some(2));
    assert_eq!((reader.valid_end(), reader.has_torn_tail()), (len, false));

    // A later session goes on at the end.
    let file = fs
        .open_append(Path::new(PATH), Default::default())
        .expect("opens");
    let mut writer = ManifestWriter::over(file, number).expect("a writer");
    writer.append(&[edit(6, None)]).expect("adds");
    writer.close().expect("closes");
    let bytes = fs.read_all(Path::new(PATH), u64::MAX).expect("reads");
    assert_eq!(groups(&bytes).expect("whole"), [1, 1, 3, 1]);
}

#[test]
fn groups_are_whole_or_ignored_or_fatal() {
    let of = |remaining: &[Option<u32>]| {
        let records: Vec<_> = remaining.iter().map(|r| edit(1, *r).encode()).collect();
        groups(&bytes_of(&records))
    };
    assert_eq!(
        of(&[None, Some(1), Some(0), None]).expect("whole"),
        [1, 2, 1]
    );
    assert_eq!(of(&[None, Some(2), Some(1)]).expect("unfinished"), [1]);
    assert_eq!(of(&[Some(u32::MAX)]).expect("unfinished"), [0; 0]);
    for bad in [
        &[Some(2), None][..],
        &[Some(2), Some(2)],
        &[Some(2), Some(0)],
    ] {
        let e = of(bad).expect_err("corrupted");
        assert!(e.message().contains("corrupted atomic group"), "{e}");
    }
}

#[test]
fn tails_are_ignored_and_the_rest_is_fatal() {
    let records: Vec<_> = (0..3)
        .map(|i| edit(i, None).encode())
        .chain([vec![]])
        .collect();
    let whole = bytes_of(&records);
    assert_eq!(
        groups(&whole).expect("whole"),
        [1; 4],
        "an empty record has no effect"
    );
    let mut zeros = whole.clone();
    zeros.resize(whole.len() + 500, 0);
    assert_eq!(groups(&zeros).expect("whole"), [1; 4]);
    for cut in 1..7 {
        let mut reader = reader(&whole[..whole.len() - cut]);
        let mut n = 0;
        while reader.next_group().expect("torn").is_some() {
            n += 1;
        }
        assert!(n == 3 && reader.has_torn_tail());
        assert_eq!(reader.valid_end() as usize, whole.len() - 7);
    }
    for at in [0, 7, 9, 12] {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        let e = groups(&bad).expect_err("damaged");
        assert!(
            e.is_corruption() && e.file().is_some() && e.offset().is_some(),
            "{e}"
        );
    }
    let e = groups(&bytes_of(&[edit(1, None).encode(), vec![11]])).expect_err("unknown tag");
    assert!(e.offset() > Some(0) && e.file().is_some(), "{e}");
}

/// A MANIFEST of three small edits and a long last one, and where that begins.
fn with_long_last() -> (Vec<u8>, usize) {
    with_last(1500)
}

/// Makes a MANIFEST with this many letters in the last edit.
fn with_last(letters: usize) -> (Vec<u8>, usize) {
    let mut long = VersionEdit::for_family(FamilyId(3));
    long.family_add = Some("n".repeat(letters));
    let small: Vec<_> = (0..3).map(|i| edit(i, None).encode()).collect();
    let begin = bytes_of(&small).len();
    let records: Vec<_> = small.into_iter().chain([long.encode()]).collect();
    (bytes_of(&records), begin)
}

#[test]
fn a_last_edit_with_a_sector_that_was_not_written_is_unfinished() {
    let (whole, begin) = with_long_last();
    assert_eq!(groups(&whole).expect("whole"), [1; 4]);
    for sector in [0..512, 512..1024, 1024..whole.len()] {
        let mut bad = whole.clone();
        bad[sector.start.max(begin)..sector.end].fill(0);
        let mut reader = reader(&bad);
        let mut n = 0;
        while reader.next_group().expect("unfinished").is_some() {
            n += 1;
        }
        assert_eq!(n, 3, "{sector:?}");
        assert!(reader.has_torn_tail() || sector.start == 0);
    }
}

#[test]
fn a_few_bytes_of_the_last_sector_that_were_not_written_are_enough() {
    for few in [1, 5, 15] {
        let letters = 600 + 1024 + few - with_last(600).0.len();
        let (whole, begin) = with_last(letters);
        assert_eq!(whole.len(), 1024 + few);
        assert!(begin < 1024 && whole[1024..].iter().any(|b| *b != 0));
        let mut bad = whole;
        bad[1024..].fill(0);
        let mut reader = reader(&bad);
        while reader.next_group().expect("unfinished").is_some() {}
        assert!(reader.has_torn_tail(), "{few} bytes");
    }
}

/// The last edit begins this many bytes before a sector ends, and those were not written.
fn with_lost_begin(few: usize) -> (Vec<u8>, usize) {
    let small = edit(0, None);
    let one = bytes_of(&[small.encode()]).len();
    let mut padding = VersionEdit::for_family(FamilyId(3));
    padding.family_add = Some("n".repeat(300));
    let padded = bytes_of(&[small.encode(), padding.encode()]).len();
    padding.family_add = Some("n".repeat(300 + 1024 - few - padded));
    let records = [small.encode(), padding.encode(), small.encode()];
    let whole = bytes_of(&records);
    let begin = whole.len() - one;
    assert_eq!(begin, 1024 - few);
    (whole, begin)
}

#[test]
fn a_few_bytes_of_the_first_sector_that_were_not_written_are_enough() {
    for few in [1, 2, 3, 4, 6, 9] {
        let (whole, begin) = with_lost_begin(few);
        let mut bad = whole;
        bad[begin..1024].fill(0);
        let mut reader = reader(&bad);
        while reader.next_group().expect("unfinished").is_some() {}
        assert!(reader.has_torn_tail(), "{few} bytes");
    }
}

#[test]
fn a_checksum_that_begins_with_zeros_excuses_no_wrong_bit() {
    for few in [1, 2, 3] {
        let (whole, begin) = with_lost_begin(few);
        // Behind the header.
        for at in begin + 7..whole.len() {
            let mut bad = whole.clone();
            bad[begin..1024].fill(0);
            bad[at] ^= 1;
            assert!(
                groups(&bad).is_err(),
                "{few} bytes, and a wrong bit at {at}"
            );
        }
    }
}

#[test]
fn a_last_edit_with_a_wrong_bit_is_damaged() {
    let (whole, begin) = with_long_last();
    for at in [begin, begin + 8, 600, 1100, whole.len() - 1] {
        let mut bad = whole.clone();
        bad[at] ^= 4;
        assert!(groups(&bad).is_err(), "{at}");
    }
}

#[test]
fn an_edit_with_zeros_before_another_is_damaged() {
    let (whole, begin) = with_long_last();
    for sector in [0..512, 512..1024, 1024..whole.len()] {
        let mut bad = whole.clone();
        bad[sector.start.max(begin)..sector.end].fill(0);
        // Another edit behind: the zeros are not what the last write left.
        bad.extend_from_slice(&bytes_of(&[edit(9, None).encode()]));
        assert!(groups(&bad).is_err(), "{sector:?}");
    }
}

#[test]
fn a_tail_that_looks_like_headers_is_judged_in_time() {
    let mut bad = vec![0; 4096];
    bad.resize(900_000, 1);
    assert!(groups(&bad).is_err());
}
