//! A column family over time: its options, its memtables and its tree, and the view that readers
//! take.
//!
//! Everything a reader needs is one [`View`] behind one atomic pointer: taking it costs no lock,
//! and what it points to never changes. A view is replaced, under the family's view lock, when a
//! memtable is switched or flushed or when the tree changes.

mod assessment;
pub(crate) mod backpressure;
mod block_cache;
mod compaction_stats;
mod conversions;
mod hiding;
mod old_views;
pub(crate) mod open_iterators;
mod parked;
mod read_debt;
mod read_work;
mod set;

pub(crate) use block_cache::choose_block_cache;
pub(crate) use compaction_stats::{
    CompactionStats, IngestionCounts, LastDump, LevelCounters, Pool, Totals,
};
pub(crate) use conversions::IngestionGuard;
pub(crate) use parked::ParkedCursors;
pub(crate) use read_work::{ReadOperation, ReadRow, ReadTotals, SAMPLE, SampledMove, is_sampled};
pub(crate) use set::FamilySet;

use crate::memtable::MemTable;
use crate::memtable::held_logs::{FamilyLogs, HeldLogs};
use crate::observe::{StallLedger, TableWatch};
use crate::options::{CompactionStyle, FamilyOptions};
use crate::ranks;
use crate::runtime::work_signal::{self as signal, WorkInbox, WorkSignal};
use crate::tree::Tables;
use crate::tree::blobs::{BlobReadOptions, BlobSource};
use crate::tree::tables::{Storage, TableAccess, TableSetting};
use backpressure::drain::DrainStats;
use backpressure::write_controller::WriteController;
use esker_format::{FamilyId, FileNo, KeyOrder, Seq};
use esker_lsm::merge_operator::MergeOperator;
use esker_lsm::pace::Pace;
use esker_lsm::version::Version;
use esker_status::seeded::{Bug, seeded};
use esker_sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use esker_sync::{Arc, ArcSwap, ArcSwapOption, Mutex, OnceLock, Rank, Weak};
use old_views::{OldView, ViewId};

/// State of one family that a reader sees, except the sequence number that it reads at.
#[derive(Debug)]
pub(crate) struct View {
    /// The memtable that takes writes.
    pub(crate) mem: Arc<MemTable>,
    /// The memtables that wait to be flushed, newest first.
    pub(crate) immutable: Vec<Arc<MemTable>>,
    /// Flushed memtables that stay for conflict checks of transactions, newest first. They join up
    /// with `immutable`: nothing was written between them.
    pub(crate) history: Vec<Arc<MemTable>>,
    /// The tree.
    pub(crate) version: Arc<Version>,
    /// The newest sequence that may be read in it: it holds everything up to there. The greatest
    /// there is, except where a primary is followed.
    pub(crate) limit: Seq,
    /// In families with timestamps: versions below it may be gone from the tree.
    pub(crate) history_from: Option<Arc<Vec<u8>>>,
    /// Rises with every change of the view.
    pub(crate) number: u64,
    pub(crate) id: ViewId,
    /// The newest sequence in its tables, once somebody asked.
    pub(crate) newest_in_tables: OnceLock<Seq>,
    pub(crate) parked: ParkedCursors,
}

impl View {
    /// The memtables that are in no table yet, the oldest first.
    pub(crate) fn unflushed(&self) -> impl Iterator<Item = &Arc<MemTable>> {
        self.immutable.iter().rev().chain([&self.mem])
    }

    /// The number of the oldest log that holds data of this family which is in no table yet.
    pub(crate) fn oldest_log(&self) -> Option<FileNo> {
        self.unflushed()
            .find(|m| !m.is_empty())
            .map(|m| m.log_number())
    }

    /// Returns a view of the same memtables over another tree.
    pub(crate) fn with_version(&self, version: Arc<Version>) -> View {
        View {
            mem: Arc::clone(&self.mem),
            immutable: self.immutable.clone(),
            history: self.history.clone(),
            version,
            limit: self.limit,
            history_from: None,
            number: 0,
            id: ViewId::default(),
            newest_in_tables: OnceLock::new(),
            parked: ParkedCursors::default(),
        }
    }

    /// The newest sequence in its tables.
    fn newest_in_tables(&self) -> Seq {
        *self.newest_in_tables.get_or_init(|| self.version.max_seq())
    }

    /// Bytes of the memtables that are kept although they are flushed.
    pub(crate) fn history_bytes(&self) -> usize {
        self.history.iter().map(|m| m.memory_usage()).sum()
    }

    /// The flushed memtables that stay once `mem` and `immutable` are in memory beside them: the
    /// newest, up to `limit` bytes of all memtables without the oldest.
    pub(crate) fn trimmed_history(
        mem: &MemTable,
        immutable: &[Arc<MemTable>],
        mut history: Vec<Arc<MemTable>>,
        limit: u64,
    ) -> Vec<Arc<MemTable>> {
        let bytes = |m: &[Arc<MemTable>]| m.iter().map(|m| m.memory_usage() as u64).sum::<u64>();
        let in_use = mem.memory_usage() as u64 + bytes(immutable);
        while let Some((_, newer)) = history.split_last() {
            if limit > 0 && in_use + bytes(newer) < limit {
                break;
            }
            history.pop();
        }
        history
    }

    /// Bytes of the memtables that are not flushed.
    pub(crate) fn memtable_bytes(&self) -> usize {
        self.mem.memory_usage()
            + self
                .immutable
                .iter()
                .map(|m| m.memory_usage())
                .sum::<usize>()
    }
}

/// States that readers may still hold, with some that are gone.
#[derive(Debug)]
struct HeldStates {
    versions: Vec<Weak<Version>>,
    /// Without the present one.
    views: Vec<OldView>,
}

/// One column family of an open database.
#[derive(Debug)]
pub(crate) struct Family {
    pub(crate) id: FamilyId,
    pub(crate) name: String,
    pub(crate) order: KeyOrder,
    pub(crate) options: ArcSwap<FamilyOptions>,
    /// As in the options, which cannot change it: point reads need nothing else of them.
    pub(crate) merge_operator: Option<Arc<dyn MergeOperator>>,
    /// How its tables are read.
    pub(crate) reading: Arc<TableSetting>,
    /// Access through which cursors open tables, created once.
    access: OnceLock<Arc<TableAccess>>,
    /// Marked when there may be other work to do.
    pub(crate) signal: Arc<WorkSignal>,
    /// Its memtables in the index of logs.
    log_hold: Arc<FamilyLogs>,
    /// Last assessment of its tree.
    last_assessment: assessment::LastAssessment,
    /// Counts what reading its tables costs; only with statistics.
    pub(crate) watch: Option<Arc<TableWatch>>,
    pub(crate) compaction_stats: LevelCounters,
    /// Time that its writers were held back.
    pub(crate) stalls: StallLedger,
    /// Compactions of level 0 that run.
    pub(crate) level0_compactions: AtomicUsize,
    /// How fast background work goes.
    pub(crate) drain: DrainStats,
    /// Extra time that reads spend because its tree has several runs.
    read_debt: read_debt::ReadDebt,
    /// Work of its reads, for the read amplification.
    pub(crate) read_totals: ReadTotals,
    ingestions: conversions::Ingestions,
    hiding: hiding::ScanFlush,
    /// The rate of its writers.
    pace: Mutex<Pace>,
    /// Gate that its writers pass.
    pub(crate) gate: WriteController,
    view: ArcSwap<View>,
    /// Guards the replacement of `view`.
    changing: Mutex<HeldStates>,
    next_memtable: AtomicU64,
    /// When a flush last brought a table, by the clock; the greatest number for never.
    flushed_us: AtomicU64,
    dropped: AtomicBool,
    /// How its writers are held back, as a number of [`crate::observe::StallCondition`].
    pub(crate) stall_condition: AtomicU8,
    /// Set by the writer that filled the memtable, cleared by the one that switches it.
    pub(crate) switch_wanted: AtomicBool,
    /// The log number that the MANIFEST holds for this family.
    pub(crate) persisted_log: AtomicU64,
    /// Compactions may drop versions below this timestamp that newer ones hide. It only rises.
    full_history_ts_low: ArcSwapOption<Vec<u8>>,
    /// The number of the set it belongs to; 0 before it is in one.
    home: AtomicU64,
}

impl Family {
    pub(crate) fn new(
        id: FamilyId,
        name: String,
        mut options: FamilyOptions,
        storage: Storage,
        version: Arc<Version>,
        log: FileNo,
    ) -> Arc<Self> {
        options.blob_cache.make();
        let order = options.comparator.clone();
        let (signal, log_hold) = (WorkSignal::new(id), FamilyLogs::new(id));
        let reading = TableSetting::of(&options, &order, &storage).with_signal(&signal);
        let held = HeldStates {
            versions: vec![Arc::downgrade(&version)],
            views: Vec::new(),
        };
        let mem = MemTable::new(0, order.clone(), &options, log, None, &log_hold);
        let view = View {
            mem: Arc::new(mem),
            immutable: Vec::new(),
            history: Vec::new(),
            version,
            limit: Seq::MAX,
            history_from: None,
            number: 0,
            id: ViewId::default(),
            newest_in_tables: OnceLock::new(),
            parked: ParkedCursors::default(),
        };
        Arc::new(Family {
            id,
            name,
            order,
            reading: Arc::new(reading),
            access: OnceLock::new(),
            signal,
            log_hold,
            last_assessment: assessment::LastAssessment::default(),
            watch: storage.watch,
            compaction_stats: LevelCounters::default(),
            stalls: StallLedger::new(),
            level0_compactions: AtomicUsize::new(0),
            drain: DrainStats::default(),
            read_debt: read_debt::ReadDebt::default(),
            read_totals: ReadTotals::default(),
            ingestions: conversions::Ingestions::default(),
            hiding: hiding::ScanFlush::default(),
            pace: Mutex::new(Rank::LEAF, Pace::default()),
            gate: WriteController::new(),
            merge_operator: options.merge_operator.clone(),
            options: ArcSwap::from_pointee(options),
            view: ArcSwap::from_pointee(view),
            changing: Mutex::new(ranks::VIEW, held),
            next_memtable: AtomicU64::new(1),
            flushed_us: AtomicU64::new(u64::MAX),
            dropped: AtomicBool::new(false),
            stall_condition: AtomicU8::new(0),
            switch_wanted: AtomicBool::new(false),
            persisted_log: AtomicU64::new(log.0),
            full_history_ts_low: ArcSwapOption::empty(),
            home: AtomicU64::new(0),
        })
    }

    /// Returns its blob files in `version`, for reads.
    pub(crate) fn blob_source<'a>(
        &'a self,
        version: &'a Version,
        options: BlobReadOptions,
    ) -> BlobSource<'a> {
        BlobSource {
            family: self.id,
            reading: &self.reading,
            version,
            options,
        }
    }

    /// Returns the access that opens its tables out of `tables`.
    pub(crate) fn table_access(&self, tables: &Arc<Tables>) -> &Arc<TableAccess> {
        self.access.get_or_init(|| {
            Arc::new(TableAccess {
                tables: Arc::clone(tables),
                reading: Arc::clone(&self.reading),
                order: self.order.clone(),
            })
        })
    }

    /// Returns the same family under the number `id`, with another tree and without its data in
    /// memory.
    pub(crate) fn with_tree(&self, id: FamilyId, version: Arc<Version>, log: FileNo) -> Arc<Self> {
        Family::new(
            id,
            self.name.clone(),
            FamilyOptions::clone(&self.options.load()),
            Storage {
                paths: Arc::clone(&self.reading.paths),
                cache: self.reading.cache(),
                watch: self.watch.clone(),
            },
            version,
            log,
        )
    }

    /// The family becomes one of those of `inbox`. No other thread has it yet.
    fn join(&self, inbox: &Arc<WorkInbox>) {
        inbox.add(self.view_guard().version.bytes(), self.is_space_bounded());
        self.signal.join(inbox);
    }

    /// Leaves the inbox.
    fn leave(&self, inbox: &WorkInbox) {
        inbox.remove(self.view_guard().version.bytes(), self.is_space_bounded());
        self.signal.mark(signal::MEMTABLES | signal::TREE);
    }

    /// The view, counted: it stays whole for as long as it is held.
    pub(crate) fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// The view for a short look, without touching a shared counter.
    #[inline]
    pub(crate) fn view_guard(&self) -> arc_swap::Guard<Arc<View>> {
        self.view.load()
    }

    /// Replaces the view by what `change` makes of it.
    pub(crate) fn change_view(&self, change: impl FnOnce(&View) -> View) -> Arc<View> {
        let mut held = self.changing.lock();
        let old = self.view.load();
        let mut new = change(&old);
        new.number = old.number + 1;
        // What a job under way drops shows no earlier than in the view that the job makes.
        new.history_from = self.full_history_ts_low.load_full();
        let mut marks = signal::MEMTABLES;
        if !Arc::ptr_eq(&new.version, &old.version) {
            held.versions.retain(|v| v.strong_count() > 0);
            held.versions.push(Arc::downgrade(&new.version));
            marks |= signal::TREE;
            let (before, after) = (old.version.bytes(), new.version.bytes());
            self.signal.resized(before, after);
        }
        let new = Arc::new(new);
        held.views.retain(OldView::is_held);
        held.views.push(OldView::of(&old));
        self.view.store(Arc::clone(&new));
        let stays = |m: &MemTable| {
            if seeded(Bug::LogHeldTooShort) {
                new.mem.id() == m.id()
            } else {
                new.unflushed().any(|n| n.id() == m.id())
            }
        };
        let gone = |m: &&Arc<MemTable>| !stays(m);
        self.log_hold.end(old.unflushed().filter(gone));
        self.signal.mark(marks);
        new
    }

    /// Returns whether readers may hold a view that was replaced.
    pub(crate) fn has_old_views(&self) -> bool {
        self.changing.lock().views.iter().any(OldView::is_held)
    }

    /// The views that were replaced and that are held, each with the microseconds since a call
    /// found it first.
    pub(crate) fn old_views(&self, now_us: u64) -> Vec<(Arc<View>, u64)> {
        let views = self.changing.lock().views.clone();
        // Past the lock: a view may end here.
        views.iter().filter_map(|old| old.look(now_us)).collect()
    }

    /// The trees that are held, the newest last.
    pub(crate) fn live_versions(&self) -> Vec<Arc<Version>> {
        self.changing
            .lock()
            .versions
            .iter()
            .filter_map(Weak::upgrade)
            .collect()
    }

    /// The trees with this blob file that may still be held.
    pub(crate) fn readers_of_blob(&self, blob: FileNo) -> Vec<Weak<Version>> {
        let mut versions = self.changing.lock().versions.clone();
        // Past the lock: a version may end here.
        versions.retain(|v| {
            v.upgrade()
                .is_some_and(|v| v.blob_files().contains_key(&blob))
        });
        versions
    }

    /// Retires the memtable that takes writes and starts a new one whose data begins in log `log`.
    ///
    /// The caller holds the log lock and no write is in flight. `last` is the newest write before
    /// the switch, when that is known.
    pub(crate) fn switch_memtable(&self, log: FileNo, last: Option<Seq>) {
        let mem = self.new_memtable(log);
        if let Some(last) = last {
            mem.begin_after(last);
        }
        mem.take_deleted_ranges(&self.view_guard().mem);
        let limit = self.history_limit();
        self.change_view(|v| {
            let mut immutable = Vec::with_capacity(v.immutable.len() + 1);
            immutable.push(Arc::clone(&v.mem));
            immutable.extend(v.immutable.iter().cloned());
            View {
                history: View::trimmed_history(&mem, &immutable, v.history.clone(), limit),
                mem,
                immutable,
                version: Arc::clone(&v.version),
                limit: v.limit,
                history_from: None,
                number: 0,
                id: ViewId::default(),
                newest_in_tables: OnceLock::new(),
                parked: ParkedCursors::default(),
            }
        });
        self.switch_wanted.store(false, Ordering::Release);
    }

    /// A flush brings a table.
    pub(crate) fn note_flush(&self, now_us: u64) {
        self.flushed_us.store(now_us, Ordering::Relaxed);
    }

    /// An empty memtable whose data begins in log `log`.
    pub(crate) fn new_memtable(&self, log: FileNo) -> Arc<MemTable> {
        let id = self.next_memtable.fetch_add(1, Ordering::Relaxed);
        let options = self.options.load();
        let view = self.view_guard();
        Arc::new(MemTable::new(
            id,
            self.order.clone(),
            &options,
            log,
            Some(&view.mem),
            &self.log_hold,
        ))
    }

    /// The log from which on a memtable of the family has its data, or will have it: later writes
    /// of an empty one are in the log that takes appends now, or in newer ones.
    pub(crate) fn first_log(&self, mem: &MemTable) -> FileNo {
        // Read before the memtable is: its first write may come in between.
        let switched = self.log_hold.last_switched();
        if mem.is_empty() {
            mem.log_number().max(switched)
        } else {
            mem.log_number()
        }
    }

    /// The data of the open memtable begins in `log`. For recovery, beside which there are no
    /// writers.
    pub(crate) fn set_log_number(&self, log: FileNo) {
        self.log_hold.move_to(&self.view_guard().mem, log);
    }

    /// Enters its memtables into `index`. No other thread has the family yet.
    fn hold_logs(&self, index: &Arc<HeldLogs>) {
        self.log_hold.join(index, self.view_guard().unflushed());
    }

    /// The family is dropped: no log is kept for it.
    fn let_logs_go(&self) {
        self.log_hold.leave(self.view_guard().unflushed());
    }

    /// Bytes of memtables up to which flushed ones stay for conflict checks; 0 for none.
    pub(crate) fn history_limit(&self) -> u64 {
        let options = self.options.load();
        u64::try_from(options.max_write_buffer_size_to_maintain).unwrap_or_else(|_| {
            let memtables = u64::try_from(options.max_write_buffer_number).unwrap_or(0);
            memtables.saturating_mul(options.write_buffer_size as u64)
        })
    }

    /// From here on every write of the family after `last` is in its open memtable. No write is in
    /// flight.
    pub(crate) fn begin_after(&self, last: Seq) {
        self.view_guard().mem.begin_after(last);
    }

    /// Writes up to `last` went past the memtables: they say nothing about what was written before.
    /// The caller holds the log lock and no write is in flight.
    pub(crate) fn forget_history(&self, last: Seq) {
        self.change_view(|v| {
            v.immutable.iter().for_each(|m| m.forget_beginning());
            v.mem.begin_after(last);
            View {
                history: Vec::new(),
                ..v.with_version(Arc::clone(&v.version))
            }
        });
    }

    /// Returns whether the space of its tables is bounded.
    pub(crate) fn is_space_bounded(&self) -> bool {
        let options = self.options.load();
        let universal = &options.compaction_options_universal;
        let is_universal = options.compaction_style == CompactionStyle::Universal;
        options.max_space_amplification_percent > 0
            || (is_universal && universal.max_peak_size_amplification_percent > 0)
    }

    /// Replaces the options. The caller holds the admin lock.
    pub(crate) fn set_options(&self, options: FamilyOptions) {
        let before = self.is_space_bounded();
        self.options.store(Arc::new(options));
        self.signal.rebounded(before, self.is_space_bounded());
        self.signal.mark(signal::MEMTABLES | signal::TREE);
    }

    /// The timestamp below which compactions may drop versions that newer ones hide.
    pub(crate) fn full_history_ts_low(&self) -> Option<Arc<Vec<u8>>> {
        self.full_history_ts_low.load_full()
    }

    /// Raises [`Family::full_history_ts_low`], which the MANIFEST holds. In an order without
    /// timestamps, and for a timestamp that is not above the one there is, nothing happens. The
    /// caller holds the store lock, or no other thread has the family yet.
    pub(crate) fn raise_full_history_ts_low(&self, low: &[u8]) {
        if low.len() != self.order.timestamp_size() || low.is_empty() {
            return;
        }
        let before = self.full_history_ts_low.load();
        let rises = |b: &Arc<Vec<u8>>| self.order.compare_timestamp(low, b).is_gt();
        if before.as_ref().is_none_or(rises) {
            self.full_history_ts_low.store(Some(Arc::new(low.to_vec())));
        }
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// The number of the set of families that it is or was in.
    #[inline]
    pub(crate) fn home(&self) -> u64 {
        self.home.load(Ordering::Relaxed)
    }

    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }
}

/// A caller's hold on a column family. Cheap to clone; stays usable for reading after a drop.
#[derive(Clone)]
pub struct FamilyHandle(pub(crate) Arc<Family>);

impl std::fmt::Debug for FamilyHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FamilyHandle({:?}, id {})", self.name(), self.id())
    }
}

impl FamilyHandle {
    /// The family's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }
    /// The family's number.
    pub fn id(&self) -> u32 {
        self.0.id.0
    }
    /// The order of its keys.
    pub fn order(&self) -> &KeyOrder {
        &self.0.order
    }
    /// The operator that combines its merge operands, if it has one.
    pub fn merge_operator(&self) -> Option<Arc<dyn MergeOperator>> {
        self.0.merge_operator.clone()
    }
}

impl From<&FamilyHandle> for FamilyId {
    /// The number that the records of a [`crate::WriteBatch`] name the family by.
    fn from(family: &FamilyHandle) -> FamilyId {
        family.0.id
    }
}

impl PartialEq for FamilyHandle {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
