//! Tests of the blob encodings.
