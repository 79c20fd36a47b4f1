//! Checks of tables: each byte of a file, and the file against what the MANIFEST says about it.
//!
//! Blocks are read one by one, so that a damaged block hides only its own entries.

use super::report::{Report, Totals};
use crate::directory::{Directory, FileAt};
use crate::fold::{Family, Fold};
use crate::sst::{as_stored, kind_name, open};
use esker_env::{FileSystem, ReadOptions};
use esker_files::blob::BlobFileReader;
use esker_files::table::{BlockKind, LookupKey, ReadContext, TableReader, TableReaderOptions};
use esker_format::blob::BlobIndex;
use esker_format::blob_refs::{self, BlobRefs};
use esker_format::block::{Block, BlockCursor};
use esker_format::edit::NewFile;
use esker_format::file_name::{FileKind, table_name};
use esker_format::{FileNo, KeyOrder, Level, ParsedKey, Seq, ValueType, wide_column};
use esker_status::{Error, Result};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Problems of one kind in one table that are told one by one.
const TOLD: u64 = 10;

/// A table of the MANIFEST.
pub(super) struct Job<'a> {
    pub(super) dir: &'a Directory,
    pub(super) fold: &'a Fold,
    pub(super) family: &'a Family,
    pub(super) level: Level,
    pub(super) meta: &'a NewFile,
    /// References of the tables of the family to blob files.
    pub(super) refs: &'a Mutex<BlobRefs>,
}

/// Checks a table that the MANIFEST names.
pub(super) fn check(job: &Job<'_>, report: &Report) {
    let Some(file) = job.dir.find(FileKind::Table, job.meta.number) else {
        let path = job.dir.path.join(table_name(job.meta.number));
        let what = format!("table of family {:?} is missing", job.family.name);
        return report.error(Error::corruption(what).with_file(path));
    };
    if let Err(e) = check_file(job, file, report) {
        report.error(e.with_file(&file.path));
    }
}

fn check_file(job: &Job<'_>, file: &FileAt, report: &Report) -> Result<()> {
    let handle = job.dir.fs.open_read(&file.path, ReadOptions::default())?;
    let len = handle.len();
    if len != job.meta.size {
        let what = format!(
            "the file has {len} bytes, but {} in the MANIFEST",
            job.meta.size
        );
        report.error(Error::corruption(what).with_file(&file.path));
    }
    let order = job
        .family
        .order()
        .unwrap_or_else(|| as_stored(&job.family.comparator));
    let options = TableReaderOptions {
        order,
        file_no: job.meta.number,
        level: job.level,
        largest_seq: Some(job.meta.largest_seq),
        ..TableReaderOptions::default()
    };
    let table = TableReader::open(handle, len, options)?;
    against_manifest(job, &table, &file.path, report);
    let mut walk = Walk::new(&table, &file.path, report, Some(job));
    walk.run()?;
    walk.finish();
    report.add(Totals {
        tables: 1,
        table_bytes: len,
        ..Totals::default()
    });
    Ok(())
}

/// Checks a table of which nothing is known.
pub(super) fn check_alone(file: &FileAt, report: &Report) {
    let outcome = open(&file.path, file.number).and_then(|table| {
        let mut walk = Walk::new(&table, &file.path, report, None);
        walk.run()?;
        walk.finish();
        report.add(Totals {
            tables: 1,
            table_bytes: file.len,
            ..Totals::default()
        });
        Ok(())
    });
    if let Err(e) = outcome {
        report.error(e.with_file(&file.path));
    }
}

fn against_manifest(job: &Job<'_>, table: &TableReader, path: &Path, report: &Report) {
    let wrong = |what: String| report.error(Error::corruption(what).with_file(path));
    let p = table.properties();
    if let (Some(named), Some(own)) = (job.meta.unique_id, p.unique_id())
        && named != own.0
    {
        wrong(format!(
            "unique id {own} is not the MANIFEST's {{{},{}}}",
            named[0], named[1]
        ));
    }
    if !p.comparator_name.is_empty() && p.comparator_name != job.family.comparator {
        wrong(format!(
            "comparator {:?} is not the family's {:?}",
            p.comparator_name, job.family.comparator
        ));
    }
    let ingested = p.external_sst_file_version.is_some();
    let unknown = i32::MAX as u64;
    if !ingested
        && p.column_family_id != unknown
        && p.column_family_id != u64::from(job.family.id.0)
    {
        let what = format!(
            "written for family {}, listed under family {}",
            p.column_family_id, job.family.id
        );
        // Importing a family keeps its files as they are.
        report.warning(Error::corruption(what).with_file(path));
    }
    if job.meta.tail_size > 0 && p.tail_start_offset > 0 {
        let tail = table.file_size().saturating_sub(p.tail_start_offset);
        if tail != job.meta.tail_size {
            wrong(format!(
                "tail of {tail} bytes, but {} in the MANIFEST",
                job.meta.tail_size
            ));
        }
    }
}

/// Counts made while walking.
#[derive(Default)]
struct Counts {
    blocks: u64,
    data_blocks: u64,
    entries: u64,
    deletions: u64,
    merges: u64,
    raw_key: u64,
    raw_value: u64,
}

/// A walk over all blocks and entries of a table.
struct Walk<'a> {
    table: &'a Arc<TableReader>,
    path: &'a Path,
    report: &'a Report,
    job: Option<&'a Job<'a>>,
    ordered: bool,
    counts: Counts,
    damaged: bool,
    last: Vec<u8>,
    told: HashMap<&'static str, u64>,
    blobs: HashMap<FileNo, Option<BlobFileReader>>,
    refs: BlobRefs,
    scratch: Vec<u8>,
}

impl<'a> Walk<'a> {
    fn new(
        table: &'a Arc<TableReader>,
        path: &'a Path,
        report: &'a Report,
        job: Option<&'a Job<'a>>,
    ) -> Walk<'a> {
        Walk {
            table,
            path,
            report,
            job,
            ordered: !matches!(table.order(), KeyOrder::Custom(_)),
            counts: Counts::default(),
            damaged: false,
            last: Vec::new(),
            told: HashMap::new(),
            blobs: HashMap::new(),
            refs: BlobRefs::default(),
            scratch: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<()> {
        if !self.ordered {
            let name = self.table.order().name().to_owned();
            let e = Error::not_supported(format!(
                "comparator {name:?} is not built in: order not checked"
            ));
            self.report.warning(e.with_file(self.path));
        }
        for (kind, handle) in self.table.block_handles()? {
            let is_data = kind == BlockKind::Data;
            let name = kind_name(&kind);
            match self.table.read_block(kind, handle, true) {
                Ok((_, bytes)) => {
                    self.counts.blocks += 1;
                    self.counts.data_blocks += u64::from(is_data);
                    if is_data && let Err(e) = self.entries(bytes, handle.offset) {
                        self.damaged = true;
                        self.report
                            .error(e.with_file(self.path).with_offset(handle.offset));
                    }
                }
                Err(e) => {
                    self.damaged = true;
                    let text = format!("{name} block: {}", e.message());
                    let e = Error::new(e.kind(), text).with_offset(handle.offset);
                    self.report.error(e.with_file(self.path));
                }
            }
        }
        self.tombstones();
        Ok(())
    }

    /// Tells a problem of a kind, unless many of the kind were told.
    fn wrong(&mut self, kind: &'static str, offset: u64, what: impl FnOnce() -> String) {
        let told = self.told.entry(kind).or_default();
        *told += 1;
        if *told <= TOLD {
            let e = Error::corruption(what())
                .with_file(self.path)
                .with_offset(offset);
            self.report.error(e);
        }
    }

    fn entries(&mut self, bytes: Vec<u8>, offset: u64) -> Result<()> {
        let block = Block::parse_data(bytes)?;
        let mut cursor = BlockCursor::new(&block, self.table.order().clone())
            .with_global_seq(self.table.global_seq());
        cursor.seek_to_first();
        while cursor.valid() {
            self.entry(cursor.key(), cursor.value(), offset)?;
            cursor.next();
        }
        cursor.status()
    }

    fn entry(&mut self, internal: &[u8], value: &[u8], offset: u64) -> Result<()> {
        let key = ParsedKey::parse(internal)?;
        let order = self.table.order().clone();
        self.counts.entries += 1;
        self.counts.raw_key += internal.len() as u64;
        self.counts.raw_value += value.len() as u64;
        match key.kind {
            ValueType::Deletion | ValueType::SingleDeletion | ValueType::DeletionWithTimestamp => {
                self.counts.deletions += 1;
            }
            ValueType::Merge => self.counts.merges += 1,
            ValueType::BlobIndex => self.blob(key, value, offset),
            ValueType::WideColumnEntity => self.entity(key, value, offset),
            ValueType::RangeDeletion => {
                self.wrong("kind", offset, || {
                    format!("range deletion {key:?} among data")
                });
            }
            _ => {}
        }
        if self.ordered {
            if !self.last.is_empty() && order.compare_internal(&self.last, internal).is_ge() {
                self.wrong("order", offset, || format!("key {key:?} is out of order"));
            }
            self.bounds(internal, key, offset);
            let lookup = LookupKey::new(internal, order.timestamp_size());
            let context = ReadContext {
                fill_cache: false,
                ..ReadContext::default()
            };
            match self.table.may_contain(&context, &lookup) {
                Ok(true) => {}
                Ok(false) => self.wrong("filter", offset, || {
                    format!("the filter denies key {key:?}")
                }),
                Err(e) => self.wrong("filter", offset, || format!("filter: {}", e.message())),
            }
        }
        self.seq(key.seq, offset);
        self.last.clear();
        self.last.extend_from_slice(internal);
        Ok(())
    }

    fn bounds(&mut self, internal: &[u8], key: ParsedKey<'_>, offset: u64) {
        let Some(job) = self.job else { return };
        let order = self.table.order();
        let low = order
            .compare_internal(internal, job.meta.smallest.as_bytes())
            .is_lt();
        let high = order
            .compare_internal(internal, job.meta.largest.as_bytes())
            .is_gt();
        if low || high {
            let (lo, hi) = (&job.meta.smallest, &job.meta.largest);
            self.wrong("bounds", offset, || {
                format!("key {key:?} is outside of the MANIFEST's bounds {lo:?} .. {hi:?}")
            });
        }
    }

    fn seq(&mut self, seq: Seq, offset: u64) {
        let Some(job) = self.job else { return };
        let (lo, hi) = (job.meta.smallest_seq, job.meta.largest_seq);
        if seq < lo || seq > hi {
            self.wrong("sequence", offset, || {
                format!("sequence {seq} is outside of the MANIFEST's {lo}..{hi}")
            });
        }
    }

    fn tombstones(&mut self) {
        let tombstones = self.table.range_tombstones().clone();
        for t in tombstones.iter() {
            if self.ordered && self.table.order().compare(&t.start, &t.end).is_gt() {
                self.wrong("tombstone", 0, || {
                    format!(
                        "range deletion ends before it starts: {}",
                        t.start.escape_ascii()
                    )
                });
            }
            self.seq(t.seq, 0);
        }
    }

    /// Reads the values of an entity that are in blob files.
    fn entity(&mut self, key: ParsedKey<'_>, value: &[u8], offset: u64) {
        let mut indexes = Vec::new();
        let noted = wide_column::blob_indexes(value, |index| {
            indexes.push(index.to_vec());
            Ok(())
        });
        if let Err(e) = noted {
            self.wrong("entity", offset, || format!("{key:?}: {}", e.message()));
        }
        for index in indexes {
            self.blob(key, &index, offset);
        }
    }

    /// Reads the value that a blob index names and compares the record with it.
    fn blob(&mut self, key: ParsedKey<'_>, value: &[u8], offset: u64) {
        let Some(job) = self.job else { return };
        let index = match BlobIndex::decode(value) {
            Ok(index) => index,
            Err(e) => return self.wrong("blob", offset, || format!("{key:?}: {}", e.message())),
        };
        let Some(number) = index.file() else { return };
        self.refs.add(key.user.len(), &index);
        let reader = self.blobs.entry(number).or_insert_with(|| {
            let file = job.dir.find(FileKind::Blob, number)?;
            BlobFileReader::open(&job.dir.fs, &file.path, number, job.family.id).ok()
        });
        let Some(reader) = reader else {
            let what =
                || format!("{key:?} names blob file {number}, which is missing or unreadable");
            return self.wrong("blob", offset, what);
        };
        if let Err(e) = reader.get(key.user, &index, true, &mut self.scratch) {
            self.wrong("blob", offset, || format!("value of {key:?}: {e}"));
        }
    }

    /// Compares what was counted with the properties.
    fn compare_counts(&self, ranges: u64) {
        let (p, c) = (self.table.properties(), &self.counts);
        let tombstones = self.table.range_tombstones().iter();
        let (starts, ends) = tombstones.fold((0, 0), |(starts, ends), t| {
            (starts + t.start.len() as u64 + 8, ends + t.end.len() as u64)
        });
        for (name, said, found) in [
            ("num.entries", p.num_entries, c.entries + ranges),
            ("deleted.keys", p.num_deletions, c.deletions + ranges),
            ("merge.operands", p.num_merge_operands, c.merges),
            ("num.range-deletions", p.num_range_deletions, ranges),
            ("num.data.blocks", p.num_data_blocks, c.data_blocks),
            ("raw.key.size", p.raw_key_size, c.raw_key + starts),
            ("raw.value.size", p.raw_value_size, c.raw_value + ends),
        ] {
            // RocksDB 11 counts no block that it held back for a dictionary.
            let held_back =
                name == "num.data.blocks" && said < found && self.table.has_dictionary();
            if said == found || held_back {
                continue;
            }
            let what = format!("the property {name} is {said}, but the table has {found}");
            let e = Error::corruption(what).with_file(self.path);
            // Writers vouch for their counts from this version on.
            if p.format_version >= 5 {
                self.report.error(e);
            } else {
                self.report.warning(e);
            }
        }
    }

    /// Compares the references that were counted with those that the table says it has.
    fn compare_refs(&self, wrong: &mut Vec<String>) {
        let said = &self.table.properties().user_collected;
        let Some(said) = said.get(blob_refs::PROPERTY.as_bytes()) else {
            return;
        };
        match BlobRefs::decode(said) {
            Ok(said) if said == self.refs => {}
            Ok(said) => wrong.push(format!(
                "the property {} is {said:?}, but the table has {:?}",
                blob_refs::PROPERTY,
                self.refs
            )),
            Err(e) => wrong.push(e.message().to_owned()),
        }
    }

    /// Compares what was counted with what the table and the MANIFEST say.
    fn finish(&mut self) {
        let p = self.table.properties();
        let ranges = self.table.range_tombstones().len() as u64;
        let c = &self.counts;
        self.report.add(Totals {
            blocks: c.blocks,
            entries: c.entries + ranges,
            ..Totals::default()
        });
        let mut wrong: Vec<String> = Vec::new();
        if !self.damaged {
            self.compare_counts(ranges);
            if self.job.is_some() {
                self.compare_refs(&mut wrong);
            }
        }
        if let Some(job) = self.job {
            let mut all = job.refs.lock().unwrap_or_else(PoisonError::into_inner);
            all.add_all(&self.refs);
        }
        if let Some(job) = self.job
            && !self.damaged
            && let Some(oldest) = self.refs.oldest()
            && job.meta.oldest_blob_file != Some(oldest)
        {
            let said = job.meta.oldest_blob_file.map_or(0, |n| n.0);
            wrong.push(format!(
                "oldest blob file is {oldest}, but {said} in the MANIFEST"
            ));
        }
        if let Some(job) = self.job
            && let Some(last) = job.fold.last_sequence
            && p.key_largest_seqno.is_some_and(|s| s > last.0)
        {
            wrong.push("holds sequences above the last one of the MANIFEST".to_owned());
        }
        for what in wrong {
            self.report
                .error(Error::corruption(what).with_file(self.path));
        }
        for (kind, n) in self.told.iter().filter(|(_, n)| **n > TOLD) {
            let what = format!("{} more problems of this kind ({kind})", n - TOLD);
            self.report
                .error(Error::corruption(what).with_file(self.path));
        }
    }
}
