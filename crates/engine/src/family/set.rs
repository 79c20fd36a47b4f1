//! The families of a database: looked up by number on every write, by name now and then.

use super::Family;
use crate::memory::{LiveFiles, MemtableBytes, Memtables};
use crate::memtable::held_logs::HeldLogs;
use crate::runtime::work_signal::WorkInbox;
use esker_format::FamilyId;
use esker_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use esker_sync::{Arc, ArcSwap, Mutex, Rank};
use hashbrown::HashMap;
use std::path::PathBuf;

/// An immutable directory of families, replaced as a whole when one is created or dropped.
#[derive(Debug)]
pub(crate) struct FamilySet {
    default: Arc<Family>,
    by_id: ArcSwap<HashMap<u32, Arc<Family>, foldhash::fast::FixedState>>,
    /// Some family, perhaps one that was dropped since, has keys with timestamps.
    timestamps: AtomicBool,
    /// Tells this set from every other one in the process.
    number: u64,
    /// The families that changed, and sums over all.
    pub(crate) inbox: Arc<WorkInbox>,
    /// The memtables with data, by their oldest logs.
    pub(crate) logs: Arc<HeldLogs>,
    /// Families visited by loops over all of them.
    #[cfg(test)]
    visits: AtomicU64,
    /// The directories of tables beside the database's, until a family comes or goes.
    table_dirs: Mutex<Option<Arc<[PathBuf]>>>,
}

/// The number of the next set.
static NEXT: AtomicU64 = AtomicU64::new(1);

impl FamilySet {
    /// A set of `families`; `None` when the default family is not among them.
    pub(crate) fn new(families: Vec<Arc<Family>>) -> Option<Self> {
        let default = families.iter().find(|f| f.id == FamilyId::DEFAULT)?.clone();
        let timestamps = families.iter().any(|f| f.order.timestamp_size() > 0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (inbox, logs) = (WorkInbox::new(), HeldLogs::new());
        for family in &families {
            family.home.store(number, Ordering::Relaxed);
            family.join(&inbox);
            family.hold_logs(&logs);
        }
        let by_id = families.into_iter().map(|f| (f.id.0, f)).collect();
        Some(FamilySet {
            default,
            by_id: ArcSwap::from_pointee(by_id),
            timestamps: AtomicBool::new(timestamps),
            number,
            inbox,
            logs,
            #[cfg(test)]
            visits: AtomicU64::new(0),
            table_dirs: Mutex::new(Rank::LEAF, None),
        })
    }

    /// The family called `default`.
    #[inline]
    pub(crate) fn default_family(&self) -> &Arc<Family> {
        &self.default
    }

    /// Returns whether `family` is, or was until it was dropped, one of these.
    #[inline]
    pub(crate) fn owns(&self, family: &Family) -> bool {
        family.home() == self.number
    }

    pub(crate) fn get(&self, id: FamilyId) -> Option<Arc<Family>> {
        if id == FamilyId::DEFAULT {
            return Some(Arc::clone(&self.default));
        }
        self.by_id.load().get(&id.0).cloned()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_id.load().len()
    }

    pub(crate) fn contains(&self, id: FamilyId) -> bool {
        id == FamilyId::DEFAULT || self.by_id.load().contains_key(&id.0)
    }

    /// Returns whether keys of some family may have timestamps.
    #[inline]
    pub(crate) fn may_have_timestamps(&self) -> bool {
        self.timestamps.load(Ordering::Relaxed)
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<Arc<Family>> {
        self.by_id.load().values().find(|f| f.name == name).cloned()
    }

    /// Shows `look` every family, in no order.
    pub(crate) fn each(&self, look: impl FnMut(&Arc<Family>)) {
        self.visited();
        self.by_id.load().values().for_each(look);
    }

    /// All families, by number.
    pub(crate) fn all(&self) -> Vec<Arc<Family>> {
        self.visited();
        let mut all: Vec<_> = self.by_id.load().values().cloned().collect();
        all.sort_by_key(|f| f.id);
        all
    }

    #[cfg(test)]
    fn visited(&self) {
        self.visits.fetch_add(self.len() as u64, Ordering::Relaxed);
    }

    #[cfg(not(test))]
    fn visited(&self) {}

    /// How many families loops over all of them have visited.
    #[cfg(test)]
    pub(crate) fn visits(&self) -> u64 {
        self.visits.load(Ordering::Relaxed)
    }

    /// The families of `ids` that exist.
    pub(crate) fn among(&self, ids: Vec<FamilyId>) -> Vec<Arc<Family>> {
        ids.into_iter().filter_map(|id| self.get(id)).collect()
    }

    /// Adds a family. The caller holds the admin lock.
    pub(crate) fn insert(&self, family: Arc<Family>) {
        self.insert_all([family]);
    }

    /// Adds families, which appear together. The caller holds the admin lock, or no other thread
    /// has the database yet.
    pub(crate) fn insert_all(&self, families: impl IntoIterator<Item = Arc<Family>>) {
        let mut map = HashMap::clone(&self.by_id.load());
        let families: Vec<_> = families.into_iter().collect();
        for family in &families {
            if family.order.timestamp_size() > 0 {
                self.timestamps.store(true, Ordering::Relaxed);
            }
            family.home.store(self.number, Ordering::Relaxed);
            // Before a writer finds it.
            family.hold_logs(&self.logs);
            map.insert(family.id.0, Arc::clone(family));
        }
        self.by_id.store(Arc::new(map));
        *self.table_dirs.lock() = None;
        // Once they are found by their numbers: the scheduler looks them up when it empties the
        // inbox.
        for family in &families {
            family.join(&self.inbox);
        }
    }

    /// Removes a family. The caller holds the admin lock.
    pub(crate) fn remove(&self, id: FamilyId) {
        let mut map = HashMap::clone(&self.by_id.load());
        let gone = map.remove(&id.0);
        self.by_id.store(Arc::new(map));
        *self.table_dirs.lock() = None;
        if let Some(family) = gone {
            family.let_logs_go();
            family.leave(&self.inbox);
        }
    }

    /// The directories of tables beside the database's, which `find` finds out once for the
    /// families that there are.
    pub(crate) fn table_dirs(
        &self,
        find: impl FnOnce(&[Arc<Family>]) -> Vec<PathBuf>,
    ) -> Arc<[PathBuf]> {
        if let Some(known) = &*self.table_dirs.lock() {
            return Arc::clone(known);
        }
        let families = self.by_id.load_full();
        let all: Vec<_> = families.values().cloned().collect();
        let found: Arc<[PathBuf]> = find(&all).into();
        let mut known = self.table_dirs.lock();
        // Families may have come meanwhile.
        if Arc::ptr_eq(&families, &self.by_id.load()) {
            *known = Some(Arc::clone(&found));
        }
        found
    }
}

impl Memtables for FamilySet {
    fn bytes(&self) -> MemtableBytes {
        let mut sum = MemtableBytes::default();
        self.each(|family| {
            let view = family.view_guard();
            let (open, total) = (view.mem.memory_usage(), view.memtable_bytes());
            let open_data = usize::try_from(view.mem.data_bytes()).unwrap_or(usize::MAX);
            sum += MemtableBytes {
                total,
                open,
                open_data,
                reclaimable: open_data.min(open) + total.saturating_sub(open),
            };
        });
        sum
    }

    fn largest_data(&self) -> u64 {
        let mut largest = 0;
        self.each(|family| largest = largest.max(family.view_guard().mem.data_bytes()));
        largest
    }
}

impl LiveFiles for FamilySet {
    fn bytes(&self) -> u64 {
        let mut sum = 0;
        self.each(|family| {
            let view = family.view_guard();
            let tables: u64 = view.version.files().map(|(_, f)| f.size).sum();
            let blobs = view.version.blob_files().values();
            sum += tables + blobs.map(|b| b.total_bytes).sum::<u64>();
        });
        sum
    }
}
