//! The queue of writers and the log lock: who leads, which batches form a group, and in which order
//! a group is logged, synced, inserted and published.
//!
//! A writer that finds the log lock taken leaves its batch in the queue. The next holder of the
//! lock takes what waits as one group: a writer that comes along, one that was called, or the last
//! leader, which serves the queue when it is done with its own group. So a writer sleeps at most
//! once for a write, and is woken when that is done. The mechanism is [`esker_sync::handover`].
//!
//! Invariant: whoever releases the log lock calls the front of the queue, or has a
//! [`LeaderHandover`] to. Thread-safety: everything may be called by any thread.

use super::contention::WriterContention;
use super::group::{Follower, Member, Outcome, WriteGroup, WriteJob};
use super::insertion::Insertion;
use super::perf_timing;
use super::sequence::Sequence;
use super::{GroupRecord, NextGroup, WriteEnv, WriteGate};
use crate::family::backpressure::admission::would_wait;
use crate::family::backpressure::batch_families::BatchFamilies;
use crate::family::backpressure::stall_tracker::StallGuard;
use crate::observe::PerfMetric;
use crate::options::WriteOptions;
use crate::ranks;
use esker_env::Clock;
use esker_format::batch::{WriteBatch, encode_header};
use esker_status::seeded::{Bug, seeded};
use esker_status::{ErrorKind, Result};
use esker_sync::atomic::{AtomicBool, Ordering};
use esker_sync::handover::{WaitOutcome, WaitQueue};
use esker_sync::{Arc, Mutex, MutexGuard, thread};

/// How often a writer in the queue looks for its turn before it sleeps, when its leader runs:
/// about as long as a small group takes.
const QUEUE_SPINS: u32 = 100;

/// How often a leader looks whether its group is visible before it sleeps.
const PUBLISH_SPINS: u32 = 64;

/// Groups that a leader takes from the queue after its own; then a waiting writer is woken to
/// lead.
const SERVED_GROUPS: usize = 8;

/// The outcome of a leader's turn.
enum LeaderOutcome<O> {
    /// Its group is logged, its own batch first.
    Logged(WriteGroup),
    /// Nothing was done.
    Wait(O),
}

/// The log lock with `L` under it, and the writers that wait for it.
#[derive(Debug)]
pub(crate) struct WriteQueue<L> {
    log: Mutex<L>,
    waiting: WaitQueue<WriteJob>,
    pub(super) sequence: Arc<Sequence>,
    /// The log is being synced: a writer that queues may sleep at once.
    is_syncing: AtomicBool,
    contention: WriterContention,
    /// Most bytes that a leader takes from the queue in one group.
    group_bytes_max: usize,
    clock: Arc<dyn Clock>,
}

/// The log lock. Dropping it calls the writer at the front of the queue.
#[derive(Debug)]
pub(crate) struct LogGuard<'a, L> {
    queue: &'a WriteQueue<L>,
    state: Option<MutexGuard<'a, L>>,
}

impl<L> std::ops::Deref for LogGuard<'_, L> {
    type Target = L;
    fn deref(&self) -> &L {
        self.state.as_ref().expect("present until drop")
    }
}

impl<L> std::ops::DerefMut for LogGuard<'_, L> {
    fn deref_mut(&mut self) -> &mut L {
        self.state.as_mut().expect("present until drop")
    }
}

impl<L> Drop for LogGuard<'_, L> {
    #[inline]
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            drop(state);
            self.queue.waiting.call_front(!seeded(Bug::QueueLeftAlone));
        }
    }
}

impl<'a, L> LogGuard<'a, L> {
    /// Lets the next leader have the log: one that is awake, or one that sleeps when this one will
    /// be busy for long.
    #[inline]
    pub(super) fn release(mut self, for_long: bool) -> LeaderHandover<'a, L> {
        drop(self.state.take());
        self.queue.waiting.call_front(for_long);
        LeaderHandover(Some(self.queue))
    }

    /// Runs `wait` without the lock.
    #[cold]
    fn unlocked(&mut self, wait: impl FnOnce()) {
        let state = self.state.as_mut().expect("present until drop");
        MutexGuard::unlocked(state, || {
            // Others may have nothing to wait for.
            self.queue.waiting.call_front(true);
            wait();
        });
    }
}

/// The duty of a leader that has released the log lock: those that queue get a leader.
#[derive(Debug)]
pub(super) struct LeaderHandover<'a, L>(Option<&'a WriteQueue<L>>);

impl<L> LeaderHandover<'_, L> {
    fn fulfil(mut self) {
        self.0 = None;
    }
}

impl<L> Drop for LeaderHandover<'_, L> {
    #[inline]
    fn drop(&mut self) {
        if let Some(queue) = self.0
            && !seeded(Bug::QueueLeftAlone)
        {
            queue.waiting.call_front(true);
        }
    }
}

impl<L> WriteQueue<L> {
    pub(crate) fn new(
        log: L,
        sequence: Arc<Sequence>,
        clock: Arc<dyn Clock>,
        group_bytes_max: usize,
    ) -> Self {
        WriteQueue {
            log: Mutex::new(ranks::LOG, log),
            waiting: WaitQueue::new(ranks::WRITE_QUEUE),
            sequence,
            is_syncing: AtomicBool::new(false),
            contention: WriterContention::new(),
            group_bytes_max,
            clock,
        }
    }

    /// Takes the log lock: for administration that must not run beside a leader.
    pub(crate) fn lock(&self) -> LogGuard<'_, L> {
        LogGuard {
            queue: self,
            state: Some(self.log.lock()),
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<LogGuard<'_, L>> {
        Some(LogGuard {
            queue: self,
            state: Some(self.log.try_lock()?),
        })
    }

    /// At the end of a write: yields when the thread has run for long beside many.
    #[inline]
    pub(super) fn share_processor(&self) {
        self.contention.share_processor(&*self.clock);
    }

    /// Writes a batch that was admitted. Returns `held` when one of its families was closed
    /// meanwhile: the batch is to be admitted again, so that those behind need not wait.
    pub(super) fn write<'h, E: WriteGate<Log = L>>(
        &self,
        env: &E,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        touched: BatchFamilies,
        mut held: StallGuard<'h>,
    ) -> Result<Option<StallGuard<'h>>> {
        let Some(mut log) = self.try_lock() else {
            return self.follow(env, options, batch, touched, held);
        };
        let group = loop {
            match self.lead(env, &mut log, options, Some((&mut *batch, touched)))? {
                LeaderOutcome::Logged(group) => break group,
                LeaderOutcome::Wait(obstacle) => {
                    log.unlocked(|| env.wait(&obstacle, false, &mut held))
                }
            }
        };
        let duty = log.release(group.is_long());
        drop(held);
        self.complete(env, group, Some(batch), duty).map(|()| None)
    }

    /// Takes the log lock for a write past the queue, when nothing stands in the way of `batch`.
    pub(super) fn lock_to_write<E: WriteGate<Log = L>>(
        &self,
        env: &E,
        options: &WriteOptions,
        batch: &WriteBatch,
        touched: BatchFamilies,
        held: &mut StallGuard<'_>,
    ) -> Result<LogGuard<'_, L>> {
        let mut log = self.lock();
        let own = Some((batch, touched));
        while let Some(obstacle) = env.make_room(&mut log, &NextGroup { options, own })? {
            log.unlocked(|| env.wait(&obstacle, false, held));
        }
        Ok(log)
    }

    /// Writes a batch from the queue, with the group of any leader.
    fn follow<'h, E: WriteGate<Log = L>>(
        &self,
        env: &E,
        options: &WriteOptions,
        batch: &mut WriteBatch,
        touched: BatchFamilies,
        mut held: StallGuard<'h>,
    ) -> Result<Option<StallGuard<'h>>> {
        self.contention.note_wait(self.clock.now_ns());
        let follower = self.waiting.push(WriteJob {
            batch: Some(std::mem::take(batch)),
            touched,
            options: *options,
            ..WriteJob::default()
        });
        self.wait_for_turn(env, &follower, options, &mut held);
        let (own, outcome) =
            follower.with_job(|job| (job.batch.take(), std::mem::take(&mut job.outcome)));
        if let Some(own) = own {
            *batch = own;
        }
        match outcome {
            Outcome::Aside => Ok(Some(held)),
            Outcome::Failed(e) => Err(e),
            Outcome::Written | Outcome::Pending => Ok(None),
        }
    }

    /// Waits until the batch in the queue is dealt with, by this writer perhaps.
    fn wait_for_turn<E: WriteGate<Log = L>>(
        &self,
        env: &E,
        follower: &Arc<Follower>,
        options: &WriteOptions,
        held: &mut StallGuard<'_>,
    ) {
        loop {
            let mut log = match self.wait_in_queue(env, follower, held) {
                WaitOutcome::Done => return,
                WaitOutcome::Work => {
                    self.insertion(env).work(follower);
                    continue;
                }
                WaitOutcome::Lead(log) => log,
            };
            // A failure is told to the followers of the group, this one among them when it was in
            // it. That this writer does not want to wait is no failure of the others.
            match self.lead(env, &mut log, options, None) {
                Ok(LeaderOutcome::Logged(group)) => {
                    let duty = log.release(group.is_long());
                    // What failed is told to the followers, this one among them.
                    let _told = self.complete(env, group, None, duty);
                }
                Ok(LeaderOutcome::Wait(obstacle)) => {
                    // Another leader may take the batch meanwhile, so this thread must not stand in
                    // line for the lock.
                    drop(log);
                    env.wait(&obstacle, true, held);
                }
                Err(e) if e.kind() == ErrorKind::Incomplete && self.waiting.remove(follower) => {
                    follower.with_job(|job| job.outcome = Outcome::Failed(e));
                    follower.finish();
                }
                Err(_) => {}
            }
        }
    }

    /// Waits for its turn. While administration stops writers it may have the log lock: that too is
    /// being held back.
    fn wait_in_queue<E: WriteGate<Log = L>>(
        &self,
        env: &E,
        follower: &Follower,
        held: &mut StallGuard<'_>,
    ) -> WaitOutcome<LogGuard<'_, L>> {
        let wait = || {
            let spins = if self.is_leader_awake() {
                QUEUE_SPINS
            } else {
                0
            };
            follower.wait(spins, || self.try_lock())
        };
        if let Some(reason) = env.holds_all() {
            return held.during(reason, wait);
        }
        let _timed = perf_timing::wait(PerfMetric::WriteThreadWaitNanos, &*self.clock);
        wait()
    }

    /// Returns whether the leader is likely to run on another processor, so that its group ends
    /// soon. A crowd shares the processors: a spin would take them from the leader.
    fn is_leader_awake(&self) -> bool {
        thread::parallelism() >= 2
            && !self.is_syncing.load(Ordering::Relaxed)
            && !self.contention.is_crowded()
    }

    /// Logs one group: the leader's batch (when it is not in the queue) and the batches that fit
    /// beside it. When it fails the followers of the group are told.
    fn lead<E: WriteGate<Log = L>>(
        &self,
        env: &E,
        log: &mut LogGuard<'_, L>,
        options: &WriteOptions,
        own: Option<(&mut WriteBatch, BatchFamilies)>,
    ) -> Result<LeaderOutcome<E::Obstacle>> {
        let looked_at = own.as_ref().map(|(b, touched)| (&**b, *touched));
        let next = NextGroup {
            options,
            own: looked_at,
        };
        match env.make_room(log, &next) {
            Ok(None) => {}
            Ok(Some(obstacle)) => {
                if own.is_none() {
                    self.turn_away();
                }
                return Ok(LeaderOutcome::Wait(obstacle));
            }
            Err(e) if e.kind() == ErrorKind::Incomplete => return Err(e),
            Err(e) => {
                let own_bytes = own.as_ref().map_or(0, |(b, _)| b.data_size());
                let disable_wal = own.as_ref().map(|_| options.disable_wal);
                let (followers, _) = self.take_group(env, disable_wal, own_bytes);
                for follower in followers {
                    follower.with_job(|job| job.outcome = Outcome::Failed(e.clone()));
                    follower.finish();
                }
                return Err(e);
            }
        }
        let own = own.map(|(batch, _)| batch);
        self.log_group(env, log, options, own)
            .map(LeaderOutcome::Logged)
    }

    /// All writers have to wait: those in the queue that do not want to are told. They would sleep
    /// behind a leader that waits.
    #[cold]
    fn turn_away(&self) {
        for follower in self.waiting.retain(|job| !job.options.no_slowdown) {
            follower.with_job(|job| job.outcome = Outcome::Failed(would_wait()));
            follower.finish();
        }
    }

    /// Takes and logs one group, when nothing stands in the way of writing.
    pub(super) fn log_group<E: WriteGate<Log = L>>(
        &self,
        env: &E,
        log: &mut LogGuard<'_, L>,
        options: &WriteOptions,
        own: Option<&mut WriteBatch>,
    ) -> Result<WriteGroup> {
        let own_bytes = own.as_ref().map_or(0, |b| b.data_size());
        let own_wish = own.as_ref().map(|_| options.disable_wal);
        let (followers, disable_wal) = self.take_group(env, own_wish, own_bytes);
        let own_count = own.as_ref().map_or(0, |b| u64::from(b.count()));
        let first = self.sequence.allocate(own_count);
        let mut group = WriteGroup::new(first, own_count, Vec::new());
        let logged = match own {
            Some(batch) if followers.is_empty() => {
                batch.set_seq(first);
                group.is_synced = options.sync;
                let record = GroupRecord {
                    parts: &[batch.data()],
                    disable_wal,
                    writes: 1,
                    keys: own_count,
                    bytes: own_bytes as u64,
                };
                self.append(env, log, &record, options.sync)
            }
            // All have stepped aside, the leader among them.
            None if followers.is_empty() => return Ok(group),
            own => {
                let sync = own.is_some() && options.sync;
                group.is_synced = self.gather(&mut group, followers) || sync;
                self.append_many(env, log, disable_wal, own, &group)
            }
        };
        if let Err(e) = logged {
            // Its sequence numbers pass unused, so that no writer waits for them.
            for member in &mut group.members {
                member.error = Some(e.clone());
            }
            self.sequence.publish_group(group, false);
            return Err(e);
        }
        Ok(group)
    }

    /// The queued batches that go with a leader's batch of `own_bytes`, and whether the group skips
    /// the log. Without a leader's batch (`None`) the front of the queue decides.
    fn take_group<E: WriteGate<Log = L>>(
        &self,
        env: &E,
        disable_wal: Option<bool>,
        own_bytes: usize,
    ) -> (Vec<Arc<Follower>>, bool) {
        if self.waiting.is_empty() {
            return (Vec::new(), disable_wal.unwrap_or(false));
        }
        if env.holds_any() {
            for follower in self.waiting.retain(|job| !env.holds(job)) {
                follower.with_job(|job| job.outcome = Outcome::Aside);
                follower.finish();
            }
        }
        // A small leader's batch is not held up by a large group.
        let most = self.group_bytes_max;
        let limit = if own_bytes <= most / 8 {
            own_bytes + most / 8
        } else {
            most
        };
        let mut bytes = own_bytes;
        let mut group = disable_wal;
        let followers = self.waiting.take_while(|job| {
            bytes += job.bytes();
            let skips = *group.get_or_insert(job.options.disable_wal);
            (bytes <= limit || bytes == job.bytes()) && job.options.disable_wal == skips
        });
        (followers, group.unwrap_or(false))
    }

    /// Makes followers members of a group, each with its sequence numbers. Whether one of them
    /// wants a sync.
    fn gather(&self, group: &mut WriteGroup, followers: Vec<Arc<Follower>>) -> bool {
        let mut sync = false;
        group.members.reserve_exact(followers.len());
        for follower in followers {
            let mut batch = follower.with_job(|job| {
                sync |= job.options.sync;
                job.batch.take()
            });
            let count = batch.as_ref().map_or(0, |b| u64::from(b.count()));
            let first = self.sequence.allocate(count);
            if let Some(batch) = &mut batch {
                batch.set_seq(first);
            }
            group.count += count;
            group.members.push(Member {
                follower,
                batch,
                first,
                error: None,
            });
        }
        sync
    }

    /// Logs one record that holds every batch of the group.
    fn append_many<E: WriteEnv<Log = L>>(
        &self,
        env: &E,
        log: &mut LogGuard<'_, L>,
        disable_wal: bool,
        own: Option<&mut WriteBatch>,
        group: &WriteGroup,
    ) -> Result<()> {
        let own = own.map(|batch| {
            batch.set_seq(group.first);
            &*batch
        });
        // A batch counts its records in 32 bits, and so does a group: its bytes are limited.
        let header = encode_header(group.first, u32::try_from(group.count).unwrap_or(u32::MAX));
        let mut parts: Vec<&[u8]> = Vec::with_capacity(group.members.len() + 2);
        parts.push(&header);
        let members = group.members.iter().filter_map(|m| m.batch.as_ref());
        let mut bytes = 0;
        for batch in own.into_iter().chain(members) {
            parts.push(batch.body());
            bytes += batch.data_size() as u64;
        }
        let record = GroupRecord {
            writes: parts.len() as u64 - 1,
            parts: &parts,
            disable_wal,
            keys: group.count,
            bytes,
        };
        self.append(env, log, &record, group.is_synced)
    }

    #[inline]
    fn append<E: WriteEnv<Log = L>>(
        &self,
        env: &E,
        log: &mut LogGuard<'_, L>,
        record: &GroupRecord<'_>,
        sync: bool,
    ) -> Result<()> {
        env.write(log, record)?;
        if sync { self.sync(env, log) } else { Ok(()) }
    }

    /// Syncs the log; writers that queue meanwhile sleep at once.
    pub(super) fn sync<E: WriteEnv<Log = L>>(
        &self,
        env: &E,
        log: &mut LogGuard<'_, L>,
    ) -> Result<()> {
        self.is_syncing.store(true, Ordering::Relaxed);
        let synced = env.sync(log);
        self.is_syncing.store(false, Ordering::Relaxed);
        synced
    }

    #[inline]
    fn insertion<'a, E: WriteEnv>(&'a self, env: &'a E) -> Insertion<'a, E> {
        Insertion {
            env,
            sequence: &self.sequence,
        }
    }

    /// Inserts a logged group with the leader's `own` batch, and makes it visible; the log lock is
    /// free. What a leader owes those that queue is done before it waits for anything.
    #[inline]
    pub(super) fn complete<E: WriteGate<Log = L>>(
        &self,
        env: &E,
        group: WriteGroup,
        own: Option<&WriteBatch>,
        duty: LeaderHandover<'_, L>,
    ) -> Result<()> {
        let mut done = Ok(());
        let waits_for = if group.members.is_empty() {
            let early = seeded(Bug::PublishBeforeInsert) && self.sequence.try_publish_group(&group);
            if let Some(batch) = own {
                done = env.apply(batch, group.first);
            }
            if early || self.sequence.try_publish_group(&group) {
                self.sequence.tell_ready();
                None
            } else {
                self.sequence.leave_group(group, own.is_some())
            }
        } else {
            self.insertion(env).run(group, own, &mut done)
        };
        self.serve(env, duty);
        if let Some(leader) = waits_for {
            let _timed = perf_timing::wait(PerfMetric::WriteThreadWaitNanos, &*self.clock);
            leader.wait(PUBLISH_SPINS, || None::<()>);
        }
        done
    }

    /// A leader is done with its own group: leads the groups of those that sleep in the queue, a
    /// few of them.
    #[inline]
    fn serve<E: WriteGate<Log = L>>(&self, env: &E, duty: LeaderHandover<'_, L>) {
        if self.waiting.is_empty() {
            duty.fulfil();
        } else {
            self.serve_queue(env, duty);
        }
    }

    #[cold]
    fn serve_queue<E: WriteGate<Log = L>>(&self, env: &E, duty: LeaderHandover<'_, L>) {
        for _ in 0..SERVED_GROUPS {
            // The sync of others takes too long.
            match self.waiting.front(|job| job.options.sync) {
                Some(false) => {}
                _ => return,
            }
            let Some(mut log) = self.try_lock() else {
                // Its holder will look here.
                return duty.fulfil();
            };
            let Ok(LeaderOutcome::Logged(group)) =
                self.lead(env, &mut log, &WriteOptions::default(), None)
            else {
                // Something is to be waited for: not by this writer.
                return;
            };
            log.release(group.is_long()).fulfil();
            self.insertion(env).run(group, None, &mut Ok(()));
        }
    }
}

#[cfg(test)]
mod tests;
