//! Loggers that are written in Java, and one that writes to standard error.

use crate::boundary::{Outcome, handles, upcall::Target};
use crate::natives;
use crate::shared::{dispose, value};
use esker::Options;
use esker::observe::{Logger, StderrLogger, as_information};
use esker::options::InfoLogLevel;
use esker_sync::Arc;
use esker_sync::atomic::{AtomicU8, Ordering};
use jni_sys::{jbyte, jlong, jobject, jvalue};

/// A Java object that gets the lines of LOG.
struct JavaLogger {
    target: Target,
    /// The constants of `InfoLogLevel`, from DEBUG_LEVEL to HEADER_LEVEL.
    levels: Vec<Target>,
    level: Level,
}

/// The lines of LOG on standard error.
struct Stderr {
    lines: StderrLogger,
    level: Level,
}

/// The number of a level, which a setter of the logger changes.
type Level = Arc<AtomicU8>;

/// A logger behind a handle.
pub(crate) struct Logging {
    logger: Arc<dyn Logger>,
    level: Level,
}

impl Logging {
    /// For options.
    pub(crate) fn logger(&self) -> Arc<dyn Logger> {
        Arc::clone(&self.logger)
    }

    fn set_level(logger: jlong, level: jbyte) -> Outcome<()> {
        let logging = handles::hold::<Logging>(logger)?;
        logging.level.store(level as u8, Ordering::Relaxed);
        Ok(())
    }

    fn level(logger: jlong) -> Outcome<jbyte> {
        let logging = handles::hold::<Logging>(logger)?;
        Ok(logging.level.load(Ordering::Relaxed) as jbyte)
    }
}

fn level(number: u8) -> InfoLogLevel {
    InfoLogLevel::from_number(number).unwrap_or(InfoLogLevel::Header)
}

impl Logger for JavaLogger {
    fn level(&self) -> InfoLogLevel {
        level(self.level.load(Ordering::Relaxed))
    }

    fn log(&self, level: InfoLogLevel, line: &str) {
        let Some(level) = as_information(level, self.level()) else {
            return;
        };
        // A logger that throws has no caller to throw to.
        let _ = self.target.with(|env, logger| {
            let method = "(Lorg/rocksdb/InfoLogLevel;Ljava/lang/String;)V";
            let method = self.target.method(env, "log", method)?;
            let last = self.levels.last();
            let Some(level) = self.levels.get(usize::from(level.number())).or(last) else {
                return Ok(());
            };
            let arguments = [
                jvalue { l: level.object() },
                jvalue {
                    l: env.string(line)?,
                },
            ];
            env.call_void(logger, method, &arguments)
        });
    }
}

impl Logger for Stderr {
    fn level(&self) -> InfoLogLevel {
        level(self.level.load(Ordering::Relaxed))
    }

    fn log(&self, level: InfoLogLevel, line: &str) {
        if let Some(level) = as_information(level, self.level()) {
            self.lines.log(level, line);
        }
    }
}

fn new(env: crate::boundary::Env<'_>, number: u8) -> Outcome<jlong> {
    let target = Target::new(env, env.this())?;
    let names = ["DEBUG", "INFO", "WARN", "ERROR", "FATAL", "HEADER"];
    let mut levels = Vec::new();
    for name in names {
        let constant = env.constant("org/rocksdb/InfoLogLevel", &format!("{name}_LEVEL"))?;
        levels.push(Target::new(env, constant)?);
    }
    let level = Level::new(AtomicU8::new(number));
    let logger = Arc::new(JavaLogger {
        target,
        levels,
        level: Arc::clone(&level),
    });
    Ok(handles::give(Logging { logger, level }))
}

natives! {
    fn Java_org_rocksdb_Logger_newLogger(env, level: jlong) -> jlong {
        new(env, level as u8)
    }

    fn Java_org_rocksdb_Logger_createNewLoggerOptions
        | Java_org_rocksdb_Logger_createNewLoggerDbOptions(env, options: jlong) -> jlong {
        new(env, value::<Options>(options)?.db.info_log_level.number())
    }

    /// A prefix that is null is none.
    fn Java_org_rocksdb_util_StdErrLogger_newStdErrLogger(
        env, number: jbyte, prefix: jobject
    ) -> jlong {
        let prefix = if prefix.is_null() { String::new() } else { env.text(prefix)? };
        let lines = StderrLogger::new(level(number as u8), prefix);
        let level = Level::new(AtomicU8::new(number as u8));
        let logger = Arc::new(Stderr { lines, level: Arc::clone(&level) });
        Ok(handles::give(Logging { logger, level }))
    }

    fn Java_org_rocksdb_Logger_setInfoLogLevel
        | Java_org_rocksdb_util_StdErrLogger_setInfoLogLevel(env, logger: jlong, level: jbyte) {
        Logging::set_level(logger, level)
    }

    fn Java_org_rocksdb_Logger_infoLogLevel | Java_org_rocksdb_util_StdErrLogger_infoLogLevel(
        env, logger: jlong
    ) -> jbyte {
        Logging::level(logger)
    }

    fn Java_org_rocksdb_Logger_disposeInternal | Java_org_rocksdb_util_StdErrLogger_disposeInternal(
        env, logger: jlong
    ) {
        dispose::<Logging>(logger)
    }
}
