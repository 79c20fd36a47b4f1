//! Code made from the specification. The files here are written by `cargo xtask jni`.

#[rustfmt::skip]
pub(crate) mod accessors;
#[rustfmt::skip]
pub(crate) mod refused;
#[rustfmt::skip]
mod signatures;
