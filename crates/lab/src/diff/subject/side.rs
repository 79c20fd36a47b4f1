//! What happens beside the database: checkpoints, backups, table files, other ways to open it.

use std::path::Path;
use std::ptr;

use super::open::Mode;
use super::{Subject, at, c_path};
use crate::diff::api::H;
use crate::diff::call::{Bytes, Entry, Record, TxnStep};
use crate::diff::callbacks;

fn remove(path: &Path) {
    // It may not be there.
    let _ = std::fs::remove_dir_all(path);
}

impl Subject {
    /// The digests of a database that nobody else has open, or is read beside its owner.
    pub(in crate::diff) fn digest_directory(&self, path: &Path, names: &[String]) -> String {
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
    pub(in crate::diff) fn family_names(&self) -> Vec<String> {
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
        let (path, restored) = (self.base.join("backup"), self.base.join("restored"));
        let (text, mut e) = (c_path(&path), ptr::null_mut());
        let engine = c!(
            self,
            backup_engine_open,
            self.forward,
            text.as_ptr(),
            &mut e
        );
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

    pub(super) fn ingest(
        &mut self,
        family: usize,
        moves: bool,
        entries: &[(Bytes, Entry)],
    ) -> String {
        self.files += 1;
        let path = self.base.join(format!("ingest-{}.sst", self.files));
        let mut entries: Vec<&(Bytes, Entry)> = entries.iter().collect();
        entries.sort_by(|a, b| match self.is_reversed(family) {
            true => callbacks::reversed(&a.0, &b.0),
            false => a.0.cmp(&b.0),
        });
        entries.dedup_by(|a, b| a.0 == b.0);
        let options = self.options_of(&self.family(family).name);
        let environment = c!(self, envoptions_create);
        let writer = c!(self, sstfilewriter_create, environment, options);
        let (text, mut e) = (c_path(&path), ptr::null_mut());
        c!(self, sstfilewriter_open, writer, text.as_ptr(), &mut e);
        let mut said = vec![self.ended(e)];
        for (key, entry) in entries {
            let (k, mut e) = (at(key), ptr::null_mut());
            match entry {
                Entry::Put(v) => c!(
                    self,
                    sstfilewriter_put,
                    writer,
                    k,
                    key.len(),
                    at(v),
                    v.len(),
                    &mut e
                ),
                Entry::Merge(v) => {
                    c!(
                        self,
                        sstfilewriter_merge,
                        writer,
                        k,
                        key.len(),
                        at(v),
                        v.len(),
                        &mut e
                    );
                }
                Entry::Delete => c!(self, sstfilewriter_delete, writer, k, key.len(), &mut e),
            }
            said.extend(self.error(e));
        }
        let mut e = ptr::null_mut();
        c!(self, sstfilewriter_finish, writer, &mut e);
        said.push(self.ended(e));
        c!(self, sstfilewriter_destroy, writer);
        c!(self, envoptions_destroy, environment);
        if path.exists() && said.last().is_some_and(|s| s == "ok") {
            let options = c!(self, ingestexternalfileoptions_create);
            c!(
                self,
                ingestexternalfileoptions_set_move_files,
                options,
                u8::from(moves)
            );
            let (files, mut e) = ([text.as_ptr()], ptr::null_mut());
            let cf = self.handle(family);
            c!(
                self,
                ingest_external_file_cf,
                self.db,
                cf,
                files.as_ptr(),
                1,
                options,
                &mut e
            );
            said.push(self.ended(e));
            c!(self, ingestexternalfileoptions_destroy, options);
        }
        // It is gone when it was moved.
        let _ = std::fs::remove_file(&path);
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

    /// A second reader that follows, before and after a write. Not when the log of changes tells of a
    /// dropped family: RocksDB's secondary dies of catching up with that.
    pub(super) fn secondary(&self) -> String {
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
        let mut said = vec![digest(0), digest(1)];
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

    /// Closes, opens as a database of optimistic transactions, plays the script, and opens again.
    pub(super) fn optimistic(&mut self, script: &[TxnStep]) -> String {
        let names = self.names();
        self.close();
        let path = self.base.join("db");
        let opened = match self.open_at(&path, &names, Mode::Optimistic) {
            Err(text) => {
                let again = self.reopen_with(&names);
                return format!("{text}, again {again}");
            }
            Ok(opened) => opened,
        };
        let owner = opened.db;
        self.families = opened.families;
        self.db = c!(self, optimistictransactiondb_get_base_db, owner);
        let mut open: [H; 3] = [ptr::null_mut(); 3];
        let mut said: Vec<String> = script
            .iter()
            .map(|step| self.txn_step(owner, &mut open, step))
            .collect();
        for txn in open.into_iter().filter(|txn| !txn.is_null()) {
            c!(self, transaction_destroy, txn);
        }
        said.push(self.digest());
        self.release();
        c!(self, optimistictransactiondb_close_base_db, self.db);
        self.db = ptr::null_mut();
        c!(self, optimistictransactiondb_close, owner);
        said.push(self.reopen_with(&names));
        said.join(", ")
    }

    fn txn_step(&self, owner: H, open: &mut [H; 3], step: &TxnStep) -> String {
        match step {
            TxnStep::Begin(index, snapshot) => {
                let options = c!(self, optimistictransaction_options_create);
                let set = u8::from(*snapshot);
                c!(
                    self,
                    optimistictransaction_options_set_set_snapshot,
                    options,
                    set
                );
                let old = open[*index];
                open[*index] = c!(
                    self,
                    optimistictransaction_begin,
                    owner,
                    self.write,
                    options,
                    old
                );
                c!(self, optimistictransaction_options_destroy, options);
                "begun".into()
            }
            TxnStep::Outside(record) => self.batch(std::slice::from_ref(record)),
            TxnStep::Write(index, _)
            | TxnStep::Get(index, ..)
            | TxnStep::GetForUpdate(index, ..)
            | TxnStep::Scan(index, _)
            | TxnStep::Commit(index)
            | TxnStep::Rollback(index)
                if open[*index].is_null() =>
            {
                "-".into()
            }
            TxnStep::Write(index, record) => self.txn_write(open[*index], record),
            TxnStep::Get(index, family, key) => {
                let (txn, cf, mut size, mut e) =
                    (open[*index], self.handle(*family), 0, ptr::null_mut());
                let (k, read) = (at(key), self.read);
                let value = c!(
                    self,
                    transaction_get_cf,
                    txn,
                    read,
                    cf,
                    k,
                    key.len(),
                    &mut size,
                    &mut e
                );
                self.value_or_error(value, size, e)
            }
            TxnStep::GetForUpdate(index, family, key) => {
                let (txn, cf, mut size, mut e) =
                    (open[*index], self.handle(*family), 0, ptr::null_mut());
                let (k, read) = (at(key), self.read);
                let value = c!(
                    self,
                    transaction_get_for_update_cf,
                    txn,
                    read,
                    cf,
                    k,
                    key.len(),
                    &mut size,
                    1,
                    &mut e
                );
                self.value_or_error(value, size, e)
            }
            TxnStep::Scan(index, family) => {
                let (txn, cf) = (open[*index], self.handle(*family));
                let iter = c!(self, transaction_create_iterator_cf, txn, self.read, cf);
                c!(self, iter_seek, iter, at(b"abc"), 3);
                let mut said = Vec::new();
                for _ in 0..6 {
                    said.push(self.position(iter));
                    if c!(self, iter_valid, iter) == 0 {
                        break;
                    }
                    c!(self, iter_next, iter);
                }
                c!(self, iter_destroy, iter);
                said.join(" ")
            }
            TxnStep::Commit(index) => {
                let mut e = ptr::null_mut();
                c!(self, transaction_commit, open[*index], &mut e);
                self.ended(e)
            }
            TxnStep::Rollback(index) => {
                let mut e = ptr::null_mut();
                c!(self, transaction_rollback, open[*index], &mut e);
                self.ended(e)
            }
        }
    }

    fn txn_write(&self, txn: H, record: &Record) -> String {
        let mut e = ptr::null_mut();
        match record {
            Record::Put(family, k, v) => {
                let cf = self.handle(*family);
                c!(
                    self,
                    transaction_put_cf,
                    txn,
                    cf,
                    at(k),
                    k.len(),
                    at(v),
                    v.len(),
                    &mut e
                );
            }
            Record::Merge(family, k, v) => {
                let cf = self.handle(*family);
                c!(
                    self,
                    transaction_merge_cf,
                    txn,
                    cf,
                    at(k),
                    k.len(),
                    at(v),
                    v.len(),
                    &mut e
                );
            }
            Record::Delete(family, k) => {
                let cf = self.handle(*family);
                c!(self, transaction_delete_cf, txn, cf, at(k), k.len(), &mut e);
            }
            Record::SavePoint => c!(self, transaction_set_savepoint, txn),
            Record::RollbackToSavePoint => {
                c!(self, transaction_rollback_to_savepoint, txn, &mut e);
            }
            _ => return "-".into(),
        }
        self.ended(e)
    }
}
