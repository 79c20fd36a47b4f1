//! Logs whose records are sound by their checksums and hold batches that are not: refused in every
//! mode, as RocksDB does, and taken as far as they can be read by a repair.

use esker::options::WalRecoveryMode;
use esker::{Db, Error, ErrorKind, Options, Result, WalDecision, WalFilter, WriteBatch};
use esker_codec::checksum::{crc32c, mask};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MODES: [WalRecoveryMode; 4] = [
    WalRecoveryMode::TolerateCorruptedTailRecords,
    WalRecoveryMode::AbsoluteConsistency,
    WalRecoveryMode::PointInTimeRecovery,
    WalRecoveryMode::SkipAnyCorruptedRecords,
];
const BLOCK: usize = 32 << 10;
/// Where a batch has its count, and where its first record begins.
const COUNT: usize = 8;
const RECORDS: usize = 12;

/// How the batch of key `k2` is changed, and what is said of it.
type Change = (&'static str, fn(&mut [u8]), &'static str);

const CHANGES: [Change; 4] = [
    ("too many", |b| b[COUNT] = 2, "WriteBatch has wrong count"),
    ("too few", |b| b[COUNT] = 0, "WriteBatch has wrong count"),
    ("unknown tag", |b| b[RECORDS] = 0x77, "unknown tag"),
    ("cut value", |b| b[RECORDS + 4] = 99, ""),
];

fn options(mode: WalRecoveryMode) -> Options {
    let mut options = Options::new().create_if_missing(true);
    options.db.wal_recovery_mode = mode;
    options.db.avoid_flush_during_shutdown = true;
    options
}

fn log_of(dir: &Path) -> PathBuf {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let logs = entries.map(|e| e.expect("an entry").path());
    let has_some = |p: &PathBuf| std::fs::read(p).expect("a file").iter().any(|b| *b != 0);
    let logs = logs.filter(|p| p.extension().is_some_and(|e| e == "log"));
    let mut logs: Vec<_> = logs.filter(has_some).collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    logs.remove(0)
}

/// Changes the payload of the first physical record that has `wanted`, and makes its checksum
/// right. Where it begins.
fn change(log: &Path, wanted: &[u8], with: fn(&mut [u8])) -> u64 {
    let mut bytes = std::fs::read(log).expect("a log");
    let mut at = 0;
    loop {
        if BLOCK - at % BLOCK < 7 {
            at = at.next_multiple_of(BLOCK);
        }
        let len = usize::from(u16::from_le_bytes([bytes[at + 4], bytes[at + 5]]));
        let end = at + 7 + len;
        if bytes[at + 7..end]
            .windows(wanted.len())
            .any(|w| w == wanted)
        {
            with(&mut bytes[at + 7..end]);
            let sum = mask(crc32c(&bytes[at + 6..end]));
            bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
            std::fs::write(log, &bytes).expect("a log");
            return at as u64;
        }
        at = end;
    }
}

/// A closed database with `k0` to `k4` in its log, of which `with` changes the batch of `k2`.
fn damaged(dir: &Path, value: &str, with: fn(&mut [u8])) -> Result<(PathBuf, u64)> {
    let db = Db::open(dir, options(MODES[2]))?;
    for i in 0..5 {
        db.put(format!("k{i}"), value)?;
    }
    db.close()?;
    let log = log_of(dir);
    let offset = change(&log, b"\x02k2", with);
    Ok((log, offset))
}

#[track_caller]
fn is_refused<T>(opened: Result<T>, (log, offset): &(PathBuf, u64), said: &str, what: &str) {
    let e = opened.err().unwrap_or_else(|| panic!("{what}: it opens"));
    let of = |e: &Error| (e.kind(), e.file().map(Path::to_path_buf), e.offset());
    assert_eq!(
        of(&e),
        (ErrorKind::Corruption, Some(log.clone()), Some(*offset)),
        "{what}: {e}"
    );
    assert!(e.message().contains(said), "{what}: {e}");
    assert!(
        e.hint().is_some_and(|h| h.contains("esker repair")),
        "{what}: {e}"
    );
}

#[test]
fn a_batch_that_is_not_sound_is_refused_in_every_mode() -> Result<()> {
    for (name, with, said) in CHANGES {
        let dir = tempfile::tempdir().expect("a directory");
        let place = damaged(dir.path(), "value", with)?;
        for mode in MODES {
            let what = format!("{name}, {mode:?}");
            let (options, second) = (options(mode), dir.path().join("second"));
            is_refused(Db::open(dir.path(), options.clone()), &place, said, &what);
            let opened = Db::open_read_only(dir.path(), options.clone());
            is_refused(opened, &place, said, &format!("{what}, read-only"));
            let opened = Db::open_secondary(dir.path(), second, options);
            is_refused(opened, &place, said, &format!("{what}, secondary"));
        }
    }
    Ok(())
}

#[test]
fn a_repair_takes_what_is_around_a_bad_batch() -> Result<()> {
    for (name, with, _) in CHANGES {
        let dir = tempfile::tempdir().expect("a directory");
        damaged(dir.path(), "value", with)?;
        let report = Db::repair(dir.path(), &options(MODES[2]))?;
        assert!(!report.is_sound, "{name}");
        assert!(!report.losses.is_empty(), "{name}: {report:?}");
        let db = Db::open(dir.path(), options(MODES[1]))?;
        let only_count = name.starts_with("too");
        for i in 0..5 {
            let is_there = db.get(format!("k{i}"))?.is_some();
            assert_eq!(is_there, i != 2 || only_count, "{name}, k{i}");
        }
        db.close()?;
    }
    Ok(())
}

/// Two or more fragments without a log's number: after a power cut one of them may be an older
/// file's.
#[test]
fn a_bad_batch_in_pieces_is_as_a_torn_record_where_a_power_cut_makes_one() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let value = "v".repeat(40 << 10);
    let place = damaged(dir.path(), &value, |b| b[COUNT] = 2)?;
    is_refused(
        Db::open_read_only(dir.path(), options(MODES[1])),
        &place,
        "wrong count",
        "absolute",
    );
    let db = Db::open_read_only(dir.path(), options(MODES[2]))?;
    assert!(db.get("k1")?.is_some(), "what was before");
    assert!(
        db.get("k2")?.is_none() && db.get("k3")?.is_none(),
        "a prefix"
    );
    Ok(())
}

/// Takes the batch of `k2` for damaged.
struct Doubts;

impl WalFilter for Doubts {
    fn name(&self) -> &str {
        "Doubts"
    }

    fn record(&self, _: u64, _: &str, batch: &WriteBatch) -> WalDecision {
        if batch.data().windows(2).any(|w| w == b"k2") {
            WalDecision::Corrupted
        } else {
            WalDecision::Continue
        }
    }
}

/// Opening failed in every mode; RocksDB's point-in-time recovery opens with the rows before it.
#[test]
fn a_filter_that_calls_a_record_damaged_is_believed_as_the_mode_says() -> Result<()> {
    for mode in MODES {
        let home = tempfile::tempdir().expect("a directory");
        let db = Db::open(home.path(), options(mode))?;
        for key in ["k1", "k2", "k3"] {
            db.put(key, "v")?;
        }
        db.close()?;
        drop(db);
        let mut doubting = options(mode);
        doubting.db.wal_filter = Some(Arc::new(Doubts));
        let opened = Db::open(home.path(), doubting);
        let found = |db: &Db| -> Result<Vec<bool>> {
            let keys = ["k1", "k2", "k3"].into_iter();
            keys.map(|key| Ok(db.get(key)?.is_some())).collect()
        };
        match mode {
            WalRecoveryMode::PointInTimeRecovery => {
                assert_eq!(found(&opened?)?, [true, false, false]);
            }
            WalRecoveryMode::SkipAnyCorruptedRecords => {
                assert_eq!(found(&opened?)?, [true, false, true]);
            }
            _ => {
                let error = opened.expect_err("it is refused");
                assert_eq!(error.kind(), ErrorKind::Corruption, "{mode:?}: {error}");
            }
        }
    }
    Ok(())
}
