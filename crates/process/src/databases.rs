//! The databases that are open in this process, without keeping them open.
//!
//! A report borrows them for the milliseconds that it takes to write its text, and not while the
//! text is sent. Who closes a database first takes it off the list ([`OpenDatabase::unlist`])
//! and waits for a report under way, for [`PATIENCE`] at most: after that the objects of the
//! application that a database holds (comparators, listeners) are given up by the application's
//! thread and not by the server's. While it is listed, a database keeps its slowest operations.
//! Thread-safety: any thread.

use esker::observe::DbRef;
use esker::{Db, OperationSampling};
use esker_sync::atomic::{AtomicU64, Ordering::Relaxed};
use esker_sync::{Arc, Condvar, Mutex, Rank};
use std::time::Duration;

/// Longest that a close waits for a report under way.
const PATIENCE: Duration = Duration::from_millis(100);

/// An operation that takes longer gets a line in the LOG.
const SLOW: Duration = Duration::from_secs(1);

/// The databases of a process.
#[derive(Debug)]
pub struct Databases {
    state: Mutex<State>,
    report_ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    open: Vec<ListedDatabase>,
    last: u64,
    reports: usize,
}

#[derive(Debug)]
struct ListedDatabase {
    number: u64,
    db: DbRef,
    _sampling: OperationSampling,
}

/// A database's place on the list. Give it up before the database is closed.
#[derive(Debug)]
#[must_use]
pub struct OpenDatabase {
    databases: Option<Arc<Databases>>,
    process: u32,
    /// 0 once it is given up.
    number: AtomicU64,
}

impl Databases {
    /// None yet.
    pub fn new() -> Arc<Databases> {
        Arc::new(Databases {
            state: Mutex::new(Rank::LEAF, State::default()),
            report_ended: Condvar::new(),
        })
    }

    /// Puts `db` on the list.
    pub fn add(self: &Arc<Self>, db: &Db) -> OpenDatabase {
        let reference = db.downgrade();
        let sampling = db.sample_operations(Some(SLOW));
        let mut state = self.state.lock();
        state.last += 1;
        let number = state.last;
        state.open.push(ListedDatabase {
            number,
            db: reference,
            _sampling: sampling,
        });
        OpenDatabase {
            databases: Some(Arc::clone(self)),
            process: std::process::id(),
            number: AtomicU64::new(number),
        }
    }

    /// Runs `body` with the databases that are open, in the order in which they were opened.
    pub fn with_open<R>(&self, body: impl FnOnce(&[Db]) -> R) -> R {
        let mut state = self.state.lock();
        state.reports += 1;
        let open: Vec<DbRef> = state.open.iter().map(|listed| listed.db.clone()).collect();
        drop(state);
        let _guard = ReportGuard(self);
        let mut open: Vec<Db> = open.iter().filter_map(Db::of).collect();
        open.retain(|db| !db.is_closed());
        // Dropped before `_guard`.
        let open = open;
        body(&open)
    }
}

/// Tells that a report has ended, also if it panicked.
struct ReportGuard<'a>(&'a Databases);

impl Drop for ReportGuard<'_> {
    fn drop(&mut self) {
        self.0.state.lock().reports -= 1;
        self.0.report_ended.notify_all();
    }
}

impl OpenDatabase {
    /// No place on a list.
    pub const fn unlisted() -> OpenDatabase {
        OpenDatabase {
            databases: None,
            process: 0,
            number: AtomicU64::new(0),
        }
    }

    /// Takes the database off the list, and waits for a report under way.
    pub fn unlist(&self) {
        let Some(databases) = &self.databases else {
            return;
        };
        let number = self.number.swap(0, Relaxed);
        // A child after a fork has no server; a lock that the parent's held stays taken there.
        if number == 0 || self.process != std::process::id() {
            return;
        }
        let mut state = databases.state.lock();
        let removed = state.open.iter().position(|listed| listed.number == number);
        let removed = removed.map(|at| state.open.remove(at));
        if state.reports > 0 {
            databases.report_ended.wait_for(&mut state, PATIENCE);
        }
        drop(state);
        drop(removed);
    }
}

impl Drop for OpenDatabase {
    fn drop(&mut self) {
        self.unlist();
    }
}
