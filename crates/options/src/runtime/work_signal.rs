//! Which families changed since the scheduler last looked at them.
//!
//! A thread that changes the work of a family marks its [`WorkSignal`]; the first mark puts the
//! family's number into the database's [`WorkInbox`], which the scheduler empties before it chooses
//! a job. So the scheduler looks at families that changed, however many there are.
//!
//! A mark that is set while the scheduler takes the signal is seen by that look or queues the
//! family again, never neither: the scheduler takes the marks first and looks afterwards.
//! Thread-safety: marking takes one leaf lock, and only if the family was not in the inbox already.

use esker_format::FamilyId;
use esker_sync::atomic::{AtomicI64, AtomicU8, Ordering};
use esker_sync::{Arc, Mutex, OnceLock, Rank};

/// A set of changes.
pub type Marks = u8;
/// The family's memtables.
pub const MEMTABLES: Marks = 1;
/// Its tree, what runs on it, or the options that it is compacted by.
pub const TREE: Marks = 2;

/// The families of a database that changed, each at most once, and sums over all families that are
/// kept up to date with them.
#[derive(Debug)]
pub struct WorkInbox {
    changed: Mutex<Vec<FamilyId>>,
    /// Bytes of the tables of all newest trees.
    table_bytes: AtomicI64,
    /// Families whose space is bounded.
    bounded: AtomicI64,
}

impl WorkInbox {
    /// An empty inbox.
    pub fn new() -> Arc<Self> {
        Arc::new(WorkInbox {
            changed: Mutex::new(Rank::LEAF, Vec::new()),
            table_bytes: AtomicI64::new(0),
            bounded: AtomicI64::new(0),
        })
    }

    /// Takes the numbers out. The marks stay with the families until they are taken.
    pub fn take(&self) -> Vec<FamilyId> {
        std::mem::take(&mut *self.changed.lock())
    }

    /// Bytes of the tables of all families, as their newest trees have them.
    pub fn table_bytes(&self) -> u64 {
        u64::try_from(self.table_bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Returns whether the space of some family's tables is bounded.
    pub fn is_space_bounded(&self) -> bool {
        self.bounded.load(Ordering::Relaxed) > 0
    }

    /// A family whose tables take `table_bytes` is one of the database's from now on.
    pub fn add(&self, table_bytes: u64, is_space_bounded: bool) {
        self.table_bytes
            .fetch_add(signed(table_bytes), Ordering::Relaxed);
        self.bounded
            .fetch_add(i64::from(is_space_bounded), Ordering::Relaxed);
    }

    /// A family is not among those of the database any more: its tree does not change again.
    pub fn remove(&self, table_bytes: u64, is_space_bounded: bool) {
        self.table_bytes
            .fetch_sub(signed(table_bytes), Ordering::Relaxed);
        self.bounded
            .fetch_sub(i64::from(is_space_bounded), Ordering::Relaxed);
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// The marks of one family.
#[derive(Debug)]
pub struct WorkSignal {
    family: FamilyId,
    marks: AtomicU8,
    inbox: OnceLock<Arc<WorkInbox>>,
}

impl WorkSignal {
    /// The signal of a family that is in no inbox yet.
    pub fn new(family: FamilyId) -> Arc<Self> {
        Arc::new(WorkSignal {
            family,
            marks: AtomicU8::new(0),
            inbox: OnceLock::new(),
        })
    }

    /// From now on changes are put into `inbox`, and the family is in it as one of which nothing is
    /// known.
    pub fn join(&self, inbox: &Arc<WorkInbox>) {
        let _once = self.inbox.set(Arc::clone(inbox));
        self.marks.fetch_or(MEMTABLES | TREE, Ordering::AcqRel);
        // A mark that came before the inbox did not get there.
        self.post();
    }

    /// Takes note of a change that has been made.
    pub fn mark(&self, marks: Marks) {
        if self.marks.fetch_or(marks, Ordering::AcqRel) == 0 {
            self.post();
        }
    }

    /// The family's tables take `after` bytes, which were `before`.
    pub fn resized(&self, before: u64, after: u64) {
        if let Some(inbox) = self.inbox.get() {
            let grown = signed(after) - signed(before);
            inbox.table_bytes.fetch_add(grown, Ordering::Relaxed);
        }
    }

    /// The family's space is bounded, or not any more.
    pub fn rebounded(&self, before: bool, after: bool) {
        if let Some(inbox) = self.inbox.get() {
            let more = i64::from(after) - i64::from(before);
            inbox.bounded.fetch_add(more, Ordering::Relaxed);
        }
    }

    fn post(&self) {
        if let Some(inbox) = self.inbox.get() {
            inbox.changed.lock().push(self.family);
        }
    }

    /// Takes the marks, before what they are about is looked at.
    pub fn take(&self) -> Marks {
        self.marks.swap(0, Ordering::AcqRel)
    }
}
