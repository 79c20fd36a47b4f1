//! Switches of a program that loads the C or the Java library and cannot be changed: environment
//! variables of its process, read once, when it opens its first database.
//!
//! `ESKER_STATS` serves what is known about every open database over HTTP (`docs/statistics.md`),
//! `ESKER_MEMORY` bounds the memory of all of them (`docs/guide/3-options.md`). Nothing here is
//! part of the `esker` crate: a Rust program calls [`esker::Db::metrics`] and sets
//! `shared_memory_budget`.
//!
//! The two libraries call [`share_memory`] before they open a database, [`opened`] afterwards, and
//! keep what that returns until they close it. [`switches`] has every variable; a new one is a
//! field there.
//!
//! Rules that hold whatever clients do: a database is neither kept alive nor kept from closing; no
//! key, no value and no secret is shown; what is wrong with `ESKER_STATS` is a warning in the LOG
//! and stops nothing, what is wrong with `ESKER_MEMORY` refuses the open. Unsafe code stands in
//! `sys` alone.
#![deny(unsafe_code)]

mod address;
mod connection;
mod databases;
mod free_pages;
mod listener;
mod memory;
mod page;
mod report;
mod request;
mod server;
mod switches;
#[allow(unsafe_code)]
mod sys;
#[cfg(test)]
mod tests;

pub use address::StatsAddress;
pub use databases::{Databases, OpenDatabase};
pub use memory::{MemorySwitch, automatic_budget, share_memory};
pub use server::{Server, opened};
pub use switches::{Switches, switches};
