//! Block handles and the footer that ends every table file.
//!
//! Versions 1 to 7 share 53 bytes: checksum type, 40 bytes that changed meaning with version 6,
//! format version, magic. Version 0 has 48 bytes and another magic. Versions 1 to 5 store the
//! handles of the metaindex and the index; from version 6 on the metaindex block ends where the
//! footer begins, the index is found through it, and the footer carries its own checksum.
//! Everything up to 7 is read, 2 to 7 are written. Pure functions of bytes; nothing here trusts a
//! number before checking it.

use crate::coding::{Reader, fixed32_at, fixed64_at, put_varint64};
use esker_codec::ChecksumType;
use esker_codec::checksum::context_modifier;
use esker_status::{Error, Result};

/// Bytes between one block and the next: type byte and checksum.
pub const BLOCK_TRAILER_LEN: usize = 5;
/// The most bytes that a handle takes.
pub const HANDLE_LEN_MAX: usize = 20;
/// Bytes of a footer of version 1 and above; a reader asks for this many from the end of the file.
pub const FOOTER_LEN: usize = 53;
/// Bytes of a version 0 footer: the least a table file can hold.
pub const FOOTER_LEN_V0: usize = 48;
/// The newest version that can be read and written.
pub const FORMAT_VERSION_MAX: u32 = 7;
/// The oldest version that can be written.
pub const FORMAT_VERSION_MIN_WRITTEN: u32 = 2;

/// The last eight bytes of a table file.
pub const MAGIC: u64 = 0x88e2_41b7_85f4_cff7;
/// The magic number of version 0.
pub const MAGIC_V0: u64 = 0xdb47_7524_8b80_fb57;
const MAGIC_PLAIN: [u64; 2] = [0x8242_2296_63bf_9564, 0x4f34_18eb_7a8f_13b8];
const MAGIC_CUCKOO: u64 = 0x9267_89d0_c5f1_7873;
const EXTENDED_MAGIC: [u8; 4] = [0x3e, 0x00, 0x7a, 0x00];

/// Where in a file a block is, without its trailer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockHandle {
    /// File offset of the first byte.
    pub offset: u64,
    /// Bytes as stored, trailer not counted.
    pub size: u64,
}

impl BlockHandle {
    /// No block.
    pub const NULL: BlockHandle = BlockHandle { offset: 0, size: 0 };

    /// Returns whether this names no block.
    pub fn is_null(self) -> bool {
        self == Self::NULL
    }

    /// File offset of the first byte after the block's trailer: where an adjacent block begins.
    /// `None` on overflow.
    #[inline]
    pub fn end(self) -> Option<u64> {
        self.offset
            .checked_add(self.size)?
            .checked_add(BLOCK_TRAILER_LEN as u64)
    }

    /// Appends offset and size as varint64s.
    #[inline]
    pub fn encode_to(self, out: &mut Vec<u8>) {
        put_varint64(out, self.offset);
        put_varint64(out, self.size);
    }

    /// The encoded form.
    pub fn encode(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HANDLE_LEN_MAX);
        self.encode_to(&mut out);
        out
    }

    /// Takes a handle from the front of `reader`. Whether it lies inside the file is for
    /// [`BlockHandle::check_within`].
    #[inline]
    pub fn read(reader: &mut Reader<'_>) -> Result<BlockHandle> {
        Ok(BlockHandle {
            offset: reader.varint64()?,
            size: reader.varint64()?,
        })
    }

    /// Decodes a handle that starts `bytes`; what follows it is ignored.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<BlockHandle> {
        Self::read(&mut Reader::new(bytes))
    }

    /// `Corruption` unless block and trailer end at or before `limit`.
    #[inline]
    pub fn check_within(self, limit: u64) -> Result<()> {
        match self.end() {
            Some(end) if end <= limit => Ok(()),
            _ => Err(Error::corruption(format!(
                "block of {} bytes reaches beyond {limit}",
                self.size
            ))
            .with_offset(self.offset)),
        }
    }
}

/// The footer of a table file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    /// `format_version` of the file.
    pub version: u32,
    /// The checksum in the trailers of blocks.
    pub checksum: ChecksumType,
    /// The block of names and handles that leads to everything else.
    pub metaindex: BlockHandle,
    /// The index; null from version 6 on, where the metaindex entry `rocksdb.index` leads to it.
    pub index: BlockHandle,
    /// The base of context checksums (not 0) from version 6 on; 0 before.
    pub base_context_checksum: u32,
}

impl Footer {
    /// Bytes of this footer in the file.
    pub fn len_in_file(&self) -> usize {
        if self.version == 0 {
            FOOTER_LEN_V0
        } else {
            FOOTER_LEN
        }
    }

    /// The checksum that the block at `offset` should carry.
    #[inline]
    pub fn block_checksum(&self, block: &[u8], type_byte: u8, offset: u64) -> u32 {
        self.checksum
            .compute_with_context(block, type_byte, self.base_context_checksum, offset)
    }

    /// Decodes the footer from the last bytes of a file of `file_size` bytes.
    ///
    /// `tail` must end where the file ends and should hold [`FOOTER_LEN`] bytes or more.
    pub fn decode(tail: &[u8], file_size: u64) -> Result<Footer> {
        let magic = tail
            .len()
            .checked_sub(8)
            .and_then(|at| fixed64_at(tail, at));
        let (len, magic) = match magic {
            Some(MAGIC) => (FOOTER_LEN, MAGIC),
            Some(MAGIC_V0) => (FOOTER_LEN_V0, MAGIC_V0),
            Some(other) => return Err(wrong_magic(other)),
            None => return Err(too_short(tail.len())),
        };
        let Some(bytes) = tail.len().checked_sub(len).map(|at| &tail[at..]) else {
            return Err(too_short(tail.len()));
        };
        let Some(offset) = file_size.checked_sub(len as u64) else {
            return Err(too_short(tail.len()));
        };
        let footer = match magic {
            MAGIC_V0 => Self::decode_handles(0, ChecksumType::Crc32c, &bytes[..40])?,
            _ => Self::decode_versioned(bytes, offset)?,
        };
        footer.metaindex.check_within(offset)?;
        if footer.version < 6 {
            footer.index.check_within(offset)?;
        }
        Ok(footer)
    }

    fn decode_versioned(bytes: &[u8], offset: u64) -> Result<Footer> {
        let checksum = ChecksumType::from_u8(bytes[0]).ok_or_else(|| {
            Error::corruption(format!("unknown checksum type {}", bytes[0])).with_offset(offset)
        })?;
        let version = fixed32_at(bytes, 41).unwrap_or_default();
        match version {
            1..=5 => Self::decode_handles(version, checksum, &bytes[1..41]),
            6..=FORMAT_VERSION_MAX => Self::decode_extended(version, checksum, bytes, offset),
            0 => Err(
                Error::corruption("format version 0 under the newer magic number")
                    .with_offset(offset),
            ),
            _ => Err(
                Error::not_supported(format!("table format version {version}"))
                    .with_offset(offset)
                    .with_hint(format!(
                        "this build reads versions up to {FORMAT_VERSION_MAX}"
                    )),
            ),
        }
    }

    fn decode_handles(version: u32, checksum: ChecksumType, bytes: &[u8]) -> Result<Footer> {
        let mut reader = Reader::new(bytes);
        let metaindex = BlockHandle::read(&mut reader)?;
        let index = BlockHandle::read(&mut reader)?;
        Ok(Footer {
            version,
            checksum,
            metaindex,
            index,
            base_context_checksum: 0,
        })
    }

    fn decode_extended(
        version: u32,
        checksum: ChecksumType,
        bytes: &[u8],
        offset: u64,
    ) -> Result<Footer> {
        let damaged =
            |why: &str| Error::corruption(format!("table footer: {why}")).with_offset(offset);
        let field = |at| fixed32_at(bytes, at).unwrap_or_default();
        if bytes[1..5] != EXTENDED_MAGIC {
            return Err(damaged("wrong extended magic number"));
        }
        let (stored, base, size) = (field(5), field(9), u64::from(field(13)));
        if base == 0 {
            return Err(damaged("base context checksum is 0"));
        }
        if bytes[33..41] != [0; 8] {
            return Err(damaged("reserved bytes are in use"));
        }
        let expected = footer_checksum(checksum, bytes, base, offset);
        if checksum != ChecksumType::None && stored != expected {
            return Err(damaged(&format!(
                "checksum is {stored:#010x}, computed {expected:#010x}"
            )));
        }
        let start = offset.checked_sub(size + BLOCK_TRAILER_LEN as u64);
        let start = start.ok_or_else(|| damaged("metaindex block is larger than the file"))?;
        Ok(Footer {
            version,
            checksum,
            metaindex: BlockHandle {
                offset: start,
                size,
            },
            index: BlockHandle::NULL,
            base_context_checksum: base,
        })
    }

    /// Encodes the footer to be written at file `offset`.
    ///
    /// `InvalidArgument` for a version that is not written, or for fields that the version cannot
    /// carry: from version 6 on the metaindex block must end at `offset` and the base must not be
    /// 0.
    pub fn encode(&self, offset: u64) -> Result<[u8; FOOTER_LEN]> {
        let mut out = [0u8; FOOTER_LEN];
        out[0] = self.checksum as u8;
        out[41..45].copy_from_slice(&self.version.to_le_bytes());
        out[45..].copy_from_slice(&MAGIC.to_le_bytes());
        match self.version {
            FORMAT_VERSION_MIN_WRITTEN..=5 => {
                let mut handles = self.metaindex.encode();
                self.index.encode_to(&mut handles);
                out[1..1 + handles.len()].copy_from_slice(&handles);
            }
            6..=FORMAT_VERSION_MAX => self.encode_extended(&mut out, offset)?,
            other => {
                return Err(Error::invalid_argument(format!(
                    "table format version {other} is not written"
                )));
            }
        }
        Ok(out)
    }

    fn encode_extended(&self, out: &mut [u8; FOOTER_LEN], offset: u64) -> Result<()> {
        let size = match u32::try_from(self.metaindex.size) {
            Ok(size) if self.metaindex.end() == Some(offset) && self.base_context_checksum != 0 => {
                size
            }
            _ => {
                let message = format!(
                    "a version {} footer cannot follow this metaindex block",
                    self.version
                );
                return Err(Error::invalid_argument(message).with_offset(offset));
            }
        };
        out[1..5].copy_from_slice(&EXTENDED_MAGIC);
        out[9..13].copy_from_slice(&self.base_context_checksum.to_le_bytes());
        out[13..17].copy_from_slice(&size.to_le_bytes());
        let checksum = footer_checksum(self.checksum, out, self.base_context_checksum, offset);
        out[5..9].copy_from_slice(&checksum.to_le_bytes());
        Ok(())
    }
}

/// The checksum over the whole footer with its checksum field zeroed, placed in its context.
fn footer_checksum(kind: ChecksumType, bytes: &[u8], base: u32, offset: u64) -> u32 {
    let mut copy = [0u8; FOOTER_LEN];
    copy.copy_from_slice(bytes);
    copy[5..9].fill(0);
    kind.compute_whole(&copy)
        .wrapping_add(context_modifier(base, offset))
}

#[cold]
fn too_short(len: usize) -> Error {
    Error::corruption(format!("file is too short ({len} bytes) to be a table"))
}

#[cold]
fn wrong_magic(magic: u64) -> Error {
    match magic {
        m if MAGIC_PLAIN.contains(&m) => Error::not_supported("plain tables"),
        MAGIC_CUCKOO => Error::not_supported("cuckoo tables"),
        m => Error::corruption(format!(
            "not a table file: magic number {m:#018x}, expected {MAGIC:#018x}"
        )),
    }
}

#[cfg(test)]
mod tests;
