//! Placeholder until the crate's owner lands its first step.
