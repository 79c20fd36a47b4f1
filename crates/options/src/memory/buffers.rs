//! A limit on the memory of memtables, which several databases may share.
//!
//! Every database belongs to one manager; its own when none is given. Nothing is counted where
//! memtables grow: the manager adds up what the memtables of its members take when it is asked,
//! which writers do now and then. When that is too much the largest memtable of all members is to
//! be flushed: by the writer who noticed when it is his own database's, else by that database's
//! background threads, so that an idle database gives its memory back too. With `allow_stall`
//! writers wait while the limit is exceeded and a flush can change that.
//!
//! With a cache the memory is taken from the cache's capacity, in steps of 256 KiB. The manager of
//! a memory budget tells the budget what it measured, and has the largest memtable flushed at half
//! of the limit: the other half is for what is being flushed. Its writers wait where the budget
//! says so: beyond its share memtables take from the caches first. Thread-safety: any thread.

use crate::runtime::BackgroundCv;
use esker_files::table::BlockCache;
use esker_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use esker_sync::{Arc, Condvar, Mutex, Rank, Weak};
use std::time::Duration;

/// The step in which memory is taken from the cache.
const RESERVATION: usize = 256 << 10;
/// Taken before the locks of a cache.
const RESERVED: Rank = Rank::new(u16::MAX - 2, "reserved write buffers").brief();
/// Longest wait before a stalled writer looks again.
const STALL: Duration = Duration::from_millis(10);

/// A limit on the memory of memtables that several databases may share: see
/// [`crate::options::DbOptions::write_buffer_manager`].
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker::{Db, Options, WriteBufferManager};
///
/// let buffers = WriteBufferManager::new(64 << 20, false);
/// let open = |name: &str| {
///     let mut options = Options::new().create_if_missing(true);
///     options.db.write_buffer_manager = Some(buffers.clone());
///     Db::open(dir.path().join(name), options)
/// };
/// let first = open("first")?;
/// first.put("key", "value")?;
/// let one = buffers.memory_usage();
/// let second = open("second")?;
/// second.put("key", "value")?;
/// assert!(buffers.memory_usage() > one);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct WriteBufferManager {
    /// 0 for no limit.
    size: AtomicUsize,
    allow_stall: AtomicBool,
    /// Of a budget: the size from which writers wait, where flushes can give half of it back.
    stall_size: AtomicUsize,
    cache: Option<Arc<BlockCache>>,
    /// The budget that it is part of.
    budget: Option<Weak<dyn MemtableObserver>>,
    /// Bytes taken from the cache.
    reserved: Mutex<usize>,
    members: Mutex<Vec<Weak<HandleState>>>,
    /// The limit was exceeded when it was last looked at.
    is_over: AtomicBool,
    /// How often memory became free.
    freed: Mutex<u64>,
    changed: Condvar,
}

/// A budget that memtables share with others.
pub(super) trait MemtableObserver: std::fmt::Debug + Send + Sync {
    /// They take so much together.
    fn memtables_take(&self, bytes: usize);
}

/// Memory of memtables.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemtableBytes {
    /// Bytes taken from the system.
    pub total: usize,
    /// Of those, by memtables that take writes.
    pub open: usize,
    /// Bytes written into memtables that take writes.
    pub open_data: usize,
    /// Bytes that flushes can give back: what was written, and whole memtables that wait for their
    /// flush.
    pub reclaimable: usize,
}

/// The memtables of one database.
pub trait Memtables: std::fmt::Debug + Send + Sync {
    /// Returns the memory that they take together.
    fn bytes(&self) -> MemtableBytes;
    /// Returns the bytes written into the largest that takes writes.
    fn largest_data(&self) -> u64;
}

impl std::ops::AddAssign for MemtableBytes {
    fn add_assign(&mut self, more: MemtableBytes) {
        self.total += more.total;
        self.open += more.open;
        self.open_data += more.open_data;
        self.reclaimable += more.reclaimable;
    }
}

/// One database's part in a manager; it leaves when this is dropped.
#[derive(Debug)]
pub struct WriteBufferHandle {
    manager: Arc<WriteBufferManager>,
    state: Arc<HandleState>,
}

#[derive(Debug)]
struct HandleState {
    memtables: Weak<dyn Memtables>,
    background_cv: Arc<BackgroundCv>,
    /// The memory of this database's largest memtable is needed.
    flush_requested: AtomicBool,
    has_left: AtomicBool,
}

impl HandleState {
    fn memtables(&self) -> Option<Arc<dyn Memtables>> {
        if self.has_left.load(Ordering::Acquire) {
            return None;
        }
        self.memtables.upgrade()
    }

    fn largest_data(&self) -> u64 {
        self.memtables().map_or(0, |m| m.largest_data())
    }
}

impl WriteBufferManager {
    /// A limit of `bytes` (0 for none). With `allow_stall` writers wait while it is exceeded.
    pub fn new(bytes: usize, allow_stall: bool) -> Arc<Self> {
        Self::make(bytes, None, None, allow_stall)
    }

    /// Makes a manager whose memory is taken from the capacity of `cache`.
    pub fn with_cache(bytes: usize, cache: Arc<BlockCache>, allow_stall: bool) -> Arc<Self> {
        Self::make(bytes, Some(cache), None, allow_stall)
    }

    /// A limit of `bytes`, which is part of a budget. Writers wait for what the budget sets
    /// ([`Self::set_stall_size`]), if at all.
    pub(super) fn of_budget(
        bytes: usize,
        budget: Weak<dyn MemtableObserver>,
        allow_stall: bool,
    ) -> Arc<Self> {
        Self::make(bytes, None, Some(budget), allow_stall)
    }

    fn make(
        bytes: usize,
        cache: Option<Arc<BlockCache>>,
        budget: Option<Weak<dyn MemtableObserver>>,
        allow_stall: bool,
    ) -> Arc<Self> {
        Arc::new(WriteBufferManager {
            size: AtomicUsize::new(bytes),
            allow_stall: AtomicBool::new(allow_stall),
            stall_size: AtomicUsize::new(usize::MAX),
            cache,
            budget,
            reserved: Mutex::new(RESERVED, 0),
            members: Mutex::new(Rank::LEAF, Vec::new()),
            is_over: AtomicBool::new(false),
            freed: Mutex::new(Rank::LEAF, 0),
            changed: Condvar::new(),
        })
    }

    /// Returns whether there is a limit.
    #[inline]
    pub fn is_enabled(&self) -> bool {
        self.buffer_size() > 0
    }

    /// Returns whether the memory is taken from a cache.
    pub fn cost_to_cache(&self) -> bool {
        self.cache.is_some()
    }

    /// The limit in bytes; 0 for none.
    pub fn buffer_size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Changes the limit.
    pub fn set_buffer_size(&self, bytes: usize) {
        self.size.store(bytes, Ordering::Relaxed);
        self.settle();
    }

    /// Sets the limit without a measurement.
    pub(super) fn set_limit(&self, bytes: usize) {
        self.size.store(bytes, Ordering::Relaxed);
    }

    /// Sets from which size on writers of a budget wait.
    pub(super) fn set_stall_size(&self, bytes: usize) {
        self.stall_size.store(bytes, Ordering::Relaxed);
    }

    /// Returns whether writers wait while the limit is exceeded.
    pub fn allow_stall(&self) -> bool {
        self.allow_stall.load(Ordering::Relaxed)
    }

    /// Changes that; writers who wait go on when it is taken back.
    pub fn set_allow_stall(&self, yes: bool) {
        self.allow_stall.store(yes, Ordering::Relaxed);
        self.settle();
    }

    /// Bytes of all memtables of all members.
    pub fn memory_usage(&self) -> usize {
        self.measure().total
    }

    /// Bytes of the memtables that take writes.
    pub fn mutable_memtable_memory_usage(&self) -> usize {
        self.measure().open
    }

    /// Bytes taken from the cache.
    pub fn dummy_entries_in_cache_usage(&self) -> usize {
        *self.reserved.lock()
    }

    /// Makes a database a member.
    pub fn join(
        manager: &Arc<Self>,
        memtables: Weak<dyn Memtables>,
        cv: &Arc<BackgroundCv>,
    ) -> WriteBufferHandle {
        let state = Arc::new(HandleState {
            memtables,
            background_cv: Arc::clone(cv),
            flush_requested: AtomicBool::new(false),
            has_left: AtomicBool::new(false),
        });
        manager.members.lock().push(Arc::downgrade(&state));
        WriteBufferHandle {
            manager: Arc::clone(manager),
            state,
        }
    }

    fn members(&self) -> Vec<Arc<HandleState>> {
        let mut members = self.members.lock();
        members.retain(|m| m.strong_count() > 0);
        members.iter().filter_map(Weak::upgrade).collect()
    }

    fn measure(&self) -> MemtableBytes {
        let mut measured = MemtableBytes::default();
        for memtables in self.members().iter().filter_map(|m| m.memtables()) {
            measured += memtables.bytes();
        }
        measured
    }

    /// Measures, and brings what follows from it up to date.
    fn settle(&self) -> MemtableBytes {
        let measured = self.measure();
        if let Some(cache) = &self.cache {
            let wanted = measured.total.div_ceil(RESERVATION) * RESERVATION;
            let mut reserved = self.reserved.lock();
            if *reserved != wanted {
                cache.reserve(wanted, *reserved);
                *reserved = wanted;
            }
        }
        if let Some(budget) = self.budget.as_ref().and_then(Weak::upgrade) {
            budget.memtables_take(measured.total);
        }
        let is_over = match &self.budget {
            Some(_) => {
                let most = self.stall_size.load(Ordering::Relaxed);
                measured.total >= most && measured.reclaimable >= most / 2
            }
            None => {
                let most = self.buffer_size();
                most > 0 && measured.reclaimable >= most
            }
        };
        self.is_over.store(is_over, Ordering::Release);
        if !is_over {
            *self.freed.lock() += 1;
            self.changed.notify_all();
        }
        measured
    }

    /// Returns whether a memtable should be flushed.
    fn is_near(&self, measured: &MemtableBytes) -> bool {
        let most = self.buffer_size();
        if self.budget.is_some() {
            return measured.open_data >= most / 2;
        }
        // What is being flushed counts against the limit too, but flushing more does not free it
        // sooner.
        measured.open_data >= most / 8 * 7
            || (measured.total >= most && measured.open_data >= most / 2)
    }

    /// Measures, and has the largest memtable flushed by its database when that is due.
    pub(super) fn relieve(&self) {
        let measured = self.settle();
        if self.is_enabled() && self.is_near(&measured) {
            let members = self.members().into_iter();
            if let Some(largest) = members.max_by_key(|m| m.largest_data()) {
                largest.flush_requested.store(true, Ordering::Release);
                largest.background_cv.notify();
            }
        }
    }

    /// Wakes the background threads of all members.
    pub(super) fn notify_members(&self) {
        self.members().iter().for_each(|m| m.background_cv.notify());
    }

    fn must_stall(&self) -> bool {
        self.is_over.load(Ordering::Acquire) && self.allow_stall()
    }
}

/// Action of a database about the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushDecision {
    /// Nothing.
    None,
    /// Flush its largest memtable.
    Own,
}

impl WriteBufferHandle {
    /// Returns whether there is a limit or a cache that is to know.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.manager.is_enabled() || self.manager.cost_to_cache()
    }

    /// Bytes between two looks at the limit: adding up is not free.
    pub fn interval(&self) -> u64 {
        match self.manager.buffer_size() {
            0 => RESERVATION as u64,
            most => (most / 32) as u64,
        }
    }

    /// Looks at the limit. When it is near, the largest memtable of all members is to be flushed:
    /// the answer says whether it is one of this database's; if not, its database is told.
    pub fn look(&self) -> FlushDecision {
        let most = self.manager.buffer_size();
        let measured = self.manager.settle();
        if most == 0 || !self.manager.is_near(&measured) {
            return FlushDecision::None;
        }
        let members = self.manager.members();
        match members.into_iter().max_by_key(|m| m.largest_data()) {
            Some(largest) if !Arc::ptr_eq(&largest, &self.state) => {
                if largest.flush_requested.swap(true, Ordering::AcqRel) {
                    // It was told before and has not done it: it may be paused.
                    return FlushDecision::Own;
                }
                largest.background_cv.notify();
                FlushDecision::None
            }
            _ => FlushDecision::Own,
        }
    }

    /// Returns whether another member wants the memory of this database's largest memtable.
    pub fn is_flush_requested(&self) -> bool {
        self.state.flush_requested.load(Ordering::Acquire)
    }

    /// Takes the request: true once for each.
    pub fn take_flush_request(&self) -> bool {
        self.is_flush_requested() && self.state.flush_requested.swap(false, Ordering::AcqRel)
    }

    /// Returns whether writers must wait now.
    #[inline]
    pub fn must_stall(&self) -> bool {
        self.manager.must_stall()
    }

    /// Waits a little for memory to become free.
    pub fn wait(&self) {
        let mut freed = self.manager.freed.lock();
        if self.manager.must_stall() {
            self.manager.changed.wait_for(&mut freed, STALL);
        }
    }

    /// A memtable was given back.
    pub fn freed(&self) {
        if self.is_watched() {
            self.manager.settle();
        }
    }
}

impl Drop for WriteBufferHandle {
    fn drop(&mut self) {
        self.state.has_left.store(true, Ordering::Release);
        self.manager.settle();
    }
}
