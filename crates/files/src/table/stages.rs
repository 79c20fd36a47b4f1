//! Where the time of a job that reads and writes tables goes, stage by stage.
//!
//! A job has one [`StageClock`]. A thread that reads or writes a block for it says at each boundary
//! which stage just ended ([`StageClock::lap`]), so every moment belongs to exactly one stage and
//! nothing is counted twice; what no stage claims is merging. That is a handful of readings for a
//! block, and none for a key; they are of the cheapest counter there is ([`Clock::ticks`]), and
//! become nanoseconds when a stretch of work ends, as many as it took.
//!
//! The processor's clock is a system call, too dear for that. It is read at the begin and the end
//! of a stretch of work, and where a read or a write took long, which is where a thread waits. In
//! between the stages share the processor time of the stretch as they share its wall time: without
//! waits the two are the same, and a thread that was preempted lost time in proportion. So the
//! stages' processor times add up to the job's. What threads that read and write in the background
//! took is charged to the stage that they worked for; it has no wall time.
//!
//! A job knows the time at each boundary, so it gives way there: after [`Executor::time_slice`] of
//! work it lets others have the processor. The kernel has slices of its own, and sees that one is
//! over when a timer ticks, which may be every four milliseconds, or when somebody wakes up; a
//! writer that woke up a moment too early would wait for that. What goes by meanwhile is merging
//! that takes no processor.
//!
//! Thread-safety: one thread uses it at a time, not always the same.

use esker_env::{Clock, Env, Executor, SCHED_SLICE};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Operations of a job on a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Stage {
    /// Reading the file, with what is read ahead.
    Read = 0,
    /// Checksums of blocks, verified and computed.
    Checksum = 1,
    /// Decompressing.
    Decompress = 2,
    /// Everything else: walking and merging the inputs, deciding what stays, building blocks.
    Merge = 3,
    /// Making the filter out of the hashes of keys.
    Filter = 4,
    /// Compressing, and training dictionaries.
    Compress = 5,
    /// Creating the file, appending, syncing, closing.
    Write = 6,
}

/// How many stages there are.
const STAGES: usize = 7;
/// A read or a write that took so long may have waited.
const LONG: Duration = Duration::from_micros(50);

impl Stage {
    /// Every stage, in the order in which an entry meets them.
    pub const ALL: [Stage; STAGES] = [
        Stage::Read,
        Stage::Checksum,
        Stage::Decompress,
        Stage::Merge,
        Stage::Filter,
        Stage::Compress,
        Stage::Write,
    ];

    /// A short name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Read => "read",
            Stage::Checksum => "checksum",
            Stage::Decompress => "decompress",
            Stage::Merge => "merge",
            Stage::Filter => "filter",
            Stage::Compress => "compress",
            Stage::Write => "write",
        }
    }

    /// A stage in which a thread may wait for a device.
    fn may_wait(self) -> bool {
        matches!(self, Stage::Read | Stage::Write)
    }
}

/// Nanoseconds by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes {
    cpu_ns: [u64; STAGES],
    wall_ns: [u64; STAGES],
}

impl StageTimes {
    /// Processor time of a stage.
    pub fn cpu_ns(&self, stage: Stage) -> u64 {
        self.cpu_ns[stage as usize]
    }
    /// Time of a stage, waits included.
    pub fn wall_ns(&self, stage: Stage) -> u64 {
        self.wall_ns[stage as usize]
    }
    /// Processor time of all stages.
    pub fn total_cpu_ns(&self) -> u64 {
        self.cpu_ns.iter().sum()
    }
    /// Time of all stages.
    pub fn total_wall_ns(&self) -> u64 {
        self.wall_ns.iter().sum()
    }
    /// Both figure by figure.
    #[must_use]
    pub fn combine(&self, other: &StageTimes, f: impl Fn(u64, u64) -> u64) -> StageTimes {
        let each = |a: &[u64; STAGES], b: &[u64; STAGES]| std::array::from_fn(|i| f(a[i], b[i]));
        StageTimes {
            cpu_ns: each(&self.cpu_ns, &other.cpu_ns),
            wall_ns: each(&self.wall_ns, &other.wall_ns),
        }
    }
}

type TimePerStage = [AtomicU64; STAGES];

/// Takes the times of one job.
#[derive(Debug)]
pub struct StageClock {
    clock: Arc<dyn Clock>,
    /// Whom the thread lets go on; none where it takes no turns.
    executor: Option<Arc<dyn Executor>>,
    /// The tick at which the last stage ended; 0 between stretches of work.
    last: AtomicU64,
    /// When the thread's turn ends.
    turn_ends: AtomicU64,
    /// Ticks of what is long.
    long: AtomicU64,
    /// The time when the stretch began, and the thread's processor time.
    start_ns: AtomicU64,
    cpu_start_ns: AtomicU64,
    /// Ticks by stage since then, and while others went on.
    stretch: TimePerStage,
    away: AtomicU64,
    cpu: TimePerStage,
    wall: TimePerStage,
    /// The part of `cpu` that [`StageClock::charge`] charged.
    elsewhere: AtomicU64,
}

fn add(to: &AtomicU64, ns: u64) {
    // One thread at a time: no need for one step.
    to.store(to.load(Relaxed) + ns, Relaxed);
}

/// The part of `whole` that `of` is of `all`.
fn part(whole: u64, of: u64, all: u64) -> u64 {
    let part = u128::from(whole) * u128::from(of) / u128::from(all.max(1));
    u64::try_from(part).unwrap_or(whole)
}

impl StageClock {
    /// A clock that stands still.
    pub fn new(env: &Env) -> Arc<Self> {
        Self::of(Arc::clone(&env.clock), Some(Arc::clone(&env.executor)))
    }

    /// Makes the clock of a job that somebody waits for with the thread that carries it out:
    /// letting others go on would only make that take longer.
    pub fn without_turns(env: &Env) -> Arc<Self> {
        Self::of(Arc::clone(&env.clock), None)
    }

    fn of(clock: Arc<dyn Clock>, executor: Option<Arc<dyn Executor>>) -> Arc<Self> {
        Arc::new(StageClock {
            clock,
            executor,
            last: AtomicU64::new(0),
            turn_ends: AtomicU64::new(0),
            long: AtomicU64::new(0),
            start_ns: AtomicU64::new(0),
            cpu_start_ns: AtomicU64::new(0),
            stretch: TimePerStage::default(),
            away: AtomicU64::new(0),
            cpu: TimePerStage::default(),
            wall: TimePerStage::default(),
            elsewhere: AtomicU64::new(0),
        })
    }

    /// Another thread took `ns` of processor time for a stage.
    pub fn charge(&self, stage: Stage, ns: u64) {
        add(&self.cpu[stage as usize], ns);
        add(&self.elsewhere, ns);
    }

    /// Processor time of other threads, in nanoseconds.
    pub fn elsewhere_ns(&self) -> u64 {
        self.elsewhere.load(Relaxed)
    }

    /// The calling thread begins to work.
    pub fn resume(&self) {
        self.long.store(self.clock.ticks_of(LONG), Relaxed);
        self.start_ns.store(self.clock.now_ns(), Relaxed);
        self.cpu_start_ns.store(self.clock.thread_cpu_ns(), Relaxed);
        self.begin_turn(self.clock.ticks().max(1));
    }

    fn begin_turn(&self, now: u64) {
        self.last.store(now, Relaxed);
        let turn = self
            .executor
            .as_ref()
            .map_or(SCHED_SLICE, |e| e.time_slice());
        self.turn_ends
            .store(now + self.clock.ticks_of(turn), Relaxed);
    }

    /// It ends, for now.
    pub fn pause(&self) {
        self.lap(Stage::Merge);
        self.share(None);
        self.last.store(0, Relaxed);
    }

    /// The time since the last lap was that of `stage`. Nothing between steps.
    #[inline]
    pub fn lap(&self, stage: Stage) {
        let last = self.last.load(Relaxed);
        if last == 0 {
            return;
        }
        let now = self.clock.ticks().max(last);
        self.last.store(now, Relaxed);
        add(&self.stretch[stage as usize], now - last);
        if now - last >= self.long.load(Relaxed) && stage.may_wait() {
            self.share(Some((stage, now - last)));
        }
        if now >= self.turn_ends.load(Relaxed) {
            self.give_way(now);
        }
    }

    /// Lets others go on, and begins a turn when they have.
    #[cold]
    fn give_way(&self, since: u64) {
        if let Some(executor) = &self.executor {
            executor.give_way();
        }
        let now = self.clock.ticks().max(since);
        add(&self.away, now - since);
        self.begin_turn(now);
    }

    /// Ends the stretch and shares its time out. `last` is a lap at its end that may have waited:
    /// it gets the processor time that the others, which did not, leave.
    #[cold]
    fn share(&self, last: Option<(Stage, u64)>) {
        let since = |start: &AtomicU64, now: u64| now.saturating_sub(start.swap(now, Relaxed));
        let cpu = since(&self.cpu_start_ns, self.clock.thread_cpu_ns());
        let took = since(&self.start_ns, self.clock.now_ns());
        let ticks: [u64; STAGES] = std::array::from_fn(|i| self.stretch[i].swap(0, Relaxed));
        let away = self.away.swap(0, Relaxed);
        let all = ticks.iter().sum::<u64>() + away;
        let mut wall = ticks.map(|of| part(took, of, all));
        for (to, ns) in self.wall.iter().zip(wall) {
            add(to, ns);
        }
        add(&self.wall[Stage::Merge as usize], part(took, away, all));
        let mut rest = cpu;
        if let Some((stage, of)) = last {
            let ns = part(took, of, all);
            wall[stage as usize] -= ns;
            let others: u64 = wall.iter().sum();
            let own = cpu.saturating_sub(others).min(ns);
            add(&self.cpu[stage as usize], own);
            rest -= own;
        }
        let all: u64 = wall.iter().sum();
        let mut left = rest;
        for (to, ns) in self.cpu.iter().zip(wall) {
            let part = part(rest, ns, all).min(left);
            add(to, part);
            left -= part;
        }
        add(&self.cpu[Stage::Merge as usize], left);
    }

    /// The times so far; those of a stretch that has not ended are missing.
    pub fn times(&self) -> StageTimes {
        let read = |f: &TimePerStage| std::array::from_fn(|i| f[i].load(Relaxed));
        StageTimes {
            cpu_ns: read(&self.cpu),
            wall_ns: read(&self.wall),
        }
    }
}

/// Ends a lap of a clock that may not be there.
#[inline]
pub(super) fn lap(stages: Option<&StageClock>, stage: Stage) {
    if let Some(s) = stages {
        s.lap(stage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_env::JoinHandle;
    use esker_status::{Error, ErrorKind, Result};
    use std::time::Duration;

    /// Wall and processor time, in nanoseconds, as the test says.
    #[derive(Debug, Default)]
    struct Said {
        wall: AtomicU64,
        cpu: AtomicU64,
    }

    impl Said {
        fn pass(&self, wall: u64, cpu: u64) {
            self.wall.fetch_add(wall, Relaxed);
            self.cpu.fetch_add(cpu, Relaxed);
        }
    }

    impl Clock for Said {
        fn now_us(&self) -> u64 {
            self.now_ns() / 1000
        }
        fn now_ns(&self) -> u64 {
            self.wall.load(Relaxed)
        }
        fn unix_us(&self) -> u64 {
            0
        }
        fn sleep(&self, _: Duration) {}
        fn thread_cpu_ns(&self) -> u64 {
            self.cpu.load(Relaxed)
        }
    }

    /// Others take three microseconds whenever they are let go on.
    #[derive(Debug)]
    struct Others(Arc<Said>);

    impl Executor for Others {
        fn spawn(&self, _: &str, _: Box<dyn FnOnce() + Send>) -> Result<Box<dyn JoinHandle>> {
            Err(Error::new(ErrorKind::Io, "no threads here"))
        }
        fn give_way(&self) {
            self.0.pass(3_000, 0);
        }
        fn parallelism(&self) -> usize {
            1
        }
    }

    fn rig() -> (Arc<Said>, Arc<StageClock>) {
        let said = Arc::new(Said::default());
        said.pass(500, 77);
        let others = Arc::new(Others(Arc::clone(&said)));
        (Arc::clone(&said), StageClock::of(said, Some(others)))
    }

    #[test]
    fn others_go_on_after_a_turn() {
        let (said, stages) = rig();
        stages.resume();
        let waited = || said.wall.load(Relaxed) - said.cpu.load(Relaxed) - (500 - 77);
        for (work, waits) in [(149_000, 0), (1_000, 1), (149_999, 1), (1, 2), (400_000, 3)] {
            said.pass(work, work);
            stages.lap(Stage::Checksum);
            assert_eq!(waited(), waits * 3_000, "after {work} ns more");
        }
        stages.pause();
        let t = stages.times();
        assert_eq!(t.cpu_ns(Stage::Checksum), 700_000);
        assert_eq!(
            (t.cpu_ns(Stage::Merge), t.wall_ns(Stage::Merge)),
            (0, 9_000)
        );
        assert_eq!((t.total_cpu_ns(), t.total_wall_ns()), (700_000, 709_000));
    }

    #[test]
    fn a_job_that_its_thread_waits_for_takes_no_turns() {
        let said = Arc::new(Said::default());
        let stages = StageClock::of(Arc::clone(&said) as Arc<dyn Clock>, None);
        stages.resume();
        for _ in 0..3 {
            said.pass(400_000, 400_000);
            stages.lap(Stage::Checksum);
        }
        stages.pause();
        assert_eq!(said.wall.load(Relaxed), 1_200_000);
        assert_eq!(stages.times().cpu_ns(Stage::Checksum), 1_200_000);
    }

    #[test]
    fn a_long_write_gets_the_processor_time_that_the_others_leave() {
        let (said, stages) = rig();
        stages.resume();
        said.pass(1_000, 1_000);
        stages.lap(Stage::Merge);
        said.pass(3_000, 3_000);
        stages.lap(Stage::Compress);
        said.pass(900_000, 700);
        stages.lap(Stage::Write);
        said.pass(400, 400);
        stages.pause();
        let t = stages.times();
        let cpu = Stage::ALL.map(|s| t.cpu_ns(s));
        assert_eq!(cpu, [0, 0, 0, 1_400, 0, 3_000, 700]);
        assert_eq!(t.total_cpu_ns(), 5_100);
        assert_eq!(t.wall_ns(Stage::Write), 900_000);
        assert_eq!(t.total_wall_ns(), 907_400, "others had a turn after it");
    }

    #[test]
    fn lost_time_is_shared_out_in_proportion() {
        let (said, stages) = rig();
        stages.resume();
        said.pass(6_000, 3_000);
        stages.lap(Stage::Merge);
        said.pass(2_000, 1_000);
        stages.lap(Stage::Checksum);
        said.pass(2_000, 1_000);
        stages.lap(Stage::Read);
        stages.pause();
        let t = stages.times();
        assert_eq!(t.cpu_ns(Stage::Merge), 3_000);
        assert_eq!(t.cpu_ns(Stage::Checksum), 1_000);
        assert_eq!(t.cpu_ns(Stage::Read), 1_000);
    }

    #[test]
    fn what_other_threads_took_counts_beside_the_stretch() {
        let (said, stages) = rig();
        stages.resume();
        said.pass(1_000, 1_000);
        stages.charge(Stage::Write, 300);
        stages.pause();
        stages.charge(Stage::Read, 20);
        let t = stages.times();
        let cpu = Stage::ALL.map(|s| t.cpu_ns(s));
        assert_eq!(cpu, [20, 0, 0, 1_000, 0, 0, 300]);
        assert_eq!((t.total_wall_ns(), stages.elsewhere_ns()), (1_000, 320));
    }

    #[test]
    fn between_stretches_nothing_counts() {
        let (said, stages) = rig();
        said.pass(1_000, 1_000);
        stages.lap(Stage::Write);
        stages.resume();
        said.pass(10, 10);
        stages.pause();
        said.pass(1_000_000, 1_000_000);
        stages.lap(Stage::Read);
        stages.resume();
        said.pass(5, 5);
        stages.pause();
        let t = stages.times();
        assert_eq!((t.total_cpu_ns(), t.total_wall_ns()), (15, 15));
        assert_eq!(t.cpu_ns(Stage::Merge), 15);
    }

    #[test]
    fn processor_time_that_is_not_known_stays_away() {
        let (said, stages) = rig();
        stages.resume();
        said.pass(80_000, 0);
        stages.lap(Stage::Read);
        said.pass(10, 0);
        stages.pause();
        let t = stages.times();
        assert_eq!((t.total_cpu_ns(), t.total_wall_ns()), (0, 80_010));
    }
}
