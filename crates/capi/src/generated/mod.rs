//! Code made from the specification. The files here are written by `cargo xtask capi`.

#[rustfmt::skip]
pub(crate) mod accessors;
#[rustfmt::skip]
pub(crate) mod added;
#[rustfmt::skip]
pub(crate) mod refused;
#[rustfmt::skip]
mod signatures;
#[rustfmt::skip]
pub(crate) mod types;
