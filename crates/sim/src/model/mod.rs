//! The oracle: what the database should hold, driving it, and judging what a crash left.
//!
//! [`settings`] draws options, which [`area`] may lean towards a part of the engine, [`state`] is
//! the model, [`drive`] runs a workload and writes its history, [`concurrent_steps`] is done beside
//! its steps, [`backups`] among that, [`upkeep`] is what changes no contents, [`judge`] opens an
//! image and compares, also with what [`readers`] see, [`probe`] looks at an open database.

pub mod area;
pub mod backups;
pub mod concurrent_steps;
pub mod drive;
pub mod judge;
pub mod probe;
pub mod readers;
pub mod settings;
pub mod state;
pub mod upkeep;
