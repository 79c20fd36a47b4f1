//! Log files: write-ahead logs and the framing of MANIFESTs.
//!
//! [`LogWriter`] frames records into blocks; [`LogReader`] takes them apart and says precisely
//! where and how a file is damaged; [`LogReader::replay`] applies a [`RecoveryMode`] to what was
//! found.

mod reader;
mod recovery;
mod writer;

pub use esker_format::log::{Predecessor, RecoveryMode};
pub use reader::{Damage, LogReader, LogReaderOptions, ReadOutcome};
pub use recovery::{Action, ReplayStep, action_on_damage};
pub use writer::{LogWriter, LogWriterOptions};

#[cfg(test)]
mod tests;
