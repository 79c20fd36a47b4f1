//! Ranges of keys: their sizes, deleting and compacting their files.

use super::Db;
use crate::family::FamilyHandle;
use crate::job::manual;
use crate::observe::CompactionInfo;
use crate::options::{CompactFilesOptions, SizeOptions};
use crate::runtime::work_signal as signal;
use crate::timestamp;
use crate::tree::SizesIn;
use crate::tree::sizes::seek_key;
use esker_format::Level;
use esker_format::file_name::{FileKind, parse_file_name};
use esker_lsm::pick::manual::ManualRange;
use esker_status::{Error, Result};
use esker_sync::atomic::Ordering::Relaxed;
use std::path::{Path, PathBuf};

impl Db {
    /// About how many bytes of table files the keys of each range `[begin, end)` take. What is in
    /// memtables is not counted; see [`Db::approximate_sizes_opt`].
    pub fn approximate_sizes<K: AsRef<[u8]>>(
        &self,
        family: &FamilyHandle,
        ranges: &[(K, K)],
    ) -> Result<Vec<u64>> {
        self.approximate_sizes_opt(family, ranges, &SizeOptions::default())
    }

    /// About how many bytes the keys of each range `[begin, end)` take, of what `options` count.
    ///
    /// `InvalidArgument` when that is nothing.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options, SizeOptions};
    ///
    /// let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// let family = db.default_family_handle();
    /// let mut options = SizeOptions::default();
    /// assert_eq!(db.approximate_sizes_opt(&family, &[("a", "z")], &options)?, [0]);
    /// options.include_memtables = true;
    /// assert!(db.approximate_sizes_opt(&family, &[("a", "z")], &options)?[0] > 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn approximate_sizes_opt<K: AsRef<[u8]>>(
        &self,
        family: &FamilyHandle,
        ranges: &[(K, K)],
        options: &SizeOptions,
    ) -> Result<Vec<u64>> {
        if !options.include_memtables && !options.include_files && !options.include_blob_files {
            return Err(Error::invalid_argument("Invalid options"));
        }
        let version = family.0.view_guard().version.clone();
        let blobs: u64 = version.blob_files().values().map(|b| b.total_bytes).sum();
        let tables = version.bytes();
        let mut out = Vec::with_capacity(ranges.len());
        for (begin, end) in ranges {
            let (begin, end) = (begin.as_ref(), end.as_ref());
            let mut bytes = 0;
            if options.include_files || options.include_blob_files {
                let files = self.size_in_tables(family, begin, end, options)?;
                if options.include_files {
                    bytes += files;
                }
                if options.include_blob_files && tables > 0 {
                    let share = u128::from(files) * u128::from(blobs) / u128::from(tables);
                    bytes += u64::try_from(share).unwrap_or(u64::MAX);
                }
            }
            if options.include_memtables {
                bytes += self.approximate_memtable_stats(family, begin, end).1;
            }
            out.push(bytes);
        }
        Ok(out)
    }

    fn size_in_tables(
        &self,
        family: &FamilyHandle,
        begin: &[u8],
        end: &[u8],
        options: &SizeOptions,
    ) -> Result<u64> {
        let order = &family.0.order;
        let (begin, end) = (timestamp::first(order, begin), timestamp::first(order, end));
        let sizes = SizesIn {
            tables: &self.core().trees.tables,
            reading: &family.0.reading,
            version: &family.0.view_guard().version.clone(),
            margin: options.files_size_error_margin,
        };
        sizes.bytes(Level::L0, &begin, &end)
    }

    /// About how many entries of memtables lie in `[begin, end)`, and how many bytes they take.
    pub fn approximate_memtable_stats(
        &self,
        family: &FamilyHandle,
        begin: impl AsRef<[u8]>,
        end: impl AsRef<[u8]>,
    ) -> (u64, u64) {
        let order = &family.0.order;
        let begin = timestamp::first(order, begin.as_ref());
        let end = timestamp::first(order, end.as_ref());
        let (begin, end) = (&*begin, &*end);
        if family.0.order.compare(begin, end).is_ge() {
            return (0, 0);
        }
        let (low, high) = (seek_key(begin), seek_key(end));
        let view = family.0.view_guard();
        std::iter::once(&view.mem)
            .chain(&view.immutable)
            .map(|m| m.approximate_range(&low, &high))
            .fold((0, 0), |(n, b), (m, c)| (n + m, b + c))
    }

    /// Deletes the table files of `family` that lie wholly inside one of the ranges, unread; `None`
    /// is unbounded. The last key of a range belongs to it when `include_end` is set.
    ///
    /// Files of level 0, files that reach out of a range, and files that are being compacted stay,
    /// with their keys, and older versions of deleted keys in them may become visible. A range
    /// deletion afterwards prevents that. Snapshots do not protect the files.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options};
    ///
    /// let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// db.compact_range(None, None)?;
    /// let family = db.default_family_handle();
    /// db.delete_files_in_ranges(&family, &[(Some("a"), Some("z"))], true)?;
    /// assert_eq!(db.get("key")?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn delete_files_in_ranges<K: AsRef<[u8]>>(
        &self,
        family: &FamilyHandle,
        ranges: &[(Option<K>, Option<K>)],
        include_end: bool,
    ) -> Result<()> {
        let core = self.core();
        core.check_open_for_writes()?;
        core.services.health.check_writable()?;
        let first = |k: &K| timestamp::first(&family.0.order, k.as_ref()).into_owned();
        let owned = |k: &Option<K>| k.as_ref().map(first);
        let ranges: Vec<_> = ranges
            .iter()
            .map(|(begin, end)| ManualRange {
                begin: owned(begin),
                end: owned(end),
            })
            .collect();
        manual::delete_files(core, &family.0, &ranges, include_end)
    }

    /// Asks for the files of `family` that hold keys of `[begin, end]` to be compacted into the
    /// next level, in the background, when there is time; `None` is unbounded. Forgotten when the
    /// database closes.
    pub fn suggest_compact_range(
        &self,
        family: &FamilyHandle,
        begin: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> Result<()> {
        let core = self.core();
        core.check_open_for_writes()?;
        let begin = begin.map(|key| timestamp::first(&family.0.order, key));
        let end = end.map(|key| timestamp::last(&family.0.order, key));
        let (begin, end) = (begin.as_deref(), end.as_deref());
        let version = family.0.view_guard().version.clone();
        let Some(deepest) = version.deepest_level() else {
            return Ok(());
        };
        for level in (0..deepest.0).map(Level) {
            for file in version.overlapping_files(level, begin, end) {
                file.suggested.store(true, Relaxed);
            }
        }
        family.0.signal.mark(signal::TREE);
        core.background.cv.notify();
        Ok(())
    }

    /// Compacts table files, given by name or path, into `output_level`, now and on this thread,
    /// together with files that must go with them. Returns the files that came out of it.
    ///
    /// `InvalidArgument` for files that are not there or are below that level; `Aborted` when some
    /// are being compacted already.
    pub fn compact_files(
        &self,
        family: &FamilyHandle,
        files: &[impl AsRef<Path>],
        output_level: u8,
    ) -> Result<Vec<PathBuf>> {
        let mut options = CompactFilesOptions::default();
        options.output_file_size_limit = family.0.options.load().target_file_size_base;
        let done = self.compact_files_opt(family, files, output_level, &options)?;
        let made = done.output_files.iter();
        Ok(made.filter_map(|n| done.paths.get(n).cloned()).collect())
    }

    /// Compacts these files as `options` say, and returns what was done.
    pub fn compact_files_opt(
        &self,
        family: &FamilyHandle,
        files: &[impl AsRef<Path>],
        output_level: u8,
        options: &CompactFilesOptions,
    ) -> Result<CompactionInfo> {
        let core = self.core();
        core.check_open_for_writes()?;
        core.check_manual_compaction()?;
        core.services.health.check_writable()?;
        let number = |path: &Path| {
            let name = path.file_name().and_then(|n| n.to_str());
            match name.and_then(parse_file_name) {
                Some((FileKind::Table, number)) => Ok(number),
                _ => Err(Error::invalid_argument(format!(
                    "Specified compaction input file {} does not exist.",
                    path.display()
                ))),
            }
        };
        let numbers: Vec<_> = files
            .iter()
            .map(|f| number(f.as_ref()))
            .collect::<Result<_>>()?;
        manual::compact_files(core, &family.0, &numbers, Level(output_level), options)
    }

    /// Moves all table files of level 0 to `target_level` as they are. They must not overlap, and
    /// the levels down to that one must be empty: `InvalidArgument` otherwise.
    pub fn promote_l0(&self, family: &FamilyHandle, target_level: u8) -> Result<()> {
        let core = self.core();
        core.check_open_for_writes()?;
        core.services.health.check_writable()?;
        manual::promote_level0(core, &family.0, Level(target_level))
    }
}
