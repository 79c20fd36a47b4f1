//! Memory, bandwidth and room for files that databases share: the manager of write buffers, the
//! rate limiter and the manager of table files; and how much memory is used for what.

mod buffers;
mod limiter;
mod space;
mod usage;

pub use buffers::WriteBufferManager;
pub(crate) use buffers::{Member, Relief};
pub use limiter::{IoPriority, RateLimiter, RateLimiterMode, RateLimiterOptions};
pub use space::SstFileManager;
pub use usage::MemoryUsage;
