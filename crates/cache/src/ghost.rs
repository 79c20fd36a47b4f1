//! How often a cache of another capacity would hit: the stack distances of a sample of its keys.
//!
//! The sample is spatial, as in SHARDS (Waldspurger and others, *Efficient MRC Construction with
//! SHARDS*, FAST 2015): a key belongs to it for good, by sixteen bits of its hash that choose
//! neither its shard nor its place in a table. A sampled key stays in an LRU list after its value
//! has left the cache: it is a ghost then. The bytes of the sampled keys used since, divided by
//! the sampled share, are the capacity at which an LRU cache would have hit. What the clock does
//! is close to that, or better.
//!
//! A hit counts, and so does the insertion after a miss. A look-up that finds nothing and inserts
//! nothing would not gain by a larger cache. Sampled reads of missed values are timed.
//!
//! Memory is bounded: keys beyond the largest capacity of interest are forgotten, and the sampled
//! share is halved when there are more than [`KEYS_MAX`]. A key outside the sample costs a load
//! and a branch. The rest is behind a lock that nobody waits for: a use that finds it taken is
//! counted, and the others stand for it.

use esker_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use esker_sync::{CachePadded, Mutex, OnceLock, Rank};
use hashbrown::HashMap;
use std::fmt;

/// Most sampled keys of a large cache.
const KEYS_MAX: usize = 4096;
/// Fewest keys, for a small cache.
const KEYS_MAX_LEAST: usize = 256;
/// Sampled keys that a cache of the largest capacity should have, when its values are small.
const KEYS_WANTED: u64 = 2048;
/// A value of a cache, for the first guess at the sampled share.
const VALUE_BYTES: u64 = 4096;
/// A share of one: the sample is sixteen bits of a hash.
const ALL: u32 = 1 << 16;
/// No more than one key in this many.
const SHARE_PART: u32 = 16;
/// Steps of a curve.
const STEPS: usize = 64;

/// A clock in nanoseconds.
pub(crate) type NowNs = Box<dyn Fn() -> u64 + Send + Sync>;

/// Hits that caches of other capacities would have had since the curve was last taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GhostCurve {
    /// Bytes of capacity between two steps.
    pub step_bytes: usize,
    /// Hits that a cache of `n` steps has and one of `n - 1` has not, at index `n - 1`.
    pub hits: Vec<f64>,
    /// All uses.
    pub uses: f64,
    /// Nanoseconds for reading the sampled values that were missed.
    pub read_ns: u64,
    /// How many these were.
    pub reads: u64,
}

impl GhostCurve {
    /// Hits of a cache of this capacity.
    pub fn hits_at(&self, capacity: usize) -> f64 {
        let steps = capacity as f64 / self.step_bytes.max(1) as f64;
        let whole = (steps as usize).min(self.hits.len());
        let sum: f64 = self.hits[..whole].iter().sum();
        let part = self.hits.get(whole).map_or(0.0, |h| h * steps.fract());
        sum + part
    }
}

/// A key of the sample.
#[derive(Clone, Copy)]
struct Use {
    hash: u64,
    bytes: u64,
}

/// The sampled keys in the order of their last uses, with sums of bytes over places (a Fenwick
/// tree).
struct KeyList {
    place_of: HashMap<u64, usize>,
    places: Vec<Option<Use>>,
    sums: Vec<u64>,
    /// The oldest place that may be taken.
    oldest: usize,
    next: usize,
    bytes: u64,
}

impl KeyList {
    /// A list with this many places for uses, before it is packed.
    fn new(places: usize) -> Self {
        KeyList {
            place_of: HashMap::new(),
            places: vec![None; places],
            sums: vec![0; places + 1],
            oldest: 0,
            next: 0,
            bytes: 0,
        }
    }

    fn change(&mut self, place: usize, change: impl Fn(u64) -> u64) {
        let mut i = place + 1;
        while i < self.sums.len() {
            self.sums[i] = change(self.sums[i]);
            i += i & i.wrapping_neg();
        }
    }

    /// Bytes in the places up to this one.
    fn through(&self, place: usize) -> u64 {
        let (mut i, mut sum) = (place + 1, 0);
        while i > 0 {
            sum += self.sums[i];
            i &= i - 1;
        }
        sum
    }

    fn put(&mut self, key: Use) {
        if self.next == self.places.len() {
            self.pack(|_| true);
        }
        let place = self.next;
        self.next += 1;
        self.places[place] = Some(key);
        self.place_of.insert(key.hash, place);
        self.change(place, |sum| sum + key.bytes);
        self.bytes += key.bytes;
    }

    fn take(&mut self, place: usize) {
        if let Some(key) = self.places[place].take() {
            self.place_of.remove(&key.hash);
            self.change(place, |sum| sum - key.bytes);
            self.bytes -= key.bytes;
        }
    }

    /// Closes the gaps, and forgets what `stays` does not want.
    fn pack(&mut self, stays: impl Fn(u64) -> bool) {
        let fresh = KeyList::new(self.places.len());
        let before = std::mem::replace(self, fresh);
        let keys = before.places.into_iter().flatten();
        keys.filter(|key| stays(key.hash))
            .for_each(|key| self.put(key));
    }

    /// Bytes of the keys used since `hash` was, which is taken out; none for a new key.
    fn newer_than(&mut self, hash: u64) -> Option<u64> {
        let place = *self.place_of.get(&hash)?;
        let newer = self.bytes - self.through(place);
        self.take(place);
        Some(newer)
    }

    fn forget_oldest(&mut self) {
        while self.oldest < self.next && self.places[self.oldest].is_none() {
            self.oldest += 1;
        }
        if self.oldest < self.next {
            self.take(self.oldest);
        }
    }
}

struct GhostState {
    stack: KeyList,
    curve: GhostCurve,
    /// Capacities beyond this are of no interest.
    most: u64,
    keys_max: usize,
}

/// The ghosts of one cache.
pub(crate) struct Ghost {
    /// A key is sampled when its sixteen bits are below; 0 while nobody watches. Every look-up
    /// reads it, so it has a line to itself.
    sampled_below: CachePadded<AtomicU32>,
    state: Mutex<Option<Box<GhostState>>>,
    /// Uses that found the state locked.
    passed: AtomicU64,
    read_ns: AtomicU64,
    reads: AtomicU64,
    now_ns: OnceLock<NowNs>,
}

impl fmt::Debug for Ghost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below = self.sampled_below.load(Ordering::Relaxed);
        f.debug_struct("Ghost").field("below", &below).finish()
    }
}

#[inline]
fn sixteen_bits(hash: u64) -> u32 {
    (hash >> 40) as u32 & (ALL - 1)
}

/// The first share, for capacities up to `most`.
fn first_share(most: usize) -> u32 {
    let keys = (most as u64 / VALUE_BYTES).max(1);
    let share = (u64::from(ALL) * KEYS_WANTED / keys).min(u64::from(ALL / SHARE_PART));
    // A power of two, so that halving it comes out even.
    1 << share.max(1).ilog2()
}

impl Ghost {
    pub(crate) fn new() -> Self {
        Ghost {
            sampled_below: CachePadded::new(AtomicU32::new(0)),
            state: Mutex::new(Rank::LEAF, None),
            passed: AtomicU64::new(0),
            read_ns: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            now_ns: OnceLock::new(),
        }
    }

    /// Begins to watch, for capacities up to `most`, or changes that limit. The first clock stays.
    pub(crate) fn watch(&self, most: usize, now_ns: NowNs) {
        let _first = self.now_ns.set(now_ns);
        self.watch_share(most, first_share(most));
    }

    fn watch_share(&self, most: usize, share: u32) {
        let curve = GhostCurve {
            step_bytes: most.div_ceil(STEPS).max(1),
            hits: vec![0.0; STEPS],
            ..GhostCurve::default()
        };
        // A few hundred are enough for a small cache, which should not pay for more.
        let small_values = usize::try_from(most as u64 / VALUE_BYTES / 8).unwrap_or(usize::MAX);
        let keys_max = small_values.clamp(KEYS_MAX_LEAST, KEYS_MAX);
        *self.state.lock() = Some(Box::new(GhostState {
            stack: KeyList::new(2 * keys_max),
            curve,
            most: most as u64,
            keys_max,
        }));
        self.sampled_below.store(share, Ordering::Relaxed);
    }

    /// Returns whether the key with this hash is in the sample.
    #[inline(always)]
    pub(crate) fn has(&self, hash: u64) -> bool {
        sixteen_bits(hash) < self.sampled_below.load(Ordering::Relaxed)
    }

    /// A sampled key was used: found, or inserted after it was missed.
    #[cold]
    pub(crate) fn used(&self, hash: u64, charge: usize) {
        let Some(mut state) = self.state.try_lock() else {
            self.passed.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let below = self.sampled_below.load(Ordering::Relaxed);
        // The share may have been halved since.
        let Some(state) = state.as_deref_mut().filter(|_| sixteen_bits(hash) < below) else {
            return;
        };
        let times = u64::from(ALL / below);
        let bytes = charge as u64;
        if let Some(newer) = state.stack.newer_than(hash) {
            let needed = newer * times + bytes;
            let step = usize::try_from(needed.saturating_sub(1)).unwrap_or(usize::MAX);
            if let Some(hits) = state.curve.hits.get_mut(step / state.curve.step_bytes) {
                *hits += times as f64;
            }
        }
        state.curve.uses += times as f64;
        state.stack.put(Use { hash, bytes });
        while state.stack.bytes > (state.most / times).max(bytes) {
            state.stack.forget_oldest();
        }
        if state.stack.place_of.len() > state.keys_max {
            let half = (below / 2).max(1);
            self.sampled_below.store(half, Ordering::Relaxed);
            state.stack.pack(|hash| sixteen_bits(hash) < half);
            // Where even the least share is too large.
            while state.stack.place_of.len() > state.keys_max {
                state.stack.forget_oldest();
            }
        }
    }

    /// The time, when the read of a missed value is to be timed.
    #[inline]
    pub(crate) fn begin_read(&self, hash: u64) -> Option<u64> {
        if self.has(hash) {
            self.now_ns.get().map(|now| now())
        } else {
            None
        }
    }

    /// A read that began then is over.
    #[cold]
    pub(crate) fn end_read(&self, began: u64) {
        if let Some(now) = self.now_ns.get() {
            let ns = now().saturating_sub(began);
            self.read_ns.fetch_add(ns, Ordering::Relaxed);
            self.reads.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The curve since it was last taken; `None` while nobody watches.
    pub(crate) fn take_curve(&self) -> Option<GhostCurve> {
        let mut state = self.state.lock();
        let state = state.as_deref_mut()?;
        let empty = GhostCurve {
            step_bytes: state.curve.step_bytes,
            hits: vec![0.0; STEPS],
            ..GhostCurve::default()
        };
        let mut curve = std::mem::replace(&mut state.curve, empty);
        curve.read_ns = self.read_ns.swap(0, Ordering::Relaxed);
        curve.reads = self.reads.swap(0, Ordering::Relaxed);
        let below = self.sampled_below.load(Ordering::Relaxed);
        let passed = self.passed.swap(0, Ordering::Relaxed) as f64 * f64::from(ALL / below);
        if curve.uses > 0.0 {
            let times = 1.0 + passed / curve.uses;
            curve.hits.iter_mut().for_each(|hits| *hits *= times);
            curve.uses *= times;
        }
        Some(curve)
    }

    /// Bytes taken.
    pub(crate) fn memory(&self) -> usize {
        self.state.lock().as_ref().map_or(0, |state| {
            let stack = &state.stack;
            stack.place_of.allocation_size()
                + stack.places.capacity() * size_of::<Option<Use>>()
                + stack.sums.capacity() * size_of::<u64>()
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
