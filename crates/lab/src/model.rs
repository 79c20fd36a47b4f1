//! Calculators: what an engine must cost at least, from its shape alone.
//!
//! Each calculator is a pure function and a table that begins with its formulas. Nothing here opens
//! a database. The tables that others published are tests (`model/tests.rs`); the sources are in
//! `docs/lab-workloads.md`.
//!
//! * [`amplification`]: leveled and tiered trees, leveled trees with several runs a level, B-trees.
//! * [`outsourced`]: a store that leaves compression to a log-structured one below it.
//! * [`predict`]: the formulas applied to the sizes of a run.
//! * [`scalability`]: the universal scalability law, fitted to a sweep of threads.
//! * [`table`]: tables as text, TSV and JSON.
//!
//! Called by `esker lab model` and by the experiments that print predictions beside measurements.

pub mod amplification;
pub mod command;
pub mod outsourced;
pub mod predict;
pub mod scalability;
pub mod table;

#[cfg(test)]
mod tests;
