//! Memory and bandwidth that databases share: the manager of write buffers and the rate limiter; and how much memory
//! is used for what.

mod buffers;
mod limiter;
mod usage;

pub use buffers::WriteBufferManager;
pub(crate) use buffers::{Member, Relief};
pub use limiter::{IoPriority, RateLimiter, RateLimiterMode, RateLimiterOptions};
pub use usage::MemoryUsage;
