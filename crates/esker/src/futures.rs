//! Calls that return futures, for programs on any asynchronous runtime.
//!
//! [`AsyncDb`] has no runtime of its own. A read first looks into memory, as
//! [`ReadTier::BlockCache`] does, and is ready at once where that is enough. What may wait, for
//! the device or for other writers, goes whole to a thread, whose end wakes the task. There are
//! two queues of each [`AsyncDb`] and its clones, one for reads and one for the rest, so that
//! writers who are slowed down keep no reader waiting. Each has eight threads at most; they end
//! when nothing is to do.
//!
//! A future does nothing before it is polled first. One that is dropped cancels a read that has not
//! begun. A write that was polled once takes place, and takes place whole, whether or not somebody
//! waits for it: the database stays open until then.
//!
//! Invariant: a body that a queue has taken is run by one thread, or reported as an error.
//! Thread-safety: any thread does anything.

use crate::options::ReadTier;
use crate::{
    Db, DbIterator, ErrorKind, FamilyHandle, ReadOptions, Result, WriteBatch, WriteOptions,
};
use esker_env::{Executor, ThreadExecutor};
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

/// Most threads of a queue.
const THREADS_MAX: usize = 8;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that could panic runs under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Body = Box<dyn FnOnce() + Send>;

/// Bodies that wait for a thread.
#[derive(Default)]
struct CallQueueState {
    waiting: VecDeque<Body>,
    threads: usize,
}

/// Bodies and the threads that run them.
#[derive(Clone, Default)]
struct CallQueue(Arc<Mutex<CallQueueState>>);

impl CallQueue {
    /// Has a thread run `body`.
    fn push(&self, name: &str, body: Body) -> Result<()> {
        let mut state = lock(&self.0);
        state.waiting.push_back(body);
        if state.threads >= THREADS_MAX {
            return Ok(());
        }
        let own = self.clone();
        match ThreadExecutor::new().spawn(name, Box::new(move || own.serve())) {
            Ok(_runs_by_itself) => state.threads += 1,
            // Others run it.
            Err(_) if state.threads > 0 => {}
            Err(e) => {
                state.waiting.pop_back();
                return Err(e);
            }
        }
        Ok(())
    }

    /// The life of a thread.
    fn serve(&self) {
        loop {
            let mut state = lock(&self.0);
            let Some(body) = state.waiting.pop_front() else {
                state.threads -= 1;
                return;
            };
            drop(state);
            // What is left to panic is the waker of the caller.
            let _panic = catch_unwind(AssertUnwindSafe(body));
        }
    }
}

/// The outcome of a call, or who waits for it.
struct CallState<T> {
    outcome: Option<thread::Result<Result<T>>>,
    waker: Option<Waker>,
}

/// A call that a thread carries out.
struct ThreadCall<T> {
    state: Arc<Mutex<CallState<T>>>,
    /// Nobody waits for it any more.
    is_dropped: Arc<AtomicBool>,
}

impl<T: Send + 'static> ThreadCall<T> {
    /// Has a thread of `queue` run `body`. `is_read` allows it to leave that out where nobody waits
    /// for it any more.
    fn begin(
        queue: &CallQueue,
        is_read: bool,
        body: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<Self> {
        let state = Arc::new(Mutex::new(CallState {
            outcome: None,
            waker: None,
        }));
        let is_dropped = Arc::new(AtomicBool::new(false));
        let (theirs, dropped) = (Arc::clone(&state), Arc::clone(&is_dropped));
        let run = move || {
            if is_read && dropped.load(Ordering::Relaxed) {
                return;
            }
            let outcome = catch_unwind(AssertUnwindSafe(body));
            let mut state = lock(&theirs);
            state.outcome = Some(outcome);
            let waker = state.waker.take();
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        };
        let name = if is_read {
            "esker-reads"
        } else {
            "esker-calls"
        };
        queue.push(name, Box::new(run))?;
        Ok(ThreadCall { state, is_dropped })
    }
}

impl<T> Future for ThreadCall<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let mut state = lock(&self.state);
        match state.outcome.take() {
            Some(Ok(outcome)) => Poll::Ready(outcome),
            Some(Err(panic)) => {
                drop(state);
                // The panic of a closure of the caller.
                resume_unwind(panic);
            }
            None => {
                match &mut state.waker {
                    Some(waker) => waker.clone_from(cx.waker()),
                    waker => *waker = Some(cx.waker().clone()),
                }
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for ThreadCall<T> {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Relaxed);
    }
}

/// Options of a read, and those by which it looks into memory first.
struct AsyncRead {
    options: ReadOptions,
    /// None for a read that is not meant to go beyond memory anyway.
    in_memory: Option<ReadOptions>,
}

impl AsyncRead {
    fn new(options: ReadOptions) -> Self {
        let in_memory = (options.read_tier == ReadTier::All).then(|| {
            let mut in_memory = options.clone();
            in_memory.read_tier = ReadTier::BlockCache;
            in_memory
        });
        AsyncRead { options, in_memory }
    }
}

/// A database whose calls return futures. Cheap to clone, as [`Db`] is.
///
/// ```
/// use esker::futures::AsyncDb;
/// use esker::{Db, Options, WriteBatch};
///
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
/// let db = AsyncDb::new(db);
/// # pollster::block_on(async {
/// db.put("ann", "1").await?;
/// let mut batch = WriteBatch::new();
/// batch.put("bob", "2")?;
/// batch.delete("ann")?;
/// db.write(batch).await?;
/// assert_eq!(db.get("ann").await?, None);
/// assert_eq!(db.get("bob").await?.as_deref(), Some(&b"2"[..]));
/// # Ok(())
/// # })
/// # }
/// ```
#[derive(Clone)]
pub struct AsyncDb {
    db: Db,
    /// The default family.
    family: FamilyHandle,
    plain: Arc<AsyncRead>,
    reads: CallQueue,
    others: CallQueue,
}

impl std::fmt::Debug for AsyncDb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AsyncDb")
            .field("path", &self.db.path())
            .finish_non_exhaustive()
    }
}

impl AsyncDb {
    /// Wraps an open database, which goes on to serve its other handles.
    pub fn new(db: Db) -> Self {
        AsyncDb {
            family: db.default_family_handle(),
            db,
            plain: Arc::new(AsyncRead::new(ReadOptions::default())),
            reads: CallQueue::default(),
            others: CallQueue::default(),
        }
    }

    /// The database, whose calls may wait.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The value of `key` in the default family.
    ///
    /// ```
    /// # use esker::futures::AsyncDb;
    /// # use esker::{Db, Options};
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir()?;
    /// # let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    /// # let db = AsyncDb::new(db);
    /// # pollster::block_on(async {
    /// db.put("key", "value").await?;
    /// assert_eq!(db.get("key").await?.as_deref(), Some(&b"value"[..]));
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Db::get`]; `Io` where no thread can be started.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.get_from(&self.family, key.as_ref(), &self.plain).await
    }

    /// The value of `key` in `family`.
    ///
    /// # Errors
    ///
    /// As [`AsyncDb::get`].
    pub async fn get_cf(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        self.get_from(family, key.as_ref(), &self.plain).await
    }

    /// The value of `key` in `family`, read as `options` say.
    ///
    /// # Errors
    ///
    /// As [`AsyncDb::get`].
    pub async fn get_opt(
        &self,
        family: &FamilyHandle,
        key: impl AsRef<[u8]>,
        options: &ReadOptions,
    ) -> Result<Option<Vec<u8>>> {
        let read = Arc::new(AsyncRead::new(options.clone()));
        self.get_from(family, key.as_ref(), &read).await
    }

    async fn get_from(
        &self,
        family: &FamilyHandle,
        key: &[u8],
        read: &Arc<AsyncRead>,
    ) -> Result<Option<Vec<u8>>> {
        if let Some(in_memory) = &read.in_memory {
            match self.db.get_opt(family, key, in_memory, None) {
                Err(e) if e.kind() == ErrorKind::Incomplete => {}
                known => return Ok(known?.map(Into::into)),
            }
        }
        let (db, family, read) = (self.db.clone(), family.clone(), Arc::clone(read));
        let key = key.to_vec();
        let get = move || {
            let found = db.get_opt(&family, key, &read.options, None)?;
            Ok(found.map(Into::into))
        };
        ThreadCall::begin(&self.reads, true, get)?.await
    }

    /// The values of many keys of `family`, all as of one state of the database.
    ///
    /// ```
    /// # use esker::futures::AsyncDb;
    /// # use esker::{Db, Options};
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir()?;
    /// # let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    /// # let db = AsyncDb::new(db);
    /// # pollster::block_on(async {
    /// let family = db.db().default_family_handle();
    /// db.put("ann", "1").await?;
    /// let found = db.multi_get(&family, ["ann", "bob"]).await?;
    /// assert!(matches!(&found[..], [Ok(Some(_)), Ok(None)]));
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Db::multi_get`], for each key; `Io` where no thread can be started.
    pub async fn multi_get<K: AsRef<[u8]>>(
        &self,
        family: &FamilyHandle,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Result<Option<Vec<u8>>>>> {
        let keys = keys.into_iter().map(|key| key.as_ref().to_vec());
        let keys: Vec<Vec<u8>> = keys.collect();
        let (db, family) = (self.db.clone(), family.clone());
        let read = move || {
            let found = db.multi_get_opt(&family, &keys, &ReadOptions::default(), None);
            Ok(found
                .into_iter()
                .map(|one| Ok(one?.map(Into::into)))
                .collect())
        };
        ThreadCall::begin(&self.reads, true, read)?.await
    }

    /// Entries that `it` shows from where it stands, at most `most` at once.
    ///
    /// ```
    /// # use esker::futures::AsyncDb;
    /// # use esker::{Db, Options};
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir()?;
    /// # let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    /// # let db = AsyncDb::new(db);
    /// # pollster::block_on(async {
    /// for n in 0..100 {
    ///     db.put(format!("{n:03}"), "x").await?;
    /// }
    /// let mut entries = db.entries(db.db().iter());
    /// let mut count = 0;
    /// loop {
    ///     let some = entries.next(16).await?;
    ///     if some.is_empty() {
    ///         break;
    ///     }
    ///     count += some.len();
    /// }
    /// assert_eq!(count, 100);
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    pub fn entries(&self, it: DbIterator) -> AsyncEntries {
        let it = it.with_prepared_values();
        AsyncEntries {
            reads: self.reads.clone(),
            walk: Arc::new(Mutex::new(EntryWalk {
                it,
                is_begun: false,
                unseen: VecDeque::new(),
            })),
        }
    }

    /// Sets `key` to `value` in the default family.
    ///
    /// # Errors
    ///
    /// Those of [`Db::put`]; `Io` where no thread can be started, and nothing is written.
    pub async fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.put(key, value)?;
        self.write(batch).await
    }

    /// Removes `key` from the default family.
    ///
    /// # Errors
    ///
    /// As [`AsyncDb::put`].
    pub async fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.delete(key)?;
        self.write(batch).await
    }

    /// Writes a batch: all of it or nothing.
    ///
    /// # Errors
    ///
    /// As [`AsyncDb::put`].
    pub async fn write(&self, batch: WriteBatch) -> Result<()> {
        self.write_opt(batch, &WriteOptions::default()).await
    }

    /// Writes a batch as `options` say.
    ///
    /// # Errors
    ///
    /// As [`AsyncDb::put`].
    pub async fn write_opt(&self, mut batch: WriteBatch, options: &WriteOptions) -> Result<()> {
        let options = *options;
        self.run(move |db| db.write_opt(&mut batch, &options)).await
    }

    /// Writes the memtables of the default family to a table.
    ///
    /// ```
    /// # use esker::futures::AsyncDb;
    /// # use esker::{Db, Options};
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir()?;
    /// # let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    /// # let db = AsyncDb::new(db);
    /// # pollster::block_on(async {
    /// db.put("key", "value").await?;
    /// db.flush().await?;
    /// assert_eq!(db.db().live_files_metadata().len(), 1);
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Db::flush`]; `Io` where no thread can be started.
    pub async fn flush(&self) -> Result<()> {
        self.run(|db| db.flush()).await
    }

    /// Has a thread make any calls, whole, whether or not somebody waits for them.
    ///
    /// ```
    /// # use esker::futures::AsyncDb;
    /// # use esker::{Db, Options};
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir()?;
    /// # let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    /// # let db = AsyncDb::new(db);
    /// # pollster::block_on(async {
    /// let family = db.run(|db| db.family_or_create("users", Default::default())).await?;
    /// assert_eq!(db.get_cf(&family, "ann").await?, None);
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of `calls`; `Io` where no thread can be started.
    ///
    /// # Panics
    ///
    /// With the panic of `calls`.
    pub async fn run<T: Send + 'static>(
        &self,
        calls: impl FnOnce(&Db) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let db = self.db.clone();
        ThreadCall::begin(&self.others, false, move || calls(&db))?.await
    }
}

impl From<Db> for AsyncDb {
    fn from(db: Db) -> Self {
        AsyncDb::new(db)
    }
}

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

struct EntryWalk {
    it: DbIterator,
    /// The entry at which the iterator stands was read.
    is_begun: bool,
    /// Read for a future that was dropped.
    unseen: VecDeque<Entry>,
}

/// Entries of a [`DbIterator`] that threads read.
pub struct AsyncEntries {
    reads: CallQueue,
    walk: Arc<Mutex<EntryWalk>>,
}

impl std::fmt::Debug for AsyncEntries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AsyncEntries").finish_non_exhaustive()
    }
}

impl AsyncEntries {
    /// The next entries, at most `most`, none at the end. What was read for a future that was
    /// dropped comes first: no entry is missed.
    ///
    /// # Errors
    ///
    /// Those of [`DbIterator::status`]; `Io` where no thread can be started.
    pub async fn next(&mut self, most: usize) -> Result<Vec<Entry>> {
        let walk = Arc::clone(&self.walk);
        let read = move || {
            {
                let mut walk = lock(&walk);
                let EntryWalk {
                    it,
                    is_begun,
                    unseen,
                } = &mut *walk;
                if unseen.is_empty() {
                    let mut keep = |key: &[u8], value: &[u8]| {
                        unseen.push_back((key.to_vec(), value.to_vec()));
                    };
                    let is_first = !std::mem::replace(is_begun, true) && it.valid();
                    if is_first {
                        keep(it.key(), it.value());
                    }
                    it.next_batch(most.saturating_sub(usize::from(is_first)), keep);
                    it.status()?;
                }
            }
            Ok(())
        };
        ThreadCall::begin(&self.reads, true, read)?.await?;
        let mut walk = lock(&self.walk);
        let n = walk.unseen.len().min(most);
        Ok(walk.unseen.drain(..n).collect())
    }
}
