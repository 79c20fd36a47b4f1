//! Writers in front of a tree of numbers: pickers, load and pace together, in time that only
//! counts.
//!
//! A machine has compactions and a flush of a fixed speed each; writers offer a rate and get what
//! the pace leaves them of it.

use super::super::{Forecast, Workload, WriteOrder};
use crate::assessment::Assessment;
use crate::load::{StallTriggers, Zone};
use crate::pace::{Pace, Reading, WriterLimits};
use crate::pick::{CompactionStyle, Policy};
use crate::relief::Relief;
use esker_format::FileNo;
use esker_status::Result;
use std::collections::{HashMap, VecDeque};

const MB: f64 = 1e6;
const MIB: u64 = 1 << 20;
const STEP_S: f64 = 0.02;
const MEMTABLES: usize = 2;

/// Bytes a second.
#[derive(Clone, Copy, Debug)]
struct Machine {
    /// Brought by writers that nothing holds back.
    offered: f64,
    /// Read by one compaction.
    compaction: f64,
    /// Taken from memtables by a flush.
    flush: f64,
}

/// One second of writers.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    written: f64,
    /// The part of it in which nobody could write.
    stopped: f64,
    /// The part of it in which writers got less than they offered.
    paced: f64,
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
struct Store {
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

impl Store {
    fn new(policy: Policy, keys: u64, jobs: usize, machine: Machine) -> Result<Store> {
        let load = Workload {
            keys,
            entry_bytes: 432,
            flush_bytes: policy.write_buffer_size,
            order: WriteOrder::AtRandom,
            service: 0.0,
            jobs,
            level0_stop: usize::MAX,
            rests: false,
        };
        let triggers = policy.stall_triggers.with_memtables(MEMTABLES, 1);
        let mut tree = Forecast::new(policy, 7, load);
        tree.fill()?;
        Ok(Store {
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

    fn run(&mut self, seconds: usize) -> Result<Vec<Second>> {
        let steps = (1.0 / STEP_S) as usize;
        let memtable = self.tree.load.flush_bytes as f64;
        let limits = WriterLimits {
            compaction: f64::from(self.tree.policy.level0_file_num_compaction_trigger),
            triggers: self.triggers,
            memtable,
        };
        let mut out = Vec::new();
        for second in 0..seconds {
            let mut seen = Second::default();
            for step in 0..steps {
                let now_us = ((second * steps + step) as f64 * STEP_S * 1e6) as u64;
                let now = self.reading(now_us);
                let rate = self.pace.limit(&now, &limits, 16.0 * MB).bytes_per_s;
                self.tree.paced = Zone::of(self.pace.load());
                let is_stopped = self.triggers.level0.load(now.tables as f64) >= 2.0;
                let rate = if is_stopped { 0.0 } else { rate };
                let brought = (rate.min(self.machine.offered) * STEP_S).min(memtable - self.filled);
                self.filled += brought;
                seen.written += brought;
                seen.stopped += f64::from(u8::from(brought <= 0.0)) * STEP_S;
                seen.paced += f64::from(u8::from(rate < self.machine.offered)) * STEP_S;
                self.flush()?;
                self.compact(now_us)?;
            }
            out.push(seen);
        }
        Ok(out)
    }

    fn reading(&mut self, now_us: u64) -> Reading {
        // Each change of the tree makes a file, but for moves, which change little.
        if self.files != self.tree.next_file {
            self.files = self.tree.next_file;
            self.assessment = Assessment::of(&self.tree.version, &self.tree.policy);
        }
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
            is_compaction_free: self.merges.len() < self.tree.load.jobs,
            drained: self.drained as u64,
            is_compacting: !self.merges.is_empty(),
            debt: tree.pending_compaction_bytes,
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

fn policy(style: CompactionStyle, memtable: u64) -> Policy {
    Policy {
        compaction_style: style,
        write_buffer_size: memtable,
        target_file_size_base: memtable,
        max_bytes_for_level_base: 4 * memtable,
        ..Policy::default()
    }
}

fn mean(of: impl Iterator<Item = f64> + Clone) -> f64 {
    of.clone().sum::<f64>() / of.count().max(1) as f64
}

/// The shapes of overloaded trees: name, style, keys, bytes of a memtable, compactions at once and
/// their speed, and the least rate and the most variation of it that there should be.
type Shape = (
    &'static str,
    CompactionStyle,
    u64,
    u64,
    usize,
    f64,
    f64,
    f64,
);

const SHAPES: &[Shape] = &[
    (
        "4 GB",
        CompactionStyle::Level,
        10_000_000,
        64,
        1,
        200.0,
        55.0,
        0.2,
    ),
    (
        "4 GB, two",
        CompactionStyle::Level,
        10_000_000,
        64,
        2,
        100.0,
        45.0,
        0.3,
    ),
    (
        "4 GB, small",
        CompactionStyle::Level,
        10_000_000,
        16,
        2,
        150.0,
        58.0,
        0.3,
    ),
    (
        "4 GB, slow",
        CompactionStyle::Level,
        10_000_000,
        16,
        1,
        80.0,
        18.0,
        0.5,
    ),
    (
        "0.4 GB",
        CompactionStyle::Level,
        1_000_000,
        64,
        2,
        150.0,
        120.0,
        0.1,
    ),
    (
        "universal",
        CompactionStyle::Universal,
        10_000_000,
        16,
        2,
        150.0,
        48.0,
        0.6,
    ),
];

#[test]
fn writers_of_overloaded_trees_never_stand_still() -> Result<()> {
    for &(name, style, keys, memtable, jobs, speed, least, most_varied) in SHAPES {
        let machine = Machine {
            offered: 400.0 * MB,
            compaction: speed * MB,
            flush: 250.0 * MB,
        };
        let mut store = Store::new(policy(style, memtable * MIB), keys, jobs, machine)?;
        let seconds = store.run(400)?;
        let settled = seconds[130..].iter();
        let rate = mean(settled.clone().map(|s| s.written / MB));
        let square = mean(settled.clone().map(|s| (s.written / MB - rate).powi(2)));
        let varied = square.sqrt() / rate;
        let stopped = seconds.iter().map(|s| s.stopped).sum::<f64>();
        let told = format!(
            "{name}: {rate:.1} MB/s, varied {varied:.3}, stopped {stopped:.2} s, runs {:.1}, \
             write amplification {:.2}, space {:.2}",
            store.tree.mean_runs(),
            store.tree.write_amplification(),
            store.tree.mean_space_amplification()
        );
        println!("{told}");
        assert!(stopped < 0.05, "{told}");
        assert!(rate > least && varied < most_varied, "{told}");
    }
    Ok(())
}

#[test]
fn writers_that_compactions_keep_up_with_go_freely() -> Result<()> {
    for (memtable, offered) in [(16, 30.0), (64, 60.0)] {
        let machine = Machine {
            offered: offered * MB,
            compaction: 150.0 * MB,
            flush: 250.0 * MB,
        };
        let policy = policy(CompactionStyle::Level, memtable * MIB);
        let mut store = Store::new(policy, 10_000_000, 2, machine)?;
        let seconds = store.run(400)?;
        let paced: f64 = seconds.iter().map(|s| s.paced).sum();
        assert!(paced < 4.0, "paced for {paced} s of 400");
    }
    Ok(())
}
