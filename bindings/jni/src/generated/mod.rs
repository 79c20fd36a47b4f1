//! What follows from the specification. The files here are written by `cargo xtask jni`.

pub(crate) mod accessors;
pub(crate) mod refused;
mod signatures;
