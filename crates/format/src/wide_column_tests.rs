//! Tests of wide-column entities.
