//! Contents of a node, in one database: the log, the data, and a few facts about both, each in a
//! column family.
//!
//! Durability: votes and log entries are synced before they are reported. Data is not synced when
//! entries are applied: the write-ahead log keeps its order, so after a crash the data is that of
//! an earlier moment, the fact `applied` says of which, and openraft applies what follows again
//! from the synced log.

use crate::{Puts, Types};
use openraft::storage::{LogFlushed, RaftLogStorage, RaftStateMachine};
use openraft::{
    Entry, EntryPayload, LogId, LogState, OptionalSend, RaftLogReader, RaftSnapshotBuilder,
    Snapshot, SnapshotMeta, StorageError, StorageIOError, StoredMembership, Vote,
};
use rocksdb::{
    ColumnFamily, DB, Direction, IteratorMode, Options, ReadOptions, WriteBatch, WriteOptions,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::io::{self, Cursor};
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::{Arc, Mutex};

type NodeId = u64;
type Node = openraft::BasicNode;
type Failure = StorageError<NodeId>;
/// Up to where entries are applied, and who the members were then.
type Applied = (Option<LogId<NodeId>>, StoredMembership<NodeId, Node>);

/// Greater than every key, because keys are UTF-8.
const AFTER_ALL: &[u8] = &[0xff];

/// The database of a node. Clones share it.
#[derive(Clone)]
pub struct Store {
    db: Arc<DB>,
    /// The last snapshot that was made or received; made again after a restart, since the data
    /// itself is durable.
    snapshot: Arc<Mutex<Option<(SnapshotMeta<NodeId, Node>, Vec<u8>)>>>,
}

/// A digest of all data: how many keys, and a hash over keys and values in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Digest {
    pub keys: u64,
    pub hash: u64,
}

impl Digest {
    /// Of key-value pairs in order (FNV-1a).
    pub fn of<K: AsRef<[u8]>, V: AsRef<[u8]>>(pairs: impl Iterator<Item = (K, V)>) -> Digest {
        let mut digest = Digest {
            keys: 0,
            hash: 0xcbf2_9ce4_8422_2325,
        };
        for (key, value) in pairs {
            digest.keys += 1;
            for bytes in [key.as_ref(), value.as_ref()] {
                for &byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
                    digest.hash = (digest.hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
                }
            }
        }
        digest
    }
}

fn failed(error: impl std::error::Error + 'static) -> Failure {
    StorageIOError::write(&error).into()
}

fn synced() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(true);
    options
}

impl Store {
    pub fn open(directory: &Path) -> Result<Store, rocksdb::Error> {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        let db = DB::open_cf(&options, directory, ["log", "data", "facts"])?;
        Ok(Store {
            db: Arc::new(db),
            snapshot: Arc::default(),
        })
    }

    fn family(&self, name: &str) -> &ColumnFamily {
        self.db.cf_handle(name).expect("opened with it")
    }

    fn fact<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Failure> {
        let bytes = self.db.get_cf(self.family("facts"), name).map_err(failed)?;
        bytes
            .map(|b| serde_json::from_slice(&b).map_err(failed))
            .transpose()
    }

    fn note<T: Serialize>(
        &self,
        batch: &mut WriteBatch,
        name: &str,
        fact: &T,
    ) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(fact).map_err(failed)?;
        batch.put_cf(self.family("facts"), name, bytes);
        Ok(())
    }

    fn write(&self, batch: WriteBatch, options: &WriteOptions) -> Result<(), Failure> {
        self.db.write_opt(batch, options).map_err(failed)
    }

    pub fn get(&self, key: &str) -> Result<Option<String>, rocksdb::Error> {
        let value = self.db.get_cf(self.family("data"), key)?;
        Ok(value.map(|v| String::from_utf8_lossy(&v).into_owned()))
    }

    /// Everything, at one moment.
    fn contents(&self) -> Result<(Applied, Puts), Failure> {
        let moment = self.db.snapshot();
        let applied = moment
            .get_cf(self.family("facts"), "applied")
            .map_err(failed)?;
        let applied = applied
            .map(|b| serde_json::from_slice(&b).map_err(failed))
            .transpose()?;
        let text = |bytes: Box<[u8]>| String::from_utf8_lossy(&bytes).into_owned();
        let mut pairs = Puts::new();
        for pair in moment.iterator_cf(self.family("data"), IteratorMode::Start) {
            let (key, value) = pair.map_err(failed)?;
            pairs.push((text(key), text(value)));
        }
        Ok((applied.unwrap_or_default(), pairs))
    }

    /// The last applied index, and a digest of the data at that moment.
    pub fn digest(&self) -> Result<(u64, Digest), Failure> {
        let ((applied, _), pairs) = self.contents()?;
        Ok((
            applied.map_or(0, |id| id.index),
            Digest::of(pairs.into_iter()),
        ))
    }
}

impl RaftLogReader<Types> for Store {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> Result<Vec<Entry<Types>>, Failure> {
        let first = match range.start_bound() {
            Bound::Included(&index) => index,
            Bound::Excluded(&index) => index + 1,
            Bound::Unbounded => 0,
        };
        let mut options = ReadOptions::default();
        match range.end_bound() {
            Bound::Included(&index) => options.set_iterate_upper_bound((index + 1).to_be_bytes()),
            Bound::Excluded(&index) => options.set_iterate_upper_bound(index.to_be_bytes()),
            Bound::Unbounded => {}
        }
        let from = first.to_be_bytes();
        let from = IteratorMode::From(&from, Direction::Forward);
        let entries = self.db.iterator_cf_opt(self.family("log"), options, from);
        let entries = entries.map(|entry| {
            let (_, bytes) = entry.map_err(failed)?;
            serde_json::from_slice(&bytes).map_err(failed)
        });
        entries.collect()
    }
}

impl RaftLogStorage<Types> for Store {
    type LogReader = Store;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, Failure> {
        let last_purged_log_id: Option<LogId<NodeId>> = self.fact("purged")?;
        let mut backward = self.db.iterator_cf(self.family("log"), IteratorMode::End);
        let last = match backward.next().transpose().map_err(failed)? {
            Some((_, bytes)) => {
                let entry: Entry<Types> = serde_json::from_slice(&bytes).map_err(failed)?;
                Some(entry.log_id)
            }
            None => last_purged_log_id,
        };
        Ok(LogState {
            last_purged_log_id,
            last_log_id: last,
        })
    }

    async fn get_log_reader(&mut self) -> Store {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote<NodeId>) -> Result<(), Failure> {
        let mut batch = WriteBatch::default();
        self.note(&mut batch, "vote", vote)?;
        self.write(batch, &synced())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote<NodeId>>, Failure> {
        self.fact("vote")
    }

    async fn append<I>(&mut self, entries: I, callback: LogFlushed<Types>) -> Result<(), Failure>
    where
        I: IntoIterator<Item = Entry<Types>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut batch = WriteBatch::default();
        for entry in entries {
            let bytes = serde_json::to_vec(&entry).map_err(failed)?;
            batch.put_cf(self.family("log"), entry.log_id.index.to_be_bytes(), bytes);
        }
        let outcome = tokio::task::block_in_place(|| self.db.write_opt(batch, &synced()));
        callback.log_io_completed(outcome.map_err(io::Error::other));
        Ok(())
    }

    async fn truncate(&mut self, from: LogId<NodeId>) -> Result<(), Failure> {
        let mut batch = WriteBatch::default();
        let log = self.family("log");
        batch.delete_range_cf(log, from.index.to_be_bytes(), u64::MAX.to_be_bytes());
        self.write(batch, &synced())
    }

    async fn purge(&mut self, upto: LogId<NodeId>) -> Result<(), Failure> {
        let mut batch = WriteBatch::default();
        self.note(&mut batch, "purged", &upto)?;
        let log = self.family("log");
        batch.delete_range_cf(log, 0u64.to_be_bytes(), (upto.index + 1).to_be_bytes());
        self.write(batch, &WriteOptions::default())
    }
}

impl RaftSnapshotBuilder<Types> for Store {
    async fn build_snapshot(&mut self) -> Result<Snapshot<Types>, Failure> {
        let ((last_log_id, last_membership), pairs) = self.contents()?;
        let snapshot_id = last_log_id.map_or("0".into(), |id| {
            format!("{}-{}", id.leader_id.term, id.index)
        });
        let meta = SnapshotMeta {
            last_log_id,
            last_membership,
            snapshot_id,
        };
        let bytes = serde_json::to_vec(&pairs).map_err(failed)?;
        *self.snapshot.lock().expect("no panic under it") = Some((meta.clone(), bytes.clone()));
        Ok(Snapshot {
            meta,
            snapshot: Box::new(Cursor::new(bytes)),
        })
    }
}

impl RaftStateMachine<Types> for Store {
    type SnapshotBuilder = Store;

    async fn applied_state(&mut self) -> Result<Applied, Failure> {
        Ok(self.fact("applied")?.unwrap_or_default())
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<()>, Failure>
    where
        I: IntoIterator<Item = Entry<Types>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let (mut applied, mut membership) = self.applied_state().await?;
        let mut batch = WriteBatch::default();
        let mut replies = Vec::new();
        for entry in entries {
            applied = Some(entry.log_id);
            match entry.payload {
                EntryPayload::Blank => {}
                EntryPayload::Normal(puts) => {
                    for (key, value) in puts {
                        batch.put_cf(self.family("data"), key, value);
                    }
                }
                EntryPayload::Membership(members) => {
                    membership = StoredMembership::new(applied, members);
                }
            }
            replies.push(());
        }
        self.note(&mut batch, "applied", &(applied, membership))?;
        self.write(batch, &WriteOptions::default())?;
        Ok(replies)
    }

    async fn get_snapshot_builder(&mut self) -> Store {
        self.clone()
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<Cursor<Vec<u8>>>, Failure> {
        Ok(Box::default())
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta<NodeId, Node>,
        snapshot: Box<Cursor<Vec<u8>>>,
    ) -> Result<(), Failure> {
        let bytes = snapshot.into_inner();
        let pairs: Puts = serde_json::from_slice(&bytes).map_err(failed)?;
        // What was there goes and what is new comes in one step.
        let mut batch = WriteBatch::default();
        let data = self.family("data");
        batch.delete_range_cf(data, b"".as_slice(), AFTER_ALL);
        for (key, value) in pairs {
            batch.put_cf(data, key, value);
        }
        self.note(
            &mut batch,
            "applied",
            &(meta.last_log_id, &meta.last_membership),
        )?;
        self.write(batch, &synced())?;
        *self.snapshot.lock().expect("no panic under it") = Some((meta.clone(), bytes));
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<Types>>, Failure> {
        let current = self.snapshot.lock().expect("no panic under it");
        let current = current.as_ref().map(|(meta, bytes)| Snapshot {
            meta: meta.clone(),
            snapshot: Box::new(Cursor::new(bytes.clone())),
        });
        Ok(current)
    }
}
