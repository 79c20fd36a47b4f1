//! Helpers of the tests that load the library as a program does.

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The library that cargo built for this test, which lies beside it.
pub(crate) fn ours() -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    let beside = test.parent().expect("it lies in a directory");
    let library = beside.join("librocksdb.so");
    assert!(library.exists(), "{} is not there", library.display());
    library
}

/// A directory in memory where that is possible: what is compared are answers.
pub(crate) fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    place.expect("a directory")
}
