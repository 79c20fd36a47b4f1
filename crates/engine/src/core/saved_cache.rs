//! How far the loading of the block cache's contents has come, which an earlier opening saved.
//!
//! The file with their names is read once, by the thread that loads or by one that saves before
//! that. Until all was loaded, what is left belongs to what is saved: a database that is closed
//! soon after it was opened forgets nothing.
//!
//! Thread-safety: any thread. [`SavedCacheState::lock`] is held while the file is read or written.

use crate::ranks;
use esker_files::table::LoadedBlocks;
use esker_format::FileNo;
use esker_format::saved_cache::SavedCache;
use esker_status::Error;
use esker_sync::atomic::{AtomicBool, Ordering};
use esker_sync::{Arc, Mutex, MutexGuard, Rank};

/// State of the loading of saved names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// `save_block_cache` was off when the database was opened, or nothing was saved.
    #[default]
    Nothing,
    /// The file was not read yet.
    Waits,
    Loads,
    /// Everything that was there and had room is in the cache.
    Loaded,
    /// The database was closed meanwhile.
    Stopped,
    /// The file could not be read, or does not hold what it should.
    Unreadable,
}

/// Progress of the loading.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadProgress {
    pub(crate) phase: Phase,
    /// Blocks whose names were saved.
    pub(crate) named: u64,
    pub(crate) loaded: LoadedBlocks,
    /// Tables that are no longer there.
    pub(crate) tables_gone: u64,
    /// Tables in which a block could not be read.
    pub(crate) tables_failed: u64,
    /// The first of these failures, or why the file was not read.
    pub(crate) error: Option<Error>,
    /// Until the end of the loading.
    pub(crate) micros: u64,
}

/// The names that were not loaded yet: those of tables from a number on.
pub(crate) type UnloadedNames = (Arc<SavedCache>, FileNo);

#[derive(Debug, Default)]
struct LoadState {
    progress: LoadProgress,
    left: Option<UnloadedNames>,
}

/// The loading, and the right to the file.
#[derive(Debug)]
pub(crate) struct SavedCacheState {
    is_due: AtomicBool,
    turn: Mutex<()>,
    state: Mutex<LoadState>,
}

impl SavedCacheState {
    /// With something to load, perhaps.
    pub(crate) fn new(loads: bool) -> Self {
        let mut state = LoadState::default();
        if loads {
            state.progress.phase = Phase::Waits;
        }
        SavedCacheState {
            is_due: AtomicBool::new(loads),
            turn: Mutex::new(ranks::SAVED_CACHE, ()),
            state: Mutex::new(Rank::LEAF, state),
        }
    }

    /// Returns whether the caller is to start a thread that loads.
    pub(crate) fn take_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed) && self.is_due.swap(false, Ordering::AcqRel)
    }

    /// No thread could be started.
    pub(crate) fn put_off(&self) {
        self.is_due.store(true, Ordering::Release);
    }

    /// The right to read or write the file.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }

    /// Returns the progress so far.
    pub(crate) fn progress(&self) -> LoadProgress {
        self.state.lock().progress.clone()
    }

    /// Changes what is known of the progress.
    pub(crate) fn note(&self, change: impl FnOnce(&mut LoadProgress)) {
        change(&mut self.state.lock().progress);
    }

    /// Returns the names that are not loaded yet, of the tables from a number on; `None` when there
    /// are none.
    pub(crate) fn left(&self) -> Option<UnloadedNames> {
        self.state.lock().left.clone()
    }

    /// Takes note of what is not loaded yet.
    pub(crate) fn set_left(&self, left: Option<UnloadedNames>) {
        self.state.lock().left = left;
    }
}
