//! An io_uring: reads and writes that the kernel carries out while the thread that wants them does
//! something else.
//!
//! **Whose memory it is.** The kernel reads and writes a buffer until the request is completed,
//! whatever became of the caller. So buffer and file of a request belong to the ring, in a slot,
//! from before the kernel hears of them until their completion was taken from the queue, and there
//! is no reference into the buffer meanwhile. The caller holds a [`PendingRequest`], which is the
//! number of the slot. One that is dropped waits for the kernel: requests are single ones to a
//! device, and what was done by then is all over, files closed and memory free. One that is
//! forgotten keeps its slot, its memory and the ring for good. Memory whose completion can never be
//! seen is given up, not freed.
//!
//! **Who takes completions.** The thread that waits: one at a time sleeps in the kernel for the
//! next completion, hands those of others out and leaves that duty to one of them when its own is
//! there. So a ring needs no thread. As long as one sleeps no other may take completions, or it
//! could sleep for one that is gone.
//!
//! **Rejected.** *A ring for each thread*: the kernel could leave completions to the next call,
//! but files move between threads. *Syncs through the ring*: the kernel gives each to a worker of
//! its own, and a file has to be cut before it: that is what a thread of the pool does. *Writes
//! through the page cache*: those, too, are given to such workers, one after the other. *A thread
//! that polls*: on a machine without a processor to spare it takes what it saves.
//!
//! **What is not the file's fault.** A request that was interrupted, that there were no resources
//! for, or that the kernel gave up since the thread that asked has ended, is
//! [`Completion::Undone`]: its owner makes the call itself. A ring without a free slot gives a
//! request back for the same.
//!
//! **What the kernel refuses.** A request that is begun was taken by the kernel: whoever begins it
//! offers it until then, one at a time, as the kernel would take them anyway. After [`TRIES`] in
//! vain the ring is asked for nothing new ever again, since what lies in the submission queue
//! cannot be taken out, and the request comes back. What the kernel has is still waited for. Its
//! completion comes without being asked for, so a wait that is refused looks again after a pause.
//!
//! **How many.** One for each filesystem value and what was cloned from it, made with the first
//! request that goes to one: a database with its own environment has its own ring (a descriptor and
//! a few pages), databases that share an environment share it, and hand each other's completions
//! out as threads do.
//!
//! **Other processes.** After a `fork` the child has the same ring as its parent, and would take
//! its parent's completions. So a ring knows its process and does nothing in another.
//!
//! Invariant: the submission queue is empty but while one is offered, or after a refusal. The
//! completion queue has twice as many entries as there are slots and does not overflow.
//! Thread-safety: shared by all; the lock of the slots is a leaf and is not held over system calls,
//! that of the submission queue is held while a request is offered.

pub(crate) use super::request::{Completion, Request, Transfer};

use crate::aligned::AlignedBuf;
use esker_sync::{Condvar, Mutex, MutexGuard, Rank};
use io_uring::{IoUring, Probe, opcode, squeue, types};
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Requests that a ring has under way at most: far more than jobs have at once.
const SLOTS: u32 = 64;
/// `IORING_ENTER_GETEVENTS`: wait.
const GETEVENTS: u32 = 1;
/// How often a request is offered.
const TRIES: u32 = 16;
/// Before a wait that was refused looks again; offers wait a multiple, 12 ms in all.
const PAUSE: Duration = Duration::from_micros(100);
const SUBMISSION: Rank = Rank::new(u16::MAX - 1, "submission");

impl Completion {
    fn from_result(result: i32) -> Completion {
        if let Ok(moved) = usize::try_from(result) {
            return Completion::Moved(moved);
        }
        match Errno::from_raw_os_error(-result) {
            Errno::INTR | Errno::AGAIN | Errno::NOMEM | Errno::CANCELED => Completion::Undone,
            e => Completion::Failed(e),
        }
    }
}

#[derive(Debug)]
enum Slot {
    Free,
    /// The kernel's.
    InKernel(Request),
    Completed(Request, Completion),
}

struct RingState {
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// A thread sleeps in the kernel: no other takes completions.
    is_watched: bool,
    /// How many wait for that one.
    waiting: usize,
    /// The kernel refuses to be asked: what is under way is never heard of again.
    is_dead: bool,
}

/// A ring.
pub(crate) struct Ring {
    uring: IoUring,
    process: u32,
    /// The holder owns the submission queue.
    submission: Mutex<()>,
    /// Why nothing new is asked for.
    refusal: OnceLock<Errno>,
    state: Mutex<RingState>,
    completed: Condvar,
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").finish_non_exhaustive()
    }
}

impl Ring {
    /// A ring that was seen to work. The error says why there is none: a kernel without it or one
    /// that forbids it.
    pub(crate) fn new() -> io::Result<Arc<Ring>> {
        let uring = IoUring::new(SLOTS)?;
        let mut probe = Probe::new();
        uring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Read::CODE) || !probe.is_supported(opcode::Write::CODE) {
            return Err(Errno::NOSYS.into());
        }
        let ring = Ring::over(uring);
        // A filter of system calls may allow one of them and forbid the next.
        ring.offer(0)?;
        Ok(Arc::new(ring))
    }

    fn over(uring: IoUring) -> Ring {
        let count = SLOTS as usize;
        let state = RingState {
            slots: (0..count).map(|_| Slot::Free).collect(),
            free: (0..count).rev().collect(),
            is_watched: false,
            waiting: 0,
            is_dead: false,
        };
        Ring {
            uring,
            process: std::process::id(),
            submission: Mutex::new(SUBMISSION, ()),
            refusal: OnceLock::new(),
            state: Mutex::new(Rank::LEAF, state),
            completed: Condvar::new(),
        }
    }

    /// Why it takes no requests any more.
    pub(crate) fn refusal(&self) -> Option<Errno> {
        self.refusal.get().copied()
    }

    /// Has the kernel begin. A request that the ring cannot take now, or not any more, comes back.
    pub(crate) fn begin(self: &Arc<Self>, request: Request) -> Result<PendingRequest, Request> {
        if !self.is_own() || request.len > request.buffer.len() {
            return Err(request);
        }
        let _submission = self.submission.lock();
        if self.refusal().is_some() {
            return Err(request);
        }
        let (slot, entry) = self.occupy(request)?;
        // SAFETY: only the holder of the lock has the queue. Buffer and file of the entry are in a
        // slot, where nothing touches them until the kernel is done with them, or has refused them
        // and is never offered anything again.
        let pushed = unsafe { self.uring.submission_shared().push(&entry) };
        let taken = pushed.map_err(|_| Errno::NOBUFS);
        if let Err(e) = taken.and_then(|()| self.offer(1)) {
            let _ = self.refusal.set(e);
            self.take_back(slot)?;
        }
        Ok(PendingRequest {
            ring: Arc::clone(self),
            slot: Some(slot),
        })
    }

    fn is_own(&self) -> bool {
        std::process::id() == self.process
    }

    /// Puts a request into a slot.
    fn occupy(&self, mut request: Request) -> Result<(usize, squeue::Entry), Request> {
        let mut state = self.state.lock();
        let Some(at) = state.free.pop() else {
            return Err(request);
        };
        let entry = entry_for(&mut request).user_data(at as u64);
        state.slots[at] = Slot::InKernel(request);
        Ok((at, entry))
    }

    /// Takes a request that the kernel does not have out of its slot.
    #[cold]
    fn take_back(&self, at: usize) -> Result<(), Request> {
        let mut state = self.state.lock();
        match std::mem::replace(&mut state.slots[at], Slot::Free) {
            Slot::InKernel(request) => {
                state.free.push(at);
                Err(request)
            }
            completed => {
                state.slots[at] = completed;
                Ok(())
            }
        }
    }

    /// Offers the kernel this many requests, which are all that the submission queue holds, until
    /// it takes them. Its error is why it did not.
    fn offer(&self, offered: u32) -> Result<(), Errno> {
        let mut refused = Errno::AGAIN;
        for tried in 0..TRIES {
            let entered = self.enter(offered, 0);
            // SAFETY: only the holder of the lock has the queue.
            let is_empty = unsafe { self.uring.submission_shared().is_empty() };
            if is_empty && (offered > 0 || entered.is_ok()) {
                return Ok(());
            }
            refused = entered.err().unwrap_or(refused);
            // It may want the completions to be taken first.
            let mut state = self.state.lock();
            if !state.is_watched {
                self.reap(&mut state);
            }
            drop(state);
            std::thread::sleep(PAUSE * tried);
        }
        Err(refused)
    }

    /// Offers the kernel this many requests of the submission queue, and waits until this many
    /// completions are there.
    fn enter(&self, offered: u32, wanted: u32) -> Result<(), Errno> {
        let how = match wanted {
            0 => 0,
            _ => GETEVENTS,
        };
        // SAFETY: no argument is passed, and what the queue holds belongs to slots.
        let entered = unsafe {
            let submitter = self.uring.submitter();
            submitter.enter::<libc::sigset_t>(offered, wanted, how, None)
        };
        match entered {
            Ok(_) => Ok(()),
            Err(e) => Err(Errno::from_io_error(&e).unwrap_or(Errno::IO)),
        }
    }

    /// Takes the completions that are there. Only while no thread sleeps for them.
    fn reap(&self, state: &mut RingState) {
        // SAFETY: only the holder of the lock has the queue.
        let completions = unsafe { self.uring.completion_shared() };
        for completion in completions {
            let Ok(at) = usize::try_from(completion.user_data()) else {
                continue;
            };
            let Some(slot) = state.slots.get_mut(at) else {
                continue;
            };
            if let Slot::InKernel(request) = std::mem::replace(slot, Slot::Free) {
                *slot = Slot::Completed(request, Completion::from_result(completion.result()));
            }
        }
    }

    /// Waits for the request in a slot; `None` when it can never be known how it ended.
    fn land(&self, at: usize) -> Option<(Request, Completion)> {
        if !self.is_own() {
            return None;
        }
        let mut state = self.state.lock();
        loop {
            if !state.is_watched {
                self.reap(&mut state);
            }
            if matches!(state.slots[at], Slot::Completed(..)) {
                break;
            }
            if state.is_dead {
                return None;
            }
            if !state.is_watched {
                self.watch(&mut state);
            } else {
                state.waiting += 1;
                self.completed.wait(&mut state);
                state.waiting -= 1;
            }
        }
        let Slot::Completed(request, how) = std::mem::replace(&mut state.slots[at], Slot::Free)
        else {
            return None;
        };
        state.free.push(at);
        Some((request, how))
    }

    /// Sleeps in the kernel for the next completion, and tells those who wait that they should
    /// look.
    fn watch(&self, state: &mut MutexGuard<'_, RingState>) {
        state.is_watched = true;
        let entered = MutexGuard::unlocked(state, || self.enter_or_pause());
        state.is_watched = false;
        if let Err(e) = entered {
            let _ = self.refusal.set(e);
            state.is_dead = true;
        }
        if state.waiting > 0 {
            self.completed.notify_all();
        }
    }

    /// Waits for a completion, or for a moment where the kernel cannot wait now.
    fn enter_or_pause(&self) -> Result<(), Errno> {
        match self.enter(0, 1) {
            Err(Errno::INTR | Errno::AGAIN | Errno::BUSY | Errno::NOMEM) => {
                std::thread::sleep(PAUSE);
                Ok(())
            }
            other => other,
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for slot in &mut self.state.get_mut().slots {
            // Only a ring that died has any: the kernel may still be at it.
            if let Slot::InKernel(request) = std::mem::replace(slot, Slot::Free) {
                std::mem::forget(request);
            }
        }
    }
}

/// Returns the submission entry of a request.
fn entry_for(request: &mut Request) -> squeue::Entry {
    let file = types::Fd(request.file.as_raw_fd());
    let len = u32::try_from(request.len).unwrap_or(u32::MAX);
    let place = request.buffer.as_mut_slice().as_mut_ptr();
    match request.transfer {
        Transfer::Read => opcode::Read::new(file, place, len)
            .offset(request.offset)
            .build(),
        Transfer::Write => opcode::Write::new(file, place, len)
            .offset(request.offset)
            .build(),
    }
}

/// A request that was begun.
pub(crate) struct PendingRequest {
    ring: Arc<Ring>,
    /// Until it was waited for.
    slot: Option<usize>,
}

impl fmt::Debug for PendingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRequest")
            .field("slot", &self.slot)
            .finish()
    }
}

impl PendingRequest {
    /// Waits for it: the buffer comes back, but from a ring that does not work any more.
    pub(crate) fn wait(mut self) -> Option<(AlignedBuf, Completion)> {
        let slot = self.slot.take()?;
        let (request, how) = self.ring.land(slot)?;
        Some((request.buffer, how))
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            drop(self.ring.land(slot));
        }
    }
}

#[cfg(test)]
mod tests;
