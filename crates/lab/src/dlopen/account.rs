//! A loaded library's perf context, for [`crate::slowest`].
//!
//! The functions are optional: `begin` says whether they are all there. A context belongs to the
//! thread that created it.

use std::ffi::{c_char, c_int, c_uchar};
use std::sync::Arc;

use esker::observe::PerfLevel;

use super::{Handle, Inner};
use crate::slowest::Account;

/// Times, but not of locks. The number is RocksDB's.
const LEVEL: PerfLevel = PerfLevel::EnableTimeExceptForMutex;

/// The library's perf context of the calling thread.
pub(super) struct LibAccount {
    inner: Arc<Inner>,
    context: Handle,
    reset: unsafe extern "C" fn(Handle),
    report: unsafe extern "C" fn(Handle, c_uchar) -> *mut c_char,
    destroy: unsafe extern "C" fn(Handle),
}

impl LibAccount {
    /// Begins one; `None` when the library lacks a function.
    pub(super) fn begin(inner: &Arc<Inner>) -> Option<LibAccount> {
        let api = &inner.api;
        let (set_level, create) = (api.set_perf_level?, api.perfcontext_create?);
        let (reset, report) = (api.perfcontext_reset?, api.perfcontext_report?);
        let destroy = api.perfcontext_destroy?;
        // SAFETY: the level is one that the library knows.
        unsafe { set_level(LEVEL as c_int) };
        Some(LibAccount {
            inner: Arc::clone(inner),
            // SAFETY: it takes nothing; what it returns is destroyed with the account.
            context: unsafe { create() },
            reset,
            report,
            destroy,
        })
    }
}

impl Account for LibAccount {
    fn reset(&mut self) {
        // SAFETY: the context is this thread's, and ours.
        unsafe { (self.reset)(self.context) };
    }

    fn report(&mut self) -> String {
        // SAFETY: as above.
        let text = unsafe { (self.report)(self.context, 1) };
        self.inner.api.take_text(text)
    }
}

impl Drop for LibAccount {
    fn drop(&mut self) {
        // SAFETY: the context is ours and not used after this.
        unsafe { (self.destroy)(self.context) };
    }
}
