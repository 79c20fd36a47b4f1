//! Changes of a tree, and the one function that makes the next version out of them.
//!
//! [`apply`] serves recovery (many edits at once) and the running engine (one edit) alike. Every
//! contradiction is `Corruption`: a file deleted where it is not, added where it already is, levels
//! that overlap, garbage beyond a blob file's totals. In one edit deletions come before additions,
//! so that a move is a deletion and an addition of one number; a moved file keeps its [`FileMeta`]
//! and with it the open reader. Levels that no edit touches are shared with the version before.

use crate::check;
use crate::file::{FileMeta, sort_by_seq, sort_newest_first};
use crate::version::{BlobFile, LevelFiles, TreeBlob, Version};
use esker_format::edit::{BlobAddition, BlobGarbage, NewFile, VersionEdit};
use esker_format::{FileNo, InternalKey, Level};
use esker_status::{Error, ErrorKind, Result};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Changes that an edit makes to one family's tree.
#[derive(Clone, Debug, Default)]
pub struct TreeEdit {
    /// Tables that leave their level.
    pub deleted: Vec<(Level, FileNo)>,
    /// Tables that join a level.
    pub added: Vec<(Level, Arc<FileMeta>)>,
    /// New blob files (their garbage fields are 0).
    pub blobs: Vec<BlobFile>,
    /// Garbage found: blob file, records, bytes; increments.
    pub garbage: Vec<(FileNo, u64, u64)>,
    /// Where round-robin picking goes on.
    pub cursors: Vec<(Level, InternalKey)>,
}

impl TreeEdit {
    /// Returns whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.deleted.is_empty()
            && self.added.is_empty()
            && self.blobs.is_empty()
            && self.garbage.is_empty()
            && self.cursors.is_empty()
    }

    /// Puts the same changes into a record for the MANIFEST.
    pub fn write_to(&self, record: &mut VersionEdit) {
        record.deleted_files.extend(&self.deleted);
        let added = self
            .added
            .iter()
            .map(|(level, file)| (*level, NewFile::from(&**file)));
        record.new_files.extend(added);
        record
            .blob_additions
            .extend(self.blobs.iter().map(|b| BlobAddition {
                number: b.number,
                total_count: b.total_count,
                total_bytes: b.total_bytes,
                checksum_method: b.checksum_method.clone(),
                checksum_value: b.checksum_value.clone(),
                tier: b.tier,
            }));
        let garbage = self.garbage.iter();
        let garbage = garbage.map(|&(number, count, bytes)| BlobGarbage {
            number,
            count,
            bytes,
        });
        record.blob_garbage.extend(garbage);
        record.compact_cursors.extend(self.cursors.iter().cloned());
    }

    /// The edit that makes `version` out of an empty tree: the head of a new MANIFEST.
    pub fn snapshot(version: &Version) -> TreeEdit {
        let blobs = || version.blobs.values();
        TreeEdit {
            deleted: Vec::new(),
            added: version
                .files()
                .map(|(level, file)| (level, file.clone()))
                .collect(),
            blobs: blobs().map(|b| b.file.clone()).collect(),
            garbage: blobs()
                .filter(|b| b.garbage_count > 0 || b.garbage_bytes > 0)
                .map(|b| (b.number, b.garbage_count, b.garbage_bytes))
                .collect(),
            cursors: version
                .cursors
                .iter()
                .map(|(level, key)| (*level, key.clone()))
                .collect(),
        }
    }
}

impl From<&VersionEdit> for TreeEdit {
    fn from(record: &VersionEdit) -> Self {
        let added = record.new_files.iter();
        TreeEdit {
            deleted: record.deleted_files.clone(),
            added: added
                .map(|(level, file)| (*level, Arc::new(FileMeta::from(file.clone()))))
                .collect(),
            blobs: record
                .blob_additions
                .iter()
                .map(|b| BlobFile {
                    number: b.number,
                    total_count: b.total_count,
                    total_bytes: b.total_bytes,
                    checksum_method: b.checksum_method.clone(),
                    checksum_value: b.checksum_value.clone(),
                    tier: b.tier,
                    ..BlobFile::default()
                })
                .collect(),
            garbage: record
                .blob_garbage
                .iter()
                .map(|g| (g.number, g.count, g.bytes))
                .collect(),
            cursors: record.compact_cursors.clone(),
        }
    }
}

/// The version after the records of a MANIFEST, in order.
pub fn apply_records(base: &Version, records: &[VersionEdit]) -> Result<Version> {
    let mut builder = Builder::new(base);
    for record in records {
        builder.add(&TreeEdit::from(record))?;
    }
    builder.finish()
}

/// Gives every table an epoch number when some has none, as it is after an old MANIFEST: deeper
/// levels are older, level 0 goes by sequence.
///
/// Sequence numbers do not order two tables whose ranges of them interleave. Where such tables of
/// level 0 have keys of one range, it stays without epoch numbers ([`Version::lacks_epochs`]) until
/// it is merged as a whole.
pub fn recover_epochs(version: &Version) -> Version {
    if version.files().all(|(_, f)| f.epoch != 0) {
        return version.clone();
    }
    let mut next = version.clone();
    let mut epoch = 0;
    for level in (0..next.levels.len())
        .rev()
        .filter(|l| !version.levels[*l].is_empty())
    {
        let mut files: Vec<_> = version.levels[level].files().to_vec();
        if level > 0 {
            epoch += 1;
            files
                .iter_mut()
                .for_each(|f| *f = Arc::new(f.with_epoch(epoch)));
        } else {
            sort_by_seq(&mut files);
            let is_sure = !check::interleave(&next.order, &files);
            for f in files.iter_mut().rev() {
                epoch += 1;
                *f = Arc::new(f.with_epoch(if is_sure { epoch } else { 0 }));
            }
        }
        next.levels[level] = Arc::new(LevelFiles::new(&next.order, files));
    }
    next.last_epoch = epoch;
    next
}

/// The version after `edits`, in order.
pub fn apply(base: &Version, edits: &[TreeEdit]) -> Result<Version> {
    let mut builder = Builder::new(base);
    for edit in edits {
        builder.add(edit)?;
    }
    builder.finish()
}

/// Collects edits over a base version; recovery feeds it while it reads the MANIFEST.
pub struct Builder<'v> {
    base: &'v Version,
    /// Tables of the base that are gone, with their level there.
    deleted: HashMap<FileNo, Level>,
    /// Tables that the base has not at that level.
    added: BTreeMap<Level, BTreeMap<FileNo, Arc<FileMeta>>>,
    /// Levels of `added`, by table.
    place: HashMap<FileNo, Level>,
    blobs: BTreeMap<FileNo, BlobFile>,
    cursors: BTreeMap<Level, InternalKey>,
    links_changed: bool,
    last_epoch: u64,
}

impl<'v> Builder<'v> {
    /// Nothing changed yet.
    pub fn new(base: &'v Version) -> Self {
        Builder {
            base,
            deleted: HashMap::new(),
            added: BTreeMap::new(),
            place: HashMap::new(),
            blobs: BTreeMap::new(),
            cursors: BTreeMap::new(),
            links_changed: false,
            last_epoch: base.last_epoch,
        }
    }

    /// Takes one edit in; after an error the builder is of no use.
    pub fn add(&mut self, edit: &TreeEdit) -> Result<()> {
        for blob in &edit.blobs {
            self.add_blob(blob)?;
        }
        for &(number, count, bytes) in &edit.garbage {
            self.add_garbage(number, count, bytes)?;
        }
        let mut leaving = HashMap::new();
        for &(level, number) in &edit.deleted {
            leaving.insert(number, self.delete_file(level, number)?);
        }
        for (level, file) in &edit.added {
            self.add_file(*level, file, leaving.get(&file.number))?;
        }
        for (level, key) in &edit.cursors {
            self.cursors.insert(*level, key.clone());
        }
        Ok(())
    }

    fn blob(&mut self, number: FileNo) -> Option<&mut BlobFile> {
        match self.blobs.entry(number) {
            Entry::Occupied(o) => Some(o.into_mut()),
            Entry::Vacant(v) => self
                .base
                .blobs
                .get(&number)
                .map(|b| v.insert(b.file.clone())),
        }
    }

    fn add_blob(&mut self, blob: &BlobFile) -> Result<()> {
        if self.blob(blob.number).is_some() {
            return Err(Error::corruption(format!(
                "blob file {} is added twice",
                blob.number
            )));
        }
        let fresh = BlobFile {
            garbage_count: 0,
            garbage_bytes: 0,
            linked_tables: 0,
            ..blob.clone()
        };
        self.blobs.insert(blob.number, fresh);
        self.links_changed = true;
        Ok(())
    }

    fn add_garbage(&mut self, number: FileNo, count: u64, bytes: u64) -> Result<()> {
        let Some(blob) = self.blob(number) else {
            return Err(Error::corruption(format!(
                "garbage for blob file {number}, which is not in the version"
            )));
        };
        let sum = |a: u64, b: u64, total: u64| a.checked_add(b).filter(|s| *s <= total);
        match (
            sum(blob.garbage_count, count, blob.total_count),
            sum(blob.garbage_bytes, bytes, blob.total_bytes),
        ) {
            (Some(count), Some(bytes)) => (blob.garbage_count, blob.garbage_bytes) = (count, bytes),
            _ => {
                return Err(Error::corruption(format!(
                    "blob file {number} has more garbage than contents"
                )));
            }
        }
        self.links_changed = true;
        Ok(())
    }

    fn delete_file(&mut self, level: Level, number: FileNo) -> Result<Arc<FileMeta>> {
        if let Some(at) = self.place.get(&number).copied() {
            if at != level {
                return Err(misplaced(number, level, Some(at)));
            }
            self.place.remove(&number);
            let file = self
                .added
                .get_mut(&at)
                .and_then(|files| files.remove(&number));
            let file = file.expect("`place` and `added` change together");
            self.links_changed |= file.oldest_blob_file.is_some();
            return Ok(file);
        }
        if self.deleted.contains_key(&number) {
            return Err(misplaced(number, level, None));
        }
        let Some(at) = self.base.level(level).position(number) else {
            return Err(misplaced(
                number,
                level,
                self.base.find_file(number).map(|(at, _)| at),
            ));
        };
        let file = self.base.level(level).files()[at].clone();
        self.links_changed |= file.oldest_blob_file.is_some();
        self.deleted.insert(number, level);
        Ok(file)
    }

    fn add_file(
        &mut self,
        level: Level,
        file: &Arc<FileMeta>,
        leaving: Option<&Arc<FileMeta>>,
    ) -> Result<()> {
        let number = file.number;
        let in_base = || {
            self.base
                .find_file(number)
                .filter(|_| !self.deleted.contains_key(&number))
        };
        if let Some(at) = self
            .place
            .get(&number)
            .copied()
            .or_else(|| in_base().map(|(at, _)| at))
        {
            let text =
                format!("table {number} is added at level {level} but it is at level {at} already");
            return Err(Error::corruption(text));
        }
        check::file(&self.base.order, file)?;
        let file = leaving.filter(|old| old.same_file(file)).unwrap_or(file);
        self.links_changed |= file.oldest_blob_file.is_some();
        self.last_epoch = self.last_epoch.max(file.epoch);
        self.place.insert(number, level);
        self.added
            .entry(level)
            .or_default()
            .insert(number, file.clone());
        Ok(())
    }

    /// The version that all edits together make.
    pub fn finish(mut self) -> Result<Version> {
        let mut next = self.base.clone();
        next.last_epoch = self.last_epoch;
        let mut touched: BTreeSet<Level> = self.deleted.values().copied().collect();
        touched.extend(
            self.added
                .iter()
                .filter(|(_, files)| !files.is_empty())
                .map(|(level, _)| *level),
        );
        for level in touched {
            if level.index() >= next.levels.len() {
                let text =
                    format!("db has more levels than options.num_levels: level {level} has files");
                return Err(
                    Error::new(ErrorKind::InvalidArgument, text).with_hint(format!(
                        "open with num_levels of at least {}",
                        level.index() + 1
                    )),
                );
            }
            next.levels[level.index()] = Arc::new(self.build_level(level)?);
        }
        if self.links_changed {
            next.blobs = Arc::new(self.build_blobs(&next)?);
        }
        if !self.cursors.is_empty() {
            let mut cursors = (*next.cursors).clone();
            cursors.append(&mut self.cursors);
            next.cursors = Arc::new(cursors);
        }
        Ok(next)
    }

    fn build_level(&self, level: Level) -> Result<LevelFiles> {
        let order = &self.base.order;
        let old = self.base.level(level).files().iter();
        let kept = old.filter(|f| self.deleted.get(&f.number) != Some(&level));
        let mut files: Vec<_> = kept.cloned().collect();
        let added = self.added.get(&level);
        files.extend(added.into_iter().flat_map(BTreeMap::values).cloned());
        if level == Level::L0 {
            sort_newest_first(&mut files);
            check::level0(order, &files)?;
            return Ok(LevelFiles::new(order, files));
        }
        let by_smallest = |a: &Arc<FileMeta>, b: &Arc<FileMeta>| {
            order.compare_internal(a.smallest.as_bytes(), b.smallest.as_bytes())
        };
        files.sort_by(by_smallest);
        // Taking files away cannot make neighbours overlap: only pairs with a new file need a look.
        let is_new = |f: &FileMeta| added.is_some_and(|added| added.contains_key(&f.number));
        for pair in files
            .windows(2)
            .filter(|pair| pair.iter().any(|f| is_new(f)))
        {
            check::neighbours(order, level, &pair[0], &pair[1])?;
        }
        Ok(LevelFiles::new(order, files))
    }

    fn build_blobs(&self, next: &Version) -> Result<BTreeMap<FileNo, Arc<TreeBlob>>> {
        let mut all: BTreeMap<FileNo, Arc<TreeBlob>> = (*self.base.blobs).clone();
        for (number, blob) in &self.blobs {
            let before = all.get(number).map(|b| Arc::clone(&b.slot));
            let changed = TreeBlob {
                file: blob.clone(),
                slot: before.unwrap_or_default(),
            };
            all.insert(*number, Arc::new(changed));
        }
        if all.is_empty() {
            return Ok(all);
        }
        let mut links: HashMap<FileNo, u64> = HashMap::new();
        for oldest in next.files().filter_map(|(_, f)| f.oldest_blob_file) {
            *links.entry(oldest).or_default() += 1;
        }
        let linked = |number: &FileNo| links.get(number).copied().unwrap_or(0);
        // What no table links to and nothing older is linked to has no readers left.
        let Some(oldest_linked) = all.keys().copied().find(|number| linked(number) > 0) else {
            return Ok(BTreeMap::new());
        };
        all.retain(|number, blob| {
            *number >= oldest_linked
                && (linked(number) > 0 || blob.garbage_count < blob.total_count)
        });
        for (number, blob) in &mut all {
            if blob.linked_tables != linked(number) {
                Arc::make_mut(blob).file.linked_tables = linked(number);
            }
            check::blob(blob)?;
        }
        Ok(all)
    }
}

#[cold]
fn misplaced(number: FileNo, level: Level, actual: Option<Level>) -> Error {
    let actual = match actual {
        Some(at) => format!("it is at level {at}"),
        None => "it is not in the version".to_owned(),
    };
    Error::corruption(format!(
        "cannot delete table {number} from level {level}: {actual}"
    ))
}
