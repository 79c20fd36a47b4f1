//! Waits for row locks that the application carries out, so that it can end one.
//!
//! Without a hook a waiter sleeps on a condition variable of its own. With one, each wait is an
//! object of the application: the waiter sleeps in it, and whoever hands the lock over wakes it. No
//! lock of this crate is held while any of it is called.
//!
//! Thread-safety: a wait is used by the thread that waits and woken by others.

use std::time::Duration;

/// How the sleep of a waiter ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWaitEnd {
    /// The waiter looks whether it may go on, and waits again if not. The time limit is looked
    /// after by the caller, so that this is right when it passed, or for no reason.
    Woken,
    /// The application ends the wait: the operation fails as if its time had passed.
    Ended,
}

/// One wait of one thread for a row lock. It is dropped when the wait is over.
pub trait LockWait: Send + Sync {
    /// Sleeps until it is woken, for `timeout` at most, or until the application has enough.
    fn sleep(&self, timeout: Option<Duration>) -> LockWaitEnd;

    /// Wakes the sleeper. A call before it sleeps ends its next sleep at once. It may come after
    /// the wait is over.
    fn wake(&self);
}

/// Maker of the waits of a database with row locks: see
/// [`crate::TransactionDbOptions::lock_waits`].
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker_txn::{LockWait, LockWaitEnd, LockWaitHook, TransactionDb, TransactionDbOptions};
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// /// Ends each wait at once.
/// #[derive(Debug)]
/// struct Never;
///
/// impl LockWait for Never {
///     fn sleep(&self, _timeout: Option<Duration>) -> LockWaitEnd {
///         LockWaitEnd::Ended
///     }
///     fn wake(&self) {}
/// }
///
/// impl LockWaitHook for Never {
///     fn begin(&self) -> Box<dyn LockWait> {
///         Box::new(Never)
///     }
/// }
///
/// let mut options = TransactionDbOptions::default().lock_timeout(None);
/// options.lock_waits = Some(Arc::new(Never));
/// let db = TransactionDb::open(
///     dir.path(),
///     esker::Options::new().create_if_missing(true),
///     options,
/// )?;
/// let mut holder = db.begin();
/// holder.put("key", "1")?;
/// let refused = db.begin().put("key", "2").expect_err("its wait ends");
/// assert_eq!(refused.kind(), esker::ErrorKind::TimedOut);
/// # Ok(())
/// # }
/// ```
pub trait LockWaitHook: std::fmt::Debug + Send + Sync {
    /// Returns the wait of this thread, which is about to begin.
    fn begin(&self) -> Box<dyn LockWait>;
}
