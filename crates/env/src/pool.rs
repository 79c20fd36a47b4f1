//! Threads that read and write while others compute, and the large buffers that they do it with;
//! and the ring to the kernel that does the same for direct I/O (`sys/ring.rs`).
//!
//! A request is a [`Task`] that the thread that waits for it can also do by itself: the queue only
//! offers it. So a pool whose threads are all busy, that could start none, or that has ended makes
//! nobody wait longer than a plain call would. Requests are large, a megabyte or so, or wait for a
//! disk, and no kernel interface that may be forbidden is needed.
//!
//! Threads are started when requests find no idle one, up to [`THREADS_MAX`]. They end with the
//! [`IoPool`], or when no request came for [`LINGER`]: each database has a pool, and an idle one
//! has no thread.
//!
//! Invariant: a thread of the pool never owns the pool, so it never waits for itself. Under the
//! lock here only leaves are taken.

use crate::Executor;
use crate::aligned::{AlignedBuf, Spares};
use crate::sys::ring::Ring;
use esker_sync::{Condvar, Mutex, Rank};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Most threads of a pool: requests that a device can usefully have at once from jobs that each
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

struct Queue {
    tasks: VecDeque<Arc<dyn Task>>,
    idle: usize,
    /// Threads that do a task.
    busy: usize,
    /// Threads that were started and have not ended.
    threads: usize,
    closed: bool,
}

/// The part of a pool that files need; outlives it.
pub(crate) struct IoQueue {
    executor: Arc<dyn Executor>,
    queue: Mutex<Queue>,
    offered: Condvar,
    /// Of a closed queue: a thread has done the last task.
    done: Condvar,
    spares: Arc<Spares>,
    /// Made when it is first wanted, or why it cannot be had.
    ring: OnceLock<io::Result<Arc<Ring>>>,
}

impl fmt::Debug for IoQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoQueue").finish_non_exhaustive()
    }
}

impl IoQueue {
    fn new(executor: Arc<dyn Executor>) -> Arc<Self> {
        let queue = Queue {
            tasks: VecDeque::new(),
            idle: 0,
            busy: 0,
            threads: 0,
            closed: false,
        };
        Arc::new(IoQueue {
            executor,
            queue: Mutex::new(RANK, queue),
            offered: Condvar::new(),
            done: Condvar::new(),
            spares: Arc::new(Spares::new()),
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
    pub(crate) fn offer(self: &Arc<Self>, task: Arc<dyn Task>) -> bool {
        let mut queue = self.queue.lock();
        if queue.closed {
            return false;
        }
        if queue.tasks.len() >= queue.idle && queue.threads < THREADS_MAX {
            self.start_thread(&mut queue);
        }
        if queue.threads == 0 {
            return false;
        }
        queue.tasks.push_back(task);
        drop(queue);
        self.offered.notify_one();
        true
    }

    #[cold]
    fn start_thread(self: &Arc<Self>, queue: &mut Queue) {
        let own = Arc::clone(self);
        let name = format!("esker-io-{}", queue.threads);
        let started = self.executor.spawn(&name, Box::new(move || own.serve()));
        queue.threads += usize::from(started.is_ok());
    }

    /// The life of a thread.
    fn serve(&self) {
        let mut queue = self.queue.lock();
        loop {
            if let Some(task) = queue.tasks.pop_front() {
                queue.busy += 1;
                drop(queue);
                let done = catch_unwind(AssertUnwindSafe(|| task.run()));
                drop(task);
                queue = self.queue.lock();
                queue.busy -= 1;
                if queue.closed {
                    self.done.notify_all();
                }
                if let Err(panic) = done {
                    queue.threads -= 1;
                    drop(queue);
                    resume_unwind(panic);
                }
            } else if queue.closed {
                return;
            } else {
                queue.idle += 1;
                let timed_out = self.offered.wait_for(&mut queue, LINGER);
                queue.idle -= 1;
                if timed_out && queue.tasks.is_empty() {
                    queue.threads -= 1;
                    return;
                }
            }
        }
    }

    /// A buffer of at least `len` bytes, of unknown content, that comes back here when it is
    /// dropped.
    pub(crate) fn buffer(&self, len: usize) -> AlignedBuf {
        let buffer = self.spares.take(len);
        let buffer = buffer.unwrap_or_else(|| AlignedBuf::new(len));
        buffer.returning_to(&self.spares)
    }
}

/// Owns the threads. Dropping it waits for tasks, and not for threads without one.
#[derive(Debug)]
pub(crate) struct IoPool(Arc<IoQueue>);

impl IoPool {
    /// A pool without threads yet.
    pub(crate) fn new(executor: Arc<dyn Executor>) -> Self {
        IoPool(IoQueue::new(executor))
    }

    /// The part that files keep.
    pub(crate) fn queue(&self) -> &Arc<IoQueue> {
        &self.0
    }

    /// Threads that it has.
    #[cfg(test)]
    pub(crate) fn threads(&self) -> usize {
        self.0.queue.lock().threads
    }
}

impl Drop for IoPool {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.closed = true;
        self.0.offered.notify_all();
        while queue.busy > 0 || queue.threads > 0 && !queue.tasks.is_empty() {
            self.0.done.wait(&mut queue);
        }
    }
}
