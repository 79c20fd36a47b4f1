//! The objects that Java holds, by number.
//!
//! A handle is a slot's number with the generation of what is in it, so a handle that was closed
//! names nothing, whatever the slot holds since. Looking one up is a load and two comparisons: an
//! object that is closed while another thread uses it goes when that thread is done. Handles are
//! never 0, which Java takes for none.

use super::{Outcome, stale};
use esker_sync::{Arc, ArcSwapOption, Mutex, OnceLock, Rank};
use jni_sys::jlong;
use std::any::Any;
use std::marker::PhantomData;
use std::ops::Deref;

/// The content of a slot.
struct Entry {
    handle: jlong,
    /// The database's handle, for what goes with it; 0 for none.
    owner: jlong,
    object: Box<dyn Any + Send + Sync>,
}

type Slot = ArcSwapOption<Entry>;

/// Slots come in chunks of doubling size, which stay where they are.
const FIRST: usize = 1024;
const CHUNKS: usize = 21;
static TABLE: [OnceLock<Box<[Slot]>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];

/// The highest bit would make a handle negative, which some callers take for none.
const LAST_GENERATION: u32 = 0x7FFF_FFFE;

/// Slots that are free, with the generation that comes next, and how many slots there are.
struct Free {
    slots: Vec<(u32, u32)>,
    made: u32,
}

static FREE: Mutex<Free> = Mutex::new(
    Rank::LEAF,
    Free {
        slots: Vec::new(),
        made: 0,
    },
);

/// The chunk of a slot, and its place there.
#[inline]
fn place(slot: usize) -> (usize, usize) {
    let chunk = (slot / FIRST + 1).ilog2() as usize;
    (chunk, slot - ((1 << chunk) - 1) * FIRST)
}

#[inline]
fn slot(number: usize) -> Option<&'static Slot> {
    let (chunk, at) = place(number);
    TABLE.get(chunk)?.get()?.get(at)
}

fn made(number: usize) -> Option<&'static Slot> {
    let (chunk, at) = place(number);
    TABLE
        .get(chunk)?
        .get_or_init(|| (0..FIRST << chunk).map(|_| Slot::empty()).collect())
        .get(at)
}

/// An object in use.
pub(crate) struct InUse<T> {
    entry: arc_swap::Guard<Option<Arc<Entry>>>,
    at: *const T,
    kind: PhantomData<T>,
}

impl<T> Deref for InUse<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `at` is inside the entry that `self.entry` keeps, and its object never moves.
        unsafe { &*self.at }
    }
}

impl<T> InUse<T> {
    /// The database that it goes with.
    pub(crate) fn owner(&self) -> jlong {
        self.entry.as_ref().map_or(0, |e| e.owner)
    }
}

fn parts(handle: jlong) -> (usize, u32) {
    ((handle & 0xFFFF_FFFF) as usize, (handle >> 32) as u32)
}

/// Gives Java an object.
pub(crate) fn give<T: Any + Send + Sync>(object: T) -> jlong {
    give_owned(object, 0)
}

/// Gives Java an object that goes when the database `owner` is closed.
pub(crate) fn give_owned<T: Any + Send + Sync>(object: T, owner: jlong) -> jlong {
    let (number, generation) = {
        let mut free = FREE.lock();
        match free.slots.pop() {
            Some(slot) => slot,
            None => {
                free.made += 1;
                (free.made - 1, 1)
            }
        }
    };
    let handle = (jlong::from(generation) << 32) | jlong::from(number);
    let entry = Entry {
        handle,
        owner,
        object: Box::new(object),
    };
    match made(number as usize) {
        Some(slot) => slot.store(Some(Arc::new(entry))),
        // Two thousand million objects: there is no room for one more.
        None => return 0,
    }
    handle
}

/// The object behind a handle.
#[inline]
pub(crate) fn hold<T: Any>(handle: jlong) -> Outcome<InUse<T>> {
    find(handle).ok_or_else(|| stale(handle, std::any::type_name::<T>()))
}

/// The object behind a handle, if it is there and of this kind.
#[inline]
pub(crate) fn find<T: Any>(handle: jlong) -> Option<InUse<T>> {
    let entry = slot(parts(handle).0)?.load();
    let found = entry.as_ref().filter(|e| e.handle == handle)?;
    let at: *const T = found.object.downcast_ref::<T>()?;
    Some(InUse {
        entry,
        at,
        kind: PhantomData,
    })
}

/// As [`hold`], for a handle that may be 0.
#[inline]
pub(crate) fn hold_if<T: Any>(handle: jlong) -> Outcome<Option<InUse<T>>> {
    match handle {
        0 => Ok(None),
        handle => hold(handle).map(Some),
    }
}

/// Closes a handle: its object goes with its last user. False if it named nothing of this kind.
pub(crate) fn close<T: Any>(handle: jlong) -> bool {
    if find::<T>(handle).is_none() {
        return false;
    }
    take(handle)
}

/// Closes a handle of any kind.
pub(crate) fn take(handle: jlong) -> bool {
    let (number, generation) = parts(handle);
    let Some(slot) = slot(number) else {
        return false;
    };
    let current = slot.load();
    if current.as_ref().is_none_or(|e| e.handle != handle) {
        return false;
    }
    let before = slot.compare_and_swap(&*current, None);
    // Only one of two that close at once takes it out.
    let is_mine = match (&*before, &*current) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        _ => false,
    };
    if is_mine {
        let next = (generation % LAST_GENERATION) + 1;
        FREE.lock().slots.push((number as u32, next));
    }
    is_mine
}

/// Tells whether a handle of a slot that was used names nothing any more.
pub(crate) fn is_past(handle: jlong) -> bool {
    let (number, generation) = parts(handle);
    let was_given = (1..=LAST_GENERATION).contains(&generation);
    let is_used = was_given && number < FREE.lock().made as usize;
    is_used && slot(number).is_some_and(|s| s.load().as_ref().is_none_or(|e| e.handle != handle))
}

/// Shows `look` every object of a kind.
pub(crate) fn each<T: Any>(mut look: impl FnMut(&T) -> Outcome<()>) -> Outcome<()> {
    let made = FREE.lock().made;
    for number in 0..made as usize {
        let entry = slot(number).and_then(|s| s.load_full());
        if let Some(found) = entry.as_ref().and_then(|e| e.object.downcast_ref::<T>()) {
            look(found)?;
        }
    }
    Ok(())
}

/// Closes everything that goes with the database `owner`.
pub(crate) fn close_owned(owner: jlong) {
    let made = FREE.lock().made;
    for number in 0..made as usize {
        let Some(entry) = slot(number).and_then(|s| s.load_full()) else {
            continue;
        };
        if entry.owner == owner {
            take(entry.handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_handle_names_nothing_even_when_its_slot_is_used_again() {
        let first = give(String::from("one"));
        assert_eq!(hold::<String>(first).expect("open").as_str(), "one");
        assert!(find::<u32>(first).is_none());
        assert!(close::<String>(first));
        assert!(!close::<String>(first));
        let second = give(String::from("two"));
        assert!(find::<String>(first).is_none());
        assert!(is_past(first) && !is_past(second));
        assert_ne!(first, second);
        assert!(close::<String>(second));
        // No slot of these was ever made: other tests have theirs open meanwhile.
        for hostile in [0, -1, i64::MAX, i64::MIN, 12345, 1 << 32 | 0xFF_FFFF] {
            assert!(find::<u64>(hostile).is_none());
            assert!(!take(hostile));
            assert!(!is_past(hostile));
        }
    }

    #[test]
    fn an_object_lives_while_it_is_held() {
        let handle = give(vec![1u8; 10]);
        let held = hold::<Vec<u8>>(handle).expect("open");
        assert!(close::<Vec<u8>>(handle));
        assert_eq!(held.len(), 10);
    }

    #[test]
    fn what_belongs_to_a_database_goes_with_it() {
        let owner = give(0u16);
        let child = give_owned(7u64, owner);
        let other = give_owned(8u64, 0);
        close_owned(owner);
        assert!(find::<u64>(child).is_none());
        assert!(close::<u64>(other));
        assert!(close::<u16>(owner));
    }

    #[test]
    fn places_are_distinct_and_dense() {
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(FIRST - 1), (0, FIRST - 1));
        assert_eq!(place(FIRST), (1, 0));
        assert_eq!(place(3 * FIRST), (2, 0));
    }
}
