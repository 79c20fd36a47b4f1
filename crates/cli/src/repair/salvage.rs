//! What a table tells about itself when there is no MANIFEST, and trees made of that.

use super::{Plan, Repaired};
use crate::directory::{Directory, FileAt};
use crate::failure::Outcome;
use crate::progress::Progress;
use crate::sst::open;
use esker_files::table::{ReadContext, TableReader};
use esker_format::blob::BlobIndex;
use esker_format::edit::NewFile;
use esker_format::file_name::FileKind;
use esker_format::{
    BYTEWISE_NAME, Cursor, FamilyId, FileNo, InternalKey, KeyOrder, Level, ParsedKey, Seq,
    ValueType,
};
use esker_lsm::check;
use esker_lsm::edit::{TreeEdit, apply};
use esker_lsm::file::FileMeta;
use esker_lsm::version::{BlobFile, Version};
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number that tables carry whose family is not known.
const UNKNOWN_FAMILY: u64 = i32::MAX as u64;
/// Levels of a tree that is made anew.
const LEVELS: usize = 7;

/// Reads all of a table that a MANIFEST describes.
pub(super) fn verify(file: &FileAt, meta: &NewFile) -> Result<()> {
    if file.len != meta.size {
        let what = format!(
            "the file has {} bytes, the MANIFEST says {}",
            file.len, meta.size
        );
        return Err(Error::corruption(what));
    }
    let table = open(&file.path, file.number)?;
    if let (Some(named), Some(own)) = (meta.unique_id, table.properties().unique_id())
        && named != own.0
    {
        return Err(Error::corruption("the unique id is not the MANIFEST's"));
    }
    table.verify()
}

/// A table that was read whole.
struct Salvaged {
    family: FamilyId,
    family_name: String,
    order: KeyOrder,
    file: NewFile,
    /// Ingested with its sequence in the MANIFEST alone: how old its data is cannot be told.
    is_ageless: bool,
}

/// What was seen of a table's entries.
struct Seen {
    smallest: Option<InternalKey>,
    largest: Option<InternalKey>,
    seqs: (Seq, Seq),
    oldest_blob: Option<FileNo>,
}

impl Seen {
    fn widen(&mut self, order: &KeyOrder, low: InternalKey, high: InternalKey, seq: Seq) {
        let lower = |old: &InternalKey| {
            order
                .compare_internal(low.as_bytes(), old.as_bytes())
                .is_lt()
        };
        if self.smallest.as_ref().is_none_or(lower) {
            self.smallest = Some(low);
        }
        let higher = |old: &InternalKey| {
            order
                .compare_internal(high.as_bytes(), old.as_bytes())
                .is_gt()
        };
        if self.largest.as_ref().is_none_or(higher) {
            self.largest = Some(high);
        }
        self.seqs = (self.seqs.0.min(seq), self.seqs.1.max(seq));
    }
}

fn look(table: &Arc<TableReader>) -> Result<Seen> {
    let order = table.order();
    let mut seen = Seen {
        smallest: None,
        largest: None,
        seqs: (Seq::MAX, Seq::ZERO),
        oldest_blob: None,
    };
    let mut cursor = table.cursor(&ReadContext::compaction(1 << 20));
    let mut last: Option<InternalKey> = None;
    cursor.seek_to_first();
    while cursor.valid() {
        let key = ParsedKey::parse(cursor.key())?;
        seen.seqs = (seen.seqs.0.min(key.seq), seen.seqs.1.max(key.seq));
        if key.kind == ValueType::BlobIndex
            && let Some(number) = BlobIndex::decode(cursor.value())?.file()
        {
            seen.oldest_blob = Some(seen.oldest_blob.map_or(number, |old| old.min(number)));
        }
        let encoded = InternalKey::from_encoded(cursor.key())?;
        if seen.smallest.is_none() {
            seen.smallest = Some(encoded.clone());
        }
        last = Some(encoded);
        cursor.next();
    }
    cursor.status()?;
    seen.largest = last;
    for t in table.range_tombstones().iter() {
        let low = InternalKey::new(&t.start, t.seq, ValueType::RangeDeletion);
        seen.widen(order, low, InternalKey::range_end_sentinel(&t.end), t.seq);
    }
    Ok(seen)
}

fn salvage(file: &FileAt) -> Result<Salvaged> {
    let table = open(&file.path, file.number)?;
    let order = table.order().clone();
    if let KeyOrder::Custom(c) = &order {
        return Err(
            Error::not_supported(format!("comparator {:?} is not built in", c.name()))
                .with_hint("repair through the application that defines it"),
        );
    }
    table.verify()?;
    let seen = look(&table)?;
    let (Some(smallest), Some(largest)) = (seen.smallest, seen.largest) else {
        return Err(Error::corruption("the table holds nothing"));
    };
    let p = table.properties();
    let family = match p.column_family_id {
        UNKNOWN_FAMILY => FamilyId::DEFAULT,
        id => FamilyId(
            u32::try_from(id)
                .map_err(|_| Error::corruption(format!("column family {id} cannot exist")))?,
        ),
    };
    let tail = if p.tail_start_offset > 0 {
        file.len.saturating_sub(p.tail_start_offset)
    } else {
        0
    };
    Ok(Salvaged {
        family,
        family_name: p.column_family_name.clone(),
        order,
        is_ageless: p.external_sst_file_version.is_some_and(|v| v >= 2)
            && p.external_sst_file_global_seqno.unwrap_or(0) == 0,
        file: NewFile {
            number: file.number,
            size: file.len,
            smallest,
            largest,
            smallest_seq: seen.seqs.0,
            largest_seq: seen.seqs.1,
            oldest_blob_file: seen.oldest_blob,
            oldest_ancestor_time: p.creation_time,
            creation_time: p.file_creation_time,
            unique_id: p.unique_id().map(|u| u.0),
            tail_size: tail,
            ..NewFile::default()
        },
    })
}

/// Trees of all the tables that can be read.
pub(super) fn from_tables(dir: &Directory) -> Outcome<Plan> {
    let mut plan = Plan::default();
    let progress = Progress::bytes(
        "reading tables",
        dir.of(FileKind::Table).map(|f| f.len).sum(),
    );
    let mut families: BTreeMap<FamilyId, Vec<Salvaged>> = BTreeMap::new();
    for file in dir.of(FileKind::Table) {
        match salvage(file) {
            Ok(table) => {
                if table.is_ageless {
                    plan.notes.push(format!(
                        "table {} was ingested: taken for the oldest data, since only the MANIFEST knew its age",
                        file.number
                    ));
                }
                families.entry(table.family).or_default().push(table);
            }
            Err(e) if e.kind() == esker_status::ErrorKind::NotSupported => {
                // Readable by somebody: leaving it out would lose it, so nothing is done.
                return Err(e.with_file(&file.path).into());
            }
            Err(e) => plan.lost.push((file.path.clone(), e.to_string())),
        }
        progress.add(file.len);
    }
    drop(progress);
    families.entry(FamilyId::DEFAULT).or_default();
    let last = families
        .values()
        .flatten()
        .map(|t| t.file.largest_seq)
        .max();
    plan.last_sequence = last.unwrap_or_default();
    plan.max_family = families.keys().copied().max().unwrap_or_default();
    let mut names: BTreeMap<String, FamilyId> = BTreeMap::new();
    // The highest id of a name is the family that lives; a lower one was dropped before.
    for (id, tables) in families.into_iter().rev() {
        let name = match tables.first() {
            _ if id == FamilyId::DEFAULT => "default".to_owned(),
            Some(t) if !t.family_name.is_empty() => t.family_name.clone(),
            _ => format!("family-{id}"),
        };
        if let Some(newer) = names.insert(name.clone(), id) {
            let why = format!("family {id} {name:?} was dropped: {newer} has its name");
            for t in &tables {
                if let Some(file) = dir.find(FileKind::Table, t.file.number) {
                    plan.lost.push((file.path.clone(), why.clone()));
                }
            }
            names.insert(name, newer);
            continue;
        }
        plan.families.push(family(dir, id, name, tables)?);
    }
    plan.families.sort_by_key(|f| f.id);
    let logs = dir.of(FileKind::Wal).count();
    if logs > 0 {
        plan.notes.push(format!(
            "the next open replays {logs} logs from their start"
        ));
    }
    Ok(plan)
}

/// A family with all its tables at level 0, the newest data first.
fn family(
    dir: &Directory,
    id: FamilyId,
    name: String,
    mut tables: Vec<Salvaged>,
) -> Result<Repaired> {
    let order = match tables.first() {
        Some(t) => t.order.clone(),
        None => KeyOrder::builtin(BYTEWISE_NAME).unwrap_or_default(),
    };
    if let Some(odd) = tables.iter().find(|t| t.order.name() != order.name()) {
        let what = format!("tables of family {name:?} have different comparators");
        return Err(Error::corruption(what).with_file(dir.path.join(odd.file.number.to_string())));
    }
    tables.sort_by_key(|t| (t.file.largest_seq, t.file.smallest_seq, t.file.number));
    let oldest_blob = tables.iter().filter_map(|t| t.file.oldest_blob_file).min();
    let mut edit = TreeEdit::default();
    for (epoch, mut table) in (1..).zip(tables) {
        table.file.epoch_number = epoch;
        edit.added
            .push((Level::L0, Arc::new(FileMeta::from(table.file))));
    }
    if let Some(oldest) = oldest_blob {
        for file in dir.of(FileKind::Blob).filter(|f| f.number >= oldest) {
            // A blob file of another family, or a damaged one: reads of its values fail.
            let Ok((count, bytes)) = crate::check::blob_counts(dir, file, id) else {
                continue;
            };
            edit.blobs.push(BlobFile {
                number: file.number,
                total_count: count,
                total_bytes: bytes,
                ..BlobFile::default()
            });
        }
    }
    let version = apply(&Version::empty(order, LEVELS), &[edit])?;
    check::verify(&version)?;
    Ok(Repaired {
        id,
        name,
        version,
        log_number: FileNo(0),
    })
}
