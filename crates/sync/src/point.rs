//! Named sync points: places in the code where a test may step in.
//!
//! Code calls [`sync_point`] with a name; a test gives that name an action with [`at_sync_point`]:
//! wait for another thread, count, look around. In builds without debug assertions a point is
//! nothing; in others it is one relaxed load while no test has an action.
//!
//! Actions are global to the process: tests that run beside each other use names, or conditions
//! inside the action, of their own. No lock is held while an action runs, so an action may wait,
//! and may reach other points.

/// The action of a test at a point.
#[cfg(debug_assertions)]
type Action = std::sync::Arc<dyn Fn() + Send + Sync>;

#[cfg(debug_assertions)]
mod active {
    use super::Action;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// The number of actions, so that a point without any costs one load.
    pub(super) static COUNT: AtomicUsize = AtomicUsize::new(0);
    static ACTIONS: parking_lot::Mutex<Vec<(u64, &'static str, Action)>> =
        parking_lot::Mutex::new(Vec::new());

    pub(super) fn add(id: u64, name: &'static str, action: Action) {
        ACTIONS.lock().push((id, name, action));
        COUNT.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn remove(id: u64) {
        ACTIONS.lock().retain(|a| a.0 != id);
        COUNT.fetch_sub(1, Ordering::SeqCst);
    }

    #[cold]
    pub(super) fn run(name: &str) {
        let found: Vec<Action> = ACTIONS
            .lock()
            .iter()
            .filter(|a| a.1 == name)
            .map(|a| a.2.clone())
            .collect();
        for action in found {
            action();
        }
    }
}

/// Runs the actions that tests gave `name`, in the order they were given.
#[inline(always)]
pub fn sync_point(name: &'static str) {
    #[cfg(debug_assertions)]
    if active::COUNT.load(std::sync::atomic::Ordering::Relaxed) > 0 {
        active::run(name);
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}

/// Keeps an action in place until dropped.
#[cfg(debug_assertions)]
#[derive(Debug)]
#[must_use = "the action goes when this is dropped"]
pub struct SyncPointGuard(u64);

/// Runs `action` whenever a thread reaches the point called `name`, until the guard is dropped (a
/// thread already inside the action finishes it). Only in builds with debug assertions.
#[cfg(debug_assertions)]
pub fn at_sync_point(
    name: &'static str,
    action: impl Fn() + Send + Sync + 'static,
) -> SyncPointGuard {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let id = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    active::add(id, name, std::sync::Arc::new(action));
    SyncPointGuard(id)
}

#[cfg(debug_assertions)]
impl Drop for SyncPointGuard {
    fn drop(&mut self) {
        active::remove(self.0);
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Barrier};

    #[test]
    fn actions_run_until_their_guard_goes() {
        let count = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&count);
        let guard = at_sync_point("test:counted", move || {
            seen.fetch_add(1, Ordering::SeqCst);
            sync_point("test:inner");
        });
        sync_point("test:counted");
        sync_point("test:other");
        assert_eq!(count.load(Ordering::SeqCst), 1);
        drop(guard);
        sync_point("test:counted");
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_thread_can_be_held_at_a_point() {
        let gate = Arc::new(Barrier::new(2));
        let inside = Arc::clone(&gate);
        let _guard = at_sync_point("test:held", move || _ = inside.wait());
        let done = Arc::new(AtomicU32::new(0));
        let after = Arc::clone(&done);
        let thread = std::thread::spawn(move || {
            sync_point("test:held");
            after.store(1, Ordering::SeqCst);
        });
        assert_eq!(done.load(Ordering::SeqCst), 0, "it waits for the gate");
        gate.wait();
        thread.join().expect("the thread does not panic");
        assert_eq!(done.load(Ordering::SeqCst), 1);
    }
}
