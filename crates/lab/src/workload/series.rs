//! The parameters of `timeseries`.

use crate::flags::Flags;
use crate::{Failure, Result};

/// How many series there are, and what is done with what is old.
#[derive(Debug, Clone, Copy, Default)]
pub struct Series {
    /// Series.
    pub(super) count: u64,
    /// Ticks after which an entry is old.
    pub(super) range: u64,
    /// Threads that delete what is old.
    pub(super) deleters: usize,
}

impl Series {
    /// Resolves the flags.
    ///
    /// # Errors
    /// A way to expire that is not offered.
    pub fn from_flags(flags: &Flags) -> Result<Series> {
        let deleters = match flags.text("expire_style") {
            "none" => 0,
            "delete" => flags.count("num_deletion_threads") as usize,
            other => {
                return Err(Failure::new(format!(
                    "--expire_style={other}: none and delete are offered"
                )));
            }
        };
        Ok(Series {
            count: flags.count("key_id_range").max(1),
            range: flags.count("time_range"),
            deleters,
        })
    }
}
