//! Tests of logs: framing, both headers, compression, and the table of damage by recovery mode.

use super::*;
use esker_codec::compress::Codec;
use esker_env::{Env, RandomAccessFile};
use esker_format::log::{BLOCK_SIZE, HEADER_LEN, RECYCLABLE_HEADER_LEN};
use esker_format::{FamilyId, FileNo, Seq};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

const NUMBER: FileNo = FileNo(0x1_0000_0007);

fn options(recycle: bool, compression: Codec) -> LogWriterOptions {
    LogWriterOptions {
        recycle: recycle.then_some(NUMBER),
        compression,
    }
}

fn write(options: LogWriterOptions, fill: impl FnOnce(&mut LogWriter)) -> Vec<u8> {
    let fs = Env::in_memory().fs;
    let path = Path::new("/log");
    let file = fs.create(path, Default::default()).expect("creates");
    let mut writer = LogWriter::new(file, options).expect("a writer");
    fill(&mut writer);
    let len = writer.len();
    writer.sync().expect("syncs");
    writer.close().expect("closes");
    let bytes = fs.read_all(path, u64::MAX).expect("reads");
    assert_eq!(bytes.len() as u64, len);
    bytes
}

fn records(options: LogWriterOptions, records: &[Vec<u8>]) -> Vec<u8> {
    write(options, |w| {
        records.iter().for_each(|r| w.add_record(r).expect("adds"))
    })
}

fn open(bytes: &[u8]) -> Arc<dyn RandomAccessFile> {
    let fs = Env::in_memory().fs;
    let path = Path::new("/log");
    let mut file = fs.create(path, Default::default()).expect("creates");
    file.append(bytes).expect("appends");
    file.close().expect("closes");
    fs.open_read(path, Default::default()).expect("opens")
}

fn reader(bytes: &[u8]) -> LogReader {
    LogReader::new(open(bytes), LogReaderOptions::new(NUMBER))
}

/// Reads everything, damage included, with a bound on the calls.
fn read_all(bytes: &[u8]) -> (Vec<Vec<u8>>, Vec<Damage>, bool) {
    let mut reader = reader(bytes);
    let (mut found, mut damages) = (Vec::new(), Vec::new());
    for _ in 0..bytes.len() + 2 {
        match reader.next().expect("readable") {
            ReadOutcome::Record { bytes, .. } => found.push(bytes.to_vec()),
            ReadOutcome::Damaged(d) => damages.push(d),
            ReadOutcome::TornTail(d) => {
                damages.push(d);
                return (found, damages, true);
            }
            ReadOutcome::End => return (found, damages, false),
            _ => {}
        }
    }
    panic!("reading does not end");
}

fn replay(bytes: &[u8], mode: RecoveryMode) -> (usize, &'static str) {
    let mut reader = reader(bytes);
    let mut n = 0;
    loop {
        match reader.replay(mode) {
            Ok(ReplayStep::Record { .. }) => n += 1,
            Ok(ReplayStep::End(_)) => return (n, "end"),
            Ok(ReplayStep::Stop(_)) => return (n, "stop"),
            Ok(ReplayStep::RecycledTail(_)) => return (n, "remains"),
            Ok(_) => {}
            Err(e) => {
                assert!(
                    e.is_corruption() && e.file().is_some() && e.offset().is_some(),
                    "{e}"
                );
                return (n, "fail");
            }
        }
    }
}

fn sample() -> Vec<Vec<u8>> {
    (0..200usize).map(|i| vec![i as u8; i * 37 % 900]).collect()
}

#[test]
fn a_compressed_log_begins_with_the_bytes_of_rocksdb() {
    let bytes = records(options(false, Codec::Zstd), &[]);
    assert_eq!(bytes, [0xe1, 0x2c, 0x08, 0xf8, 4, 0, 9, 7, 0, 0, 0]);
}

#[test]
fn records_come_back_under_every_header_and_codec() {
    let mut all = sample();
    all.extend([
        vec![],
        vec![7; 3 * BLOCK_SIZE],
        vec![8; 300_000],
        vec![],
        b"end".to_vec(),
    ]);
    for recycle in [false, true] {
        for codec in [Codec::None, Codec::Zstd] {
            let bytes = records(options(recycle, codec), &all);
            let (found, damages, _) = read_all(&bytes);
            assert!(
                found == all && damages.is_empty(),
                "{recycle} {codec:?} {damages:?}"
            );
        }
    }
}

#[test]
fn every_distance_from_the_end_of_a_block_works() {
    for (recycle, header) in [(false, HEADER_LEN), (true, RECYCLABLE_HEADER_LEN)] {
        for left in 0..=2 * RECYCLABLE_HEADER_LEN {
            let all = vec![vec![1; BLOCK_SIZE - header - left], vec![2; 50], vec![]];
            let bytes = records(options(recycle, Codec::None), &all);
            let (found, damages, _) = read_all(&bytes);
            assert!(
                found == all && damages.is_empty(),
                "{recycle} {left} {damages:?}"
            );
            if left == header {
                // A first fragment without payload ends the block.
                let kind = if recycle { 6 } else { 2 };
                assert_eq!(bytes[BLOCK_SIZE - header + 4..][..3], [0, 0, kind]);
            }
        }
    }
}

#[test]
fn special_records_are_surfaced_and_never_split() {
    let predecessor = Predecessor {
        log_number: FileNo(4),
        size: 100,
        last_seq: Seq(9),
    };
    for recycle in [false, true] {
        let header = if recycle {
            RECYCLABLE_HEADER_LEN
        } else {
            HEADER_LEN
        };
        let bytes = write(options(recycle, Codec::None), |w| {
            w.add_predecessor(&predecessor).expect("adds");
            let used = 2 * header + 24;
            w.add_record(&vec![1; BLOCK_SIZE - used - header - 3])
                .expect("adds");
            let sizes = [(FamilyId(1), 8), (FamilyId(2), 0)];
            w.add_timestamp_sizes(&sizes).expect("adds");
            w.add_timestamp_sizes(&sizes).expect("nothing new");
        });
        assert_eq!(bytes.len(), BLOCK_SIZE + header + 6);
        let mut reader = reader(&bytes);
        assert_eq!(
            reader.next().expect("reads"),
            ReadOutcome::Predecessor(predecessor)
        );
        assert!(matches!(
            reader.next().expect("reads"),
            ReadOutcome::Record { .. }
        ));
        let sizes = vec![(FamilyId(1), 8)];
        assert_eq!(
            reader.next().expect("reads"),
            ReadOutcome::TimestampSizes(sizes)
        );
        assert_eq!(reader.next().expect("reads"), ReadOutcome::End);
    }
}

#[test]
fn the_table_of_damage() {
    use RecoveryMode::*;
    let modes = [
        TolerateCorruptedTailRecords,
        AbsoluteConsistency,
        PointInTimeRecovery,
        SkipAnyCorruptedRecords,
    ];
    // Three blocks: A and B in the first, C from the first to the third, D after it.
    let all = vec![
        vec![b'A'; 100],
        vec![b'B'; 100],
        vec![b'C'; 70_000],
        vec![b'D'; 100],
    ];
    let whole = records(options(false, Codec::None), &all);
    let end = whole.len();
    let flip = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        bytes
    };
    let with = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        edit(&mut bytes);
        bytes
    };
    type Row<'a> = (&'a str, Vec<u8>, [(usize, &'a str); 4]);
    let rows: Vec<Row<'_>> = vec![
        ("whole", whole.clone(), [(4, "end"); 4]),
        ("empty", Vec::new(), [(0, "end"); 4]),
        (
            "zero tail",
            with(&|b| b.resize(end + 1000, 0)),
            [(4, "end"), (4, "fail"), (4, "stop"), (4, "end")],
        ),
        (
            "zero tail over blocks",
            with(&|b| b.resize(end + 90_000, 0)),
            [(4, "end"), (4, "fail"), (4, "stop"), (4, "end")],
        ),
        (
            "zeros up to the end of a block",
            with(&|b| {
                b.resize(3 * BLOCK_SIZE, 0);
                b.extend_from_slice(&whole);
            }),
            [(4, "fail"), (4, "fail"), (4, "stop"), (8, "end")],
        ),
        (
            "cut in a body",
            whole[..end - 5].to_vec(),
            [(3, "end"), (3, "fail"), (3, "stop"), (3, "end")],
        ),
        (
            "cut in a header",
            whole[..end - 104].to_vec(),
            [(3, "end"), (3, "fail"), (3, "stop"), (3, "end")],
        ),
        (
            "cut between fragments",
            whole[..BLOCK_SIZE].to_vec(),
            [(2, "end"), (2, "fail"), (2, "stop"), (2, "end")],
        ),
        (
            "flip in the first",
            flip(50),
            [(0, "fail"), (0, "fail"), (0, "stop"), (1, "end")],
        ),
        (
            "flip in a fragment",
            flip(BLOCK_SIZE + 50),
            [(2, "fail"), (2, "fail"), (2, "stop"), (3, "end")],
        ),
        (
            "flip in the last",
            flip(end - 5),
            [(3, "fail"), (3, "fail"), (3, "stop"), (3, "end")],
        ),
        (
            "length beyond the block",
            with(&|b| b[5] ^= 0x80),
            [(0, "fail"), (0, "fail"), (0, "stop"), (1, "end")],
        ),
        (
            "hole",
            with(&|b| b[..107].fill(0)),
            [(0, "fail"), (0, "fail"), (0, "stop"), (1, "end")],
        ),
        (
            "type zero",
            with(&|b| b[6] = 0),
            [(0, "fail"), (0, "fail"), (0, "stop"), (1, "end")],
        ),
    ];
    for (name, bytes, expected) in rows {
        for (mode, expected) in modes.into_iter().zip(expected) {
            assert_eq!(replay(&bytes, mode), expected, "{name} {mode:?}");
        }
    }
}

#[test]
fn an_old_life_of_a_reused_file_is_the_end() {
    let old = write(
        LogWriterOptions {
            recycle: Some(FileNo(3)),
            ..Default::default()
        },
        |w| (0..50).for_each(|_| w.add_record(&[9; 100]).expect("adds")),
    );
    let new = records(options(true, Codec::None), &[vec![1; 100], vec![2; 100]]);
    let mut file = old.clone();
    file[..new.len()].copy_from_slice(&new);
    for (mode, end) in [
        (RecoveryMode::TolerateCorruptedTailRecords, "remains"),
        (RecoveryMode::AbsoluteConsistency, "end"),
        (RecoveryMode::PointInTimeRecovery, "remains"),
        (RecoveryMode::SkipAnyCorruptedRecords, "end"),
    ] {
        assert_eq!(replay(&file, mode), (2, end), "{mode:?}");
    }
    // The new records end inside an old one.
    let new = records(options(true, Codec::None), &[vec![1; 130]]);
    file = old;
    file[..new.len()].copy_from_slice(&new);
    assert_eq!(
        replay(&file, RecoveryMode::TolerateCorruptedTailRecords),
        (1, "remains")
    );
    assert_eq!(
        replay(&file, RecoveryMode::PointInTimeRecovery),
        (1, "remains")
    );
}

#[test]
fn unknown_types_follow_their_high_bit() {
    for (kind, damaged) in [
        (200u8, false),
        (132, false),
        (133, false),
        (12, true),
        (100, true),
    ] {
        let recyclable = kind >= 10 && kind & 1 == 1;
        let mut body = vec![kind];
        if recyclable {
            body.extend((NUMBER.0 as u32).to_le_bytes());
        }
        body.extend(b"xyz");
        let crc = esker_codec::checksum::mask(esker_codec::checksum::crc32c(&body));
        let mut bytes = records(options(false, Codec::None), &[b"a".to_vec()]);
        bytes.extend(crc.to_le_bytes());
        bytes.extend([3, 0]);
        bytes.extend(&body);
        let (found, damages, torn) = read_all(&bytes);
        assert_eq!(
            (found.len(), damages.len(), torn),
            (1, usize::from(damaged), false),
            "{kind}"
        );
    }
}

#[test]
fn every_flip_of_a_type_byte_is_reported() {
    let all = vec![vec![1; 100], vec![], vec![3; 100]];
    for recycle in [false, true] {
        let header = if recycle {
            RECYCLABLE_HEADER_LEN
        } else {
            HEADER_LEN
        };
        let whole = records(options(recycle, Codec::None), &all);
        for start in [0, header + 100, 2 * header + 100] {
            for kind in 0..=255u8 {
                let mut bytes = whole.clone();
                if std::mem::replace(&mut bytes[start + 6], kind) == kind {
                    continue;
                }
                let (found, _, _) = read_all(&bytes);
                assert!(found.len() < all.len(), "{start} {kind}");
                for mode in [
                    RecoveryMode::PointInTimeRecovery,
                    RecoveryMode::AbsoluteConsistency,
                ] {
                    assert_ne!(replay(&bytes, mode).1, "end", "{start} {kind} {mode:?}");
                }
            }
        }
    }
}

#[test]
fn a_flip_that_makes_a_record_recyclable_is_no_older_life_of_the_file() {
    let all = vec![vec![1; 100], vec![2; 100], vec![3; 100]];
    let whole = records(options(false, Codec::None), &all);
    // A full record becomes one of a type that is not known, and whose lowest bit says that a log's
    // number follows.
    let mut bytes = whole.clone();
    bytes[HEADER_LEN + 100 + 6] ^= 0x40;
    // The first record becomes a recyclable one, before anything shows which kind of log it is.
    let mut first = whole;
    first[6] ^= 0x04;
    for (bytes, before) in [(bytes, 1), (first, 0)] {
        let (found, damages, _) = read_all(&bytes);
        assert_eq!((found.len(), damages.len()), (before, 1));
        assert_eq!(damages[0].reason, "checksum mismatch");
        for (mode, end) in [
            (RecoveryMode::TolerateCorruptedTailRecords, "fail"),
            (RecoveryMode::AbsoluteConsistency, "fail"),
            (RecoveryMode::PointInTimeRecovery, "stop"),
        ] {
            assert_eq!(replay(&bytes, mode), (before, end), "{mode:?}");
        }
    }
}

/// A log over the bytes of an older one, of which zeros were made ready for it up to `ready`.
fn reused(all: &[Vec<u8>], older: &[Vec<u8>], ready: usize) -> Vec<u8> {
    let older_options = LogWriterOptions {
        recycle: Some(FileNo(3)),
        compression: Codec::None,
    };
    let mut bytes = records(older_options, older);
    let new = records(options(true, Codec::None), all);
    let len = bytes.len().max(new.len());
    bytes.resize(len, 0);
    let ready = ready.clamp(new.len(), len);
    bytes[new.len()..ready].fill(0);
    bytes[..new.len()].copy_from_slice(&new);
    bytes
}

#[test]
fn what_an_older_log_left_is_no_damage_wherever_the_new_one_ends() {
    // Older records of every length around the end of the new ones, some of which look like records
    // of a legacy log.
    let fake = write(options(false, Codec::None), |w| {
        w.add_record(b"nobody wrote this").expect("adds");
    });
    let older: Vec<_> = (0..1000).map(|n| fake.repeat(1 + n % 17)).collect();
    for len in (0..60).chain(32_700..32_800).chain([70_000]) {
        let all = vec![vec![7; 50], vec![8; len]];
        for ready in [0, BLOCK_SIZE, 3 * BLOCK_SIZE] {
            let bytes = reused(&all, &older, ready);
            let (found, damages, torn) = read_all(&bytes);
            assert_eq!((found.len(), damages.len(), torn), (2, 0, false), "{len}");
            assert!(found == all);
            for mode in [
                RecoveryMode::TolerateCorruptedTailRecords,
                RecoveryMode::PointInTimeRecovery,
                RecoveryMode::SkipAnyCorruptedRecords,
            ] {
                let (n, end) = replay(&bytes, mode);
                // Who skips reads over whole old records, to the end.
                let is_skipped = mode == RecoveryMode::SkipAnyCorruptedRecords && end == "end";
                let is_right = n == 2 && (end == "remains" || is_skipped);
                assert!(is_right, "{len} {ready} {mode:?} {n} {end}");
            }
        }
    }
}

#[test]
fn an_older_log_may_have_been_a_few_bytes_longer() {
    let older = vec![vec![9; 300]; 20];
    for len in [0, 40, 1000] {
        let all = vec![vec![7; len], vec![8; 50]];
        let end = records(options(true, Codec::None), &all).len();
        for more in 0..30 {
            let bytes = &reused(&all, &older, 0)[..end + more];
            let (found, damages, torn) = read_all(bytes);
            assert_eq!((found.len(), damages.len(), torn), (2, 0, false), "{more}");
        }
    }
}

#[test]
fn damage_in_front_of_records_of_the_log_itself_is_none_of_an_older_one() {
    let older: Vec<_> = (0..40).map(|n| vec![n; 5000]).collect();
    let all: Vec<_> = (0..20).map(|n| vec![n; 4000]).collect();
    let whole = reused(&all, &older, 0);
    let header = RECYCLABLE_HEADER_LEN;
    // The checksum, the length, the type, the number and the payload of a record in the middle, and
    // of one with which a block begins.
    let middle = 2 * (header + 4000);
    for start in [middle, BLOCK_SIZE] {
        for at in [0, 4, 5, 6, 8, header + 10] {
            let mut bytes = whole.clone();
            bytes[start + at] ^= 0x55;
            let (found, damages, _) = read_all(&bytes);
            assert!(
                found.len() < all.len() && !damages.is_empty(),
                "{start} {at}"
            );
            assert!(damages.iter().all(|d| d.bytes_dropped > 0));
        }
    }
    // A block of zeros in front of the last record, and nothing else of this log.
    let block = vec![vec![5; BLOCK_SIZE - header]; 3];
    let mut bytes = reused(&block, &older, 0);
    bytes[BLOCK_SIZE..2 * BLOCK_SIZE].fill(0);
    let (found, damages, _) = read_all(&bytes);
    assert_eq!((found.len(), damages.len()), (2, 1));
    // The last record still says that it is one.
    let last = records(options(true, Codec::None), &all).len() - 100;
    let mut bytes = whole;
    bytes[last] ^= 1;
    let (found, damages, _) = read_all(&bytes);
    assert_eq!((found.len(), damages.len()), (19, 1));
}

#[test]
fn a_reused_log_that_grows_is_read_on() {
    let older: Vec<_> = (0..40).map(|n| vec![n; 5000]).collect();
    let all: Vec<_> = (0..30).map(|n| vec![n; 3001]).collect();
    let fs = Env::in_memory().fs;
    let path = Path::new("/log");
    let put = |bytes: &[u8]| {
        let mut file = fs.create(path, Default::default()).expect("creates");
        file.append(bytes).expect("appends");
        file.close().expect("closes");
    };
    put(&reused(&all[..1], &older, 0));
    let file = fs.open_read(path, Default::default()).expect("opens");
    let mut reader = LogReader::new(file, LogReaderOptions::new(NUMBER));
    let mut found = 0;
    for n in 1..=all.len() {
        put(&reused(&all[..n], &older, 0));
        reader.resume(reader.position());
        while let ReadOutcome::Record { bytes, .. } = reader.next().expect("readable") {
            assert!(bytes == all[found]);
            found += 1;
        }
        assert_eq!(found, n);
    }
}

#[test]
fn a_compressed_log_is_read_again_from_its_beginning() {
    let bytes = write(options(false, Codec::Zstd), |w| {
        w.add_record(&[7; 500]).expect("adds");
    });
    let fs = Env::in_memory().fs;
    let path = Path::new("/log");
    let mut file = fs.create(path, Default::default()).expect("creates");
    file.append(&bytes).expect("appends");
    file.close().expect("closes");
    let file = fs.open_read(path, Default::default()).expect("opens");
    let mut reader = LogReader::new(file, LogReaderOptions::new(NUMBER));
    for _ in 0..2 {
        reader.resume(0);
        match reader.next().expect("readable") {
            ReadOutcome::Record { bytes, .. } => assert_eq!(bytes, [7; 500]),
            other => panic!("{other:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_records_round_trip(
        sizes in prop::collection::vec(0..70_000usize, 0..12), recycle: bool, zstd: bool, cut: u16
    ) {
        let all: Vec<Vec<u8>> = sizes.iter().map(|&n| (0..n).map(|i| ((i * i) >> 3) as u8).collect()).collect();
        let codec = if zstd { Codec::Zstd } else { Codec::None };
        let bytes = write(options(recycle, codec), |w| {
            for r in &all {
                let (a, b) = r.split_at(usize::from(cut).min(r.len()));
                w.add_record_parts(&[a, &[], b]).expect("adds");
                if cut & 1 == 0 { w.flush().expect("flushes"); }
            }
        });
        let (found, damages, torn) = read_all(&bytes);
        prop_assert!(found == all && damages.is_empty() && !torn);
        // Whatever is cut off, what is left is a prefix, and nothing is called damaged.
        let end = bytes.len().saturating_sub(usize::from(cut));
        let (found, _, _) = read_all(&bytes[..end]);
        prop_assert!(all.starts_with(&found));
        prop_assert_ne!(replay(&bytes[..end], RecoveryMode::TolerateCorruptedTailRecords).1, "fail");
    }

    #[test]
    fn mutated_logs_never_loop_nor_invent_records(
        at in 0..100_000usize, byte: u8, recycle: bool, zstd: bool
    ) {
        let all = sample();
        let codec = if zstd { Codec::Zstd } else { Codec::None };
        let mut bytes = records(options(recycle, codec), &all);
        let at = 11 + at % (bytes.len() - 11);
        bytes[at] = byte;
        let (found, _, _) = read_all(&bytes);
        prop_assert!(found.iter().all(|r| all.contains(r)));
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0..12u8) {
        let mut bytes = bytes;
        if let Some(b) = bytes.get_mut(6) { *b = kind; }
        let _ = read_all(&bytes);
    }
}
