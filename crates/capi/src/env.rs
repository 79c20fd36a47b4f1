//! Environments: the operating system's, and files in memory.
//!
//! How many background jobs run at once is decided by the options of a database
//! (`max_background_jobs` and its siblings), on threads of the process. The thread counts of an
//! environment are kept and told, and change nothing.

use crate::boundary::{attempt, call, destroy, give, path, quiet, shared};
use crate::shared_limits::rocksdb_ratelimiter_t;
use esker::Env;
use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, LazyLock};

/// The world that databases live in.
#[derive(Clone)]
pub struct rocksdb_env_t {
    /// `None` for the operating system's.
    pub(crate) env: Option<Env>,
    threads: Arc<Threads>,
}

/// Thread counts by priority.
#[derive(Default)]
struct Threads {
    low: AtomicI32,
    high: AtomicI32,
    bottom: AtomicI32,
}

/// Those of the operating system's environment, which there is one of.
static DEFAULT_THREADS: LazyLock<Arc<Threads>> = LazyLock::new(Arc::default);

impl rocksdb_env_t {
    /// The environment itself.
    pub(crate) fn to_env(&self) -> Env {
        self.env.clone().unwrap_or_else(Env::posix)
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_default_env() -> *mut rocksdb_env_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_env_t {
            env: None,
            threads: Arc::clone(&DEFAULT_THREADS),
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_mem_env() -> *mut rocksdb_env_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_env_t {
            env: Some(Env::in_memory()),
            threads: Arc::clone(&DEFAULT_THREADS),
        })
    })
}

/// Databases that were opened in the environment go on in it.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_env_destroy(env: *mut rocksdb_env_t) {
    destroy(env);
}

/// Exports the setter and the getter of a thread count.
macro_rules! threads {
    ($set:ident, $get:ident, $field:ident) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $set(env: *mut rocksdb_env_t, n: c_int) {
            attempt((), || {
                shared(env)?
                    .threads
                    .$field
                    .store(n.max(0), Ordering::Relaxed);
                Ok(())
            });
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn $get(env: *mut rocksdb_env_t) -> c_int {
            attempt(0, || {
                Ok(shared(env)?.threads.$field.load(Ordering::Relaxed))
            })
        }
    };
}

threads!(
    rocksdb_env_set_background_threads,
    rocksdb_env_get_background_threads,
    low
);
threads!(
    rocksdb_env_set_low_priority_background_threads,
    rocksdb_env_get_low_priority_background_threads,
    low
);
threads!(
    rocksdb_env_set_high_priority_background_threads,
    rocksdb_env_get_high_priority_background_threads,
    high
);
threads!(
    rocksdb_env_set_bottom_priority_background_threads,
    rocksdb_env_get_bottom_priority_background_threads,
    bottom
);

/// There is nothing to wait for: closing a database waits for its work.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_env_join_all_threads(_env: *mut rocksdb_env_t) {}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_env_lower_thread_pool_io_priority(_env: *mut rocksdb_env_t) {}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_env_lower_high_priority_thread_pool_io_priority(
    _env: *mut rocksdb_env_t,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_env_lower_thread_pool_cpu_priority(_env: *mut rocksdb_env_t) {}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_env_lower_high_priority_thread_pool_cpu_priority(
    _env: *mut rocksdb_env_t,
) {
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_create_dir_if_missing(
    env: *mut rocksdb_env_t,
    dir: *const c_char,
    errptr: *mut *mut c_char,
) {
    call(errptr, (), || {
        shared(env)?.to_env().fs.create_dir_all(path(dir)?)
    });
}

/// How files are opened: by programs that write table files of their own.
pub struct rocksdb_envoptions_t {
    pub(crate) use_mmap_reads: bool,
    pub(crate) use_mmap_writes: bool,
    pub(crate) use_direct_reads: bool,
    pub(crate) use_direct_writes: bool,
    pub(crate) allow_fallocate: bool,
    pub(crate) fd_cloexec: bool,
    pub(crate) bytes_per_sync: u64,
    pub(crate) strict_bytes_per_sync: bool,
    pub(crate) fallocate_with_keep_size: bool,
    pub(crate) compaction_readahead_size: usize,
    pub(crate) writable_file_max_buffer_size: usize,
}

impl Default for rocksdb_envoptions_t {
    fn default() -> Self {
        rocksdb_envoptions_t {
            use_mmap_reads: false,
            use_mmap_writes: false,
            use_direct_reads: false,
            use_direct_writes: false,
            allow_fallocate: true,
            fd_cloexec: true,
            bytes_per_sync: 0,
            strict_bytes_per_sync: false,
            fallocate_with_keep_size: true,
            compaction_readahead_size: 2 << 20,
            writable_file_max_buffer_size: 1 << 20,
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_envoptions_create() -> *mut rocksdb_envoptions_t {
    quiet(ptr::null_mut(), || give(rocksdb_envoptions_t::default()))
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_envoptions_destroy(opt: *mut rocksdb_envoptions_t) {
    destroy(opt);
}

/// Table files that are written outside a database are not limited.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_envoptions_set_rate_limiter(
    _opt: *mut rocksdb_envoptions_t,
    _rate_limiter: *mut rocksdb_ratelimiter_t,
) {
}
