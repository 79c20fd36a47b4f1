//! The laboratory: workloads, drivers, measurement, statistics and reports.
//!
//! This crate stands above the engine, transactions and backups, and names nothing but their public
//! API, which makes it the proof that this API suffices. Its front door is [`bench::main`], the
//! body of `esker bench`.
//!
//! * [`flags`]: the one declared table of command-line flags, and its parser.
//! * [`options`]: how flags become option strings that any RocksDB-compatible engine understands.
//! * [`identity`]: what scripts ask of a `db_bench`: version, build, date, machine.
//! * [`interrupt`]: signals, and the temporary directories that they must not leave.
//! * [`generate`]: keys, values, random numbers and pacing.
//! * [`store`]: the two traits through which a workload sees an engine.
//! * [`store_esker`]: the embedded engine (`esker`, the default).
//! * [`store_null`]: no engine, for the client's own time (`null`).
//! * `peers`: engines of other kinds (`lmdb`, `fjall`), behind features.
//! * [`dlopen`]: an engine behind the C ABI of RocksDB, loaded at run time (`lib:PATH`).
//! * [`measure`]: per-thread meters, histograms, the interval sampler.
//! * [`slowest`]: where the slowest operations spent their time.
//! * [`codec`]: benchmarks of single routines.
//! * [`limits`]: what the machine allows a row at most.
//! * [`workload`], [`runner`]: the benchmarks, and what drives them.
//! * [`shape`], [`process`]: what the tree and the process looked like around a step;
//!   [`read_work`]: what its reads took.
//! * [`memory`], [`allocated`]: resident memory by owner; what allocators say of themselves.
//! * [`model`]: calculators of amplification and scalability.
//! * [`relational`]: rows, indexes and transactions: workloads, engines, servers.
//! * [`compare`]: paired comparisons with bootstrap intervals.
//! * [`experiment`]: experiments of `esker lab`: plans, runs, records.
//! * [`experiments`]: those that there are; [`laboratory`]: the body of `esker lab`.
//! * [`page`]: the report of records as HTML, TSV and JSON.
//! * [`report`]: the result record and its JSON and table forms.
//!
//! Unsafe code is confined to [`dlopen`], which calls loaded libraries, and to the set-up of LMDB,
//! which is behind a feature.
#![deny(unsafe_code)]

pub mod allocated;
pub mod bench;
pub mod benchmarks;
pub mod codec;
pub mod compare;
pub mod dlopen;
pub mod experiment;
pub mod experiments;
pub mod flags;
pub mod generate;
pub mod identity;
pub mod interrupt;
pub mod laboratory;
pub mod limits;
pub mod measure;
pub mod memory;
pub mod model;
pub mod options;
pub mod page;
pub mod pauses;
pub mod process;
pub mod read_work;
pub mod relational;
pub mod report;
pub mod runner;
pub mod shape;
pub mod slowest;
pub mod store;
pub mod store_esker;
pub mod store_null;
pub mod universal;
pub mod workload;

mod child;
mod directory;
mod failure;
mod peers;
mod say;
mod sine;
pub use failure::{Failure, Result};
pub use say::print_by;
