//! Tests of CURRENT.
