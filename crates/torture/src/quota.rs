//! The quota of a btrfs: who goes beyond it gets EDQUOT, root too, which the quotas of users let through.
//!
//! It belongs to the subvolume that is mounted, and is set by `btrfs` of btrfs-progs, which takes root. Bytes of data count, and
//! what the filesystem keeps of names and places of data. Used by one thread for each filesystem.

use crate::mounts::run;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// For how long a limit that cannot be lifted yet is tried again.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lets the filesystem at `point` count.
pub(crate) fn enable(point: &Path) -> Result<(), String> {
    btrfs(point, &["quota", "enable"]).map(drop)
}

/// Allows so many bytes more than are used now.
pub(crate) fn leave(point: &Path, free: u64) -> Result<(), String> {
    let limit = used(point)? + free;
    btrfs(point, &["qgroup", "limit", &limit.to_string()]).map(drop)
}

/// Allows everything. The change itself needs a little space, which btrfs has again once it has written back.
pub(crate) fn lift(point: &Path) -> Result<(), String> {
    let end = Instant::now() + PATIENCE;
    loop {
        match btrfs(point, &["qgroup", "limit", "none"]) {
            Ok(_) => return Ok(()),
            Err(e) if Instant::now() >= end => return Err(e),
            Err(_) => {
                // Waiting alone is not always enough: what is reserved for writes is given back when they are over.
                let _tried = btrfs(point, &["filesystem", "sync"]);
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// Bytes that the subvolume refers to: the second column of the last line.
fn used(point: &Path) -> Result<u64, String> {
    let table = btrfs(point, &["qgroup", "show", "--raw", "--sync"])?;
    let line = table.lines().rfind(|l| l.starts_with("0/"));
    let bytes = line.and_then(|l| l.split_whitespace().nth(1)?.parse().ok());
    bytes.ok_or_else(|| format!("{table}: no figure of a subvolume"))
}

fn btrfs(point: &Path, args: &[&str]) -> Result<String, String> {
    run(Command::new("btrfs").args(args).arg(point))
}
