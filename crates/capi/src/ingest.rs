//! Taking files in: external ones into a family, exported ones as a new family.

use crate::boundary::{
    attempt, call, destroy, exclusive, give, malloc_text, many, path, quiet, shared, text,
};
use crate::db::{database, with_default, with_family};
use crate::*;
use esker::{Db, ExportedFiles, FamilyHandle, ImportOptions, IngestOptions, Result};
use std::ffi::{c_char, c_uchar};
use std::path::Path;
use std::ptr;

/// How to take external files in.
#[derive(Default)]
pub struct rocksdb_ingestexternalfileoptions_t {
    pub(crate) ingest: IngestOptions,
}

/// How to take exported files in.
#[derive(Default)]
pub struct rocksdb_import_column_family_options_t {
    pub(crate) import: ImportOptions,
}

/// The files of a family on their way between databases.
#[derive(Default)]
pub struct rocksdb_export_import_files_metadata_t {
    pub(crate) exported: ExportedFiles,
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ingestexternalfileoptions_create()
-> *mut rocksdb_ingestexternalfileoptions_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_ingestexternalfileoptions_t::default())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ingestexternalfileoptions_destroy(
    opt: *mut rocksdb_ingestexternalfileoptions_t,
) {
    destroy(opt);
}

fn ingest(
    (db, family): (&Db, &FamilyHandle),
    file_list: *const *const c_char,
    list_len: usize,
    opt: *const rocksdb_ingestexternalfileoptions_t,
) -> Result<()> {
    let files: Vec<&Path> = many(file_list, list_len)
        .iter()
        .map(|f| path(*f))
        .collect::<Result<_>>()?;
    db.ingest(family, &files, &shared(opt)?.ingest)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ingest_external_file(
    db: *mut rocksdb_t,
    file_list: *const *const c_char,
    list_len: usize,
    opt: *const rocksdb_ingestexternalfileoptions_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        ingest(with_default(db)?, file_list, list_len, opt)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_ingest_external_file_cf(
    db: *mut rocksdb_t,
    handle: *mut rocksdb_column_family_handle_t,
    file_list: *const *const c_char,
    list_len: usize,
    opt: *const rocksdb_ingestexternalfileoptions_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        ingest(with_family(db, handle)?, file_list, list_len, opt)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_import_column_family_options_create()
-> *mut rocksdb_import_column_family_options_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_import_column_family_options_t::default())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_import_column_family_options_set_move_files(
    import_column_family_options: *mut rocksdb_import_column_family_options_t,
    value: c_uchar,
) {
    attempt((), || {
        exclusive(import_column_family_options)?.import.move_files = value != 0;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_import_column_family_options_get_move_files(
    opt: *mut rocksdb_import_column_family_options_t,
) -> c_uchar {
    attempt(0, || Ok(c_uchar::from(shared(opt)?.import.move_files)))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_import_column_family_options_destroy(
    import_column_family_options: *mut rocksdb_import_column_family_options_t,
) {
    destroy(import_column_family_options);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_export_import_files_metadata_create()
-> *mut rocksdb_export_import_files_metadata_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_export_import_files_metadata_t::default())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_export_import_files_metadata_get_db_comparator_name(
    export_import_files_metadata: *mut rocksdb_export_import_files_metadata_t,
) -> *mut c_char {
    attempt(ptr::null_mut(), || {
        let exported = &shared(export_import_files_metadata)?.exported;
        Ok(malloc_text(&exported.db_comparator_name))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_export_import_files_metadata_set_db_comparator_name(
    export_import_files_metadata: *mut rocksdb_export_import_files_metadata_t,
    value: *const c_char,
) {
    attempt((), || {
        let exported = &mut exclusive(export_import_files_metadata)?.exported;
        exported.db_comparator_name = text(value)?.to_owned();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_export_import_files_metadata_get_files(
    export_import_files_metadata: *mut rocksdb_export_import_files_metadata_t,
) -> *mut rocksdb_livefiles_t {
    attempt(ptr::null_mut(), || {
        let mut files = shared(export_import_files_metadata)?.exported.files.clone();
        // RocksDB counts no entries of files on their way.
        for file in &mut files {
            (file.num_entries, file.num_deletions) = (0, 0);
        }
        Ok(give(rocksdb_livefiles_t::new(files)))
    })
}

/// Takes `livefiles` over.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_export_import_files_metadata_set_files(
    export_import_files_metadata: *mut rocksdb_export_import_files_metadata_t,
    livefiles: *mut rocksdb_livefiles_t,
) {
    attempt((), || {
        let exported = &mut exclusive(export_import_files_metadata)?.exported;
        if let Some(files) = crate::boundary::owned(livefiles) {
            exported.files = files.into_files();
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_export_import_files_metadata_destroy(
    export_import_files_metadata: *mut rocksdb_export_import_files_metadata_t,
) {
    destroy(export_import_files_metadata);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_column_family_with_import(
    db: *mut rocksdb_t,
    column_family_options: *mut rocksdb_options_t,
    column_family_name: *const c_char,
    import_options: *mut rocksdb_import_column_family_options_t,
    metadata: *mut rocksdb_export_import_files_metadata_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_column_family_handle_t {
    call(errptr, ptr::null_mut(), || {
        let options = shared(column_family_options)?.options.family.clone();
        let exported = &shared(metadata)?.exported;
        let family = database(db)?.import_family(
            text(column_family_name)?,
            options,
            &shared(import_options)?.import,
            std::slice::from_ref(exported),
        )?;
        Ok(give(rocksdb_column_family_handle_t::new(family)))
    })
}
