//! What follows from the specification. The files here are written by `cargo xtask capi`.

pub(crate) mod accessors;
pub(crate) mod refused;
mod signatures;
pub(crate) mod types;
