//! Threads that read and write while others compute, and the large buffers that they do it with;
//! and the ring to the kernel that does the same for direct I/O (`sys/ring.rs`).
//!
//! A request is a [`Task`] that the thread that waits for it can also do by itself: the queue only
//! offers it. So a pool whose threads are all busy, that could start none, or that has ended makes
//! nobody wait longer than a plain call would. Requests are large, a megabyte or so, or wait for a
//! disk, and no kernel interface that may be forbidden is needed.
//!
//! Each database has a pool, with a ring of its own. The threads are those of the process
//! ([`IoThreads`]), and so are the buffers that wait for their next use: neither grows with its
//! databases. Threads are started when requests find no idle one, up to [`THREADS_MAX`], and end
//! when no request came for [`LINGER`]; the last one frees the buffers.
//!
//! Invariant: a thread never owns a pool, so it never waits for itself; the end of a pool waits
//! for its own requests alone. Under the lock here only leaves are taken.

use crate::Executor;
use crate::aligned::{AlignedBuf, Spares};
use crate::sys::ring::Ring;
use esker_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use esker_sync::{Condvar, Mutex, Rank};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Most threads: requests that a device can usefully have at once from jobs that each
/// wait for few.
const THREADS_MAX: usize = 8;

/// How long a thread waits for its next request.
const LINGER: Duration = Duration::from_millis(100);

/// Threads are started under it.
const RANK: Rank = Rank::new(65534, "background I/O");

/// Who carries out large requests in the background, of a filesystem that has the choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BackgroundIo {
    /// The faster one for the kind of file: io_uring for direct I/O, threads for what goes through
    /// the page cache.
    Auto,
    /// Threads of the filesystem.
    #[default]
    Threads,
    /// The kernel, through an io_uring: reads of both kinds, and direct writes.
    IoUring,
}

impl BackgroundIo {
    /// Returns whether requests of a file that is direct, or is not, go to a ring.
    pub(crate) fn is_by_ring(self, direct: bool) -> bool {
        match self {
            BackgroundIo::Auto => direct,
            BackgroundIo::Threads => false,
            BackgroundIo::IoUring => true,
        }
    }
}

/// Something to do once, by the thread that comes first.
pub(crate) trait Task: Send + Sync {
    /// Does it, unless that has begun.
    fn run(&self);
}

/// A task and the pool that it is of.
struct PoolTask {
    task: Arc<dyn Task>,
    pool: Arc<PoolState>,
}

/// The requests of one pool; changed under the lock of the threads.
#[derive(Debug, Default)]
struct PoolState {
    /// Those that were offered and are not done.
    open: AtomicUsize,
    closed: AtomicBool,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<PoolTask>,
    idle: usize,
    /// Threads that were started and have not ended.
    threads: usize,
    /// Nobody offers anything any more.
    ended: bool,
}

/// Threads that carry out the tasks of several pools.
pub(crate) struct IoThreads {
    executor: Arc<dyn Executor>,
    queue: Mutex<Queue>,
    offered: Condvar,
    /// A thread has done the last task of a closed pool.
    done: Condvar,
    spares: Arc<Spares>,
}

/// The part of a pool that files need; outlives it.
pub(crate) struct IoQueue {
    threads: Arc<IoThreads>,
    state: Arc<PoolState>,
    /// Made when it is first wanted, or why it cannot be had.
    ring: OnceLock<io::Result<Arc<Ring>>>,
}

impl fmt::Debug for IoThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoThreads").finish_non_exhaustive()
    }
}

impl fmt::Debug for IoQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoQueue").finish_non_exhaustive()
    }
}

impl IoThreads {
    /// No threads yet; `executor` starts them.
    pub(crate) fn new(executor: Arc<dyn Executor>) -> Arc<Self> {
        Arc::new(IoThreads {
            executor,
            queue: Mutex::new(RANK, Queue::default()),
            offered: Condvar::new(),
            done: Condvar::new(),
            spares: Arc::new(Spares::new()),
        })
    }

    #[cold]
    fn start_thread(self: &Arc<Self>, queue: &mut Queue) {
        let own = Arc::clone(self);
        let name = format!("esker-io-{}", queue.threads);
        let started = self.executor.spawn(&name, Box::new(move || own.serve()));
        if started.is_ok() {
            queue.threads += 1;
            self.spares.begin();
        }
    }

    /// The life of a thread.
    fn serve(&self) {
        let mut queue = self.queue.lock();
        loop {
            if let Some(PoolTask { task, pool }) = queue.tasks.pop_front() {
                drop(queue);
                let done = catch_unwind(AssertUnwindSafe(|| task.run()));
                drop(task);
                queue = self.queue.lock();
                let is_last = pool.open.fetch_sub(1, Ordering::Relaxed) == 1;
                if is_last && pool.closed.load(Ordering::Relaxed) {
                    self.done.notify_all();
                }
                if let Err(panic) = done {
                    queue.threads -= 1;
                    self.done.notify_all();
                    drop(queue);
                    resume_unwind(panic);
                }
            } else if queue.ended {
                return;
            } else {
                queue.idle += 1;
                let timed_out = self.offered.wait_for(&mut queue, LINGER);
                queue.idle -= 1;
                if timed_out && queue.tasks.is_empty() {
                    queue.threads -= 1;
                    if queue.threads == 0 {
                        self.spares.end();
                    }
                    return;
                }
            }
        }
    }

    /// Waits until all tasks of a pool are done that threads are there for.
    fn close(&self, pool: &PoolState) {
        let mut queue = self.queue.lock();
        pool.closed.store(true, Ordering::Relaxed);
        while queue.threads > 0 && pool.open.load(Ordering::Relaxed) > 0 {
            self.done.wait(&mut queue);
        }
        // No thread is left for those.
        queue.tasks.retain(|task| !ptr::eq(&*task.pool, pool));
    }

    /// Has the threads end, which nobody offers anything any more.
    fn end(&self) {
        self.queue.lock().ended = true;
        self.offered.notify_all();
    }
}

impl IoQueue {
    fn new(threads: Arc<IoThreads>) -> Arc<Self> {
        Arc::new(IoQueue {
            threads,
            state: Arc::default(),
            ring: OnceLock::new(),
        })
    }

    /// The ring that carries requests of files of this kind, where they go to one and the system
    /// has it.
    pub(crate) fn ring(&self, wanted: BackgroundIo, direct: bool) -> Option<&Arc<Ring>> {
        if !wanted.is_by_ring(direct) {
            return None;
        }
        let ring = self.ring.get_or_init(Ring::new).as_ref().ok();
        ring.filter(|ring| ring.refusal().is_none())
    }

    /// Names the carrier.
    pub(crate) fn carrier(&self, wanted: BackgroundIo, direct: bool) -> String {
        if !wanted.is_by_ring(direct) {
            return "threads".to_owned();
        }
        match self.ring.get_or_init(Ring::new) {
            Ok(ring) => match ring.refusal() {
                None => "io_uring".to_owned(),
                Some(e) => format!("threads, since the io_uring takes no requests any more: {e}"),
            },
            Err(e) => format!("threads, since io_uring is not available: {e}"),
        }
    }

    /// Offers a task to the threads; false when there are none: it is left to the thread that waits
    /// for it.
    pub(crate) fn offer(&self, task: Arc<dyn Task>) -> bool {
        let threads = &self.threads;
        let mut queue = threads.queue.lock();
        if self.state.closed.load(Ordering::Relaxed) {
            return false;
        }
        if queue.tasks.len() >= queue.idle && queue.threads < THREADS_MAX {
            threads.start_thread(&mut queue);
        }
        if queue.threads == 0 {
            return false;
        }
        self.state.open.fetch_add(1, Ordering::Relaxed);
        let pool = Arc::clone(&self.state);
        queue.tasks.push_back(PoolTask { task, pool });
        drop(queue);
        threads.offered.notify_one();
        true
    }

    /// A buffer of at least `len` bytes, of unknown content, that comes back here when it is
    /// dropped.
    pub(crate) fn buffer(&self, len: usize) -> AlignedBuf {
        let buffer = self.threads.spares.take(len);
        let buffer = buffer.unwrap_or_else(|| AlignedBuf::new(len));
        buffer.returning_to(&self.threads.spares)
    }
}

/// The pool of a database. Dropping it waits for its tasks, and not for threads.
#[derive(Debug)]
pub(crate) struct IoPool {
    queue: Arc<IoQueue>,
    /// The threads are of this pool alone.
    is_alone: bool,
}

impl IoPool {
    /// A pool with threads of its own, none yet.
    #[cfg(test)]
    pub(crate) fn new(executor: Arc<dyn Executor>) -> Self {
        IoPool {
            queue: IoQueue::new(IoThreads::new(executor)),
            is_alone: true,
        }
    }

    /// A pool whose requests go to threads that others use, too.
    pub(crate) fn on(threads: Arc<IoThreads>) -> Self {
        IoPool {
            queue: IoQueue::new(threads),
            is_alone: false,
        }
    }

    /// The part that files keep.
    pub(crate) fn queue(&self) -> &Arc<IoQueue> {
        &self.queue
    }

    /// Threads that it has.
    #[cfg(test)]
    pub(crate) fn threads(&self) -> usize {
        self.queue.threads.queue.lock().threads
    }
}

impl Drop for IoPool {
    fn drop(&mut self) {
        let queue = &self.queue;
        queue.threads.close(&queue.state);
        if self.is_alone {
            queue.threads.end();
        }
    }
}
