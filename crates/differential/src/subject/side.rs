//! Operations beside the database: checkpoints, backups, table files, other ways to open it.

use std::path::Path;
use std::ptr;

use super::open::Mode;
use super::{LibraryState, at, c_path};
use crate::api::c;
use crate::call::{Bytes, Entry};
use crate::callbacks;

fn remove(path: &Path) {
    // It may not be there.
    let _ = std::fs::remove_dir_all(path);
}

impl LibraryState {
    /// The digests of a database that nobody else has open, or is read beside its owner.
    pub(crate) fn digest_directory(&self, path: &Path, names: &[String]) -> String {
        match self.open_at(path, names, Mode::ReadOnly) {
            Err(text) => text,
            Ok(opened) => {
                let all = opened.families.iter();
                let all =
                    all.map(|f| format!("{}: {}", f.name, self.digest_of(opened.db, f.handle)));
                let said = all.collect::<Vec<_>>().join("; ");
                self.close_side(opened);
                said
            }
        }
    }

    /// The names of the open families, for a look at a copy.
    pub(crate) fn family_names(&self) -> Vec<String> {
        self.names()
    }

    pub(super) fn checkpoint(&self) -> String {
        let path = self.base.join("checkpoint");
        remove(&path);
        let mut e = ptr::null_mut();
        let checkpoint = c!(self, checkpoint_object_create, self.db, &mut e);
        if let Some(error) = self.error(e) {
            return format!("error {error}");
        }
        let (text, mut e) = (c_path(&path), ptr::null_mut());
        c!(
            self,
            checkpoint_create,
            checkpoint,
            text.as_ptr(),
            0,
            &mut e
        );
        let made = self.ended(e);
        let mut e = ptr::null_mut();
        c!(
            self,
            checkpoint_create,
            checkpoint,
            text.as_ptr(),
            0,
            &mut e
        );
        let again = self.ended(e);
        c!(self, checkpoint_object_destroy, checkpoint);
        format!(
            "{made}, again {again}, {}",
            self.digest_directory(&path, &self.names())
        )
    }

    /// A backup more, the older ones but two purged, the latest verified, restored and read.
    pub(super) fn backup(&self) -> String {
        // RocksDB 7.8 as Debian builds it ends the process at every table in an order of the
        // application's.
        if self.own_order_ranges || self.is_old() {
            return "-".into();
        }
        let (path, restored) = (self.base.join("backup"), self.base.join("restored"));
        let (text, mut e) = (c_path(&path), ptr::null_mut());
        let engine = c!(self, backup_engine_open, self.own(), text.as_ptr(), &mut e);
        if let Some(error) = self.error(e) {
            return format!("error {error}");
        }
        let mut said = Vec::new();
        let mut e = ptr::null_mut();
        c!(
            self,
            backup_engine_create_new_backup_flush,
            engine,
            self.db,
            1,
            &mut e
        );
        said.push(self.ended(e));
        let mut e = ptr::null_mut();
        c!(self, backup_engine_purge_old_backups, engine, 2, &mut e);
        said.push(self.ended(e));
        let info = c!(self, backup_engine_get_backup_info, engine);
        let count = c!(self, backup_engine_info_count, info);
        for index in 0..count {
            let id = c!(self, backup_engine_info_backup_id, info, index);
            let mut e = ptr::null_mut();
            c!(self, backup_engine_verify_backup, engine, id, &mut e);
            said.push(format!("{id} {}", self.ended(e)));
        }
        c!(self, backup_engine_info_destroy, info);
        let mut e = ptr::null_mut();
        c!(self, backup_engine_verify_backup, engine, 999_999, &mut e);
        said.push(self.ended(e));
        remove(&restored);
        let options = c!(self, restore_options_create);
        let (to, mut e) = (c_path(&restored), ptr::null_mut());
        let to = to.as_ptr();
        c!(
            self,
            backup_engine_restore_db_from_latest_backup,
            engine,
            to,
            to,
            options,
            &mut e
        );
        said.push(self.ended(e));
        c!(self, restore_options_destroy, options);
        c!(self, backup_engine_close, engine);
        said.push(self.digest_directory(&restored, &self.names()));
        said.join(", ")
    }

    /// Writes a table file of sorted entries and of ranges that are deleted, and says how that
    /// went.
    fn write_table(
        &self,
        path: &Path,
        family: usize,
        entries: &[&(Bytes, Entry)],
        ranges: &[(Bytes, Bytes)],
    ) -> Vec<String> {
        let options = self.options_of(&self.family(family).name);
        let environment = c!(self, envoptions_create);
        let writer = c!(self, sstfilewriter_create, environment, options);
        let (text, mut e) = (c_path(path), ptr::null_mut());
        c!(self, sstfilewriter_open, writer, text.as_ptr(), &mut e);
        let mut said = vec![self.ended(e)];
        for (key, entry) in entries {
            let (k, size, mut e) = (at(key), key.len(), ptr::null_mut());
            match entry {
                Entry::Put(v) => {
                    c!(
                        self,
                        sstfilewriter_put,
                        writer,
                        k,
                        size,
                        at(v),
                        v.len(),
                        &mut e
                    );
                }
                Entry::Merge(v) => {
                    c!(
                        self,
                        sstfilewriter_merge,
                        writer,
                        k,
                        size,
                        at(v),
                        v.len(),
                        &mut e
                    );
                }
                Entry::Delete => c!(self, sstfilewriter_delete, writer, k, size, &mut e),
            }
            said.extend(self.error(e));
        }
        for (begin, end) in ranges {
            let (begin, end) = if self.in_order(family, begin, end) {
                (begin, end)
            } else {
                (end, begin)
            };
            let (from, to, mut e) = (at(begin), at(end), ptr::null_mut());
            let (from_size, to_size) = (begin.len(), end.len());
            c!(
                self,
                sstfilewriter_delete_range,
                writer,
                from,
                from_size,
                to,
                to_size,
                &mut e
            );
            said.extend(self.error(e));
        }
        let mut e = ptr::null_mut();
        c!(self, sstfilewriter_finish, writer, &mut e);
        said.push(self.ended(e));
        c!(self, sstfilewriter_destroy, writer);
        c!(self, envoptions_destroy, environment);
        said
    }

    /// The entries with keys that no other has, each third time: past all others, so that nothing
    /// of the tree and no compaction is in the way.
    fn renamed(&self, entries: &[(Bytes, Entry)]) -> Vec<(Bytes, Entry)> {
        let prefix = format!("{:08}", self.files);
        let rename = |(key, entry): &(Bytes, Entry)| {
            let fresh = self.are_fresh();
            let own = fresh.then(|| [&[0xff; 5], prefix.as_bytes()].concat());
            let key = [&own.unwrap_or_default(), &key[..]].concat();
            (Bytes::from(key), entry.clone())
        };
        entries.iter().map(rename).collect()
    }

    fn are_fresh(&self) -> bool {
        self.files.is_multiple_of(3)
    }

    /// Writes the key, unless the file's keys are its own: a file that meets nothing gets no
    /// sequence number, and whether it meets what was deleted depends on compactions.
    fn meet(&self, family: usize, key: Option<&Bytes>) -> Option<String> {
        let key = key.filter(|_| !self.are_fresh())?;
        Some(self.put(family, key, b"met"))
    }

    /// Entries in the family's order, one for each key.
    fn sorted<'a>(&self, family: usize, entries: &'a [(Bytes, Entry)]) -> Vec<&'a (Bytes, Entry)> {
        let mut entries: Vec<&(Bytes, Entry)> = entries.iter().collect();
        entries.sort_by(|a, b| {
            if self.is_reversed(family) {
                callbacks::reversed(&a.0, &b.0)
            } else {
                a.0.cmp(&b.0)
            }
        });
        entries.dedup_by(|a, b| a.0 == b.0);
        entries
    }

    fn take_in(&self, family: usize, paths: &[std::path::PathBuf], moves: bool) -> String {
        let options = c!(self, ingestexternalfileoptions_create);
        c!(
            self,
            ingestexternalfileoptions_set_move_files,
            options,
            u8::from(moves)
        );
        let texts: Vec<_> = paths.iter().map(|path| c_path(path)).collect();
        let files: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        let (cf, mut e) = (self.handle(family), ptr::null_mut());
        c!(
            self,
            ingest_external_file_cf,
            self.db,
            cf,
            files.as_ptr(),
            files.len(),
            options,
            &mut e
        );
        c!(self, ingestexternalfileoptions_destroy, options);
        for path in paths {
            // It is gone when it was moved.
            let _ = std::fs::remove_file(path);
        }
        self.ended(e)
    }

    pub(super) fn ingest(
        &mut self,
        family: usize,
        moves: bool,
        entries: &[(Bytes, Entry)],
    ) -> String {
        self.files += 1;
        let path = self.base.join(format!("ingest-{}.sst", self.files));
        let entries = self.renamed(entries);
        let entries = self.sorted(family, &entries);
        let mut said = self.write_table(&path, family, &entries, &[]);
        let made = path.exists() && said.last().is_some_and(|s| s == "ok");
        said.extend(self.meet(family, entries.first().map(|e| &e.0)));
        if made {
            said.push(self.take_in(family, &[path], moves));
        }
        said.push(self.digest_family(family));
        said.join(", ")
    }

    /// Two files at once, the first with ranges that are deleted.
    pub(super) fn ingest_many(
        &mut self,
        family: usize,
        entries: &[(Bytes, Entry)],
        ranges: &[(Bytes, Bytes)],
    ) -> String {
        let ranges = if self.may_delete_ranges(family) {
            ranges
        } else {
            &[]
        };
        self.files += 1;
        let ranges = if self.are_fresh() { &[] } else { ranges };
        let entries = self.renamed(entries);
        let entries = self.sorted(family, &entries);
        let (low, high) = entries.split_at(entries.len() / 2);
        let mut said = Vec::new();
        let mut paths = Vec::new();
        for (part, ranges, half) in [(low, ranges, 'a'), (high, &[][..], 'b')] {
            let path = self.base.join(format!("ingest-{}{half}.sst", self.files));
            said.extend(self.write_table(&path, family, part, ranges));
            let made = path.exists() && said.last().is_some_and(|s| s == "ok");
            let ends = ranges.first().map(|(begin, end)| [begin, end]);
            let keys = ends.into_iter().flatten().chain(part.first().map(|e| &e.0));
            said.extend(keys.filter_map(|key| self.meet(family, Some(key))));
            if made {
                paths.push(path);
            }
        }
        said.push(self.take_in(family, &paths, false));
        said.push(self.digest_family(family));
        said.join(", ")
    }

    /// Lets `look` read the directory beside its owner, which removes no files meanwhile.
    fn undisturbed(&self, look: impl FnOnce() -> String) -> String {
        let (mut off, mut on) = (ptr::null_mut(), ptr::null_mut());
        c!(self, disable_file_deletions, self.db, &mut off);
        let said = look();
        c!(self, enable_file_deletions, self.db, &mut on);
        match self.error(off).or(self.error(on)) {
            Some(error) => format!("error {error}"),
            None => said,
        }
    }

    pub(super) fn read_only(&self) -> String {
        self.undisturbed(|| self.look_read_only())
    }

    fn look_read_only(&self) -> String {
        let names = self.names();
        match self.open_at(&self.base.join("db"), &names, Mode::ReadOnly) {
            Err(text) => text,
            Ok(opened) => {
                let cf = opened.families[0].handle;
                let mut e = ptr::null_mut();
                c!(
                    self,
                    put_cf,
                    opened.db,
                    self.write,
                    cf,
                    at(b"k"),
                    1,
                    at(b"v"),
                    1,
                    &mut e
                );
                let put = self.ended(e);
                let mut e = ptr::null_mut();
                c!(self, flush_cf, opened.db, self.flush, cf, &mut e);
                let flush = self.ended(e);
                let all = opened.families.iter();
                let all =
                    all.map(|f| format!("{}: {}", f.name, self.digest_of(opened.db, f.handle)));
                let all = all.collect::<Vec<_>>().join("; ");
                self.close_side(opened);
                format!("put {put}, flush {flush}, {all}")
            }
        }
    }

    /// A second reader that follows, before and after a write. Not when the log of changes tells of
    /// a dropped family: RocksDB's secondary dies of catching up with that. Not where values are in
    /// blob files: RocksDB's may show a state from before they were written, with later writes.
    pub(super) fn secondary(&self) -> String {
        if (0..self.families.len()).any(|family| self.has_blobs(family)) {
            return "-".into();
        }
        self.undisturbed(|| self.look_as_secondary())
    }

    fn look_as_secondary(&self) -> String {
        if !self.dropped.is_empty() {
            return "-".into();
        }
        let side = self.base.join("secondary");
        remove(&side);
        let names = self.names();
        let opened = match self.open_at(&self.base.join("db"), &names, Mode::Secondary(&side)) {
            Err(text) => return text,
            Ok(opened) => opened,
        };
        let digest = |index: usize| self.digest_of(opened.db, opened.families[index].handle);
        let own = [self.digest_family(0), self.digest_family(1)];
        let theirs = [digest(0), digest(1)];
        let mut said = vec![format!("as the primary: {}", own == theirs)];
        said.extend(theirs);
        said.push(self.put(0, b"seen by the secondary", b"later"));
        let mut e = ptr::null_mut();
        c!(self, try_catch_up_with_primary, opened.db, &mut e);
        said.push(self.ended(e));
        said.push(digest(0));
        let (cf, mut e) = (opened.families[0].handle, ptr::null_mut());
        c!(
            self,
            put_cf,
            opened.db,
            self.write,
            cf,
            at(b"k"),
            1,
            at(b"v"),
            1,
            &mut e
        );
        said.push(self.ended(e));
        self.close_side(opened);
        said.join(", ")
    }
}
