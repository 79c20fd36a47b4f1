//! The framing of log files: write-ahead logs and MANIFESTs.
//!
//! A file is a sequence of [`BLOCK_SIZE`] blocks; a physical record never crosses a block.
//! Constants, record types and the bodies of the special records; the reader and writer are in the
//! floor above.

use crate::coding::{Reader, put_fixed16, put_fixed32, put_fixed64};
use crate::ids::{FamilyId, FileNo, Seq};
use esker_status::{Error, Result};

/// Bytes of a block.
pub const BLOCK_SIZE: usize = 32768;
/// Header of most records: masked CRC (4), payload length (2), type (1).
pub const HEADER_LEN: usize = 7;
/// Header of records in files that may be reused: the same and the low half of the log number (4).
pub const RECYCLABLE_HEADER_LEN: usize = 11;
/// Unknown types with this bit may be skipped.
pub const IGNORABLE_MASK: u8 = 0x80;

/// The type of a physical record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordType {
    /// Preallocated space.
    Zero = 0,
    /// A whole record.
    Full = 1,
    /// The start of one.
    First = 2,
    /// The middle of one.
    Middle = 3,
    /// The end of one.
    Last = 4,
    /// [`RecordType::Full`] with the log number.
    RecyclableFull = 5,
    /// [`RecordType::First`] with the log number.
    RecyclableFirst = 6,
    /// [`RecordType::Middle`] with the log number.
    RecyclableMiddle = 7,
    /// [`RecordType::Last`] with the log number.
    RecyclableLast = 8,
    /// Names the codec of all data records; the first record of a file.
    SetCompression = 9,
    /// Sizes of user-defined timestamps by family.
    TimestampSizes = 10,
    /// [`RecordType::TimestampSizes`] with the log number.
    RecyclableTimestampSizes = 11,
    /// Describes the log before this one.
    Predecessor = 130,
    /// [`RecordType::Predecessor`] with the log number.
    RecyclablePredecessor = 131,
}

impl RecordType {
    /// The type with this number.
    #[inline]
    pub fn from_u8(v: u8) -> Option<RecordType> {
        Some(match v {
            0 => RecordType::Zero,
            1 => RecordType::Full,
            2 => RecordType::First,
            3 => RecordType::Middle,
            4 => RecordType::Last,
            5 => RecordType::RecyclableFull,
            6 => RecordType::RecyclableFirst,
            7 => RecordType::RecyclableMiddle,
            8 => RecordType::RecyclableLast,
            9 => RecordType::SetCompression,
            10 => RecordType::TimestampSizes,
            11 => RecordType::RecyclableTimestampSizes,
            130 => RecordType::Predecessor,
            131 => RecordType::RecyclablePredecessor,
            _ => return None,
        })
    }

    /// Returns whether the header carries the log number.
    #[inline]
    pub fn is_recyclable(self) -> bool {
        matches!(
            self,
            RecordType::RecyclableFull
                | RecordType::RecyclableFirst
                | RecordType::RecyclableMiddle
                | RecordType::RecyclableLast
                | RecordType::RecyclableTimestampSizes
                | RecordType::RecyclablePredecessor
        )
    }

    /// Bytes of its header.
    #[inline]
    pub fn header_len(self) -> usize {
        if self.is_recyclable() {
            RECYCLABLE_HEADER_LEN
        } else {
            HEADER_LEN
        }
    }
}

/// The record about the preceding log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// Its number.
    pub log_number: FileNo,
    /// Its size in bytes.
    pub size: u64,
    /// The sequence in the header of its last batch; 0 when it had none.
    pub last_seq: Seq,
}

impl Predecessor {
    /// Appends the record's body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_fixed64(out, self.log_number.0);
        put_fixed64(out, self.size);
        put_fixed64(out, self.last_seq.0);
    }

    /// Reads the record's body.
    pub fn decode(body: &[u8]) -> Result<Self> {
        let mut r = Reader::new(body);
        let p = Predecessor {
            log_number: FileNo(r.fixed64()?),
            size: r.fixed64()?,
            last_seq: Seq(r.fixed64()?),
        };
        r.finish("a predecessor record")?;
        Ok(p)
    }
}

/// Appends the body of a timestamp-size record. Sizes of 0 are not recorded.
pub fn encode_timestamp_sizes(sizes: &[(FamilyId, u16)], out: &mut Vec<u8>) {
    for (family, size) in sizes.iter().filter(|(_, size)| *size != 0) {
        put_fixed32(out, family.0);
        put_fixed16(out, *size);
    }
}

/// Reads the body of a timestamp-size record.
pub fn decode_timestamp_sizes(body: &[u8]) -> Result<Vec<(FamilyId, u16)>> {
    let mut r = Reader::new(body);
    let mut sizes = Vec::with_capacity(body.len() / 6);
    while !r.is_empty() {
        let (family, size) = (FamilyId(r.fixed32()?), r.fixed16()?);
        if size == 0 {
            return Err(Error::corruption(
                "a timestamp-size record holds a size of zero",
            ));
        }
        sizes.push((family, size));
    }
    Ok(sizes)
}

/// Treatment of a damaged write-ahead log by recovery; RocksDB's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum RecoveryMode {
    /// A torn tail ends its log; any other damage fails the open.
    TolerateCorruptedTailRecords = 0,
    /// Any damage fails the open.
    AbsoluteConsistency = 1,
    /// Replay stops at the first damage, and what it replayed is the database.
    #[default]
    PointInTimeRecovery = 2,
    /// Damaged stretches are skipped.
    SkipAnyCorruptedRecords = 3,
}

impl RecoveryMode {
    /// The mode with this number.
    pub fn from_u8(v: u8) -> Option<RecoveryMode> {
        Some(match v {
            0 => RecoveryMode::TolerateCorruptedTailRecords,
            1 => RecoveryMode::AbsoluteConsistency,
            2 => RecoveryMode::PointInTimeRecovery,
            3 => RecoveryMode::SkipAnyCorruptedRecords,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_their_own_names() {
        for v in 0..=255u8 {
            if let Some(t) = RecordType::from_u8(v) {
                assert_eq!(t as u8, v);
                if v >= 10 {
                    assert_eq!(t.is_recyclable(), v & 1 == 1, "{t:?}");
                }
            }
            if let Some(m) = RecoveryMode::from_u8(v) {
                assert_eq!(m as u8, v);
            }
        }
    }

    #[test]
    fn special_bodies_round_trip_and_refuse_leftovers() {
        let p = Predecessor {
            log_number: FileNo(4),
            size: 185,
            last_seq: Seq(9),
        };
        let mut out = Vec::new();
        p.encode(&mut out);
        assert_eq!(Predecessor::decode(&out).expect("whole"), p);
        out.push(0);
        assert!(Predecessor::decode(&out).is_err());

        let sizes = [(FamilyId(1), 8), (FamilyId(7), 16)];
        let mut out = Vec::new();
        encode_timestamp_sizes(&sizes, &mut out);
        assert_eq!(decode_timestamp_sizes(&out).expect("whole"), sizes);
        assert!(decode_timestamp_sizes(&out[..7]).is_err());
        assert!(decode_timestamp_sizes(&[1, 0, 0, 0, 0, 0]).is_err());
    }
}
