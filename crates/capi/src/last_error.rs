//! Esker's own addition to the interface: the code and subcode of the error that a thread was told
//! last, for bindings that need more than its text.

use crate::boundary::last_error;

/// RocksDB's status code of the last error in this thread: 1 not found, 2 corruption, 3 not
/// supported, 4 invalid argument, 5 I/O error, and so on; 0 before the first.
#[unsafe(no_mangle)]
pub extern "C" fn esker_last_error_code() -> u32 {
    last_error().0
}

/// RocksDB's subcode of the last error in this thread; 0 for none.
#[unsafe(no_mangle)]
pub extern "C" fn esker_last_error_subcode() -> u32 {
    last_error().1
}
