//! Targets for write-ahead logs and MANIFESTs: whole files, whose records are changed inside their
//! frames as well.

use super::formats::{change_batch, every_field, every_record};
use super::{LARGE, Seed, Steps, Target, same_again};
use crate::input::{Cut, FileOf};
use crate::mutate::{self, Source};
use crate::repair;
use esker_codec::Codec;
use esker_files::log::{LogReader, LogReaderOptions, LogWriterOptions, ReadOutcome, ReplayStep};
use esker_files::manifest::ManifestReader;
use esker_format::FileNo;
use esker_format::edit::VersionEdit;
use esker_format::log::RecoveryMode;

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "log",
        about: "write-ahead logs: both framings, compressed, in all recovery modes",
        run: log,
        seeds: logs,
        change: change_log,
        memory: LARGE,
    },
    Target {
        name: "manifest",
        about: "MANIFESTs: records, groups, torn tails",
        run: manifest,
        seeds: manifests,
        change: change_manifest,
        memory: LARGE,
    },
];

/// The number that the logs of the corpus carry.
pub(super) const NUMBER: FileNo = FileNo(7);

const MODES: [RecoveryMode; 4] = [
    RecoveryMode::TolerateCorruptedTailRecords,
    RecoveryMode::AbsoluteConsistency,
    RecoveryMode::PointInTimeRecovery,
    RecoveryMode::SkipAnyCorruptedRecords,
];

/// Seeds begin with a byte that says how a changed log is framed: 1 recyclable, 2 compressed.
fn framing(byte: u8) -> LogWriterOptions {
    LogWriterOptions {
        recycle: (byte & 1 != 0).then_some(NUMBER),
        compression: if byte & 2 != 0 {
            Codec::Zstd
        } else {
            Codec::None
        },
    }
}

fn logs() -> Vec<Seed> {
    let batch = every_record().expect("our own batch").into_bytes();
    let records = [batch.clone(), vec![b'x'; 300], Vec::new(), batch];
    let mut long = records.to_vec();
    long.push((0..70_000u32).map(|i| (i % 5) as u8).collect());
    long.push(b"after the long one".to_vec());
    let log = |byte: u8, records: &[Vec<u8>]| {
        let mut out = vec![byte];
        out.extend(repair::framed(records, framing(byte)));
        out
    };
    vec![
        ("plain", log(0, &records)),
        ("recycled", log(1, &records)),
        ("compressed", log(2, &long)),
        ("compressed-recycled", log(3, &records)),
    ]
}

fn change_log(input: &mut Vec<u8>, source: &mut Source<'_>) {
    let byte = input.first().copied().unwrap_or(0);
    let mut file = input.split_off(input.len().min(1));
    match source.rng.below(3) {
        0 => mutate::bytes(&mut file, source),
        1 => {
            mutate::bytes(&mut file, source);
            repair::log(&mut file);
        }
        _ => file = change_records(&file, NUMBER, framing(byte), source, change_batch),
    }
    *input = vec![byte];
    input.extend(file);
}

/// Returns the file with one of its records changed, and framed again.
pub(super) fn change_records(
    file: &[u8],
    number: FileNo,
    options: LogWriterOptions,
    source: &mut Source<'_>,
    change: fn(&mut Vec<u8>, &mut Source<'_>),
) -> Vec<u8> {
    let mut records = repair::records(file, number);
    if records.is_empty() {
        records.push(Vec::new());
    }
    let at = source.rng.index(records.len());
    let mut none = Source {
        rng: source.rng.fork(),
        others: &[],
    };
    match source.rng.below(8) {
        0 => {
            records.remove(at);
        }
        1 => records.insert(at, records[at].clone()),
        2 => {
            let other = source.rng.index(records.len());
            records.swap(at, other);
        }
        _ => change(&mut records[at], &mut none),
    }
    repair::framed(&records, options)
}

fn log(input: &[u8]) {
    let mut cut = Cut(input);
    cut.byte();
    let options = LogReaderOptions {
        max_record_len: 16 << 20,
        ..LogReaderOptions::new(NUMBER)
    };
    let mut reader = LogReader::new(FileOf::of(cut.0), options);
    let mut steps = Steps::at_most(cut.0.len() + 2);
    let mut records = Vec::new();
    let mut sound = true;
    while let Ok(outcome) = reader.next() {
        steps.step();
        match outcome {
            ReadOutcome::Record { bytes, offset } => {
                assert!(offset <= cut.0.len() as u64);
                if records.len() < 1000 {
                    records.push(bytes.to_vec());
                }
            }
            ReadOutcome::Damaged(_) => sound = false,
            ReadOutcome::End | ReadOutcome::TornTail(_) | ReadOutcome::OldRecord { .. } => break,
            ReadOutcome::TimestampSizes(_) | ReadOutcome::Predecessor(_) => {}
        }
    }
    assert!(reader.valid_end() <= cut.0.len() as u64);
    if sound && records.len() < 1000 {
        let again = repair::records(&repair::framed(&records, framing(0)), NUMBER);
        assert!(again == records, "records written again are others");
    }
    for mode in MODES {
        let mut reader = LogReader::new(FileOf::of(cut.0), options);
        let mut steps = Steps::at_most(cut.0.len() + 2);
        loop {
            steps.step();
            match reader.replay(mode) {
                Err(_)
                | Ok(ReplayStep::End(_) | ReplayStep::Stop(_) | ReplayStep::RecycledTail(_)) => {
                    break;
                }
                Ok(ReplayStep::Skipped(damage)) => {
                    assert!(damage.bytes_dropped <= cut.0.len() as u64)
                }
                Ok(_) => {}
            }
        }
        let position = reader.position();
        reader.resume(position);
        let _ = reader.replay(mode);
    }
}

fn manifests() -> Vec<Seed> {
    let mut first = VersionEdit {
        db_id: Some("id".into()),
        ..VersionEdit::default()
    };
    first.comparator = Some("leveldb.BytewiseComparator".into());
    let mut grouped = every_field();
    grouped.remaining_in_group = Some(1);
    let edits = [first, grouped, every_field()];
    let records: Vec<Vec<u8>> = edits.iter().map(VersionEdit::encode).collect();
    let whole = repair::framed(&records, LogWriterOptions::default());
    let mut torn = whole.clone();
    let keep = torn.len() - 60;
    torn[keep..].fill(0);
    vec![("group", whole), ("torn", torn)]
}

pub(super) fn change_manifest(input: &mut Vec<u8>, source: &mut Source<'_>) {
    match source.rng.below(3) {
        0 => mutate::bytes(input, source),
        1 => {
            mutate::bytes(input, source);
            repair::log(input);
        }
        _ => {
            let plain = LogWriterOptions::default();
            *input = change_records(input, FileNo(0), plain, source, mutate::bytes);
        }
    }
}

fn manifest(input: &[u8]) {
    let mut reader = ManifestReader::over(FileOf::of(input));
    let mut steps = Steps::at_most(input.len() + 2);
    while let Ok(Some(group)) = reader.next_group() {
        steps.step();
        assert!(!group.edits.is_empty());
        for edit in &group.edits {
            same_again(edit, VersionEdit::decode(&edit.encode()));
        }
    }
    assert!(reader.valid_end() <= input.len() as u64);
    reader.resume();
    let _ = reader.next_group();
}
