//! A temporary directory with the options that tests open databases in it by.

use rocksdb::*;
use std::ffi::CString;
use std::path::Path;

pub(crate) struct Place {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) options: *mut rocksdb_options_t,
    pub(crate) read: *mut rocksdb_readoptions_t,
    pub(crate) write: *mut rocksdb_writeoptions_t,
}

impl Place {
    pub(crate) fn new() -> Self {
        let options = rocksdb_options_create();
        rocksdb_options_set_create_if_missing(options, 1);
        Place {
            dir: tempfile::tempdir().expect("a directory"),
            options,
            read: rocksdb_readoptions_create(),
            write: rocksdb_writeoptions_create(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> CString {
        let path: &Path = &self.dir.path().join(name);
        CString::new(path.to_str().expect("UTF-8")).expect("no NUL")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        rocksdb_options_destroy(self.options);
        rocksdb_readoptions_destroy(self.read);
        rocksdb_writeoptions_destroy(self.write);
    }
}
