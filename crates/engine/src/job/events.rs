//! Reports of jobs: to listeners, and as lines of events in the LOG that tools for RocksDB's LOG
//! files read.
//!
//! Called by the thread that does the work, without any lock of the engine held.

use super::output::{Placement, compression_for};
use crate::core::{Services, Trees};
use crate::family::Family;
use crate::family::backpressure::admission::Admission;
use crate::memtable::MemTable;
use crate::observe::{
    BlobFileCreation, BlobFileDeletion, BlobFileShare, CompactionFigures, CompactionFile,
    CompactionInfo, CompactionReason, EventLine, FlushInfo, FlushReason, PendingEvent,
    SubcompactionInfo, TableFileCreation, TableFileReason, Ticker,
};
use crate::options::CompressionType;
use crate::runtime::callback::{Callback, CallbackEvent};
use esker_format::blob_refs::{BlobCounts, BlobRefs};
use esker_format::properties::TableProperties;
use esker_format::{FileNo, Level, Seq};
use esker_lsm::compaction_stream::StreamCounters;
use esker_lsm::file::FileMeta;
use esker_lsm::plan::{self, Plan};
use esker_lsm::version::BlobFile;
use esker_status::Error;
use esker_sync::Arc;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

impl Services {
    /// A line of an event, stamped with the time.
    fn event(&self, name: &str, job: u64) -> EventLine {
        EventLine::new(name, job, self.env.clock.unix_us())
    }

    fn log_event(&self, line: EventLine) {
        self.info_log.info(format_args!("{}", line.finish()));
    }

    /// Tells what was noticed under a lock.
    pub(crate) fn tell_pending(&self) {
        let events = self.pending.take();
        if events.is_empty() {
            return;
        }
        let options = self.options.load();
        for event in events {
            if let PendingEvent::Error(info) = &event {
                let state = self.health.state();
                self.info_log.error(format_args!(
                    "background error ({}): {}; the database is now {state:?}",
                    info.reason.text(),
                    info.error
                ));
            }
            for listener in &options.listeners {
                event.tell(&**listener);
            }
        }
    }

    /// A flush of `mems` begins.
    pub(crate) fn flush_begins(&self, family: &Family, job: u64, mems: &[Arc<MemTable>]) {
        let oldest = mems.last().map_or(0, |m| m.id());
        let _inside = Callback::enter(CallbackEvent::Flush(family.id, oldest));
        self.tell_pending();
        let sum = |f: fn(&MemTable) -> u64| mems.iter().map(|m| f(m)).sum::<u64>();
        let reason = flush_reason(mems);
        self.log_event(
            self.event("flush_started", job)
                .text("cf_name", &family.name)
                .number("num_memtables", mems.len() as u64)
                .number("total_num_input_entries", sum(MemTable::entries))
                .number("num_deletes", sum(MemTable::deletions))
                .number("total_data_size", sum(MemTable::data_bytes))
                .number("memory_usage", sum(|m| m.memory_usage() as u64))
                .text("flush_reason", reason.text()),
        );
        let counted = match reason {
            FlushReason::WriteBufferFull => Some(Ticker::FlushReasonWriteBufferFull),
            FlushReason::WriteBufferManager => Some(Ticker::FlushReasonWriteBufferManager),
            FlushReason::TooManyRangeDeletions => {
                Some(Ticker::FlushReasonMemtableMaxRangeDeletions)
            }
            _ => None,
        };
        if let (Some(s), Some(ticker)) = (&self.statistics, counted) {
            s.add(ticker, 1);
        }
        let listeners = &self.options.load().listeners;
        if listeners.is_empty() {
            return;
        }
        let info = self.flush_info(family, job, mems);
        listeners.iter().for_each(|l| l.on_flush_begin(&info));
    }

    fn flush_info(&self, family: &Family, job: u64, mems: &[Arc<MemTable>]) -> FlushInfo {
        FlushInfo {
            database: self.lent(),
            family: family.name.clone(),
            family_id: family.id.0,
            job,
            reason: flush_reason(mems),
            memtables: mems.len(),
            file: None,
            file_no: None,
            file_bytes: 0,
            entries: mems.iter().map(|m| m.entries()).sum(),
            smallest_seq: Seq::ZERO,
            largest_seq: Seq::ZERO,
            triggered_slowdown: false,
            triggered_stop: false,
            elapsed_us: 0,
            oldest_blob_file: None,
            properties: None,
            blob_files: Vec::new(),
            blob_compression: family.options.load().blob_compression_type,
        }
    }

    /// A table was written, or could not be.
    pub(crate) fn table_made(
        &self,
        family: &Family,
        job: u64,
        reason: TableFileReason,
        (number, path): (FileNo, &Path),
        made: Result<&FileMeta, &Error>,
    ) {
        let (bytes, entries) = made.map_or((0, 0), |f| {
            (f.size, f.stats.get().map_or(0, |s| s.num_entries))
        });
        let line = self
            .event("table_file_creation", job)
            .text("cf_name", &family.name)
            .number("file_number", number.0)
            .number("file_size", bytes)
            .number("num_entries", entries)
            .text("reason", reason.text());
        self.log_event(match made {
            Ok(_) => line.text("status", "OK"),
            Err(e) => line.text("status", &e.to_string()),
        });
        let _inside = Callback::enter(CallbackEvent::Other);
        for listener in &self.options.load().listeners {
            listener.on_table_file_created(&TableFileCreation {
                family: family.name.clone(),
                job,
                reason,
                file: path.to_path_buf(),
                file_no: number,
                file_bytes: bytes,
                entries,
                error: made.err().cloned(),
            });
        }
    }

    /// A table was deleted.
    pub(crate) fn table_deleted(&self, number: FileNo) {
        self.log_event(
            self.event("table_file_deletion", 0)
                .number("file_number", number.0),
        );
    }

    /// A blob file was written, or could not be.
    pub(crate) fn blob_file_made(
        &self,
        family: &Family,
        job: u64,
        reason: TableFileReason,
        (number, path): (FileNo, &Path),
        made: Result<&BlobFile, &Error>,
    ) {
        let (blobs, blob_bytes) = made.map_or((0, 0), |b| (b.total_count, b.total_bytes));
        let line = self
            .event("blob_file_creation", job)
            .text("cf_name", &family.name)
            .number("file_number", number.0)
            .number("total_blob_count", blobs)
            .number("total_blob_bytes", blob_bytes);
        self.log_event(match made {
            Ok(_) => line.text("status", "OK"),
            Err(e) => line.text("status", &e.to_string()),
        });
        let _inside = Callback::enter(CallbackEvent::Other);
        for listener in &self.options.load().listeners {
            listener.on_blob_file_created(&BlobFileCreation {
                family: family.name.clone(),
                job,
                reason,
                file: path.to_path_buf(),
                file_no: number,
                blobs,
                blob_bytes,
                error: made.err().cloned(),
            });
        }
    }

    /// A blob file was deleted, or could not be.
    pub(crate) fn blob_file_deleted(&self, number: FileNo, path: &Path, error: Option<&Error>) {
        let line = self.event("blob_file_deletion", 0);
        let line = line.number("file_number", number.0);
        self.log_event(match error {
            None => line.text("status", "OK"),
            Some(e) => line.text("status", &e.to_string()),
        });
        for listener in &self.options.load().listeners {
            listener.on_blob_file_deleted(&BlobFileDeletion {
                job: 0,
                file: path.to_path_buf(),
                file_no: number,
                error: error.cloned(),
            });
        }
    }

    /// Files from outside became part of the tree.
    pub(crate) fn ingest_ended(
        &self,
        family: &Family,
        job: u64,
        files: impl Iterator<Item = (FileNo, Level)>,
    ) {
        let files: Vec<_> = files.collect();
        self.log_event(
            self.event("ingest_finished", job)
                .text("cf_name", &family.name)
                .numbers("files_ingested", files.iter().map(|(n, _)| n.0))
                .numbers("levels", files.iter().map(|(_, l)| u64::from(l.0)))
                .numbers("lsm_state", lsm_state(family)),
        );
        self.tell_pending();
    }
}

impl Trees {
    /// A flush is part of the tree.
    pub(crate) fn flush_ended(
        &self,
        admission: &Admission,
        family: &Family,
        job: u64,
        mems: &[Arc<MemTable>],
        (files, blobs): (&[Arc<FileMeta>], &[BlobFile]),
        elapsed_us: u64,
    ) {
        self.services.log_event(
            self.services
                .event("flush_finished", job)
                .text("cf_name", &family.name)
                .numbers("lsm_state", lsm_state(family))
                .number(
                    "immutable_memtables",
                    family.view_guard().immutable.len() as u64,
                ),
        );
        self.services.tell_pending();
        let listeners = &self.services.options.load().listeners;
        if listeners.is_empty() {
            return;
        }
        let file = files.first();
        let (slowed, stopped) = admission.slowed_and_stopped(family);
        let info = FlushInfo {
            file: file.map(|f| family.reading.paths.of(f)),
            file_no: file.map(|f| f.number),
            file_bytes: files.iter().map(|f| f.size).sum(),
            smallest_seq: files
                .iter()
                .map(|f| f.smallest_seq)
                .min()
                .unwrap_or(Seq::ZERO),
            largest_seq: files
                .iter()
                .map(|f| f.largest_seq)
                .max()
                .unwrap_or(Seq::ZERO),
            triggered_slowdown: slowed,
            triggered_stop: stopped,
            elapsed_us,
            oldest_blob_file: files.iter().filter_map(|f| f.oldest_blob_file).min(),
            properties: file.and_then(|f| self.properties_of(family, f, Level::L0)),
            blob_files: blobs.iter().map(|b| share_of(family, b)).collect(),
            ..self.services.flush_info(family, job, mems)
        };
        listeners.iter().for_each(|l| l.on_flush_completed(&info));
    }

    /// Returns the properties of a table; `None` when it cannot be opened.
    fn properties_of(
        &self,
        family: &Family,
        file: &FileMeta,
        level: Level,
    ) -> Option<Arc<TableProperties>> {
        let table = self.tables.get(file, level, &family.reading).ok()?;
        Some(Arc::new(table.reader.properties().clone()))
    }

    /// A compaction begins.
    pub(crate) fn compaction_begins(&self, family: &Family, job: u64, plan: &Plan) {
        let _inside = Callback::enter(CallbackEvent::Other);
        self.services.tell_pending();
        let mut line = self
            .services
            .event("compaction_started", job)
            .text("cf_name", &family.name)
            .text("compaction_reason", compaction_reason(plan).text());
        for inputs in &plan.inputs {
            let name = format!("files_L{}", inputs.level);
            line = line.numbers(&name, inputs.files.iter().map(|f| f.number.0));
        }
        self.services
            .log_event(line.number("input_data_size", plan.input_bytes()));
        let listeners = &self.services.options.load().listeners;
        if listeners.is_empty() {
            return;
        }
        let info = self.compaction_info(family, job, plan);
        listeners.iter().for_each(|l| l.on_compaction_begin(&info));
    }

    /// A compaction ended: its outputs are part of the tree, or there was an error.
    pub(crate) fn compaction_ended(
        &self,
        family: &Family,
        job: u64,
        plan: &Plan,
        did: &CompactionResult,
    ) {
        let mut line = self
            .services
            .event("compaction_finished", job)
            .text("cf_name", &family.name)
            .number("compaction_time_micros", did.elapsed_us)
            .number("output_level", u64::from(plan.output_level.0))
            .number("num_output_files", did.output_files.len() as u64)
            .number("total_output_size", did.output_bytes)
            .number("num_blob_output_files", did.blob_files.len() as u64)
            .number("total_blob_output_size", did.blob_bytes())
            .number("num_input_records", did.input_entries)
            .number("num_output_records", did.output_entries)
            .number("num_subcompactions", did.parts as u64)
            .numbers("lsm_state", lsm_state(family));
        if let Some(e) = &did.error {
            line = line.text("status", &e.to_string());
        }
        self.services.log_event(line);
        self.services.tell_pending();
        let listeners = &self.services.options.load().listeners;
        if listeners.is_empty() {
            return;
        }
        let info = self.compaction_done(family, job, plan, did);
        listeners
            .iter()
            .for_each(|l| l.on_compaction_completed(&info));
    }

    /// Returns the report of a compaction that ended.
    pub(crate) fn compaction_done(
        &self,
        family: &Family,
        job: u64,
        plan: &Plan,
        did: &CompactionResult,
    ) -> CompactionInfo {
        let mut info = CompactionInfo {
            output_files: did.output_files.iter().map(|f| f.number).collect(),
            outputs: files_at(did.output_files.iter().map(|f| (plan.output_level, f))),
            figures: did.figures,
            output_bytes: did.output_bytes,
            input_entries: did.input_entries,
            output_entries: did.output_entries,
            subcompactions: did.parts,
            elapsed_us: did.elapsed_us,
            error: did.error.clone(),
            blob_files: did.blob_files.iter().map(|b| share_of(family, b)).collect(),
            blob_garbage: garbage_of(family, &did.blob_garbage),
            ..self.compaction_info(family, job, plan)
        };
        // Everything there is now are its outputs.
        info.is_full = family.view_guard().version.files().count() <= did.output_files.len();
        for file in &did.output_files {
            info.paths.extend([place_of(family, file)]);
            let properties = self.properties_of(family, file, plan.output_level);
            info.properties.extend(properties.map(|p| (file.number, p)));
        }
        info
    }
}

/// Result of a compaction.
#[derive(Default)]
pub(crate) struct CompactionResult {
    pub(crate) output_files: Vec<Arc<FileMeta>>,
    pub(crate) output_bytes: u64,
    pub(crate) input_entries: u64,
    pub(crate) output_entries: u64,
    pub(crate) parts: usize,
    pub(crate) elapsed_us: u64,
    pub(crate) figures: CompactionFigures,
    /// The blob files that were written.
    pub(crate) blob_files: Vec<BlobFile>,
    /// Values in blob files that nothing refers to any more.
    pub(crate) blob_garbage: BlobRefs,
    pub(crate) error: Option<Error>,
}

impl CompactionResult {
    /// Bytes of the records of blob files that were written.
    pub(crate) fn blob_bytes(&self) -> u64 {
        self.blob_files.iter().map(|b| b.total_bytes).sum()
    }
}

/// The values of a new blob file, as they are told.
fn share_of(family: &Family, blob: &BlobFile) -> BlobFileShare {
    BlobFileShare {
        file: family.reading.paths.blob(blob.number),
        file_no: blob.number,
        blobs: blob.total_count,
        blob_bytes: blob.total_bytes,
    }
}

/// Garbage by blob file, as it is told.
fn garbage_of(family: &Family, garbage: &BlobRefs) -> Vec<BlobFileShare> {
    let share = |(file_no, amount): (FileNo, BlobCounts)| BlobFileShare {
        file: family.reading.paths.blob(file_no),
        file_no,
        blobs: amount.count,
        blob_bytes: amount.bytes,
    };
    garbage.iter().map(share).collect()
}

/// Where a table is.
fn place_of(family: &Family, file: &FileMeta) -> (FileNo, PathBuf) {
    (file.number, family.reading.paths.of(file))
}

fn files_at<'f>(files: impl Iterator<Item = (Level, &'f Arc<FileMeta>)>) -> Vec<CompactionFile> {
    files
        .map(|(level, f)| CompactionFile {
            level,
            file_no: f.number,
            oldest_blob_file: f.oldest_blob_file,
        })
        .collect()
}

/// The figures of a job for its listeners.
pub(super) fn figures(c: &StreamCounters, cpu_us: u64) -> CompactionFigures {
    CompactionFigures {
        cpu_us,
        input_entries: c.num_itered,
        output_entries: c.num_output_records,
        input_deletions: c.num_input_deletion_records,
        replaced_entries: c.num_record_drop_hidden,
        expired_deletions: c.num_record_drop_obsolete,
        input_key_bytes: c.total_input_raw_key_bytes,
        input_value_bytes: c.total_input_raw_value_bytes,
        corrupt_entries: c.num_input_corrupt_records,
        single_deletions_fallen_through: c.num_single_del_fallthru,
        single_deletions_mismatched: c.num_single_del_mismatch,
        blobs_read: c.num_blobs_read,
        blob_bytes_read: c.total_blob_bytes_read,
    }
}

/// A key range of a compaction, as it is told.
pub(super) struct SubcompactionEvent<'a> {
    pub(super) family: &'a Family,
    pub(super) plan: &'a Plan,
    pub(super) job: u64,
    pub(super) part: usize,
    pub(super) compression: CompressionType,
}

impl Services {
    /// A key range begins.
    pub(super) fn part_begins(&self, told: &SubcompactionEvent<'_>) {
        let listeners = &self.options.load().listeners;
        if listeners.is_empty() {
            return;
        }
        let _inside = Callback::enter(CallbackEvent::Other);
        let info = told.info(CompactionFigures::default(), None);
        listeners
            .iter()
            .for_each(|l| l.on_subcompaction_begin(&info));
    }

    /// A key range was written, or could not be.
    pub(super) fn part_ended(
        &self,
        told: &SubcompactionEvent<'_>,
        did: Result<&StreamCounters, &Error>,
    ) {
        let listeners = &self.options.load().listeners;
        if listeners.is_empty() {
            return;
        }
        let _inside = Callback::enter(CallbackEvent::Other);
        let counted = did.map_or_else(|_| CompactionFigures::default(), |c| figures(c, 0));
        let info = told.info(counted, did.err().cloned());
        listeners
            .iter()
            .for_each(|l| l.on_subcompaction_completed(&info));
    }
}

impl SubcompactionEvent<'_> {
    fn info(&self, figures: CompactionFigures, error: Option<Error>) -> SubcompactionInfo {
        SubcompactionInfo {
            family: self.family.name.clone(),
            family_id: self.family.id.0,
            job: self.job,
            part: self.part,
            reason: compaction_reason(self.plan),
            base_input_level: self.plan.start_level(),
            output_level: self.plan.output_level,
            compression: self.compression,
            blob_compression: self.family.options.load().blob_compression_type,
            error,
            figures,
        }
    }
}

/// The codec of what a plan writes.
pub(super) fn output_compression(family: &Family, plan: &Plan) -> CompressionType {
    let options = family.options.load();
    let version = Arc::clone(&family.view_guard().version);
    compression_for(&options, Placement::of(plan, &options, &version)).0
}

impl Trees {
    fn compaction_info(&self, family: &Family, job: u64, plan: &Plan) -> CompactionInfo {
        let version = Arc::clone(&family.view_guard().version);
        let read = |(level, f): (Level, &Arc<FileMeta>)| {
            Some((f.number, self.properties_of(family, f, level)?))
        };
        CompactionInfo {
            database: self.services.lent(),
            family: family.name.clone(),
            family_id: family.id.0,
            job,
            reason: compaction_reason(plan),
            base_input_level: plan.start_level(),
            output_level: plan.output_level,
            input_files: plan.files().map(|(_, f)| f.number).collect(),
            output_files: Vec::new(),
            input_bytes: plan.input_bytes(),
            output_bytes: 0,
            input_entries: 0,
            output_entries: 0,
            is_trivial_move: plan.edit_without_job().is_some(),
            is_manual: plan.manual,
            subcompactions: 0,
            elapsed_us: 0,
            error: None,
            inputs: files_at(plan.files()),
            outputs: Vec::new(),
            paths: plan.files().map(|(_, f)| place_of(family, f)).collect(),
            properties: plan.files().filter_map(read).collect::<BTreeMap<_, _>>(),
            compression: output_compression(family, plan),
            level0_files: version.level(Level::L0).len(),
            blob_files: Vec::new(),
            blob_garbage: Vec::new(),
            blob_compression: family.options.load().blob_compression_type,
            is_full: plan.files().count() >= version.files().count(),
            figures: CompactionFigures::default(),
        }
    }
}

/// Why the memtables are flushed: what sealed the oldest.
pub(crate) fn flush_reason(mems: &[Arc<MemTable>]) -> FlushReason {
    mems.last()
        .and_then(|m| m.sealed_for())
        .unwrap_or(FlushReason::Recovery)
}

fn compaction_reason(plan: &Plan) -> CompactionReason {
    use plan::CompactionReason as Why;
    if plan.manual {
        return CompactionReason::ManualCompaction;
    }
    match plan.reason {
        Why::Unknown => CompactionReason::Unknown,
        Why::LevelL0FilesNum => CompactionReason::LevelL0FilesNum,
        Why::LevelMaxLevelSize => CompactionReason::LevelMaxLevelSize,
        Why::UniversalSizeAmplification => CompactionReason::UniversalSizeAmplification,
        Why::UniversalSizeRatio => CompactionReason::UniversalSizeRatio,
        Why::UniversalSortedRunNum => CompactionReason::UniversalSortedRunNum,
        Why::FifoMaxSize => CompactionReason::FifoMaxSize,
        Why::FifoReduceNumFiles => CompactionReason::FifoReduceNumFiles,
        Why::FifoTtl => CompactionReason::FifoTtl,
        Why::ManualCompaction => CompactionReason::ManualCompaction,
        Why::FilesMarkedForCompaction => CompactionReason::FilesMarkedForCompaction,
        Why::BottommostFiles => CompactionReason::BottommostFiles,
        Why::Ttl => CompactionReason::Ttl,
        Why::ExternalSstIngestion => CompactionReason::ExternalSstIngestion,
        Why::PeriodicCompaction => CompactionReason::PeriodicCompaction,
        Why::RoundRobinTtl => CompactionReason::RoundRobinTtl,
        Why::ForcedBlobGarbageCollection => CompactionReason::ForcedBlobGc,
        Why::ReadTriggered => CompactionReason::ReadTriggered,
        Why::Flush | Why::ChangeTemperature | Why::RefitLevel => CompactionReason::Unknown,
    }
}

/// How many tables each level has.
fn lsm_state(family: &Family) -> Vec<u64> {
    let version = &family.view_guard().version;
    (0..version.num_levels())
        .map(|l| version.level(Level(l as u8)).len() as u64)
        .collect()
}
