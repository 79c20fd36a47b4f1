//! Files that an open creates before the database changes, so that an open that fails can remove
//! them.
//!
//! Only what the open itself made is noted, and a directory goes only while it is empty. Used by
//! one thread, which holds the database's lock.

use esker_env::{Env, Errand};
use esker_status::Result;
use std::path::{Path, PathBuf};

/// Files and directories that are there because of this open alone.
#[derive(Debug)]
pub(super) struct Traces {
    env: Env,
    dirs: Vec<PathBuf>,
    files: Vec<PathBuf>,
    /// Directories with names that may not survive power loss.
    unsynced: Vec<PathBuf>,
    syncing: Vec<Errand>,
}

impl Traces {
    pub(super) fn new(env: &Env) -> Traces {
        Traces {
            env: env.clone(),
            dirs: Vec::new(),
            files: Vec::new(),
            unsynced: Vec::new(),
            syncing: Vec::new(),
        }
    }

    /// Makes a directory and its parents where they are not there. Their names are not synced yet.
    pub(super) fn make_dir(&mut self, dir: &Path) -> Result<()> {
        for place in dir.ancestors() {
            if place.as_os_str().is_empty() || self.env.fs.exists(place)? {
                break;
            }
            self.dirs.push(place.to_path_buf());
            let parent = place.parent().filter(|p| !p.as_os_str().is_empty());
            self.unsynced
                .push(parent.unwrap_or(Path::new(".")).to_path_buf());
        }
        self.env.fs.create_dir_all(dir)
    }

    /// Begins what [`Traces::sync_names`] does, where other threads can.
    pub(super) fn begin_sync_names(&mut self) {
        let mut parents = std::mem::take(&mut self.unsynced);
        parents.dedup();
        let begin = |dir: PathBuf| self.env.fs.begin_sync_dir(&dir);
        self.syncing.extend(parents.into_iter().map(begin));
    }

    /// Makes the names of the directories survive power loss.
    pub(super) fn sync_names(&mut self) -> Result<()> {
        self.begin_sync_names();
        self.syncing.drain(..).try_for_each(Errand::wait)
    }

    /// Takes note of a file that is about to be made.
    pub(super) fn add_file(&mut self, path: PathBuf) {
        self.files.push(path);
    }

    /// Adds a file unless it exists already.
    pub(super) fn add_new_file(&mut self, path: PathBuf) -> Result<()> {
        if !self.env.fs.exists(&path)? {
            self.files.push(path);
        }
        Ok(())
    }

    /// From here on the database needs all of it.
    pub(super) fn keep(&mut self) {
        self.files.clear();
        self.dirs.clear();
    }

    /// Removes all of it, the newest first. What cannot be removed stays: the error that made the
    /// open fail counts.
    pub(super) fn take_back(&mut self) {
        for file in self.files.drain(..).rev() {
            let _ = self.env.fs.remove_file(&file);
        }
        self.dirs.sort_by_key(|dir| dir.components().count());
        for dir in self.dirs.drain(..).rev() {
            let _ = self.env.fs.remove_dir(&dir);
        }
    }
}
