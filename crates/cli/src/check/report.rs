//! Findings of a check, collected from all threads.

use crate::say;
use crate::text::one_line;
use esker_status::Error;
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// Something is wrong.
    Error,
    /// Odd, or not checked.
    Warning,
    /// Worth a line.
    Note,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// Something that was found.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    severity: Severity,
    error: Error,
}

impl Finding {
    /// One line.
    pub(super) fn text(&self) -> String {
        let text = match self.severity {
            Severity::Note => {
                let file = self.error.file().map(|f| format!(": {}", f.display()));
                format!("{}{}", self.error.message(), file.unwrap_or_default())
            }
            _ => self.error.to_string(),
        };
        format!("{}: {}", self.severity.name(), one_line(&text))
    }

    /// One object.
    pub(super) fn json(&self) -> Value {
        let e = &self.error;
        json!({"type": "finding", "severity": self.severity.name(), "kind": format!("{:?}", e.kind()),
            "message": e.message(), "file": e.file().map(|f| f.to_string_lossy()),
            "offset": e.offset(), "hint": e.hint()})
    }
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) families: u64,
    pub(super) edits: u64,
    pub(super) tables: u64,
    pub(super) table_bytes: u64,
    pub(super) blocks: u64,
    pub(super) entries: u64,
    pub(super) logs: u64,
    pub(super) batches: u64,
    pub(super) blob_files: u64,
    pub(super) blobs: u64,
    pub(super) other_bytes: u64,
}

/// Findings and totals; filled from any thread.
#[derive(Debug, Default)]
pub(super) struct Report(Mutex<(Vec<Finding>, Totals)>);

impl Report {
    fn lock(&self) -> MutexGuard<'_, (Vec<Finding>, Totals)> {
        // A list is whole after every push, whatever happened to the pusher.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, severity: Severity, error: Error) {
        let error = say::explained(error);
        self.lock().0.push(Finding { severity, error });
    }

    /// Something is wrong. What merely cannot be read by this build is a warning.
    pub(super) fn error(&self, e: Error) {
        let severity = match e.kind() {
            esker_status::ErrorKind::NotSupported => Severity::Warning,
            _ => Severity::Error,
        };
        self.push(severity, e);
    }

    /// Something is wrong, and may have been said already.
    pub(super) fn error_once(&self, e: Error) {
        let is_known = |f: &Finding| f.error.message() == e.message() && f.error.file() == e.file();
        let is_said = self.lock().0.iter().any(is_known);
        if !is_said {
            self.error(e);
        }
    }

    /// Something is odd, or was not checked.
    pub(super) fn warning(&self, e: Error) {
        self.push(Severity::Warning, e);
    }

    /// Something worth a line.
    pub(super) fn note(&self, e: Error) {
        self.push(Severity::Note, e);
    }

    /// Adds to the totals.
    pub(super) fn add(&self, by: Totals) {
        let t = &mut self.lock().1;
        for (total, more) in [
            (&mut t.families, by.families),
            (&mut t.edits, by.edits),
            (&mut t.tables, by.tables),
            (&mut t.table_bytes, by.table_bytes),
            (&mut t.blocks, by.blocks),
            (&mut t.entries, by.entries),
            (&mut t.logs, by.logs),
            (&mut t.batches, by.batches),
            (&mut t.blob_files, by.blob_files),
            (&mut t.blobs, by.blobs),
            (&mut t.other_bytes, by.other_bytes),
        ] {
            *total = total.saturating_add(more);
        }
    }

    /// How much was looked at.
    pub(super) fn totals(&self) -> Totals {
        self.lock().1
    }

    fn count(&self, severity: Severity) -> u64 {
        self.lock()
            .0
            .iter()
            .filter(|f| f.severity == severity)
            .count() as u64
    }

    /// Errors so far.
    pub(super) fn errors(&self) -> u64 {
        self.count(Severity::Error)
    }

    /// Warnings so far.
    pub(super) fn warnings(&self) -> u64 {
        self.count(Severity::Warning)
    }

    /// All findings, the worst first, then by file and offset.
    pub(super) fn sorted(&self) -> Vec<Finding> {
        let mut all = self.lock().0.clone();
        all.sort_by(|a, b| {
            let key = |f: &Finding| {
                (
                    f.severity,
                    f.error.file().map(ToOwned::to_owned),
                    f.error.offset(),
                )
            };
            key(a).cmp(&key(b))
        });
        all
    }
}
