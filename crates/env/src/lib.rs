//! The outside world: files, time, threads and randomness, as values that are handed in.
//!
//! Everything above this floor does I/O through [`FileSystem`], reads time through [`Clock`], gets
//! randomness from [`Entropy`] and starts threads through [`Executor`]; so one [`Env`] value
//! decides whether the engine runs on a real disk or inside a simulation.
//!
//! [`PosixFs`] is the real disk, [`MemFs`] a filesystem in memory for tests and caches;
//! [`SystemClock`], [`SystemEntropy`] and [`ThreadExecutor`] are the real rest.
#![deny(unsafe_code)]

mod aligned;
mod contract;
mod dirs;
mod errand;
mod exec;
mod file_options;
mod file_reuse;
mod mem;
mod memory_limit;
mod pool;
mod posix;
mod promise;
mod random_access;
#[allow(unsafe_code)]
mod sys;
mod system;
mod time_slice;
mod write_behind;

pub use aligned::{AlignedBuf, DIRECT_ALIGN, FILE_BUFFERS};
pub use contract::*;
pub use dirs::make_dir;
pub use errand::{Call, Errand};
pub use exec::*;
pub use file_options::*;
pub use file_reuse::{UnnamedFile, reuse_file};
pub use mem::MemFs;
pub use memory_limit::MemoryLimit;
pub use pool::BackgroundIo;
pub use posix::PosixFs;
pub use random_access::{PendingRead, RandomAccessFile, ReadBuffer};
pub use sys::{advise_huge_pages, time_stamp};
pub use system::{SystemClock, SystemEntropy, ThreadExecutor, thread_id};
pub use time_slice::TimeSlice;

use std::sync::Arc;

impl Env {
    /// The machine itself.
    pub fn posix() -> Env {
        Env {
            fs: Arc::new(PosixFs::new()),
            clock: Arc::new(SystemClock::new()),
            entropy: Arc::new(SystemEntropy::new()),
            executor: Arc::new(ThreadExecutor::new()),
        }
    }

    /// Files in memory (a fresh, empty filesystem); time, threads and randomness of the machine.
    pub fn in_memory() -> Env {
        Env {
            fs: Arc::new(MemFs::new()),
            ..Env::posix()
        }
    }
}

#[cfg(test)]
mod tests;
