//! Timestamps of a pessimistic transaction in families whose keys have them: the one that it reads
//! and validates at, and the one that its keys get when it commits.
//!
//! Changes are kept with room for a timestamp at the end of their keys, which the commit fills. A
//! key that somebody else wrote at a later timestamp than the transaction reads at is a conflict,
//! as a later sequence number is. The rules and messages are RocksDB's.

use super::{Transaction, TxnMode};
use crate::errors;
use crate::touch::Access;
use esker::{Error, FamilyHandle, ReadOptions, Result, WriteBatch};
use std::borrow::Cow;

/// Stands for no timestamp, as in RocksDB.
const UNSET: u64 = u64::MAX;

/// The timestamps of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TxnTimestamps {
    /// Where it reads for update.
    pub(crate) read: Option<u64>,
    /// The timestamp that its keys get.
    pub(crate) commit: Option<u64>,
}

/// Fills the room for timestamps in the keys of `batch`.
pub(super) fn stamp(db: &esker::Db, batch: &mut WriteBatch, commit: Option<u64>) -> Result<()> {
    if !batch.has_timestamps() {
        return Ok(());
    }
    let commit = commit.ok_or_else(errors::no_commit_timestamp)?;
    fill(db, batch, commit)
}

/// Makes a section of a prepared transaction of `batch`: its timestamps are those of no commit yet.
pub(super) fn stamp_for_prepare(db: &esker::Db, batch: &mut WriteBatch) -> Result<()> {
    if batch.awaits_timestamps() {
        fill(db, batch, 0)
    } else {
        Ok(())
    }
}

fn fill(db: &esker::Db, batch: &mut WriteBatch, timestamp: u64) -> Result<()> {
    batch.update_timestamps(&timestamp.to_le_bytes(), |family| {
        let family = db.family_by_id(family.0)?;
        Some(family.order().timestamp_size())
    })
}

impl Transaction {
    /// The keys of families with timestamps get this one when the transaction commits; such a
    /// commit fails without one. `u64::MAX` is none. With `enable_udt_validation` it must be above
    /// the timestamp that the transaction reads at. `NotSupported` for an optimistic transaction.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{FamilyOptions, KeyOrder, Options, ReadOptions};
    /// use esker_txn::{TransactionDb, TransactionDbOptions};
    ///
    /// let options = Options::new().create_if_missing(true);
    /// let db = TransactionDb::open(dir.path(), options, TransactionDbOptions::default())?;
    /// let mut timed = FamilyOptions::default();
    /// timed.comparator = KeyOrder::BytewiseU64Ts;
    /// let prices = db.create_family("prices", timed)?;
    /// let mut txn = db.begin();
    /// txn.put_cf(&prices, "tea", "12")?;
    /// txn.set_commit_timestamp(2026)?;
    /// txn.commit()?;
    /// let at = |year: u64| {
    ///     let mut options = ReadOptions::default();
    ///     options.timestamp = Some(year.to_le_bytes().to_vec());
    ///     db.base().get_opt(&prices, "tea", &options, None)
    /// };
    /// assert_eq!(at(2026)?.as_deref(), Some(&b"12"[..]));
    /// assert!(at(2025)?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_commit_timestamp(&mut self, timestamp: u64) -> Result<()> {
        let TxnMode::Pessimistic(p) = &self.kind else {
            return Err(errors::no_timestamps());
        };
        let read = self.stamps.read;
        if p.validates_timestamps() && read.is_some_and(|read| timestamp <= read) {
            return Err(Error::invalid_argument(
                "Cannot commit at timestamp smaller than or equal to read timestamp",
            ));
        }
        self.stamps.commit = Some(timestamp).filter(|t| *t != UNSET);
        Ok(())
    }

    /// The timestamp that [`Transaction::set_commit_timestamp`] gave.
    pub fn commit_timestamp(&self) -> Option<u64> {
        self.stamps.commit
    }

    /// Reads for update are at this timestamp in families with timestamps, and a key that others
    /// wrote at a later one is a conflict. It must not fall. `u64::MAX` is none. `NotSupported` for
    /// an optimistic transaction.
    pub fn set_read_timestamp_for_validation(&mut self, timestamp: u64) -> Result<()> {
        if self.is_optimistic() {
            return Err(errors::no_timestamps());
        }
        if self.stamps.read.is_some_and(|read| timestamp < read) {
            return Err(Error::invalid_argument(
                "Cannot decrease read timestamp for validation",
            ));
        }
        self.stamps.read = Some(timestamp).filter(|t| *t != UNSET);
        Ok(())
    }

    /// The timestamp that a key of `family` is looked for conflicts at.
    pub(super) fn validated_at(&self, family: &FamilyHandle) -> Option<u64> {
        match family.order().timestamp_size() {
            0 => None,
            _ => self.stamps.read,
        }
    }

    /// The options of a read for update: at the transaction's timestamp where the family has them.
    /// `what` is how the message calls it.
    pub(super) fn for_update<'o>(
        &self,
        family: &FamilyHandle,
        options: &'o ReadOptions,
        touch: Access,
        what: &str,
    ) -> Result<Cow<'o, ReadOptions>> {
        let size = family.order().timestamp_size();
        let TxnMode::Pessimistic(p) = &self.kind else {
            return Ok(Cow::Borrowed(options));
        };
        match &options.timestamp {
            None if size == 0 => return Ok(Cow::Borrowed(options)),
            Some(_) if size == 0 => {
                return Err(Error::invalid_argument(format!(
                    "cannot call this method on column family {} that does not enable timestamp",
                    family.name()
                )));
            }
            Some(given) if given.len() != size => {
                return Err(Error::invalid_argument(format!(
                    "Timestamp sizes mismatch: expect {size}, {} given",
                    given.len()
                )));
            }
            _ => {}
        }
        check_read_timestamp(p.validates_timestamps(), touch.validate, self.stamps.read)?;
        let own = self.stamps.read.unwrap_or(UNSET).to_le_bytes().to_vec();
        match &options.timestamp {
            Some(given) if *given == own => Ok(Cow::Borrowed(options)),
            Some(_) => Err(Error::invalid_argument(format!(
                "Must read from the same {what}"
            ))),
            None => {
                let mut options = options.clone();
                options.timestamp = Some(own);
                Ok(Cow::Owned(options))
            }
        }
    }
}

/// Checks that a read for update agrees with the transaction's read timestamp.
fn check_read_timestamp(validates: bool, validate: bool, read: Option<u64>) -> Result<()> {
    let wrong = match (validates, validate, read) {
        (false, _, Some(_)) => {
            "read_timestamp is set but timestamp validation is disabled for the DB"
        }
        (true, false, Some(_)) => {
            "If do_validate is false then GetForUpdate with read_timestamp is not defined."
        }
        (true, true, None) => "read_timestamp must be set for validation",
        _ => return Ok(()),
    };
    Err(Error::invalid_argument(wrong))
}
