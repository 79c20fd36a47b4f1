//! Blob files: header, record header, footer, and the index that an entry holds instead of its
//! value.
//!
//! Layouts are fixed-size and little-endian, each guarded by a masked CRC. The offset in a
//! [`BlobIndex`] points at the value, not at the record. Reading and building files happen in the
//! floor above.

use crate::coding::{Reader, fixed32_at, put_fixed32, put_fixed64, put_varint64};
use crate::ids::{FamilyId, FileNo};
use esker_codec::checksum::{crc32c, crc32c_extend, mask};
use esker_status::{Error, Result};

/// The first four bytes of a blob file and of its footer.
pub const MAGIC: u32 = 0x0024_8f37;
/// The version in the header.
pub const VERSION: u32 = 1;
/// Bytes of the file header.
pub const HEADER_LEN: usize = 30;
/// Bytes of a record's header.
pub const RECORD_HEADER_LEN: usize = 32;
/// Bytes of the footer.
pub const FOOTER_LEN: usize = 32;

/// The start of a blob file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobFileHeader {
    /// The family whose values it holds.
    pub family: FamilyId,
    /// True if values expire; not used by integrated blob files.
    pub has_ttl: bool,
    /// The codec of every value.
    pub compression: u8,
    /// Lowest and highest expiration.
    pub expiration: (u64, u64),
}

impl BlobFileHeader {
    /// The encoded header.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_LEN);
        put_fixed32(&mut out, MAGIC);
        put_fixed32(&mut out, VERSION);
        put_fixed32(&mut out, self.family.0);
        out.push(u8::from(self.has_ttl));
        out.push(self.compression);
        put_fixed64(&mut out, self.expiration.0);
        put_fixed64(&mut out, self.expiration.1);
        out
    }

    /// Decodes exactly [`HEADER_LEN`] bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        check_magic(r.fixed32()?, "header")?;
        let version = r.fixed32()?;
        if version != VERSION {
            return Err(Error::corruption(format!(
                "unknown blob file version {version}"
            )));
        }
        let family = FamilyId(r.fixed32()?);
        let has_ttl = r.u8()? & 1 != 0;
        let compression = r.u8()?;
        let expiration = (r.fixed64()?, r.fixed64()?);
        r.finish("a blob file header")?;
        Ok(BlobFileHeader {
            family,
            has_ttl,
            compression,
            expiration,
        })
    }
}

/// The header of one record; key and value follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobRecordHeader {
    /// Bytes of the user key.
    pub key_len: u64,
    /// Bytes of the value as stored.
    pub value_len: u64,
    /// When it expires; 0 never.
    pub expiration: u64,
    /// Masked CRC of key and value.
    pub body_crc: u32,
}

impl BlobRecordHeader {
    /// For this key and stored value.
    pub fn new(key: &[u8], value: &[u8]) -> Self {
        BlobRecordHeader {
            key_len: key.len() as u64,
            value_len: value.len() as u64,
            expiration: 0,
            body_crc: mask(crc32c_extend(crc32c(key), value)),
        }
    }

    /// The encoded header.
    pub fn encode(&self) -> [u8; RECORD_HEADER_LEN] {
        let mut out = [0; RECORD_HEADER_LEN];
        out[..8].copy_from_slice(&self.key_len.to_le_bytes());
        out[8..16].copy_from_slice(&self.value_len.to_le_bytes());
        out[16..24].copy_from_slice(&self.expiration.to_le_bytes());
        let crc = mask(crc32c(&out[..24]));
        out[24..28].copy_from_slice(&crc.to_le_bytes());
        out[28..].copy_from_slice(&self.body_crc.to_le_bytes());
        out
    }

    /// Decodes and verifies the header; the body is verified by [`BlobRecordHeader::verify_body`].
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        let (key_len, value_len, expiration) = (r.fixed64()?, r.fixed64()?, r.fixed64()?);
        let (header_crc, body_crc) = (r.fixed32()?, r.fixed32()?);
        if header_crc != mask(crc32c(&bytes[..24])) {
            return Err(Error::corruption("blob record header checksum mismatch"));
        }
        r.finish("a blob record header")?;
        Ok(BlobRecordHeader {
            key_len,
            value_len,
            expiration,
            body_crc,
        })
    }

    /// Checks key and stored value against lengths and checksum.
    pub fn verify_body(&self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.key_len != key.len() as u64 || self.value_len != value.len() as u64 {
            return Err(Error::corruption(
                "blob record lengths do not match the index",
            ));
        }
        if self.body_crc != mask(crc32c_extend(crc32c(key), value)) {
            return Err(Error::corruption("blob record checksum mismatch"));
        }
        Ok(())
    }
}

/// The end of a properly closed blob file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobFileFooter {
    /// Records in the file.
    pub blob_count: u64,
    /// Lowest and highest expiration.
    pub expiration: (u64, u64),
}

impl BlobFileFooter {
    /// The encoded footer.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_LEN);
        put_fixed32(&mut out, MAGIC);
        put_fixed64(&mut out, self.blob_count);
        put_fixed64(&mut out, self.expiration.0);
        put_fixed64(&mut out, self.expiration.1);
        let crc = mask(crc32c(&out));
        put_fixed32(&mut out, crc);
        out
    }

    /// Decodes exactly [`FOOTER_LEN`] bytes and verifies them.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        check_magic(r.fixed32()?, "footer")?;
        let blob_count = r.fixed64()?;
        let expiration = (r.fixed64()?, r.fixed64()?);
        let at = r.position();
        if Some(mask(crc32c(&bytes[..at]))) != fixed32_at(bytes, at) {
            return Err(Error::corruption("blob file footer checksum mismatch"));
        }
        r.fixed32()?;
        r.finish("a blob file footer")?;
        Ok(BlobFileFooter {
            blob_count,
            expiration,
        })
    }
}

fn check_magic(found: u32, what: &str) -> Result<()> {
    if found == MAGIC {
        return Ok(());
    }
    Err(Error::corruption(format!(
        "bad magic {found:#010x} in a blob file {what}"
    )))
}

/// The value of an entry whose real value is elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlobIndex {
    /// The value itself, with the time it expires at (stacked BlobDB only).
    InlinedTtl {
        /// Unix seconds.
        expiration: u64,
        /// The value.
        value: Vec<u8>,
    },
    /// A value in a blob file.
    Blob {
        /// When it expires, in files with TTL (stacked BlobDB only).
        expiration: Option<u64>,
        /// The blob file; 0 means inside the same table.
        file: FileNo,
        /// Where the stored value starts.
        offset: u64,
        /// Bytes of the stored value.
        size: u64,
        /// The codec of the stored value.
        compression: u8,
    },
}

impl BlobIndex {
    /// The index of a value in an ordinary blob file.
    pub fn blob(file: FileNo, offset: u64, size: u64, compression: u8) -> Self {
        BlobIndex::Blob {
            expiration: None,
            file,
            offset,
            size,
            compression,
        }
    }

    /// The file it points into; `None` for a value that stands in the index itself.
    pub fn file(&self) -> Option<FileNo> {
        match self {
            BlobIndex::Blob { file, .. } => Some(*file),
            BlobIndex::InlinedTtl { .. } => None,
        }
    }

    /// Appends the encoded index.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            BlobIndex::InlinedTtl { expiration, value } => {
                out.push(0);
                put_varint64(out, *expiration);
                out.extend_from_slice(value);
            }
            BlobIndex::Blob {
                expiration,
                file,
                offset,
                size,
                compression,
            } => {
                out.push(if expiration.is_some() { 2 } else { 1 });
                if let Some(at) = expiration {
                    put_varint64(out, *at);
                }
                put_varint64(out, file.0);
                put_varint64(out, *offset);
                put_varint64(out, *size);
                out.push(*compression);
            }
        }
    }

    /// Decodes an index.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        let kind = r.u8()?;
        let expiration = match kind {
            1 => None,
            0 | 2 => Some(r.varint64()?),
            _ => return Err(Error::corruption(format!("unknown blob index kind {kind}"))),
        };
        if let (0, Some(expiration)) = (kind, expiration) {
            return Ok(BlobIndex::InlinedTtl {
                expiration,
                value: r.rest().to_vec(),
            });
        }
        let file = FileNo(r.varint64()?);
        let (offset, size) = (r.varint64()?, r.varint64()?);
        let compression = r.u8()?;
        r.finish("a blob index")?;
        Ok(BlobIndex::Blob {
            expiration,
            file,
            offset,
            size,
            compression,
        })
    }
}

#[cfg(test)]
#[path = "blob_tests.rs"]
mod tests;
