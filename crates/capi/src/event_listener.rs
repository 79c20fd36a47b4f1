//! Event listeners that the application defines.
//!
//! Options take a listener over when it is added. What its functions are given lives until they
//! return: the database, which works as any other handle on it but cannot be closed through this
//! one, and the event.
//!
//! A background error is told after the database has met it: [`rocksdb_reset_status`] empties the
//! object that is lent, and `esker_resume` is the way to go on.

use crate::boundary::callbacks::{self, Owner, Plain};
use crate::boundary::{attempt, call, destroy, exclusive, give, owned, quiet, shared};
use crate::*;
use esker::observe::{
    BackgroundErrorInfo, BackgroundErrorReason, CompactionInfo, EventListener, FlushInfo,
    IngestInfo, MemtableInfo, StallInfo, SubcompactionInfo,
};
use esker::{Db, DbRef, Error};
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::Arc;

/// A listener, until options take it over.
pub struct rocksdb_eventlistener_t {
    listener: Arc<Listener>,
}

/// An error that listeners are told of.
pub struct rocksdb_status_ptr_t {
    error: Option<Error>,
}

struct Listener {
    owner: Owner,
    flush_begin: on_flush_begin_cb,
    flush_completed: on_flush_completed_cb,
    compaction_begin: on_compaction_begin_cb,
    compaction_completed: on_compaction_completed_cb,
    subcompaction_begin: on_subcompaction_begin_cb,
    subcompaction_completed: on_subcompaction_completed_cb,
    external_file_ingested: on_external_file_ingested_cb,
    background_error: on_background_error_cb,
    stall_conditions_changed: on_stall_conditions_changed_cb,
    memtable_sealed: on_memtable_sealed_cb,
}

type EventFn<I> = Option<unsafe extern "C" fn(*mut c_void, *mut rocksdb_t, *const I)>;

impl Listener {
    /// Tells of an event of `database`.
    fn tell<I>(&self, f: EventFn<I>, database: &DbRef, info: impl FnOnce(&Db) -> I) {
        if let Some(f) = f
            && let Some(db) = Db::of(database)
        {
            let info = info(&db);
            callbacks::tell_event(f, &self.owner, &mut rocksdb_t::lent(db), &info);
        }
    }
}

impl EventListener for Listener {
    fn on_flush_begin(&self, info: &FlushInfo) {
        self.tell(self.flush_begin, &info.database, |_| {
            rocksdb_flushjobinfo_t::new(info)
        });
    }

    fn on_flush_completed(&self, info: &FlushInfo) {
        self.tell(self.flush_completed, &info.database, |_| {
            rocksdb_flushjobinfo_t::new(info)
        });
    }

    fn on_compaction_begin(&self, info: &CompactionInfo) {
        self.tell(self.compaction_begin, &info.database, |_| {
            rocksdb_compactionjobinfo_t::new(info)
        });
    }

    fn on_compaction_completed(&self, info: &CompactionInfo) {
        self.tell(self.compaction_completed, &info.database, |_| {
            rocksdb_compactionjobinfo_t::new(info)
        });
    }

    fn on_subcompaction_begin(&self, info: &SubcompactionInfo) {
        if let Some(f) = self.subcompaction_begin {
            let info = rocksdb_subcompactionjobinfo_t::new(info);
            callbacks::tell_info(f, &self.owner, &info);
        }
    }

    fn on_subcompaction_completed(&self, info: &SubcompactionInfo) {
        if let Some(f) = self.subcompaction_completed {
            let info = rocksdb_subcompactionjobinfo_t::new(info);
            callbacks::tell_info(f, &self.owner, &info);
        }
    }

    fn on_memtable_sealed(&self, info: &MemtableInfo) {
        if let Some(f) = self.memtable_sealed {
            let info = rocksdb_memtableinfo_t::new(info);
            callbacks::tell_info(f, &self.owner, &info);
        }
    }

    fn on_stall_conditions_changed(&self, info: &StallInfo) {
        if let Some(f) = self.stall_conditions_changed {
            let info = rocksdb_writestallinfo_t::new(info);
            callbacks::tell_info(f, &self.owner, &info);
        }
    }

    fn on_external_file_ingested(&self, info: &IngestInfo) {
        self.tell(self.external_file_ingested, &info.database, |_| {
            rocksdb_externalfileingestioninfo_t::new(info)
        });
    }

    fn on_background_error(&self, info: &BackgroundErrorInfo) {
        let Some(f) = self.background_error else {
            return;
        };
        let reason = match info.reason {
            BackgroundErrorReason::Flush => 0,
            BackgroundErrorReason::Compaction => 1,
            BackgroundErrorReason::Write => 2,
            BackgroundErrorReason::Memtable => 3,
            BackgroundErrorReason::ManifestWrite => 4,
            BackgroundErrorReason::FlushNoWal => 5,
            BackgroundErrorReason::ManifestWriteNoWal => 6,
            _ => 2,
        };
        let mut status = rocksdb_status_ptr_t {
            error: Some(info.error.clone()),
        };
        callbacks::tell_error(f, &self.owner, reason, &mut status);
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_eventlistener_create(
    state: *mut c_void,
    destructor: Plain,
    on_flush_begin: on_flush_begin_cb,
    on_flush_completed: on_flush_completed_cb,
    on_compaction_begin: on_compaction_begin_cb,
    on_compaction_completed: on_compaction_completed_cb,
    on_subcompaction_begin: on_subcompaction_begin_cb,
    on_subcompaction_completed: on_subcompaction_completed_cb,
    on_external_file_ingested: on_external_file_ingested_cb,
    on_background_error: on_background_error_cb,
    on_stall_conditions_changed: on_stall_conditions_changed_cb,
    on_memtable_sealed: on_memtable_sealed_cb,
) -> *mut rocksdb_eventlistener_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_eventlistener_t {
            listener: Arc::new(Listener {
                owner: Owner::new(state, destructor),
                flush_begin: on_flush_begin,
                flush_completed: on_flush_completed,
                compaction_begin: on_compaction_begin,
                compaction_completed: on_compaction_completed,
                subcompaction_begin: on_subcompaction_begin,
                subcompaction_completed: on_subcompaction_completed,
                external_file_ingested: on_external_file_ingested,
                background_error: on_background_error,
                stall_conditions_changed: on_stall_conditions_changed,
                memtable_sealed: on_memtable_sealed,
            }),
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_eventlistener_destroy(eventlistener: *mut rocksdb_eventlistener_t) {
    destroy(eventlistener);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_add_eventlistener(
    options: *mut rocksdb_options_t,
    eventlistener: *mut rocksdb_eventlistener_t,
) {
    attempt((), || {
        if let Some(added) = owned(eventlistener) {
            exclusive(options)?
                .options
                .db
                .listeners
                .push(added.listener);
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_reset_status(status_ptr: *mut rocksdb_status_ptr_t) {
    attempt((), || {
        exclusive(status_ptr)?.error = None;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_status_ptr_get_error(
    status: *mut rocksdb_status_ptr_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        shared(status)?.error.clone().map_or(Ok(()), Err)
    });
}
