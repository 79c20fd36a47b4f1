//! A simulated disk below the engine, every crash that it may go through, and the oracle that
//! judges what is left.
//!
//! [`disk`] remembers each operation in one order, [`crash`] computes what a power cut may leave of
//! it, [`fault`] fails calls, and [`model`] drives the engine over all that and compares with what
//! was acknowledged. [`seeded_bugs`] runs all of it against the bugs that are built in on purpose.
//! The binary `esker-sim` runs them by the million; `docs/reliability.md` says what is promised and
//! what is not covered.
#![forbid(unsafe_code)]

pub mod corruption;
pub mod crash;
pub mod disk;
mod disk_log;
pub mod fault;
pub mod forecasts;
pub mod live_check;
pub mod model;
mod rng;
pub mod run;
pub mod schedules;
pub mod seed_sweep;
pub mod seeded_bugs;
pub mod sim_env;
mod space_plans;
pub mod trial;

pub use rng::Rng;
