//! The table files of a database behind a loaded library, and compactions of some of them.

use std::ffi::{CStr, CString, c_char};
use std::ptr;
use std::time::Duration;

use super::{LibStore, c_string};
use crate::store::Store as _;
use crate::{Failure, Result};

/// The option that says from how many files on level 0 is compacted.
const TRIGGER: &str = "level0_file_num_compaction_trigger";

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

    /// Merges the files of level 0, or of the first level below it that has any, into the next
    /// level that has some. Says what it did.
    pub(super) fn compact_files_of(&self, from: u32) -> Result<String> {
        let api = &self.inner.api;
        let (Some(compact), Some(create), Some(destroy), Some(free_names)) = (
            api.compact_files,
            api.compaction_options_create,
            api.compaction_options_destroy,
            api.compact_files_names_destroy,
        ) else {
            return self.compact_by_trigger(from);
        };
        let files = self.live_files();
        let level = match from {
            0 => 0,
            _ => match files.iter().map(|f| f.0).filter(|&l| l > 0).min() {
                Some(level) => level,
                None => return Ok("found 0 files to compact".into()),
            },
        };
        let names: Vec<*const c_char> = files
            .iter()
            .filter(|f| f.0 == level)
            .map(|f| f.1.as_ptr())
            .collect();
        if names.is_empty() {
            return Ok("found 0 files to compact".into());
        }
        let Some(next) = files.iter().map(|f| f.0).filter(|&l| l > level).min() else {
            return Ok(format!("found no data beyond L{level}"));
        };
        // SAFETY: plain constructor.
        let options = unsafe { create() };
        if let Some(set) = api.compaction_options_set_compression {
            // 0xff is RocksDB's "use the configured compression of the level".
            // SAFETY: `options` is fresh and ours.
            unsafe { set(options, 0xff) };
        }
        if let (Some(set), Some(get)) = (
            api.compaction_options_set_limit,
            api.options_get_target_file_size_base,
        ) {
            // SAFETY: the database's options live as long as it does.
            let limit = unsafe { get(self.inner.options) };
            // SAFETY: `options` is ours.
            unsafe { set(options, limit) };
        }
        let (mut outputs, mut count, mut error) = (ptr::null_mut(), 0usize, ptr::null_mut());
        // SAFETY: `names` points to as many zero-terminated names as it says; the rest is ours or
        // null.
        unsafe {
            compact(
                self.inner.db,
                options,
                names.as_ptr(),
                names.len(),
                next,
                -1,
                &mut outputs,
                &mut count,
                ptr::null_mut(),
                &mut error,
            );
        };
        // SAFETY: `options` is not used after this.
        unsafe { destroy(options) };
        if !outputs.is_null() {
            // SAFETY: the library allocated `count` names, which nobody uses.
            unsafe { free_names(outputs, count) };
        }
        api.check(error)?;
        Ok(format!(
            "compacted {} files from L{level} to L{next}",
            names.len()
        ))
    }

    /// Level 0 by a compaction of the library's own, which a trigger of one file starts: for
    /// libraries without the call that compacts named files.
    fn compact_by_trigger(&self, from: u32) -> Result<String> {
        let lack = "this library does not export rocksdb_compact_files";
        let Some(get) = self
            .inner
            .api
            .options_get_level0_trigger
            .filter(|_| from == 0)
        else {
            return Err(Failure::new(lack));
        };
        let files = self.live_files();
        let count = files.iter().filter(|f| f.0 == 0).count();
        if count == 0 {
            return Ok("found 0 files to compact".into());
        }
        if files.len() == count {
            return Ok("found no data beyond L0".into());
        }
        // SAFETY: the database's options live as long as it does.
        let before = unsafe { get(self.inner.options) };
        self.set_option(TRIGGER, "1")?;
        let is_empty = self.level_0_is_empty_soon();
        self.set_option(TRIGGER, &before.to_string())?;
        if !is_empty {
            return Err(Failure::new(format!(
                "{lack}, and compacts nothing by itself"
            )));
        }
        Ok(format!("compacted {count} files from L0 by {TRIGGER}=1"))
    }

    /// Waits until level 0 has no files; `false` where no compaction works on that.
    fn level_0_is_empty_soon(&self) -> bool {
        const PAUSE: Duration = Duration::from_millis(2);
        const PATIENCE: u32 = 500;
        let number = |name: &str| self.property(name)?.trim().parse::<u64>().ok();
        let mut quiet = 0;
        while quiet < PATIENCE {
            if number("rocksdb.num-files-at-level0") == Some(0) {
                return true;
            }
            let works = number("rocksdb.num-running-compactions").unwrap_or(0) > 0;
            quiet = if works { 0 } else { quiet + 1 };
            std::thread::sleep(PAUSE);
        }
        false
    }

    /// Sets an option of the default family.
    fn set_option(&self, name: &str, value: &str) -> Result<()> {
        let api = &self.inner.api;
        let lack = || Failure::new("this library does not export rocksdb_set_options");
        let set = api.set_options.ok_or_else(lack)?;
        let (name, value) = (c_string(name)?, c_string(value)?);
        let (names, values) = ([name.as_ptr()], [value.as_ptr()]);
        let mut error = ptr::null_mut();
        // SAFETY: `db` is open, and both arrays have one zero-terminated text.
        unsafe {
            set(
                self.inner.db,
                1,
                names.as_ptr(),
                values.as_ptr(),
                &mut error,
            )
        };
        api.check(error)
    }
}
