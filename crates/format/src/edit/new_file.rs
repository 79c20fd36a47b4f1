//! A table as an edit describes it: the fixed part and the custom fields of "new file 4".

use crate::coding::{Reader, put_fixed64, put_lpstr, put_varint32, put_varint64};
use crate::ids::{FileNo, Level, Seq};
use crate::key::InternalKey;
use esker_status::{Error, Result};

/// The checksum function's name when there is no checksum.
pub const UNKNOWN_CHECKSUM: &str = "Unknown";

mod field {
    pub(super) const END: u32 = 1;
    pub(super) const NEED_COMPACTION: u32 = 2;
    pub(super) const MIN_LOG_NUMBER_TO_KEEP: u32 = 3;
    pub(super) const OLDEST_BLOB_FILE: u32 = 4;
    pub(super) const OLDEST_ANCESTOR_TIME: u32 = 5;
    pub(super) const CREATION_TIME: u32 = 6;
    pub(super) const CHECKSUM: u32 = 7;
    pub(super) const CHECKSUM_FUNCTION: u32 = 8;
    pub(super) const TEMPERATURE: u32 = 9;
    pub(super) const MIN_TIMESTAMP: u32 = 10;
    pub(super) const MAX_TIMESTAMP: u32 = 11;
    pub(super) const UNIQUE_ID: u32 = 12;
    pub(super) const EPOCH_NUMBER: u32 = 13;
    pub(super) const COMPENSATED_RANGE_DELETION_SIZE: u32 = 14;
    pub(super) const TAIL_SIZE: u32 = 15;
    pub(super) const TIMESTAMPS_PERSISTED: u32 = 16;
    pub(super) const OPEN_METADATA: u32 = 17;
    pub(super) const INCOMPATIBLE_MASK: u32 = 1 << 6;
    pub(super) const PATH_ID: u32 = 65;
}

/// A table file and everything the MANIFEST says about it.
#[derive(Clone, Debug, PartialEq)]
pub struct NewFile {
    /// The file.
    pub number: FileNo,
    /// Which of the database's paths holds it: 0 to 3.
    pub path_id: u32,
    /// Bytes of the file.
    pub size: u64,
    /// At or before every entry and tombstone.
    pub smallest: InternalKey,
    /// At or after every entry and tombstone; may be a range-end sentinel.
    pub largest: InternalKey,
    /// The smallest sequence in it.
    pub smallest_seq: Seq,
    /// The largest sequence in it.
    pub largest_seq: Seq,
    /// True if its builder asked for a compaction.
    pub marked_for_compaction: bool,
    /// The oldest blob file that its entries name; must be set when they name any.
    pub oldest_blob_file: Option<FileNo>,
    /// Unix seconds; 0 when unknown.
    pub oldest_ancestor_time: u64,
    /// Unix seconds; 0 when unknown.
    pub creation_time: u64,
    /// The whole-file checksum; empty when unknown.
    pub checksum: Vec<u8>,
    /// The name of its function; [`UNKNOWN_CHECKSUM`] when there is none.
    pub checksum_function: String,
    /// RocksDB's temperature number; 0 unknown.
    pub temperature: u8,
    /// The smallest user-defined timestamp; empty without.
    pub min_timestamp: Vec<u8>,
    /// The largest user-defined timestamp; empty without.
    pub max_timestamp: Vec<u8>,
    /// The table's unique id; absent means not checked.
    pub unique_id: Option<[u64; 2]>,
    /// Orders the files of level 0: higher is newer; 0 unknown.
    pub epoch_number: u64,
    /// An estimate of what the file's range tombstones cover.
    pub compensated_range_deletion_size: u64,
    /// Bytes from the end of the data blocks to the end of the file; 0 unknown.
    pub tail_size: u64,
    /// True if keys in the file carry their user-defined timestamps.
    pub timestamps_persisted: bool,
    /// Opaque bytes that speed up opening.
    pub open_metadata: Vec<u8>,
}

impl Default for NewFile {
    fn default() -> Self {
        NewFile {
            number: FileNo(0),
            path_id: 0,
            size: 0,
            smallest: InternalKey::default(),
            largest: InternalKey::default(),
            smallest_seq: Seq::ZERO,
            largest_seq: Seq::ZERO,
            marked_for_compaction: false,
            oldest_blob_file: None,
            oldest_ancestor_time: 0,
            creation_time: 0,
            checksum: Vec::new(),
            checksum_function: UNKNOWN_CHECKSUM.to_owned(),
            temperature: 0,
            min_timestamp: Vec::new(),
            max_timestamp: Vec::new(),
            unique_id: None,
            epoch_number: 0,
            compensated_range_deletion_size: 0,
            tail_size: 0,
            timestamps_persisted: true,
            open_metadata: Vec::new(),
        }
    }
}

fn put_number_field(out: &mut Vec<u8>, id: u32, v: u64) {
    put_varint32(out, id);
    put_varint32(out, crate::coding::varint_len(v) as u32);
    put_varint64(out, v);
}

fn put_bytes_field(out: &mut Vec<u8>, id: u32, bytes: &[u8]) {
    put_varint32(out, id);
    put_lpstr(out, bytes);
}

impl NewFile {
    /// Appends level, fixed part and custom fields, in the order that RocksDB writes them.
    pub(super) fn encode(&self, level: Level, min_log: Option<FileNo>, out: &mut Vec<u8>) {
        put_varint32(out, u32::from(level.0));
        put_varint64(out, self.number.0);
        put_varint64(out, self.size);
        put_lpstr(out, self.smallest.as_bytes());
        put_lpstr(out, self.largest.as_bytes());
        put_varint64(out, self.smallest_seq.0);
        put_varint64(out, self.largest_seq.0);
        put_number_field(out, field::OLDEST_ANCESTOR_TIME, self.oldest_ancestor_time);
        put_number_field(out, field::CREATION_TIME, self.creation_time);
        // RocksDB 11 re-derives all epoch numbers when one is missing or 0.
        if self.epoch_number != 0 {
            put_number_field(out, field::EPOCH_NUMBER, self.epoch_number);
        }
        if self.checksum_function != UNKNOWN_CHECKSUM || !self.checksum.is_empty() {
            put_bytes_field(out, field::CHECKSUM, &self.checksum);
            put_bytes_field(
                out,
                field::CHECKSUM_FUNCTION,
                self.checksum_function.as_bytes(),
            );
        }
        if self.path_id != 0 {
            put_bytes_field(out, field::PATH_ID, &[self.path_id as u8]);
        }
        if self.temperature != 0 {
            put_bytes_field(out, field::TEMPERATURE, &[self.temperature]);
        }
        if self.marked_for_compaction {
            put_bytes_field(out, field::NEED_COMPACTION, &[1]);
        }
        if let Some(n) = min_log {
            // The one number of an edit that is not a varint.
            put_varint32(out, field::MIN_LOG_NUMBER_TO_KEEP);
            put_varint32(out, 8);
            put_fixed64(out, n.0);
        }
        if let Some(n) = self.oldest_blob_file {
            put_number_field(out, field::OLDEST_BLOB_FILE, n.0);
        }
        if let Some([a, b]) = self.unique_id {
            put_varint32(out, field::UNIQUE_ID);
            put_varint32(out, 16);
            put_fixed64(out, a);
            put_fixed64(out, b);
        }
        if self.compensated_range_deletion_size != 0 {
            let id = field::COMPENSATED_RANGE_DELETION_SIZE;
            put_number_field(out, id, self.compensated_range_deletion_size);
        }
        if self.tail_size != 0 {
            put_number_field(out, field::TAIL_SIZE, self.tail_size);
        }
        if !self.timestamps_persisted {
            put_bytes_field(out, field::TIMESTAMPS_PERSISTED, &[0]);
        }
        for (id, bytes) in [
            (field::MIN_TIMESTAMP, &self.min_timestamp),
            (field::MAX_TIMESTAMP, &self.max_timestamp),
            (field::OPEN_METADATA, &self.open_metadata),
        ] {
            if !bytes.is_empty() {
                put_bytes_field(out, id, bytes);
            }
        }
        put_varint32(out, field::END);
    }

    /// Reads the body of a "new file 4"; the second value is the edit's min log number, if it is
    /// here.
    pub(super) fn decode_4(r: &mut Reader<'_>) -> Result<(Level, NewFile, Option<FileNo>)> {
        let level = level(r)?;
        let mut f = NewFile {
            number: file_no(r)?,
            size: r.varint64()?,
            ..NewFile::default()
        };
        f.boundaries(r)?;
        f.sequences(r)?;
        let mut min_log = None;
        loop {
            let id = r.varint32()?;
            if id == field::END {
                return Ok((level, f, min_log));
            }
            let value = r.lpstr()?;
            if id == field::MIN_LOG_NUMBER_TO_KEEP {
                min_log = Some(FileNo(Reader::new(value).fixed64()?));
            } else {
                f.custom(id, value)?;
            }
        }
    }

    /// Reads the older forms: `path` and `seqs` say which parts they have.
    pub(super) fn decode_old(
        r: &mut Reader<'_>,
        path: bool,
        seqs: bool,
    ) -> Result<(Level, NewFile)> {
        let level = level(r)?;
        let mut f = NewFile {
            number: file_no(r)?,
            ..NewFile::default()
        };
        if path {
            f.path_id = r.varint32()?;
            check_path(f.path_id)?;
        }
        f.size = r.varint64()?;
        f.boundaries(r)?;
        if seqs {
            f.sequences(r)?;
        }
        Ok((level, f))
    }

    fn boundaries(&mut self, r: &mut Reader<'_>) -> Result<()> {
        self.smallest = InternalKey::from_encoded(r.lpstr()?)?;
        self.largest = InternalKey::from_encoded(r.lpstr()?)?;
        Ok(())
    }

    fn sequences(&mut self, r: &mut Reader<'_>) -> Result<()> {
        self.smallest_seq = Seq(r.varint64()?);
        self.largest_seq = Seq(r.varint64()?);
        if self.smallest_seq > Seq::MAX || self.largest_seq > Seq::MAX {
            return Err(Error::corruption(
                "new file: a sequence does not fit 56 bits",
            ));
        }
        Ok(())
    }

    fn custom(&mut self, id: u32, value: &[u8]) -> Result<()> {
        match id {
            field::NEED_COMPACTION => self.marked_for_compaction = byte(id, value)? == 1,
            field::OLDEST_BLOB_FILE => {
                let n = number(value)?;
                self.oldest_blob_file = (n != 0).then_some(FileNo(n));
            }
            field::OLDEST_ANCESTOR_TIME => self.oldest_ancestor_time = number(value)?,
            field::CREATION_TIME => self.creation_time = number(value)?,
            field::CHECKSUM => self.checksum = value.to_vec(),
            field::CHECKSUM_FUNCTION => {
                self.checksum_function = String::from_utf8_lossy(value).into_owned();
            }
            field::TEMPERATURE => self.temperature = byte(id, value)?,
            field::MIN_TIMESTAMP => self.min_timestamp = value.to_vec(),
            field::MAX_TIMESTAMP => self.max_timestamp = value.to_vec(),
            field::UNIQUE_ID => {
                let mut r = Reader::new(value);
                let unique = [r.fixed64()?, r.fixed64()?];
                r.finish("a unique id")?;
                self.unique_id = (unique != [0, 0]).then_some(unique);
            }
            field::EPOCH_NUMBER => self.epoch_number = number(value)?,
            field::COMPENSATED_RANGE_DELETION_SIZE => {
                self.compensated_range_deletion_size = number(value)?;
            }
            field::TAIL_SIZE => self.tail_size = number(value)?,
            field::TIMESTAMPS_PERSISTED => self.timestamps_persisted = byte(id, value)? == 1,
            field::OPEN_METADATA => self.open_metadata = value.to_vec(),
            field::PATH_ID => {
                self.path_id = u32::from(byte(id, value)?);
                check_path(self.path_id)?;
            }
            _ if id & field::INCOMPATIBLE_MASK != 0 => {
                return Err(Error::corruption(format!(
                    "new file: custom field {id} is not supported and may not be ignored"
                )));
            }
            _ => {}
        }
        Ok(())
    }
}

fn number(value: &[u8]) -> Result<u64> {
    Reader::new(value).varint64()
}

fn byte(id: u32, value: &[u8]) -> Result<u8> {
    match value {
        [b] => Ok(*b),
        _ => Err(Error::corruption(format!(
            "new file: field {id} has {} bytes, not 1",
            value.len()
        ))),
    }
}

fn check_path(id: u32) -> Result<()> {
    if id <= 3 {
        return Ok(());
    }
    Err(Error::corruption(format!(
        "new file: path id {id} is above 3"
    )))
}

pub(super) fn level(r: &mut Reader<'_>) -> Result<Level> {
    let v = r.varint32()?;
    u8::try_from(v)
        .map(Level)
        .map_err(|_| Error::corruption(format!("level {v} cannot exist")))
}

pub(super) fn file_no(r: &mut Reader<'_>) -> Result<FileNo> {
    let n = FileNo(r.varint64()?);
    if n < FileNo::LIMIT {
        return Ok(n);
    }
    Err(Error::corruption(format!("file number {n} cannot exist")))
}
