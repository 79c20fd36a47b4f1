//! The engine: the tree over time.
#![forbid(unsafe_code)]

pub mod observe;
pub mod options;
