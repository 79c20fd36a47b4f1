//! Changes that background work waits for, and the threads that do it.
//!
//! A change makes callers that wait for background work look again ([`BackgroundCv::wait_past`]),
//! and starts a thread that looks for work to do, unless one does so already. A look ends only if
//! nothing changed since it began ([`AtWork::end_look`]), so no change stays unseen.
//!
//! A database without work has no thread here. Closing it waits for the threads at work: those that
//! hold an [`AtWork`]. What they hold of the database they have to drop before.
//!
//! Thread-safety: any thread.

use esker_status::seeded::{Bug, seeded};
use esker_sync::{Arc, Condvar, Mutex, OnceLock, Rank};
use std::fmt;
use std::time::Duration;

const RANK: Rank = Rank::new(55, "background work").brief();

/// Starts a thread that looks for work.
type Start = Box<dyn Fn(AtWork) + Send + Sync>;

/// A counter of changes that threads can wait on, and the number of threads at work.
pub struct BackgroundCv {
    state: Mutex<CvState>,
    changed: Condvar,
    start: OnceLock<Start>,
}

#[derive(Debug, Default)]
struct CvState {
    changes: u64,
    closing: bool,
    /// A thread looks for work, or is being started to do so.
    is_looking: bool,
    at_work: usize,
}

impl Default for BackgroundCv {
    /// Without a change yet. Nothing starts threads before [`BackgroundCv::start_with`].
    fn default() -> Self {
        BackgroundCv {
            state: Mutex::new(RANK, CvState::default()),
            changed: Condvar::new(),
            start: OnceLock::new(),
        }
    }
}

impl BackgroundCv {
    /// From now on `start` is called when somebody has to look for work. It may be called with
    /// locks held, and starts a thread that takes what it is given. Dropping that ends the look:
    /// the next change starts another.
    pub fn start_with(&self, start: impl Fn(AtWork) + Send + Sync + 'static) {
        // A database begins once.
        let _first = self.start.set(Box::new(start));
    }

    /// Something changed: callers that wait look again, and a thread looks for work.
    pub fn notify(self: &Arc<Self>) {
        let look = {
            let mut state = self.state.lock();
            state.changes += 1;
            self.start.get().and_then(|start| {
                let look = self.begin_look(&mut state)?;
                Some((start, look))
            })
        };
        self.changed.notify_all();
        if let Some((start, look)) = look {
            start(look);
        }
    }

    /// Something changed that callers wait for. No thread looks for work: the change made none, or
    /// who makes it looks next ([`BackgroundCv::try_look`]).
    pub fn tell(&self) {
        self.state.lock().changes += 1;
        self.changed.notify_all();
    }

    /// The caller is to look for work, unless another thread does or the database closes.
    pub fn try_look(self: &Arc<Self>) -> Option<AtWork> {
        self.begin_look(&mut self.state.lock())
    }

    fn begin_look(self: &Arc<Self>, state: &mut CvState) -> Option<AtWork> {
        if state.closing || state.is_looking {
            return None;
        }
        state.is_looking = true;
        state.at_work += 1;
        Some(AtWork {
            cv: Arc::clone(self),
            looks: true,
        })
    }

    /// No more work is to be started.
    pub fn close(&self) {
        self.state.lock().closing = true;
        self.changed.notify_all();
    }

    /// Waits until no thread is at work. For a database that closes: no thread begins after that.
    pub fn wait_for_work(&self) {
        let mut state = self.state.lock();
        while state.at_work > 0 && !seeded(Bug::CloseBesideJobs) {
            self.changed.wait(&mut state);
        }
    }

    /// Threads at work.
    pub fn at_work(&self) -> usize {
        self.state.lock().at_work
    }

    /// Returns whether [`BackgroundCv::close`] was called.
    #[inline]
    pub fn is_closing(&self) -> bool {
        self.state.lock().closing
    }

    /// How many changes there were; to be given to [`BackgroundCv::wait_past`].
    pub fn changes(&self) -> u64 {
        self.state.lock().changes
    }

    /// Waits until there are more changes than `seen`, at most `limit`; false when the database
    /// closes.
    pub fn wait_past(&self, seen: u64, limit: Duration) -> bool {
        let mut state = self.state.lock();
        if state.changes == seen && !state.closing {
            self.changed.wait_for(&mut state, limit);
        }
        !state.closing
    }
}

impl fmt::Debug for BackgroundCv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundCv")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// A thread is at work for a database until this is dropped.
#[derive(Debug)]
pub struct AtWork {
    cv: Arc<BackgroundCv>,
    looks: bool,
}

impl AtWork {
    /// For another thread that the caller gives work to. It may begin even while the database
    /// closes.
    pub fn another(&self) -> AtWork {
        self.cv.state.lock().at_work += 1;
        AtWork {
            cv: Arc::clone(&self.cv),
            looks: false,
        }
    }

    /// Ends a look that began when there were `seen` changes. False when there are more: the caller
    /// is to look again.
    pub fn end_look(&mut self, seen: u64) -> bool {
        let mut state = self.cv.state.lock();
        if state.changes != seen && !state.closing {
            return false;
        }
        if std::mem::take(&mut self.looks) {
            state.is_looking = false;
        }
        true
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut state = self.cv.state.lock();
        if self.looks {
            state.is_looking = false;
        }
        state.at_work -= 1;
        if state.at_work == 0 && state.closing {
            self.cv.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn one_thread_looks_at_a_time_and_sees_every_change() {
        let cv = Arc::new(BackgroundCv::default());
        cv.notify();
        let (started, starts) = channel();
        let started = std::sync::Mutex::new(started);
        cv.start_with(move |look| {
            let started = started.lock().expect("nobody panics");
            started.send(look).expect("the test is there");
        });
        cv.notify();
        let mut look = starts.try_recv().expect("a look begins");
        assert!(cv.try_look().is_none());
        let seen = cv.changes();
        cv.notify();
        assert!(starts.try_recv().is_err(), "one looks");
        assert!(!look.end_look(seen), "it does not know the last change");
        assert!(look.end_look(cv.changes()));
        cv.notify();
        // A look that is given up does not keep others from it.
        drop(starts.try_recv().expect("another look begins"));
        drop(cv.try_look().expect("nobody looks"));
    }

    #[test]
    fn closing_waits_for_threads_at_work_and_no_thread_begins() {
        let cv = Arc::new(BackgroundCv::default());
        let mut look = cv.try_look().expect("nobody looks");
        assert!(look.end_look(0));
        cv.close();
        assert!(cv.try_look().is_none());
        let another = look.another();
        drop(look);
        std::thread::scope(|scope| {
            let (done, is_done) = channel();
            let waiter = Arc::clone(&cv);
            scope.spawn(move || {
                waiter.wait_for_work();
                done.send(()).expect("the test is there");
            });
            let soon = Duration::from_millis(20);
            assert!(is_done.recv_timeout(soon).is_err());
            drop(another);
            is_done.recv().expect("it ends");
        });
        cv.wait_for_work();
    }
}
