//! Reading values from a blob file. The header and footer are checked at the open, every value
//! against its record when asked. Readers are shared between threads; a read allocates only its
//! result.

use esker_codec::compress::{Codec, decompress};
use esker_env::{FileSystem, RandomAccessFile, ReadOptions};
use esker_format::blob::{
    BlobFileFooter, BlobFileHeader, BlobIndex, BlobRecordHeader, FOOTER_LEN, HEADER_LEN,
    RECORD_HEADER_LEN,
};
use esker_format::{FamilyId, FileNo};
use esker_status::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// Values are below 4 GiB.
const MAX_VALUE_LEN: usize = u32::MAX as usize;

/// A value of at least this many bytes is not copied.
const LARGE_VALUE: usize = 64 << 10;

/// An open blob file.
#[derive(Debug)]
pub struct BlobFileReader {
    file: Arc<dyn RandomAccessFile>,
    number: FileNo,
    codec: Codec,
    blob_count: u64,
}

impl BlobFileReader {
    /// Opens a blob file of `family` and checks its header and footer.
    pub fn open(
        fs: &dyn FileSystem,
        path: &Path,
        number: FileNo,
        family: FamilyId,
    ) -> Result<BlobFileReader> {
        let file = fs.open_read(
            path,
            ReadOptions {
                random: true,
                ..ReadOptions::default()
            },
        )?;
        Self::over(file, number, family)
    }

    /// Makes a reader of a file that is open already.
    pub fn over(
        file: Arc<dyn RandomAccessFile>,
        number: FileNo,
        family: FamilyId,
    ) -> Result<BlobFileReader> {
        let len = file.len();
        if len < (HEADER_LEN + FOOTER_LEN) as u64 {
            return Err(at(
                &*file,
                Error::corruption(format!("a blob file of {len} bytes")),
                0,
            ));
        }
        let bytes = read_exact(&*file, 0, HEADER_LEN)?;
        let header = BlobFileHeader::decode(&bytes).map_err(|e| at(&*file, e, 0))?;
        if header.family != family {
            let message = format!(
                "the blob file belongs to family {}, not {family}",
                header.family
            );
            return Err(at(&*file, Error::corruption(message), 8));
        }
        if header.has_ttl {
            return Err(at(
                &*file,
                Error::corruption("unexpected TTL blob file"),
                12,
            ));
        }
        let codec = Codec::from_u8(header.compression).ok_or_else(|| {
            let message = format!(
                "unknown compression type {} of a blob file",
                header.compression
            );
            at(&*file, Error::corruption(message), 13)
        })?;
        let footer_at = len - FOOTER_LEN as u64;
        let bytes = read_exact(&*file, footer_at, FOOTER_LEN)?;
        let footer = BlobFileFooter::decode(&bytes).map_err(|e| at(&*file, e, footer_at))?;
        Ok(BlobFileReader {
            file,
            number,
            codec,
            blob_count: footer.blob_count,
        })
    }

    /// The file's number.
    pub fn number(&self) -> FileNo {
        self.number
    }

    /// The codec of every value.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Records in the file.
    pub fn blob_count(&self) -> u64 {
        self.blob_count
    }

    /// Replaces `out` by the value that `index` names. With `verify` the record's key, lengths and
    /// checksums are compared as well. Returns the bytes read from the file.
    pub fn get(
        &self,
        user_key: &[u8],
        index: &BlobIndex,
        verify: bool,
        out: &mut Vec<u8>,
    ) -> Result<usize> {
        let BlobIndex::Blob {
            expiration: None,
            file,
            offset,
            size,
            compression,
        } = *index
        else {
            return Err(at(
                &*self.file,
                Error::corruption("unexpected TTL or inlined blob index"),
                0,
            ));
        };
        if file != self.number {
            let message = format!(
                "a blob index of file {file} was read from file {}",
                self.number
            );
            return Err(at(&*self.file, Error::corruption(message), offset));
        }
        if compression != self.codec as u8 {
            let message = "compression type of a blob index does not match its file";
            return Err(at(&*self.file, Error::corruption(message), offset));
        }
        let before = RECORD_HEADER_LEN + user_key.len();
        let size = self.check_range(offset, size, before)?;
        let skip = if verify { before } else { 0 };
        let start = offset - skip as u64;
        // What is stored is the value itself: where a second read is cheaper than a copy, it is
        // read to where it stays.
        if self.codec == Codec::None && size >= LARGE_VALUE {
            let value = read_exact(&*self.file, offset, size)?;
            if verify {
                let head = read_exact(&*self.file, start, skip)?;
                self.check_record(&head, &value, user_key, start)?;
            }
            *out = value;
            return Ok(skip + size);
        }
        let record = read_exact(&*self.file, start, skip + size)?;
        let (head, stored) = record.split_at(skip);
        if verify {
            self.check_record(head, stored, user_key, start)?;
        }
        decompress(self.codec, stored, None, MAX_VALUE_LEN, out)
            .map_err(|e| at(&*self.file, e, offset))?;
        Ok(record.len())
    }

    /// Holds a record at `start` against its checksums, and its key against `user_key`.
    fn check_record(&self, head: &[u8], stored: &[u8], user_key: &[u8], start: u64) -> Result<()> {
        let (header, key) = head.split_at(RECORD_HEADER_LEN);
        BlobRecordHeader::decode(header)
            .and_then(|h| h.verify_body(key, stored))
            .map_err(|e| at(&*self.file, e, start))?;
        if key != user_key {
            let message = "the blob record's key is not the entry's";
            return Err(at(&*self.file, Error::corruption(message), start));
        }
        Ok(())
    }

    /// Checks that header, key and value lie between the file's header and footer.
    fn check_range(&self, offset: u64, size: u64, before: usize) -> Result<usize> {
        let first = (HEADER_LEN + before) as u64;
        let end = self.file.len() - FOOTER_LEN as u64;
        let fits = offset >= first && offset.checked_add(size).is_some_and(|e| e <= end);
        match usize::try_from(size) {
            Ok(size) if fits && size <= MAX_VALUE_LEN => Ok(size),
            _ => Err(at(
                &*self.file,
                Error::corruption("a blob index points outside its file"),
                offset,
            )),
        }
    }
}

fn read_exact(file: &dyn RandomAccessFile, offset: u64, len: usize) -> Result<Vec<u8>> {
    let bytes = file.read_to_vec(offset, len)?;
    if bytes.len() == len {
        return Ok(bytes);
    }
    let message = format!("the blob file ends after {} of {len} bytes", bytes.len());
    Err(at(file, Error::corruption(message), offset))
}

fn at(file: &dyn RandomAccessFile, e: Error, offset: u64) -> Error {
    e.with_file(file.path()).with_offset(offset)
}
