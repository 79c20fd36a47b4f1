//! Tests of MANIFESTs.
