//! How files are opened, for reading and for writing.

/// How a file will be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Bypass the page cache (`O_DIRECT`): the implementation does the aligning.
    pub direct: bool,
    /// Expect random access: the kernel's own readahead is switched off.
    pub random: bool,
}

/// How long the bytes of a file are expected to stay, beside those of other files of the database:
/// a device that puts bytes of one expectation together has less to move when it makes room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lifetime {
    /// Not known.
    #[default]
    Unknown,
    /// Until the next flush, as a log's.
    Short,
    /// Until the next compaction or the one after it.
    Medium,
    /// Longer than that.
    Long,
    /// Longest of all.
    Extreme,
}

/// How a file will be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// How long its bytes are expected to stay.
    pub lifetime: Lifetime,
    /// Bypass the page cache (`O_DIRECT`): the implementation does the aligning and the buffering.
    pub direct: bool,
    /// Ask the kernel to start write-back after this many bytes (`sync_file_range`); 0 never.
    pub bytes_per_sync: u64,
    /// Bytes collected in memory before a `write` call; 0 passes every append through.
    pub buffer_size: usize,
    /// Bytes reserved ahead of the end (`fallocate`, size unchanged); 0 never.
    pub preallocate: u64,
    /// Fail when the file exists, instead of truncating it.
    pub exclusive: bool,
    /// Have full buffers written by another thread or the kernel while the next one is filled,
    /// where that pays, and sync there when asked to begin; an error shows in a later call. At
    /// least 256 KB are collected then. A filesystem without such threads does everything at once.
    pub background: bool,
    /// Put appended bytes into a shared mapping of the new file, where that is to be had, instead
    /// of calling for each: they survive the process all the same. Not with a buffer and not with
    /// `direct`. Until it is closed the file has zeros behind what was appended.
    pub mapped: bool,
    /// Another file may begin in this one ([`crate::FileSystem::reuse`]): closed it keeps what was
    /// reserved or made ready for it, behind what was appended.
    pub reusable: bool,
}

impl WriteOptions {
    /// Requires that the file does not exist.
    #[must_use]
    pub fn exclusively(self) -> Self {
        WriteOptions {
            exclusive: true,
            ..self
        }
    }
}
