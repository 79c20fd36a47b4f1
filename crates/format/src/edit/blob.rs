//! The parts of an edit about blob files.

use crate::blob_groups::BlobTier;
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
    /// Values that it is for, where that was said.
    pub tier: BlobTier,
}

impl BlobAddition {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint64(out, self.number.0);
        put_varint64(out, self.total_count);
        put_varint64(out, self.total_bytes);
        put_lpstr(out, self.checksum_method.as_bytes());
        put_lpstr(out, &self.checksum_value);
        if let Some(tier) = self.tier.encode() {
            put_varint32(out, BlobTier::FIELD);
            put_lpstr(out, &tier);
        }
        put_varint32(out, END);
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self> {
        let mut addition = BlobAddition {
            number: FileNo(r.varint64()?),
            total_count: r.varint64()?,
            total_bytes: r.varint64()?,
            checksum_method: r.lptext()?.to_owned(),
            checksum_value: r.lpstr()?.to_vec(),
            tier: BlobTier::Unknown,
        };
        custom_fields(r, |field, bytes| {
            if field == BlobTier::FIELD {
                addition.tier = BlobTier::decode(bytes)?;
            }
            Ok(())
        })?;
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
        custom_fields(r, |_, _| Ok(()))?;
        Ok(garbage)
    }
}

/// Shows each custom field to `take`.
fn custom_fields(r: &mut Reader<'_>, mut take: impl FnMut(u32, &[u8]) -> Result<()>) -> Result<()> {
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
        take(field, r.lpstr()?)?;
    }
}
