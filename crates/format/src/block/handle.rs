//! Where a block stands in its file.

/// Offset and size of a block; the size leaves out the five bytes of trailer that follow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockHandle {
    /// First byte.
    pub offset: u64,
    /// Stored bytes.
    pub size: u64,
}
