//! The outside world: files, time, threads and randomness, as values that are handed in.
//!
//! Everything above this floor does I/O through [`FileSystem`], reads time through [`Clock`], gets
//! randomness from [`Entropy`] and starts threads through [`Executor`]; so one [`Env`] value decides
//! whether the engine runs on a real disk or inside a simulation.

mod contract;

pub use contract::*;
