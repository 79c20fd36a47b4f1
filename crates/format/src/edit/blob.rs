//! The parts of an edit about blob files.

use crate::coding::{Reader, put_lpstr, put_varint32, put_varint64};
use crate::ids::FileNo;
use esker_status::{Error, Result};

const END: u32 = 0;
const INCOMPATIBLE_MASK: u32 = 1 << 6;

/// A new blob file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobAddition {
    /// The file.
    pub number: FileNo,
    /// Records in it.
    pub total_count: u64,
    /// Bytes of the records: 32 + key + stored value each.
    pub total_bytes: u64,
    /// The name of the whole-file checksum; empty when there is none.
    pub checksum_method: String,
    /// The whole-file checksum.
    pub checksum_value: Vec<u8>,
}

impl BlobAddition {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint64(out, self.number.0);
        put_varint64(out, self.total_count);
        put_varint64(out, self.total_bytes);
        put_lpstr(out, self.checksum_method.as_bytes());
        put_lpstr(out, &self.checksum_value);
        put_varint32(out, END);
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self> {
        let addition = BlobAddition {
            number: FileNo(r.varint64()?),
            total_count: r.varint64()?,
            total_bytes: r.varint64()?,
            checksum_method: r.lptext()?.to_owned(),
            checksum_value: r.lpstr()?.to_vec(),
        };
        skip_custom_fields(r)?;
        Ok(addition)
    }
}

/// More garbage in a blob file: increments, in the units of [`BlobAddition`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobGarbage {
    /// The file.
    pub number: FileNo,
    /// Records that became garbage.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl BlobGarbage {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint64(out, self.number.0);
        put_varint64(out, self.count);
        put_varint64(out, self.bytes);
        put_varint32(out, END);
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self> {
        let garbage = BlobGarbage {
            number: FileNo(r.varint64()?),
            count: r.varint64()?,
            bytes: r.varint64()?,
        };
        skip_custom_fields(r)?;
        Ok(garbage)
    }
}

fn skip_custom_fields(r: &mut Reader<'_>) -> Result<()> {
    loop {
        let field = r.varint32()?;
        if field == END {
            return Ok(());
        }
        if field & INCOMPATIBLE_MASK != 0 {
            return Err(Error::corruption(format!(
                "blob file edit: custom field {field} may not be ignored"
            )));
        }
        r.lpstr()?;
    }
}
