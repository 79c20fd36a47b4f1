//! The databases that are open in this process, for lines that belong into every LOG.

use esker::Db;
use esker::options::InfoLogLevel;
use esker_sync::{Mutex, Rank};

/// The databases that are open, for lines that belong into every LOG.
pub(crate) static OPEN: Mutex<Vec<Db>> = Mutex::new(Rank::LEAF, Vec::new());

/// Names a refused function in the LOG of `db`.
pub(crate) fn note_refused(db: &Db, function: &str) {
    db.log(
        InfoLogLevel::Warn,
        &format!("{function} was called; it is not supported and did nothing"),
    );
}

/// Names a refused function in the LOG of every open database.
pub(crate) fn tell_refused(function: &str) {
    let open: Vec<Db> = OPEN.lock().clone();
    for db in open {
        note_refused(&db, function);
    }
}
