//! Ctrl-C and SIGTERM: a run stops early, says what it has, and leaves no temporary directory.
//!
//! After the first signal, loops that look at [`stopped`] end and benchmarks that have not begun
//! are left out. The second ends the process, after the temporary directories are gone; one that
//! comes at once is still the first. One thread waits for signals. The directories are listed in
//! one place; each has a file whose lock its owner holds. A process that died by a signal that
//! cannot be caught has lost the lock, and the next run removes its directory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::say::complain;
use crate::{Failure, Result};

static STOPPED: AtomicBool = AtomicBool::new(false);
static SIGNAL: AtomicI32 = AtomicI32::new(0);
static SCRATCHES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static PROCESSES: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// The file that the owner of a temporary directory holds a lock on.
const OWNER: &str = "owner";
/// The beginning of the names of temporary directories.
const PREFIX: &str = "esker-bench-";

/// A signal that comes this soon is the one before: `timeout` signals the process and its group.
const SAME: Duration = Duration::from_millis(300);

/// Returns whether somebody asked the run to stop.
#[inline]
pub fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// The exit code of a run that a signal stopped, as shells have it.
pub fn exit_code() -> Option<u8> {
    stopped().then(|| 128 + u8::try_from(SIGNAL.load(Ordering::Relaxed)).unwrap_or(2))
}

/// Begins to catch signals.
///
/// # Errors
/// The system does not let us.
pub fn watch() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|e| Failure::new(format!("cannot catch signals: {e}")))?;
    std::thread::spawn(move || {
        let mut first: Option<Instant> = None;
        for signal in signals.forever() {
            if let Some(at) = first {
                if at.elapsed() < SAME {
                    continue;
                }
                end_processes();
                remove_scratches();
                std::process::exit(128 + signal);
            }
            first = Some(Instant::now());
            SIGNAL.store(signal, Ordering::Relaxed);
            STOPPED.store(true, Ordering::Relaxed);
            complain!("\nstopping after this step, with a report; once more to end at once");
        }
    });
    Ok(())
}

/// Ends this process of ours as well, when a second signal ends us.
#[cfg(feature = "servers")]
pub(crate) fn own_process(id: u32) {
    if let Ok(mut processes) = PROCESSES.lock() {
        processes.push(id);
    }
}

/// This process has ended.
#[cfg(feature = "servers")]
pub(crate) fn disown_process(id: u32) {
    if let Ok(mut processes) = PROCESSES.lock() {
        processes.retain(|process| *process != id);
    }
}

fn end_processes() {
    if let Ok(processes) = PROCESSES.lock() {
        let ids = processes.iter().filter_map(|id| i32::try_from(*id).ok());
        for id in ids.filter_map(rustix::process::Pid::from_raw) {
            // It may have ended by itself.
            let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
        }
    }
}

fn remove_scratches() {
    if let Ok(scratches) = SCRATCHES.lock() {
        for path in scratches.iter() {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

/// A temporary directory, removed when dropped, and when a signal ends the process.
pub(crate) struct Scratch {
    path: PathBuf,
    /// Locked as long as this process lives.
    _owner: File,
}

impl Scratch {
    /// A new directory in `base`. Those of dead processes in there are removed first.
    pub(crate) fn within(base: &Path) -> Result<Scratch> {
        sweep(base);
        for attempt in 0..1000 {
            let path = base.join(format!("{PREFIX}{}-{attempt}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Scratch::own(path),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => {
                    let text = format!("cannot create {}: {e}", path.display());
                    return Err(Failure::new(text));
                }
            }
        }
        let text = format!("no free name for a directory in {}", base.display());
        Err(Failure::new(text))
    }

    fn own(path: PathBuf) -> Result<Scratch> {
        let owner = File::create(path.join(OWNER))?;
        owner
            .try_lock()
            .map_err(|e| Failure::new(format!("cannot lock {}: {e}", path.display())))?;
        if let Ok(mut scratches) = SCRATCHES.lock() {
            scratches.push(path.clone());
        }
        Ok(Scratch {
            path,
            _owner: owner,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
        if let Ok(mut scratches) = SCRATCHES.lock() {
            scratches.retain(|path| *path != self.path);
        }
    }
}

/// Removes the temporary directories of processes that are dead: nobody holds the lock in them. A
/// directory without that file is left alone.
fn sweep(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let owner = File::options()
            .read(true)
            .write(true)
            .open(entry.path().join(OWNER));
        if owner.is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_dead_processes_go_and_those_of_living_ones_stay() {
        let base = tempfile::tempdir().expect("a directory");
        let living = Scratch::within(base.path()).expect("a scratch");
        let dead = base.path().join("esker-bench-1-0");
        let strange = base.path().join("esker-bench-2-0");
        for path in [&dead, &strange] {
            std::fs::create_dir_all(path.join("db")).expect("a directory");
        }
        std::fs::write(dead.join(OWNER), "").expect("a file");
        let next = Scratch::within(base.path()).expect("a scratch");
        assert!(!dead.exists(), "nobody holds its lock");
        assert!(strange.exists(), "nobody knows whose it is");
        assert!(living.path().exists() && next.path().exists());
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
    }
}
