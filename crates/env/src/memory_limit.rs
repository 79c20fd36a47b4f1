//! The memory that this process may use: the tightest limit of its control groups, or the
//! machine's memory where no group has a tighter one.
//!
//! Both versions of control groups are read, each with all ancestors that the mount table shows: a
//! container often sees its own group as the root. A file that is absent or says "max" sets no
//! limit. Thread-safety: there is no state; each call reads again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A limit on memory, and the file that sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// The limit in bytes.
    pub bytes: u64,
    /// The file that it was read from.
    pub source: PathBuf,
}

impl MemoryLimit {
    /// Reads the limit of this process.
    ///
    /// # Errors
    /// The machine's memory cannot be read: there is no `/proc`.
    pub fn read() -> io::Result<MemoryLimit> {
        MemoryLimit::read_below(Path::new("/"))
    }

    /// Reads the limit from the files below `root`, which stands for `/`.
    fn read_below(root: &Path) -> io::Result<MemoryLimit> {
        let text = |path: &str| fs::read_to_string(root.join(path));
        let source = root.join("proc/meminfo");
        let bytes = machine_memory(&text("proc/meminfo")?).ok_or_else(|| {
            let what = format!("{} has no line MemTotal", source.display());
            io::Error::new(io::ErrorKind::InvalidData, what)
        })?;
        let mut tightest = MemoryLimit { bytes, source };
        let groups = text("proc/self/cgroup").unwrap_or_default();
        let mounts = text("proc/self/mountinfo").unwrap_or_default();
        for mount in mounts.lines().filter_map(GroupMount::parse) {
            let Some(group) = groups.lines().find_map(|line| mount.group_of(line)) else {
                continue;
            };
            for dir in mount.directories(group) {
                let file = root.join(dir).join(mount.file);
                let bytes = fs::read_to_string(&file).ok();
                // "max" of version 2 is no number; version 1 has a number beyond any machine.
                let bytes = bytes.and_then(|text| text.trim().parse().ok());
                if let Some(bytes) = bytes.filter(|bytes| *bytes < tightest.bytes) {
                    let source = file;
                    tightest = MemoryLimit { bytes, source };
                }
            }
        }
        Ok(tightest)
    }
}

fn machine_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    let kb: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kb.checked_mul(1024)
}

/// A mounted hierarchy of control groups that may limit memory.
#[derive(Debug)]
struct GroupMount {
    /// The group that the mount point shows.
    shown: String,
    /// The mount point, without the leading slash.
    point: String,
    /// The file of a group that has its limit.
    file: &'static str,
}

impl GroupMount {
    /// Reads a line of `/proc/self/mountinfo`.
    fn parse(line: &str) -> Option<GroupMount> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let (shown, point) = (place.next()?, place.next()?);
        let mut kind = kind.split(' ');
        let file = match kind.next()? {
            "cgroup2" => "memory.max",
            "cgroup" if kind.nth(1)?.split(',').any(|o| o == "memory") => "memory.limit_in_bytes",
            _ => return None,
        };
        Some(GroupMount {
            shown: unescape(shown),
            point: unescape(point).trim_start_matches('/').to_owned(),
            file,
        })
    }

    /// Returns the group that a line of `/proc/self/cgroup` names, if it is of this hierarchy.
    fn group_of<'a>(&self, line: &'a str) -> Option<&'a str> {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?);
        let is_here = match self.file {
            "memory.max" => controllers.is_empty(),
            _ => controllers.split(',').any(|c| c == "memory"),
        };
        is_here.then_some(group)
    }

    /// Returns the directories of `group` and its ancestors, as far as they are mounted. A group
    /// that is outside of what is shown is the mount point itself.
    fn directories(&self, group: &str) -> Vec<PathBuf> {
        let shown = self.shown.trim_end_matches('/');
        let below = group.strip_prefix(shown).unwrap_or_default();
        let is_below = below.starts_with('/') && !below.split('/').any(|part| part == "..");
        let below = if is_below { below } else { "" };
        let top = Path::new(&self.point);
        let own = top.join(below.trim_start_matches('/'));
        let ancestors = own.ancestors().take_while(|dir| dir.starts_with(top));
        ancestors.map(Path::to_path_buf).collect()
    }
}

/// Replaces the octal escapes of `/proc/self/mountinfo` (blank, tab, line end, backslash).
fn unescape(text: &str) -> String {
    let pairs = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    let replace = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
    pairs.iter().fold(text.to_owned(), replace)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    /// A root with 1024 MB of memory, and these files below it.
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        let meminfo = ("proc/meminfo", "MemTotal:  1048576 kB\nMemFree: 1 kB\n");
        for (path, text) in files.iter().chain([&meminfo]) {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        }
        dir
    }

    /// The limit of such a root: megabytes, and the end of the source.
    fn limit(files: &[(&str, &str)]) -> (u64, String) {
        let root = root(files);
        let limit = MemoryLimit::read_below(root.path()).expect("there is a machine");
        let source = limit.source.strip_prefix(root.path()).expect("below it");
        (limit.bytes / MB, source.display().to_string())
    }

    const V2: &str = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    const V1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:7 - cgroup cgroup \
                      rw,memory\n36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";

    #[test]
    fn without_groups_the_machine_is_the_limit() {
        let machine = (1024, "proc/meminfo".to_owned());
        assert_eq!(limit(&[]), machine);
        let unlimited = [
            ("proc/self/cgroup", "0::/a\n"),
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/a/memory.max", "max\n"),
        ];
        assert_eq!(limit(&unlimited), machine);
        let beyond = [
            ("proc/self/cgroup", "4:memory:/a\n"),
            ("proc/self/mountinfo", V1),
            (
                "sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
        ];
        assert_eq!(limit(&beyond), machine);
    }

    #[test]
    fn the_tightest_of_a_group_and_its_ancestors_counts() {
        let files = [
            ("proc/self/cgroup", "0::/pods/one/app\n"),
            ("proc/self/mountinfo", V2),
            ("sys/fs/cgroup/pods/one/app/memory.max", "max\n"),
            ("sys/fs/cgroup/pods/one/memory.max", "209715200\n"),
            ("sys/fs/cgroup/pods/memory.max", "419430400\n"),
            ("sys/fs/cgroup/other/memory.max", "1048576\n"),
        ];
        let expected = (200, "sys/fs/cgroup/pods/one/memory.max".to_owned());
        assert_eq!(limit(&files), expected);
    }

    #[test]
    fn version_1_is_read_for_the_memory_controller_alone() {
        let files = [
            ("proc/self/cgroup", "5:cpu:/b\n4:memory:/a\n0::/\n"),
            ("proc/self/mountinfo", V1),
            (
                "sys/fs/cgroup/memory/a/memory.limit_in_bytes",
                "104857600\n",
            ),
            ("sys/fs/cgroup/memory/b/memory.limit_in_bytes", "1048576\n"),
            ("sys/fs/cgroup/cpu/b/memory.limit_in_bytes", "1048576\n"),
        ];
        let expected = "sys/fs/cgroup/memory/a/memory.limit_in_bytes".to_owned();
        assert_eq!(limit(&files), (100, expected));
    }

    #[test]
    fn a_container_that_sees_its_group_as_the_root() {
        let mount = "31 23 0:28 /docker/x /sys/fs/my\\040groups rw - cgroup2 cgroup2 rw\n";
        let found = (300, "sys/fs/my groups/memory.max".to_owned());
        for group in ["0::/docker/x\n", "0::/\n", "0::/../y\n", "0::/docker/xy\n"] {
            let files = [
                ("proc/self/cgroup", group),
                ("proc/self/mountinfo", mount),
                ("sys/fs/my groups/memory.max", "314572800\n"),
            ];
            assert_eq!(limit(&files), found, "{group}");
        }
    }

    #[test]
    fn files_that_cannot_be_understood_set_no_limit() {
        for text in ["", "-1\n", "12 34\n", "99999999999999999999999\n"] {
            let files = [
                ("proc/self/cgroup", "0::/a\nnonsense\n::\n"),
                ("proc/self/mountinfo", V2),
                ("sys/fs/cgroup/a/memory.max", text),
            ];
            assert_eq!(limit(&files).0, 1024, "{text:?}");
        }
    }

    #[test]
    fn this_process_has_a_limit() {
        let limit = MemoryLimit::read().expect("this is Linux");
        assert!(limit.bytes > MB && limit.source.exists(), "{limit:?}");
    }
}
