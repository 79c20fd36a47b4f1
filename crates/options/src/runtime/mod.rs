//! Primitives that know nothing of the engine: the condition variable of background work and its
//! threads, the rate limiter of jobs, the abort of compactions, the mark of a thread that is in a
//! listener, and the timing of automatic resumes.

mod background_cv;
pub mod callback;
mod compaction_abort;
mod job_limiter;
mod rate_limiter;
mod resume_backoff;
pub mod whole_files;
pub mod work_signal;

pub use background_cv::{AtWork, BackgroundCv};
pub use compaction_abort::CompactionAbort;
pub use job_limiter::JobLimiter;
pub use rate_limiter::{IoPriority, RateLimiter, RateLimiterMode, RateLimiterOptions};
pub use resume_backoff::ResumeBackoff;
