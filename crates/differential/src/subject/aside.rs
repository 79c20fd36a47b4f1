//! Databases beside the database, families that move, and files that go: where what is left is the
//! same whatever each library's tree looks like.

use std::path::Path;
use std::ptr;

use super::open::{Mode, OpenDatabase};
use super::{CallResult, LibraryState, at, c_path, c_text};
use crate::api::H;
use crate::api::c;
use crate::call::{Bytes, Entry};
use crate::{callbacks, options};

/// Counters that both libraries owe each other, by RocksDB 11's numbers.
const TICKERS: &[(&str, u32)] = &[
    ("keys written", 58),
    ("seeks", 63),
    ("nexts", 64),
    ("prevs", 65),
    ("seeks found", 66),
    ("nexts found", 67),
    ("prevs found", 68),
    ("bytes iterated", 69),
    ("merge failures", 82),
    ("writes", 91),
    ("writes to the log", 93),
];

/// Counters of reads. Transactions and batches with an index count theirs in their own way, so what
/// is compared is what a few plain reads add.
const READ_TICKERS: &[(&str, u32)] = &[
    ("keys read", 59),
    ("bytes read", 62),
    ("reads of many", 78),
    ("of many read", 79),
    ("bytes of many read", 80),
    ("of many found", 81),
];

fn remove(path: &Path) {
    // It may not be there.
    let _ = std::fs::remove_dir_all(path);
}

impl LibraryState {
    /// Opens a fresh database of one family in `place`; an error's text when it cannot.
    fn fresh(&self, place: &Path, mode: Mode<'_>) -> Result<OpenDatabase, String> {
        remove(place);
        self.open_at(place, &["default".to_owned()], mode)
    }

    /// Writes the entries into a family of a database beside.
    fn play(&self, db: H, family: H, entries: &[(Bytes, Entry)]) -> String {
        let mut wrong = Vec::new();
        for (key, entry) in entries {
            let (k, size, mut e) = (at(key), key.len(), ptr::null_mut());
            let w = self.write;
            match entry {
                Entry::Put(v) => c!(self, put_cf, db, w, family, k, size, at(v), v.len(), &mut e),
                Entry::Merge(v) => {
                    c!(
                        self,
                        merge_cf,
                        db,
                        w,
                        family,
                        k,
                        size,
                        at(v),
                        v.len(),
                        &mut e
                    );
                }
                Entry::Delete => c!(self, delete_cf, db, w, family, k, size, &mut e),
            }
            wrong.extend(self.error(e));
        }
        wrong.join(" ")
    }

    fn flush_of(&self, db: H, family: H) -> String {
        let mut e = ptr::null_mut();
        c!(self, flush_cf, db, self.flush, family, &mut e);
        self.ended(e)
    }

    fn compact_all(&self, db: H, family: H) {
        c!(
            self,
            compact_range_cf,
            db,
            family,
            ptr::null(),
            0,
            ptr::null(),
            0
        );
    }

    /// A database with times to live that nothing reaches: written, read, compacted, and opened
    /// again.
    pub(super) fn ttl(&self, entries: &[(Bytes, Entry)], keys: &[Bytes]) -> String {
        // RocksDB 7.8 loses values in blob files of such a database when it compacts them.
        if self.is_old() && self.base_options.contains("enable_blob_files") {
            return "-".into();
        }
        let place = self.base.join("ttl");
        let opened = match self.fresh(&place, Mode::Ttl) {
            Ok(opened) => opened,
            Err(text) => return text,
        };
        let (db, family) = (opened.db, opened.families[0].handle);
        let mut said = vec![self.play(db, family, entries)];
        for key in keys {
            let (mut size, mut e) = (0, ptr::null_mut());
            let value = c!(
                self,
                get_cf,
                db,
                self.read,
                family,
                at(key),
                key.len(),
                &mut size,
                &mut e
            );
            said.push(self.value_or_error(value, size, e));
        }
        said.push(self.digest_of(db, family));
        said.push(self.flush_of(db, family));
        self.compact_all(db, family);
        said.push(self.digest_of(db, family));
        self.close_side(opened);
        match self.open_at(&place, &["default".to_owned()], Mode::Ttl) {
            Ok(again) => {
                said.push(self.digest_of(again.db, again.families[0].handle));
                self.close_side(again);
            }
            Err(text) => said.push(text),
        }
        said.join(", ")
    }

    /// A database with a compaction filter: nothing is filtered before the compaction, everything
    /// after.
    pub(super) fn filtered(
        &mut self,
        first: &[(Bytes, Entry)],
        second: &[(Bytes, Entry)],
    ) -> String {
        let place = self.base.join("filtered");
        let plain = self.own();
        let filter = c!(
            self,
            compactionfilter_create,
            ptr::null_mut(),
            callbacks::nothing,
            callbacks::filter,
            callbacks::filter_name,
        );
        let made = match self.make_options(&self.base_options.clone(), "default") {
            Ok(made) => made,
            Err(failure) => return failure.to_string(),
        };
        c!(self, options_set_compaction_filter, made, filter);
        c!(self, options_set_disable_auto_compactions, made, 1);
        self.options[0].1 = made;
        let opened = self.fresh(&place, Mode::ReadWrite);
        self.options[0].1 = plain;
        let opened = match opened {
            Ok(opened) => opened,
            Err(text) => return text,
        };
        let (db, family) = (opened.db, opened.families[0].handle);
        let mut said = Vec::new();
        for entries in [first, second] {
            said.push(self.play(db, family, entries));
            said.push(self.flush_of(db, family));
            said.push(self.digest_of(db, family));
        }
        self.compact_all(db, family);
        said.push(self.digest_of(db, family));
        self.close_side(opened);
        c!(self, options_destroy, made);
        said.join(", ")
    }

    /// Destroys the last checkpoint.
    pub(super) fn destroy_copy(&self) -> String {
        let place = self.base.join("checkpoint");
        let (text, mut e) = (c_path(&place), ptr::null_mut());
        c!(self, destroy_db, self.own(), text.as_ptr(), &mut e);
        let said = self.ended(e);
        let left = std::fs::read_dir(&place).map_or(0, Iterator::count);
        remove(&place);
        format!("{said}, {left} files left")
    }

    /// Exports a family and makes a new one of the files; one that was made so before is dropped.
    pub(super) fn export(&mut self, family: usize, moves: bool, number: usize) -> String {
        let source = self.family(family).name.clone();
        let name = match source.as_str() {
            name if options::is_reversed(name) => format!("r{number}"),
            name if options::adds(name) => format!("u{number}"),
            _ => format!("i{number}"),
        };
        // RocksDB exports tables without the blob files that they name.
        if name == source || self.has_blobs(family) {
            return "-".into();
        }
        let mut said = Vec::new();
        if let Some(old) = self.families.iter().position(|f| f.name == name) {
            let mut e = ptr::null_mut();
            c!(
                self,
                drop_column_family,
                self.db,
                self.families[old].handle,
                &mut e
            );
            said.push(self.ended(e));
            let old = self.families.remove(old);
            c!(self, column_family_handle_destroy, old.handle);
        }
        let Some(from) = self.families.iter().find(|f| f.name == source) else {
            return "-".into();
        };
        let place = self.base.join("export");
        remove(&place);
        let (text, mut e) = (c_path(&place), ptr::null_mut());
        let checkpoint = c!(self, checkpoint_object_create, self.db, &mut e);
        said.push(self.ended(e));
        let mut e = ptr::null_mut();
        let files = c!(
            self,
            checkpoint_export_column_family,
            checkpoint,
            from.handle,
            text.as_ptr(),
            &mut e
        );
        c!(self, checkpoint_object_destroy, checkpoint);
        if let Some(error) = self.error(e) {
            said.push(format!("error {error}"));
            return said.join(", ");
        }
        let import = c!(self, import_column_family_options_create);
        c!(
            self,
            import_column_family_options_set_move_files,
            import,
            u8::from(moves)
        );
        let (new, mut e) = (c_text(&name), ptr::null_mut());
        let handle = c!(
            self,
            create_column_family_with_import,
            self.db,
            self.options_of(&name),
            new.as_ptr(),
            import,
            files,
            &mut e
        );
        c!(self, import_column_family_options_destroy, import);
        c!(self, export_import_files_metadata_destroy, files);
        match self.error(e) {
            Some(error) => said.push(format!("error {error}")),
            None => {
                said.push(self.digest_of(self.db, handle));
                self.families.push(super::Family { name, handle });
            }
        }
        remove(&place);
        said.join(", ")
    }

    /// Deletes what lies in a range, then the files inside. Snapshots are given back first: files
    /// go from under them.
    pub(super) fn files_in_range(&mut self, family: usize, begin: &[u8], end: &[u8]) -> String {
        if !self.may_delete_ranges(family) {
            return "-".into();
        }
        let (begin, end) = if self.in_order(family, begin, end) {
            (begin, end)
        } else {
            (end, begin)
        };
        while !self.snapshots.is_empty() {
            self.snapshot_drop(0);
        }
        let mut said = vec![
            self.delete_range(family, begin, end),
            self.delete(family, end),
        ];
        let (cf, mut e) = (self.handle(family), ptr::null_mut());
        let (from, to) = (at(begin), at(end));
        c!(
            self,
            delete_file_in_range_cf,
            self.db,
            cf,
            from,
            begin.len(),
            to,
            end.len(),
            &mut e
        );
        said.push(self.ended(e));
        said.push(self.digest_family(family));
        said.join(", ")
    }

    pub(super) fn compact_with(
        &self,
        family: usize,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
        bottommost: u8,
        level: Option<i32>,
    ) -> String {
        let options = c!(self, compactoptions_create);
        c!(
            self,
            compactoptions_set_bottommost_level_compaction,
            options,
            bottommost
        );
        let exclusive = u8::from(level.is_none());
        c!(
            self,
            compactoptions_set_exclusive_manual_compaction,
            options,
            exclusive
        );
        if let Some(level) = level {
            c!(self, compactoptions_set_change_level, options, 1);
            c!(self, compactoptions_set_target_level, options, level);
        }
        let bound = |key: Option<&[u8]>| key.map_or((ptr::null(), 0), |k| (at(k), k.len()));
        let ((from, from_size), (to, to_size)) = (bound(begin), bound(end));
        let cf = self.handle(family);
        c!(
            self,
            compact_range_cf_opt,
            self.db,
            cf,
            options,
            from,
            from_size,
            to,
            to_size
        );
        c!(self, compactoptions_destroy, options);
        "ok".into()
    }

    /// Returns whether the family's values may be in blob files.
    pub(super) fn has_blobs(&self, family: usize) -> bool {
        let name = &self.family(family).name;
        let is_separated = name == "c2" || self.separated.contains(name);
        is_separated || self.base_options.contains("enable_blob_files")
    }

    fn is_universal(&self, family: usize) -> bool {
        let all = self.base_options.contains("kCompactionStyleUniversal");
        all || self.family(family).name == "c1"
    }

    /// Everything of a family in its lowest level, with no background work left: then numbers
    /// agree. They count versions that snapshots keep, so these are given back.
    pub(super) fn settled(&mut self, family: usize) -> CallResult {
        while !self.snapshots.is_empty() {
            self.snapshot_drop(0);
        }
        let mut said = vec![self.flush_all()];
        self.compact_with(family, None, None, 2, None);
        let (options, mut e) = (c!(self, wait_for_compact_options_create), ptr::null_mut());
        c!(self, wait_for_compact, self.db, options, &mut e);
        c!(self, wait_for_compact_options_destroy, options);
        said.push(self.ended(e));
        // With the universal style a single table is moved as it is, with the deletions in it.
        if !self.is_universal(family) {
            let keys = self.property_int(family, "rocksdb.estimate-num-keys");
            said.push(format!("estimate-num-keys {keys}"));
        }
        for name in [
            "num-entries-active-mem-table",
            "num-deletes-active-mem-table",
            "num-entries-imm-mem-tables",
            "num-deletes-imm-mem-tables",
            "num-immutable-mem-table",
            "mem-table-flush-pending",
            "compaction-pending",
            "num-running-flushes",
            "num-running-compactions",
            "num-files-at-level0",
            "num-snapshots",
            "oldest-snapshot-sequence",
            "oldest-snapshot-time",
            "is-write-stopped",
            "background-errors",
        ] {
            let value = self.property_int(family, &format!("rocksdb.{name}"));
            said.push(format!("{name} {value}"));
        }
        said.push(self.digest_family(family));
        let size = self.property_int(family, "rocksdb.estimate-live-data-size");
        CallResult {
            text: said.join(", "),
            sizes: vec![size.parse().unwrap_or(u64::MAX)],
        }
    }

    /// Counters of what the application did. Iterators are given back first: RocksDB counts what
    /// they did when they end.
    pub(super) fn tickers(&mut self, family: usize, keys: &[Bytes]) -> String {
        while !self.iterators.is_empty() {
            self.iter_drop(0);
        }
        let ticker = |number: u32| {
            c!(
                self,
                options_statistics_get_ticker_count,
                self.own(),
                number
            )
        };
        let before: Vec<u64> = READ_TICKERS.iter().map(|t| ticker(t.1)).collect();
        let read = keys.iter().map(|key| self.get(family, key, None));
        let mut said: Vec<String> = read.collect();
        let spread = keys.iter().enumerate();
        let spread: Vec<(usize, Bytes)> =
            spread.map(|(i, k)| (family + i / 3, k.clone())).collect();
        said.push(self.multi_get(&spread, None));
        said.push(self.batched_multi_get(family, keys, None, false));
        for ((name, number), before) in READ_TICKERS.iter().zip(before) {
            said.push(format!("{name} {}", ticker(*number) - before));
        }
        // Pipelined writers are counted where they write to memory, and some do not.
        let pipelined = self.base_options.contains("enable_pipelined_write=true");
        for (name, number) in TICKERS {
            if pipelined && *name == "writes" {
                continue;
            }
            said.push(format!("{name} {}", ticker(*number)));
        }
        said.join(", ")
    }
}
