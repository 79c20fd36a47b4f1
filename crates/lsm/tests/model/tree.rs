//! A tree whose files hold real entries, and the plans that run on it.

use esker_format::{FileNo, InternalKey, KeyOrder, Level, Seq, ValueType};
use esker_lsm::check::{self, overtaking};
use esker_lsm::edit::{TreeEdit, apply};
use esker_lsm::file::{FileMeta, FileStats};
use esker_lsm::load::Zone;
use esker_lsm::pick::{CompactionPri, CompactionStyle, PickContext, Policy, WriterState, pick};
use esker_lsm::plan::{Busy, CompactionReason, LowerLevels, Plan, PlanKind, Ticket};
use esker_lsm::read_demand::ReadDemand;
use esker_lsm::shape::{draw, draw_plan};
use esker_lsm::space::PendingSpace;
use esker_lsm::version::Version;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

pub(crate) const ENTRY_BYTES: u64 = 1000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) key: u8,
    pub(crate) seq: u64,
    /// `None` is a deletion.
    pub(crate) value: Option<u64>,
}

/// A plan that runs.
pub(crate) struct Running {
    pub(crate) plan: Plan,
    ticket: Ticket,
    at_start: Arc<Version>,
    /// The caller of a manual compaction whose step it is.
    pub(crate) caller: Option<usize>,
}

pub(crate) struct Model {
    pub(crate) version: Arc<Version>,
    pub(crate) policy: Policy,
    pub(crate) busy: Busy,
    pub(crate) running: Vec<Running>,
    pub(crate) contents: HashMap<FileNo, Vec<Entry>>,
    pub(crate) truth: BTreeMap<u8, Option<u64>>,
    pub(crate) seq: u64,
    pub(crate) next_file: u64,
    pub(crate) epochs: bool,
    /// Checks runs and space of universal plans, which moves and ingestion change.
    pub(crate) checks_universal: bool,
    /// Flushes follow each other without a rest; a second passes with each.
    pub(crate) presses: bool,
    pub(crate) now: u64,
    /// Tells whether files are ingested, and how many plans were refused when they were done.
    pub(crate) ingests: bool,
    pub(crate) refused: usize,
}

impl Model {
    pub(crate) fn new(policy: Policy, epochs: bool) -> Self {
        Model {
            version: Arc::new(Version::empty(KeyOrder::Bytewise, 5)),
            policy,
            busy: Busy::new(),
            running: Vec::new(),
            contents: HashMap::new(),
            truth: BTreeMap::new(),
            seq: 0,
            next_file: 1,
            epochs,
            checks_universal: true,
            presses: false,
            now: 0,
            ingests: false,
            refused: 0,
        }
    }

    pub(crate) fn file(&mut self, entries: Vec<Entry>, epoch: u64) -> Arc<FileMeta> {
        let number = FileNo(self.next_file);
        self.next_file += 1;
        let (first, last) = (entries[0], entries[entries.len() - 1]);
        let kind = |e: &Entry| {
            if e.value.is_some() {
                ValueType::Value
            } else {
                ValueType::Deletion
            }
        };
        let meta = FileMeta {
            number,
            size: entries.len() as u64 * ENTRY_BYTES,
            smallest: InternalKey::new(&[first.key], Seq(first.seq), kind(&first)),
            largest: InternalKey::new(&[last.key], Seq(last.seq), kind(&last)),
            smallest_seq: Seq(entries.iter().map(|e| e.seq).min().expect("entries")),
            largest_seq: Seq(entries.iter().map(|e| e.seq).max().expect("entries")),
            epoch,
            file_creation_time: self.now,
            ..FileMeta::default()
        };
        let deletions = entries.iter().filter(|e| e.value.is_none()).count() as u64;
        let stats = FileStats {
            num_entries: entries.len() as u64,
            num_deletions: deletions,
            raw_value_size: entries.len() as u64 * ENTRY_BYTES,
            ..FileStats::default()
        };
        meta.stats.set(stats).expect("fresh");
        self.contents.insert(number, entries);
        Arc::new(meta)
    }

    pub(crate) fn install(&mut self, edit: TreeEdit) {
        let next = apply(&self.version, &[edit]).expect("plans lead to valid trees");
        check::verify(&next).expect("the checker agrees");
        self.version = Arc::new(next);
    }

    pub(crate) fn flush(&mut self, writes: &[(u8, bool)]) {
        let mut newest: BTreeMap<u8, Entry> = BTreeMap::new();
        for &(key, put) in writes {
            self.seq += 1;
            let value = put.then_some(self.seq);
            newest.insert(
                key,
                Entry {
                    key,
                    seq: self.seq,
                    value,
                },
            );
            self.truth.insert(key, value);
        }
        self.now += u64::from(self.presses);
        let epoch = if self.epochs {
            self.version.last_epoch() + 1
        } else {
            0
        };
        let file = self.file(newest.into_values().collect(), epoch);
        self.install(TreeEdit {
            added: vec![(Level::L0, file)],
            ..TreeEdit::default()
        });
    }

    pub(crate) fn moment(&self) -> PickContext {
        PickContext {
            now: self.now,
            oldest_snapshot: Seq(self.seq + 1),
            draining: !self.presses,
            paced: if self.presses { Zone::Near } else { Zone::Calm },
            writers: if self.presses {
                WriterState::Writing
            } else {
                WriterState::Resting
            },
            reads: ReadDemand::default(),
            beside: PendingSpace::default(),
        }
    }

    /// Starts what can be started; whether anything was.
    pub(crate) fn start(&mut self) -> bool {
        let Some(plan) = pick(&self.version, &self.policy, &self.busy, self.moment()) else {
            return false;
        };
        self.begin(plan);
        true
    }

    pub(crate) fn begin(&mut self, plan: Plan) {
        assert!(plan.files().next().is_some(), "an empty plan");
        for (level, f) in plan.files() {
            assert!(!self.busy.contains(f.number), "two plans take one file");
            assert_eq!(
                self.version.find_file(f.number).map(|(at, _)| at),
                Some(level)
            );
        }
        let (lo, hi) = plan.range(&KeyOrder::Bytewise).expect("inputs");
        assert!(
            !self
                .busy
                .writes_into(&KeyOrder::Bytewise, plan.output_level, lo, hi),
            "two write one range"
        );
        if self.checks_universal
            && self.policy.compaction_style == CompactionStyle::Universal
            && !plan.manual
        {
            self.check_runs(&plan);
            self.check_space(&plan);
        }
        let ticket = self.busy.register(&KeyOrder::Bytewise, &plan);
        self.running.push(Running {
            plan,
            ticket,
            at_start: self.version.clone(),
            caller: None,
        });
    }

    /// Whole runs that are merged are neighbours, and lie between what stays above and below them.
    fn check_runs(&self, plan: &Plan) {
        let taken = |f: &Arc<FileMeta>| plan.files().any(|(_, p)| p.number == f.number);
        let mut runs: Vec<(Level, &[Arc<FileMeta>])> = Vec::new();
        for (level, files) in (0u8..).map(Level).zip(self.version.levels()) {
            match level {
                Level::L0 => runs.extend(files.files().chunks(1).map(|f| (level, f))),
                _ if files.is_empty() => {}
                _ => runs.push((level, files.files())),
            }
        }
        // A slice takes files of the oldest run's level, or puts some there, and may happen to take
        // whole runs.
        let is_slice = self.policy.takes_slices()
            && plan.reason == CompactionReason::UniversalSizeAmplification
            && runs.last().map(|(level, _)| *level) == Some(plan.output_level);
        if is_slice || plan.reason == CompactionReason::FilesMarkedForCompaction {
            return;
        }
        let is_taken: Vec<bool> = runs.iter().map(|(_, f)| f.iter().all(taken)).collect();
        let first = is_taken.iter().position(|t| *t).expect("a run");
        let count = is_taken[first..].iter().take_while(|t| **t).count();
        let all = is_taken.iter().filter(|t| **t).count();
        assert_eq!(
            count,
            all,
            "{} in\n{}",
            draw_plan(Some(plan)),
            draw(&self.version)
        );
        let last = Level(self.version.num_levels() as u8 - 1);
        match runs.get(first + count) {
            None => assert_eq!(plan.output_level, last),
            Some((next, _)) => assert_eq!(plan.output_level.0, next.0.saturating_sub(1)),
        }
        assert!(runs[first].0 <= plan.output_level);
    }

    /// Tables and what running merges will write stay within the bound, unless nothing else runs.
    /// Lets the bound grow with what a merge into the oldest run adds to it: that is alive.
    fn check_space(&self, plan: &Plan) {
        let options = &self.policy.compaction_options_universal;
        let percent = u64::from(options.max_peak_size_amplification_percent);
        if percent == 0 || self.busy.is_empty() || plan.kind != PlanKind::Merge {
            return;
        }
        let trigger = u64::from(self.policy.level0_file_num_compaction_trigger);
        // As many as gather at the most.
        let memtables = 4 * trigger.max(2) * self.policy.write_buffer_size;
        if plan.files().all(|(level, _)| level == Level::L0) && plan.input_bytes() <= memtables {
            return;
        }
        let running = self.running.iter().map(|r| (&r.plan, r.at_start.clone()));
        let (mut peak, mut alive) = (self.version.bytes(), 0);
        for (merge, at_start) in running.chain([(plan, self.version.clone())]) {
            if merge.kind == PlanKind::Merge {
                let written = ENTRY_BYTES * self.kept(merge, at_start.clone()).len() as u64;
                peak += written;
                if merge.bottommost {
                    let replaced = merge.files().filter(|(l, _)| *l == merge.output_level);
                    let replaced: u64 = replaced.map(|(_, f)| f.size).sum();
                    let oldest = at_start.level(merge.output_level).bytes();
                    alive = alive.max(oldest - replaced + written);
                }
            }
        }
        let level0 = self.version.level(Level::L0).files().iter().map(|f| f.size);
        let deeper = self.version.levels().iter().skip(1).map(|l| l.bytes());
        let alive = level0.chain(deeper).fold(alive, u64::max);
        let extra = (alive * percent / 100).max(2 * trigger * self.policy.write_buffer_size);
        assert!(peak <= alive + extra, "{peak} above {alive} + {extra}");
    }

    pub(crate) fn finish(&mut self, which: usize) {
        if self.running.is_empty() {
            return;
        }
        let Running {
            plan,
            ticket,
            at_start,
            ..
        } = self.running.swap_remove(which % self.running.len());
        let passed = overtaking(&self.version, plan.files(), plan.output_level);
        if passed.is_some() && plan.kind != PlanKind::Delete {
            // The store refuses the outputs, and the plan is made anew: so it is where an ingested
            // table lies between the keys of the inputs, and its sequence numbers were zeroed.
            assert!(self.ingests, "{passed:?} in\n{}", draw(&self.version));
            self.refused += 1;
            return self.busy.release(ticket);
        }
        let edit = plan
            .edit_without_job()
            .unwrap_or_else(|| self.merge(&plan, at_start));
        self.install(edit);
        self.busy.release(ticket);
    }

    /// Outputs of a merge: the newest entry of each key, no deletions with nothing below, and
    /// sequences of zero at the bottom.
    fn kept(&self, plan: &Plan, at_start: Arc<Version>) -> Vec<Entry> {
        let mut newest: BTreeMap<u8, Entry> = BTreeMap::new();
        for e in plan.files().flat_map(|(_, f)| &self.contents[&f.number]) {
            newest
                .entry(e.key)
                .and_modify(|old| *old = if e.seq > old.seq { *e } else { *old })
                .or_insert(*e);
        }
        let mut below = LowerLevels::new(at_start, plan);
        let mut kept = Vec::new();
        for mut e in newest.into_values() {
            if e.value.is_none() && below.key_not_exists_beyond_output_level(&[e.key]) {
                continue;
            }
            if plan.bottommost {
                e.seq = 0;
            }
            kept.push(e);
        }
        kept
    }

    fn merge(&mut self, plan: &Plan, at_start: Arc<Version>) -> TreeEdit {
        let kept = self.kept(plan, at_start);
        let epoch = plan.output_epoch();
        let per_file = usize::try_from(plan.max_output_file_size / ENTRY_BYTES)
            .expect("small")
            .max(1);
        let mut edit = plan.input_deletions();
        for chunk in kept.chunks(per_file) {
            let file = self.file(chunk.to_vec(), epoch);
            edit.added.push((plan.output_level, file));
        }
        edit
    }

    pub(crate) fn check_reads(&self) {
        let mut seen = HashSet::new();
        for (_, f) in self.version.files() {
            for e in &self.contents[&f.number] {
                assert!(
                    seen.insert((e.key, e.seq)),
                    "key {} twice at sequence {}",
                    e.key,
                    e.seq
                );
            }
        }
        for key in 0..=u8::MAX {
            let target = InternalKey::new(&[key], Seq::MAX, ValueType::SEEK);
            let mut files = self.version.candidates(target.as_bytes());
            let found =
                files.find_map(|(_, f)| self.contents[&f.number].iter().find(|e| e.key == key));
            let expected = self.truth.get(&key).copied().flatten();
            assert_eq!(
                found.and_then(|e| e.value),
                expected,
                "key {key} in\n{}",
                draw(&self.version)
            );
        }
    }

    pub(crate) fn settle(&mut self) {
        for step in 0.. {
            assert!(
                step < 2000,
                "no end of compactions:\n{}",
                draw(&self.version)
            );
            while self.start() {}
            if self.running.is_empty() {
                return;
            }
            self.finish(step);
        }
    }
}

pub(crate) fn policy(
    style: CompactionStyle,
    dynamic: bool,
    pri: CompactionPri,
    trigger: u32,
) -> Policy {
    Policy {
        compaction_style: style,
        compaction_pri: pri,
        level0_file_num_compaction_trigger: trigger,
        max_bytes_for_level_base: 30 * ENTRY_BYTES,
        max_bytes_for_level_multiplier: 3.0,
        level_compaction_dynamic_level_bytes: dynamic,
        target_file_size_base: 6 * ENTRY_BYTES,
        write_buffer_size: 4 * ENTRY_BYTES,
        ..Policy::default()
    }
}
