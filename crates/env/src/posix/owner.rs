//! The owner and the permissions of a file: whether a file that was made before is as one that is
//! made now.

use super::{FILE_MODE, call};
use esker_status::Result;
use rustix::fs::{self, Mode, RawMode, Stat};
use std::path::Path;

/// Owner and mode that the kernel gives the files which this thread creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileOwner {
    user: u32,
    group: u32,
    /// The bits that no new file has.
    umask: RawMode,
}

impl FileOwner {
    /// `None` where the system does not say.
    fn this() -> Option<FileOwner> {
        Self::parse(&std::fs::read_to_string("/proc/thread-self/status").ok()?)
    }

    /// From lines as in `/proc/self/status`; of the four users and groups the last makes files.
    fn parse(status: &str) -> Option<FileOwner> {
        let last = |field: &str| {
            let mut lines = status.lines();
            lines.find_map(|l| l.strip_prefix(field)?.split_whitespace().last())
        };
        Some(FileOwner {
            user: last("Uid:")?.parse().ok()?,
            group: last("Gid:")?.parse().ok()?,
            umask: RawMode::from_str_radix(last("Umask:")?, 8).ok()?,
        })
    }
}

/// Returns whether a file that is created beside `path` would belong to the same user and group as
/// `file` and be open to the same people; `false` in doubt.
pub(super) fn is_as_new(path: &Path, file: &Stat) -> Result<bool> {
    let Some(maker) = FileOwner::this() else {
        return Ok(false);
    };
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty());
    let dir = dir.unwrap_or(Path::new("."));
    let dir = call("stat", dir, || fs::stat(dir))?;
    let hands_group_down = Mode::from_raw_mode(dir.st_mode).contains(Mode::SGID);
    let group = if hands_group_down {
        dir.st_gid
    } else {
        maker.group
    };
    let mode = Mode::from_raw_mode(file.st_mode).as_raw_mode();
    let is_same = file.st_uid == maker.user && file.st_gid == group;
    Ok(is_same && mode == FILE_MODE & !maker.umask)
}

#[cfg(test)]
mod tests {
    use super::FileOwner;

    #[test]
    fn the_maker_of_files_is_read_from_the_status() {
        let text = "Name:\tx\nUmask:\t0027\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t9\n";
        let (user, group, umask) = (4, 8, 0o27);
        let maker = FileOwner { user, group, umask };
        assert_eq!(FileOwner::parse(text), Some(maker));
        assert_eq!(FileOwner::parse("Uid:\t1\t2\t3\t4\n"), None);
    }
}
