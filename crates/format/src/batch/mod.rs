//! Write batches: the unit of atomic writing, and the payload of every log record.
//!
//! Layout: `fixed64 sequence`, `fixed32 count`, then tagged records until the end; see
//! [`tag`]. [`WriteBatch`] builds the bytes, [`BatchReader`] and [`Records`] take them apart with
//! every length checked. The writer, recovery, replication and the tools go through here.

mod memory;
mod records;
mod timestamps;
mod write;

pub use memory::large_batch_bytes;
pub use records::{BatchReader, PrepareKind, Record, Records, unpack_timed};
pub use write::{SavePoint, WriteBatch};

use crate::coding::fixed32_at;
use crate::ids::Seq;

/// Bytes before the first record: sequence and count.
pub const HEADER_LEN: usize = 12;

/// The byte that starts each record. The family forms carry a varint32 family id first.
pub mod tag {
    #![allow(missing_docs)] // The names are the documentation; bodies are parsed in `records`.
    pub const DELETE: u8 = 0x00;
    pub const PUT: u8 = 0x01;
    pub const MERGE: u8 = 0x02;
    pub const LOG_DATA: u8 = 0x03;
    pub const FAMILY_DELETE: u8 = 0x04;
    pub const FAMILY_PUT: u8 = 0x05;
    pub const FAMILY_MERGE: u8 = 0x06;
    pub const SINGLE_DELETE: u8 = 0x07;
    pub const FAMILY_SINGLE_DELETE: u8 = 0x08;
    pub const BEGIN_PREPARE: u8 = 0x09;
    pub const END_PREPARE: u8 = 0x0A;
    pub const COMMIT: u8 = 0x0B;
    pub const ROLLBACK: u8 = 0x0C;
    pub const NOOP: u8 = 0x0D;
    pub const FAMILY_DELETE_RANGE: u8 = 0x0E;
    pub const DELETE_RANGE: u8 = 0x0F;
    pub const FAMILY_BLOB_INDEX: u8 = 0x10;
    pub const BLOB_INDEX: u8 = 0x11;
    pub const BEGIN_PERSISTED_PREPARE: u8 = 0x12;
    pub const BEGIN_UNPREPARE: u8 = 0x13;
    pub const COMMIT_WITH_TIMESTAMP: u8 = 0x15;
    pub const PUT_ENTITY: u8 = 0x16;
    pub const FAMILY_PUT_ENTITY: u8 = 0x17;
    pub const TIMED_PUT: u8 = 0x18;
    pub const FAMILY_TIMED_PUT: u8 = 0x19;
}

/// The twelve bytes that start a batch, for a writer that joins several bodies in one log record.
#[inline]
pub fn encode_header(seq: Seq, count: u32) -> [u8; HEADER_LEN] {
    let mut h = [0; HEADER_LEN];
    h[..8].copy_from_slice(&seq.0.to_le_bytes());
    h[8..].copy_from_slice(&count.to_le_bytes());
    h
}

#[inline]
fn count_of(rep: &[u8]) -> u32 {
    fixed32_at(rep, 8).unwrap_or(0)
}

fn seq_of(rep: &[u8]) -> Seq {
    Seq(crate::coding::fixed64_at(rep, 0).unwrap_or(0))
}

#[cfg(test)]
mod tests;
