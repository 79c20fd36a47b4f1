//! Compression of a table's blocks on several threads (`parallel_threads`).
//!
//! The builder collects blocks into groups, hands these over, and takes them back in the same order
//! before it writes them: the file has the bytes that one thread alone would have written. A
//! builder that has to wait for a group which no thread has begun compresses it itself, so it needs
//! none.
//!
//! Invariants: a group is in one state of [`GroupState`]; groups are taken in the order in which
//! they were handed over. Thread-safety: one builder; each thread has a compressor of its own.

use esker_codec::compress::Compressor;
use esker_env::{Clock, Executor, JoinHandle};
use esker_status::{Error, Result};
use esker_sync::{Arc, Condvar, Mutex, Rank};
use std::collections::VecDeque;

/// Raw bytes of a group.
const GROUP_BYTES: usize = 64 << 10;
/// Groups that wait or are being compressed, for each thread.
const GROUPS_A_THREAD: usize = 2;

/// Threads that compress beside the one that builds.
#[derive(Clone, Debug)]
pub struct CompressionThreads {
    /// Where they come from.
    pub executor: Arc<dyn Executor>,
    /// Tells their processor time.
    pub clock: Arc<dyn Clock>,
    /// How many there are.
    pub threads: usize,
}

/// Blocks in order, and what they are compressed to.
#[derive(Debug, Default)]
pub(super) struct BlockGroup {
    raw: Vec<u8>,
    raw_ends: Vec<usize>,
    stored: Vec<u8>,
    /// Where each block ends in `stored`; one that did not shrink has nothing there.
    stored_ends: Vec<usize>,
}

impl BlockGroup {
    fn compress(&mut self, compressor: &mut Compressor) -> Result<()> {
        let (mut begin, mut block) = (0, Vec::new());
        for end in &self.raw_ends {
            if compressor.compress(&self.raw[begin..*end], &mut block)? {
                self.stored.extend_from_slice(&block);
            }
            self.stored_ends.push(self.stored.len());
            begin = *end;
        }
        Ok(())
    }

    /// The blocks: raw, and compressed where that paid.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let (mut raw, mut stored) = (0, 0);
        self.raw_ends
            .iter()
            .zip(&self.stored_ends)
            .map(move |(raw_end, stored_end)| {
                let (from, at) = (std::mem::replace(&mut raw, *raw_end), stored);
                stored = *stored_end;
                let shrunk = (*stored_end > at).then(|| &self.stored[at..*stored_end]);
                (&self.raw[from..*raw_end], shrunk)
            })
    }
}

#[derive(Debug)]
enum GroupState {
    Waits(BlockGroup),
    /// A thread has it.
    Begun,
    Ended(Result<BlockGroup>),
}

#[derive(Debug, Default)]
struct Queue {
    groups: VecDeque<GroupState>,
    /// The number of the first of them, in the order of all.
    first: usize,
    is_closed: bool,
    cpu_ns: u64,
}

impl Queue {
    /// The first group that nobody has begun; none when nobody wants them any more.
    fn begin(&mut self) -> Option<(usize, BlockGroup)> {
        if self.is_closed {
            return None;
        }
        let at = self
            .groups
            .iter()
            .position(|g| matches!(g, GroupState::Waits(_)))?;
        match std::mem::replace(&mut self.groups[at], GroupState::Begun) {
            GroupState::Waits(group) => Some((self.first + at, group)),
            _ => None,
        }
    }

    fn end(&mut self, number: usize, result: Result<BlockGroup>) {
        if let Some(group) = number
            .checked_sub(self.first)
            .and_then(|at| self.groups.get_mut(at))
        {
            *group = GroupState::Ended(result);
        }
    }
}

#[derive(Debug)]
struct SharedQueue {
    queue: Mutex<Queue>,
    /// A group waits, or none will come.
    offered: Condvar,
    /// A group was compressed.
    ended: Condvar,
}

/// Gives back a group whose thread panicked.
struct GroupGuard<'q> {
    shared: &'q SharedQueue,
    number: usize,
    result: Result<BlockGroup>,
}

impl Drop for GroupGuard<'_> {
    fn drop(&mut self) {
        let lost = Err(Error::aborted("a thread that compressed blocks was lost"));
        let result = std::mem::replace(&mut self.result, lost);
        self.shared.queue.lock().end(self.number, result);
        self.shared.ended.notify_all();
    }
}

impl SharedQueue {
    fn run(&self, mut compressor: Compressor, clock: &dyn Clock) {
        let begun_ns = clock.thread_cpu_ns();
        loop {
            let mut queue = self.queue.lock();
            let (number, mut group) = loop {
                if let Some(next) = queue.begin() {
                    break next;
                }
                if queue.is_closed {
                    queue.cpu_ns += clock.thread_cpu_ns().saturating_sub(begun_ns);
                    return;
                }
                self.offered.wait(&mut queue);
            };
            drop(queue);
            let mut begun = GroupGuard {
                shared: self,
                number,
                result: Err(Error::aborted("a thread that compressed blocks was lost")),
            };
            begun.result = group.compress(&mut compressor).map(|()| group);
        }
    }
}

/// The groups of one builder.
pub(super) struct ParallelCompression {
    shared: Arc<SharedQueue>,
    filling: BlockGroup,
    /// Raw bytes that were not taken back.
    pending: usize,
    most: usize,
    threads: Vec<Box<dyn JoinHandle>>,
}

impl ParallelCompression {
    /// Starts the threads; `compressor` makes one for each.
    pub(super) fn start(
        how: &CompressionThreads,
        compressor: impl Fn() -> Result<Compressor>,
    ) -> Result<Self> {
        let shared = Arc::new(SharedQueue {
            queue: Mutex::new(Rank::LEAF, Queue::default()),
            offered: Condvar::new(),
            ended: Condvar::new(),
        });
        let mut started = ParallelCompression {
            most: GROUPS_A_THREAD * (how.threads + 1),
            shared,
            filling: BlockGroup::default(),
            pending: 0,
            threads: Vec::with_capacity(how.threads),
        };
        for _ in 0..how.threads {
            let (shared, clock) = (Arc::clone(&started.shared), Arc::clone(&how.clock));
            let own = compressor()?;
            let body = Box::new(move || shared.run(own, &*clock));
            // The builder does without.
            started
                .threads
                .extend(how.executor.spawn_patient("esker-compress", body).ok());
        }
        Ok(started)
    }

    /// Adds a block. Returns whether there are so many that the builder has to take some back.
    pub(super) fn push(&mut self, raw: &[u8]) -> bool {
        self.filling.raw.extend_from_slice(raw);
        self.filling.raw_ends.push(self.filling.raw.len());
        self.pending += raw.len();
        if self.filling.raw.len() >= GROUP_BYTES {
            self.offer();
        }
        self.shared.queue.lock().groups.len() >= self.most
    }

    fn offer(&mut self) {
        let group = std::mem::take(&mut self.filling);
        self.shared
            .queue
            .lock()
            .groups
            .push_back(GroupState::Waits(group));
        self.shared.offered.notify_one();
    }

    /// The oldest group, compressed; waits for it. None when nothing is left of what was offered.
    pub(super) fn take(&mut self, own: &mut Compressor) -> Option<Result<BlockGroup>> {
        let mut queue = self.shared.queue.lock();
        loop {
            match queue.groups.front()? {
                GroupState::Ended(_) => {
                    queue.first += 1;
                    let GroupState::Ended(result) = queue.groups.pop_front()? else {
                        return None;
                    };
                    if let Ok(group) = &result {
                        self.pending -= group.raw.len();
                    }
                    return Some(result);
                }
                GroupState::Begun => self.shared.ended.wait(&mut queue),
                GroupState::Waits(_) => {
                    let (number, mut group) = queue.begin()?;
                    drop(queue);
                    let result = group.compress(own).map(|()| group);
                    queue = self.shared.queue.lock();
                    queue.end(number, result);
                }
            }
        }
    }

    /// Offers what is left, after the last block.
    pub(super) fn offer_rest(&mut self) {
        if !self.filling.raw_ends.is_empty() {
            self.offer();
        }
    }

    /// Raw bytes of blocks that were not taken back.
    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// Ends the threads; returns the processor time that they took.
    pub(super) fn end(mut self) -> u64 {
        self.close();
        self.shared.queue.lock().cpu_ns
    }

    fn close(&mut self) {
        self.shared.queue.lock().is_closed = true;
        self.shared.offered.notify_all();
        self.threads.drain(..).for_each(|thread| thread.join());
    }
}

impl Drop for ParallelCompression {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for ParallelCompression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParallelCompression")
            .field("threads", &self.threads.len())
            .field("pending", &self.pending)
            .finish_non_exhaustive()
    }
}
