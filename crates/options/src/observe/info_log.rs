//! The LOG file: what the database did, one line each, as RocksDB writes it.
//!
//! A line is `2026/11/21-02:00:00.000000 3 message`: time (UTC), a small number for the thread,
//! text; levels other than INFO put their name in brackets before the text. Opening a log moves an
//! older one to `LOG.old.MICROSECONDS` and deletes the oldest beyond `keep_log_file_num`.
//!
//! A log that cannot be written must not stop a database: failures are counted and the line is
//! lost. Thread-safety: any thread; one lock, held for one append.

use super::log_line::{label, timestamp};
use super::logger::Logger;
use crate::enums::InfoLogLevel;
use esker_env::{Env, WritableFile, WriteOptions};
use esker_status::Result;
use esker_sync::Mutex;
use esker_sync::Rank;
use esker_sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const RANK: Rank = Rank::new(60_000, "info log");

struct Current {
    /// `None` after a failure to start a file; tried again when the next one is due.
    file: Option<Box<dyn WritableFile>>,
    opened_unix_us: u64,
    /// Lines from before the log is started.
    held: Option<String>,
}

/// At most this many bytes of lines wait for the log to be started; later ones are lost.
const MOST_HELD: usize = 1 << 20;

/// The options of a database about its LOG file.
#[derive(Clone, Debug)]
pub struct InfoLogOptions {
    /// Takes the lines instead of a file.
    pub sink: Option<Arc<dyn Logger>>,
    /// The least level that is written.
    pub level: InfoLogLevel,
    /// The directory; empty for the database's.
    pub directory: String,
    /// A file is rolled at this size; 0 for no limit.
    pub max_file_bytes: u64,
    /// A file is rolled at this age; 0 for no limit.
    pub max_file_age_us: u64,
    /// How many files are kept.
    pub keep_files: usize,
}

/// Writes the LOG file of a database.
pub struct InfoLog {
    env: Env,
    directory: PathBuf,
    name: String,
    level: AtomicU8,
    size_limit: u64,
    age_limit_us: u64,
    keep: usize,
    lost: AtomicU64,
    current: Mutex<Current>,
    /// Takes the lines instead of a file.
    sink: Option<Arc<dyn Logger>>,
}

/// The name of the LOG file: plain beside the data, else the database's path with `_` for `/`.
fn log_name(database: &Path, log_dir: &str) -> String {
    if log_dir.is_empty() {
        return "LOG".to_owned();
    }
    let path = database.to_string_lossy();
    let flat: String = path
        .char_indices()
        .filter_map(|(at, c)| match c {
            c if c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_') => Some(c),
            _ if at > 0 => Some('_'),
            _ => None,
        })
        .collect();
    format!("{flat}_LOG")
}

impl InfoLog {
    /// Starts a LOG file for the database in `database`, putting an older one aside.
    pub fn open(env: &Env, database: &Path, options: &InfoLogOptions) -> Result<InfoLog> {
        let log = Self::prepare(env, database, options);
        log.start()?;
        Ok(log)
    }

    /// The log of the database in `database`, which touches no file until it is started and keeps
    /// its lines in memory: an open that fails must leave the directory as it was.
    pub fn prepare(env: &Env, database: &Path, options: &InfoLogOptions) -> InfoLog {
        let directory = match options.directory.as_str() {
            "" => database.to_owned(),
            given => PathBuf::from(given),
        };
        let sink = options.sink.clone();
        // A logger of the application's touches no file: it gets every line from the start.
        let level = match &sink {
            Some(sink) if !sink.is_silent() => sink.level().number(),
            Some(_) => u8::MAX,
            None => options.level.number(),
        };
        InfoLog {
            env: env.clone(),
            sink,
            name: log_name(database, &options.directory),
            directory,
            level: AtomicU8::new(level),
            size_limit: options.max_file_bytes,
            age_limit_us: options.max_file_age_us,
            keep: options.keep_files.max(1),
            lost: AtomicU64::new(0),
            current: Mutex::new(
                RANK,
                Current {
                    file: None,
                    opened_unix_us: 0,
                    held: Some(String::new()),
                },
            ),
        }
    }

    /// Puts an older LOG file aside and starts a new one, with the lines that waited for it.
    pub fn start(&self) -> Result<()> {
        if self.sink.is_some() {
            return Ok(());
        }
        let mut current = self.current.lock();
        self.env.fs.create_dir_all(&self.directory)?;
        self.start_file(&mut current)?;
        let held = current.held.take().unwrap_or_default();
        drop(current);
        if !held.is_empty() {
            self.append(&held);
        }
        Ok(())
    }

    /// The directory of the LOG file; `None` when lines go elsewhere.
    pub fn directory(&self) -> Option<&Path> {
        self.sink.is_none().then_some(&*self.directory)
    }

    /// A log that keeps nothing and touches no file: for databases opened for reading only.
    pub fn silent(env: &Env) -> InfoLog {
        InfoLog {
            env: env.clone(),
            sink: None,
            name: String::new(),
            directory: PathBuf::new(),
            level: AtomicU8::new(u8::MAX),
            size_limit: 0,
            age_limit_us: 0,
            keep: 1,
            lost: AtomicU64::new(0),
            current: Mutex::new(
                RANK,
                Current {
                    file: None,
                    opened_unix_us: 0,
                    held: None,
                },
            ),
        }
    }

    /// The LOG file's path.
    pub fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// Returns the least level of lines that are kept.
    pub fn level(&self) -> InfoLogLevel {
        InfoLogLevel::from_number(self.level.load(Relaxed)).unwrap_or(InfoLogLevel::Info)
    }

    /// Keeps lines of `level` and above from now on.
    pub fn set_level(&self, level: InfoLogLevel) {
        self.level.store(level.number(), Relaxed);
    }

    /// Lines that could not be written.
    pub fn lost_lines(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Returns whether a line of `level` would be kept: ask before putting together a costly one.
    #[inline]
    pub fn keeps(&self, level: InfoLogLevel) -> bool {
        level.number() >= self.level.load(Relaxed)
    }

    /// Writes a line, or one for each line of the text.
    pub fn write(&self, level: InfoLogLevel, message: fmt::Arguments<'_>) {
        if !self.keeps(level) {
            return;
        }
        match &self.sink {
            Some(sink) => sink.log(level, message.to_string().trim_end()),
            None => self.append(&render(level, message, self.env.clock.unix_us())),
        }
    }

    /// Writes many lines of one level at once.
    pub fn write_lines(&self, level: InfoLogLevel, lines: &[String]) {
        if !self.keeps(level) {
            return;
        }
        if let Some(sink) = &self.sink {
            lines.iter().for_each(|line| sink.log(level, line));
            return;
        }
        let now = self.env.clock.unix_us();
        let text: String = lines
            .iter()
            .map(|line| render(level, format_args!("{line}"), now))
            .collect();
        self.append(&text);
    }

    fn append(&self, text: &str) {
        let now = self.env.clock.unix_us();
        let mut current = self.current.lock();
        if let Some(held) = &mut current.held {
            if held.len() + text.len() <= MOST_HELD {
                held.push_str(text)
            } else {
                self.lost.fetch_add(1, Relaxed);
            }
            return;
        }
        let due = match &current.file {
            None => true,
            Some(file) => {
                (self.size_limit > 0 && file.len() >= self.size_limit)
                    || (self.age_limit_us > 0
                        && now.saturating_sub(current.opened_unix_us) >= self.age_limit_us)
            }
        };
        let outcome = if due {
            self.start_file(&mut current)
        } else {
            Ok(())
        };
        let outcome = outcome.and_then(|()| match &mut current.file {
            Some(file) => file.append(text.as_bytes()).and_then(|()| file.flush()),
            None => Ok(()),
        });
        if outcome.is_err() {
            current.file = None;
            self.lost.fetch_add(1, Relaxed);
        }
    }

    /// Writes a line of level INFO.
    pub fn info(&self, message: fmt::Arguments<'_>) {
        self.write(InfoLogLevel::Info, message);
    }

    /// Writes a line of level WARN.
    pub fn warn(&self, message: fmt::Arguments<'_>) {
        self.write(InfoLogLevel::Warn, message);
    }

    /// Writes a line of level ERROR.
    pub fn error(&self, message: fmt::Arguments<'_>) {
        self.write(InfoLogLevel::Error, message);
    }

    /// Puts the present file aside, starts a new one, deletes what is beyond the number kept.
    fn start_file(&self, current: &mut Current) -> Result<()> {
        if let Some(mut file) = current.file.take() {
            // The old file takes no more lines; whether its end reached the disk changes nothing
            // here.
            let _ = file.close();
        }
        let now = self.env.clock.unix_us();
        let path = self.path();
        let mut aside = None;
        if self.env.fs.exists(&path)? {
            let mut stamp = now;
            while self.env.fs.exists(&self.old_path(stamp))? {
                stamp += 1;
            }
            let old = self.old_path(stamp);
            self.env.fs.rename(&path, &old)?;
            aside = Some(old);
        }
        let created = self.env.fs.create(&path, WriteOptions::default());
        if let (Err(_), Some(old)) = (&created, aside) {
            // The failure is what matters.
            let _ = self.env.fs.rename(&old, &path);
        }
        current.file = Some(created?);
        current.opened_unix_us = now;
        self.delete_old()
    }

    fn old_path(&self, stamp_us: u64) -> PathBuf {
        self.directory.join(format!("{}.old.{stamp_us}", self.name))
    }

    fn delete_old(&self) -> Result<()> {
        let prefix = format!("{}.old.", self.name);
        let mut stamps: Vec<u64> = self
            .env
            .fs
            .read_dir(&self.directory)?
            .iter()
            .filter_map(|entry| entry.name.strip_prefix(&prefix)?.parse().ok())
            .collect();
        stamps.sort_unstable();
        let excess = (stamps.len() + 1).saturating_sub(self.keep);
        for &stamp in &stamps[..excess] {
            self.env.fs.remove_file(&self.old_path(stamp))?;
        }
        Ok(())
    }
}

impl fmt::Debug for InfoLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InfoLog")
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

/// One message as lines of the file.
fn render(level: InfoLogLevel, message: fmt::Arguments<'_>, unix_us: u64) -> String {
    let label = label(level);
    let thread = esker_sync::thread::number();
    format!(
        "{} {thread} {label}{}\n",
        timestamp(unix_us),
        message.to_string().trim_end()
    )
}
