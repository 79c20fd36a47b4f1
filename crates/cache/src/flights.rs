//! The values that are being read: threads that miss the same one at once read it once.
//!
//! The first to ask gets a [`Flight`] and reads. The others wait until it is dropped, then look
//! into the cache again; when the reader failed, one of them reads itself. A reader must not ask
//! for another flight, and holds no lock that a waiter needs.

use crate::CacheKey;
use crate::ghost::Ghost;
use crate::sync::{Condvar, Mutex};
use esker_sync::{CachePadded, Rank};

/// Locks over which the keys are spread.
const STRIPES: usize = if cfg!(loom) { 1 } else { 16 };

#[derive(Default)]
struct PendingKeys {
    keys: Vec<CacheKey>,
    /// Threads that wait for a key of this stripe.
    waiting: usize,
}

struct Stripe {
    state: Mutex<PendingKeys>,
    landed: Condvar,
}

pub(crate) struct PendingReads(Box<[CachePadded<Stripe>]>);

/// The right to read the value of a key; it ends when this is dropped.
pub struct Flight<'a> {
    stripe: &'a Stripe,
    key: CacheKey,
    /// When it began, where it is timed.
    timed: Option<(&'a Ghost, u64)>,
}

impl<'a> Flight<'a> {
    /// Tells `ghost` how long the read takes, if the time of its beginning is known.
    pub(crate) fn timed(mut self, ghost: &'a Ghost, began: Option<u64>) -> Self {
        self.timed = began.map(|began| (ghost, began));
        self
    }
}

impl std::fmt::Debug for Flight<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Flight").field(&self.key).finish()
    }
}

impl PendingReads {
    pub(crate) fn new() -> Self {
        let stripe = || {
            CachePadded::new(Stripe {
                state: Mutex::new(Rank::LEAF, PendingKeys::default()),
                landed: Condvar::new(),
            })
        };
        PendingReads((0..STRIPES).map(|_| stripe()).collect())
    }

    /// The right to read `key`, at once; `None` after another thread's flight has ended.
    pub(crate) fn begin(&self, key: CacheKey, hash: u64) -> Option<Flight<'_>> {
        let stripe = &*self.0[hash as usize & (STRIPES - 1)];
        let mut state = stripe.state.lock();
        if !state.keys.contains(&key) {
            state.keys.push(key);
            return Some(Flight {
                stripe,
                key,
                timed: None,
            });
        }
        state.waiting += 1;
        while state.keys.contains(&key) {
            state = stripe.landed.wait(state);
        }
        state.waiting -= 1;
        None
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        if let Some((ghost, began)) = self.timed {
            ghost.end_read(began);
        }
        let mut state = self.stripe.state.lock();
        state.keys.retain(|key| *key != self.key);
        let is_awaited = state.waiting > 0;
        drop(state);
        if is_awaited {
            self.stripe.landed.notify_all();
        }
    }
}
