//! Tests of the OPTIONS grammar.
