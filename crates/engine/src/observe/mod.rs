//! What the database says about itself: counters, histograms, timings of one thread, the LOG file,
//! events, and the ledger of time that writers were held back.
//!
//! Everything here is told by the rest of the engine and tells nobody to do anything. All of it is
//! cheap when nobody looks: statistics and listeners are absent unless given, timings are off unless a
//! thread asks for them.

mod events;
mod histogram;
mod names;
mod statistics;

pub use events::{
    BackgroundErrorInfo, BackgroundErrorReason, CompactionInfo, CompactionReason, EventListener,
    FlushInfo, FlushReason, IngestInfo, MemtableInfo, RecoveryInfo, StallCondition, StallInfo,
    TableFileCreation, TableFileDeletion, TableFileReason,
};
pub use histogram::{BUCKETS, Histogram, HistogramSummary};
pub use names::{HistogramId, Ticker};
pub use statistics::{Statistics, StatsLevel};
