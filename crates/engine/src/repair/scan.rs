//! Inventory of the directory of a database to be repaired: every table read from end to end, every
//! blob file opened.
//!
//! Changes nothing.

use super::Repair;
use super::extent::Extent;
use super::found::{Inventory, ListedTable, ManifestTrees, ReadableTable, TableCondition, made_of};
use esker_env::{Env, ReadOptions as FileReadOptions};
use esker_files::blob::BlobFileReader;
use esker_files::table::{ReadContext, TableReader, TableReaderOptions};
use esker_format::blob::{self, BlobFileHeader};
use esker_format::blob_refs::BlobRefs;
use esker_format::file_name::{FileKind, parse_file_name};
use esker_format::properties::TableProperties;
use esker_format::{Cursor, FamilyId, FileNo, KeyOrder, Seq};
use esker_lsm::file::FileMeta;
use esker_lsm::version::BlobFile;
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number that tables carry whose family is not known.
const UNKNOWN_FAMILY: u64 = i32::MAX as u64;

impl Repair<'_> {
    /// Looks at the tables and blob files: at those that `followed` lists, or at all.
    pub(super) fn inspect(&self, followed: Option<&ManifestTrees>) -> Result<Inventory> {
        let mut out = Inventory::default();
        let listed = followed.map(|f| ManifestFiles::of(f, self));
        for dir in self.dirs()? {
            for entry in self.env.fs.read_dir(&dir)? {
                let Some((kind, number)) = parse_file_name(&entry.name) else {
                    continue;
                };
                let path = dir.join(&entry.name);
                match kind {
                    FileKind::Table if entry.is_file => {
                        out.largest = out.largest.max(number);
                        self.inspect_table(path, number, listed.as_ref(), &mut out)?;
                    }
                    FileKind::Blob if entry.is_file => {
                        out.largest = out.largest.max(number);
                        self.inspect_blob(path, number, listed.as_ref(), &mut out)?;
                    }
                    _ => {}
                }
            }
        }
        for (path, number) in std::mem::take(&mut out.misplaced) {
            self.inspect_misplaced(path, number, listed.as_ref(), &mut out)?;
        }
        Ok(out)
    }

    /// A table that is not where the MANIFEST says takes the place of one that is missing there.
    fn inspect_misplaced(
        &self,
        path: PathBuf,
        number: FileNo,
        listed: Option<&ManifestFiles>,
        out: &mut Inventory,
    ) -> Result<()> {
        let place = listed.and_then(|l| l.tables.get(&number));
        let is_missing = out.state_of(number) == TableCondition::Absent;
        if let Some(listed) =
            place.filter(|l| is_missing && self.path_id(&l.family, &path).is_some())
        {
            match self.table(&path, number, Some(listed)) {
                Ok(found) => {
                    out.tables.insert(number, found);
                    return Ok(());
                }
                Err(e) if self.is_lost(&e) => {}
                Err(e) => return Err(self.stop(e.with_file(path))),
            }
        }
        let why = "a table that is not where the MANIFEST says".to_owned();
        out.unlisted.push((path, why));
        Ok(())
    }

    fn inspect_table(
        &self,
        path: PathBuf,
        number: FileNo,
        listed: Option<&ManifestFiles>,
        out: &mut Inventory,
    ) -> Result<()> {
        let place = listed.map(|l| l.tables.get(&number));
        if let Some(None) = place {
            let why = "a table that the MANIFEST does not list".to_owned();
            out.unlisted.push((path, why));
            return Ok(());
        }
        let place = place.flatten();
        if place.is_some_and(|l| path.parent() != Some(&*l.dir)) {
            out.misplaced.push((path, number));
            return Ok(());
        }
        if out.tables.contains_key(&number) {
            let why = "a table with the number of another".to_owned();
            out.unlisted.push((path, why));
            return Ok(());
        }
        match self.table(&path, number, place) {
            Ok(found) => {
                out.tables.insert(number, found);
                Ok(())
            }
            Err(e) if self.is_lost(&e) => {
                self.note_unreadable(&e, &path);
                let rest = self.rest_of(&path, number, place, &e);
                match rest.map_err(|e| self.stop(e.with_file(&path)))? {
                    Some(salvaged) => _ = out.salvaged.insert(number, salvaged),
                    None => {
                        out.unusable_tables.insert(number);
                        out.unusable.push((path, e.to_string()));
                    }
                }
                Ok(())
            }
            Err(e) => Err(self.stop(e.with_file(path))),
        }
    }

    fn inspect_blob(
        &self,
        path: PathBuf,
        number: FileNo,
        listed: Option<&ManifestFiles>,
        out: &mut Inventory,
    ) -> Result<()> {
        let place = listed.and_then(|l| l.blobs.get(&number));
        let is_listed = place.is_some_and(|dir| path.parent() == Some(dir));
        if listed.is_some() && !is_listed {
            let why = "a blob file that the MANIFEST does not list".to_owned();
            out.unlisted.push((path, why));
            return Ok(());
        }
        match blob_file(&self.env, &path, number) {
            Ok((family, blob)) => {
                out.blobs.insert(number, (path, family, blob));
            }
            Err(e) if !self.is_lost(&e) => return Err(self.stop(e.with_file(path))),
            // It stays, since a tree lists it, and so that what can be read of it is.
            Err(e) if is_listed => {
                out.unusable_blobs.insert(number, e);
            }
            Err(e) => {
                self.note_unreadable(&e, &path);
                out.unusable.push((path, e.to_string()));
            }
        }
        Ok(())
    }
}

/// The files that a MANIFEST lists.
struct ManifestFiles {
    tables: BTreeMap<FileNo, ListedTable>,
    /// Blob files, with where they should be.
    blobs: BTreeMap<FileNo, PathBuf>,
}

impl ManifestFiles {
    fn of(followed: &ManifestTrees, repair: &Repair<'_>) -> ManifestFiles {
        let mut tables = BTreeMap::new();
        for (id, family) in &followed.folded.families {
            let paths = repair.paths_of(&family.name);
            for (level, file) in family.files().into_values() {
                let listed = ListedTable {
                    dir: paths.dir(file.path_id).to_path_buf(),
                    comparator: family.comparator.clone(),
                    family: family.name.clone(),
                    family_id: *id,
                    level,
                    bounds: (file.smallest.clone(), file.largest.clone()),
                    smallest_seq: file.smallest_seq,
                    largest_seq: file.largest_seq,
                    size: file.size,
                    unique_id: file.unique_id,
                };
                tables.insert(file.number, listed);
            }
        }
        let mut blobs = BTreeMap::new();
        for (id, version) in &followed.versions {
            let family = followed.folded.families.get(id);
            let paths = repair.paths_of(family.map_or("", |f| &f.name));
            let dir = paths.first();
            let numbers = version.blob_files().keys();
            blobs.extend(numbers.map(|n| (*n, dir.to_path_buf())));
        }
        ManifestFiles { tables, blobs }
    }
}

pub(super) fn open(
    env: &Env,
    path: &Path,
    order: KeyOrder,
    largest_seq: Option<Seq>,
) -> Result<Arc<TableReader>> {
    let file = env.fs.open_read(path, FileReadOptions::default())?;
    let size = file.len();
    let options = TableReaderOptions {
        order,
        largest_seq,
        ..TableReaderOptions::default()
    };
    TableReader::open(file, size, options)
}

impl Repair<'_> {
    /// Reads a table from end to end.
    pub(super) fn table(
        &self,
        path: &Path,
        number: FileNo,
        listed: Option<&ListedTable>,
    ) -> Result<ReadableTable> {
        let largest_seq = listed.map(|l| l.largest_seq);
        // Its properties say which order it has; they can be read in any.
        let probe = open(&self.env, path, KeyOrder::Bytewise, largest_seq)?;
        let p = probe.properties();
        let (family_name, stored) = match listed {
            Some(l) => (l.family.clone(), l.comparator.clone()),
            None => (
                p.column_family_name.clone(),
                Some(p.comparator_name.clone()),
            ),
        };
        let stored = stored.filter(|c| !c.is_empty());
        let order = self.order_of(&family_name, stored.as_deref())?;
        if let Some(l) = listed {
            check_against(l, &probe)?;
        }
        let comparator = order.name().to_owned();
        let reader = open(&self.env, path, order, largest_seq)?;
        reader.verify()?;
        let p = reader.properties();
        let tail = match p.tail_start_offset {
            0 => 0,
            start => reader.file_size().saturating_sub(start),
        };
        let (meta, refs) = bounds(&reader)?;
        let meta = FileMeta {
            number,
            size: reader.file_size(),
            oldest_ancestor_time: p.creation_time,
            file_creation_time: p.file_creation_time,
            unique_id: p.unique_id().map(|id| id.0).filter(|id| *id != [0, 0]),
            tail_size: tail,
            ..meta
        };
        Ok(ReadableTable {
            path: path.to_owned(),
            family: family_of(p)?,
            family_name,
            comparator,
            meta,
            refs,
            entries: p.num_entries,
            is_ageless: p.external_sst_file_version.is_some_and(|v| v >= 2)
                && p.external_sst_file_global_seqno.unwrap_or(0) == 0,
            made_of: made_of(p),
        })
    }
}

/// The family that a table says it belongs to.
pub(super) fn family_of(p: &TableProperties) -> Result<FamilyId> {
    match p.column_family_id {
        UNKNOWN_FAMILY => Ok(FamilyId::DEFAULT),
        id => u32::try_from(id)
            .map(FamilyId)
            .map_err(|_| Error::corruption(format!("column family {id} cannot exist"))),
    }
}

/// Checks that a table is the one that the MANIFEST lists.
fn check_against(listed: &ListedTable, table: &TableReader) -> Result<()> {
    if listed.size != table.file_size() {
        let why = format!(
            "the file has {} bytes, but {} in the MANIFEST",
            table.file_size(),
            listed.size
        );
        return Err(Error::corruption(why));
    }
    match (listed.unique_id, table.properties().unique_id()) {
        (Some(named), Some(own)) if named != [0, 0] && named != own.0 => Err(Error::corruption(
            "the unique id is not the one in the MANIFEST",
        )),
        _ => Ok(()),
    }
}

/// The smallest and largest key and sequence, over points and range tombstones, and the references
/// to blob files.
fn bounds(reader: &Arc<TableReader>) -> Result<(FileMeta, BlobRefs)> {
    let mut extent = Extent::default();
    let mut cursor = reader.cursor(&ReadContext::compaction(1 << 20));
    cursor.seek_to_first();
    while cursor.valid() {
        extent.add(cursor.key(), cursor.value())?;
        cursor.next();
    }
    cursor.status()?;
    extent.meta(reader.range_tombstones().iter(), reader.order())
}

/// The family that a blob file belongs to, and what the MANIFEST says about it.
fn blob_file(env: &Env, path: &Path, number: FileNo) -> Result<(FamilyId, BlobFile)> {
    let file = env.fs.open_read(path, FileReadOptions::default())?;
    let mut header = vec![0; blob::HEADER_LEN];
    let got = file.read_at(0, &mut header)?;
    let header = BlobFileHeader::decode(&header[..got])?;
    let frame = (blob::HEADER_LEN + blob::FOOTER_LEN) as u64;
    let total_bytes = file.len().saturating_sub(frame);
    let reader = BlobFileReader::over(file, number, header.family)?;
    let blob = BlobFile {
        number,
        total_count: reader.blob_count(),
        total_bytes,
        ..BlobFile::default()
    };
    Ok((header.family, blob))
}

impl Inventory {
    pub(super) fn state_of(&self, number: FileNo) -> TableCondition {
        if self.tables.contains_key(&number) {
            TableCondition::Readable
        } else if self.salvaged.contains_key(&number) {
            TableCondition::Salvaged
        } else if self.unusable_tables.contains(&number) {
            TableCondition::Unreadable
        } else {
            TableCondition::Absent
        }
    }

    /// Returns whether the blob file is there, whatever it is like.
    pub(super) fn has_blob(&self, number: FileNo) -> bool {
        self.blobs.contains_key(&number) || self.unusable_blobs.contains_key(&number)
    }

    /// Returns the error of a blob file that a tree lists.
    pub(super) fn trouble_with_blob(&self, number: FileNo) -> Option<String> {
        match self.unusable_blobs.get(&number) {
            Some(e) => Some(format!("cannot be opened ({e})")),
            None if self.blobs.contains_key(&number) => None,
            None => Some("is missing".to_owned()),
        }
    }

    pub(super) fn largest_seq(&self) -> Seq {
        let salvaged = self.salvaged.values().map(|s| &s.found);
        let all = self.tables.values().chain(salvaged);
        all.map(|t| t.meta.largest_seq).max().unwrap_or(Seq::ZERO)
    }
}
