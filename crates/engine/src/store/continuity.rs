//! References between logs and the MANIFEST, by which a missing or shortened one is noticed.
//!
//! - A log begins with its own number, and of the log before it the number and where its last
//!   record ends. Without this, a power cut that takes the un-synced end of a log and leaves a
//!   later log cannot be told from a log that ends there, and recovery would skip writes and go on
//!   behind them. Its own number tells it from what an older log left in the same blocks.
//! - A log that takes no more records ends with the number of the next one, whose name was synced
//!   before; 0 when the database was closed.
//! - Both say which MANIFEST was current and how much of it was synced; so does a log when
//!   something was written into the MANIFEST that is in no log: a family, ingested tables. Where no
//!   batch follows, an empty one carries it at the close.
//! - Each edit of the MANIFEST names the newest log and the one before it ([`KnownLogs`]), beside
//!   the oldest that recovery needs; and, when tables were ingested that are in no log, how much of
//!   the logs was synced before.
//!
//! All of it is written when a log begins or ends or an edit is written anyway, so no write pays
//! for it. Closing writes an edit for it alone, and does not wait for the disk: a power cut that
//! takes the edit leaves what a crash before the close leaves. No log names that edit's end.
//! Logs carry these records as batches with a blob of log data alone, the MANIFEST in a field that
//! may be skipped: every version of RocksDB reads and ignores both.
//!
//! Rejected: *RocksDB's tracking of logs in the MANIFEST*. It may name synced sizes only, or a
//! power cut that takes what was not synced makes the database unopenable, so it says nothing of
//! most logs; and RocksDB, when it tracks, takes what it finds for its own word.
//!
//! Thread-safety: [`WalManifestLink`] is shared by the log, which writes it under the log lock, and
//! the store.

use esker_format::batch::{BatchReader, Record, encode_header};
use esker_format::edit::KnownLogs;
use esker_format::{FileNo, Seq};
use esker_sync::{Mutex, Rank};

/// The tag of log data in a batch.
const LOG_DATA: u8 = 0x03;
/// How blobs begin.
const BEGIN: &[u8] = b"esker.begin:";
const END: &[u8] = b"esker.end:";
const MARK: &[u8] = b"esker.manifest:";

/// The part of a MANIFEST that survives power loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ManifestEnd {
    /// The number in its name.
    pub(crate) number: FileNo,
    /// Its bytes.
    pub(crate) bytes: u64,
}

/// The log before another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Predecessor {
    /// Its number; 0 for none that recovery could need.
    pub(crate) number: FileNo,
    /// Where its last record ends.
    pub(crate) bytes: u64,
}

/// A record of a log that is no batch of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkRecord {
    /// The log begins.
    Begin {
        /// Its own number.
        own: FileNo,
        /// The log before.
        before: Predecessor,
        /// The MANIFEST at that time.
        manifest: ManifestEnd,
    },
    /// The MANIFEST as it is now.
    Mark(ManifestEnd),
    /// The log ends.
    End {
        /// The log that takes appends from now on; 0 for none.
        next: FileNo,
        /// The MANIFEST at that time.
        manifest: ManifestEnd,
    },
}

impl LinkRecord {
    /// As a batch, between those before `next` and those from there on.
    pub(crate) fn encode(self, next: Seq) -> Vec<u8> {
        let (name, numbers) = match self {
            LinkRecord::Begin {
                own,
                before,
                manifest,
            } => (
                BEGIN,
                vec![
                    own.0,
                    before.number.0,
                    before.bytes,
                    manifest.number.0,
                    manifest.bytes,
                ],
            ),
            LinkRecord::Mark(m) => (MARK, vec![m.number.0, m.bytes]),
            LinkRecord::End { next, manifest } => {
                (END, vec![next.0, manifest.number.0, manifest.bytes])
            }
        };
        let mut out = encode_header(next, 0).to_vec();
        out.push(LOG_DATA);
        out.push((name.len() + 8 * numbers.len()) as u8);
        out.extend_from_slice(name);
        out.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        out
    }

    /// Parses `batch`, when it is such a record.
    pub(crate) fn of(batch: &BatchReader<'_>) -> Option<LinkRecord> {
        if batch.count() > 0 {
            return None;
        }
        let Some(Ok(Record::LogData(blob))) = batch.records().next() else {
            return None;
        };
        let mark = |[number, bytes]: [u64; 2]| ManifestEnd {
            number: FileNo(number),
            bytes,
        };
        if let Some(rest) = blob.strip_prefix(BEGIN) {
            let [own, number, bytes, manifest, len] = numbers(rest)?;
            return Some(LinkRecord::Begin {
                own: FileNo(own),
                before: Predecessor {
                    number: FileNo(number),
                    bytes,
                },
                manifest: mark([manifest, len]),
            });
        }
        if let Some(rest) = blob.strip_prefix(MARK) {
            return Some(LinkRecord::Mark(mark(numbers(rest)?)));
        }
        let [next, manifest, len] = numbers(blob.strip_prefix(END)?)?;
        Some(LinkRecord::End {
            next: FileNo(next),
            manifest: mark([manifest, len]),
        })
    }
}

/// Exactly `N` numbers.
fn numbers<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let (words, rest) = bytes.as_chunks::<8>();
    let words: &[[u8; 8]; N] = words.try_into().ok()?;
    rest.is_empty().then(|| words.map(u64::from_le_bytes))
}

/// State that the log and the store share, and write down about each other.
#[derive(Debug)]
pub(crate) struct WalManifestLink(Mutex<LinkState>);

#[derive(Debug)]
struct LinkState {
    manifest: ManifestEnd,
    newest_log: FileNo,
    /// The log before the newest.
    before: Predecessor,
    /// Up to here the logs were synced before tables were ingested.
    synced: Option<(FileNo, u64)>,
}

impl WalManifestLink {
    /// Of a database that was found with `manifest`, in which `logs` is said of its logs.
    pub(crate) fn new(manifest: ManifestEnd, logs: Option<KnownLogs>) -> Self {
        // A log without a record may be gone, and is not named again.
        let logs = logs.filter(|l| !l.is_closed_empty()).unwrap_or_default();
        let known = LinkState {
            manifest,
            newest_log: logs.newest,
            before: Predecessor {
                number: logs.before,
                bytes: logs.before_end,
            },
            synced: logs.synced,
        };
        WalManifestLink(Mutex::new(Rank::LEAF, known))
    }

    /// The MANIFEST and how much of it was synced.
    pub(crate) fn manifest(&self) -> ManifestEnd {
        self.0.lock().manifest
    }

    /// Takes note that this part of the MANIFEST was synced.
    pub(crate) fn manifest_synced(&self, number: FileNo, bytes: u64) {
        self.0.lock().manifest = ManifestEnd { number, bytes };
    }

    /// The log `number` takes appends, and its name was synced; `before` is the last one before it
    /// with anything in it.
    pub(crate) fn log_begun(&self, number: FileNo, before: Predecessor) {
        let mut known = self.0.lock();
        known.newest_log = number;
        known.before = before;
    }

    /// Tables are added that are in no log, and `bytes` of log `number` were synced.
    pub(crate) fn synced_before_tables(&self, number: FileNo, bytes: u64) {
        self.0.lock().synced = Some((number, bytes));
    }

    /// Returns the record of logs for an edit while recovery needs logs from `oldest` on.
    pub(crate) fn known_logs(&self, oldest: FileNo, end: Option<u64>) -> Option<KnownLogs> {
        let known = self.0.lock();
        (known.newest_log > FileNo(0)).then_some(KnownLogs {
            newest: known.newest_log,
            before: known.before.number,
            before_end: known.before.bytes,
            end,
            synced: known.synced.filter(|(log, _)| *log >= oldest),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_format::batch::WriteBatch;

    #[test]
    fn what_a_log_says_is_read_back() {
        let manifest = ManifestEnd {
            number: FileNo(5),
            bytes: 777,
        };
        let before = Predecessor {
            number: FileNo(17),
            bytes: 4096,
        };
        let said = [
            LinkRecord::Begin {
                own: FileNo(18),
                before,
                manifest,
            },
            LinkRecord::Mark(manifest),
            LinkRecord::End {
                next: FileNo(19),
                manifest,
            },
        ];
        for tie in said {
            let bytes = tie.encode(Seq(5));
            let batch = BatchReader::parse(&bytes).expect("a batch");
            batch.verify().expect("whole");
            assert_eq!(LinkRecord::of(&batch), Some(tie));
            assert_eq!(batch.seq(), Seq(5));
        }
        for other in [&b"esker.begin:short"[..], b"esker.end:", b"something"] {
            let mut batch = WriteBatch::new();
            batch.log_data(other).expect("fits");
            assert_eq!(LinkRecord::of(&batch.reader()), None);
        }
    }

    #[test]
    fn no_log_is_named_before_the_first() {
        let wal_link = WalManifestLink::new(ManifestEnd::default(), None);
        assert_eq!(wal_link.known_logs(FileNo(0), None), None);
        let closed = KnownLogs {
            newest: FileNo(9),
            end: Some(0),
            ..KnownLogs::default()
        };
        let wal_link = WalManifestLink::new(ManifestEnd::default(), Some(closed));
        assert_eq!(wal_link.known_logs(FileNo(0), None), None, "it may be gone");
        wal_link.log_begun(FileNo(12), Predecessor::default());
        let newest = wal_link.known_logs(FileNo(0), None).map(|l| l.newest);
        assert_eq!(newest, Some(FileNo(12)));
    }

    #[test]
    fn what_was_synced_is_said_as_long_as_the_log_may_be_needed() {
        let wal_link = WalManifestLink::new(ManifestEnd::default(), None);
        wal_link.log_begun(FileNo(4), Predecessor::default());
        wal_link.synced_before_tables(FileNo(4), 77);
        wal_link.log_begun(
            FileNo(8),
            Predecessor {
                number: FileNo(4),
                bytes: 9,
            },
        );
        let synced = |needed| {
            wal_link
                .known_logs(FileNo(needed), None)
                .and_then(|l| l.synced)
        };
        assert_eq!(synced(4), Some((FileNo(4), 77)));
        assert_eq!(synced(8), None);
    }
}
