//! The oracle: what the database should hold, driving it, and judging what a crash left.
//!
//! [`settings`] draws options, [`state`] is the model, [`drive`] runs a workload and writes its history, [`judge`] opens an
//! image and compares.

pub mod drive;
pub mod judge;
pub mod settings;
pub mod state;
