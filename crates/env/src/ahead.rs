//! Reads that are under way while their reader does something else.
//!
//! Whoever waits for a read that nobody has begun yet does it itself; one that is dropped before it began is never done.
//!
//! Thread-safety: a [`PendingRead`] belongs to one reader; its task is shared with the thread that reads.

use crate::RandomAccessFile;
use crate::aligned::AlignedBuf;
use crate::pool::{IoQueue, Task};
use crate::system::thread_cpu_ns;
use esker_status::{Error, Result};
use esker_sync::{Condvar, Mutex, MutexGuard, Rank};
use std::fmt;
use std::sync::Arc;

/// What a read brought.
#[derive(Debug)]
pub struct Filled {
    buffer: AlignedBuf,
    len: usize,
    cpu_ns: u64,
}

impl Filled {
    /// The bytes; fewer than asked for at the end of the file.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.buffer.as_slice()[..self.len]
    }
    /// Processor time that another thread spent on it, in nanoseconds.
    pub fn background_cpu_ns(&self) -> u64 {
        self.cpu_ns
    }
}

enum State {
    Queued(AlignedBuf),
    Running,
    Done(Result<Filled>),
    Gone,
}

struct ReadTask {
    file: Arc<dyn RandomAccessFile>,
    offset: u64,
    len: usize,
    state: Mutex<State>,
    done: Condvar,
}

impl ReadTask {
    /// Reads, unless that has begun.
    fn read<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if !matches!(*state, State::Queued(_)) {
            return state;
        }
        let State::Queued(buffer) = std::mem::replace(&mut *state, State::Running) else {
            return state;
        };
        let filled = MutexGuard::unlocked(&mut state, || {
            fill(&*self.file, buffer, self.offset, self.len)
        });
        *state = State::Done(filled);
        state
    }
}

fn fill(
    file: &dyn RandomAccessFile,
    mut buffer: AlignedBuf,
    offset: u64,
    len: usize,
) -> Result<Filled> {
    let len = file.read_at(offset, &mut buffer.as_mut_slice()[..len])?;
    Ok(Filled {
        buffer,
        len,
        cpu_ns: 0,
    })
}

impl Task for ReadTask {
    fn run(&self) {
        let start = thread_cpu_ns();
        let mut state = self.state.lock();
        if !matches!(*state, State::Queued(_)) {
            return;
        }
        state = self.read(state);
        if let State::Done(Ok(filled)) = &mut *state {
            filled.cpu_ns = thread_cpu_ns().saturating_sub(start);
        }
        drop(state);
        self.done.notify_all();
    }
}

enum Inner {
    Done(Result<Filled>),
    Under(Arc<ReadTask>),
    Waited,
}

/// A read that was begun.
pub struct PendingRead(Inner);

impl fmt::Debug for PendingRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRead").finish_non_exhaustive()
    }
}

#[cold]
fn taken_back() -> Error {
    Error::aborted("a read was taken back")
}

impl Drop for PendingRead {
    fn drop(&mut self) {
        let Inner::Under(task) = &self.0 else {
            return;
        };
        let mut state = task.state.lock();
        // One that is under way ends by itself: it owns all that it needs.
        if !matches!(*state, State::Running) {
            let unread = std::mem::replace(&mut *state, State::Gone);
            drop(state);
            drop(unread);
        }
    }
}

impl PendingRead {
    /// One that brought what `got` says.
    pub fn done(buffer: AlignedBuf, got: Result<usize>) -> Self {
        PendingRead(Inner::Done(got.map(|len| Filled {
            len: len.min(buffer.len()),
            buffer,
            cpu_ns: 0,
        })))
    }

    /// Reads now.
    pub(crate) fn at_once(
        file: &dyn RandomAccessFile,
        buffer: AlignedBuf,
        offset: u64,
        len: usize,
    ) -> Self {
        PendingRead(Inner::Done(fill(file, buffer, offset, len)))
    }

    /// Asks the threads of `queue` to read.
    pub(crate) fn begin(
        file: Arc<dyn RandomAccessFile>,
        queue: &Arc<IoQueue>,
        offset: u64,
        len: usize,
    ) -> Self {
        let task = Arc::new(ReadTask {
            file,
            offset,
            len,
            state: Mutex::new(Rank::LEAF, State::Queued(queue.buffer(len))),
            done: Condvar::new(),
        });
        // Without threads it is read when it is waited for.
        let _accepted = queue.offer(Arc::clone(&task) as Arc<dyn Task>);
        PendingRead(Inner::Under(task))
    }

    /// Waits for it, or reads now what nobody has begun to read.
    pub fn wait(mut self) -> Result<Filled> {
        let task = match std::mem::replace(&mut self.0, Inner::Waited) {
            Inner::Done(filled) => return filled,
            Inner::Under(task) => task,
            Inner::Waited => return Err(taken_back()),
        };
        let mut state = task.read(task.state.lock());
        loop {
            match std::mem::replace(&mut *state, State::Gone) {
                State::Done(filled) => return filled,
                State::Running => {
                    *state = State::Running;
                    task.done.wait(&mut state);
                }
                State::Queued(_) | State::Gone => {
                    return Err(taken_back());
                }
            }
        }
    }
}
