//! What a log says at its begin: its own number, and of the log before it the number and where its last record ends.
//!
//! Without this, a power cut that takes the un-synced end of a log and leaves a later log cannot be told from a log that
//! ends there, and recovery would skip writes and go on behind them. Its own number tells it from what an older log left in
//! the same blocks. It is said in a form that every version of
//! RocksDB reads and ignores: a batch of no records but a blob of log data, before the first batch of the log.

use esker_format::batch::{BatchReader, Record, encode_header};
use esker_format::{FileNo, Seq};

/// How the blob begins.
const NAME: &[u8] = b"esker.predecessor:";
/// The tag of log data in a batch.
const LOG_DATA: u8 = 0x03;

/// What stands at the begin of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Predecessor {
    /// The number of the log in which it stands.
    pub(crate) own: FileNo,
    /// The number of the log before; 0 for none that recovery could need.
    pub(crate) number: FileNo,
    /// Where the last record of that one ends.
    pub(crate) bytes: u64,
}

impl Predecessor {
    /// As a batch, for a log whose first batch begins at `next`.
    pub(crate) fn encode(self, next: Seq) -> Vec<u8> {
        let mut out = encode_header(next, 0).to_vec();
        out.push(LOG_DATA);
        out.push((NAME.len() + 24) as u8);
        out.extend_from_slice(NAME);
        out.extend_from_slice(&self.own.0.to_le_bytes());
        out.extend_from_slice(&self.number.0.to_le_bytes());
        out.extend_from_slice(&self.bytes.to_le_bytes());
        out
    }

    /// What `batch` says, when it is such a batch.
    pub(crate) fn of(batch: &BatchReader<'_>) -> Option<Predecessor> {
        if batch.count() > 0 {
            return None;
        }
        let Some(Ok(Record::LogData(blob))) = batch.records().next() else {
            return None;
        };
        let (own, rest) = blob.strip_prefix(NAME)?.split_first_chunk::<8>()?;
        let (number, bytes) = rest.split_first_chunk::<8>()?;
        Some(Predecessor {
            own: FileNo(u64::from_le_bytes(*own)),
            number: FileNo(u64::from_le_bytes(*number)),
            bytes: u64::from_le_bytes(bytes.try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_format::batch::WriteBatch;

    #[test]
    fn what_a_log_says_of_its_predecessor_is_read_back() {
        let said = Predecessor {
            own: FileNo(18),
            number: FileNo(17),
            bytes: 4096,
        };
        let bytes = said.encode(Seq(5));
        let batch = BatchReader::parse(&bytes).expect("a batch");
        batch.verify().expect("whole");
        assert_eq!(Predecessor::of(&batch), Some(said));
        assert_eq!(batch.seq(), Seq(5));
        let mut other = WriteBatch::new();
        other.log_data(b"esker.predecessor:short").expect("fits");
        assert_eq!(Predecessor::of(&other.reader()), None);
    }
}
