//! Background work: ending compactions for a while, and flushing several families.

use crate::boundary::{attempt, call, many, shared};
use crate::db::{database, with_family};
use crate::*;
use esker::{FamilyHandle, Result};
use std::ffi::{c_char, c_int};

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_abort_all_compactions(db: *mut rocksdb_t) {
    attempt((), || {
        database(db)?.abort_all_compactions();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_resume_all_compactions(db: *mut rocksdb_t) {
    attempt((), || {
        database(db)?.resume_all_compactions();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_flush_cfs(
    db: *mut rocksdb_t,
    options: *const rocksdb_flushoptions_t,
    column_family: *mut *mut rocksdb_column_family_handle_t,
    num_column_families: c_int,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let count = usize::try_from(num_column_families).unwrap_or(0);
        let handles = many(column_family.cast_const(), count);
        let families: Vec<&FamilyHandle> = handles
            .iter()
            .map(|handle| Ok(with_family(db, *handle)?.1))
            .collect::<Result<_>>()?;
        database(db)?.flush_families(&families, &shared(options)?.flush)
    });
}
