//! Loggers: objects that take the lines of the log instead of the LOG file.
//!
//! Options share a logger with its handle. The state of a callback logger stays the application's:
//! there is no destructor, and it must outlive every database that was opened with it.

use crate::boundary::{State, attempt, callbacks, destroy, exclusive, give, quiet, shared, text};
use crate::*;
use esker::observe::{Logger, StderrLogger};
use esker::options::InfoLogLevel;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::Arc;

/// A logger; none for options that write the LOG file.
pub struct rocksdb_logger_t {
    pub(crate) logger: Option<Arc<dyn Logger>>,
}

type Log = unsafe extern "C" fn(*mut c_void, c_uint, *mut c_char, usize);

struct CallbackLogger {
    level: InfoLogLevel,
    log: Option<Log>,
    state: State,
}

impl Logger for CallbackLogger {
    fn level(&self) -> InfoLogLevel {
        self.level
    }

    fn log(&self, level: InfoLogLevel, line: &str) {
        // RocksDB's callback gets headers as information.
        let level = match level {
            InfoLogLevel::Header => InfoLogLevel::Info,
            other => other,
        };
        if let Some(log) = self.log {
            callbacks::log_line(log, self.state, c_uint::from(level.number()), line);
        }
    }
}

/// The level with this number, or the nearest.
fn level(number: c_int) -> InfoLogLevel {
    let number = u8::try_from(number.max(0)).unwrap_or(u8::MAX);
    InfoLogLevel::from_number(number).unwrap_or(InfoLogLevel::Header)
}

fn handle(logger: Arc<dyn Logger>) -> *mut rocksdb_logger_t {
    give(rocksdb_logger_t {
        logger: Some(logger),
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_logger_create_stderr_logger(
    log_level: c_int,
    prefix: *const c_char,
) -> *mut rocksdb_logger_t {
    quiet(ptr::null_mut(), || {
        let prefix = text(prefix).unwrap_or_default();
        handle(Arc::new(StderrLogger::new(level(log_level), prefix)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_logger_create_callback_logger(
    log_level: c_int,
    log: Option<unsafe extern "C" fn(*mut c_void, c_uint, *mut c_char, usize)>,
    private: *mut c_void,
) -> *mut rocksdb_logger_t {
    quiet(ptr::null_mut(), || {
        handle(Arc::new(CallbackLogger {
            level: level(log_level),
            log,
            state: State(private),
        }))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_logger_destroy(logger: *mut rocksdb_logger_t) {
    destroy(logger);
}

/// NULL changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_info_log(
    options: *mut rocksdb_options_t,
    logger: *mut rocksdb_logger_t,
) {
    attempt((), || {
        let logger = shared(logger)?.logger.clone();
        exclusive(options)?.options.db.info_log = logger;
        Ok(())
    });
}

/// The caller destroys the handle.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_get_info_log(
    opt: *mut rocksdb_options_t,
) -> *mut rocksdb_logger_t {
    attempt(ptr::null_mut(), || {
        let logger = shared(opt)?.options.db.info_log.clone();
        Ok(give(rocksdb_logger_t { logger }))
    })
}
