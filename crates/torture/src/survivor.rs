//! Opening and checking a database after a kill or a power cut.
//!
//! Used by one thread on a directory that no process has open.

use crate::check::{Violation, ViolationKind, check, violation};
use crate::load::{Counts, THREADS, last_key, read_number};
use crate::process::ProcessReport;
use crate::recipe::Recipe;
use esker::Db;
use esker_txn::{TransactionDb, TransactionDbOptions};
use std::path::Path;

/// How the database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenMethod {
    /// The logs stay for the next process to recover.
    ReadOnly,
    /// As an application would; prepared transactions are committed, or else rolled back.
    Writing {
        /// True if prepared transactions are committed.
        commit: bool,
    },
}

fn opened<T>(done: esker::Result<T>) -> Result<T, Violation> {
    done.or_else(|e| violation(ViolationKind::Unopenable, e.to_string()))
}

fn works<T>(what: &str, done: esker::Result<T>) -> Result<T, Violation> {
    done.or_else(|e| violation(ViolationKind::Wrong, format!("{what}: {e}")))
}

/// Opens the database at `dir` and compares it with what is sure; the last operation of each
/// thread.
pub(crate) fn judge(
    dir: &Path,
    recipe: Recipe,
    heard: &ProcessReport,
    how: OpenMethod,
) -> Result<Counts, Violation> {
    if !dir.join("CURRENT").exists() {
        return match heard.sure {
            [0, 0, 0, 0] => Ok([0; THREADS]),
            _ => violation(ViolationKind::Unopenable, "there is no CURRENT"),
        };
    }
    let (options, families) = opened(recipe.options())?;
    let db = match how {
        OpenMethod::ReadOnly => opened(Db::open_families_read_only(dir, options, families))
            .or_else(|e| created_in_part(dir, recipe, heard, e))?,
        OpenMethod::Writing { commit } if recipe.two_phase => {
            let transactions = TransactionDbOptions::default();
            let db = TransactionDb::open_families(dir, options, families, transactions);
            let db = opened(db)?;
            decide(&db, heard, commit)?;
            db.base().clone()
        }
        OpenMethod::Writing { .. } => opened(Db::open_families(dir, options, families))?,
    };
    let last = check(&db, &heard.sure)?;
    if how == OpenMethod::ReadOnly {
        return Ok(last);
    }
    works("close", db.close())?;
    Ok(last)
}

/// A process that died before it had made all families leaves a database in which a reader does not
/// find them: the next writer makes them.
fn created_in_part(
    dir: &Path,
    recipe: Recipe,
    heard: &ProcessReport,
    e: Violation,
) -> Result<Db, Violation> {
    if heard.sure != [0; THREADS] {
        return Err(e);
    }
    let (options, families) = opened(recipe.options())?;
    opened(Db::open_families(dir, options, families))
}

/// Decides the transactions that were prepared; each that was said to be prepared is there, or was
/// committed.
fn decide(db: &TransactionDb, heard: &ProcessReport, commit: bool) -> Result<(), Violation> {
    let prepared = works("prepared transactions", db.prepared_transactions())?;
    let mut found: Counts = [0; THREADS];
    for mut txn in prepared {
        let name = String::from_utf8_lossy(txn.name()).into_owned();
        let numbers: Vec<u64> = name.split(' ').filter_map(|w| w.parse().ok()).collect();
        let [thread, n] = numbers[..] else {
            return violation(ViolationKind::Wrong, format!("a transaction called {name}"));
        };
        let thread = usize::try_from(thread).unwrap_or(THREADS);
        let last = works("get", read_number(db.base(), &last_key(thread)))?;
        if thread >= THREADS || n != last + 1 {
            let text = format!("transaction {name} is prepared after operation {last}");
            return violation(ViolationKind::Wrong, text);
        }
        found[thread] = n;
        let done = if commit { txn.commit() } else { txn.rollback() };
        works("decide a transaction", done)?;
    }
    // What is found now is expected after the next cut, which may come before a recovery makes it
    // sure.
    works("sync", db.base().flush_wal(true))?;
    for (t, held) in heard.held.iter().enumerate() {
        let last = works("get", read_number(db.base(), &last_key(t)))?;
        if found[t] < *held && last < *held {
            let text = format!("prepared transaction {held} of thread {t} is missing after {last}");
            return violation(ViolationKind::Lost, text);
        }
    }
    Ok(())
}
