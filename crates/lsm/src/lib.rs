//! The tree as a value: versions, edits, decisions and the streams that merge its entries.
//!
//! Policy without I/O: everything here is a pure function over values, so that it can be tested as
//! pictures and replayed in simulation.
#![forbid(unsafe_code)]

pub mod assessment;
pub mod blob_groups;
pub mod check;
pub mod closures;
pub mod compaction_filter;
pub mod compaction_stream;
pub mod cutter;
pub mod disorder;
pub mod edit;
pub mod file;
pub mod fold;
pub mod forecast;
pub mod level_sizes;
pub mod load;
pub mod merge_operator;
pub mod merging;
pub mod off_peak;
pub mod overload;
pub mod pace;
pub mod pick;
pub mod plan;
pub mod point;
pub mod policy;
pub mod read_demand;
pub mod relief;
pub mod score;
pub mod shape;
pub mod space;
pub mod stack;
pub mod tombstone;
pub mod version;
pub mod visible;
pub mod weight;
pub mod writers;
