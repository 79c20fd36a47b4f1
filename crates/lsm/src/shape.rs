//! A tree as text, in and out.
