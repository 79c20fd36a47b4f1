//! Writers in front of a tree of numbers: pickers, load and pace together, in time that only
//! counts.
//!
//! A machine has compactions and a flush of a fixed speed each; writers offer a rate and get what
//! the pace leaves them of it. Two memtables may wait to be flushed. What it leaves out: the time
//! that writes take, syncs, and other families.

use super::{Forecast, RunningCompaction, Workload, WriteOrder};
use crate::assessment::Assessment;
use crate::load::{Load, StallTriggers, Zone};
use crate::pace::{Pace, Reading, WriterLimits};
use crate::pick::Policy;
use crate::relief::Relief;
use crate::space::PendingSpace;
use esker_format::FileNo;
use esker_status::Result;
use std::collections::{HashMap, VecDeque};

/// Seconds between two looks at the tree.
const STEP_S: f64 = 0.02;
/// Memtables that may wait to be flushed.
const MEMTABLES: usize = 2;
/// Bytes of an entry: a key of 20, a value of 400, and what a table adds.
const ENTRY_BYTES: u64 = 432;
/// The drain to begin with, in bytes a second: RocksDB's `delayed_write_rate`.
const FIRST_DRAIN: f64 = 16e6;

/// Speeds of a machine, in bytes a second, and how many compactions it runs at once.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Brought by writers that nothing holds back.
    pub offered: f64,
    /// Read by one compaction.
    pub compaction: f64,
    /// Taken from memtables by a flush.
    pub flush: f64,
    /// Compactions at once.
    pub jobs: usize,
}

/// One second of writers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Second {
    /// Bytes that they brought.
    pub written: f64,
    /// The part of it in which nobody could write.
    pub stopped: f64,
    /// The part of it in which writers got less than they offered.
    pub paced: f64,
    /// Tables of level 0 at its end, as triggers count them.
    pub tables: usize,
    /// The load of the tree at its end.
    pub load: Load,
    /// The mean load that writers are paced by.
    pub mean_load: f64,
    /// The most bytes that tables took meanwhile, those that are being written included.
    pub taken: f64,
}

/// A compaction that runs.
#[derive(Clone, Copy, Debug)]
struct Merge {
    began_us: u64,
    bytes: f64,
    /// The part of it that is done.
    done: f64,
    relief: Option<Relief>,
}

/// Writers, memtables and compactions of one tree.
pub struct PacedForecast {
    tree: Forecast,
    machine: Machine,
    triggers: StallTriggers,
    pace: Pace,
    filled: f64,
    waiting: VecDeque<f64>,
    drained: f64,
    /// By the first of their input files.
    merges: HashMap<FileNo, Merge>,
    assessment: Assessment,
    files: u64,
}

impl std::fmt::Debug for PacedForecast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PacedForecast")
            .field("machine", &self.machine)
            .field("tree", &self.tree)
            .finish_non_exhaustive()
    }
}

impl PacedForecast {
    /// A tree with every key once in its last level; they are overwritten at random.
    pub fn new(policy: Policy, keys: u64, machine: Machine) -> Result<PacedForecast> {
        let load = Workload {
            keys,
            entry_bytes: ENTRY_BYTES,
            flush_bytes: policy.write_buffer_size,
            order: WriteOrder::AtRandom,
            service: 0.0,
            jobs: machine.jobs,
            level0_stop: usize::MAX,
            rests: false,
        };
        let triggers = policy.stall_triggers.with_memtables(MEMTABLES, 1);
        let mut tree = Forecast::new(policy, 7, load);
        tree.fill()?;
        Ok(PacedForecast {
            assessment: Assessment::of(&tree.version, &tree.policy),
            files: tree.next_file,
            tree,
            machine,
            triggers,
            pace: Pace::default(),
            filled: 0.0,
            waiting: VecDeque::new(),
            drained: 0.0,
            merges: HashMap::new(),
        })
    }

    /// The tree as it is.
    pub fn tree(&self) -> &Forecast {
        &self.tree
    }

    /// Lets writers and compactions go on for so many seconds.
    pub fn run(&mut self, seconds: usize) -> Result<Vec<Second>> {
        let steps = (1.0 / STEP_S) as usize;
        let memtable = self.tree.load.flush_bytes as f64;
        let limits = WriterLimits {
            compaction: f64::from(self.tree.policy.level0_file_num_compaction_trigger),
            triggers: self.triggers,
            memtable,
        };
        let mut out = Vec::new();
        for second in 0..seconds {
            let (mut written, mut stopped, mut paced) = (0.0, 0.0, 0.0);
            let mut taken: f64 = 0.0;
            for step in 0..steps {
                let now_us = ((second * steps + step) as f64 * STEP_S * 1e6) as u64;
                let now = self.reading(now_us);
                let rate = self.pace.limit(&now, &limits, FIRST_DRAIN).bytes_per_s;
                self.tree.paced = Zone::of(self.pace.load());
                let runs = self.triggers.level0.load(now.tables as f64);
                let is_full = now.is_compacting && Zone::of(now.space) == Zone::Stop;
                let is_stopped = is_full || Zone::of(runs) == Zone::Stop;
                let rate = if is_stopped { 0.0 } else { rate };
                let brought = (rate.min(self.machine.offered) * STEP_S).min(memtable - self.filled);
                self.filled += brought;
                written += brought;
                stopped += f64::from(u8::from(brought <= 0.0)) * STEP_S;
                paced += f64::from(u8::from(rate < self.machine.offered)) * STEP_S;
                self.flush()?;
                self.tree.beside = self.beside();
                self.compact(now_us)?;
                taken = taken.max(self.taken());
            }
            self.assess();
            out.push(Second {
                written,
                stopped,
                paced,
                tables: self.assessment.tables,
                load: self.assessment.load,
                mean_load: self.pace.load(),
                taken,
            });
        }
        Ok(out)
    }

    /// Bytes in memtables.
    fn beside(&self) -> PendingSpace {
        let waiting = self.waiting.len() as u64 * self.tree.load.flush_bytes;
        PendingSpace {
            memtables: waiting + self.filled as u64,
            ..PendingSpace::default()
        }
    }

    /// Bytes of all tables, with what flushes and compactions have written.
    fn taken(&self) -> f64 {
        let memtable = self.tree.load.flush_bytes as f64;
        let flushed = self.waiting.front().map_or(0.0, |left| memtable - left);
        let written = |job: &RunningCompaction| {
            let (_, first) = job.plan.files().next()?;
            let done = self.merges.get(&first.number)?.done;
            Some(job.plan.room_needed() as f64 * done)
        };
        let merged: f64 = self.tree.running.iter().filter_map(written).sum();
        self.tree.version.bytes() as f64 + flushed + merged
    }

    /// Bytes that running compactions may write.
    fn projected_output(&self) -> u64 {
        let jobs = self.tree.running.iter();
        jobs.map(|job| job.plan.room_needed()).sum()
    }

    /// Looks at the tree again if it has changed: each change makes a file, but for moves, which
    /// change little.
    fn assess(&mut self) {
        if self.files != self.tree.next_file {
            self.files = self.tree.next_file;
            self.assessment = Assessment::of(&self.tree.version, &self.tree.policy);
        }
    }

    fn reading(&mut self, now_us: u64) -> Reading {
        self.assess();
        let tree = &self.assessment;
        let mut now = Reading {
            now_us,
            filled: self.filled as u64,
            waiting: self.waiting.len(),
            left: self.waiting.iter().sum::<f64>() as u64,
            flush_rate: self.machine.flush as u64,
            level0: tree.level0,
            stack: tree.stack,
            tables: tree.tables,
            idle: tree.tables,
            is_compaction_free: self.merges.len() < self.machine.jobs,
            drained: self.drained as u64,
            is_compacting: !self.merges.is_empty(),
            debt: tree.pending_compaction_bytes,
            space: (tree.space.as_ref()).map_or(0.0, |space| {
                space.load(self.beside(), self.projected_output())
            }),
            ..Reading::default()
        };
        for (merge, relief) in self.merges.values().filter_map(|m| Some((m, m.relief?))) {
            now.level0 -= relief.level0 * merge.done;
            now.stack = now
                .stack
                .map(|part| (part - relief.stack * merge.done).max(0.0));
            now.idle = now.idle.saturating_sub(relief.tables);
            if relief.tables > 0 && merge.done > 0.0 {
                let took_us = (now_us - merge.began_us) as f64;
                let left_us = (took_us * (1.0 - merge.done) / merge.done) as u64;
                now.relief_us = Some(now.relief_us.map_or(left_us, |us| us.min(left_us)));
            }
        }
        now
    }

    fn flush(&mut self) -> Result<()> {
        let memtable = self.tree.load.flush_bytes as f64;
        if self.filled >= memtable && self.waiting.len() < MEMTABLES {
            self.waiting.push_back(memtable);
            self.filled = 0.0;
        }
        let Some(left) = self.waiting.front_mut() else {
            return Ok(());
        };
        *left -= self.machine.flush * STEP_S;
        if *left <= 0.0 {
            self.waiting.pop_front();
            let entries = self.tree.load.flush_bytes / self.tree.load.entry_bytes;
            self.tree.flush(entries)?;
            self.tree.look();
        }
        Ok(())
    }

    fn compact(&mut self, now_us: u64) -> Result<()> {
        self.tree.start()?;
        let Forecast {
            version,
            policy,
            running,
            ..
        } = &mut self.tree;
        for job in running {
            let Some((_, first)) = job.plan.files().next() else {
                continue;
            };
            let merge = self.merges.entry(first.number).or_insert_with(|| Merge {
                began_us: now_us,
                bytes: job.left,
                done: 0.0,
                relief: Relief::of(&job.plan, version, policy, self.assessment.stack_room),
            });
            let read = (self.machine.compaction * STEP_S).min(job.left);
            job.left -= read;
            let part = read / merge.bytes;
            merge.done += part;
            self.drained += merge
                .relief
                .map_or(0.0, |relief| relief.bytes as f64 * part);
        }
        while let Some(at) = self.tree.running.iter().position(|job| job.left < 1.0) {
            let done = self.tree.running.swap_remove(at);
            if let Some((_, first)) = done.plan.files().next() {
                self.merges.remove(&first.number);
            }
            self.tree.finish(done)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
