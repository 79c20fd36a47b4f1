//! Tests of version edits.
