//! The figures of a compaction.

use crate::boundary::handles;
use crate::table_properties;
use crate::{disposals, natives};
use esker::observe::{CompactionFigures, CompactionInfo, CompactionReason};
use esker::options::CompressionType;
use esker_sync::atomic::{AtomicI64, Ordering};
use esker_sync::{Arc, Mutex, Rank};
use jni_sys::{jbyte, jint, jlong, jobject};
use std::path::Path;

/// A compaction, once there was one.
pub(crate) struct JobInfo {
    info: Mutex<Option<Arc<CompactionInfo>>>,
    thread: AtomicI64,
    /// The handle of its figures; 0 until they are asked for.
    stats: AtomicI64,
}

/// Figures of a compaction.
#[derive(Clone, Default)]
struct Stats {
    figures: CompactionFigures,
    elapsed_us: u64,
    input_files: u64,
    input_files_at_output_level: u64,
    output_files: u64,
    input_bytes: u64,
    output_bytes: u64,
    is_manual: bool,
}

type StatsCell = Mutex<Stats>;

impl JobInfo {
    fn empty() -> JobInfo {
        JobInfo {
            info: Mutex::new(Rank::LEAF, None),
            thread: AtomicI64::new(0),
            stats: AtomicI64::new(0),
        }
    }

    /// Gives Java a compaction.
    pub(crate) fn give(info: &CompactionInfo) -> jlong {
        let made = JobInfo::empty();
        made.fill(info.clone());
        handles::give(made)
    }

    /// Takes a compaction down, which the calling thread did.
    pub(crate) fn fill(&self, info: CompactionInfo) {
        self.thread.store(thread(), Ordering::Relaxed);
        *self.info.lock() = Some(Arc::new(info));
    }

    fn get(&self) -> Option<Arc<CompactionInfo>> {
        self.info.lock().clone()
    }
}

impl Drop for JobInfo {
    fn drop(&mut self) {
        handles::take(self.stats.load(Ordering::Relaxed));
    }
}

/// A number for the calling thread.
pub(crate) fn thread() -> jlong {
    let id = format!("{:?}", std::thread::current().id());
    let digits: String = id.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// RocksDB's number of a reason.
fn reason(reason: CompactionReason) -> jbyte {
    match reason {
        CompactionReason::LevelL0FilesNum | CompactionReason::L0IntraLevel => 1,
        CompactionReason::LevelMaxLevelSize => 2,
        CompactionReason::UniversalSizeAmplification => 3,
        CompactionReason::UniversalSizeRatio => 4,
        CompactionReason::UniversalSortedRunNum => 5,
        CompactionReason::FifoMaxSize => 6,
        CompactionReason::FifoReduceNumFiles => 7,
        CompactionReason::FifoTtl => 8,
        CompactionReason::ManualCompaction => 9,
        CompactionReason::FilesMarkedForCompaction => 16,
        CompactionReason::BottommostFiles => 10,
        CompactionReason::Ttl => 11,
        CompactionReason::ExternalSstIngestion => 13,
        CompactionReason::PeriodicCompaction => 14,
        CompactionReason::ForcedBlobGc => 17,
        CompactionReason::RoundRobinTtl => 18,
        _ => 0,
    }
}

fn stats_of(info: &CompactionInfo) -> Stats {
    let at_output = info.inputs.iter().filter(|f| f.level == info.output_level);
    Stats {
        figures: info.figures,
        elapsed_us: info.elapsed_us,
        input_files: info.input_files.len() as u64,
        input_files_at_output_level: at_output.count() as u64,
        output_files: info.output_files.len() as u64,
        input_bytes: info.input_bytes,
        output_bytes: info.output_bytes,
        is_manual: info.is_manual,
    }
}

/// Getters of an info, which answer with `Default` until there was a compaction.
macro_rules! of_info {
    ($($name:ident: $ret:ty = |$info:ident| $value:expr;)*) => {$(natives! {
        fn $name(env, handle: jlong) -> $ret {
            let held = handles::hold::<JobInfo>(handle)?.get();
            Ok(held.map_or(0, |$info| $value))
        }
    })*};
}

of_info! {
    Java_org_rocksdb_CompactionJobInfo_jobId: jint = |i| i.job as jint;
    Java_org_rocksdb_CompactionJobInfo_baseInputLevel: jint = |i| jint::from(i.base_input_level.0);
    Java_org_rocksdb_CompactionJobInfo_outputLevel: jint = |i| jint::from(i.output_level.0);
    Java_org_rocksdb_CompactionJobInfo_compactionReason: jbyte = |i| reason(i.reason);
    Java_org_rocksdb_CompactionJobInfo_compression: jbyte =
        |i| <jbyte as crate::access::JavaValue<CompressionType>>::from_field(&i.compression);
}

fn paths(info: &CompactionInfo, files: impl Iterator<Item = u64>) -> Vec<String> {
    let found = files.filter_map(|f| info.paths.iter().find(|(no, _)| no.0 == f));
    found
        .map(|(_, path)| path.to_string_lossy().into_owned())
        .collect()
}

natives! {
    fn Java_org_rocksdb_CompactionJobInfo_newCompactionJobInfo(env) -> jlong {
        Ok(handles::give(JobInfo::empty()))
    }

    fn Java_org_rocksdb_CompactionJobInfo_columnFamilyName(env, handle: jlong) -> jobject {
        let info = handles::hold::<JobInfo>(handle)?.get();
        env.new_array(info.map_or(String::new(), |i| i.family.clone()).as_bytes())
    }

    fn Java_org_rocksdb_CompactionJobInfo_status(env, handle: jlong) -> jobject {
        let info = handles::hold::<JobInfo>(handle)?.get();
        env.status(info.as_ref().and_then(|i| i.error.as_ref()))
    }

    fn Java_org_rocksdb_CompactionJobInfo_threadId(env, handle: jlong) -> jlong {
        Ok(handles::hold::<JobInfo>(handle)?.thread.load(Ordering::Relaxed))
    }

    fn Java_org_rocksdb_CompactionJobInfo_inputFiles(env, handle: jlong) -> jobject {
        let info = handles::hold::<JobInfo>(handle)?.get();
        let all = info.map_or(Vec::new(), |i| paths(&i, i.input_files.iter().map(|f| f.0)));
        env.strings(&all)
    }

    fn Java_org_rocksdb_CompactionJobInfo_outputFiles(env, handle: jlong) -> jobject {
        let info = handles::hold::<JobInfo>(handle)?.get();
        let all = info.map_or(Vec::new(), |i| paths(&i, i.output_files.iter().map(|f| f.0)));
        env.strings(&all)
    }

    /// By the paths of the files.
    fn Java_org_rocksdb_CompactionJobInfo_tableProperties(env, handle: jlong) -> jobject {
        let info = handles::hold::<JobInfo>(handle)?.get();
        let mut all = Vec::new();
        for (file, properties) in info.iter().flat_map(|i| i.properties.iter()) {
            let path = info.as_ref().and_then(|i| i.paths.get(file));
            let path = path.map_or_else(|| Path::new(""), |p| p.as_path());
            all.push((path.to_string_lossy().into_owned(), Arc::clone(properties)));
        }
        table_properties::map(env, &all)
    }

    fn Java_org_rocksdb_CompactionJobInfo_stats(env, handle: jlong) -> jlong {
        let held = handles::hold::<JobInfo>(handle)?;
        let known = held.stats.load(Ordering::Relaxed);
        if handles::find::<StatsCell>(known).is_some() {
            return Ok(known);
        }
        let stats = held.get().map_or_else(Stats::default, |i| stats_of(&i));
        let made = handles::give(StatsCell::new(Rank::LEAF, stats));
        held.stats.store(made, Ordering::Relaxed);
        Ok(made)
    }

    fn Java_org_rocksdb_CompactionJobStats_newCompactionJobStats(env) -> jlong {
        Ok(handles::give(StatsCell::new(Rank::LEAF, Stats::default())))
    }

    fn Java_org_rocksdb_CompactionJobStats_reset(env, handle: jlong) {
        *handles::hold::<StatsCell>(handle)?.lock() = Stats::default();
        Ok(())
    }

    fn Java_org_rocksdb_CompactionJobStats_add(env, handle: jlong, other: jlong) {
        let other = handles::hold::<StatsCell>(other)?.lock().clone();
        handles::hold::<StatsCell>(handle)?.lock().add(&other);
        Ok(())
    }

    /// Calls of the system are not timed, as in RocksDB unless `report_bg_io_stats` is set.
    fn Java_org_rocksdb_CompactionJobStats_fileWriteNanos
        | Java_org_rocksdb_CompactionJobStats_fileRangeSyncNanos
        | Java_org_rocksdb_CompactionJobStats_fileFsyncNanos
        | Java_org_rocksdb_CompactionJobStats_filePrepareWriteNanos(env, handle: jlong) -> jlong {
        handles::hold::<StatsCell>(handle)?;
        Ok(0)
    }

    /// Prefixes of keys are not kept.
    fn Java_org_rocksdb_CompactionJobStats_smallestOutputKeyPrefix
        | Java_org_rocksdb_CompactionJobStats_largestOutputKeyPrefix(
        env, handle: jlong
    ) -> jobject {
        handles::hold::<StatsCell>(handle)?;
        env.new_array(&[])
    }

    fn Java_org_rocksdb_CompactionJobStats_isManualCompaction(env, handle: jlong) -> bool {
        Ok(handles::hold::<StatsCell>(handle)?.lock().is_manual)
    }
}

impl Stats {
    fn add(&mut self, other: &Stats) {
        macro_rules! sum {
            ($to:ident: $($field:ident),+) => {$(self.$to.$field += other.$to.$field;)+};
            ($($field:ident),+) => {$(self.$field += other.$field;)+};
        }
        sum!(figures: cpu_us, input_entries, output_entries, input_deletions, replaced_entries,
            expired_deletions, input_key_bytes, input_value_bytes, corrupt_entries,
            single_deletions_fallen_through, single_deletions_mismatched, blobs_read,
            blob_bytes_read);
        sum!(
            elapsed_us,
            input_files,
            input_files_at_output_level,
            output_files,
            input_bytes,
            output_bytes
        );
    }
}

/// Getters of figures.
macro_rules! of_stats {
    ($($name:ident = $($field:ident).+;)*) => {$(natives! {
        fn $name(env, handle: jlong) -> jlong {
            Ok(handles::hold::<StatsCell>(handle)?.lock().$($field).+ as jlong)
        }
    })*};
}

of_stats! {
    Java_org_rocksdb_CompactionJobStats_elapsedMicros = elapsed_us;
    Java_org_rocksdb_CompactionJobStats_numInputRecords = figures.input_entries;
    Java_org_rocksdb_CompactionJobStats_numInputFiles = input_files;
    Java_org_rocksdb_CompactionJobStats_numInputFilesAtOutputLevel = input_files_at_output_level;
    Java_org_rocksdb_CompactionJobStats_numOutputRecords = figures.output_entries;
    Java_org_rocksdb_CompactionJobStats_numOutputFiles = output_files;
    Java_org_rocksdb_CompactionJobStats_totalInputBytes = input_bytes;
    Java_org_rocksdb_CompactionJobStats_totalOutputBytes = output_bytes;
    Java_org_rocksdb_CompactionJobStats_numRecordsReplaced = figures.replaced_entries;
    Java_org_rocksdb_CompactionJobStats_totalInputRawKeyBytes = figures.input_key_bytes;
    Java_org_rocksdb_CompactionJobStats_totalInputRawValueBytes = figures.input_value_bytes;
    Java_org_rocksdb_CompactionJobStats_numInputDeletionRecords = figures.input_deletions;
    Java_org_rocksdb_CompactionJobStats_numExpiredDeletionRecords = figures.expired_deletions;
    Java_org_rocksdb_CompactionJobStats_numCorruptKeys = figures.corrupt_entries;
    Java_org_rocksdb_CompactionJobStats_numSingleDelFallthru =
        figures.single_deletions_fallen_through;
    Java_org_rocksdb_CompactionJobStats_numSingleDelMismatch = figures.single_deletions_mismatched;
}

disposals! {
    JobInfo: Java_org_rocksdb_CompactionJobInfo_disposeInternal
        | Java_org_rocksdb_CompactionJobInfo_disposeInternalJni;
    StatsCell: Java_org_rocksdb_CompactionJobStats_disposeInternal
        | Java_org_rocksdb_CompactionJobStats_disposeInternalJni;
}
