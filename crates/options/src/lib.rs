//! The option catalogue, and the objects that options carry.
//!
//! [`options`] has every RocksDB option once, with its fate. Options carry statistics, listeners
//! and loggers ([`observe`]), managers that databases share ([`memory`]) and rate limiters
//! ([`runtime`]); none of these knows the engine. `esker` re-exports what applications need.
#![forbid(unsafe_code)]

pub mod enums;
pub mod memory;
pub mod observe;
pub mod options;
pub mod runtime;
