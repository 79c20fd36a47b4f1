//! Relational workloads: rows with primary and secondary indexes, transactions and short scans.
//!
//! A workload sees an engine through [`engine::Session`] and [`engine::Rows`]. Ordered key-value
//! stores get rows and indexes from one layer ([`kv`]), so that they do the same work with the same
//! bytes; SQL engines get prepared statements from one generator. All engines are asked for the
//! same durability, and their options are reported.
//!
//! * [`row`]: tables, indexes, values. [`encode`]: rows as ordered keys and values.
//! * [`engine`]: the traits. [`kv`]: rows over key-value transactions. [`oracle`]: the model.
//! * [`catalogue`]: which engines this build can drive, and why others cannot be run.
//! * [`drive`]: threads, rates, percentiles, figures of a step.
//! * [`linkbench`], [`insert`], [`sysbench`], [`tsbs`], [`hot_row`]: the workloads.
//! * [`experiments`]: all of them as experiments of `esker lab`.

pub mod catalogue;
pub mod drive;
pub mod embedded;
pub mod encode;
pub mod engine;
pub mod experiments;
pub mod hot_row;
pub mod insert;
pub mod kv;
pub mod library;
pub mod linkbench;
pub mod oracle;
pub mod row;
pub mod sysbench;
pub mod tsbs;

#[cfg(feature = "peer-fjall")]
pub mod fjall;
#[cfg(feature = "peer-lmdb")]
pub mod lmdb;
#[cfg(feature = "servers")]
pub mod mariadb;
#[cfg(feature = "servers")]
pub mod postgres;
#[cfg(feature = "peer-redb")]
pub mod redb;
#[cfg(feature = "servers")]
pub mod server;
#[cfg(any(feature = "servers", feature = "peer-sqlite"))]
pub mod sql;
#[cfg(feature = "peer-sqlite")]
pub mod sqlite;

#[cfg(test)]
mod tests;
