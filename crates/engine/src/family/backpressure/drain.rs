//! How fast background work takes away what writers bring: what the pace of writers follows.
//!
//! A job says every thousand entries how far it is. So what waits is known between installs, in
//! fractions of a memtable and of a level 0 table, and not only by counting whole ones.
//! Thread-safety: atomics; figures read together may be a moment apart.

use crate::family::Family;
use crate::options::{CompactionStyle, FamilyOptions};
use esker_format::Level;
use esker_lsm::load::StackFill;
use esker_lsm::plan::{Plan, PlanKind};
use esker_lsm::version::Version;
use esker_sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use esker_sync::{Arc, Mutex, Rank, Weak};

/// One table of level 0, in the unit of [`DrainStats::level0_done`].
const TABLE: u64 = 1 << 20;

/// The bytes of all tables, divided by this, are what level 0 may hold before its bytes count, not
/// only the number of its tables.
const TREE_PER_LEVEL0: u64 = 2;

/// The bytes above which a table of level 0 counts for more than one: merging tables within level 0
/// takes them away, as for reads, as long as what lies there stays below its share of the tree.
fn full_table(version: &Version, options: &FamilyOptions) -> u64 {
    let stop = u64::try_from(options.level0_stop_writes_trigger).unwrap_or(0);
    let share = version.bytes() / TREE_PER_LEVEL0 / stop.max(1);
    share.max(options.write_buffer_size as u64).max(1)
}

/// What a table of level 0 counts for.
fn weight(bytes: u64, full: u64) -> u64 {
    let exact = u128::from(bytes) * u128::from(TABLE) / u128::from(full);
    u64::try_from(exact).unwrap_or(u64::MAX).max(TABLE)
}

/// How full level 0 is, in tables. Runs of a universal tree are of any size: each is one.
pub(super) fn level0_of(version: &Version, options: &FamilyOptions) -> f64 {
    if options.compaction_style == CompactionStyle::Universal {
        return version.sorted_runs() as f64;
    }
    let full = full_table(version, options);
    let files = version.level(Level::L0).files().iter();
    let weights = files.map(|f| weight(f.size, full) as f64);
    weights.sum::<f64>() / TABLE as f64
}

/// Running compactions that end with fewer tables at level 0.
#[derive(Debug)]
struct Merges(Mutex<Vec<Weak<Progress>>>);

impl Default for Merges {
    fn default() -> Self {
        Merges(Mutex::new(Rank::LEAF, Vec::new()))
    }
}

/// The counters of one family.
#[derive(Debug, Default)]
pub(crate) struct DrainStats {
    /// Bytes of entries that running flushes took out of memtables.
    flushed: AtomicU64,
    /// Bytes of memtables a second of one flush while it wrote, of the last ones; 0 before the
    /// first. What they waited for the disk is not in it: meanwhile the next one writes.
    flush_rate: AtomicU64,
    /// Flushes that write.
    flushes: AtomicUsize,
    /// How many tables of level 0 running compactions have merged, by weight.
    level0_done: AtomicU64,
    /// Tables of level 0 that running compactions have taken.
    level0_taken: AtomicUsize,
    /// Bytes of entries that ever left level 0.
    level0_drained: AtomicU64,
    /// Compactions that run, of any level, and the bytes that they may take beside their inputs.
    compactions: AtomicUsize,
    projected_output: AtomicU64,
    /// Those of them that take tables from level 0.
    merges: Merges,
    /// Bytes that compactions owe the tree.
    debt: AtomicU64,
    stack: RunStack,
}

/// The stack of runs of a tree that cannot keep up, as it was when that was last looked at.
#[derive(Debug, Default)]
struct RunStack {
    above: AtomicU64,
    /// 0 where there is none.
    room: AtomicU64,
    /// What of it running compactions have brought to the last level.
    done: AtomicU64,
    /// Bytes of entries that ever left it for the last level, or were dropped by merges within it.
    drained: AtomicU64,
}

impl DrainStats {
    /// Bytes of `waiting` (of all memtables that wait) that no flush has written yet.
    pub(crate) fn left_to_flush(&self, waiting: u64) -> u64 {
        waiting.saturating_sub(self.flushed.load(Relaxed))
    }

    /// Bytes of memtables that a second of flushing takes, by as many flushes as write now; 0 when
    /// none has shown it.
    pub(crate) fn flush_rate(&self) -> u64 {
        let flushes = self.flushes.load(Relaxed).max(1) as u64;
        self.flush_rate.load(Relaxed).saturating_mul(flushes)
    }

    /// A flush wrote `bytes` of memtables in `took_us`.
    fn flushed(&self, bytes: u64, took_us: u64) {
        let rate = bytes.saturating_mul(1_000_000) / took_us.max(1);
        let before = self.flush_rate.load(Relaxed);
        // Half of it is the last flush: their speed changes with what else runs.
        let smooth = if before == 0 {
            rate
        } else {
            rate.midpoint(before)
        };
        self.flush_rate.store(smooth.max(1), Relaxed);
    }

    /// What of level 0 is as good as merged, of what the tree still has, in tables.
    pub(crate) fn level0_done(&self) -> f64 {
        self.level0_done.load(Relaxed) as f64 / TABLE as f64
    }

    /// Tables of level 0 that running compactions have taken.
    pub(crate) fn level0_taken(&self) -> usize {
        self.level0_taken.load(Relaxed)
    }

    /// Bytes of entries that left level 0 since the database was opened.
    pub(crate) fn level0_drained(&self) -> u64 {
        self.level0_drained.load(Relaxed)
    }

    /// Bytes that compactions owe the tree, as it was when that was last looked at.
    pub(crate) fn debt(&self) -> u64 {
        self.debt.load(Relaxed)
    }

    pub(crate) fn set_debt(&self, bytes: u64) {
        self.debt.store(bytes, Relaxed);
    }

    pub(crate) fn set_stack(&self, fill: Option<StackFill>) {
        let StackFill { above, room } = fill.unwrap_or_default();
        self.stack.above.store(above, Relaxed);
        self.stack.room.store(room, Relaxed);
    }

    /// Bytes of entries that left stacks of runs since the database was opened.
    pub(crate) fn stack_drained(&self) -> u64 {
        self.stack.drained.load(Relaxed)
    }

    /// The stack of runs without what is merged of it; none where the tree has none.
    pub(crate) fn stack(&self) -> Option<StackFill> {
        let room = self.stack.room.load(Relaxed);
        let above = (self.stack.above.load(Relaxed)).saturating_sub(self.stack.done.load(Relaxed));
        (room > 0).then_some(StackFill { above, room })
    }

    /// Microseconds until the first of the compactions that take tables from level 0 ends, if all
    /// goes on as it did; none when none has begun.
    pub(crate) fn level0_relief_us(&self, now_us: u64) -> Option<u64> {
        let merges = self.merges.0.lock();
        let running = merges.iter().filter_map(Weak::upgrade);
        running.filter_map(|merge| merge.left_us(now_us)).min()
    }

    /// Bytes that running compactions may write beside what they read.
    pub(crate) fn projected_output(&self) -> u64 {
        self.projected_output.load(Relaxed)
    }

    /// Whether a compaction of the family runs.
    pub(crate) fn is_compacting(&self) -> bool {
        self.compactions.load(Relaxed) > 0
    }
}

/// What a job takes away.
#[derive(Clone, Copy, Debug)]
enum DrainSource {
    Memtables,
    /// Level 0 in tables, by weight and in bytes of entries. Under universal compaction
    /// all but one of the runs, each as large as a memtable: that is what writers may bring
    /// instead.
    Level0 {
        tables: usize,
        weight: u64,
        bytes: u64,
    },
    /// From a stack of runs to the last level, in bytes of tables and of entries.
    RunStack {
        size: u64,
        bytes: u64,
    },
    /// From levels that hold no writer back by themselves.
    Deeper,
    /// Files change their level unread: that says nothing about how fast merging is.
    Move,
}

impl DrainSource {
    /// What a compaction that merges takes away.
    fn of(plan: &Plan, version: &Version, options: &FamilyOptions, is_stack: bool) -> DrainSource {
        let last = plan.output_level;
        if is_stack && last.index() + 1 == version.num_levels() {
            let above = plan.files().filter(|(level, _)| *level < last);
            let sums = above.fold((0, 0), |n, (_, f)| (n.0 + f.size, n.1 + f.raw_bytes()));
            let (size, bytes) = sums;
            return DrainSource::RunStack { size, bytes };
        }
        let (tables, weight, bytes) = match options.compaction_style {
            CompactionStyle::Universal => Self::runs(plan, options),
            _ => Self::tables(plan, version, options),
        };
        match weight {
            0 => DrainSource::Deeper,
            weight => DrainSource::Level0 {
                tables,
                weight,
                bytes,
            },
        }
    }

    fn tables(plan: &Plan, version: &Version, options: &FamilyOptions) -> (usize, u64, u64) {
        let full = full_table(version, options);
        let level0 = plan.files().filter(|(level, _)| *level == Level::L0);
        let (mut tables, mut taken, mut size, mut bytes) = (0, 0, 0, 0);
        for (_, f) in level0 {
            tables += 1;
            taken += weight(f.size, full);
            size += f.size;
            bytes += f.raw_bytes();
        }
        if plan.output_level == Level::L0 {
            // It stays, in one table.
            return (tables, taken.saturating_sub(weight(size, full)), 0);
        }
        (tables, taken, bytes)
    }

    fn runs(plan: &Plan, options: &FamilyOptions) -> (usize, u64, u64) {
        let runs = plan.runs();
        let gone = runs.saturating_sub(1) as u64;
        (runs, gone * TABLE, gone * options.write_buffer_size as u64)
    }
}

/// What a compaction merges.
#[derive(Clone, Copy, Debug, Default)]
struct Merge {
    began_us: u64,
    /// Bytes of tables that it may take beside its inputs.
    projected_output: u64,
    /// Bytes of entries that go through it.
    bytes: u64,
    /// All of it stays in a stack of runs, but for the entries that it drops.
    stays: bool,
}

/// How far one job is. What it has counted is taken back when it ends: then the view says it.
#[derive(Debug)]
pub(crate) struct Progress {
    family: Arc<Family>,
    taking: DrainSource,
    /// Nothing for jobs that merge nothing.
    merge: Merge,
    /// Bytes of entries that went through the job.
    done: AtomicU64,
    /// It is a flush that has written everything.
    is_written: AtomicBool,
}

impl Progress {
    pub(crate) fn of_flush(family: &Arc<Family>) -> Arc<Progress> {
        family.drain.flushes.fetch_add(1, Relaxed);
        Self::of(family, DrainSource::Memtables, Merge::default())
    }

    /// Of a compaction that begins at `now_us` of the clock.
    pub(crate) fn of_compaction(family: &Arc<Family>, plan: &Plan, now_us: u64) -> Arc<Progress> {
        if plan.kind == PlanKind::TrivialMove {
            return Self::of(family, DrainSource::Move, Merge::default());
        }
        family.drain.compactions.fetch_add(1, Relaxed);
        let is_stack = family.drain.stack().is_some();
        let view = family.view_guard();
        let taking = DrainSource::of(plan, &view.version, &family.options.load(), is_stack);
        let merge = Merge {
            began_us: now_us,
            projected_output: plan.room_needed(),
            bytes: plan.files().map(|(_, f)| f.raw_bytes()).sum(),
            stays: is_stack && !matches!(taking, DrainSource::RunStack { .. }),
        };
        let progress = Self::of(family, taking, merge);
        if let DrainSource::Level0 { tables, .. } = taking {
            family.drain.level0_taken.fetch_add(tables, Relaxed);
            let mut merges = family.drain.merges.0.lock();
            merges.retain(|merge| merge.strong_count() > 0);
            merges.push(Arc::downgrade(&progress));
        }
        progress
    }

    fn of(family: &Arc<Family>, taking: DrainSource, merge: Merge) -> Arc<Progress> {
        family
            .drain
            .projected_output
            .fetch_add(merge.projected_output, Relaxed);
        Arc::new(Progress {
            family: Arc::clone(family),
            taking,
            merge,
            done: AtomicU64::new(0),
            is_written: AtomicBool::new(false),
        })
    }

    /// What `done` of the merge's bytes is of `whole`.
    fn part(&self, whole: u64, done: u64) -> u64 {
        let of = self.merge.bytes;
        let done = u128::from(done.min(of));
        u64::try_from(u128::from(whole) * done / u128::from(of.max(1))).unwrap_or(whole)
    }

    /// What an ended merge has not told of `whole`. One that failed early has taken nothing away.
    fn remaining_at_end(&self, whole: u64, done: u64) -> u64 {
        let ended = done >= self.merge.bytes / 2;
        u64::from(ended) * (whole - self.part(whole, done))
    }

    /// How much longer a merge of level 0 will take.
    fn left_us(&self, now_us: u64) -> Option<u64> {
        let DrainSource::Level0 { .. } = self.taking else {
            return None;
        };
        let Merge {
            began_us, bytes, ..
        } = self.merge;
        let done = self.done.load(Relaxed).min(bytes);
        let left = u128::from(now_us.saturating_sub(began_us)) * u128::from(bytes - done);
        u64::try_from(left.checked_div(u128::from(done))?).ok()
    }

    /// The flush wrote `bytes` of memtables in `took_us`, which is all of it.
    pub(crate) fn written(&self, bytes: u64, took_us: u64) {
        self.family.drain.flushed(bytes, took_us);
        self.ends_writing();
    }

    fn ends_writing(&self) {
        if !self.is_written.swap(true, Relaxed) {
            self.family.drain.flushes.fetch_sub(1, Relaxed);
        }
    }

    /// The compaction is installed and wrote that many bytes of entries. What a merge within a
    /// stack of runs dropped drains that.
    pub(crate) fn wrote(&self, bytes: u64) {
        if self.merge.stays {
            let dropped = self.merge.bytes.saturating_sub(bytes);
            self.family.drain.stack.drained.fetch_add(dropped, Relaxed);
        }
    }

    /// This many bytes of entries more went through.
    pub(crate) fn advance(&self, bytes: u64) {
        let before = self.done.fetch_add(bytes, Relaxed);
        let drain = &self.family.drain;
        let share = |whole| self.part(whole, before + bytes) - self.part(whole, before);
        match self.taking {
            DrainSource::Memtables => {
                drain.flushed.fetch_add(bytes, Relaxed);
            }
            DrainSource::Level0 {
                weight, bytes: all, ..
            } => {
                drain.level0_done.fetch_add(share(weight), Relaxed);
                drain.level0_drained.fetch_add(share(all), Relaxed);
            }
            DrainSource::RunStack { size, bytes: all } => {
                drain.stack.done.fetch_add(share(size), Relaxed);
                drain.stack.drained.fetch_add(share(all), Relaxed);
            }
            DrainSource::Deeper | DrainSource::Move => {}
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let done = self.done.load(Relaxed);
        let drain = &self.family.drain;
        drain
            .projected_output
            .fetch_sub(self.merge.projected_output, Relaxed);
        match self.taking {
            DrainSource::Memtables => {
                drain.flushed.fetch_sub(done, Relaxed);
                self.ends_writing();
            }
            DrainSource::Level0 {
                tables,
                weight,
                bytes,
            } => {
                drain.level0_taken.fetch_sub(tables, Relaxed);
                drain
                    .level0_done
                    .fetch_sub(self.part(weight, done), Relaxed);
                drain
                    .level0_drained
                    .fetch_add(self.remaining_at_end(bytes, done), Relaxed);
            }
            DrainSource::RunStack { size, bytes } => {
                drain.stack.done.fetch_sub(self.part(size, done), Relaxed);
                drain
                    .stack
                    .drained
                    .fetch_add(self.remaining_at_end(bytes, done), Relaxed);
            }
            DrainSource::Deeper | DrainSource::Move => {}
        }
        if !matches!(self.taking, DrainSource::Memtables | DrainSource::Move) {
            drain.compactions.fetch_sub(1, Relaxed);
        }
    }
}
