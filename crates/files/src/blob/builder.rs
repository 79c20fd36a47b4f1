//! Building a blob file: values in, blob indexes out. One thread at a time.

use esker_codec::compress::{Codec, Compressor};
use esker_env::WritableFile;
use esker_format::blob::{
    BlobFileFooter, BlobFileHeader, BlobIndex, BlobRecordHeader, RECORD_HEADER_LEN,
};
use esker_format::edit::BlobAddition;
use esker_format::{FamilyId, FileNo};
use esker_status::Result;

/// Writes one blob file. A builder that is dropped unfinished leaves a file that the MANIFEST must
/// not name.
#[derive(Debug)]
pub struct BlobFileBuilder {
    file: Box<dyn WritableFile>,
    number: FileNo,
    compressor: Compressor,
    stored: Vec<u8>,
    addition: BlobAddition,
}

impl BlobFileBuilder {
    /// Starts a file. Every value is stored in the compressor's codec.
    pub fn new(
        mut file: Box<dyn WritableFile>,
        number: FileNo,
        family: FamilyId,
        compressor: Compressor,
    ) -> Result<BlobFileBuilder> {
        let compression = compressor.codec() as u8;
        let header = BlobFileHeader {
            family,
            has_ttl: false,
            compression,
            expiration: (0, 0),
        };
        file.append(&header.encode())?;
        let addition = BlobAddition {
            number,
            ..BlobAddition::default()
        };
        Ok(BlobFileBuilder {
            file,
            number,
            compressor,
            stored: Vec::new(),
            addition,
        })
    }

    /// Adds a value; the index goes into the entry of `user_key`.
    pub fn add(&mut self, user_key: &[u8], value: &[u8]) -> Result<BlobIndex> {
        let codec = self.compressor.codec();
        let stored = if codec == Codec::None {
            value
        } else {
            self.compressor.compress_always(value, &mut self.stored)?;
            &self.stored
        };
        self.file
            .append(&BlobRecordHeader::new(user_key, stored).encode())?;
        self.file.append(user_key)?;
        let offset = self.file.len();
        self.file.append(stored)?;
        self.addition.total_count += 1;
        self.addition.total_bytes += (RECORD_HEADER_LEN + user_key.len() + stored.len()) as u64;
        Ok(BlobIndex::blob(
            self.number,
            offset,
            stored.len() as u64,
            codec as u8,
        ))
    }

    /// Bytes of the file so far.
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// Returns whether no value was added.
    pub fn is_empty(&self) -> bool {
        self.addition.total_count == 0
    }

    /// Writes the footer, syncs and closes; returns what the MANIFEST must say.
    pub fn finish(self) -> Result<BlobAddition> {
        let (addition, mut file) = self.finish_unsynced()?;
        file.sync()?;
        file.close()?;
        Ok(addition)
    }

    /// Writes the footer; returns what the MANIFEST must say, and the file, which is to be synced
    /// and closed before.
    pub fn finish_unsynced(mut self) -> Result<(BlobAddition, Box<dyn WritableFile>)> {
        let blob_count = self.addition.total_count;
        self.file.append(
            &BlobFileFooter {
                blob_count,
                expiration: (0, 0),
            }
            .encode(),
        )?;
        self.file.flush()?;
        Ok((self.addition, self.file))
    }
}
