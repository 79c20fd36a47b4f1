//! Tests of logs.
