//! A file that is written in the background of its appends.
//!
//! Appends fill a buffer. A full one goes to the threads of the environment and the next one is
//! filled meanwhile, so that a job merges while the device, or the copy into the page cache, is
//! busy. One thread at a time writes a file, in order: a failure leaves a prefix and an unknown
//! tail, as it does without this. Errors are told by the next call and by every call after it.
//!
//! Where the file below leaves the buffers to the kernel ([`BufferedFile::append_buffer`]), they
//! need no thread to wait for them.
//!
//! With the page cache a write is a copy: done elsewhere it takes as much of a processor, and
//! measured with two of them it gained nothing. Such a file writes where it is appended to and only
//! syncs elsewhere, which is where it waits.
//!
//! `flush`, `sync` and `close` wait until everything has arrived; they write the incomplete last
//! buffer themselves.
//!
//! Invariant: the file below is in `Lane::state` whenever no thread writes to it; nothing is done
//! to it after a failure. Thread-safety: one thread appends; the lane is shared with the threads
//! that write.

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

/// A file that is written in buffers.
pub(crate) trait BufferedFile: WritableFile {
    /// Adds the first `len` bytes of `buffer`, which may be on their way when this returns; an
    /// error may show in a later call. Gives a buffer that can be filled next, this one or another
    /// of its size.
    fn append_buffer(&mut self, buffer: AlignedBuf, len: usize) -> Result<AlignedBuf> {
        self.append(&buffer.as_slice()[..len])?;
        Ok(buffer)
    }
}

/// An operation on the file below.
#[derive(Debug)]
enum PendingOperation {
    /// Append this many bytes of a buffer.
    Bytes(AlignedBuf, usize),
    Sync,
}

#[derive(Debug)]
struct LaneState {
    /// The file below; `None` while somebody writes to it, and after the end.
    file: Option<Box<dyn BufferedFile>>,
    /// In this order.
    pieces: VecDeque<PendingOperation>,
    free: Vec<AlignedBuf>,
    error: Option<Error>,
    /// Nothing was appended to the file below since it was synced.
    is_synced: bool,
    /// A thread was asked to come, or is here.
    is_called: bool,
}

impl LaneState {
    /// Forgets what was to be done; the buffers are free.
    fn give_up(&mut self) {
        let LaneState { pieces, free, .. } = self;
        free.extend(pieces.drain(..).filter_map(|p| match p {
            PendingOperation::Bytes(buffer, _) => Some(buffer),
            PendingOperation::Sync => None,
        }));
    }
}

/// State that the appending thread and the writing ones share.
#[derive(Debug)]
struct Lane {
    /// Bytes of a request. A buffer may have more.
    size: usize,
    state: Mutex<LaneState>,
    changed: Condvar,
    failed: AtomicBool,
    /// Processor time that other threads spent on the file.
    cpu_ns: AtomicU64,
}

impl Lane {
    /// Does the oldest piece; false when there is none, or somebody else is at work.
    fn do_one(&self, state: &mut MutexGuard<'_, LaneState>) -> bool {
        if state.error.is_some() {
            state.give_up();
        }
        if state.pieces.is_empty() {
            return false;
        }
        let Some(mut file) = state.file.take() else {
            return false;
        };
        let piece = state.pieces.pop_front();
        let (done, is_synced) = MutexGuard::unlocked(state, || match piece {
            Some(PendingOperation::Bytes(buffer, len)) => {
                (file.append_buffer(buffer, len).map(Some), false)
            }
            Some(PendingOperation::Sync) => (file.sync().map(|()| None), true),
            None => (Ok(None), false),
        });
        state.file = Some(file);
        state.is_synced = is_synced && done.is_ok();
        match done {
            Ok(buffer) => state.free.extend(buffer),
            Err(e) => self.fail(state, e),
        }
        self.changed.notify_all();
        true
    }

    /// Remembers the first failure; what was to follow is not written.
    fn fail(&self, state: &mut LaneState, e: Error) {
        state.give_up();
        state.error.get_or_insert(e);
        self.failed.store(true, Ordering::Release);
    }

    /// Waits until everything was written or something failed, lending a hand; the file below is
    /// there then.
    fn drain(&self) -> MutexGuard<'_, LaneState> {
        let mut state = self.state.lock();
        loop {
            if self.do_one(&mut state) {
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
        while self.do_one(&mut state) {}
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
    /// Full buffers are written by the appending thread; only syncs are left to others.
    writes_here: bool,
    closed: bool,
}

impl WriteBehind {
    /// `file`, written in requests of `size` bytes.
    pub(crate) fn new(file: Box<dyn BufferedFile>, queue: &Arc<IoQueue>, size: usize) -> Self {
        let (path, len) = (file.path().to_owned(), file.len());
        let state = LaneState {
            file: Some(file),
            pieces: VecDeque::new(),
            free: Vec::new(),
            error: None,
            is_synced: false,
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
            writes_here: false,
            closed: false,
        }
    }

    /// Lets the appending thread write full buffers: where a write is a copy into the page cache,
    /// another processor would have to be idle to do it sooner.
    pub(crate) fn writing_here(mut self) -> Self {
        self.writes_here = true;
        self
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
    fn told(&self, state: &LaneState) -> Result<()> {
        state.error.clone().map_or(Ok(()), Err)
    }

    /// Gives the buffer away.
    fn hand_over(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            let len = std::mem::take(&mut self.filled);
            let piece = PendingOperation::Bytes(buffer, len);
            if self.writes_here {
                self.lane.state.lock().pieces.push_back(piece);
                drop(self.lane.drain());
            } else {
                self.ask(piece);
            }
        }
    }

    /// Has a piece done, after those before it.
    fn ask(&self, piece: PendingOperation) {
        let mut state = self.lane.state.lock();
        state.pieces.push_back(piece);
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
            // No thread has taken it yet: they are busy with other files.
            if !self.lane.do_one(&mut state) {
                self.lane.changed.wait(&mut state);
            }
        }
    }

    /// Writes what is in the buffer here.
    fn append_rest(&mut self, file: &mut dyn BufferedFile, is_synced: &mut bool) -> Result<()> {
        let filled = std::mem::take(&mut self.filled);
        match &self.buffer {
            Some(buffer) if filled > 0 => {
                *is_synced = false;
                file.append(&buffer.as_slice()[..filled])
            }
            _ => Ok(()),
        }
    }

    /// Waits for everything, writes what is in the buffer, then does `last` to the file below; a
    /// failure stays.
    fn finish(
        &mut self,
        last: impl FnOnce(&mut dyn BufferedFile, &mut bool) -> Result<()>,
    ) -> Result<()> {
        let lane = Arc::clone(&self.lane);
        let mut state = lane.drain();
        self.told(&state)?;
        let Some(mut file) = state.file.take() else {
            return Err(Error::new(ErrorKind::Io, "the file is closed").with_file(&self.path));
        };
        let mut is_synced = state.is_synced;
        let done = MutexGuard::unlocked(&mut state, || {
            self.append_rest(&mut *file, &mut is_synced)?;
            last(&mut *file, &mut is_synced)
        });
        state.file = Some(file);
        state.is_synced = is_synced;
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
                self.check_usable()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.check_usable()?;
        self.finish(|file, _| file.flush())
    }

    fn sync(&mut self) -> Result<()> {
        self.check_usable()?;
        self.finish(|file, is_synced| {
            if !*is_synced {
                file.sync()?;
            }
            *is_synced = true;
            Ok(())
        })
    }

    fn begin_sync(&mut self) -> Result<()> {
        self.check_usable()?;
        if self.filled > 0 {
            self.hand_over();
        }
        self.ask(PendingOperation::Sync);
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn close(&mut self) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        let done = self.finish(|file, _| file.close());
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
        // Dropped without close: an error can no longer be returned.
        let _ = self.close();
    }
}
