//! The quota of a btrfs: a write beyond it fails with EDQUOT, also for root, to which quotas of
//! users do not apply.
//!
//! It is put on the subvolume that is mounted, by `btrfs` of btrfs-progs, which takes root. Bytes
//! of data count, and what the filesystem keeps of names and places of data. To change a limit
//! takes a little space of the subvolume through which it is asked for, and one that uses more than
//! it may has none, whatever is synced or awaited: so it is asked for through another, which has no
//! limit. Used by one thread for each filesystem.

use crate::mounts::run;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The subvolume at the mount point.
const LIMITED: &str = "0/5";

/// The directory of the subvolume through which limits are changed.
fn unlimited(point: &Path) -> PathBuf {
    point.join("unlimited")
}

/// Lets the filesystem at `point` count.
pub(crate) fn enable(point: &Path) -> Result<(), String> {
    btrfs(&["quota", "enable"], point)?;
    btrfs(&["subvolume", "create"], &unlimited(point))
}

/// Allows this many bytes more than are used now.
pub(crate) fn leave(point: &Path, free: u64) -> Result<(), String> {
    limit(point, &(used(point)? + free).to_string())
}

/// Allows everything.
pub(crate) fn lift(point: &Path) -> Result<(), String> {
    limit(point, "none")
}

fn limit(point: &Path, bytes: &str) -> Result<(), String> {
    btrfs(&["qgroup", "limit", bytes, LIMITED], &unlimited(point))
}

/// Bytes that the subvolume refers to: the second column of its line.
fn used(point: &Path) -> Result<u64, String> {
    let show = ["qgroup", "show", "--raw", "--sync"];
    let table = run(Command::new("btrfs").args(show).arg(point))?;
    let mut lines = table.lines().map(str::split_whitespace);
    let bytes = lines.find_map(|mut l| (l.next()? == LIMITED).then(|| l.next()?.parse().ok())?);
    bytes.ok_or_else(|| format!("{table}: no figure of a subvolume"))
}

fn btrfs(args: &[&str], place: &Path) -> Result<(), String> {
    run(Command::new("btrfs").args(args).arg(place)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::Image;

    #[test]
    fn a_limit_far_below_what_is_used_is_lifted_at_once() {
        let home = tempfile::tempdir().unwrap();
        let image = Image::btrfs(home.path().join("mounted"), 128 << 20);
        let mount = match image.and_then(|i| i.mount()) {
            Ok(mount) => mount,
            Err(reason) => return eprintln!("skipped: {reason}"),
        };
        let point = &mount.point;
        enable(point).unwrap();
        std::fs::write(point.join("data"), vec![1; 1 << 20]).unwrap();
        limit(point, "4096").unwrap();
        let refused = std::fs::write(point.join("more"), vec![2; 1 << 20]).unwrap_err();
        assert_eq!(
            refused.raw_os_error(),
            Some(rustix::io::Errno::DQUOT.raw_os_error())
        );
        lift(point).unwrap();
        std::fs::write(point.join("more"), vec![2; 1 << 20]).unwrap();
        leave(point, 1 << 20).unwrap();
        std::fs::write(point.join("less"), vec![3; 512 << 10]).unwrap();
        mount.unmount().unwrap();
    }
}
