//! Filesystems of our own: an ext4 in a file on a loop device, a tmpfs of a given size.
//!
//! They are made and mounted by the system's own commands, which takes root; where that is not permitted the error says what
//! failed. A mount goes away with its value. Used by one thread.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Runs a command; what it said when it failed.
fn run(command: &mut Command) -> Result<(), String> {
    let what = format!("{command:?}");
    match command.output() {
        Ok(out) if out.status.success() => Ok(()),
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
            last = run(Command::new("umount").arg(&self.point));
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

/// An ext4 in a file.
#[derive(Debug)]
pub(crate) struct Image {
    file: PathBuf,
    point: PathBuf,
    options: String,
}

impl Image {
    /// Makes one below `home` with so many bytes, mounted with these options of ext4.
    pub(crate) fn ext4(home: &Path, bytes: u64, options: &str) -> Result<Image, String> {
        let file = home.join("image");
        let sized = std::fs::File::create(&file).and_then(|f| f.set_len(bytes));
        sized.map_err(|e| format!("{}: {e}", file.display()))?;
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&file))?;
        Ok(Image {
            file,
            point: home.join("mounted"),
            options: format!("loop,{options}"),
        })
    }

    /// Mounts it.
    pub(crate) fn mount(&self) -> Result<Mount, String> {
        let file = self.file.to_string_lossy();
        let args = ["-t", "ext4", "-o", &self.options, &file];
        Mount::new(self.point.clone(), &args)
    }
}
