//! Reports of the database: counters, histograms, timings of one thread, the LOG file, events, and
//! the ledger of time that writers were held back.
//!
//! Everything here is told by the rest of the engine and triggers nothing. All of it is
//! cheap when it is not used: statistics and listeners are absent unless given, timings are off
//! unless a thread asks for them.

#[cfg(any(feature = "log", feature = "tracing"))]
mod bridges;
mod catalogue;
mod db_ref;
mod event_log;
mod events;
mod histogram;
mod info_log;
mod log_line;
mod logger;
mod names;
mod open_metrics;
mod operations;
mod pending;
mod perf;
mod stall;
mod statistics;
mod table_watch;
#[cfg(test)]
mod tests;

#[cfg(feature = "log")]
pub use bridges::LogLogger;
#[cfg(feature = "tracing")]
pub use bridges::TracingLogger;
pub use db_ref::DbRef;
pub use event_log::{EVENT_LOG_PREFIX, EventLine};
pub use events::{
    BackgroundErrorInfo, BackgroundErrorReason, BlobFileCreation, BlobFileDeletion, BlobFileShare,
    CompactionFigures, CompactionFile, CompactionInfo, CompactionReason, EventListener, FlushInfo,
    FlushReason, IngestInfo, MemtableInfo, RecoveryInfo, StallCondition, StallInfo,
    SubcompactionInfo, TableFileCreation, TableFileDeletion, TableFileReason,
};
pub use histogram::{BUCKETS, Histogram, HistogramSummary};
pub use info_log::{InfoLog, InfoLogOptions};
pub use log_line::timestamp;
pub use logger::{Logger, StderrLogger, as_information};
pub use names::{HistogramId, Ticker};
pub use open_metrics::{MetricKind, MetricLabels, MetricText, OPEN_METRICS_TYPE, metric_name};
pub use operations::{OperationKind, OperationRecord, OperationStart, SlowOperation};
pub use pending::{Pending, PendingEvent};
pub use perf::perf_measures;
pub use perf::{
    PerfApart, PerfContext, PerfLevel, PerfMetric, PerfTimer, perf_count, perf_count_write,
    perf_level, perf_timer, perf_wait_timer, set_perf_level,
};
pub use stall::StallTime;
pub use stall::{StallCause, StallKind, StallLedger, StallRow};
pub use statistics::{Statistics, StatsLevel};
pub use table_watch::TableWatch;
