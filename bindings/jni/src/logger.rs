//! Loggers that are written in Java.

use crate::boundary::{Outcome, handles, upcall::Target};
use crate::natives;
use crate::shared::{dispose, value};
use esker::Options;
use esker::observe::Logger;
use esker::options::InfoLogLevel;
use esker_sync::Arc;
use esker_sync::atomic::{AtomicU8, Ordering};
use jni_sys::{jbyte, jlong, jvalue};

/// A Java object that gets the lines of LOG.
struct JavaLogger {
    target: Target,
    /// The constants of `InfoLogLevel`, from DEBUG_LEVEL to HEADER_LEVEL.
    levels: Vec<Target>,
    level: AtomicU8,
}

/// A logger behind a handle.
pub(crate) struct Logging(Arc<JavaLogger>);

impl Logging {
    /// For options.
    pub(crate) fn logger(&self) -> Arc<dyn Logger> {
        Arc::clone(&self.0) as Arc<dyn Logger>
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
        // In Java headers are information, which a logger for warnings does not want.
        let level = match level {
            InfoLogLevel::Header if self.level().number() > InfoLogLevel::Info.number() => return,
            InfoLogLevel::Header => InfoLogLevel::Info,
            other => other,
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

fn new(env: crate::boundary::Env<'_>, number: u8) -> Outcome<jlong> {
    let target = Target::new(env, env.this())?;
    let names = ["DEBUG", "INFO", "WARN", "ERROR", "FATAL", "HEADER"];
    let mut levels = Vec::new();
    for name in names {
        let constant = env.constant("org/rocksdb/InfoLogLevel", &format!("{name}_LEVEL"))?;
        levels.push(Target::new(env, constant)?);
    }
    Ok(handles::give(Logging(Arc::new(JavaLogger {
        target,
        levels,
        level: AtomicU8::new(number),
    }))))
}

natives! {
    fn Java_org_rocksdb_Logger_newLogger(env, level: jlong) -> jlong {
        new(env, level as u8)
    }

    fn Java_org_rocksdb_Logger_createNewLoggerOptions
        | Java_org_rocksdb_Logger_createNewLoggerDbOptions(env, options: jlong) -> jlong {
        new(env, value::<Options>(options)?.db.info_log_level.number())
    }

    fn Java_org_rocksdb_Logger_setInfoLogLevel(env, logger: jlong, level: jbyte) {
        handles::hold::<Logging>(logger)?.0.level.store(level as u8, Ordering::Relaxed);
        Ok(())
    }

    fn Java_org_rocksdb_Logger_infoLogLevel(env, logger: jlong) -> jbyte {
        Ok(handles::hold::<Logging>(logger)?.0.level.load(Ordering::Relaxed) as jbyte)
    }

    fn Java_org_rocksdb_Logger_disposeInternal(env, logger: jlong) {
        dispose::<Logging>(logger)
    }
}
