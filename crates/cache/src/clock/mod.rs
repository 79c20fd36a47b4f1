//! One shard of the clock: found without a lock, evicted by two hands.
//!
//! A lookup searches the table ([`table`]), takes a reference and, unless three uses are known
//! already, notes one more. Everything else happens under the shard's lock.
//!
//! New entries are on trial. The trial hand evicts those that it finds unused, at the second
//! meeting (entries of bottom priority at the first); the used ones go to the main pool. The main
//! hand takes one use at each meeting and evicts an entry that has none. While the trial pool has
//! more than its share of the capacity, it alone gives room: so a scan, which uses nothing twice,
//! passes through that share and leaves the main pool alone. An entry that comes back soon after
//! it left unused goes to the main pool at once ([`ghosts`]), so a loop over more than the trial
//! pool is kept too. Entries of high priority begin in the main pool with all uses.
//!
//! The scheme is that of S3-FIFO (Yang and others, SOSP 2023) with hands over a table in place of
//! queues; RocksDB's HyperClockCache gave the idea of a clock without a lock.
//!
//! A hit costs two writes to lines that threads share: the reference count up and, later, down; a
//! short look ([`Glimpse`]) costs none.
//! The use mark is written at most three times between two meetings with the hand. The protection
//! of the slot while the count goes up (arc-swap) writes to a line of the thread's own, twice.
//!
//! Where metadata are charged, the table and the names of those that left take a part of the
//! capacity, which grows with the table: the next insertion makes room for it.
//!
//! Invariants: `usage` and `trial_usage` are the sums of the charges in the table and of those on
//! trial. An entry is pinned when somebody beside the table refers to it; no hand evicts it. A
//! lookup that races with an eviction may get an entry that is out of the table: it stays good.

mod ghosts;
mod table;

use crate::CacheKey;
use crate::entry::{
    Entry, GRACE, Glimpse, GlimpseSource, Pinned, Priority, RemovedEntries, USES_MAX,
};
use crate::stats::{CacheEntry, CacheStats};
use crate::sync::Mutex;
use esker_sync::{CachePadded, Rank};
use ghosts::Ghosts;
use std::sync::Arc;
use table::{SLOTS, SlotIndex, Table};

/// One part in this many of the capacity is for entries on trial.
const TRIAL_PART: usize = 8;
/// Pinned entries that a hand passes before an insertion exceeds a limit that is not strict.
const PATIENCE: usize = 64;
/// Rounds without a victim in which uses protect an entry. Then they no longer count: lookups may
/// note uses as fast as the hands take them away.
const ROUNDS_WITH_USES: usize = 8;

/// Decision of a hand about an entry.
enum SweepAction {
    Stays,
    Changed,
    Promoted,
    Pinned,
    Leaves,
}

struct ClockState {
    capacity: usize,
    strict: bool,
    usage: usize,
    trial_usage: usize,
    entries: usize,
    /// The bucket that the hand of the trial and of the main pool looks at next.
    hands: [usize; 2],
    ghosts: Ghosts,
    stats: CacheStats,
}

/// How an eviction goes.
#[derive(Default)]
struct Search {
    /// Buckets looked at since an entry left.
    idle: usize,
    /// Buckets looked at since an entry left or changed.
    stale: usize,
    /// Pinned entries passed.
    pinned: usize,
}

pub(crate) struct ClockShard<V> {
    table: Table<V>,
    /// True if the table takes a part of the capacity.
    charges_table: bool,
    state: CachePadded<Mutex<ClockState>>,
}

impl<V> ClockShard<V> {
    /// An empty shard whose table has `buckets`, rounded up to a power of two, may grow, and may
    /// be charged.
    pub(crate) fn new(buckets: usize, grows: bool, charges_table: bool) -> Self {
        let state = ClockState {
            capacity: 0,
            strict: false,
            usage: 0,
            trial_usage: 0,
            entries: 0,
            hands: [0; 2],
            ghosts: Ghosts::default(),
            stats: CacheStats::default(),
        };
        ClockShard {
            table: Table::new(buckets.max(1).next_power_of_two().ilog2(), grows),
            charges_table,
            state: CachePadded::new(Mutex::new(Rank::LEAF, state)),
        }
    }

    #[inline]
    pub(crate) fn lookup(&self, key: CacheKey, hash: u64) -> Option<Pinned<V>> {
        let entry = self.table.find(key, hash)?;
        entry.note_use();
        Some(Pinned(entry))
    }

    #[inline]
    pub(crate) fn glimpse(&self, key: CacheKey, hash: u64) -> Option<Glimpse<V>> {
        let entry = self.table.glimpse(key, hash)?;
        entry.note_use();
        Some(Glimpse(GlimpseSource::Guarded(entry)))
    }

    pub(crate) fn peek(&self, key: CacheKey, hash: u64) -> Option<Pinned<V>> {
        self.table.find(key, hash).map(Pinned)
    }

    /// Bytes charged for the table and the ghosts.
    fn charged_table(&self, state: &ClockState) -> usize {
        if self.charges_table {
            state.ghosts.memory() + self.table.memory()
        } else {
            0
        }
    }

    /// The capacity that is left for entries.
    fn room(&self, state: &ClockState) -> usize {
        state.capacity.saturating_sub(self.charged_table(state))
    }

    /// Takes new limits; what no longer fits leaves.
    pub(crate) fn configure(&self, capacity: usize, strict: bool, out: &mut RemovedEntries<V>) {
        let state = &mut *self.state.lock();
        state.capacity = capacity;
        state.strict = strict;
        self.evict(state, 0, usize::MAX, out);
    }

    /// Adds an entry, displacing one of the same key. False: refused by a strict limit.
    pub(crate) fn insert(&self, held: &Pinned<V>, hash: u64, out: &mut RemovedEntries<V>) -> bool {
        let entry = &held.0;
        let state = &mut *self.state.lock();
        if let Some(place) = self.table.locate(entry.key, hash) {
            state.stats.replaced += 1;
            self.remove(state, place, out);
        }
        if entry.charge > self.room(state) {
            // It would be the next to go anyway: the caller's own reference is all it needs.
            state.stats.refused += u64::from(state.strict);
            return !state.strict;
        }
        let patience = if state.strict { usize::MAX } else { PATIENCE };
        self.evict(state, entry.charge, patience, out);
        let fits = state.usage.saturating_add(entry.charge) <= self.room(state);
        let main = begins_in_main(state, entry, hash);
        if (!fits && state.strict) || !self.put(state, entry, hash, main, out) {
            state.stats.refused += u64::from(state.strict);
            return !state.strict;
        }
        came(state, entry, main);
        true
    }

    /// Returns whether an entry of this charge can be added without another's leaving, and is not
    /// there.
    pub(crate) fn has_room(&self, key: CacheKey, hash: u64, charge: usize) -> bool {
        let state = self.state.lock();
        self.has_room_in(&state, key, hash, charge)
    }

    fn has_room_in(&self, state: &ClockState, key: CacheKey, hash: u64, charge: usize) -> bool {
        let fits = state.usage.saturating_add(charge) <= self.room(state);
        fits && self.table.locate(key, hash).is_none()
    }

    /// Adds an entry where [`ClockShard::has_room`] says so and the table has a slot for it, or may
    /// grow without another's leaving.
    pub(crate) fn insert_if_room(&self, held: &Pinned<V>, hash: u64) -> bool {
        let entry = &held.0;
        let state = &mut *self.state.lock();
        if !self.has_room_in(state, entry.key, hash, entry.charge) {
            return false;
        }
        let main = begins_in_main(state, entry, hash);
        let is_put = self.table.put(entry, hash, main)
            || (self.can_grow(state, entry.charge)
                && self.grow(state)
                && self.table.put(entry, hash, main));
        if is_put {
            came(state, entry, main);
        }
        is_put
    }

    /// Returns whether a table of twice the size leaves room for what is there and for `charge`.
    fn can_grow(&self, state: &ClockState, charge: usize) -> bool {
        let more = self.charged_table(state);
        state.usage.saturating_add(charge).saturating_add(more) <= self.room(state)
    }

    /// Finds a slot: in a larger table, or in place of another entry. False when there is none.
    fn put(
        &self,
        state: &mut ClockState,
        entry: &Arc<Entry<V>>,
        hash: u64,
        main: bool,
        out: &mut RemovedEntries<V>,
    ) -> bool {
        if self.table.put(entry, hash, main) {
            return true;
        }
        while self.grow(state) {
            if self.table.put(entry, hash, main) {
                return true;
            }
        }
        let Some(victim) = self.least_used(hash) else {
            return false;
        };
        self.remove_evicted(state, victim, out);
        self.table.put(entry, hash, main)
    }

    /// Doubles the table, unless it is nearly empty: there two full buckets are chance, and growth
    /// would not help.
    fn grow(&self, state: &mut ClockState) -> bool {
        let grown = state.entries >= self.table.len() * SLOTS / 4 && self.table.grow();
        if grown && state.ghosts.memory() > 0 {
            state.ghosts.resize(self.names());
        }
        grown
    }

    /// The entry to leave out of those that share their buckets with this hash.
    fn least_used(&self, hash: u64) -> Option<SlotIndex> {
        let places = self.table.buckets_of(hash).into_iter().flat_map(|bucket| {
            let used = self.table.bucket(bucket).used(None);
            used.map(move |slot| SlotIndex { bucket, slot })
        });
        let free = places.filter(|place| !self.is_pinned(*place));
        free.min_by_key(|place| {
            let bucket = self.table.bucket(place.bucket);
            let uses = bucket.view(place.slot, |e| e.uses());
            (bucket.is_main(place.slot), uses)
        })
    }

    fn is_pinned(&self, place: SlotIndex) -> bool {
        // The table has one reference and `get` the other.
        let entry = self.table.bucket(place.bucket).get(place.slot);
        entry.is_some_and(|e| Arc::strong_count(&e) > 2)
    }

    /// As many ghosts as there are slots.
    fn names(&self) -> usize {
        self.table.len() * (SLOTS + 1)
    }

    /// Makes room for `incoming` bytes; passes at most `patience` pinned entries.
    fn evict(
        &self,
        state: &mut ClockState,
        incoming: usize,
        patience: usize,
        out: &mut RemovedEntries<V>,
    ) {
        let mut search = Search::default();
        let room = self.room(state);
        let over =
            |state: &ClockState| state.entries > 0 && state.usage.saturating_add(incoming) > room;
        let buckets = self.table.len();
        // Once both pools were seen without a change, everything is pinned.
        while over(state) && search.pinned <= patience && search.stale < 2 * buckets {
            // A pool that gave nothing in a round leaves the next one to the other.
            let round = search.idle / buckets;
            let first = state.trial_usage <= room / TRIAL_PART;
            let main = first ^ (round % 2 == 1);
            let hand = &mut state.hands[usize::from(main)];
            let bucket = *hand & (buckets - 1);
            *hand = bucket + 1;
            search.idle += 1;
            search.stale += 1;
            for slot in self.table.bucket(bucket).used(Some(main)) {
                if !over(state) {
                    return;
                }
                let place = SlotIndex { bucket, slot };
                let verdict = self.judge(place, main, round < ROUNDS_WITH_USES);
                self.carry_out(state, place, verdict, &mut search, out);
            }
        }
    }

    fn judge(&self, place: SlotIndex, main: bool, uses_count: bool) -> SweepAction {
        let bucket = self.table.bucket(place.bucket);
        let of_marks = bucket.view(place.slot, |entry| {
            if !uses_count {
                SweepAction::Leaves
            } else if entry.take_use() {
                if main {
                    SweepAction::Changed
                } else {
                    SweepAction::Promoted
                }
            } else if entry.take_grace() {
                SweepAction::Changed
            } else {
                SweepAction::Leaves
            }
        });
        match of_marks {
            Some(SweepAction::Leaves) if self.is_pinned(place) => SweepAction::Pinned,
            Some(verdict) => verdict,
            None => SweepAction::Stays,
        }
    }

    fn carry_out(
        &self,
        state: &mut ClockState,
        place: SlotIndex,
        verdict: SweepAction,
        search: &mut Search,
        out: &mut RemovedEntries<V>,
    ) {
        match verdict {
            SweepAction::Stays => {}
            SweepAction::Changed => search.stale = 0,
            SweepAction::Pinned => search.pinned += 1,
            SweepAction::Promoted => {
                search.stale = 0;
                let bucket = self.table.bucket(place.bucket);
                bucket.set_main(place.slot);
                state.trial_usage -= bucket.view(place.slot, |e| e.charge).unwrap_or(0);
            }
            SweepAction::Leaves => {
                self.remove_evicted(state, place, out);
                *search = Search {
                    pinned: search.pinned,
                    ..Search::default()
                };
            }
        }
    }

    fn remove_evicted(
        &self,
        state: &mut ClockState,
        place: SlotIndex,
        out: &mut RemovedEntries<V>,
    ) {
        let bucket = self.table.bucket(place.bucket);
        let on_trial = !bucket.is_main(place.slot);
        let name = bucket.view(place.slot, |e| (e.priority, e.key.hash()));
        if let Some((priority, hash)) = name {
            state.stats.evicted(priority);
            if on_trial {
                if state.ghosts.memory() == 0 {
                    state.ghosts.resize(self.names());
                }
                state.ghosts.push(hash);
            }
        }
        if let Some(entry) = self.take(state, place) {
            // An entry leaves the main pool only after it was used, or wanted again.
            out.push_evicted(entry, !on_trial);
        }
    }

    fn remove(&self, state: &mut ClockState, place: SlotIndex, out: &mut RemovedEntries<V>) {
        if let Some(entry) = self.take(state, place) {
            out.push(entry);
        }
    }

    fn take(&self, state: &mut ClockState, place: SlotIndex) -> Option<Pinned<V>> {
        let on_trial = !self.table.bucket(place.bucket).is_main(place.slot);
        let entry = self.table.take(place)?;
        state.entries -= 1;
        state.usage -= entry.charge;
        state.trial_usage -= if on_trial { entry.charge } else { 0 };
        state.stats.left(entry.priority, entry.charge);
        Some(Pinned(entry))
    }

    pub(crate) fn erase(&self, key: CacheKey, hash: u64, out: &mut RemovedEntries<V>) -> bool {
        let state = &mut *self.state.lock();
        let found = self.table.locate(key, hash);
        if let Some(place) = found {
            self.remove(state, place, out);
        }
        found.is_some()
    }

    /// Removes every entry that `keep` does not want.
    pub(crate) fn retain(
        &self,
        mut keep: impl FnMut(CacheEntry<'_, V>) -> bool,
        out: &mut RemovedEntries<V>,
    ) {
        let state = &mut *self.state.lock();
        self.each(|place, entry| {
            if !keep(entry) {
                self.remove(state, place, out);
            }
        });
    }

    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(CacheEntry<'_, V>)) {
        let _locked = self.state.lock();
        self.each(|_, entry| visit(entry));
    }

    /// Shows every entry; the caller holds the lock.
    fn each(&self, mut visit: impl FnMut(SlotIndex, CacheEntry<'_, V>)) {
        for bucket in 0..self.table.len() {
            for slot in self.table.bucket(bucket).used(None) {
                let place = SlotIndex { bucket, slot };
                let Some(entry) = self.table.bucket(bucket).get(slot) else {
                    continue;
                };
                let shown = CacheEntry {
                    key: entry.key,
                    value: &entry.value,
                    charge: entry.charge,
                    priority: entry.priority,
                    hit: entry.uses() > 0,
                    pinned: Arc::strong_count(&entry) > 2,
                };
                visit(place, shown);
            }
        }
    }

    /// Bytes charged.
    pub(crate) fn usage(&self) -> usize {
        let state = self.state.lock();
        state.usage + self.charged_table(&state)
    }

    pub(crate) fn stats(&self) -> CacheStats {
        self.state.lock().stats
    }

    /// Bytes of the table and the ghosts.
    pub(crate) fn overhead(&self) -> usize {
        self.state.lock().ghosts.memory() + self.table.memory()
    }

    /// Slots of the table.
    pub(crate) fn slots(&self) -> usize {
        self.table.len() * SLOTS
    }
}

/// Returns whether a new entry begins in the main pool. Gives it the marks that it begins with.
fn begins_in_main<V>(state: &mut ClockState, entry: &Entry<V>, hash: u64) -> bool {
    match entry.priority {
        Priority::High => entry.begin(USES_MAX, 0),
        Priority::Low => entry.begin(0, GRACE),
        Priority::Bottom => entry.begin(0, 0),
    }
    state.ghosts.take(hash) || entry.priority == Priority::High
}

fn came<V>(state: &mut ClockState, entry: &Entry<V>, main: bool) {
    state.entries += 1;
    state.usage += entry.charge;
    state.trial_usage += if main { 0 } else { entry.charge };
    state.stats.came(entry.priority, entry.charge);
}
