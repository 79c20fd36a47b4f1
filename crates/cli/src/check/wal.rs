//! Checks of write-ahead logs: every record, every batch, sequences, and the logs that must be
//! there.
//!
//! A torn record at the end of a log is what a crash leaves and is a warning; so is damage in a log
//! whose data is in tables already.

use super::report::{Report, Totals};
use crate::directory::{Directory, FileAt};
use crate::fold::Fold;
use esker::{Db, Options};
use esker_env::{FileSystem, ReadOptions};
use esker_files::log::{LogReader, LogReaderOptions, ReadOutcome};
use esker_format::batch::BatchReader;
use esker_format::file_name::{FileKind, log_name};
use esker_format::{FileNo, Seq};
use esker_status::{Error, Result};

/// Checks the logs of a database.
pub(super) fn check(dir: &Directory, fold: &Fold, report: &Report) {
    for (number, synced) in &fold.tracked_logs {
        if *number < fold.min_log() {
            continue;
        }
        let path = dir.path.join(log_name(*number));
        match dir.find(FileKind::Wal, *number) {
            None => {
                let e = Error::corruption("a log that the MANIFEST tracks is missing");
                report.error(e.with_file(path));
            }
            Some(f) if synced.is_some_and(|synced| f.len < synced) => {
                let synced = synced.unwrap_or_default();
                let what = format!("{} bytes of the log are left of {synced} synced", f.len);
                report.error(Error::corruption(what).with_file(&f.path));
            }
            Some(_) => {}
        }
    }
    logs(dir, fold.min_log(), report);
    // What is wrong with the MANIFEST was said already.
    if fold.problems.is_empty() {
        examine(dir, report);
    }
}

/// Reports what opening the database for writing would say of its logs.
fn examine(dir: &Directory, report: &Report) {
    let mut options = Options::new();
    let found = dir.place_of_logs().and_then(|place| {
        options.db.wal_dir = place;
        Db::verify_logs(&dir.path, &options)
    });
    match found {
        Ok(found) => {
            for loss in found.losses {
                let what = format!("opening goes on without it: {loss}");
                report.warning(Error::corruption(what));
            }
        }
        Err(e) => report.error_once(e),
    }
}

/// Checks logs when nothing says which of them count.
pub(super) fn check_alone(dir: &Directory, report: &Report) {
    logs(dir, FileNo(0), report);
}

fn logs(dir: &Directory, min: FileNo, report: &Report) {
    for file in dir.of(FileKind::Wal) {
        let live = file.number >= min;
        // `examine` compares logs with each other, and speaks as opening does.
        let mut state = WalPosition { next: Seq::ZERO };
        if let Err(e) = log(dir, file, live, &mut state, report) {
            report.error(e.with_file(&file.path));
        }
    }
}

/// The state between two batches.
struct WalPosition {
    /// The smallest sequence that the next batch may have.
    next: Seq,
}

fn log(
    dir: &Directory,
    file: &FileAt,
    live: bool,
    state: &mut WalPosition,
    report: &Report,
) -> Result<()> {
    let handle = dir.fs.open_read(&file.path, ReadOptions::default())?;
    let mut reader = LogReader::new(handle, LogReaderOptions::new(file.number));
    let mut totals = Totals {
        logs: 1,
        ..Totals::default()
    };
    loop {
        match reader.next()? {
            ReadOutcome::Record { bytes, offset } => {
                totals.batches += 1;
                if let Err(e) = batch(bytes, state) {
                    say(report, live, e.with_file(&file.path).with_offset(offset));
                }
            }
            ReadOutcome::TimestampSizes(_) | ReadOutcome::Predecessor(_) => {}
            ReadOutcome::End | ReadOutcome::OldRecord { .. } => break,
            ReadOutcome::TornTail(d) => {
                report.warning(
                    d.to_error(&file.path)
                        .with_hint("a crash leaves this; it is dropped"),
                );
                break;
            }
            ReadOutcome::Damaged(d) => {
                // In a reused file, bad bytes may be what is left of the older log.
                let e = d.to_error(&file.path);
                let recycled = reader.is_recycled();
                say(report, live && !recycled, e);
                if recycled {
                    break;
                }
            }
        }
    }
    report.add(totals);
    Ok(())
}

fn say(report: &Report, is_error: bool, e: Error) {
    if is_error {
        report.error(e);
    } else {
        report.warning(e);
    }
}

fn batch(bytes: &[u8], state: &mut WalPosition) -> Result<()> {
    let batch = BatchReader::parse(bytes)?;
    batch.verify()?;
    let seq = batch.seq();
    if seq > Seq::MAX {
        return Err(Error::corruption(format!(
            "sequence {seq} does not fit 56 bits"
        )));
    }
    if seq < state.next {
        return Err(Error::corruption(format!(
            "sequence {seq} comes after a batch that ends at {}",
            state.next
        )));
    }
    // Batches without sequences of their own (prepared, committed) may repeat the next one.
    state.next = seq;
    Ok(())
}
