//! The slowest operations of the last minutes, while somebody asks for them.
//!
//! An operation begins with [`OperationRecord::begin_read`] or another of these, and ends with
//! [`OperationRecord::end`]. While nobody asks, that is one load. Otherwise it is two readings of
//! the processor's time stamps; only an operation that is slower than the [`KEPT`]th of its kind
//! takes the lock. Two windows are kept, the running one and the one before, so that a slow hour
//! does not hide the minutes after it. The engine's timer turns them ([`OperationRecord::tick`])
//! where the database is open for writing, and whoever reads them.
//!
//! The thread's figures at the beginning of a Get or a seek are not copied then, which would take
//! more instructions than all the rest, but before the first block is read from a file or entries
//! that were passed over are counted; those of a write before its first wait.
//!
//! Code that every operation runs is always inlined: as calls it would take twice the
//! instructions.
//!
//! Neither keys nor values are recorded. Thread-safety: any thread.

use super::event_log::EventLine;
use super::info_log::InfoLog;
use super::perf::{
    PerfMetric, added_by_read, added_by_write, begin_write, forget_waits, time_waits,
};
use crate::options::InfoLogLevel;
use esker_env::{Clock, thread_id, time_stamp};
use esker_files::table::{hold_read_work, release_read_work};
use esker_sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use esker_sync::{Arc, Mutex, Rank};
use std::fmt;
use std::num::NonZero;
use std::time::Duration;

/// Operations of a kind that are kept for a window.
const KEPT: usize = 32;
/// Length of a window.
const WINDOW: Duration = Duration::from_secs(300);
/// Lines of the LOG in a window.
const LINES: u32 = 100;

/// Kind of an operation that a program asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OperationKind {
    /// The read of one key.
    Get,
    /// The read of several keys.
    MultiGet,
    /// The positioning of an iterator.
    Seek,
    /// A step of an iterator forward, or several that are taken at once.
    Next,
    /// A step backward, or several that are taken at once.
    Prev,
    /// A batch, of one record or many.
    Write,
}

impl OperationKind {
    /// All of them.
    pub const ALL: [OperationKind; 6] = [
        OperationKind::Get,
        OperationKind::MultiGet,
        OperationKind::Seek,
        OperationKind::Next,
        OperationKind::Prev,
        OperationKind::Write,
    ];
    const COUNT: usize = Self::ALL.len();

    /// The figures when it began are kept for it.
    #[inline]
    fn is_held(self) -> bool {
        use OperationKind::{MultiGet, Next, Prev};
        matches!(self, MultiGet | Next | Prev)
    }

    /// Its name in texts and in the LOG.
    pub fn name(self) -> &'static str {
        match self {
            OperationKind::Get => "get",
            OperationKind::MultiGet => "multi_get",
            OperationKind::Seek => "seek",
            OperationKind::Next => "next",
            OperationKind::Prev => "prev",
            OperationKind::Write => "write",
        }
    }
}

/// An operation that took long.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SlowOperation {
    /// Its kind.
    pub kind: OperationKind,
    /// How long it took.
    pub took: Duration,
    /// When it began, in microseconds since the Unix epoch.
    pub began_unix_us: u64,
    /// The thread's number, by which the system's tools name it.
    pub thread: u64,
    /// The column family; `None` where it touched several.
    pub family: Option<String>,
    /// Its part of the perf context of its thread, without zeros.
    pub perf: Vec<(PerfMetric, u64)>,
}

impl SlowOperation {
    /// The figures of the perf context in RocksDB's form: `name = value, name = value`.
    pub fn perf_text(&self) -> String {
        let figure = |(metric, value): &(PerfMetric, u64)| format!("{} = {value}", metric.name());
        self.perf.iter().map(figure).collect::<Vec<_>>().join(", ")
    }

    /// The event of the LOG.
    fn line(&self, now_us: u64) -> String {
        let figures = self.perf.iter().map(|(m, value)| (m.name(), *value));
        let took_us = u64::try_from(self.took.as_micros()).unwrap_or(u64::MAX);
        EventLine::new("slow_operation", 0, now_us)
            .text("operation", self.kind.name())
            .number("took_micros", took_us)
            .number("thread", self.thread)
            .text("cf_name", self.family.as_deref().unwrap_or_default())
            .figures("perf", figures)
            .finish()
    }
}

/// A start that is a time of the clock and no time stamp has this bit, which neither ever reaches:
/// the end of such an operation, which subtracts it from a time stamp, looks slow.
const OF_CLOCK: NonZero<u64> = NonZero::new(1 << 63).expect("a bit is set");

/// An operation that is recorded, under way: when it began, in ticks. The thread keeps the figures
/// of one read and of one write: a read inside of a read, in a callback of the program, takes the
/// outer one's.
#[derive(Clone, Copy, Debug)]
#[must_use = "an operation ends with OperationRecord::end"]
pub struct OperationStart(NonZero<u64>);

/// An operation that is kept, and its time in ticks.
#[derive(Debug)]
struct Kept {
    ticks: u64,
    operation: SlowOperation,
}

/// The slowest of each kind, slowest first.
type Window = [Vec<Kept>; OperationKind::COUNT];

#[derive(Debug, Default)]
struct State {
    /// The limits of those who ask, above which an operation gets a line in the LOG.
    limits: Vec<Option<Duration>>,
    /// The smallest of the limits, in ticks.
    line_above: u64,
    lines: u32,
    running: Window,
    before: Window,
}

/// The slowest operations of a database.
pub struct OperationRecord {
    clock: Arc<dyn Clock>,
    info_log: Arc<InfoLog>,
    askers: AtomicUsize,
    /// Ticks are time stamps of the processor.
    has_stamps: bool,
    /// Ticks above which an operation of a kind is kept, or gets a line in the LOG.
    bars: [AtomicU64; OperationKind::COUNT],
    /// When the running window ends, in ticks.
    window_end: AtomicU64,
    state: Mutex<State>,
}

impl fmt::Debug for OperationRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationRecord")
            .field("askers", &self.askers)
            .finish_non_exhaustive()
    }
}

impl OperationRecord {
    /// A record that nobody asks for.
    pub fn new(clock: Arc<dyn Clock>, info_log: Arc<InfoLog>) -> Self {
        OperationRecord {
            has_stamps: clock.ticks_are_stamps(),
            clock,
            info_log,
            askers: AtomicUsize::new(0),
            bars: [const { AtomicU64::new(0) }; OperationKind::COUNT],
            window_end: AtomicU64::new(0),
            state: Mutex::new(Rank::LEAF, State::default()),
        }
    }

    /// Somebody asks, until [`OperationRecord::unask`] with the same limit: operations above it get
    /// a line in the LOG.
    pub fn ask(&self, limit: Option<Duration>) {
        let mut state = self.state.lock();
        state.limits.push(limit);
        time_waits();
        self.set_limits(&mut state);
    }

    /// Takes one [`OperationRecord::ask`] back. With the last one, what was kept is dropped.
    pub fn unask(&self, limit: Option<Duration>) {
        let mut state = self.state.lock();
        if let Some(at) = state.limits.iter().position(|l| *l == limit) {
            state.limits.swap_remove(at);
            forget_waits();
        }
        if state.limits.is_empty() {
            state.running = Window::default();
            state.before = Window::default();
        }
        self.set_limits(&mut state);
    }

    fn set_limits(&self, state: &mut State) {
        let limit = state.limits.iter().flatten().min();
        state.line_above = limit.map_or(u64::MAX, |l| self.clock.ticks_of(*l));
        for kind in OperationKind::ALL {
            self.set_bar(state, kind);
        }
        self.askers.store(state.limits.len(), Relaxed);
    }

    fn set_bar(&self, state: &State, kind: OperationKind) {
        let last = state.running[kind as usize].get(KEPT - 1);
        let bar = last.map_or(0, |l| l.ticks).min(state.line_above);
        self.bars[kind as usize].store(bar, Relaxed);
    }

    /// A Get or a seek begins on this thread. `None` while nobody asks.
    #[inline(always)]
    pub fn begin_read(&self) -> Option<OperationStart> {
        self.is_asked().then(|| self.start())
    }

    /// A read that is several of the engine's begins. `None` while nobody asks.
    #[inline]
    pub fn begin_reads(&self) -> Option<OperationStart> {
        if !self.is_asked() {
            return None;
        }
        hold_read_work();
        Some(self.start())
    }

    /// A write begins on this thread. `None` while nobody asks.
    #[inline(always)]
    pub fn begin_write(&self) -> Option<OperationStart> {
        if !self.is_asked() {
            return None;
        }
        begin_write();
        Some(self.start())
    }

    /// Returns whether somebody asks.
    #[inline(always)]
    pub fn is_asked(&self) -> bool {
        self.askers.load(Relaxed) > 0
    }

    /// The start of an operation, as one word that is never zero.
    #[inline(always)]
    fn start(&self) -> OperationStart {
        OperationStart(match time_stamp() {
            Some(stamp) if self.has_stamps => NonZero::<u64>::MIN | stamp,
            _ => self.start_by_clock(),
        })
    }

    #[cold]
    fn start_by_clock(&self) -> NonZero<u64> {
        OF_CLOCK | self.clock.ticks()
    }

    /// The time, in ticks.
    #[inline]
    fn ticks(&self) -> u64 {
        match time_stamp() {
            Some(stamp) if self.has_stamps => stamp,
            _ => self.clock.ticks(),
        }
    }

    /// An operation is over. `family` is asked only if it is kept.
    #[inline(always)]
    pub fn end(
        &self,
        kind: OperationKind,
        start: OperationStart,
        family: impl FnOnce() -> Option<String>,
    ) {
        let now = time_stamp().unwrap_or(0);
        // A stamp from another processor may be a little earlier: that looks slow, too.
        if now.wrapping_sub(start.0.get()) > self.bars[kind as usize].load(Relaxed) {
            self.end_slow(kind, start, now, family);
        }
        if kind.is_held() {
            release_read_work();
        }
    }

    #[cold]
    #[inline(never)]
    fn end_slow(
        &self,
        kind: OperationKind,
        start: OperationStart,
        now: u64,
        family: impl FnOnce() -> Option<String>,
    ) {
        let (start, of_clock) = (start.0.get(), OF_CLOCK.get());
        let now = match start & of_clock {
            0 => now,
            _ => self.clock.ticks(),
        };
        let took = now.saturating_sub(start & !of_clock);
        if took <= self.bars[kind as usize].load(Relaxed) {
            return;
        }
        let perf = match kind {
            OperationKind::Write => added_by_write(),
            _ => added_by_read(),
        };
        self.keep(kind, (now, took), perf, family());
    }

    /// Nanoseconds of so many ticks.
    fn ns_of(&self, ticks: u64) -> u64 {
        let second = u128::from(self.clock.ticks_of(Duration::from_secs(1)).max(1));
        u64::try_from(u128::from(ticks) * 1_000_000_000 / second).unwrap_or(u64::MAX)
    }

    #[inline(never)]
    fn keep(
        &self,
        kind: OperationKind,
        (now, ticks): (u64, u64),
        perf: Vec<(PerfMetric, u64)>,
        family: Option<String>,
    ) {
        let now_us = self.clock.unix_us();
        let took_ns = self.ns_of(ticks);
        let operation = SlowOperation {
            kind,
            took: Duration::from_nanos(took_ns),
            began_unix_us: now_us.saturating_sub(took_ns / 1_000),
            thread: thread_id(),
            family,
            perf,
        };
        let mut state = self.state.lock();
        if state.limits.is_empty() {
            return;
        }
        self.turn(&mut state, now);
        let line = (ticks > state.line_above && state.lines < LINES).then(|| {
            state.lines += 1;
            operation.line(now_us)
        });
        let list = &mut state.running[kind as usize];
        let at = list.partition_point(|k| k.ticks >= ticks);
        if at < KEPT {
            list.truncate(KEPT - 1);
            list.insert(at, Kept { ticks, operation });
        }
        self.set_bar(&state, kind);
        drop(state);
        if let Some(line) = line {
            self.info_log
                .write(InfoLogLevel::Info, format_args!("{line}"));
        }
    }

    /// Begins a window where the running one has ended: about once a second, so that no operation
    /// has to look.
    pub fn tick(&self) {
        if self.is_asked() && self.ticks() > self.window_end.load(Relaxed) {
            let mut state = self.state.lock();
            self.turn(&mut state, self.ticks());
        }
    }

    /// Begins a window where the running one has ended.
    fn turn(&self, state: &mut State, now: u64) {
        let (end, window) = (self.window_end.load(Relaxed), self.clock.ticks_of(WINDOW));
        if now <= end {
            return;
        }
        state.before = std::mem::take(&mut state.running);
        if now - end > window {
            state.before = Window::default();
        }
        state.lines = 0;
        self.window_end.store(now.saturating_add(window), Relaxed);
        for kind in OperationKind::ALL {
            self.set_bar(state, kind);
        }
    }

    /// The slowest operations of the last five to ten minutes: of each kind 32 at most, the slowest
    /// first.
    pub fn slowest(&self) -> Vec<SlowOperation> {
        let mut state = self.state.lock();
        self.turn(&mut state, self.ticks());
        let mut out = Vec::new();
        for (running, before) in state.running.iter().zip(&state.before) {
            let mut both: Vec<&Kept> = running.iter().chain(before).collect();
            both.sort_by_key(|k| std::cmp::Reverse(k.ticks));
            out.extend(both.iter().take(KEPT).map(|k| k.operation.clone()));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::{PerfLevel, perf_count_write, set_perf_level};
    use esker_files::table::{ReadFigure, add_read_work, count_down, mark_read_work};

    /// A clock that is set.
    #[derive(Debug, Default)]
    struct Hand(AtomicU64);

    impl Clock for Hand {
        fn now_us(&self) -> u64 {
            self.now_ns() / 1_000
        }
        fn now_ns(&self) -> u64 {
            self.0.load(Relaxed)
        }
        fn unix_us(&self) -> u64 {
            1_000_000 + self.now_us()
        }
        fn sleep(&self, duration: Duration) {
            let ns = u64::try_from(duration.as_nanos()).expect("short");
            self.0.fetch_add(ns, Relaxed);
        }
    }

    fn record() -> (Arc<Hand>, OperationRecord) {
        let clock = Arc::new(Hand::default());
        clock.sleep(Duration::from_secs(1));
        let silent = Arc::new(InfoLog::silent(&esker_env::Env::in_memory()));
        let record = OperationRecord::new(Arc::clone(&clock) as Arc<dyn Clock>, silent);
        (clock, record)
    }

    fn get(clock: &Hand, record: &OperationRecord, us: u64) {
        let start = record.begin_read();
        count_down(0, 61);
        clock.sleep(Duration::from_micros(us));
        mark_read_work();
        add_read_work([(ReadFigure::DataBlocksRead, us)]);
        if let Some(start) = start {
            record.end(OperationKind::Get, start, || Some("users".to_owned()));
        }
    }

    fn times(record: &OperationRecord) -> Vec<u128> {
        let slowest = record.slowest();
        slowest.iter().map(|o| o.took.as_micros()).collect()
    }

    #[test]
    fn nothing_is_kept_unless_somebody_asks() {
        let (clock, record) = record();
        get(&clock, &record, 7);
        assert!(record.slowest().is_empty() && !record.is_asked());
        record.ask(None);
        record.ask(None);
        get(&clock, &record, 8);
        record.unask(None);
        assert_eq!(times(&record), [8]);
        record.unask(None);
        get(&clock, &record, 9);
        record.ask(None);
        assert!(record.slowest().is_empty());
    }

    #[test]
    fn the_slowest_are_kept_in_order_with_their_own_figures() {
        let (clock, record) = record();
        set_perf_level(PerfLevel::EnableCount);
        record.ask(None);
        for n in 0..1_000_u64 {
            get(&clock, &record, 1 + n * 7_919 % 1_000);
        }
        let expected: Vec<u128> = (1..=1_000).rev().take(KEPT).collect();
        assert_eq!(times(&record), expected);
        let first = &record.slowest()[0];
        assert_eq!(first.perf_text(), "block_read_count = 1000");
        assert_eq!(first.family.as_deref(), Some("users"));
        assert_eq!(first.kind, OperationKind::Get);
        assert_eq!(first.thread, thread_id());
        let ended_us = first.began_unix_us + 1_000;
        assert!((2_001_000..=clock.unix_us()).contains(&ended_us));
    }

    #[test]
    fn what_is_older_than_two_windows_goes() {
        let (clock, record) = record();
        record.ask(None);
        for us in 100..200 {
            get(&clock, &record, us);
        }
        clock.sleep(WINDOW);
        record.tick();
        get(&clock, &record, 5);
        assert_eq!(times(&record)[..2], [199, 198]);
        clock.sleep(WINDOW);
        record.tick();
        get(&clock, &record, 6);
        assert_eq!(times(&record), [6, 5]);
        clock.sleep(WINDOW * 3);
        assert!(record.slowest().is_empty());
    }

    #[test]
    fn writes_have_their_own_figures() {
        let (clock, record) = record();
        record.ask(None);
        perf_count_write(PerfMetric::WriteDelayTime, 5);
        let start = record.begin_write().expect("asked");
        perf_count_write(PerfMetric::WriteDelayTime, 70);
        clock.sleep(Duration::from_micros(1));
        record.end(OperationKind::Write, start, || None);
        let slowest = record.slowest();
        assert_eq!(slowest[0].perf_text(), "write_delay_time = 70");
        assert_eq!(slowest[0].family, None);
    }
}
