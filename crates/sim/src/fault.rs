//! Failing calls: which call, how, and for how long, as one value that can be printed and read
//! back.
//!
//! A [`FaultSpec`] counts the calls that match it and fails the k-th: once, or from then on until
//! [`Faults::heal`] ("space came back"), or for ever. Its text, `append:wal:3:ENOSPC:until`, is
//! what a failing run prints and `--replay` takes.
//!
//! Invariants: a call is asked about once, under the disk's lock, before it does anything; a failed
//! call changed nothing, except that a short append took half of its bytes and a failed fsync did
//! to the pages what its variant says. Thread-safety: [`Faults`] lives inside the disk's lock; a
//! plan is a value.

use crate::disk_log::Pages;
use esker::FileKind;
use esker::file_name::parse_file_name;
use esker_status::{Error, Result};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// The method of the filesystem that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the names are those of the filesystem's methods"
)]
pub enum Call {
    OpenRead,
    Create,
    OpenAppend,
    Read,
    ReadAll,
    ReadDir,
    Mkdir,
    Rmdir,
    Remove,
    Rename,
    Link,
    SyncDir,
    Stat,
    WriteAt,
    Truncate,
    Lock,
    FreeSpace,
    Append,
    Sync,
    Close,
}

/// Every kind of call, with its name in plans.
pub const CALLS: &[(Call, &str)] = &[
    (Call::OpenRead, "open"),
    (Call::Create, "create"),
    (Call::OpenAppend, "open_append"),
    (Call::Read, "read"),
    (Call::ReadAll, "read_all"),
    (Call::ReadDir, "read_dir"),
    (Call::Mkdir, "mkdir"),
    (Call::Rmdir, "rmdir"),
    (Call::Remove, "remove"),
    (Call::Rename, "rename"),
    (Call::Link, "link"),
    (Call::SyncDir, "sync_dir"),
    (Call::Stat, "stat"),
    (Call::WriteAt, "write_at"),
    (Call::Truncate, "truncate"),
    (Call::Lock, "lock"),
    (Call::FreeSpace, "free_space"),
    (Call::Append, "append"),
    (Call::Sync, "sync"),
    (Call::Close, "close"),
];

impl Call {
    /// Its name in plans and messages.
    pub fn name(self) -> &'static str {
        CALLS
            .iter()
            .find(|(c, _)| *c == self)
            .map_or("call", |(_, n)| n)
    }

    /// Returns whether it changes the disk, or promises that it has.
    pub fn is_write(self) -> bool {
        !matches!(
            self,
            Call::OpenRead
                | Call::Read
                | Call::ReadAll
                | Call::ReadDir
                | Call::Stat
                | Call::FreeSpace
        )
    }
}

/// The kind of file that a call is about, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Class {
    Wal,
    Table,
    Manifest,
    Current,
    Options,
    Identity,
    Temp,
    Blob,
    Lock,
    InfoLog,
    Other,
}

/// Every class of files, with its name in plans.
pub const CLASSES: &[(Class, &str)] = &[
    (Class::Wal, "wal"),
    (Class::Table, "table"),
    (Class::Manifest, "manifest"),
    (Class::Current, "current"),
    (Class::Options, "options"),
    (Class::Identity, "identity"),
    (Class::Temp, "temp"),
    (Class::Blob, "blob"),
    (Class::Lock, "lock"),
    (Class::InfoLog, "log"),
    (Class::Other, "other"),
];

impl Class {
    /// The class of the file at `path`; directories are [`Class::Other`].
    pub fn of(path: &Path) -> Class {
        let name = path.file_name().map(|n| n.to_string_lossy());
        Self::of_name(name.as_deref().unwrap_or_default())
    }

    /// The class of a file called `name`.
    pub fn of_name(name: &str) -> Class {
        match parse_file_name(name).map(|(kind, _)| kind) {
            Some(FileKind::Wal) => Class::Wal,
            Some(FileKind::Table) => Class::Table,
            Some(FileKind::Manifest) => Class::Manifest,
            Some(FileKind::Current) => Class::Current,
            Some(FileKind::Options) => Class::Options,
            Some(FileKind::Identity) => Class::Identity,
            Some(FileKind::Temp) => Class::Temp,
            Some(FileKind::Blob) => Class::Blob,
            Some(FileKind::Lock) => Class::Lock,
            _ if name == "LOG" || name.starts_with("LOG.old") => Class::InfoLog,
            _ => Class::Other,
        }
    }
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// With this error number; nothing happened.
    Errno(i32),
    /// After half of the bytes, with this error number. Other calls than appends fail whole.
    Short(i32),
    /// A sync fails with EIO, and the pages are marked clean. Other calls fail with EIO.
    Pages(Pages),
}

const EIO: i32 = 5;

/// Every failure, with its name in plans.
pub const FAILURES: &[(Failure, &str)] = &[
    (Failure::Errno(EIO), "EIO"),
    (Failure::Errno(28), "ENOSPC"),
    (Failure::Errno(122), "EDQUOT"),
    (Failure::Errno(4), "EINTR"),
    (Failure::Errno(24), "EMFILE"),
    (Failure::Short(28), "short-ENOSPC"),
    (Failure::Short(EIO), "short-EIO"),
    (Failure::Pages(Pages::Kept), "fsync-kept"),
    (Failure::Pages(Pages::Reverted), "fsync-reverted"),
    (Failure::Pages(Pages::Dropped), "fsync-dropped"),
];

impl Failure {
    /// The error number that the caller sees.
    pub fn errno(self) -> i32 {
        match self {
            Failure::Errno(n) | Failure::Short(n) => n,
            Failure::Pages(_) => EIO,
        }
    }

    /// Returns the state of the pages after a failed sync. They are kept when the plan does not
    /// say, as ext4 does.
    pub fn pages(self) -> Pages {
        match self {
            Failure::Pages(p) => p,
            _ => Pages::Kept,
        }
    }

    /// Returns whether the disk is full.
    pub fn is_no_space(self) -> bool {
        matches!(self.errno(), 28 | 122)
    }
}

/// How long calls go on failing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// One call fails.
    Once,
    /// All from the k-th on fail until the disk is healed.
    Until,
    /// All from the k-th on fail.
    Forever,
}

const SPANS: &[(Span, &str)] = &[
    (Span::Once, "once"),
    (Span::Until, "until"),
    (Span::Forever, "forever"),
];

/// The calls that fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultSpec {
    /// Calls of this kind alone; of any kind that changes the disk when `None`.
    pub call: Option<Call>,
    /// Calls about files of this class alone.
    pub class: Option<Class>,
    /// The how-manieth of the matching calls is the first to fail, from 1.
    pub nth: u64,
    /// How.
    pub failure: Failure,
    /// How long.
    pub span: Span,
}

impl FaultSpec {
    fn matches(&self, call: Call, path: &Path) -> bool {
        let kind = match self.call {
            Some(wanted) => wanted == call,
            None => call.is_write(),
        };
        kind && self.class.is_none_or(|c| c == Class::of(path))
    }
}

fn name_of<T: PartialEq>(table: &[(T, &'static str)], value: &T) -> &'static str {
    table
        .iter()
        .find(|(v, _)| v == value)
        .map_or("any", |(_, n)| n)
}

fn value_of<T: Copy>(table: &[(T, &'static str)], name: &str) -> Result<T> {
    let found = table.iter().find(|(_, n)| *n == name);
    found.map(|(v, _)| *v).ok_or_else(|| {
        let known: Vec<_> = table.iter().map(|(_, n)| *n).collect();
        Error::invalid_argument(format!(
            "{name} is not one of {} in a fault plan",
            known.join(", ")
        ))
    })
}

impl fmt::Display for FaultSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = self.call.map_or("any", Call::name);
        let class = self.class.map_or("any", |c| name_of(CLASSES, &c));
        let failure = name_of(FAILURES, &self.failure);
        let span = name_of(SPANS, &self.span);
        write!(f, "{call}:{class}:{}:{failure}:{span}", self.nth)
    }
}

impl FromStr for FaultSpec {
    type Err = Error;

    fn from_str(text: &str) -> Result<FaultSpec> {
        let words: Vec<_> = text.split(':').collect();
        let [call, class, nth, failure, span] = words[..] else {
            return Err(Error::invalid_argument(format!(
                "a fault plan is CALL:CLASS:NTH:FAILURE:SPAN, not {text}"
            )));
        };
        let optional = |name: &str| (name != "any").then(|| name.to_owned());
        Ok(FaultSpec {
            call: optional(call).map(|n| value_of(CALLS, &n)).transpose()?,
            class: optional(class).map(|n| value_of(CLASSES, &n)).transpose()?,
            nth: nth.parse().map_err(|_| {
                Error::invalid_argument(format!("{nth} is not the number of a call"))
            })?,
            failure: value_of(FAILURES, failure)?,
            span: value_of(SPANS, span)?,
        })
    }
}

/// A plan at work.
#[derive(Debug)]
pub struct Faults {
    plan: FaultSpec,
    seen: u64,
    failed: u64,
    healed: bool,
}

impl Faults {
    /// Counts from now on.
    pub fn new(plan: FaultSpec) -> Self {
        Faults {
            plan,
            seen: 0,
            failed: 0,
            healed: false,
        }
    }

    /// Returns the failure of this call, if it fails.
    pub fn ask(&mut self, call: Call, path: &Path) -> Option<Failure> {
        if self.healed || !self.plan.matches(call, path) {
            return None;
        }
        self.seen += 1;
        let fails = match self.plan.span {
            Span::Once => self.seen == self.plan.nth,
            Span::Until | Span::Forever => self.seen >= self.plan.nth,
        };
        if !fails {
            return None;
        }
        self.failed += 1;
        Some(self.plan.failure)
    }

    /// Nothing fails any more.
    pub fn heal(&mut self) {
        self.healed = true;
    }

    /// How many calls were failed.
    pub fn failed(&self) -> u64 {
        self.failed
    }
}
