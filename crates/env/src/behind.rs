//! A file whose writes happen behind the back of whoever appends.
//!
//! Appends fill a buffer. A full one goes to the threads of the environment and the next one is filled meanwhile, so
//! that a job merges while the device, or the copy into the page cache, is busy. One thread at a time writes a file, in
//! order: a failure leaves a prefix and an unknown tail, as it does without this. Errors are told by the next call and
//! by every call after it.
//!
//! `flush`, `sync` and `close` wait until everything has arrived; they write the incomplete last buffer themselves.
//!
//! Invariant: the file below is in `Lane::state` whenever nobody writes to it; `full` is empty after a failure.
//! Thread-safety: one thread appends; the lane is shared with the threads that write.

use crate::WritableFile;
use crate::aligned::{AlignedBuf, DIRECT_ALIGN};
use crate::pool::{IoQueue, Task};
use crate::system::thread_cpu_ns;
use esker_status::{Error, ErrorKind, Result};
use esker_sync::{Condvar, Mutex, MutexGuard, Rank};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Buffers of a file: one being filled, one on its way, one between.
const BUFFERS: usize = 3;
/// Least size of a request.
const REQUEST_MIN: usize = 256 << 10;

#[derive(Debug)]
struct State {
    /// The file below; `None` while somebody writes to it, and after the end.
    file: Option<Box<dyn WritableFile>>,
    full: VecDeque<AlignedBuf>,
    free: Vec<AlignedBuf>,
    error: Option<Error>,
    /// A thread was asked to come, or is here.
    is_called: bool,
}

/// What the appending thread and the writing ones share.
#[derive(Debug)]
struct Lane {
    /// Bytes of a request. A buffer may have more.
    size: usize,
    state: Mutex<State>,
    changed: Condvar,
    failed: AtomicBool,
    /// Processor time that other threads spent on the file.
    cpu_ns: AtomicU64,
}

impl Lane {
    /// Writes the oldest full buffer; false when there is none, or somebody else is writing.
    fn write_one(&self, state: &mut MutexGuard<'_, State>) -> bool {
        if state.full.is_empty() {
            return false;
        }
        let Some(mut file) = state.file.take() else {
            return false;
        };
        let Some(buffer) = state.full.pop_front() else {
            return false;
        };
        let written = MutexGuard::unlocked(state, || file.append(&buffer.as_slice()[..self.size]));
        state.file = Some(file);
        state.free.push(buffer);
        if let Err(e) = written {
            self.fail(state, e);
        }
        self.changed.notify_all();
        true
    }

    /// Remembers the first failure; what was to follow is not written.
    fn fail(&self, state: &mut State, e: Error) {
        state.free.extend(state.full.drain(..));
        state.error.get_or_insert(e);
        self.failed.store(true, Ordering::Release);
    }

    /// Waits until everything was written or something failed, lending a hand; the file below is there then.
    fn drain(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        loop {
            if self.write_one(&mut state) {
                continue;
            }
            if state.file.is_some() {
                return state;
            }
            self.changed.wait(&mut state);
        }
    }
}

impl Task for Lane {
    fn run(&self) {
        let start = thread_cpu_ns();
        let mut state = self.state.lock();
        while self.write_one(&mut state) {}
        state.is_called = false;
        let spent = thread_cpu_ns().saturating_sub(start);
        self.cpu_ns.fetch_add(spent, Ordering::Relaxed);
    }
}

/// A file that is written behind the appends.
#[derive(Debug)]
pub(crate) struct WriteBehind {
    lane: Arc<Lane>,
    queue: Arc<IoQueue>,
    path: PathBuf,
    buffer: Option<AlignedBuf>,
    /// Bytes in `buffer`.
    filled: usize,
    /// Buffers made.
    made: usize,
    len: u64,
    closed: bool,
}

impl WriteBehind {
    /// `file`, written in requests of `size` bytes.
    pub(crate) fn new(file: Box<dyn WritableFile>, queue: &Arc<IoQueue>, size: usize) -> Self {
        let (path, len) = (file.path().to_owned(), file.len());
        let state = State {
            file: Some(file),
            full: VecDeque::new(),
            free: Vec::new(),
            error: None,
            is_called: false,
        };
        WriteBehind {
            lane: Arc::new(Lane {
                size: size.max(REQUEST_MIN).next_multiple_of(DIRECT_ALIGN),
                state: Mutex::new(Rank::LEAF, state),
                changed: Condvar::new(),
                failed: AtomicBool::new(false),
                cpu_ns: AtomicU64::new(0),
            }),
            queue: Arc::clone(queue),
            path,
            buffer: None,
            filled: 0,
            made: 0,
            len,
            closed: false,
        }
    }

    fn check_usable(&self) -> Result<()> {
        if self.closed {
            return Err(Error::new(ErrorKind::Io, "the file is closed").with_file(&self.path));
        }
        if self.lane.failed.load(Ordering::Acquire) {
            return self.told(&self.lane.state.lock());
        }
        Ok(())
    }

    /// The failure, if there was one.
    fn told(&self, state: &State) -> Result<()> {
        state.error.clone().map_or(Ok(()), Err)
    }

    /// Gives the full buffer away.
    fn hand_over(&mut self) {
        let Some(buffer) = self.buffer.take() else {
            return;
        };
        self.filled = 0;
        let mut state = self.lane.state.lock();
        state.full.push_back(buffer);
        let call = !std::mem::replace(&mut state.is_called, true);
        drop(state);
        if call && !self.queue.offer(Arc::clone(&self.lane) as Arc<dyn Task>) {
            self.lane.state.lock().is_called = false;
        }
    }

    /// A buffer to fill: a new one, one that was written, or one that becomes free.
    fn empty_buffer(&mut self) -> Result<AlignedBuf> {
        if self.made < BUFFERS {
            let free = self.lane.state.lock().free.pop();
            if let Some(buffer) = free {
                return Ok(buffer);
            }
            self.made += 1;
            return Ok(self.queue.buffer(self.lane.size));
        }
        let mut state = self.lane.state.lock();
        loop {
            self.told(&state)?;
            if let Some(buffer) = state.free.pop() {
                return Ok(buffer);
            }
            // Nobody has come yet: the threads are busy with other files.
            if !self.lane.write_one(&mut state) {
                self.lane.changed.wait(&mut state);
            }
        }
    }

    /// Waits for everything, then writes what is in the buffer.
    fn settle(&mut self) -> Result<MutexGuard<'_, State>> {
        let mut state = self.lane.drain();
        self.told(&state)?;
        let Some(file) = &mut state.file else {
            return Err(Error::new(ErrorKind::Io, "the file is closed").with_file(&self.path));
        };
        if let Some(buffer) = &self.buffer
            && self.filled > 0
        {
            let tail = &buffer.as_slice()[..self.filled];
            let written = file.append(tail);
            self.filled = 0;
            if let Err(e) = written {
                self.lane.fail(&mut state, e.clone());
                return Err(e);
            }
        }
        Ok(state)
    }

    /// Settles, then does `last` to the file below; a failure stays.
    fn finish(&mut self, last: impl FnOnce(&mut dyn WritableFile) -> Result<()>) -> Result<()> {
        let lane = Arc::clone(&self.lane);
        let mut state = self.settle()?;
        let Some(file) = &mut state.file else {
            return Ok(());
        };
        let done = last(&mut **file);
        if let Err(e) = &done {
            lane.fail(&mut state, e.clone());
        }
        done
    }
}

impl WritableFile for WriteBehind {
    fn append(&mut self, mut data: &[u8]) -> Result<()> {
        self.check_usable()?;
        while !data.is_empty() {
            let mut buffer = match self.buffer.take() {
                Some(buffer) => buffer,
                None => self.empty_buffer()?,
            };
            let n = data.len().min(self.lane.size - self.filled);
            buffer.as_mut_slice()[self.filled..self.filled + n].copy_from_slice(&data[..n]);
            self.buffer = Some(buffer);
            self.filled += n;
            self.len += n as u64;
            data = &data[n..];
            if self.filled == self.lane.size {
                self.hand_over();
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.check_usable()?;
        self.finish(|file| file.flush())
    }

    fn sync(&mut self) -> Result<()> {
        self.check_usable()?;
        self.finish(|file| file.sync())
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn close(&mut self) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        let done = self.finish(|file| file.close());
        self.closed = true;
        self.buffer = None;
        // The lane may still stand in the queue: it keeps neither the file nor the memory.
        let mut state = self.lane.drain();
        let file = state.file.take();
        let free = std::mem::take(&mut state.free);
        drop(state);
        drop((file, free));
        done
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn background_cpu_ns(&self) -> u64 {
        self.lane.cpu_ns.load(Ordering::Relaxed)
    }
}

impl Drop for WriteBehind {
    fn drop(&mut self) {
        // Dropped without close: nobody is left to tell about an error.
        let _ = self.close();
    }
}
