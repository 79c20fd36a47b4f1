//! Loggers of the application, which take the lines of the log instead of the LOG file.
//!
//! Thread-safety: lines come from any thread, at once. A logger must return soon and must not
//! panic.

use super::log_line::{label, timestamp};
use crate::enums::InfoLogLevel;
use esker_env::{Clock, Env};
use std::io::Write as _;
use std::sync::Arc;

/// Takes the lines that the LOG file would get: set [`crate::options::DbOptions`]' `info_log`.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker::observe::Logger;
/// use esker::options::InfoLogLevel;
/// use std::sync::{Arc, Mutex};
///
/// #[derive(Default)]
/// struct Lines(Mutex<Vec<String>>);
/// impl Logger for Lines {
///     fn level(&self) -> InfoLogLevel {
///         InfoLogLevel::Info
///     }
///     fn log(&self, _level: InfoLogLevel, line: &str) {
///         self.0.lock().expect("no panic under the lock").push(line.to_owned());
///     }
/// }
///
/// let lines = Arc::new(Lines::default());
/// let mut options = esker::Options::new().create_if_missing(true);
/// options.db.info_log = Some(lines.clone());
/// drop(esker::Db::open(dir.path(), options)?);
/// assert!(!dir.path().join("LOG").exists());
/// assert!(!lines.0.lock().expect("no panic under the lock").is_empty());
/// # Ok(())
/// # }
/// ```
pub trait Logger: Send + Sync {
    /// The least level that it wants; headers come in any case.
    fn level(&self) -> InfoLogLevel;
    /// Takes a line, or several with line feeds between them, without a time.
    fn log(&self, level: InfoLogLevel, line: &str);
    /// Returns whether it drops everything, headers too: then no line is put together for it.
    fn is_silent(&self) -> bool {
        false
    }
}

impl std::fmt::Debug for dyn Logger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Logger")
    }
}

/// Writes to standard error: time, a prefix, the line.
#[derive(Clone, Debug)]
pub struct StderrLogger {
    level: InfoLogLevel,
    prefix: String,
    clock: Arc<dyn Clock>,
}

impl StderrLogger {
    /// Keeps lines of `level` and above, and begins each with `prefix`.
    pub fn new(level: InfoLogLevel, prefix: impl Into<String>) -> Self {
        StderrLogger {
            level,
            prefix: prefix.into(),
            clock: Env::posix().clock,
        }
    }
}

/// The level of a line for a logger of `least`, `None` for a line that it does not want: headings
/// are information to RocksDB's loggers, but for the LOG file's.
pub fn as_information(level: InfoLogLevel, least: InfoLogLevel) -> Option<InfoLogLevel> {
    match level {
        InfoLogLevel::Header if least.number() > InfoLogLevel::Info.number() => None,
        InfoLogLevel::Header => Some(InfoLogLevel::Info),
        other => Some(other),
    }
}

impl Logger for StderrLogger {
    fn level(&self) -> InfoLogLevel {
        self.level
    }

    fn log(&self, level: InfoLogLevel, line: &str) {
        let Some(level) = as_information(level, self.level) else {
            return;
        };
        let prefix = match self.prefix.as_str() {
            "" => String::new(),
            given => format!("{given} "),
        };
        // A log that cannot be written must not stop a database.
        let _ = writeln!(
            std::io::stderr().lock(),
            "{} {prefix}{}{line}",
            timestamp(self.clock.unix_us()),
            label(level)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logger_for_warnings_wants_no_headings() {
        use InfoLogLevel::{Debug, Error, Header, Info, Warn};
        assert_eq!(as_information(Header, Info), Some(Info));
        assert_eq!(as_information(Header, Debug), Some(Info));
        assert_eq!(as_information(Header, Warn), None);
        assert_eq!(as_information(Error, Warn), Some(Error));
    }
}
