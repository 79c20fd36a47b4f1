//! Deleting backups, and what interrupted operations left behind.
//!
//! A backup goes when its meta file does; its other files go after that. A file is deleted when it
//! can belong to no backup: its name is one that this crate gives, and either says that it is not
//! whole, or no backup lists it while every backup can be read.

use crate::inner::Inner;
use crate::names::{self, META, PRIVATE, SHARED, SHARED_CHECKSUM};
use crate::state::{State, ids_on_disk, meta_path};
use esker::{Error, Result};

impl Inner {
    /// Deletes backup `id`, readable or not, and then what no other backup has.
    pub(crate) fn delete(&self, state: &mut State, id: u32) -> Result<()> {
        if !state.backups.contains_key(&id) && !state.corrupt.contains_key(&id) {
            return Err(Error::not_found("Backup not found"));
        }
        self.env.fs.remove_file(&meta_path(&self.dir, id))?;
        // Only when it is gone for good may its files go.
        self.sync_dir(META)?;
        // Which files it had is not known; a collection finds them when every other backup can be
        // read.
        state.may_have_garbage |= state.corrupt.contains_key(&id);
        for name in state.forget(id) {
            let shared = names::parse(&name)?.owner.is_none();
            if shared && state.is_in_doubt() {
                state.may_have_garbage = true;
                continue;
            }
            if self.env.fs.remove_file(&self.dir.join(&name)).is_err() {
                state.may_have_garbage = true;
            }
        }
        self.remove_private(state, &id.to_string());
        Ok(())
    }

    /// Removes the directory `name` in `private/` with its files.
    fn remove_private(&self, state: &mut State, name: &str) {
        let fs = &self.env.fs;
        let dir = self.dir.join(PRIVATE).join(name);
        let Ok(entries) = fs.read_dir(&dir) else {
            return;
        };
        for entry in entries.iter().filter(|e| e.is_file) {
            if fs.remove_file(&dir.join(&entry.name)).is_err() {
                state.may_have_garbage = true;
            }
        }
        if fs.remove_dir(&dir).is_err() {
            state.may_have_garbage = true;
        }
    }

    /// Deletes what belongs to no backup.
    pub(crate) fn collect(&self, state: &mut State) -> Result<()> {
        state.may_have_garbage = false;
        let fs = &self.env.fs;
        for shared in [SHARED, SHARED_CHECKSUM, META] {
            let dir = self.dir.join(shared);
            if !fs.exists(&dir)? {
                continue;
            }
            for entry in fs.read_dir(&dir)?.iter().filter(|e| e.is_file) {
                let relative = format!("{shared}/{}", entry.name);
                let is_unused = shared != META
                    && !state.is_in_doubt()
                    && !state.files.contains_key(&relative)
                    && names::parse(&relative).is_ok();
                if (is_unused || names::is_temporary(&entry.name))
                    && fs.remove_file(&dir.join(&entry.name)).is_err()
                {
                    state.may_have_garbage = true;
                }
            }
        }
        let listed = ids_on_disk(&**fs, &self.dir)?;
        for entry in fs.read_dir(&self.dir.join(PRIVATE))? {
            let stem = entry.name.strip_suffix(".tmp");
            let is_old_temporary = stem.is_some_and(|s| names::parse_id(s).is_some());
            let is_unlisted =
                names::parse_id(&entry.name).is_some_and(|id| listed.binary_search(&id).is_err());
            if !entry.is_file && (is_old_temporary || is_unlisted) {
                self.remove_private(state, &entry.name);
            }
        }
        Ok(())
    }

    /// Deletes all backups but the newest `keep` readable ones.
    pub(crate) fn purge(&self, state: &mut State, keep: usize) -> Result<()> {
        let goes = state.backups.len().saturating_sub(keep);
        let old: Vec<u32> = state.backups.keys().take(goes).copied().collect();
        let mut outcome = Ok(());
        for id in old {
            let deleted = self.delete(state, id);
            outcome = outcome.and(deleted);
        }
        if state.may_have_garbage {
            let collected = self.collect(state);
            outcome = outcome.and(collected);
        }
        outcome
    }

    /// Deletes every backup, readable or not, and everything that belonged to one.
    pub(crate) fn destroy_all(&self, state: &mut State) -> Result<()> {
        for id in ids_on_disk(&*self.env.fs, &self.dir)? {
            self.env.fs.remove_file(&meta_path(&self.dir, id))?;
        }
        self.sync_dir(META)?;
        *state = State::default();
        self.collect(state)
    }
}
