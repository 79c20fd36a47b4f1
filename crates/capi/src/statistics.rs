//! Statistics of a database, through its options, and the perf context of a thread.

use crate::boundary::{attempt, destroy, exclusive, give, malloc_text, quiet, shared};
use crate::*;
use esker::observe::{
    HistogramId, HistogramSummary, PerfContext, PerfLevel, PerfMetric, Statistics, StatsLevel,
    Ticker, set_perf_level,
};
use std::ffi::{c_char, c_int, c_uchar};
use std::ptr;
use std::sync::Arc;

/// A histogram in figures.
#[derive(Default)]
pub struct rocksdb_statistics_histogram_data_t {
    data: HistogramSummary,
}

/// The figures of the thread that asks.
pub struct rocksdb_perfcontext_t {
    context: PerfContext,
}

/// The statistics that `opt` counts into, and databases opened with it or a copy.
fn statistics<'a>(opt: *mut rocksdb_options_t) -> esker::Result<Option<&'a Arc<Statistics>>> {
    Ok(shared(opt)?.options.db.statistics.as_ref())
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_enable_statistics(options: *mut rocksdb_options_t) {
    attempt((), || {
        exclusive(options)?.options.db.statistics = Some(Statistics::new());
        Ok(())
    });
}

/// A level below the lowest is the lowest, one above the highest the highest.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_set_statistics_level(
    options: *mut rocksdb_options_t,
    level: c_int,
) {
    attempt((), || {
        if let Some(statistics) = statistics(options)? {
            statistics.set_level(match level {
                ..=0 => StatsLevel::DisableAll,
                1 => StatsLevel::ExceptHistogramOrTimers,
                2 => StatsLevel::ExceptTimers,
                3 => StatsLevel::ExceptDetailedTimers,
                4 => StatsLevel::ExceptTimeForMutex,
                5.. => StatsLevel::All,
            });
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_get_statistics_level(options: *mut rocksdb_options_t) -> c_int {
    attempt(0, || {
        let level = statistics(options)?.map_or(StatsLevel::DisableAll, |s| s.level());
        Ok(c_int::from(level as u8))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_statistics_get_string(
    opt: *mut rocksdb_options_t,
) -> *mut c_char {
    attempt(ptr::null_mut(), || {
        Ok(statistics(opt)?.map_or(ptr::null_mut(), |s| malloc_text(&s.to_string())))
    })
}

/// 0 for a number that no counter has.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_statistics_get_ticker_count(
    opt: *mut rocksdb_options_t,
    ticker_type: u32,
) -> u64 {
    attempt(0, || {
        let count = |s: &Arc<Statistics>| Ticker::from_number(ticker_type).map(|t| s.ticker(t));
        Ok(statistics(opt)?.and_then(count).unwrap_or(0))
    })
}

/// Zeros for a number that no histogram has.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_options_statistics_get_histogram_data(
    opt: *mut rocksdb_options_t,
    histogram_type: u32,
    data: *mut rocksdb_statistics_histogram_data_t,
) {
    attempt((), || {
        let id = HistogramId::from_number(histogram_type);
        let found = statistics(opt)?.zip(id).map(|(s, id)| s.histogram(id));
        exclusive(data)?.data = found.unwrap_or_default();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_statistics_histogram_data_create()
-> *mut rocksdb_statistics_histogram_data_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_statistics_histogram_data_t::default())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_statistics_histogram_data_destroy(
    data: *mut rocksdb_statistics_histogram_data_t,
) {
    destroy(data);
}

/// Exports a getter of one figure.
macro_rules! figure {
    ($name:ident, $type:ty, $field:ident) => {
        #[unsafe(no_mangle)]
        #[allow(clippy::cast_lossless, trivial_numeric_casts, clippy::unnecessary_cast)]
        pub extern "C" fn $name(data: *mut rocksdb_statistics_histogram_data_t) -> $type {
            attempt(Default::default(), || {
                Ok(shared(data.cast_const())?.data.$field as $type)
            })
        }
    };
}

figure!(rocksdb_statistics_histogram_data_get_median, f64, median);
figure!(rocksdb_statistics_histogram_data_get_p95, f64, percentile95);
figure!(rocksdb_statistics_histogram_data_get_p99, f64, percentile99);
figure!(rocksdb_statistics_histogram_data_get_average, f64, average);
figure!(
    rocksdb_statistics_histogram_data_get_std_dev,
    f64,
    standard_deviation
);
figure!(rocksdb_statistics_histogram_data_get_max, f64, max);
figure!(rocksdb_statistics_histogram_data_get_count, u64, count);
figure!(rocksdb_statistics_histogram_data_get_sum, u64, sum);
figure!(rocksdb_statistics_histogram_data_get_min, f64, min);

/// A level that does not exist leaves the thread's as it is.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_set_perf_level(level: c_int) {
    quiet((), || {
        if let Some(level) = u8::try_from(level).ok().and_then(PerfLevel::from_number) {
            set_perf_level(level);
        }
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_create() -> *mut rocksdb_perfcontext_t {
    quiet(ptr::null_mut(), || {
        give(rocksdb_perfcontext_t {
            context: PerfContext,
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_reset(context: *mut rocksdb_perfcontext_t) {
    attempt((), || {
        shared(context)?.context.reset();
        Ok(())
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_report(
    context: *mut rocksdb_perfcontext_t,
    exclude_zero_counters: c_uchar,
) -> *mut c_char {
    attempt(ptr::null_mut(), || {
        let report = shared(context)?.context.report(exclude_zero_counters != 0);
        Ok(malloc_text(&report))
    })
}

/// 0 for a number that no figure has.
#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_metric(
    context: *mut rocksdb_perfcontext_t,
    metric: c_int,
) -> u64 {
    attempt(0, || {
        let context = shared(context)?.context;
        let metric = usize::try_from(metric).ok().and_then(|n| METRICS.get(n));
        Ok(metric.map_or(0, |m| context.get(*m)))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn rocksdb_perfcontext_destroy(context: *mut rocksdb_perfcontext_t) {
    destroy(context);
}

/// The figures by their numbers in the C interface, which are not those of their places in
/// RocksDB's struct.
static METRICS: [PerfMetric; 84] = [
    PerfMetric::UserKeyComparisonCount,
    PerfMetric::BlockCacheHitCount,
    PerfMetric::BlockReadCount,
    PerfMetric::BlockReadByte,
    PerfMetric::BlockReadTime,
    PerfMetric::BlockChecksumTime,
    PerfMetric::BlockDecompressTime,
    PerfMetric::GetReadBytes,
    PerfMetric::MultigetReadBytes,
    PerfMetric::IterReadBytes,
    PerfMetric::InternalKeySkippedCount,
    PerfMetric::InternalDeleteSkippedCount,
    PerfMetric::InternalRecentSkippedCount,
    PerfMetric::InternalMergeCount,
    PerfMetric::GetSnapshotTime,
    PerfMetric::GetFromMemtableTime,
    PerfMetric::GetFromMemtableCount,
    PerfMetric::GetPostProcessTime,
    PerfMetric::GetFromOutputFilesTime,
    PerfMetric::SeekOnMemtableTime,
    PerfMetric::SeekOnMemtableCount,
    PerfMetric::NextOnMemtableCount,
    PerfMetric::PrevOnMemtableCount,
    PerfMetric::SeekChildSeekTime,
    PerfMetric::SeekChildSeekCount,
    PerfMetric::SeekMinHeapTime,
    PerfMetric::SeekMaxHeapTime,
    PerfMetric::SeekInternalSeekTime,
    PerfMetric::FindNextUserEntryTime,
    PerfMetric::WriteWalTime,
    PerfMetric::WriteMemtableTime,
    PerfMetric::WriteDelayTime,
    PerfMetric::WritePreAndPostProcessTime,
    PerfMetric::DbMutexLockNanos,
    PerfMetric::DbConditionWaitNanos,
    PerfMetric::MergeOperatorTimeNanos,
    PerfMetric::ReadIndexBlockNanos,
    PerfMetric::ReadFilterBlockNanos,
    PerfMetric::NewTableBlockIterNanos,
    PerfMetric::NewTableIteratorNanos,
    PerfMetric::BlockSeekNanos,
    PerfMetric::FindTableNanos,
    PerfMetric::BloomMemtableHitCount,
    PerfMetric::BloomMemtableMissCount,
    PerfMetric::BloomSstHitCount,
    PerfMetric::BloomSstMissCount,
    PerfMetric::KeyLockWaitTime,
    PerfMetric::KeyLockWaitCount,
    PerfMetric::EnvNewSequentialFileNanos,
    PerfMetric::EnvNewRandomAccessFileNanos,
    PerfMetric::EnvNewWritableFileNanos,
    PerfMetric::EnvReuseWritableFileNanos,
    PerfMetric::EnvNewRandomRwFileNanos,
    PerfMetric::EnvNewDirectoryNanos,
    PerfMetric::EnvFileExistsNanos,
    PerfMetric::EnvGetChildrenNanos,
    PerfMetric::EnvGetChildrenFileAttributesNanos,
    PerfMetric::EnvDeleteFileNanos,
    PerfMetric::EnvCreateDirNanos,
    PerfMetric::EnvCreateDirIfMissingNanos,
    PerfMetric::EnvDeleteDirNanos,
    PerfMetric::EnvGetFileSizeNanos,
    PerfMetric::EnvGetFileModificationTimeNanos,
    PerfMetric::EnvRenameFileNanos,
    PerfMetric::EnvLinkFileNanos,
    PerfMetric::EnvLockFileNanos,
    PerfMetric::EnvUnlockFileNanos,
    PerfMetric::EnvNewLoggerNanos,
    PerfMetric::NumberAsyncSeek,
    PerfMetric::BlobCacheHitCount,
    PerfMetric::BlobReadCount,
    PerfMetric::BlobReadByte,
    PerfMetric::BlobReadTime,
    PerfMetric::BlobChecksumTime,
    PerfMetric::BlobDecompressTime,
    PerfMetric::InternalRangeDelReseekCount,
    PerfMetric::BlockReadCpuTime,
    PerfMetric::InternalMergePointLookupCount,
    PerfMetric::DataBlockReadByte,
    PerfMetric::IndexBlockReadByte,
    PerfMetric::FilterBlockReadByte,
    PerfMetric::CompressionDictBlockReadByte,
    PerfMetric::MetadataBlockReadByte,
    PerfMetric::BlobCacheReadByte,
];
