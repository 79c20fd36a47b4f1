//! Ingestion into several families at once.

use crate::boundary::{call, many, path, shared};
use crate::db::with_family;
use crate::*;
use esker::{Error, IngestArg, Result};
use std::ffi::c_char;
use std::path::Path;

/// Takes files into several families, all or none. Each family has its options and its number of
/// files, which follow those of the family before in `files`.
#[unsafe(no_mangle)]
pub extern "C" fn esker_ingest_external_files(
    db: *mut rocksdb_t,
    column_families: *const *const rocksdb_column_family_handle_t,
    options: *const *const rocksdb_ingestexternalfileoptions_t,
    file_counts: *const usize,
    num_families: usize,
    files: *const *const c_char,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let counts = many(file_counts, num_families);
        let all = counts.iter().fold(0_usize, |sum, n| sum.saturating_add(*n));
        let mut rest = many(files, all);
        let families = many(column_families, num_families);
        let mut args = Vec::new();
        for ((&family, &with), &count) in
            families.iter().zip(many(options, num_families)).zip(counts)
        {
            let (own, after) = rest
                .split_at_checked(count)
                .ok_or_else(|| Error::invalid_argument("there are fewer files than counted"))?;
            rest = after;
            let files = own.iter().map(|file| path(*file).map(Path::to_path_buf));
            args.push(IngestArg {
                family: with_family(db, family)?.1,
                files: files.collect::<Result<_>>()?,
                options: shared(with)?.ingest.clone(),
            });
        }
        crate::db::database(db)?.ingest_many(&args)
    });
}
