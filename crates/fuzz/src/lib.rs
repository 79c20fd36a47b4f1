//! Hostile bytes for every decoder, and for a whole directory.
//!
//! A [`Target`] is a plain function of bytes that panics when a promise is broken: no panic, an
//! answer in bounded time and memory, and what was decoded encodes to something that decodes to the
//! same. [`targets::all`] is the table. An input is changed by [`mutate`], which knows the formats
//! well enough to repair checksums, so that damage gets past them;
//! [`drive`] runs one target, shrinks what fails and counts. The binary `esker-fuzz` puts a process
//! around each target, so that a hang or a dead process is a finding like any other.
//!
//! The corpus (`corpus/TARGET/NAME`) is written by `esker-fuzz --write-corpus` from our own
//! writers; files whose names start with `found-` are inputs that once failed.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
pub mod memory;

pub mod drive;
pub mod input;
pub mod mutate;
pub mod parts;
pub mod repair;
pub mod targets;

pub use targets::Target;
