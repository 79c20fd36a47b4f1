//! Backups, checkpoints and exports through the C functions.

mod common;

use common::{fine, told};
use rocksdb::*;
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

fn c(path: &Path) -> CString {
    CString::new(path.to_str().expect("UTF-8")).expect("no NUL")
}

fn at(s: &str) -> *const c_char {
    s.as_ptr().cast()
}

/// Runs `call`, which must report an error that has `what` in it.
fn refused(what: &str, call: impl FnOnce(*mut *mut c_char)) {
    let mut error = null_mut();
    call(&mut error);
    let text = told(error).unwrap_or_else(|| panic!("no error: {what}"));
    assert!(text.contains(what), "{text}");
}

struct Home {
    dir: tempfile::TempDir,
    options: *mut rocksdb_options_t,
    write: *mut rocksdb_writeoptions_t,
    read: *mut rocksdb_readoptions_t,
}

impl Home {
    fn new() -> Home {
        let options = rocksdb_options_create();
        rocksdb_options_set_create_if_missing(options, 1);
        rocksdb_options_set_compression(options, 0);
        Home {
            dir: tempfile::tempdir().expect("a directory"),
            options,
            write: rocksdb_writeoptions_create(),
            read: rocksdb_readoptions_create(),
        }
    }

    fn path(&self, name: &str) -> CString {
        c(&self.dir.path().join(name))
    }

    fn open(&self, name: &str) -> *mut rocksdb_t {
        fine(|e| rocksdb_open(self.options, self.path(name).as_ptr(), e))
    }

    fn put(&self, db: *mut rocksdb_t, key: &str, value: &str) {
        fine(|e| {
            rocksdb_put(
                db,
                self.write,
                at(key),
                key.len(),
                at(value),
                value.len(),
                e,
            );
        });
    }

    fn get(&self, db: *mut rocksdb_t, key: &str) -> Option<String> {
        let mut len = 0;
        let value = fine(|e| rocksdb_get(db, self.read, at(key), key.len(), &mut len, e));
        if value.is_null() {
            return None;
        }
        // SAFETY: that many bytes are there.
        let bytes = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), len) }.to_vec();
        rocksdb_free(value.cast());
        Some(String::from_utf8(bytes).expect("UTF-8"))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        rocksdb_options_destroy(self.options);
        rocksdb_writeoptions_destroy(self.write);
        rocksdb_readoptions_destroy(self.read);
    }
}

fn count(be: *mut rocksdb_backup_engine_t) -> c_int {
    let info = rocksdb_backup_engine_get_backup_info(be);
    let count = rocksdb_backup_engine_info_count(info);
    rocksdb_backup_engine_info_destroy(info);
    count
}

#[test]
fn backups_are_made_listed_restored_and_purged() {
    let home = Home::new();
    let db = home.open("db");
    let dir = home.path("backups");
    let be = fine(|e| rocksdb_backup_engine_open(home.options, dir.as_ptr(), e));
    home.put(db, "key", "first");
    fine(|e| rocksdb_backup_engine_create_new_backup(be, db, e));
    home.put(db, "key", "second");
    fine(|e| rocksdb_backup_engine_create_new_backup_flush(be, db, 1, e));
    assert_eq!(count(be), 2);
    fine(|e| rocksdb_backup_engine_verify_backup(be, 1, e));
    refused("NotFound: Backup not found", |e| {
        rocksdb_backup_engine_verify_backup(be, 3, e);
    });

    let info = rocksdb_backup_engine_get_backup_info(be);
    assert_eq!(rocksdb_backup_engine_info_backup_id(info, 1), 2);
    assert!(rocksdb_backup_engine_info_timestamp(info, 1) > 1_700_000_000);
    assert!(rocksdb_backup_engine_info_size(info, 1) > 100);
    assert!(rocksdb_backup_engine_info_number_files(info, 1) >= 4);
    for index in [-1, 2, c_int::MAX] {
        assert_eq!(rocksdb_backup_engine_info_backup_id(info, index), 0);
        let mut len = 7;
        let none = rocksdb_backup_engine_info_app_metadata(info, index, &mut len);
        assert!(none.is_null() && len == 0);
    }
    rocksdb_backup_engine_info_destroy(info);

    let restore = rocksdb_restore_options_create();
    assert_eq!(rocksdb_restore_options_get_mode(restore), 0xffff);
    rocksdb_restore_options_set_keep_log_files(restore, 0);
    assert_eq!(rocksdb_restore_options_get_keep_log_files(restore), 0);
    let to = home.path("restored");
    fine(|e| {
        rocksdb_backup_engine_restore_db_from_backup(be, to.as_ptr(), to.as_ptr(), restore, 1, e);
    });
    let restored = home.open("restored");
    assert_eq!(home.get(restored, "key").as_deref(), Some("first"));
    rocksdb_close(restored);
    rocksdb_restore_options_set_mode(restore, 2);
    fine(|e| {
        rocksdb_backup_engine_restore_db_from_latest_backup(
            be,
            to.as_ptr(),
            to.as_ptr(),
            restore,
            e,
        );
    });
    let restored = home.open("restored");
    assert_eq!(home.get(restored, "key").as_deref(), Some("second"));
    rocksdb_close(restored);
    rocksdb_restore_options_set_mode(restore, 3);
    refused("restore mode 3", |e| {
        rocksdb_backup_engine_restore_db_from_latest_backup(
            be,
            to.as_ptr(),
            to.as_ptr(),
            restore,
            e,
        );
    });
    rocksdb_restore_options_destroy(restore);

    fine(|e| rocksdb_backup_engine_purge_old_backups(be, 1, e));
    assert_eq!(count(be), 1);
    rocksdb_backup_engine_stop_backup(be);
    refused("Backup stopped", |e| {
        rocksdb_backup_engine_create_new_backup(be, db, e);
    });
    rocksdb_close(db);
    refused("closed", |e| {
        rocksdb_backup_engine_create_new_backup(be, db, e);
    });
    rocksdb_backup_engine_close(be);
}

/// Calls that the callbacks received.
#[derive(Default)]
struct Told {
    progress: AtomicU64,
    asked: AtomicU64,
}

unsafe extern "C" fn progress(state: *mut c_void) {
    // SAFETY: the state is the test's.
    let told = unsafe { &*state.cast::<Told>() };
    told.progress.fetch_add(1, Ordering::Relaxed);
}

unsafe extern "C" fn exclude(state: *mut c_void, name: *const c_char, len: usize) -> c_uchar {
    // SAFETY: the state is the test's, and that many bytes are there.
    let (told, name) = unsafe {
        (
            &*state.cast::<Told>(),
            std::slice::from_raw_parts(name.cast::<u8>(), len),
        )
    };
    assert!(name.starts_with(b"shared_checksum/") && name.ends_with(b".sst"));
    told.asked.fetch_add(1, Ordering::Relaxed);
    0
}

#[test]
fn options_metadata_and_callbacks_reach_the_engine() {
    let home = Home::new();
    let db = home.open("db");
    home.put(db, "key", "value");
    let dir = home.path("backups");
    let options = rocksdb_backup_engine_options_create(dir.as_ptr());
    let mut len = 0;
    let told_dir = rocksdb_backup_engine_options_get_backup_dir(options, &mut len);
    assert_eq!(len, dir.as_bytes().len());
    // SAFETY: the text ends with NUL.
    assert_eq!(unsafe { CStr::from_ptr(told_dir) }, &*dir);
    assert_eq!(rocksdb_backup_engine_options_get_sync(options), 1);
    assert_eq!(
        rocksdb_backup_engine_options_get_share_files_with_checksum_naming(options),
        i32::MIN | 2
    );
    rocksdb_backup_engine_options_set_schema_version(options, 2);
    rocksdb_backup_engine_options_set_callback_trigger_interval_size(options, 1);
    rocksdb_backup_engine_options_set_max_background_operations(options, 2);
    rocksdb_backup_engine_options_set_share_files_with_checksum_naming(options, 1);
    let env = rocksdb_create_default_env();
    let be = fine(|e| rocksdb_backup_engine_open_opts(options, env, e));

    let told = Told::default();
    let state = std::ptr::from_ref(&told).cast_mut().cast();
    let create = rocksdb_create_backup_options_create();
    rocksdb_create_backup_options_set_flush_before_backup(create, 1);
    rocksdb_create_backup_options_set_background_thread_cpu_priority(create, 1);
    assert_eq!(
        rocksdb_create_backup_options_get_background_thread_cpu_priority(create),
        1
    );
    rocksdb_create_backup_options_set_progress_callback(create, state, Some(progress));
    rocksdb_create_backup_options_set_exclude_files_callback(create, state, Some(exclude));
    let mut id = 0;
    fine(|e| {
        rocksdb_backup_engine_create_new_backup_with_metadata(
            be,
            db,
            create,
            at("meta"),
            4,
            &mut id,
            e,
        );
    });
    assert_eq!(id, 1);
    assert!(told.progress.load(Ordering::Relaxed) > 100);
    assert_eq!(told.asked.load(Ordering::Relaxed), 1);
    rocksdb_create_backup_options_set_progress_callback(create, null_mut(), None);
    rocksdb_create_backup_options_set_exclude_files_callback(create, null_mut(), None);
    fine(|e| {
        rocksdb_backup_engine_create_new_backup_with_options(be, db, create, &mut id, e);
    });
    fine(|e| {
        rocksdb_backup_engine_create_new_backup_with_options(be, db, null(), null_mut(), e);
    });
    assert_eq!((id, count(be)), (2, 3));
    let info = rocksdb_backup_engine_get_backup_info(be);
    let mut len = 0;
    let metadata = rocksdb_backup_engine_info_app_metadata(info, 0, &mut len);
    // SAFETY: that many bytes are there.
    let metadata = unsafe { std::slice::from_raw_parts(metadata.cast::<u8>(), len) };
    assert_eq!(metadata, b"meta");
    rocksdb_backup_engine_info_destroy(info);
    rocksdb_create_backup_options_destroy(create);
    rocksdb_backup_engine_close(be);

    rocksdb_backup_engine_options_set_destroy_old_data(options, 1);
    let be = fine(|e| rocksdb_backup_engine_open_opts(options, env, e));
    assert_eq!(count(be), 0);
    rocksdb_backup_engine_close(be);
    rocksdb_backup_engine_options_destroy(options);
    rocksdb_env_destroy(env);
    rocksdb_close(db);
}

#[test]
fn checkpoints_and_exports() {
    let home = Home::new();
    let db = home.open("db");
    home.put(db, "key", "value");
    let checkpoint = fine(|e| rocksdb_checkpoint_object_create(db, e));
    let to = home.path("checkpoint");
    fine(|e| rocksdb_checkpoint_create(checkpoint, to.as_ptr(), 0, e));
    let files = std::fs::read_dir(home.dir.path().join("checkpoint")).expect("a directory");
    let mut names = files.map(|entry| entry.expect("an entry").path());
    assert!(names.any(|name| name.extension().is_some_and(|e| e == "log")));
    refused("Invalid argument: Directory exists", |e| {
        rocksdb_checkpoint_create(checkpoint, to.as_ptr(), 0, e);
    });
    let copy = home.open("checkpoint");
    assert_eq!(home.get(copy, "key").as_deref(), Some("value"));

    let name = CString::new("family").expect("no NUL");
    let family = fine(|e| rocksdb_create_column_family(db, home.options, name.as_ptr(), e));
    fine(|e| rocksdb_put_cf(db, home.write, family, at("k"), 1, at("v"), 1, e));
    let export = home.path("export");
    let foreign = fine(|e| rocksdb_create_column_family(copy, home.options, name.as_ptr(), e));
    refused("belongs to another database", |e| {
        rocksdb_checkpoint_export_column_family(checkpoint, foreign, export.as_ptr(), e);
    });
    let exported =
        fine(|e| rocksdb_checkpoint_export_column_family(checkpoint, family, export.as_ptr(), e));
    let order = rocksdb_export_import_files_metadata_get_db_comparator_name(exported);
    assert_eq!(told(order).as_deref(), Some("leveldb.BytewiseComparator"));
    let import = rocksdb_import_column_family_options_create();
    let second = CString::new("imported").expect("no NUL");
    let imported = fine(|e| {
        rocksdb_create_column_family_with_import(
            copy,
            home.options,
            second.as_ptr(),
            import,
            exported,
            e,
        )
    });
    let mut len = 0;
    let value = fine(|e| rocksdb_get_cf(copy, home.read, imported, at("k"), 1, &mut len, e));
    assert!(!value.is_null() && len == 1);
    rocksdb_free(value.cast());
    rocksdb_import_column_family_options_destroy(import);
    rocksdb_export_import_files_metadata_destroy(exported);
    for family in [family, foreign, imported] {
        rocksdb_column_family_handle_destroy(family);
    }
    rocksdb_checkpoint_object_destroy(checkpoint);
    rocksdb_close(copy);
    rocksdb_close(db);
}

#[test]
fn null_is_an_error_and_nothing_else() {
    let home = Home::new();
    let db = home.open("db");
    let dir = home.path("backups");
    refused("NULL", |e| {
        rocksdb_backup_engine_open(null(), dir.as_ptr(), e);
    });
    refused("NULL", |e| {
        rocksdb_backup_engine_open(home.options, null(), e);
    });
    refused("NULL", |e| {
        rocksdb_backup_engine_open_opts(null(), null_mut(), e);
    });
    refused("NULL", |e| {
        rocksdb_backup_engine_create_new_backup(null_mut(), db, e);
    });
    refused("NULL", |e| {
        rocksdb_backup_engine_restore_db_from_latest_backup(
            null_mut(),
            dir.as_ptr(),
            dir.as_ptr(),
            null(),
            e,
        );
    });
    refused("NULL", |e| {
        rocksdb_checkpoint_create(null_mut(), dir.as_ptr(), 0, e)
    });
    refused("NULL", |e| {
        rocksdb_checkpoint_object_create(null_mut(), e);
    });
    assert!(rocksdb_backup_engine_options_create(null()).is_null());
    assert!(rocksdb_backup_engine_get_backup_info(null_mut()).is_null());
    assert_eq!(rocksdb_backup_engine_info_count(null()), 0);
    rocksdb_backup_engine_stop_backup(null_mut());
    rocksdb_backup_engine_info_destroy(null());
    rocksdb_backup_engine_options_destroy(null_mut());
    rocksdb_create_backup_options_destroy(null_mut());
    rocksdb_restore_options_destroy(null_mut());
    rocksdb_checkpoint_object_destroy(null_mut());
    rocksdb_backup_engine_close(null_mut());
    rocksdb_close(db);
}
