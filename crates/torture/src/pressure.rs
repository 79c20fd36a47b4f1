//! Limits that are set for a process, and lifted again.
//!
//! All are put on by the process itself on itself: a ballast file fills its filesystem, its
//! filesystem's quota is set, and soft resource limits are lowered and raised. `SIGXFSZ` has to be
//! ignored by whoever starts it. Used by one thread.

use crate::quota;
use crate::rng::Rng;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The resource that runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Limit {
    /// The filesystem is full: ENOSPC.
    Space,
    /// RLIMIT_FSIZE: EFBIG.
    FileSize,
    /// RLIMIT_NOFILE: EMFILE.
    Files,
    /// The filesystem's quota is used up: EDQUOT. It must be a btrfs that counts.
    Quota,
}

/// Resources that can run out on any filesystem.
pub(crate) const EVERYWHERE: [Limit; 3] = [Limit::Space, Limit::FileSize, Limit::Files];

/// Every limit.
pub(crate) const LIMITS: [Limit; 4] = [Limit::Space, Limit::FileSize, Limit::Files, Limit::Quota];

/// A limit of a process, while it is in force.
#[derive(Debug)]
pub(crate) struct Pressure {
    home: PathBuf,
    ballast: PathBuf,
}

impl Pressure {
    /// Nothing yet; `home` is where the process's filesystem is mounted.
    pub(crate) fn new(home: &Path) -> Pressure {
        Pressure {
            home: home.to_owned(),
            ballast: home.join("ballast"),
        }
    }

    /// Lets `limit` bite soon.
    pub(crate) fn apply(&self, limit: Limit, rng: &mut Rng) -> io::Result<()> {
        match limit {
            Limit::Space => self.fill(rng.below(600 << 10)),
            Limit::FileSize => lower(Resource::Fsize, 4096 + rng.below(60 << 10)),
            Limit::Files => lower(Resource::Nofile, next_file()? + rng.below(2)),
            Limit::Quota => {
                quota::leave(&self.home, rng.below(600 << 10)).map_err(io::Error::other)
            }
        }
    }

    /// Takes the limit away.
    pub(crate) fn lift(&self, limit: Limit) -> io::Result<()> {
        match limit {
            Limit::Space => std::fs::remove_file(&self.ballast),
            Limit::FileSize => raise(Resource::Fsize),
            Limit::Files => raise(Resource::Nofile),
            Limit::Quota => quota::lift(&self.home).map_err(io::Error::other),
        }
    }

    /// Fills the filesystem but for this many bytes.
    fn fill(&self, free: u64) -> io::Result<()> {
        let mut file = File::create(&self.ballast)?;
        let block = vec![0x55; 64 << 10];
        let mut len = 0;
        loop {
            match file.write(&block) {
                Ok(n) if n > 0 => len += n as u64,
                _ => break,
            }
        }
        let file = OpenOptions::new().write(true).open(&self.ballast)?;
        file.set_len(len.saturating_sub(free))
    }
}

fn lower(resource: Resource, to: u64) -> io::Result<()> {
    let maximum = getrlimit(resource).maximum;
    let current = Some(to);
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}

fn raise(resource: Resource) -> io::Result<()> {
    let maximum = getrlimit(resource).maximum;
    let current = maximum;
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}

/// Caps the address space of this process at this many bytes more than it has.
pub(crate) fn cap_memory(more: u64) -> io::Result<()> {
    lower(Resource::As, status("VmSize:")? * 1024 + more)
}

/// The number that the next file would get: the limit is on numbers, not on how many are open.
fn next_file() -> io::Result<u64> {
    let mut used = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        used.insert(entry?.file_name().to_string_lossy().parse().unwrap_or(0));
    }
    Ok((0..).find(|n| !used.contains(n)).unwrap_or(0))
}

/// Resources that this process uses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Resident memory in KiB.
    pub(crate) rss_kib: u64,
    /// Open files.
    pub(crate) fds: u64,
    /// Threads.
    pub(crate) threads: u64,
    /// Files in the database's directory.
    pub(crate) files: u64,
}

impl Usage {
    /// Of this process now, with its database at `dir`.
    pub(crate) fn now(dir: &Path) -> io::Result<Usage> {
        Ok(Usage {
            rss_kib: status("VmRSS:")?,
            fds: std::fs::read_dir("/proc/self/fd")?.count() as u64,
            threads: status("Threads:")?,
            files: std::fs::read_dir(dir)?.count() as u64,
        })
    }

    /// The larger of each.
    pub(crate) fn max(self, other: Usage) -> Usage {
        Usage {
            rss_kib: self.rss_kib.max(other.rss_kib),
            fds: self.fds.max(other.fds),
            threads: self.threads.max(other.threads),
            files: self.files.max(other.files),
        }
    }
}

/// A number of `/proc/self/status`.
fn status(name: &str) -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|l| l.strip_prefix(name));
    let number = line.and_then(|l| l.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| io::Error::other(format!("/proc/self/status has no {name}")))
}
