//! Reading a batch: a checked header and an iterator over its records.
//!
//! Nothing is copied and nothing is allocated; an error ends the iteration. The iterator checks at
//! the end that as many counted records were seen as the header claims.

use super::{HEADER_LEN, count_of, seq_of, tag};
use crate::coding::Reader;
use crate::ids::{FamilyId, Seq};
use esker_status::{Error, Result};

/// How a prepared section of a transaction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrepareKind {
    /// Write-committed: the records become visible with the commit record.
    Committed,
    /// Write-prepared.
    Persisted,
    /// Write-unprepared.
    Unprepared,
}

/// One record of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// The key gets the value.
    Put {
        /// The column family.
        family: FamilyId,
        /// The user key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// The key goes.
    Delete {
        /// The column family.
        family: FamilyId,
        /// The user key.
        key: &'a [u8],
    },
    /// The one value of the key goes.
    SingleDelete {
        /// The column family.
        family: FamilyId,
        /// The user key.
        key: &'a [u8],
    },
    /// An operand for the merge operator.
    Merge {
        /// The column family.
        family: FamilyId,
        /// The user key.
        key: &'a [u8],
        /// The operand.
        operand: &'a [u8],
    },
    /// The keys of `[begin, end)` go.
    DeleteRange {
        /// The column family.
        family: FamilyId,
        /// The first key that goes.
        begin: &'a [u8],
        /// The first key after the range.
        end: &'a [u8],
    },
    /// The value stands in a blob file.
    BlobIndex {
        /// The column family.
        family: FamilyId,
        /// The user key.
        key: &'a [u8],
        /// The encoded blob index.
        index: &'a [u8],
    },
    /// The key gets a wide-column entity.
    PutEntity {
        /// The column family.
        family: FamilyId,
        /// The user key.
        key: &'a [u8],
        /// The encoded entity.
        entity: &'a [u8],
    },
    /// A put that carries the time it was written at.
    TimedPut {
        /// The column family.
        family: FamilyId,
        /// The user key.
        key: &'a [u8],
        /// Value and `fixed64` Unix time, as the memtable stores it; see [`unpack_timed`].
        packed: &'a [u8],
    },
    /// Bytes for readers of the log only.
    LogData(&'a [u8]),
    /// The records of a prepared transaction follow.
    BeginPrepare(PrepareKind),
    /// The prepared transaction ends.
    EndPrepare {
        /// The transaction's name.
        xid: &'a [u8],
    },
    /// A prepared transaction commits.
    Commit {
        /// The transaction's name.
        xid: &'a [u8],
    },
    /// A prepared transaction commits at a user-defined timestamp.
    CommitWithTimestamp {
        /// The timestamp of its keys.
        timestamp: &'a [u8],
        /// The transaction's name.
        xid: &'a [u8],
    },
    /// A prepared transaction is undone.
    Rollback {
        /// The transaction's name.
        xid: &'a [u8],
    },
    /// Nothing; transactions write one first.
    Noop,
}

impl Record<'_> {
    /// Returns whether the record takes a sequence number and counts in the header.
    #[inline]
    pub fn is_counted(&self) -> bool {
        self.family().is_some()
    }

    /// The family of a record that has one.
    #[inline]
    pub fn family(&self) -> Option<FamilyId> {
        match self {
            Record::Put { family, .. }
            | Record::Delete { family, .. }
            | Record::SingleDelete { family, .. }
            | Record::Merge { family, .. }
            | Record::DeleteRange { family, .. }
            | Record::BlobIndex { family, .. }
            | Record::PutEntity { family, .. }
            | Record::TimedPut { family, .. } => Some(*family),
            _ => None,
        }
    }
}

/// Splits the payload of a [`Record::TimedPut`] into value and Unix time.
pub fn unpack_timed(packed: &[u8]) -> Option<(&[u8], u64)> {
    let (value, time) = packed.split_last_chunk::<8>()?;
    Some((value, u64::from_le_bytes(*time)))
}

/// A batch's bytes with a header that was checked for length.
#[derive(Clone, Copy, Debug)]
pub struct BatchReader<'a> {
    rep: &'a [u8],
}

impl<'a> BatchReader<'a> {
    /// Takes the bytes of a batch; `Corruption` when they are shorter than the header.
    pub fn parse(rep: &'a [u8]) -> Result<Self> {
        if rep.len() < HEADER_LEN {
            return Err(too_small(rep.len()));
        }
        Ok(BatchReader { rep })
    }

    /// The sequence of the first counted record.
    #[inline]
    pub fn seq(&self) -> Seq {
        seq_of(self.rep)
    }

    /// How many counted records the header claims.
    #[inline]
    pub fn count(&self) -> u32 {
        count_of(self.rep)
    }

    /// All bytes.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.rep
    }

    /// The bytes after the header.
    pub fn body(&self) -> &'a [u8] {
        &self.rep[HEADER_LEN..]
    }

    /// The records, with the count checked at the end.
    pub fn records(&self) -> Records<'a> {
        Records {
            reader: Reader::new(self.body()),
            seen: 0,
            expected: Some(self.count()),
        }
    }

    /// Parses every record once and checks the count.
    pub fn verify(&self) -> Result<()> {
        self.records().try_for_each(|r| r.map(drop))
    }
}

#[cold]
pub(super) fn too_small(len: usize) -> Error {
    Error::corruption(format!(
        "a batch of {len} bytes is smaller than its {HEADER_LEN}-byte header"
    ))
}

/// Iterates over records. After an error it yields nothing more.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    reader: Reader<'a>,
    seen: u32,
    expected: Option<u32>,
}

impl<'a> Records<'a> {
    /// Over the bytes after a header, without a count to check.
    pub fn over_body(body: &'a [u8]) -> Self {
        Records {
            reader: Reader::new(body),
            seen: 0,
            expected: None,
        }
    }

    /// Counted records so far.
    pub fn seen(&self) -> u32 {
        self.seen
    }

    /// Offset of the next record from the end of the header.
    pub fn position(&self) -> usize {
        self.reader.position()
    }

    #[inline]
    fn record(&mut self) -> Result<Record<'a>> {
        let r = &mut self.reader;
        let at = r.position();
        let t = r.u8()?;
        let family = match t {
            tag::FAMILY_DELETE
            | tag::FAMILY_PUT
            | tag::FAMILY_MERGE
            | tag::FAMILY_SINGLE_DELETE
            | tag::FAMILY_DELETE_RANGE
            | tag::FAMILY_BLOB_INDEX
            | tag::FAMILY_PUT_ENTITY
            | tag::FAMILY_TIMED_PUT => FamilyId(r.varint32()?),
            _ => FamilyId::DEFAULT,
        };
        Ok(match t {
            tag::PUT | tag::FAMILY_PUT => Record::Put {
                family,
                key: r.lpstr()?,
                value: r.lpstr()?,
            },
            tag::DELETE | tag::FAMILY_DELETE => Record::Delete {
                family,
                key: r.lpstr()?,
            },
            tag::SINGLE_DELETE | tag::FAMILY_SINGLE_DELETE => Record::SingleDelete {
                family,
                key: r.lpstr()?,
            },
            tag::MERGE | tag::FAMILY_MERGE => Record::Merge {
                family,
                key: r.lpstr()?,
                operand: r.lpstr()?,
            },
            tag::DELETE_RANGE | tag::FAMILY_DELETE_RANGE => Record::DeleteRange {
                family,
                begin: r.lpstr()?,
                end: r.lpstr()?,
            },
            tag::BLOB_INDEX | tag::FAMILY_BLOB_INDEX => Record::BlobIndex {
                family,
                key: r.lpstr()?,
                index: r.lpstr()?,
            },
            tag::PUT_ENTITY | tag::FAMILY_PUT_ENTITY => Record::PutEntity {
                family,
                key: r.lpstr()?,
                entity: r.lpstr()?,
            },
            tag::TIMED_PUT | tag::FAMILY_TIMED_PUT => {
                let (key, packed) = (r.lpstr()?, r.lpstr()?);
                if packed.len() < 8 {
                    return Err(bad_record("a timed put without its time", t, at));
                }
                Record::TimedPut {
                    family,
                    key,
                    packed,
                }
            }
            tag::LOG_DATA => Record::LogData(r.lpstr()?),
            tag::NOOP => Record::Noop,
            tag::BEGIN_PREPARE => Record::BeginPrepare(PrepareKind::Committed),
            tag::BEGIN_PERSISTED_PREPARE => Record::BeginPrepare(PrepareKind::Persisted),
            tag::BEGIN_UNPREPARE => Record::BeginPrepare(PrepareKind::Unprepared),
            tag::END_PREPARE => Record::EndPrepare { xid: r.lpstr()? },
            tag::COMMIT => Record::Commit { xid: r.lpstr()? },
            tag::COMMIT_WITH_TIMESTAMP => Record::CommitWithTimestamp {
                timestamp: r.lpstr()?,
                xid: r.lpstr()?,
            },
            tag::ROLLBACK => Record::Rollback { xid: r.lpstr()? },
            _ => return Err(bad_record("unknown tag", t, at)),
        })
    }

    #[cold]
    fn fuse(&mut self, e: Error) -> Error {
        self.reader = Reader::new(&[]);
        self.expected = None;
        e
    }
}

#[cold]
fn bad_record(what: &str, tag: u8, at: usize) -> Error {
    Error::corruption(format!(
        "bad WriteBatch record: {what} (tag {tag:#04x}, byte {} of the batch)",
        at + HEADER_LEN
    ))
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return match self.expected.take() {
                Some(expected) if expected != self.seen => Some(Err(Error::corruption(format!(
                    "WriteBatch has wrong count: the header says {expected}, {} records are there",
                    self.seen
                )))),
                _ => None,
            };
        }
        match self.record() {
            Ok(record) => {
                self.seen = self.seen.saturating_add(u32::from(record.is_counted()));
                Some(Ok(record))
            }
            Err(e) => Some(Err(self.fuse(e))),
        }
    }
}
