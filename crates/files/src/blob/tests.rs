//! Tests of blob files.
