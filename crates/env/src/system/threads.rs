//! Threads of the process, which run one body after the other.
//!
//! A process may have hundreds of databases, most of them idle. To start a thread and to wait for
//! its end costs each of them 0.1 to 4 ms: the new thread has to be scheduled, and its end frees
//! its stack and what it kept. So a thread whose body has ended waits for another body, of any
//! database, for [`LINGER`]. [`JoinHandle::join`] waits for the body, not for the thread.
//!
//! Nothing of a body stays with its thread but memory: what code keeps in a thread it keeps for the
//! next use there, or with the identity of its database. Niceness cannot be taken back without
//! privileges, so patient threads stay patient.
//!
//! One thread ticks for all databases.
//!
//! Bodies share slots ([`Executor::spawn_in_slot`]), [`slots`] at once. Where the oldest that waits
//! has waited for a tick, which a body that waits for another may cause, one more begins.
//!
//! **Other processes.** After a `fork` the child has none of the threads, and locks that another
//! thread held stay taken. So the state belongs to a process number, and a child begins anew.
//!
//! Thread-safety: any thread.

use super::process_cpu_ns;
use crate::pool::IoThreads;
use crate::{
    Executor, JoinHandle, SCHED_SLICE, SlotBody, TICK, ThreadSlot, Tick, Ticking, TimeSlice,
};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::atomic::{AtomicBool, Ordering};
use esker_sync::handover::IdleThreads;
use esker_sync::{ArcSwapOption, Condvar, Mutex, Rank};
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a thread waits for its next body.
const LINGER: Duration = Duration::from_secs(5);
/// Most threads of a kind that wait. Others end with their bodies.
const IDLE_MAX: usize = 64;
/// The name of a thread that waits.
const IDLE_NAME: &str = "esker-idle";

/// How much nicer than the process threads are that work for others: a third of a processor is
/// theirs beside a thread of the process. So one that sleeps now and then has not had its share
/// when it wakes up, and goes before them.
const SERVICE: i32 = 3;
/// The niceness of patient threads: an eighth, and a fifth beside a thread of service.
const PATIENCE: i32 = 9;

/// The kernel's turns of threads that work for others: longer than what it gives to a thread that
/// asks for nothing, which is 2.8 milliseconds at most.
const SLICE: Duration = Duration::from_millis(3);

thread_local! {
    /// When a thread gave way first, and its slices: a patient one waits for longer than others.
    static SLICE_OF_THREAD: (Instant, TimeSlice) =
        (Instant::now(), TimeSlice::new(SCHED_SLICE.as_nanos() as u64));
}

static CURRENT: ArcSwapOption<ProcessThreads> = ArcSwapOption::const_empty();

/// The threads of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadExecutor;

impl ThreadExecutor {
    /// Threads of this process.
    pub fn new() -> Self {
        ThreadExecutor
    }

    /// The threads that read and write for all databases of the process.
    pub(crate) fn io_threads(self) -> Arc<IoThreads> {
        Arc::clone(&ProcessThreads::current().io)
    }
}

impl Executor for ThreadExecutor {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>> {
        ProcessThreads::current().spawn(name, false, body)
    }
    fn spawn_patient(
        &self,
        name: &str,
        body: Box<dyn FnOnce() + Send>,
    ) -> Result<Box<dyn JoinHandle>> {
        ProcessThreads::current().spawn(name, true, body)
    }
    fn spawn_in_slot(&self, name: &str, body: SlotBody) -> Result<()> {
        ProcessThreads::current().spawn_in_slot(name, body)
    }
    fn tick(&self, tick: Tick) -> Result<Box<dyn Ticking>> {
        let threads = ProcessThreads::current();
        let id = threads.add_tick(tick)?;
        Ok(Box::new(TimerTicking { threads, id }))
    }
    fn give_way(&self) {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        SLICE_OF_THREAD.with(|(begin, slice)| {
            let since = Instant::now();
            std::thread::yield_now();
            slice.note_away(ns(since.elapsed()), ns(begin.elapsed()), process_cpu_ns);
        });
    }
    fn time_slice(&self) -> Duration {
        Duration::from_nanos(SLICE_OF_THREAD.with(|(_, slice)| slice.ns()))
    }
    fn parallelism(&self) -> usize {
        esker_sync::thread::parallelism()
    }
}

/// The function that a thread runs.
struct ThreadTask {
    name: Box<str>,
    run: Box<dyn FnOnce() + Send>,
    end: Arc<End>,
}

/// The end of a body.
struct End {
    outcome: Mutex<Option<std::result::Result<(), Box<dyn Any + Send>>>>,
    changed: Condvar,
}

impl End {
    fn new() -> Arc<Self> {
        Arc::new(End {
            outcome: Mutex::new(Rank::LEAF, None),
            changed: Condvar::new(),
        })
    }
}

struct Running(Arc<End>);

impl JoinHandle for Running {
    fn join(self: Box<Self>) {
        let mut outcome = self.0.outcome.lock();
        loop {
            match outcome.take() {
                Some(Ok(())) => return,
                Some(Err(panic)) => {
                    drop(outcome);
                    // A panic is a bug: it must not vanish with the body.
                    resume_unwind(panic);
                }
                None => self.0.changed.wait(&mut outcome),
            }
        }
    }
}

/// The threads of one process.
struct ProcessThreads {
    /// Its number.
    process: u32,
    service: IdleThreads<ThreadTask>,
    patient: IdleThreads<ThreadTask>,
    timer: Mutex<Timer>,
    soon: Mutex<SlotQueue>,
    io: Arc<IoThreads>,
}

/// A body that waits for a slot.
struct WaitingBody {
    since: Instant,
    name: Box<str>,
    body: SlotBody,
}

/// Bodies that share slots.
#[derive(Default)]
struct SlotQueue {
    /// Slots that are taken.
    running: usize,
    waiting: VecDeque<WaitingBody>,
}

/// Slots for bodies that share them.
fn slots() -> usize {
    (2 * esker_sync::thread::parallelism()).clamp(4, 12)
}

#[derive(Default)]
struct Timer {
    ticks: Vec<(u64, Tick)>,
    last: u64,
    /// The thread that ticks has a body.
    is_running: bool,
}

impl ProcessThreads {
    fn new(process: u32) -> Self {
        ProcessThreads {
            process,
            service: IdleThreads::new(IDLE_MAX),
            patient: IdleThreads::new(IDLE_MAX),
            timer: Mutex::new(Rank::LEAF, Timer::default()),
            soon: Mutex::new(Rank::LEAF, SlotQueue::default()),
            io: IoThreads::new(Arc::new(ThreadExecutor)),
        }
    }

    /// Those of the calling process.
    fn current() -> Arc<Self> {
        Self::of(&CURRENT, std::process::id())
    }

    /// Those of `process` in `current`, which has those of its parent at first.
    fn of(current: &ArcSwapOption<Self>, process: u32) -> Arc<Self> {
        loop {
            let known = current.load_full();
            if let Some(threads) = known.as_ref().filter(|t| t.process == process) {
                return Arc::clone(threads);
            }
            // The parent's are not freed: their locks may be taken for ever.
            std::mem::forget(known.clone());
            current.compare_and_swap(&known, Some(Arc::new(Self::new(process))));
        }
    }

    fn idle(&self, is_patient: bool) -> &IdleThreads<ThreadTask> {
        if is_patient {
            &self.patient
        } else {
            &self.service
        }
    }

    fn spawn(
        self: &Arc<Self>,
        name: &str,
        is_patient: bool,
        run: Box<dyn FnOnce() + Send>,
    ) -> Result<Box<dyn JoinHandle>> {
        let end = End::new();
        let body = ThreadTask {
            name: name.into(),
            run,
            end: Arc::clone(&end),
        };
        if let Err(body) = self.idle(is_patient).offer(body) {
            let own = Arc::clone(self);
            let started = std::thread::Builder::new()
                .name(IDLE_NAME.to_owned())
                .spawn(move || own.live(is_patient, body));
            started.map_err(|e| Error::new(ErrorKind::Io, format!("start thread {name}: {e}")))?;
        }
        Ok(Box::new(Running(end)))
    }

    fn spawn_in_slot(self: &Arc<Self>, name: &str, body: SlotBody) -> Result<()> {
        {
            let mut soon = self.soon.lock();
            if soon.running >= slots() {
                soon.waiting.push_back(WaitingBody {
                    since: Instant::now(),
                    name: name.into(),
                    body,
                });
                return Ok(());
            }
            soon.running += 1;
        }
        self.start_in_slot(name, body)
    }

    /// Starts a body that has a slot.
    fn start_in_slot(self: &Arc<Self>, name: &str, body: SlotBody) -> Result<()> {
        let own = Arc::clone(self);
        let started = self.spawn(name, false, Box::new(move || own.run_in_slot(body)));
        started
            .map(drop)
            .inspect_err(|_| self.soon.lock().running -= 1)
    }

    /// Runs a body, and then those that wait, until one gives its slot back before its end.
    fn run_in_slot(self: &Arc<Self>, first: SlotBody) {
        let mut next = Some(first);
        while let Some(body) = next.take() {
            let is_over = Arc::new(AtomicBool::new(false));
            let (own, over) = (Arc::clone(self), Arc::clone(&is_over));
            let slot = ThreadSlot::new(move || {
                over.store(true, Ordering::Relaxed);
                own.hand_slot_over();
            });
            let outcome = catch_unwind(AssertUnwindSafe(|| body(slot)));
            if !is_over.load(Ordering::Relaxed) {
                if outcome.is_err() {
                    self.hand_slot_over();
                } else if let Some(waiting) = self.next_in_slot() {
                    set_name(&waiting.name);
                    next = Some(waiting.body);
                }
            }
            if let Err(panic) = outcome {
                resume_unwind(panic);
            }
        }
    }

    /// Gives a slot back, or to the body that waits longest.
    fn next_in_slot(&self) -> Option<WaitingBody> {
        let mut soon = self.soon.lock();
        let next = soon.waiting.pop_front();
        if next.is_none() {
            soon.running -= 1;
        }
        next
    }

    /// Gives a slot back, and has another thread begin the next body.
    fn hand_slot_over(self: &Arc<Self>) {
        if let Some(WaitingBody { name, body, .. }) = self.next_in_slot() {
            // Where no thread can be had, its owner asks again at the next tick.
            let _not_now = self.start_in_slot(&name, body);
        }
    }

    /// Begins the body that waits longest where that has been a tick: those that have
    /// slots may wait for it.
    fn start_overdue(self: &Arc<Self>) {
        let overdue = {
            let mut soon = self.soon.lock();
            let is_overdue = |first: &WaitingBody| first.since.elapsed() >= TICK;
            let overdue = soon.waiting.front().is_some_and(is_overdue);
            let first = overdue.then(|| soon.waiting.pop_front()).flatten();
            soon.running += usize::from(first.is_some());
            first
        };
        if let Some(WaitingBody { name, body, .. }) = overdue {
            let _not_now = self.start_in_slot(&name, body);
        }
    }

    /// The life of a thread.
    fn live(&self, is_patient: bool, first: ThreadTask) {
        settle();
        let mut next = Some(first);
        while let Some(ThreadTask { name, run, end }) = next.take() {
            give_way_to_process(is_patient);
            set_name(&name);
            let outcome = catch_unwind(AssertUnwindSafe(run));
            set_name(IDLE_NAME);
            *end.outcome.lock() = Some(outcome);
            end.changed.notify_all();
            drop(end);
            let since = Instant::now();
            next = self
                .idle(is_patient)
                .wait(LINGER, || since.elapsed() >= LINGER);
        }
    }

    fn add_tick(self: &Arc<Self>, tick: Tick) -> Result<u64> {
        let (id, starts) = {
            let mut timer = self.timer.lock();
            timer.last += 1;
            let id = timer.last;
            timer.ticks.push((id, tick));
            (id, !std::mem::replace(&mut timer.is_running, true))
        };
        if starts {
            let own = Arc::clone(self);
            let body = Box::new(move || own.run_timer());
            if let Err(e) = self.spawn("esker-timer", false, body) {
                let mut timer = self.timer.lock();
                timer.is_running = false;
                timer.ticks.retain(|(other, _)| *other != id);
                return Err(e);
            }
        }
        Ok(id)
    }

    /// Ticks until nothing is to tick.
    fn run_timer(self: &Arc<Self>) {
        loop {
            std::thread::sleep(TICK);
            let ticks: Vec<Tick> = {
                let mut timer = self.timer.lock();
                if timer.ticks.is_empty() {
                    timer.is_running = false;
                    return;
                }
                let ticks = timer.ticks.iter();
                ticks.map(|(_, tick)| Arc::clone(tick)).collect()
            };
            self.start_overdue();
            for tick in ticks {
                // A panic is a bug of one database, and the others go on.
                let _panic = catch_unwind(AssertUnwindSafe(|| tick()));
            }
        }
    }
}

impl fmt::Debug for ProcessThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessThreads")
            .field("process", &self.process)
            .finish_non_exhaustive()
    }
}

/// Ticks until it is dropped.
struct TimerTicking {
    threads: Arc<ProcessThreads>,
    id: u64,
}

impl Ticking for TimerTicking {}

impl Drop for TimerTicking {
    fn drop(&mut self) {
        // In a child of the process, which has no such thread, the lock may be taken for ever.
        if self.threads.process != std::process::id() {
            return;
        }
        let gone = {
            let mut timer = self.threads.timer.lock();
            let at = timer.ticks.iter().position(|(id, _)| *id == self.id);
            at.map(|at| timer.ticks.swap_remove(at))
        };
        drop(gone);
    }
}

/// Tells the kernel how the calling thread shares processors with others. One that is refused does
/// its work all the same.
fn settle() {
    #[cfg(target_os = "linux")]
    {
        let _refused = crate::sys::sched::take(SLICE);
        // The processors are those of the process, not of the thread that needed this one first,
        // which may be bound to a processor.
        let process = Some(rustix::process::getpid());
        if let Ok(processors) = rustix::thread::sched_getaffinity(process) {
            let _refused = rustix::thread::sched_setaffinity(None, &processors);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = SLICE;
}

/// Makes the calling thread nicer than the process.
fn give_way_to_process(is_patient: bool) {
    // Niceness is a thread's own on Linux; elsewhere it would be the whole process's.
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpid, getpriority_process, setpriority_process};
        // Compared with the process, not with the thread that started this one, which may be
        // patient.
        if let Ok(nice) = getpriority_process(Some(getpid())) {
            let nicer = (nice + if is_patient { PATIENCE } else { SERVICE }).min(19);
            if getpriority_process(None) != Ok(nicer) {
                let _refused = setpriority_process(None, nicer);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (is_patient, PATIENCE, SERVICE);
}

/// Gives the calling thread a name that tools show, of which the kernel keeps fifteen bytes.
fn set_name(name: &str) {
    #[cfg(target_os = "linux")]
    if let Ok(name) = std::ffi::CString::new(name) {
        let _refused = rustix::thread::set_name(&name);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = name;
}

#[cfg(test)]
mod tests;
