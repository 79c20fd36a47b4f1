//! Getting bytes to a disk and back: logs, MANIFESTs, blob files, tables and the small files beside
//! them.
//!
//! I/O without policy: what a file holds is decided above, what bytes mean is decided below, in
//! `esker-format`. Everything goes through the traits of `esker-env`.
#![forbid(unsafe_code)]

pub mod blob;
pub mod current;
pub mod identity;
pub mod log;
pub mod manifest;
pub mod saved_cache;
pub mod table;
pub mod temp_file;
