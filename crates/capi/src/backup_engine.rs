//! Backups. Accessors of options are generated.
//!
//! Priorities of threads are kept and have no effect: the threads that copy have the caller's. A
//! backup that is made after `rocksdb_backup_engine_stop_backup` fails, as with RocksDB.

use crate::boundary::callbacks::{ask_one, tell};
use crate::boundary::{
    State, attempt, bytes, call, destroy, exclusive, give, path, put, quiet, shared,
};
use crate::db::database;
use crate::*;
use esker::{Env, Error, Result};
use esker_backup::{
    BackupEngine, BackupEngineOptions, BackupInfo, CreateBackupOptions, ExcludeFiles, Progress,
    RestoreMode, RestoreOptions, ShareFilesNaming,
};
use std::ffi::{CString, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// A backup directory.
pub struct rocksdb_backup_engine_t {
    pub(crate) backups: BackupEngine,
}

/// Records of the backups of a directory.
pub struct rocksdb_backup_engine_info_t {
    backups: Vec<BackupInfo>,
}

/// How a backup directory is used.
pub struct rocksdb_backup_engine_options_t {
    pub(crate) options: BackupEngineOptions,
    /// The directory as C reads it.
    dir: CString,
}

/// How to make a backup.
#[derive(Default)]
pub struct rocksdb_create_backup_options_t {
    pub(crate) options: CreateBackupOptions,
    pub(crate) decrease_background_thread_cpu_priority: bool,
    pub(crate) background_thread_cpu_priority: CpuPriority,
}

/// RocksDB's number of a priority; its default is the normal one.
pub(crate) struct CpuPriority(c_int);

impl Default for CpuPriority {
    fn default() -> Self {
        CpuPriority(2)
    }
}

impl crate::access::CValue<CpuPriority> for c_int {
    fn to_field(self) -> Option<CpuPriority> {
        (0..=3).contains(&self).then_some(CpuPriority(self))
    }
    fn from_field(field: &CpuPriority) -> c_int {
        field.0
    }
}

/// How to restore a backup.
pub struct rocksdb_restore_options_t {
    pub(crate) keep_log_files: bool,
    pub(crate) mode: c_int,
}

/// RocksDB's number of the mode that keeps nothing.
const PURGE_ALL_FILES: c_int = 0xffff;

impl rocksdb_restore_options_t {
    fn options(&self) -> Result<RestoreOptions> {
        let mode = match self.mode {
            1 => RestoreMode::KeepLatestDbSessionIdFiles,
            2 => RestoreMode::VerifyChecksum,
            PURGE_ALL_FILES => RestoreMode::PurgeAllFiles,
            other => {
                return Err(Error::invalid_argument(format!("restore mode {other}")));
            }
        };
        Ok(RestoreOptions::new(self.keep_log_files, mode))
    }
}

fn open(options: BackupEngineOptions, env: &Env) -> Result<*mut rocksdb_backup_engine_t> {
    let backups = BackupEngine::open(options, env)?;
    Ok(give(rocksdb_backup_engine_t { backups }))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_open(
    options: *const rocksdb_options_t,
    dir: *const c_char,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_backup_engine_t {
    call(errptr, ptr::null_mut(), || {
        let env = shared(options)?.options.env.clone();
        let options = BackupEngineOptions::new(path(dir)?);
        open(options, &env.unwrap_or_else(Env::posix))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_open_opts(
    options: *const rocksdb_backup_engine_options_t,
    env: *mut rocksdb_env_t,
    errptr: *mut *mut c_char,
) -> *mut rocksdb_backup_engine_t {
    call(errptr, ptr::null_mut(), || {
        open(shared(options)?.options.clone(), &shared(env)?.to_env())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_close(be: *mut rocksdb_backup_engine_t) {
    destroy(be);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_options_create(
    backup_dir: *const c_char,
) -> *mut rocksdb_backup_engine_options_t {
    attempt(ptr::null_mut(), || {
        let dir = path(backup_dir)?;
        Ok(give(rocksdb_backup_engine_options_t {
            options: BackupEngineOptions::new(dir),
            dir: as_c(dir),
        }))
    })
}

/// A path that came from C, for C.
fn as_c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_options_destroy(
    backup_engine_options: *mut rocksdb_backup_engine_options_t,
) {
    destroy(backup_engine_options);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_options_set_backup_dir(
    opt: *mut rocksdb_backup_engine_options_t,
    v: *const c_char,
) {
    attempt((), || {
        let (opt, dir) = (exclusive(opt)?, path(v)?);
        dir.clone_into(&mut opt.options.backup_dir);
        opt.dir = as_c(dir);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_options_get_backup_dir(
    opt: *mut rocksdb_backup_engine_options_t,
    size: *mut usize,
) -> *const c_char {
    put(size, 0);
    attempt(ptr::null(), || {
        let opt = shared(opt)?;
        put(size, opt.dir.as_bytes().len());
        Ok(opt.dir.as_ptr())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_options_set_env(
    options: *mut rocksdb_backup_engine_options_t,
    env: *mut rocksdb_env_t,
) {
    attempt((), || {
        let env = shared(env).ok().map(rocksdb_env_t::to_env);
        exclusive(options)?.options.backup_env = env;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_options_set_backup_rate_limiter(
    options: *mut rocksdb_backup_engine_options_t,
    limiter: *mut rocksdb_ratelimiter_t,
) {
    attempt((), || {
        let limiter = shared(limiter)?.limiter.clone();
        exclusive(options)?.options.backup_rate_limiter = Some(limiter);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_options_set_restore_rate_limiter(
    options: *mut rocksdb_backup_engine_options_t,
    limiter: *mut rocksdb_ratelimiter_t,
) {
    attempt((), || {
        let limiter = shared(limiter)?.limiter.clone();
        exclusive(options)?.options.restore_rate_limiter = Some(limiter);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_options_set_share_files_with_checksum_naming(
    opt: *mut rocksdb_backup_engine_options_t,
    v: c_int,
) {
    attempt((), || {
        let naming = ShareFilesNaming(v.cast_unsigned());
        exclusive(opt)?.options.share_files_with_checksum_naming = naming;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_options_get_share_files_with_checksum_naming(
    opt: *mut rocksdb_backup_engine_options_t,
) -> c_int {
    attempt(0, || {
        let naming = shared(opt)?.options.share_files_with_checksum_naming;
        Ok(naming.0.cast_signed())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_backup_options_create() -> *mut rocksdb_create_backup_options_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_create_backup_options_t::default())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_backup_options_destroy(
    options: *mut rocksdb_create_backup_options_t,
) {
    destroy(options);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_backup_options_set_progress_callback(
    options: *mut rocksdb_create_backup_options_t,
    state: *mut c_void,
    callback: rocksdb_create_backup_options_progress_cb,
) {
    attempt((), || {
        let state = State(state);
        let progress = callback.map(|f| Progress::new(move || tell(f, state)));
        exclusive(options)?.options.progress_callback = progress;
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_backup_options_set_exclude_files_callback(
    options: *mut rocksdb_create_backup_options_t,
    state: *mut c_void,
    callback: rocksdb_create_backup_options_exclude_files_cb,
) {
    attempt((), || {
        let state = State(state);
        let exclude = callback
            .map(|f| ExcludeFiles::new(move |name: &str| ask_one(f, state, name.as_bytes())));
        exclusive(options)?.options.exclude_files_callback = exclude;
        Ok(())
    });
}

fn create(
    be: *mut rocksdb_backup_engine_t,
    db: *mut rocksdb_t,
    options: &CreateBackupOptions,
    app_metadata: &[u8],
) -> Result<u32> {
    let backups = &shared(be)?.backups;
    backups.create_new_backup_opt(database(db)?, options, app_metadata)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_create_new_backup(
    be: *mut rocksdb_backup_engine_t,
    db: *mut rocksdb_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        create(be, db, &CreateBackupOptions::default(), b"").map(drop)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_create_new_backup_flush(
    be: *mut rocksdb_backup_engine_t,
    db: *mut rocksdb_t,
    flush_before_backup: c_uchar,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let mut options = CreateBackupOptions::default();
        options.flush_before_backup = flush_before_backup != 0;
        create(be, db, &options, b"").map(drop)
    });
}

/// NULL for `options` means the defaults.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_create_new_backup_with_options(
    be: *mut rocksdb_backup_engine_t,
    db: *mut rocksdb_t,
    options: *const rocksdb_create_backup_options_t,
    backup_id: *mut u32,
    errptr: *mut *mut c_char,
) {
    rocksdb_backup_engine_create_new_backup_with_metadata(
        be,
        db,
        options,
        ptr::null(),
        0,
        backup_id,
        errptr,
    );
}

/// NULL for `options` means the defaults.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_create_new_backup_with_metadata(
    be: *mut rocksdb_backup_engine_t,
    db: *mut rocksdb_t,
    options: *const rocksdb_create_backup_options_t,
    app_metadata: *const c_char,
    app_metadata_len: usize,
    backup_id: *mut u32,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let options = if options.is_null() {
            CreateBackupOptions::default()
        } else {
            shared(options)?.options.clone()
        };
        let id = create(be, db, &options, bytes(app_metadata, app_metadata_len))?;
        put(backup_id, id);
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_purge_old_backups(
    be: *mut rocksdb_backup_engine_t,
    num_backups_to_keep: u32,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        shared(be)?.backups.purge_old_backups(num_backups_to_keep)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_stop_backup(be: *mut rocksdb_backup_engine_t) {
    attempt((), || {
        shared(be)?.backups.stop_backup();
        Ok(())
    });
}

/// As with RocksDB, files are looked for and their sizes compared; they are not read.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_verify_backup(
    be: *mut rocksdb_backup_engine_t,
    backup_id: u32,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        shared(be)?.backups.verify_backup(backup_id, false)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_restore_options_create() -> *mut rocksdb_restore_options_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_restore_options_t {
            keep_log_files: false,
            mode: PURGE_ALL_FILES,
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_restore_options_destroy(opt: *mut rocksdb_restore_options_t) {
    destroy(opt);
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_restore_db_from_latest_backup(
    be: *mut rocksdb_backup_engine_t,
    db_dir: *const c_char,
    wal_dir: *const c_char,
    restore_options: *const rocksdb_restore_options_t,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db_dir, wal_dir) = (path(db_dir)?, path(wal_dir)?);
        let options = shared(restore_options)?.options()?;
        let backups = &shared(be)?.backups;
        backups.restore_db_from_latest_backup(db_dir, wal_dir, &options)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_restore_db_from_backup(
    be: *mut rocksdb_backup_engine_t,
    db_dir: *const c_char,
    wal_dir: *const c_char,
    restore_options: *const rocksdb_restore_options_t,
    backup_id: u32,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        let (db_dir, wal_dir) = (path(db_dir)?, path(wal_dir)?);
        let options = shared(restore_options)?.options()?;
        let backups = &shared(be)?.backups;
        backups.restore_db_from_backup(backup_id, db_dir, wal_dir, &options)
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_get_backup_info(
    be: *mut rocksdb_backup_engine_t,
) -> *const rocksdb_backup_engine_info_t {
    attempt(ptr::null(), || {
        let backups = shared(be)?.backups.get_backup_info();
        Ok(give(rocksdb_backup_engine_info_t { backups }).cast_const())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_info_destroy(info: *const rocksdb_backup_engine_info_t) {
    destroy(info.cast_mut());
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_info_count(
    info: *const rocksdb_backup_engine_info_t,
) -> c_int {
    attempt(0, || {
        Ok(c_int::try_from(shared(info)?.backups.len()).unwrap_or(c_int::MAX))
    })
}

/// Applies `get` to one backup; returns `nothing` when there are not so many.
fn of<R>(
    info: *const rocksdb_backup_engine_info_t,
    index: c_int,
    nothing: R,
    get: impl FnOnce(&BackupInfo) -> R,
) -> R
where
    R: Copy,
{
    attempt(nothing, || {
        let index = usize::try_from(index).ok();
        let backups = &shared(info)?.backups;
        Ok(index.and_then(|i| backups.get(i)).map_or(nothing, get))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_info_timestamp(
    info: *const rocksdb_backup_engine_info_t,
    index: c_int,
) -> i64 {
    of(info, index, 0, |b| {
        i64::try_from(b.timestamp).unwrap_or(i64::MAX)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_info_backup_id(
    info: *const rocksdb_backup_engine_info_t,
    index: c_int,
) -> u32 {
    of(info, index, 0, |b| b.backup_id)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_info_size(
    info: *const rocksdb_backup_engine_info_t,
    index: c_int,
) -> u64 {
    of(info, index, 0, |b| b.size)
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_info_number_files(
    info: *const rocksdb_backup_engine_info_t,
    index: c_int,
) -> u32 {
    of(info, index, 0, |b| b.number_files)
}

/// The bytes live as long as `info`.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_backup_engine_info_app_metadata(
    info: *const rocksdb_backup_engine_info_t,
    index: c_int,
    len: *mut usize,
) -> *const c_char {
    put(len, 0);
    of(info, index, ptr::null(), |b| {
        put(len, b.app_metadata.len());
        b.app_metadata.as_ptr().cast()
    })
}
