//! Filesystems of our own: an ext4 or btrfs in a file on a loop device, a tmpfs of a given size.
//!
//! They are made and mounted by the system's own commands, which takes root; where that is not
//! permitted the error says what failed. A mount goes away with its value. Used by one thread.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Runs a command; what it printed, or why it failed.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let what = format!("{command:?}");
    match command.output() {
        Ok(out) if out.status.success() => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
        Ok(out) => Err(format!(
            "{what}: {}",
            String::from_utf8_lossy(&out.stderr).trim()
        )),
        Err(e) => Err(format!("{what}: {e}")),
    }
}

/// A mounted filesystem.
#[derive(Debug)]
pub(crate) struct Mount {
    /// Where it is.
    pub(crate) point: PathBuf,
    mounted: bool,
}

impl Mount {
    fn new(point: PathBuf, args: &[&str]) -> Result<Mount, String> {
        std::fs::create_dir_all(&point).map_err(|e| format!("{}: {e}", point.display()))?;
        run(Command::new("mount").args(args).arg(&point))?;
        Ok(Mount {
            point,
            mounted: true,
        })
    }

    /// A filesystem in memory that holds `bytes`.
    pub(crate) fn tmpfs(point: PathBuf, bytes: u64) -> Result<Mount, String> {
        let size = format!("size={bytes}");
        Mount::new(point, &["-t", "tmpfs", "-o", &size, "tmpfs"])
    }

    /// Takes it away. A process that has just died may hold it for a moment.
    pub(crate) fn unmount(mut self) -> Result<(), String> {
        self.try_unmount()
    }

    fn try_unmount(&mut self) -> Result<(), String> {
        let mut last = Ok(());
        for attempt in 0..50 {
            last = run(Command::new("umount").arg(&self.point)).map(drop);
            if last.is_ok() {
                self.mounted = false;
                return last;
            }
            std::thread::sleep(Duration::from_millis(10 * attempt));
        }
        last
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.mounted
            && let Err(e) = self.try_unmount()
        {
            eprintln!("{e}");
        }
    }
}

/// A filesystem in a file.
#[derive(Debug)]
pub(crate) struct Image {
    kind: &'static str,
    file: PathBuf,
    point: PathBuf,
    options: String,
}

impl Image {
    /// An ext4 below `home` with this many bytes, mounted with these options.
    pub(crate) fn ext4(home: &Path, bytes: u64, options: &str) -> Result<Image, String> {
        let image = Image {
            kind: "ext4",
            file: home.join("image"),
            point: home.join("mounted"),
            options: format!("loop,{options}"),
        };
        image.make(bytes, &["-q", "-F"])
    }

    /// A btrfs with so many bytes, for `point`, in a file beside that.
    pub(crate) fn btrfs(point: PathBuf, bytes: u64) -> Result<Image, String> {
        let image = Image {
            kind: "btrfs",
            file: point.with_extension("image"),
            point,
            options: "loop".to_owned(),
        };
        image.make(bytes, &["-q"])
    }

    fn make(self, bytes: u64, args: &[&str]) -> Result<Image, String> {
        let sized = std::fs::File::create(&self.file).and_then(|f| f.set_len(bytes));
        sized.map_err(|e| format!("{}: {e}", self.file.display()))?;
        let mut command = Command::new(format!("mkfs.{}", self.kind));
        run(command.args(args).arg(&self.file))?;
        Ok(self)
    }

    /// Mounts it.
    pub(crate) fn mount(&self) -> Result<Mount, String> {
        let file = self.file.to_string_lossy();
        let args = ["-t", self.kind, "-o", &self.options, &file];
        Mount::new(self.point.clone(), &args)
    }
}
