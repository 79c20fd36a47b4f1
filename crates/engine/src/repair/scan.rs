//! What is in the directory of a database to be repaired: every table read from end to end, every blob file opened.
//!
//! Changes nothing.

use super::{Plan, order_of};
use crate::db::Options;
use crate::recover::fold::Folded;
use esker_env::{Env, ReadOptions as FileReadOptions};
use esker_files::blob::BlobFileReader;
use esker_files::table::{ReadContext, TableReader, TableReaderOptions};
use esker_format::blob::{self, BlobFileHeader, BlobIndex};
use esker_format::file_name::{FileKind, parse_file_name};
use esker_format::{Cursor, FamilyId, FileNo, InternalKey, KeyOrder, Level, Seq, ValueType, key};
use esker_lsm::edit::TreeEdit;
use esker_lsm::file::FileMeta;
use esker_lsm::version::BlobFile;
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a table that the MANIFEST lists is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Readable,
    Unreadable,
    Absent,
}

/// A table that can be read.
struct Found {
    family: FamilyId,
    family_name: String,
    comparator: String,
    meta: FileMeta,
}

/// Everything that was found.
#[derive(Default)]
pub(super) struct Inventory {
    tables: BTreeMap<FileNo, Found>,
    blobs: BTreeMap<FileNo, (FamilyId, BlobFile)>,
    unusable: Vec<(PathBuf, String)>,
    unusable_numbers: Vec<FileNo>,
    unlisted: Vec<(PathBuf, String)>,
    largest: FileNo,
}

/// Looks at the files in `dir`.
pub(super) fn inspect(
    env: &Env,
    dir: &Path,
    options: &Options,
    folded: Option<&Folded>,
) -> Result<Inventory> {
    let mut out = Inventory::default();
    let listed = folded.map(listed_tables);
    for entry in env.fs.read_dir(dir)? {
        let Some((kind, number)) = parse_file_name(&entry.name) else {
            continue;
        };
        if !entry.is_file || !matches!(kind, FileKind::Table | FileKind::Blob) {
            continue;
        }
        out.largest = out.largest.max(number);
        let path = dir.join(&entry.name);
        if kind == FileKind::Blob {
            match blob_file(env, &path, number) {
                Ok(found) => {
                    out.blobs.insert(number, found);
                }
                Err(e) => out.unusable.push((path, e.to_string())),
            }
            continue;
        }
        let place = listed.as_ref().map(|l| l.get(&number));
        if let Some(None) = place {
            out.unlisted
                .push((path, "a table that the MANIFEST does not list".to_owned()));
            continue;
        }
        match table(env, &path, number, options, place.flatten()) {
            Ok(found) => {
                out.tables.insert(number, found);
            }
            Err(Failure::Damaged(e)) => {
                out.unusable_numbers.push(number);
                out.unusable.push((path, e.to_string()));
            }
            Err(Failure::Refused(e)) => return Err(e.with_file(path)),
        }
    }
    out.drop_foreign_blobs(folded);
    Ok(out)
}

/// What the MANIFEST says about a table that decides how it is read.
struct Listed {
    comparator: Option<String>,
    family: String,
    largest_seq: Seq,
    size: u64,
}

fn listed_tables(folded: &Folded) -> BTreeMap<FileNo, Listed> {
    let mut out = BTreeMap::new();
    for family in folded.families.values() {
        for file in family.live_files() {
            let listed = Listed {
                comparator: family.comparator.clone(),
                family: family.name.clone(),
                largest_seq: file.largest_seq,
                size: file.size,
            };
            out.insert(file.number, listed);
        }
    }
    out
}

/// Why a table is not part of the result.
enum Failure {
    /// It cannot be read: it is set aside.
    Damaged(Error),
    /// The call lacks something: nothing is changed.
    Refused(Error),
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Failure::Damaged(e)
    }
}

fn open(
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

/// Reads a table from end to end.
fn table(
    env: &Env,
    path: &Path,
    number: FileNo,
    options: &Options,
    listed: Option<&Listed>,
) -> std::result::Result<Found, Failure> {
    let largest_seq = listed.map(|l| l.largest_seq);
    // Its properties say which order it has; they can be read in any.
    let probe = open(env, path, KeyOrder::Bytewise, largest_seq)?;
    let p = probe.properties();
    let (family_name, stored) = match listed {
        Some(l) => (l.family.clone(), l.comparator.clone()),
        None => (
            p.column_family_name.clone(),
            Some(p.comparator_name.clone()),
        ),
    };
    let stored = stored.filter(|c| !c.is_empty());
    let order = order_of(options, &family_name, stored.as_deref()).map_err(Failure::Refused)?;
    if let Some(l) = listed
        && l.size != probe.file_size()
    {
        let why = format!(
            "the file has {} bytes and the MANIFEST says {}",
            probe.file_size(),
            l.size
        );
        return Err(Error::corruption(why).into());
    }
    let comparator = order.name().to_owned();
    let family = u32::try_from(p.column_family_id).unwrap_or(0);
    let reader = open(env, path, order, largest_seq)?;
    reader.verify()?;
    let mut meta = FileMeta {
        number,
        size: reader.file_size(),
        ..FileMeta::default()
    };
    bounds(&reader, &mut meta)?;
    let p = reader.properties();
    meta.oldest_ancestor_time = p.creation_time;
    meta.file_creation_time = p.file_creation_time;
    meta.unique_id = p.unique_id().map(|id| id.0).filter(|id| *id != [0, 0]);
    // Ids of families were not stored in early versions of the format.
    let known = p.column_family_id <= u64::from(u32::MAX) && p.column_family_id != i32::MAX as u64;
    Ok(Found {
        family: if known {
            FamilyId(family)
        } else {
            FamilyId::DEFAULT
        },
        family_name: if known {
            family_name
        } else {
            "default".to_owned()
        },
        comparator,
        meta,
    })
}

/// Fills in the smallest and largest key and sequence, over points and range tombstones.
fn bounds(reader: &Arc<TableReader>, meta: &mut FileMeta) -> Result<()> {
    let order = reader.order().clone();
    let ctx = ReadContext {
        fill_cache: false,
        readahead_size: 1 << 20,
        ..ReadContext::default()
    };
    let mut cursor = reader.cursor(&ctx);
    let (mut first, mut last): (Option<InternalKey>, Vec<u8>) = (None, Vec::new());
    let mut seqs: Option<(Seq, Seq)> = None;
    let mut see = |seq: Seq| {
        let (low, high) = seqs.unwrap_or((seq, seq));
        seqs = Some((low.min(seq), high.max(seq)));
    };
    cursor.seek_to_first();
    while cursor.valid() {
        if first.is_none() {
            first = Some(InternalKey::from_encoded(cursor.key())?);
        }
        last.clear();
        last.extend_from_slice(cursor.key());
        see(key::seq_of(&last));
        if last[last.len() - 8] == ValueType::BlobIndex as u8
            && let Some(n) = BlobIndex::decode(cursor.value())?.file()
        {
            meta.oldest_blob_file = Some(meta.oldest_blob_file.map_or(n, |o| o.min(n)));
        }
        cursor.next();
    }
    cursor.status()?;
    let mut low = first;
    let mut high = if last.is_empty() {
        None
    } else {
        Some(InternalKey::from_encoded(&last)?)
    };
    for t in reader.range_tombstones().iter() {
        see(t.seq);
        let start = InternalKey::new(&t.start, t.seq, ValueType::RangeDeletion);
        let end = InternalKey::new(&t.end, Seq::MAX, ValueType::RangeDeletion);
        if low.as_ref().is_none_or(|l| {
            order
                .compare_internal(start.as_bytes(), l.as_bytes())
                .is_lt()
        }) {
            low = Some(start);
        }
        if high
            .as_ref()
            .is_none_or(|h| order.compare_internal(end.as_bytes(), h.as_bytes()).is_gt())
        {
            high = Some(end);
        }
    }
    let (Some(low), Some(high), Some((small, large))) = (low, high, seqs) else {
        return Err(Error::corruption("the table holds nothing"));
    };
    (meta.smallest, meta.largest) = (low, high);
    (meta.smallest_seq, meta.largest_seq) = (small, large);
    Ok(())
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
        checksum_method: String::new(),
        checksum_value: Vec::new(),
        garbage_count: 0,
        garbage_bytes: 0,
        linked_tables: 0,
    };
    Ok((header.family, blob))
}

impl Inventory {
    pub(super) fn state_of(&self, number: FileNo) -> State {
        if self.tables.contains_key(&number) {
            State::Readable
        } else if self.unusable_numbers.contains(&number) {
            State::Unreadable
        } else {
            State::Absent
        }
    }

    /// Files that cannot be read, and why.
    pub(super) fn unusable(&self) -> &[(PathBuf, String)] {
        &self.unusable
    }

    /// Files that the MANIFEST does not list.
    pub(super) fn unlisted(&self) -> &[(PathBuf, String)] {
        &self.unlisted
    }

    pub(super) fn largest_number(&self) -> FileNo {
        self.largest
    }

    pub(super) fn largest_seq(&self) -> Seq {
        self.tables
            .values()
            .map(|t| t.meta.largest_seq)
            .max()
            .unwrap_or(Seq::ZERO)
    }

    /// Without a MANIFEST, a tree may only list blob files from the oldest that a table names on.
    fn drop_foreign_blobs(&mut self, folded: Option<&Folded>) {
        if folded.is_some() {
            self.blobs.clear();
            return;
        }
        let tables = &self.tables;
        self.blobs.retain(|number, (family, _)| {
            tables.values().any(|t| {
                t.family == *family && t.meta.oldest_blob_file.is_some_and(|o| o <= *number)
            })
        });
    }

    /// Families and trees as the tables alone show them: every table at level 0, ordered by sequence.
    pub(super) fn plan_by_tables(&self, options: &Options) -> Result<BTreeMap<FamilyId, Plan>> {
        let mut plans = BTreeMap::new();
        let default = plan_of("default", options.family.comparator.clone());
        plans.insert(FamilyId::DEFAULT, default);
        let mut by_family: BTreeMap<FamilyId, Vec<&Found>> = BTreeMap::new();
        for t in self.tables.values() {
            by_family.entry(t.family).or_default().push(t);
        }
        for (id, mut tables) in by_family {
            tables.sort_by_key(|t| (t.meta.largest_seq, t.meta.smallest_seq, t.meta.number));
            let newest = tables.last().map_or("", |t| t.comparator.as_str());
            let order = order_of(options, &tables[0].family_name, Some(newest))?;
            let name = match id {
                FamilyId::DEFAULT => "default",
                _ => &tables[0].family_name,
            };
            let mut plan = plan_of(name, order);
            plan.must_merge = must_merge(&plan.order, &tables);
            for (epoch, t) in (1..).zip(&tables) {
                let file = esker_format::edit::NewFile::from(&t.meta);
                let meta = FileMeta {
                    epoch,
                    ..FileMeta::from(file)
                };
                plan.tree.added.push((Level::L0, Arc::new(meta)));
            }
            plan.tree.blobs = self
                .blobs
                .values()
                .filter(|(f, _)| *f == id)
                .map(|(_, b)| b.clone())
                .collect();
            plans.insert(id, plan);
        }
        Ok(plans)
    }
}

fn plan_of(name: &str, order: KeyOrder) -> Plan {
    Plan {
        name: name.to_owned(),
        order,
        log_number: FileNo(0),
        tree: TreeEdit::default(),
        must_merge: false,
    }
}

/// Whether two tables overlap in user keys and in sequences: level 0 alone would not put their entries in order.
fn must_merge(order: &KeyOrder, tables: &[&Found]) -> bool {
    tables.iter().enumerate().any(|(i, a)| {
        tables[i + 1..].iter().any(|b| {
            let (a, b) = (&a.meta, &b.meta);
            let seqs = a.smallest_seq <= b.largest_seq && b.smallest_seq <= a.largest_seq;
            seqs && a.overlaps(order, Some(b.smallest.user()), Some(b.largest.user()))
        })
    })
}
