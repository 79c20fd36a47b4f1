//! The table files of a database behind a loaded library.

use std::ffi::{CStr, CString};

use super::LibStore;

impl LibStore {
    /// Names and levels of all live table files.
    pub(super) fn live_files(&self) -> Vec<(i32, CString)> {
        let api = &self.inner.api;
        // SAFETY: `db` is open; the list is freed below.
        let list = unsafe { (api.livefiles)(self.inner.db) };
        // SAFETY: `list` is the library's, not yet freed.
        let count = unsafe { (api.livefiles_count)(list) };
        let files = (0..count)
            .map(|i| {
                // SAFETY: `i` is below the list's count.
                let level = unsafe { (api.livefiles_level)(list, i) };
                // SAFETY: `i` is below the list's count; the name lives as long as the list.
                let name = unsafe { CStr::from_ptr((api.livefiles_name)(list, i)) };
                (level, name.to_owned())
            })
            .collect();
        // SAFETY: `list` is not used after this.
        unsafe { (api.livefiles_destroy)(list) };
        files
    }
}
