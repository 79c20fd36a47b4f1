//! Getting bytes to a disk and back: tables, logs, the MANIFEST, blob files.
//!
//! I/O without policy: what to write and when is decided above; what the bytes mean is said below, in
//! `esker_format`.
#![forbid(unsafe_code)]

pub mod table;
