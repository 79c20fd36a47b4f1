//! Events that listeners are told of: each is an object that is lent for the duration of the call.
//!
//! A figure that Esker does not measure reads as 0 or as nothing, as in RocksDB before a job has
//! ended.

use crate::boundary::{attempt, bytes, callbacks, destroy, give, quiet, shared};
use crate::lent::{
    Text, lend_listed_texts, lend_members, lend_objects, lend_texts, read_numbers, report_errors,
};
use crate::*;
use esker::observe::{
    BlobFileShare, CompactionFigures, CompactionFile, CompactionInfo, CompactionReason, FlushInfo,
    FlushReason, IngestInfo, MemtableInfo, StallCondition, StallInfo, SubcompactionInfo,
};
use esker::{Error, ErrorKind};
use esker_format::{FileNo, file_name};
use std::ffi::{c_char, c_int, c_uchar};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

/// A flush.
pub struct rocksdb_flushjobinfo_t {
    info: FlushInfo,
    name: Text,
    path: Text,
    table: rocksdb_table_properties_t,
    thread: u64,
    blobs: Vec<rocksdb_blob_file_addition_info_t>,
}

impl rocksdb_flushjobinfo_t {
    pub(crate) fn new(info: &FlushInfo) -> Self {
        let path = info.file.as_ref().map(|f| f.to_string_lossy().into_owned());
        let table = info.properties.clone();
        rocksdb_flushjobinfo_t {
            info: info.clone(),
            name: Text::new(&info.family),
            path: Text::new(path.unwrap_or_default()),
            table: table.map_or_else(Default::default, rocksdb_table_properties_t::new),
            thread: callbacks::thread_id(),
            blobs: additions(&info.blob_files),
        }
    }
}

fn number(file: Option<FileNo>) -> u64 {
    file.map_or(0, |f| f.0)
}

/// RocksDB's number of a reason.
fn flush_reason(reason: FlushReason) -> u32 {
    match reason {
        FlushReason::GetLiveFiles => 1,
        FlushReason::ShutDown => 2,
        FlushReason::ExternalFileIngestion => 3,
        FlushReason::ManualCompaction => 4,
        FlushReason::WriteBufferManager => 5,
        FlushReason::WriteBufferFull => 6,
        FlushReason::AutoCompaction => 9,
        FlushReason::ManualFlush => 10,
        FlushReason::ErrorRecovery => 11,
        FlushReason::WalFull => 13,
        FlushReason::TooManyRangeDeletions => 15,
        _ => 0,
    }
}

read_numbers!(rocksdb_flushjobinfo_t;
    rocksdb_flushjobinfo_cf_id: u32 = |f| f.info.family_id,
    rocksdb_flushjobinfo_file_number: u64 = |f| number(f.info.file_no),
    rocksdb_flushjobinfo_oldest_blob_file_number: u64 = |f| number(f.info.oldest_blob_file),
    rocksdb_flushjobinfo_thread_id: u64 = |f| f.thread,
    rocksdb_flushjobinfo_job_id: c_int = |f| c_int::try_from(f.info.job).unwrap_or(c_int::MAX),
    rocksdb_flushjobinfo_triggered_writes_slowdown: c_uchar = |f| c_uchar::from(f.info.triggered_slowdown),
    rocksdb_flushjobinfo_triggered_writes_stop: c_uchar = |f| c_uchar::from(f.info.triggered_stop),
    rocksdb_flushjobinfo_smallest_seqno: u64 = |f| f.info.smallest_seq.0,
    rocksdb_flushjobinfo_largest_seqno: u64 = |f| f.info.largest_seq.0,
    rocksdb_flushjobinfo_flush_reason: u32 = |f| flush_reason(f.info.reason),
    rocksdb_flushjobinfo_blob_compression_type: u32 = |f| u32::from(f.info.blob_compression.number()),
    rocksdb_flushjobinfo_blob_file_addition_infos_count: usize = |f| f.blobs.len(),
);
lend_texts!(rocksdb_flushjobinfo_t;
    rocksdb_flushjobinfo_cf_name = |f| &f.name,
    rocksdb_flushjobinfo_file_path = |f| &f.path,
);
lend_objects!(rocksdb_flushjobinfo_t;
    rocksdb_flushjobinfo_table_properties: rocksdb_table_properties_t = |f| &f.table,
);
lend_members!(rocksdb_flushjobinfo_t;
    rocksdb_flushjobinfo_blob_file_addition_info_at: rocksdb_blob_file_addition_info_t = |f| &f.blobs,
);

/// A blob file that a job wrote.
pub struct rocksdb_blob_file_addition_info_t {
    path: Text,
    numbers: [u64; 3],
}

/// Garbage that a job left in a blob file.
pub struct rocksdb_blob_file_garbage_info_t {
    path: Text,
    numbers: [u64; 3],
}

fn told(share: &BlobFileShare) -> (Text, [u64; 3]) {
    let path = Text::new(share.file.as_os_str().as_bytes());
    (path, [share.file_no.0, share.blobs, share.blob_bytes])
}

fn additions(files: &[BlobFileShare]) -> Vec<rocksdb_blob_file_addition_info_t> {
    let told = files.iter().map(told);
    told.map(|(path, numbers)| rocksdb_blob_file_addition_info_t { path, numbers })
        .collect()
}

fn garbage(files: &[BlobFileShare]) -> Vec<rocksdb_blob_file_garbage_info_t> {
    let told = files.iter().map(told);
    told.map(|(path, numbers)| rocksdb_blob_file_garbage_info_t { path, numbers })
        .collect()
}

read_numbers!(rocksdb_blob_file_addition_info_t;
    rocksdb_blob_file_addition_info_blob_file_number: u64 = |b| b.numbers[0],
    rocksdb_blob_file_addition_info_total_blob_count: u64 = |b| b.numbers[1],
    rocksdb_blob_file_addition_info_total_blob_bytes: u64 = |b| b.numbers[2],
);
lend_texts!(rocksdb_blob_file_addition_info_t;
    rocksdb_blob_file_addition_info_blob_file_path = |b| &b.path,
);
read_numbers!(rocksdb_blob_file_garbage_info_t;
    rocksdb_blob_file_garbage_info_blob_file_number: u64 = |b| b.numbers[0],
    rocksdb_blob_file_garbage_info_garbage_blob_count: u64 = |b| b.numbers[1],
    rocksdb_blob_file_garbage_info_garbage_blob_bytes: u64 = |b| b.numbers[2],
);
lend_texts!(rocksdb_blob_file_garbage_info_t;
    rocksdb_blob_file_garbage_info_blob_file_path = |b| &b.path,
);

/// A file that a compaction read or wrote.
pub struct rocksdb_compaction_file_info_t {
    file: CompactionFile,
}

read_numbers!(rocksdb_compaction_file_info_t;
    rocksdb_compaction_file_info_level: c_int = |f| c_int::from(f.file.level.0),
    rocksdb_compaction_file_info_file_number: u64 = |f| f.file.file_no.0,
    rocksdb_compaction_file_info_oldest_blob_file_number: u64 = |f| number(f.file.oldest_blob_file),
);

/// The figures of a compaction.
#[derive(Default)]
pub struct rocksdb_compaction_job_stats_t {
    figures: CompactionFigures,
    elapsed_us: u64,
    input_bytes: u64,
    output_bytes: u64,
    /// Blob files that were written.
    blob_outputs: usize,
    /// Bytes of their records.
    blob_output_bytes: u64,
    inputs: usize,
    inputs_at_output: usize,
    outputs: usize,
    moved: usize,
    is_full: bool,
    is_manual: bool,
    nothing: Text,
}

// What is filtered, remote or about files' timings is 0: no input is filtered out as a whole,
// nothing is remote, and the perf context has the timings.
read_numbers!(rocksdb_compaction_job_stats_t;
    rocksdb_compaction_job_stats_elapsed_micros: u64 = |s| s.elapsed_us,
    rocksdb_compaction_job_stats_cpu_micros: u64 = |s| s.figures.cpu_us,
    rocksdb_compaction_job_stats_has_accurate_num_input_records: c_uchar = |_s| 1,
    rocksdb_compaction_job_stats_num_input_records: u64 = |s| s.figures.input_entries,
    rocksdb_compaction_job_stats_num_blobs_read: u64 = |s| s.figures.blobs_read,
    rocksdb_compaction_job_stats_num_input_files: usize = |s| s.inputs,
    rocksdb_compaction_job_stats_num_input_files_trivially_moved: usize = |s| s.moved,
    rocksdb_compaction_job_stats_num_input_files_at_output_level: usize = |s| s.inputs_at_output,
    rocksdb_compaction_job_stats_num_filtered_input_files: usize = |_s| 0,
    rocksdb_compaction_job_stats_num_filtered_input_files_at_output_level: usize = |_s| 0,
    rocksdb_compaction_job_stats_num_output_records: u64 = |s| s.figures.output_entries,
    rocksdb_compaction_job_stats_num_output_files: usize = |s| s.outputs,
    rocksdb_compaction_job_stats_num_output_files_blob: usize = |s| s.blob_outputs,
    rocksdb_compaction_job_stats_is_full_compaction: c_uchar = |s| c_uchar::from(s.is_full),
    rocksdb_compaction_job_stats_is_manual_compaction: c_uchar = |s| c_uchar::from(s.is_manual),
    rocksdb_compaction_job_stats_is_remote_compaction: c_uchar = |_s| 0,
    rocksdb_compaction_job_stats_total_input_bytes: u64 = |s| s.input_bytes,
    rocksdb_compaction_job_stats_total_blob_bytes_read: u64 = |s| s.figures.blob_bytes_read,
    rocksdb_compaction_job_stats_total_output_bytes: u64 = |s| s.output_bytes,
    rocksdb_compaction_job_stats_total_output_bytes_blob: u64 = |s| s.blob_output_bytes,
    rocksdb_compaction_job_stats_total_skipped_input_bytes: u64 = |_s| 0,
    rocksdb_compaction_job_stats_num_records_replaced: u64 = |s| s.figures.replaced_entries,
    rocksdb_compaction_job_stats_total_input_raw_key_bytes: u64 = |s| s.figures.input_key_bytes,
    rocksdb_compaction_job_stats_total_input_raw_value_bytes: u64 = |s| s.figures.input_value_bytes,
    rocksdb_compaction_job_stats_num_input_deletion_records: u64 = |s| s.figures.input_deletions,
    rocksdb_compaction_job_stats_num_expired_deletion_records: u64 = |s| s.figures.expired_deletions,
    rocksdb_compaction_job_stats_num_corrupt_keys: u64 = |s| s.figures.corrupt_entries,
    rocksdb_compaction_job_stats_file_write_nanos: u64 = |_s| 0,
    rocksdb_compaction_job_stats_file_range_sync_nanos: u64 = |_s| 0,
    rocksdb_compaction_job_stats_file_fsync_nanos: u64 = |_s| 0,
    rocksdb_compaction_job_stats_file_prepare_write_nanos: u64 = |_s| 0,
    rocksdb_compaction_job_stats_num_single_del_fallthru: u64 = |s| s.figures.single_deletions_fallen_through,
    rocksdb_compaction_job_stats_num_single_del_mismatch: u64 = |s| s.figures.single_deletions_mismatched,
);
lend_texts!(rocksdb_compaction_job_stats_t;
    rocksdb_compaction_job_stats_smallest_output_key_prefix = |s| &s.nothing,
    rocksdb_compaction_job_stats_largest_output_key_prefix = |s| &s.nothing,
);

/// A compaction; nothing in it until one is told of.
#[derive(Default)]
pub struct rocksdb_compactionjobinfo_t {
    family_id: u32,
    name: Text,
    thread: u64,
    job: u64,
    level0_files: usize,
    levels: (c_int, c_int),
    reason: u32,
    compression: u32,
    error: Option<Error>,
    inputs: Vec<rocksdb_compaction_file_info_t>,
    outputs: Vec<rocksdb_compaction_file_info_t>,
    blob_files: Vec<rocksdb_blob_file_addition_info_t>,
    blob_garbage: Vec<rocksdb_blob_file_garbage_info_t>,
    blob_compression: u32,
    input_paths: Vec<Text>,
    output_paths: Vec<Text>,
    table_paths: Vec<Text>,
    tables: Vec<rocksdb_table_properties_t>,
    stats: rocksdb_compaction_job_stats_t,
}

/// RocksDB's number of a reason.
fn compaction_reason(reason: CompactionReason) -> u32 {
    use CompactionReason as R;
    match reason {
        R::LevelL0FilesNum | R::L0IntraLevel => 1,
        R::LevelMaxLevelSize => 2,
        R::UniversalSizeAmplification => 3,
        R::UniversalSizeRatio => 4,
        R::UniversalSortedRunNum => 5,
        R::FifoMaxSize => 6,
        R::FifoReduceNumFiles => 7,
        R::FifoTtl => 8,
        R::ManualCompaction => 9,
        R::FilesMarkedForCompaction => 10,
        R::BottommostFiles => 11,
        R::Ttl => 12,
        R::ExternalSstIngestion => 14,
        R::PeriodicCompaction => 15,
        R::ForcedBlobGc => 17,
        R::RoundRobinTtl => 18,
        R::ReadTriggered => 20,
        _ => 0,
    }
}

fn file_infos(files: &[CompactionFile]) -> Vec<rocksdb_compaction_file_info_t> {
    files
        .iter()
        .map(|file| rocksdb_compaction_file_info_t { file: *file })
        .collect()
}

impl rocksdb_compactionjobinfo_t {
    /// Copies `info` into texts that can be lent.
    pub(crate) fn new(info: &CompactionInfo) -> Self {
        let path = |file: &FileNo| match info.paths.get(file) {
            Some(path) => Text::new(path.as_os_str().as_bytes()),
            None => Text::new(file_name::table_name(*file)),
        };
        let paths = |files: &[CompactionFile]| -> Vec<Text> {
            files.iter().map(|f| path(&f.file_no)).collect()
        };
        let at_output = |f: &&CompactionFile| f.level == info.output_level;
        let (table_paths, tables) = info
            .properties
            .iter()
            .map(|(file, p)| {
                let properties = rocksdb_table_properties_t::new(p.clone());
                (path(file), properties)
            })
            .unzip();
        rocksdb_compactionjobinfo_t {
            family_id: info.family_id,
            name: Text::new(&info.family),
            thread: callbacks::thread_id(),
            job: info.job,
            level0_files: info.level0_files,
            levels: (
                c_int::from(info.base_input_level.0),
                c_int::from(info.output_level.0),
            ),
            reason: compaction_reason(info.reason),
            compression: u32::from(info.compression.number()),
            error: info.error.clone(),
            inputs: file_infos(&info.inputs),
            outputs: file_infos(&info.outputs),
            blob_files: additions(&info.blob_files),
            blob_garbage: garbage(&info.blob_garbage),
            blob_compression: u32::from(info.blob_compression.number()),
            input_paths: paths(&info.inputs),
            output_paths: paths(&info.outputs),
            table_paths,
            tables,
            stats: rocksdb_compaction_job_stats_t {
                figures: info.figures,
                elapsed_us: info.elapsed_us,
                input_bytes: info.input_bytes,
                output_bytes: info.output_bytes,
                blob_outputs: info.blob_files.len(),
                blob_output_bytes: info.blob_files.iter().map(|b| b.blob_bytes).sum(),
                inputs: info.inputs.len(),
                inputs_at_output: info.inputs.iter().filter(at_output).count(),
                outputs: info.outputs.len(),
                moved: if info.is_trivial_move {
                    info.inputs.len()
                } else {
                    0
                },
                is_full: info.is_full,
                is_manual: info.is_manual,
                nothing: Text::default(),
            },
        }
    }
}

fn is_aborted(error: &Option<Error>) -> c_uchar {
    c_uchar::from(error.as_ref().is_some_and(|e| {
        matches!(
            e.kind(),
            ErrorKind::Aborted | ErrorKind::Incomplete | ErrorKind::ShutdownInProgress
        )
    }))
}

read_numbers!(rocksdb_compactionjobinfo_t;
    rocksdb_compactionjobinfo_cf_id: u32 = |c| c.family_id,
    rocksdb_compactionjobinfo_thread_id: u64 = |c| c.thread,
    rocksdb_compactionjobinfo_job_id: c_int = |c| c_int::try_from(c.job).unwrap_or(c_int::MAX),
    rocksdb_compactionjobinfo_num_l0_files: c_int = |c| c_int::try_from(c.level0_files).unwrap_or(c_int::MAX),
    rocksdb_compactionjobinfo_base_input_level: c_int = |c| c.levels.0,
    rocksdb_compactionjobinfo_output_level: c_int = |c| c.levels.1,
    rocksdb_compactionjobinfo_compaction_reason: u32 = |c| c.reason,
    rocksdb_compactionjobinfo_compression: u32 = |c| c.compression,
    rocksdb_compactionjobinfo_blob_compression_type: u32 = |c| c.blob_compression,
    rocksdb_compactionjobinfo_aborted: c_uchar = |c| is_aborted(&c.error),
    rocksdb_compactionjobinfo_input_files_count: usize = |c| c.input_paths.len(),
    rocksdb_compactionjobinfo_output_files_count: usize = |c| c.output_paths.len(),
    rocksdb_compactionjobinfo_elapsed_micros: u64 = |c| c.stats.elapsed_us,
    rocksdb_compactionjobinfo_num_corrupt_keys: u64 = |c| c.stats.figures.corrupt_entries,
    rocksdb_compactionjobinfo_input_records: u64 = |c| c.stats.figures.input_entries,
    rocksdb_compactionjobinfo_output_records: u64 = |c| c.stats.figures.output_entries,
    rocksdb_compactionjobinfo_total_input_bytes: u64 = |c| c.stats.input_bytes,
    rocksdb_compactionjobinfo_total_output_bytes: u64 = |c| c.stats.output_bytes,
    rocksdb_compactionjobinfo_num_input_files: usize = |c| c.stats.inputs,
    rocksdb_compactionjobinfo_num_input_files_at_output_level: usize = |c| c.stats.inputs_at_output,
    rocksdb_compactionjobinfo_input_file_infos_count: usize = |c| c.inputs.len(),
    rocksdb_compactionjobinfo_output_file_infos_count: usize = |c| c.outputs.len(),
    rocksdb_compactionjobinfo_table_properties_count: usize = |c| c.tables.len(),
    rocksdb_compactionjobinfo_blob_file_addition_infos_count: usize = |c| c.blob_files.len(),
    rocksdb_compactionjobinfo_blob_file_garbage_infos_count: usize = |c| c.blob_garbage.len(),
);
lend_texts!(rocksdb_compactionjobinfo_t;
    rocksdb_compactionjobinfo_cf_name = |c| &c.name,
);
lend_listed_texts!(rocksdb_compactionjobinfo_t;
    rocksdb_compactionjobinfo_input_file_at = |c| &c.input_paths,
    rocksdb_compactionjobinfo_output_file_at = |c| &c.output_paths,
    rocksdb_compactionjobinfo_table_properties_key_at = |c| &c.table_paths,
);
lend_objects!(rocksdb_compactionjobinfo_t;
    rocksdb_compactionjobinfo_stats: rocksdb_compaction_job_stats_t = |c| &c.stats,
);
lend_members!(rocksdb_compactionjobinfo_t;
    rocksdb_compactionjobinfo_input_file_info_at: rocksdb_compaction_file_info_t = |c| &c.inputs,
    rocksdb_compactionjobinfo_output_file_info_at: rocksdb_compaction_file_info_t = |c| &c.outputs,
    rocksdb_compactionjobinfo_table_properties_value_at: rocksdb_table_properties_t = |c| &c.tables,
    rocksdb_compactionjobinfo_blob_file_addition_info_at: rocksdb_blob_file_addition_info_t = |c| &c.blob_files,
    rocksdb_compactionjobinfo_blob_file_garbage_info_at: rocksdb_blob_file_garbage_info_t = |c| &c.blob_garbage,
);
report_errors!(rocksdb_compactionjobinfo_t;
    rocksdb_compactionjobinfo_status = |c| &c.error,
);

/// NULL for a file that is none of the compaction's.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compactionjobinfo_table_properties_for_file(
    info: *const rocksdb_compactionjobinfo_t,
    file_name: *const c_char,
    file_name_len: usize,
) -> *const rocksdb_table_properties_t {
    attempt(ptr::null(), || {
        let info = shared(info)?;
        let wanted = bytes(file_name, file_name_len);
        let at = info.table_paths.iter().position(|p| p.bytes() == wanted);
        Ok(at.map_or(ptr::null(), |at| ptr::from_ref(&info.tables[at])))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compactionjobinfo_create() -> *mut rocksdb_compactionjobinfo_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_compactionjobinfo_t::default())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_compactionjobinfo_destroy(info: *mut rocksdb_compactionjobinfo_t) {
    destroy(info);
}

/// A key range of a compaction.
pub struct rocksdb_subcompactionjobinfo_t {
    info: SubcompactionInfo,
    name: Text,
    thread: u64,
    stats: rocksdb_compaction_job_stats_t,
}

impl rocksdb_subcompactionjobinfo_t {
    pub(crate) fn new(info: &SubcompactionInfo) -> Self {
        rocksdb_subcompactionjobinfo_t {
            info: info.clone(),
            name: Text::new(&info.family),
            thread: callbacks::thread_id(),
            stats: rocksdb_compaction_job_stats_t {
                figures: info.figures,
                ..rocksdb_compaction_job_stats_t::default()
            },
        }
    }
}

read_numbers!(rocksdb_subcompactionjobinfo_t;
    rocksdb_subcompactionjobinfo_cf_id: u32 = |s| s.info.family_id,
    rocksdb_subcompactionjobinfo_thread_id: u64 = |s| s.thread,
    rocksdb_subcompactionjobinfo_job_id: c_int = |s| c_int::try_from(s.info.job).unwrap_or(c_int::MAX),
    rocksdb_subcompactionjobinfo_subcompaction_job_id: c_int = |s| c_int::try_from(s.info.part).unwrap_or(c_int::MAX),
    rocksdb_subcompactionjobinfo_base_input_level: c_int = |s| c_int::from(s.info.base_input_level.0),
    rocksdb_subcompactionjobinfo_output_level: c_int = |s| c_int::from(s.info.output_level.0),
    rocksdb_subcompactionjobinfo_compaction_reason: u32 = |s| compaction_reason(s.info.reason),
    rocksdb_subcompactionjobinfo_compression: u32 = |s| u32::from(s.info.compression.number()),
    rocksdb_subcompactionjobinfo_blob_compression_type: u32 = |s| u32::from(s.info.blob_compression.number()),
);
lend_texts!(rocksdb_subcompactionjobinfo_t;
    rocksdb_subcompactionjobinfo_cf_name = |s| &s.name,
);
lend_objects!(rocksdb_subcompactionjobinfo_t;
    rocksdb_subcompactionjobinfo_stats: rocksdb_compaction_job_stats_t = |s| &s.stats,
);
report_errors!(rocksdb_subcompactionjobinfo_t;
    rocksdb_subcompactionjobinfo_status = |s| &s.info.error,
);

/// A file that came from outside.
pub struct rocksdb_externalfileingestioninfo_t {
    name: Text,
    external: Text,
    internal: Text,
    seq: u64,
    table: rocksdb_table_properties_t,
}

impl rocksdb_externalfileingestioninfo_t {
    pub(crate) fn new(info: &IngestInfo) -> Self {
        rocksdb_externalfileingestioninfo_t {
            name: Text::new(&info.family),
            external: Text::new(info.external_file.to_string_lossy().as_bytes()),
            internal: Text::new(info.internal_file.to_string_lossy().as_bytes()),
            seq: info.global_seq.0,
            table: rocksdb_table_properties_t::new(info.properties.clone()),
        }
    }
}

read_numbers!(rocksdb_externalfileingestioninfo_t;
    rocksdb_externalfileingestioninfo_global_seqno: u64 = |i| i.seq,
);
lend_texts!(rocksdb_externalfileingestioninfo_t;
    rocksdb_externalfileingestioninfo_cf_name = |i| &i.name,
    rocksdb_externalfileingestioninfo_external_file_path = |i| &i.external,
    rocksdb_externalfileingestioninfo_internal_file_path = |i| &i.internal,
);
lend_objects!(rocksdb_externalfileingestioninfo_t;
    rocksdb_externalfileingestioninfo_table_properties: rocksdb_table_properties_t = |i| &i.table,
);

/// A memtable that takes no more writes.
pub struct rocksdb_memtableinfo_t {
    info: MemtableInfo,
    name: Text,
    nothing: Text,
}

impl rocksdb_memtableinfo_t {
    pub(crate) fn new(info: &MemtableInfo) -> Self {
        rocksdb_memtableinfo_t {
            info: info.clone(),
            name: Text::new(&info.family),
            nothing: Text::default(),
        }
    }
}

read_numbers!(rocksdb_memtableinfo_t;
    rocksdb_memtableinfo_first_seqno: u64 = |m| m.info.first_seq.0,
    rocksdb_memtableinfo_earliest_seqno: u64 = |m| m.info.earliest_seq.0,
    rocksdb_memtableinfo_num_entries: u64 = |m| m.info.entries,
    rocksdb_memtableinfo_num_deletes: u64 = |m| m.info.deletes,
);
lend_texts!(rocksdb_memtableinfo_t;
    rocksdb_memtableinfo_cf_name = |m| &m.name,
    rocksdb_memtableinfo_newest_udt = |m| &m.nothing,
);

/// How writers are held back: RocksDB's number, as an `int`.
#[repr(C)]
pub struct rocksdb_writestallcondition_t {
    condition: c_int,
}

impl rocksdb_writestallcondition_t {
    fn new(condition: StallCondition) -> Self {
        rocksdb_writestallcondition_t {
            condition: match condition {
                StallCondition::Delayed => 0,
                StallCondition::Stopped => 1,
                _ => 2,
            },
        }
    }
}

/// A change in how writers are held back.
pub struct rocksdb_writestallinfo_t {
    name: Text,
    current: rocksdb_writestallcondition_t,
    previous: rocksdb_writestallcondition_t,
}

impl rocksdb_writestallinfo_t {
    pub(crate) fn new(info: &StallInfo) -> Self {
        rocksdb_writestallinfo_t {
            name: Text::new(&info.family),
            current: rocksdb_writestallcondition_t::new(info.current),
            previous: rocksdb_writestallcondition_t::new(info.previous),
        }
    }
}

lend_texts!(rocksdb_writestallinfo_t;
    rocksdb_writestallinfo_cf_name = |w| &w.name,
);
lend_objects!(rocksdb_writestallinfo_t;
    rocksdb_writestallinfo_cur: rocksdb_writestallcondition_t = |w| &w.current,
    rocksdb_writestallinfo_prev: rocksdb_writestallcondition_t = |w| &w.previous,
);
