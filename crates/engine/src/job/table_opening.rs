//! Opening of all tables of a database: before the opening of the database returns, or after it
//! (`open_files_async`), on up to `max_file_opening_threads` threads.
//!
//! Threads take the tables in their order in the trees. The first failure in that order is the
//! result, whichever thread met it and however many there are.
//!
//! Callers: the opening of a database, [`super::workers`].

use crate::core::{Core, Trees};
use crate::family::Family;
use esker_format::Level;
use esker_lsm::file::FileMeta;
use esker_status::{Error, ErrorKind, Result};
use esker_sync::atomic::{AtomicUsize, Ordering};
use esker_sync::{Arc, Mutex, Rank};

/// A thread pays from so many tables on.
const TABLES_A_THREAD: usize = if cfg!(debug_assertions) { 2 } else { 16 };

/// Tables to open, and how far their opening is.
struct TableList {
    trees: Arc<Trees>,
    tables: Vec<(Arc<Family>, Level, Arc<FileMeta>)>,
    next: AtomicUsize,
    failure: Mutex<Option<(usize, Error)>>,
}

impl TableList {
    fn new(trees: &Arc<Trees>) -> Self {
        let mut tables = Vec::new();
        for family in trees.families.all() {
            let version = Arc::clone(&family.view_guard().version);
            let files = version.files();
            tables
                .extend(files.map(|(level, file)| (Arc::clone(&family), level, Arc::clone(file))));
        }
        TableList {
            trees: Arc::clone(trees),
            tables,
            next: AtomicUsize::new(0),
            failure: Mutex::new(Rank::LEAF, None),
        }
    }

    /// Opens tables until none is left, one failed, or `is_over` says so.
    fn open(&self, is_over: impl Fn() -> bool) {
        while self.failure.lock().is_none() && !is_over() {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((family, level, file)) = self.tables.get(at) else {
                return;
            };
            if let Err(e) = self.trees.tables.get(file, *level, &family.reading) {
                let mut failure = self.failure.lock();
                if failure.as_ref().is_none_or(|(before, _)| at < *before) {
                    *failure = Some((at, e));
                }
            }
        }
    }

    fn outcome(&self) -> Result<()> {
        self.failure.lock().take().map_or(Ok(()), |(_, e)| Err(e))
    }
}

/// Opens all tables: a missing or foreign file is found now and not in the middle of a read.
pub(crate) fn open_all(core: &Core) -> Result<()> {
    let list = Arc::new(TableList::new(&core.trees));
    let asked = core.services.options.load().max_file_opening_threads;
    let threads = usize::try_from(asked).unwrap_or(1);
    let others = threads
        .min(list.tables.len() / TABLES_A_THREAD)
        .saturating_sub(1);
    let executor = &core.services.env.executor;
    let mut handles = Vec::with_capacity(others);
    for _ in 0..others {
        let theirs = Arc::clone(&list);
        let body = move || theirs.open(|| false);
        // Without it the others take its tables.
        handles.extend(executor.spawn("esker-open", Box::new(body)).ok());
    }
    list.open(|| false);
    handles.into_iter().for_each(|handle| handle.join());
    list.outcome()
}

/// Opens all tables of a database that is in use, until it closes. What cannot be opened is told in
/// the LOG, and to each read that needs it.
pub(super) fn open_later(core: &Core) {
    let clock = &core.services.env.clock;
    let begun = clock.now_us();
    let list = TableList::new(&core.trees);
    let is_over = || core.background.cv.is_closing();
    let log = &core.services.info_log;
    list.open(is_over);
    match list.outcome() {
        Err(e) if e.kind() != ErrorKind::ShutdownInProgress => {
            log.error(format_args!(
                "open_files_async: a table cannot be opened: {e}"
            ));
        }
        _ if is_over() => {}
        _ => log.info(format_args!(
            "open_files_async: opened {} tables in {} us",
            list.tables.len(),
            clock.now_us().saturating_sub(begun)
        )),
    }
    drop(list);
    // A compaction may have retired one of them meanwhile.
    if core.trees.obsolete_files.is_waiting() {
        core.background.cv.notify();
    }
}
