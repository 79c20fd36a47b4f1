//! MANIFESTs: logs of version edits.
//!
//! [`ManifestWriter`] appends edits and syncs; [`ManifestReader`] yields them grouped as they take
//! effect. Reading is strict: anything but a torn last record is `Corruption` with file and offset.

mod newest;
mod reader;
mod writer;

pub use newest::{check_newest, was_current};
pub use reader::{EditGroup, ManifestReader};
pub use writer::ManifestWriter;

#[cfg(test)]
mod tests;
