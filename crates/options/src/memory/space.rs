//! The room that table and blob files take, for databases that share a limit: how much there is,
//! how much there may be, and how fast files are deleted.
//!
//! A database joins when it is opened. Sizes are added up when they are asked for, from the
//! databases' current trees and what waits for its deletion; nothing is kept up to date meanwhile.
//! With a rate, obsolete tables wait in line (as trash), unless there is more of it than the
//! ratio allows; what still waits when a database is closed is deleted when it is opened
//! next. Thread-safety: any thread; locks are held for a few instructions.

use esker_status::{Error, ErrorKind, Result, Subcode};
use esker_sync::atomic::{AtomicU64, Ordering};
use esker_sync::{Arc, Mutex, Rank};
use std::sync::Weak;

/// Deletions that were not used are saved up for this long, in microseconds.
const CREDIT_US: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
struct Limits {
    max_allowed: u64,
    compaction_buffer: u64,
    delete_rate: i64,
    max_trash_ratio: f64,
}

/// The tables and blob files that a database's trees list.
pub trait LiveFiles: std::fmt::Debug + Send + Sync {
    /// Their bytes.
    fn bytes(&self) -> u64;
}

/// The tables that no tree of a database lists any more and that are still there.
pub trait DeadFiles: std::fmt::Debug + Send + Sync {
    /// Their bytes.
    fn bytes(&self) -> u64;
    /// Of those, the bytes of the tables that wait in line for their deletion.
    fn trash_bytes(&self) -> u64;
}

/// The files of one database.
type Files = (Weak<dyn LiveFiles>, Weak<dyn DeadFiles>);

/// Watches the room that the files of databases take (RocksDB's `SstFileManager`).
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// let space = esker::SstFileManager::new();
/// let mut options = esker::Options::new().create_if_missing(true);
/// options.db.sst_file_manager = Some(space.clone());
/// let db = esker::Db::open(dir.path(), options)?;
/// db.put("key", "value")?;
/// assert_eq!(space.total_size(), 0);
/// db.flush()?;
/// assert!(space.total_size() > 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SstFileManager {
    limits: Mutex<Limits>,
    members: Mutex<Vec<Files>>,
    /// Bytes that running compactions may add.
    reserved: AtomicU64,
    /// When the deletions so far are paid for, by the clock.
    paid_us: AtomicU64,
}

/// Room that a running compaction has taken; given back when it is dropped.
#[derive(Debug)]
pub struct SpaceReservation<'a>(&'a SstFileManager, u64);

impl Drop for SpaceReservation<'_> {
    fn drop(&mut self) {
        self.0.reserved.fetch_sub(self.1, Ordering::Relaxed);
    }
}

impl SstFileManager {
    /// Without limits.
    #[allow(clippy::new_ret_no_self, reason = "databases share it")]
    pub fn new() -> Arc<SstFileManager> {
        Arc::new(SstFileManager {
            limits: Mutex::new(
                Rank::LEAF,
                Limits {
                    max_allowed: 0,
                    compaction_buffer: 0,
                    delete_rate: 0,
                    max_trash_ratio: 0.25,
                },
            ),
            members: Mutex::new(Rank::LEAF, Vec::new()),
            reserved: AtomicU64::new(0),
            paid_us: AtomicU64::new(0),
        })
    }

    /// Writes fail once files take more than this many bytes; 0 for no limit.
    pub fn set_max_allowed_space_usage(&self, bytes: u64) {
        self.limits.lock().max_allowed = bytes;
    }

    /// Bytes that a compaction has to leave below the limit while it runs.
    pub fn set_compaction_buffer_size(&self, bytes: u64) {
        self.limits.lock().compaction_buffer = bytes;
    }

    /// Returns whether files take more than they may.
    pub fn is_max_allowed_space_reached(&self) -> bool {
        let most = self.limits.lock().max_allowed;
        most > 0 && self.total_size() >= most
    }

    /// Returns whether files, and those that running compactions may make, take more than they may.
    pub fn is_max_allowed_space_reached_including_compactions(&self) -> bool {
        let most = self.limits.lock().max_allowed;
        let coming = self.reserved.load(Ordering::Relaxed);
        most > 0 && self.total_size().saturating_add(coming) >= most
    }

    /// Bytes of all table and blob files, trash among them.
    pub fn total_size(&self) -> u64 {
        self.sum(|live, dead| live.bytes() + dead.bytes())
    }

    /// Bytes of the tables that wait in line for their deletion.
    pub fn total_trash_size(&self) -> u64 {
        self.sum(|_, dead| dead.trash_bytes())
    }

    /// Bytes a second that are deleted at most; 0 and less for no limit.
    pub fn delete_rate_bytes_per_second(&self) -> i64 {
        self.limits.lock().delete_rate
    }

    /// Sets [`SstFileManager::delete_rate_bytes_per_second`].
    pub fn set_delete_rate_bytes_per_second(&self, rate: i64) {
        self.limits.lock().delete_rate = rate;
    }

    /// The share of all files that trash may take; beyond it tables are deleted at once.
    pub fn max_trash_db_ratio(&self) -> f64 {
        self.limits.lock().max_trash_ratio
    }

    /// Sets [`SstFileManager::max_trash_db_ratio`].
    pub fn set_max_trash_db_ratio(&self, ratio: f64) {
        self.limits.lock().max_trash_ratio = ratio;
    }

    /// Makes a database a member.
    pub fn join(&self, live: Weak<dyn LiveFiles>, dead: Weak<dyn DeadFiles>) {
        let mut members = self.members.lock();
        members.retain(|(live, _)| live.strong_count() > 0);
        members.push((live, dead));
    }

    fn sum(&self, of: impl Fn(&dyn LiveFiles, &dyn DeadFiles) -> u64) -> u64 {
        let members = self.members.lock().clone();
        let open = members
            .iter()
            .filter_map(|(live, dead)| Some((live.upgrade()?, dead.upgrade()?)));
        open.map(|(live, dead)| of(&*live, &*dead)).sum()
    }

    /// `SpaceLimit` once files take more than they may.
    pub fn check(&self) -> Result<()> {
        if !self.is_max_allowed_space_reached() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Io, "Max allowed space was reached")
            .with_subcode(Subcode::SpaceLimit))
    }

    /// Takes room for a compaction of `bytes`; `CompactionTooLarge` when there is less.
    pub fn reserve(&self, bytes: u64) -> Result<SpaceReservation<'_>> {
        let limits = *self.limits.lock();
        let coming = self.reserved.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let reserved = SpaceReservation(self, bytes);
        let wanted = coming.saturating_add(limits.compaction_buffer);
        if limits.max_allowed > 0 && self.total_size().saturating_add(wanted) > limits.max_allowed {
            return Err(Error::new(
                ErrorKind::CompactionTooLarge,
                "the compaction would take more than the space that is allowed",
            ));
        }
        Ok(reserved)
    }

    /// Returns whether obsolete tables have to wait in line now.
    pub fn queues(&self) -> bool {
        let limits = *self.limits.lock();
        limits.delete_rate > 0
            && self.total_trash_size() as f64 <= self.total_size() as f64 * limits.max_trash_ratio
    }

    /// Returns whether a table of `bytes` may be deleted at `now_us`; it counts as deleted then.
    pub fn may_delete(&self, bytes: u64, now_us: u64) -> bool {
        let Ok(rate @ 1..) = u64::try_from(self.delete_rate_bytes_per_second()) else {
            return true;
        };
        let cost = bytes.saturating_mul(1_000_000) / rate;
        let pay = |paid: u64| {
            (paid <= now_us).then(|| {
                paid.max(now_us.saturating_sub(CREDIT_US))
                    .saturating_add(cost)
            })
        };
        self.paid_us
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, pay)
            .is_ok()
    }
}
