//! Repository tasks: `cargo xtask tidy` and friends.
fn main() {}
