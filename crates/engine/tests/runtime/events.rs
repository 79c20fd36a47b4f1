//! Listeners hear of everything, in order and with the figures; the LOG has it as lines of events.

use esker::observe::{
    BackgroundErrorInfo, CompactionInfo, EventListener, FlushInfo, FlushReason, MemtableInfo,
    RecoveryInfo, StallCondition, StallInfo, TableFileCreation, TableFileDeletion,
};
use esker::{Db, Options, Result};
use std::sync::{Arc, Mutex};

/// Writes down what it hears.
#[derive(Default)]
pub(crate) struct Recorder {
    lines: Mutex<Vec<String>>,
    flushes: Mutex<Vec<FlushInfo>>,
    compactions: Mutex<Vec<CompactionInfo>>,
    stalls: Mutex<Vec<StallInfo>>,
}

impl Recorder {
    fn note(&self, line: String) {
        self.lines
            .lock()
            .expect("no panic under the lock")
            .push(line);
    }

    pub(crate) fn text(&self) -> String {
        self.lines
            .lock()
            .expect("no panic under the lock")
            .join("\n")
    }

    pub(crate) fn flush_reasons(&self) -> Vec<(String, FlushReason)> {
        let flushes = self.flushes.lock().expect("no panic under the lock");
        flushes
            .iter()
            .map(|f| (f.family.clone(), f.reason))
            .collect()
    }
}

impl EventListener for Recorder {
    fn on_flush_begin(&self, info: &FlushInfo) {
        self.note(format!("flush {} begins", info.job));
    }
    fn on_flush_completed(&self, info: &FlushInfo) {
        self.note(format!("flush {} ends", info.job));
        self.flushes
            .lock()
            .expect("no panic under the lock")
            .push(info.clone());
    }
    fn on_compaction_begin(&self, info: &CompactionInfo) {
        self.note(format!("compaction {} begins", info.job));
    }
    fn on_compaction_completed(&self, info: &CompactionInfo) {
        self.note(format!("compaction {} ends", info.job));
        self.compactions
            .lock()
            .expect("no panic under the lock")
            .push(info.clone());
    }
    fn on_table_file_created(&self, info: &TableFileCreation) {
        assert!(info.error.is_some() || info.file_bytes > 0);
        self.note(format!(
            "{} {} made {}",
            info.reason.text(),
            info.job,
            info.file_no
        ));
    }
    fn on_table_file_deleted(&self, info: &TableFileDeletion) {
        self.note(format!("deleted {}", info.file_no));
    }
    fn on_memtable_sealed(&self, info: &MemtableInfo) {
        assert!(info.entries > 0 && info.bytes > 0);
        self.note("sealed".to_owned());
    }
    fn on_stall_conditions_changed(&self, info: &StallInfo) {
        self.stalls
            .lock()
            .expect("no panic under the lock")
            .push(info.clone());
    }
    fn on_background_error(&self, info: &BackgroundErrorInfo) {
        self.note(format!("error ({}): {}", info.reason.text(), info.error));
    }
    fn on_error_recovery_begin(&self, info: &RecoveryInfo) {
        self.note(format!("recovery begins ({})", info.attempts));
    }
    fn on_error_recovery_end(&self, info: &RecoveryInfo) {
        let how = info
            .outcome
            .as_ref()
            .map_or_else(|| "ok".to_owned(), ToString::to_string);
        self.note(format!("recovery ends: {how}"));
    }
}

/// Where each of `parts` stands in `text`, which must be in this order.
fn in_order(text: &str, parts: &[&str]) {
    let mut at = 0;
    for part in parts {
        let found = text[at..].find(part);
        at += found.unwrap_or_else(|| panic!("{part:?} does not follow in\n{text}"));
    }
}

#[test]
fn jobs_tell_listeners_and_the_log() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let recorder = Arc::new(Recorder::default());
    let mut options = Options::new().create_if_missing(true).set_all(
        "level0_file_num_compaction_trigger=2;level0_slowdown_writes_trigger=2;level0_stop_writes_trigger=99",
    )?;
    options.db.listeners.push(recorder.clone());
    let db = Db::open(dir.path(), options)?;
    for round in 0..3u32 {
        for n in 0..1_000u32 {
            db.put(n.to_be_bytes(), (n + round).to_be_bytes())?;
        }
        db.flush()?;
        db.wait_for_compaction()?;
    }
    db.compact_range(None, None)?;
    db.close()?;

    let text = recorder.text();
    let flushes = recorder
        .flushes
        .lock()
        .expect("no panic under the lock")
        .clone();
    assert!(flushes.len() >= 3);
    for f in &flushes {
        let job = f.job;
        let number = f.file_no.expect("it made a table");
        in_order(
            &text,
            &[
                "sealed",
                &format!("flush {job} begins"),
                &format!("flush {job} made {number}"),
                &format!("flush {job} ends"),
            ],
        );
        assert_eq!(
            (f.reason, f.memtables, f.entries),
            (FlushReason::ManualFlush, 1, 1_000)
        );
        assert!(f.file_bytes > 0 && f.smallest_seq < f.largest_seq && f.elapsed_us > 0);
    }
    let compactions = recorder
        .compactions
        .lock()
        .expect("no panic under the lock")
        .clone();
    let merged = compactions
        .iter()
        .find(|c| !c.is_trivial_move)
        .expect("tables were merged");
    assert!(
        merged.error.is_none()
            && merged.input_files.len() >= 2
            && merged.input_bytes > merged.output_bytes
    );
    assert_eq!(
        (
            merged.input_entries,
            merged.output_entries,
            merged.subcompactions
        ),
        (2_000, 1_000, 1)
    );
    let job = merged.job;
    let made = format!("compaction {job} made {}", merged.output_files[0]);
    let gone = format!("deleted {}", merged.input_files[0]);
    in_order(
        &text,
        &[
            &format!("compaction {job} begins"),
            &made,
            &format!("compaction {job} ends"),
            &gone,
        ],
    );
    let stalls = recorder
        .stalls
        .lock()
        .expect("no panic under the lock")
        .clone();
    assert!(
        stalls
            .iter()
            .any(|s| (s.previous, s.current) == (StallCondition::Normal, StallCondition::Delayed)),
        "{stalls:?}"
    );
    assert!(
        stalls
            .iter()
            .any(|s| (s.previous, s.current) == (StallCondition::Delayed, StallCondition::Normal)),
        "{stalls:?}"
    );

    let log = std::fs::read_to_string(dir.path().join("LOG")).expect("a LOG");
    for event in [
        "recovery_started",
        "recovery_finished",
        "flush_started",
        "flush_finished",
        "table_file_creation",
        "compaction_started",
        "compaction_finished",
        "table_file_deletion",
    ] {
        let part = format!("\"event\": \"{event}\"");
        assert!(
            log.lines()
                .any(|l| l.contains("EVENT_LOG_v1 {") && l.contains(&part)),
            "no {event} in\n{log}"
        );
    }
    Ok(())
}
