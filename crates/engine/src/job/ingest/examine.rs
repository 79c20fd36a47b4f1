//! A file from outside, looked at where it is: whether it can be taken in, and what it covers.

use super::UNKNOWN_FAMILY;
use crate::core::Services;
use crate::family::Family;
use crate::options::IngestOptions;
use esker_env::ReadOptions as FileReadOptions;
use esker_files::table::{ReadContext, TableReader};
use esker_format::properties::TableProperties;
use esker_format::{Cursor, InternalKey, KeyOrder, ParsedKey, Seq, ValueType};
use esker_lsm::file::compare_boundary;
use esker_status::{Error, Result};
use esker_sync::Arc;
use std::path::{Path, PathBuf};

/// A file that can be taken in.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) external: PathBuf,
    pub(crate) size: u64,
    pub(crate) smallest: InternalKey,
    pub(crate) largest: InternalKey,
    pub(crate) properties: TableProperties,
    /// Its entries keep the sequence numbers that they have: the smallest and the largest.
    pub(crate) own_seqs: Option<(Seq, Seq)>,
    /// The sequence number that is written in it.
    pub(crate) written_seq: Seq,
    /// Where that number is.
    pub(crate) seqno_offset: Option<u64>,
}

/// Opens a table that is not part of the database.
pub(crate) fn open_outside(
    services: &Services,
    family: &Family,
    path: &Path,
) -> Result<Arc<TableReader>> {
    let handle = services
        .env
        .fs
        .open_read(path, FileReadOptions::default())?;
    let size = handle.len();
    TableReader::open(handle, size, family.reading.outside())
}

/// Looks at the file at `path`.
pub(crate) fn examine(
    services: &Services,
    family: &Family,
    path: &Path,
    options: &IngestOptions,
) -> Result<Incoming> {
    look(services, family, path, options).map_err(|e| match e.file() {
        Some(_) => e,
        None => e.with_file(path),
    })
}

fn look(
    services: &Services,
    family: &Family,
    path: &Path,
    options: &IngestOptions,
) -> Result<Incoming> {
    let reader = open_outside(services, family, path)?;
    let p = reader.properties();
    let written_seq = check_version(p, options)?;
    check_origin(family, p, options)?;
    if p.num_entries == 0 && p.num_range_deletions == 0 {
        return Err(Error::invalid_argument("File contain no entries"));
    }
    if options.verify_checksums_before_ingest {
        reader.verify_with(options.verify_checksums_readahead_size)?;
    }
    let ctx = ReadContext {
        fill_cache: false,
        total_order_seek: true,
        ..ReadContext::default()
    };
    let own_seqs = if options.allow_db_generated_files {
        Some(sequences(&reader, &ctx)?)
    } else {
        if let Some(largest) = p.key_largest_seqno.filter(|s| *s > 0) {
            return Err(Error::corruption(format!(
                "External file has non zero largest sequence number {largest}"
            )));
        }
        None
    };
    let Some((smallest, largest)) = bounds(&reader, &ctx)? else {
        return Err(Error::invalid_argument("File contain no entries"));
    };
    // Where nothing is put in their place, the stored numbers show.
    if own_seqs.is_none()
        && reader.global_seq().is_none()
        && [&smallest, &largest]
            .iter()
            .any(|k| k.seq() > Seq::ZERO && !k.is_range_end_sentinel())
    {
        return Err(Error::corruption(
            "External file has non zero sequence number",
        ));
    }
    Ok(Incoming {
        external: path.to_owned(),
        size: reader.file_size(),
        smallest,
        largest,
        own_seqs,
        written_seq,
        seqno_offset: if options.write_global_seqno || written_seq > Seq::ZERO {
            reader.global_seqno_offset()?
        } else {
            None
        },
        properties: p.clone(),
    })
}

/// The version of the kind of file decides what may be done with it; returns the sequence number in
/// it.
fn check_version(p: &TableProperties, options: &IngestOptions) -> Result<Seq> {
    match p.external_sst_file_version {
        None if options.allow_db_generated_files => Ok(Seq::ZERO),
        None => Err(
            Error::corruption("External file version not found").with_hint(
                "the file was written by a database; ingest it with allow_db_generated_files",
            ),
        ),
        Some(2) => match p.external_sst_file_global_seqno {
            Some(seq) => Ok(Seq(seq)),
            None => Err(Error::corruption(
                "External file global sequence number not found",
            )),
        },
        Some(1) if options.allow_blocking_flush || options.allow_global_seqno => Err(
            Error::invalid_argument("External SST file V1 does not support global seqno"),
        ),
        Some(1) => Ok(Seq::ZERO),
        Some(v) => Err(Error::invalid_argument(format!(
            "External file version {v} is not supported"
        ))),
    }
}

/// The file must be for this family and in its order.
fn check_origin(family: &Family, p: &TableProperties, options: &IngestOptions) -> Result<()> {
    let (own, its) = (u64::from(family.id.0), p.column_family_id);
    if its != own && its != u64::from(UNKNOWN_FAMILY.0) && !options.allow_db_generated_files {
        return Err(Error::invalid_argument(
            "External file column family id don't match",
        ));
    }
    check_order(&family.order, &p.comparator_name)
}

/// The name of the order that the file is in must be that of the family's; files of old have no
/// name.
pub(crate) fn check_order(order: &KeyOrder, name: &str) -> Result<()> {
    if name.is_empty() || name == order.name() {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "Unsupported user comparator change: the file has keys in the order of {name}, the column family in that \
         of {}",
        order.name()
    )))
}

/// The smallest and the largest sequence number, as stored.
fn sequences(reader: &Arc<TableReader>, ctx: &ReadContext) -> Result<(Seq, Seq)> {
    let p = reader.properties();
    match (p.key_smallest_seqno, p.key_largest_seqno) {
        (_, Some(0)) => return Ok((Seq::ZERO, Seq::ZERO)),
        (Some(lo), Some(hi)) if lo <= hi && hi < Seq::MAX.0 => return Ok((Seq(lo), Seq(hi))),
        _ => {}
    }
    let (mut lo, mut hi) = (Seq::MAX, Seq::ZERO);
    let mut cursor = reader.cursor(ctx);
    cursor.seek_to_first();
    while cursor.valid() {
        let seq = ParsedKey::parse(cursor.key())?.seq;
        (lo, hi) = (lo.min(seq), hi.max(seq));
        cursor.next();
    }
    cursor.status()?;
    for t in reader.range_tombstones().iter() {
        (lo, hi) = (lo.min(t.seq), hi.max(t.seq));
    }
    if lo > hi || hi >= Seq::MAX {
        return Err(Error::invalid_argument(
            "Unknown largest seqno for db generated file.",
        ));
    }
    Ok((lo, hi))
}

/// Returns the range that the file covers, range deletions included; `None` when it is empty.
pub(crate) fn bounds(
    reader: &Arc<TableReader>,
    ctx: &ReadContext,
) -> Result<Option<(InternalKey, InternalKey)>> {
    let order = reader.order();
    let mut cursor = reader.cursor(ctx);
    cursor.seek_to_first();
    let mut out = None;
    if cursor.valid() {
        let first = InternalKey::from_encoded(cursor.key())?;
        cursor.seek_to_last();
        if !cursor.valid() {
            cursor.status()?;
            return Err(Error::corruption("Can not find largest key in sst file"));
        }
        out = Some((first, InternalKey::from_encoded(cursor.key())?));
    }
    cursor.status()?;
    for t in reader.range_tombstones().iter() {
        if order.compare_without_timestamp(&t.start, &t.end).is_ge() {
            continue;
        }
        let start = InternalKey::new(&t.start, t.seq, ValueType::RangeDeletion);
        let end = InternalKey::range_end_sentinel(&t.end);
        let Some((lo, hi)) = &mut out else {
            out = Some((start, end));
            continue;
        };
        if order
            .compare_internal(start.as_bytes(), lo.as_bytes())
            .is_lt()
        {
            *lo = start;
        }
        if order
            .compare_internal(end.as_bytes(), hi.as_bytes())
            .is_gt()
        {
            *hi = end;
        }
    }
    Ok(out)
}

/// Returns whether two ranges share a user key.
pub(super) fn ranges_meet(
    order: &KeyOrder,
    a: (&InternalKey, &InternalKey),
    b: (&InternalKey, &InternalKey),
) -> bool {
    compare_boundary(order, a.0.as_bytes(), b.1.as_bytes()).is_le()
        && compare_boundary(order, b.0.as_bytes(), a.1.as_bytes()).is_le()
}

/// Returns whether any two of the files overlap.
pub(super) fn overlap_each_other(family: &Family, files: &[Incoming]) -> bool {
    let order = &family.order;
    let mut sorted: Vec<_> = files.iter().map(|f| (&f.smallest, &f.largest)).collect();
    sorted.sort_by(|a, b| order.compare_internal(a.0.as_bytes(), b.0.as_bytes()));
    sorted.windows(2).any(|w| ranges_meet(order, w[0], w[1]))
}
