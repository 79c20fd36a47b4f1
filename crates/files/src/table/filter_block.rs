//! The bytes of a filter, or of a partition of one, with the way to ask them.

use esker_format::filter::FilterReader;

/// A filter's bytes and what their end says.
#[derive(Debug)]
pub struct FilterBlock {
    /// The block.
    pub bytes: Vec<u8>,
    /// How to ask it.
    pub reader: FilterReader,
}

impl FilterBlock {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let reader = FilterReader::parse(&bytes);
        FilterBlock { bytes, reader }
    }
}
