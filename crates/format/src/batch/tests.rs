//! Tests of building and reading batches.
