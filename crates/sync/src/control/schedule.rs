//! A schedule: the threads of one simulated run, its time, and the thread that runs next.
//!
//! The members are real threads of which one has the turn; a thread begins when it first gets it.
//! Where a thread could be interrupted it may hand the turn on; where it has to wait it must. A
//! seed decides to whom. Time is virtual: each step takes a microsecond, and when every member
//! waits it jumps to the first limit. A run in which all wait without a limit is deadlocked. One
//! that has a limit of its own ([`Schedule::limited`]) and goes past it makes no progress: some
//! thread waits for what will not come, and others wake up in time again and again. In both cases
//! the process ends and says which threads wait.
//!
//! Invariants: exactly one member has the turn until the last has ended; choices depend on the seed
//! and on the order of calls, never on addresses, on the machine's time or on how it schedules the
//! real threads.

use super::pool::{Kept, Running};
use std::fmt;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How many waiters a wake-up reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// One of them, as the seed chooses.
    One,
    /// All.
    All,
}

/// The state of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberState {
    /// Running, or ready to.
    Ready,
    /// Waiting at a place, perhaps until a time in nanoseconds.
    Waiting { place: usize, until: Option<u64> },
    /// It has ended.
    Ended,
}

#[derive(Debug)]
struct Thread {
    name: String,
    doing: MemberState,
    /// Its last wait ended because time was up.
    timed_out: bool,
    baton: Arc<ThreadSignal>,
    /// The thread that begins it, until it has.
    begin: Option<Begin>,
}

/// A thread that is to run a member's body.
struct Begin(Kept, Box<dyn FnOnce() + Send>);

impl fmt::Debug for Begin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Begin")
    }
}

/// The turn, as it is handed to one member.
#[derive(Debug)]
struct ThreadSignal {
    is_here: AtomicBool,
    thread: std::thread::Thread,
}

impl ThreadSignal {
    fn of(thread: &std::thread::Thread) -> Arc<ThreadSignal> {
        Arc::new(ThreadSignal {
            is_here: AtomicBool::new(false),
            thread: thread.clone(),
        })
    }

    fn give(&self) {
        self.is_here.store(true, Ordering::Release);
        self.thread.unpark();
    }

    fn take(&self) {
        while !self.is_here.swap(false, Ordering::Acquire) {
            std::thread::park();
        }
    }
}

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
struct Limit {
    until_ns: u64,
    steps: u64,
}

/// Told why a run cannot go on, before the process ends.
static STUCK: OnceLock<fn(&str)> = OnceLock::new();

/// From now on `tell` is called with a picture of the threads when a run cannot go on. Nobody could
/// clean up after that, so the process ends when it returns.
pub fn on_stuck(tell: fn(&str)) {
    let _first = STUCK.set(tell);
}

#[derive(Debug)]
struct State {
    limit: Option<Limit>,
    threads: Vec<Thread>,
    /// The thread that runs.
    running: usize,
    now_ns: u64,
    random: u64,
    steps: u64,
    /// A sum over all choices, to compare runs.
    fingerprint: u64,
}

/// One run's threads and time. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Schedule {
    state: Arc<Mutex<State>>,
}

/// A thread's part in a schedule.
#[derive(Clone, Debug)]
pub(super) struct Member {
    schedule: Schedule,
    id: usize,
    baton: Arc<ThreadSignal>,
}

const STEP_NS: u64 = 1_000;
/// A thread keeps the turn at all but one in this many of the places where it may go on.
const SWITCH_ONE_IN: u64 = 4;

// Places that are no addresses of locks.
const ANY_END: usize = usize::MAX;
const NOWHERE: usize = usize::MAX - 1;

/// Where those wait that wait for a thread's end.
fn end_of(id: usize) -> usize {
    id + 1
}

impl State {
    fn draw(&mut self, below: usize) -> usize {
        // splitmix64 (Steele, Lea, Flood 2014).
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let drawn = (z ^ (z >> 31)) as usize % below.max(1);
        self.fingerprint = self
            .fingerprint
            .rotate_left(5)
            .wrapping_add(drawn as u64 ^ self.running as u64)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        drawn
    }

    /// A step passes; those whose time is up can go on.
    fn tick(&mut self, ns: u64) {
        self.steps += 1;
        self.now_ns += ns;
        let now = self.now_ns;
        for thread in &mut self.threads {
            if let MemberState::Waiting { until: Some(t), .. } = thread.doing
                && t <= now
            {
                thread.doing = MemberState::Ready;
                thread.timed_out = true;
            }
        }
    }

    /// Those that can run.
    fn ready(&self) -> impl Iterator<Item = usize> {
        let threads = self.threads.iter().enumerate();
        threads
            .filter(|(_, t)| t.doing == MemberState::Ready)
            .map(|(id, _)| id)
    }

    /// Gives the turn to a member that can run, after as much time as that takes. `None` when
    /// nobody is left.
    fn choose(&mut self) -> Option<usize> {
        if self.ready().next().is_none() {
            let limits = self.threads.iter().filter_map(|t| match t.doing {
                MemberState::Waiting { until, .. } => until,
                _ => None,
            });
            let Some(first) = limits.min() else {
                if self.threads.iter().any(|t| t.doing != MemberState::Ended) {
                    self.stuck("deadlock");
                }
                return None;
            };
            self.tick(first.saturating_sub(self.now_ns));
        }
        let is_over = |l: &Limit| self.now_ns > l.until_ns || self.steps > l.steps;
        if self.limit.as_ref().is_some_and(is_over) {
            self.stuck("no progress");
        }
        let drawn = self.draw(self.ready().count());
        let next = self.ready().nth(drawn)?;
        self.running = next;
        Some(next)
    }

    /// Ends the process: threads wait for each other, or for what does not come.
    #[cold]
    fn stuck(&self, what: &str) -> ! {
        let text = self.picture(what);
        match STUCK.get() {
            Some(tell) => tell(&text),
            None => eprintln!("{text}"),
        }
        std::process::abort()
    }

    #[cold]
    fn picture(&self, what: &str) -> String {
        let mut text = format!("{what} after {} steps", self.steps);
        for (id, thread) in self.threads.iter().enumerate() {
            let _ = write!(text, "\n  {id} {}: {:?}", thread.name, thread.doing);
        }
        text
    }
}

impl Schedule {
    /// A run without threads yet, decided by `seed`.
    pub fn new(seed: u64) -> Self {
        let state = State {
            limit: None,
            threads: Vec::new(),
            running: 0,
            now_ns: 1_000_000_000,
            random: seed,
            steps: 0,
            fingerprint: seed,
        };
        Schedule {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// The run takes at most `time` of its own clock and `steps` steps: one that needs more makes
    /// no progress, which ends the process like a deadlock.
    #[must_use]
    pub fn limited(self, time: Duration, steps: u64) -> Self {
        let mut state = self.locked();
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        state.limit = Some(Limit {
            until_ns: state.now_ns.saturating_add(ns),
            steps,
        });
        drop(state);
        self
    }

    /// Runs `body` on the calling thread as the first member. Returns when `body` does; members
    /// that it did not wait for are run to their end first.
    pub fn run<R>(&self, body: impl FnOnce() -> R) -> R {
        let me = self.join_in("main", ThreadSignal::of(&std::thread::current()));
        assert_eq!(me.id, 0, "a schedule runs once");
        let answer = me.play(|| {
            let answer = catch_unwind(AssertUnwindSafe(body));
            me.drain();
            answer.unwrap_or_else(|panic| resume_unwind(panic))
        });
        me.end();
        answer.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Starts a member. The calling thread is one already.
    pub fn spawn(
        &self,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<MemberHandle> {
        let thread = Kept::take()?;
        let me = self.join_in(name, ThreadSignal::of(thread.thread()));
        let id = me.id;
        let (tell, hear) = channel();
        let body = move || {
            me.baton.take();
            // There may be no waiter; one that waits is woken by the end.
            let _ = tell.send(me.play(body));
            me.end();
        };
        self.locked().threads[id].begin = Some(Begin(thread, Box::new(body)));
        Ok(MemberHandle {
            schedule: self.clone(),
            id,
            real: Running(hear),
        })
    }

    /// Nanoseconds on the run's clock.
    pub fn now_ns(&self) -> u64 {
        self.locked().now_ns
    }

    /// Places where the turn could change, so far.
    pub fn steps(&self) -> u64 {
        self.locked().steps
    }

    /// A sum over all choices so far: runs that went the same way have the same.
    pub fn fingerprint(&self) -> u64 {
        self.locked().fingerprint
    }

    fn join_in(&self, name: &str, baton: Arc<ThreadSignal>) -> Arc<Member> {
        let mut state = self.locked();
        state.threads.push(Thread {
            name: name.to_owned(),
            doing: MemberState::Ready,
            timed_out: false,
            baton: Arc::clone(&baton),
            begin: None,
        });
        Arc::new(Member {
            schedule: self.clone(),
            id: state.threads.len() - 1,
            baton,
        })
    }

    /// Gives the turn to the member `next`.
    fn give(&self, mut state: MutexGuard<'_, State>, next: usize) {
        let thread = &mut state.threads[next];
        let (baton, begin) = (Arc::clone(&thread.baton), thread.begin.take());
        drop(state);
        baton.give();
        if let Some(Begin(thread, body)) = begin {
            thread.begin(body);
        }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Member {
    /// Runs `body` under control.
    fn play<R>(self: &Arc<Self>, body: impl FnOnce() -> R) -> std::thread::Result<R> {
        let _control = super::enter(Arc::clone(self));
        super::thread::forget_unpark();
        catch_unwind(AssertUnwindSafe(body))
    }

    /// Hands the turn on for good.
    fn end(&self) {
        self.wake(end_of(self.id), Wake::All);
        self.wake(ANY_END, Wake::All);
        let mut state = self.schedule.locked();
        state.threads[self.id].doing = MemberState::Ended;
        if let Some(next) = state.choose() {
            self.schedule.give(state, next);
        }
    }

    /// Waits until the other members have ended.
    fn drain(&self) {
        loop {
            let state = self.schedule.locked();
            let others = state.threads.iter().enumerate();
            let left = others
                .filter(|(id, t)| *id != self.id && t.doing != MemberState::Ended)
                .count();
            drop(state);
            if left == 0 {
                return;
            }
            self.wait(ANY_END, None);
        }
    }

    fn hand_on(&self, mut state: MutexGuard<'_, State>) {
        match state.choose() {
            Some(next) if next != self.id => {
                self.schedule.give(state, next);
                self.baton.take();
            }
            _ => {}
        }
    }

    /// Another member may run now.
    pub(super) fn switch(&self) {
        let mut state = self.schedule.locked();
        state.tick(STEP_NS);
        if state.draw(SWITCH_ONE_IN as usize) == 0 {
            self.hand_on(state);
        }
    }

    /// Waits at `place` until woken or until `limit` has passed; true when time was up.
    pub(super) fn wait(&self, place: usize, limit: Option<Duration>) -> bool {
        let mut state = self.schedule.locked();
        state.tick(STEP_NS);
        let ns = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        let until = limit.map(|d| state.now_ns.saturating_add(ns(d)));
        let me = &mut state.threads[self.id];
        me.doing = MemberState::Waiting { place, until };
        me.timed_out = false;
        self.hand_on(state);
        self.schedule.locked().threads[self.id].timed_out
    }

    /// Lets the threads that wait at `place` go on.
    pub(super) fn wake(&self, place: usize, how_many: Wake) {
        let mut state = self.schedule.locked();
        let waits =
            |t: &Thread| matches!(t.doing, MemberState::Waiting { place: p, .. } if p == place);
        let waiting = state.threads.iter().filter(|t| waits(t)).count();
        let chosen = match how_many {
            Wake::One if waiting > 1 => Some(state.draw(waiting)),
            _ => None,
        };
        let waiting = state.threads.iter_mut().filter(|t| waits(t)).enumerate();
        for (nth, thread) in waiting {
            if chosen.is_none_or(|c| c == nth) {
                thread.doing = MemberState::Ready;
            }
        }
    }

    /// Its place in the order in which the run's threads began, from 1.
    pub(super) fn number(&self) -> u64 {
        self.id as u64 + 1
    }

    pub(super) fn sleep(&self, duration: Duration) {
        self.wait(NOWHERE, Some(duration));
    }
}

/// Waits for a member that [`Schedule::spawn`] started.
#[derive(Debug)]
pub struct MemberHandle {
    schedule: Schedule,
    id: usize,
    real: Running,
}

impl MemberHandle {
    /// Waits for the thread to end, as a member of its schedule or not; a panic of it goes on in
    /// the caller.
    pub fn join(self) {
        if let Some(me) = super::mine() {
            while self.schedule.locked().threads[self.id].doing != MemberState::Ended {
                me.wait(end_of(self.id), None);
            }
        }
        if let Err(panic) = self.real.join() {
            resume_unwind(panic);
        }
    }
}
