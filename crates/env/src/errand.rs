//! Errands: calls that wait for a disk, made by another thread while the caller does something
//! else.
//!
//! Several files that are synced at once wait for one commit of the filesystem's journal, and one
//! after the other for one each. Where there are no threads for it, or none has begun, the call is
//! made by the thread that waits for it.

use crate::promise::Promise;
use esker_status::Result;
use std::fmt;
use std::sync::Arc;

/// The call of an errand. It does not own the filesystem, whose threads may make it.
pub type Call = Box<dyn FnOnce() -> Result<()> + Send>;

/// A call that may be under way. One that is dropped is not made any more, unless it has begun:
/// then dropping it waits.
#[must_use = "an errand that is dropped may not be run"]
pub struct Errand(ErrandState);

enum ErrandState {
    Unmade(Call),
    Made(Result<()>),
    Promised(Arc<Promise<Result<()>>>),
    Over,
}

impl Errand {
    /// A call that is made when it is waited for.
    pub fn later(call: Call) -> Errand {
        Errand(ErrandState::Unmade(call))
    }

    /// A call that was made.
    pub fn made(outcome: Result<()>) -> Errand {
        Errand(ErrandState::Made(outcome))
    }

    pub(crate) fn promised(promise: Arc<Promise<Result<()>>>) -> Errand {
        Errand(ErrandState::Promised(promise))
    }

    /// Waits for the call, and has its outcome.
    pub fn wait(mut self) -> Result<()> {
        match std::mem::replace(&mut self.0, ErrandState::Over) {
            ErrandState::Unmade(call) => call(),
            ErrandState::Made(outcome) => outcome,
            // Nobody else waits for it, so the outcome is there.
            ErrandState::Promised(promise) => promise.wait().map_or(Ok(()), |(outcome, _)| outcome),
            ErrandState::Over => Ok(()),
        }
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        if let ErrandState::Promised(promise) = &self.0 {
            promise.end();
        }
    }
}

impl fmt::Debug for Errand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Errand").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileSystem, PosixFs};
    use esker_status::Error;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    #[test]
    fn a_call_is_made_once_by_whoever_comes_first() {
        let fs = PosixFs::new();
        let made = Arc::new(AtomicUsize::new(0));
        let counts = || {
            let made = Arc::clone(&made);
            let call = move || {
                made.fetch_add(1, Ordering::Relaxed);
                Err(Error::aborted("as asked"))
            };
            Box::new(call) as Call
        };
        let errands: Vec<_> = (0..20).map(|_| fs.begin(counts())).collect();
        for errand in errands.into_iter().chain([Errand::later(counts())]) {
            errand.wait().expect_err("the call's own outcome");
        }
        assert_eq!(made.load(Ordering::Relaxed), 21);
        drop(Errand::later(counts()));
        assert_eq!(made.load(Ordering::Relaxed), 21, "not made");
    }

    #[test]
    fn dropping_an_errand_waits_for_a_call_that_has_begun() {
        let (begun, begins) = channel();
        let over = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&over);
        let errand = PosixFs::new().begin(Box::new(move || {
            begun.send(()).expect("the test is there");
            std::thread::sleep(std::time::Duration::from_millis(20));
            theirs.store(1, Ordering::Release);
            Ok(())
        }));
        if begins
            .recv_timeout(std::time::Duration::from_secs(10))
            .is_ok()
        {
            drop(errand);
            assert_eq!(over.load(Ordering::Acquire), 1);
        }
    }
}
