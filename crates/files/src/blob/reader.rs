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

/// Records are joined to one read over a gap of at most this many bytes: a read costs as much as
/// copying several thousand.
const JOINED_GAP: u64 = 4 << 10;

/// Most bytes of one such read.
const JOINED_MAX: u64 = 1 << 20;

/// A value that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct BlobRequest<'a> {
    /// The entry's key, without its timestamp.
    pub user_key: &'a [u8],
    /// Bytes of the timestamp behind the key in the record.
    pub timestamp_size: usize,
    /// The blob index, which the entry holds instead of the value.
    pub index: &'a BlobIndex,
    /// Compare the record's key, lengths and checksums as well.
    pub verify: bool,
}

/// Where the bytes of a value lie: from `start` on `skip` bytes of header and key, then the value.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlobRecordPlace {
    pub(super) start: u64,
    skip: usize,
    size: usize,
}

impl BlobRecordPlace {
    pub(super) fn len(&self) -> usize {
        self.skip + self.size
    }

    fn value_at(&self) -> u64 {
        self.start + self.skip as u64
    }

    fn end(&self) -> u64 {
        self.start + self.len() as u64
    }
}

/// Returns whether one read is better than two for records in the order of their offsets. Large
/// ones are read to where they stay.
fn are_joined(a: &BlobRecordPlace, b: &BlobRecordPlace) -> bool {
    b.start <= a.end() + JOINED_GAP && a.size < LARGE_VALUE && b.size < LARGE_VALUE
}

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
        let request = BlobRequest {
            user_key,
            timestamp_size: 0,
            index,
            verify,
        };
        self.read(&request, out)
    }

    /// Replaces `out` by the value that is asked for. Returns the bytes read from the file.
    pub fn read(&self, request: &BlobRequest<'_>, out: &mut Vec<u8>) -> Result<usize> {
        let place = self.place(request)?;
        // What is stored is the value itself: where a second read is cheaper than a copy, it is
        // read to where it stays.
        if self.codec == Codec::None && place.size >= LARGE_VALUE {
            let value = read_exact(&*self.file, place.value_at(), place.size)?;
            if request.verify {
                let head = read_exact(&*self.file, place.start, place.skip)?;
                self.check_record(&head, &value, request, place.start)?;
            }
            *out = value;
            return Ok(place.len());
        }
        let record = read_exact(&*self.file, place.start, place.len())?;
        self.extract(request, &place, &record, out)?;
        Ok(record.len())
    }

    /// Reads the values that are asked for, in the order of their offsets, and shows each to
    /// `done` with its place among the requests. Records that lie near each other are one read.
    /// Returns the bytes read from the file.
    pub fn read_many(
        &self,
        requests: &[BlobRequest<'_>],
        mut done: impl FnMut(usize, Result<Vec<u8>>),
    ) -> usize {
        let mut places = Vec::with_capacity(requests.len());
        for (at, request) in requests.iter().enumerate() {
            match self.place(request) {
                Ok(place) => places.push((at, place)),
                Err(e) => done(at, Err(e)),
            }
        }
        places.sort_unstable_by_key(|(_, place)| place.start);
        let mut bytes = 0;
        for group in places.chunk_by(|(_, a), (_, b)| are_joined(a, b)) {
            bytes += self.read_group(requests, group, &mut done);
        }
        bytes
    }

    /// Reads records that lie near each other at once. Where that fails, each is read by itself.
    fn read_group(
        &self,
        requests: &[BlobRequest<'_>],
        mut group: &[(usize, BlobRecordPlace)],
        done: &mut impl FnMut(usize, Result<Vec<u8>>),
    ) -> usize {
        let mut bytes = 0;
        while let Some((_, first)) = group.first() {
            let fits = |(_, p): &&(usize, BlobRecordPlace)| p.end() - first.start <= JOINED_MAX;
            let count = group.iter().take_while(fits).count().max(1);
            let (now, later) = group.split_at(count);
            group = later;
            let end = now
                .iter()
                .map(|(_, p)| p.end())
                .max()
                .unwrap_or(first.end());
            let joined = match now.len() {
                1 => None,
                _ => read_exact(&*self.file, first.start, (end - first.start) as usize).ok(),
            };
            bytes += joined.as_ref().map_or(0, Vec::len);
            for (at, place) in now {
                let request = &requests[*at];
                let mut value = Vec::new();
                let read = match &joined {
                    Some(all) => {
                        let from = (place.start - first.start) as usize;
                        let record = &all[from..from + place.len()];
                        self.extract(request, place, record, &mut value)
                    }
                    None => (self.read(request, &mut value)).map(|n| bytes += n),
                };
                done(*at, read.map(|()| value));
            }
        }
        bytes
    }

    /// Where the record lies that is asked for: all of it, or its value, which is enough where
    /// nothing is compared.
    pub(super) fn place(&self, request: &BlobRequest<'_>) -> Result<BlobRecordPlace> {
        let BlobIndex::Blob {
            expiration: None,
            file,
            offset,
            size,
            compression,
        } = *request.index
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
        let before = RECORD_HEADER_LEN + request.user_key.len() + request.timestamp_size;
        let size = self.check_range(offset, size, before)?;
        let skip = if request.verify { before } else { 0 };
        let start = offset - skip as u64;
        Ok(BlobRecordPlace { start, skip, size })
    }

    /// Replaces `out` by the value in the bytes at `place`.
    pub(super) fn extract(
        &self,
        request: &BlobRequest<'_>,
        place: &BlobRecordPlace,
        record: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let (head, stored) = record.split_at(place.skip);
        if request.verify {
            self.check_record(head, stored, request, place.start)?;
        }
        decompress(self.codec, stored, None, MAX_VALUE_LEN, out)
            .map_err(|e| at(&*self.file, e, place.value_at()))
    }

    /// The bytes of the file from `start` on, fewer than `len` where its records end before.
    pub(super) fn stretch(&self, start: u64, len: usize) -> Result<Vec<u8>> {
        let end = self.file.len() - FOOTER_LEN as u64;
        let len = usize::try_from(end.saturating_sub(start)).map_or(len, |rest| rest.min(len));
        self.file.read_to_vec(start, len)
    }

    /// Holds a record at `start` against its checksums, and its key against the one asked for.
    fn check_record(
        &self,
        head: &[u8],
        stored: &[u8],
        request: &BlobRequest<'_>,
        start: u64,
    ) -> Result<()> {
        let (header, key) = head.split_at(RECORD_HEADER_LEN);
        BlobRecordHeader::decode(header)
            .and_then(|h| h.verify_body(key, stored))
            .map_err(|e| at(&*self.file, e, start))?;
        if key.get(..request.user_key.len()) != Some(request.user_key) {
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
