//! Random lives of a tree: flushes, concurrent plans that finish in any order, lookups.
//!
//! The files of the model hold real entries, so that a wrong plan shows as a wrong answer: an old
//! value that comes back, a deletion that went too early, two entries of one key and sequence.

use esker_format::{FileNo, InternalKey, KeyOrder, Level, Seq, ValueType};
use esker_lsm::check;
use esker_lsm::edit::{TreeEdit, apply, recover_epochs};
use esker_lsm::file::{FileMeta, FileStats};
use esker_lsm::pick::manual::{BottommostLevelCompaction, ManualRange, Step, plan_step, steps};
use esker_lsm::pick::{
    CompactionPri, CompactionStopStyle, CompactionStyle, PickContext, Policy, UniversalSettings,
    WriterState, pick,
};
use esker_lsm::plan::{BelowOutput, Busy, CompactionReason, Plan, PlanKind, Ticket};
use esker_lsm::read_demand::ReadDemand;
use esker_lsm::score::{pending_compaction_bytes, scores};
use esker_lsm::shape::{draw, draw_plan};
use esker_lsm::version::Version;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const ENTRY_BYTES: u64 = 1000;

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u8,
    seq: u64,
    /// `None` is a deletion.
    value: Option<u64>,
}

struct Model {
    version: Arc<Version>,
    policy: Policy,
    busy: Busy,
    running: Vec<(Plan, Ticket, Arc<Version>)>,
    contents: HashMap<FileNo, Vec<Entry>>,
    truth: BTreeMap<u8, Option<u64>>,
    seq: u64,
    next_file: u64,
    epochs: bool,
    /// Flushes follow each other without a rest; a second passes with each.
    presses: bool,
    now: u64,
}

impl Model {
    fn new(policy: Policy, epochs: bool) -> Self {
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
            presses: false,
            now: 0,
        }
    }

    fn file(&mut self, entries: Vec<Entry>, epoch: u64) -> Arc<FileMeta> {
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

    fn install(&mut self, edit: TreeEdit) {
        let next = apply(&self.version, &[edit]).expect("plans lead to valid trees");
        check::verify(&next).expect("the checker agrees");
        self.version = Arc::new(next);
    }

    fn flush(&mut self, writes: &[(u8, bool)]) {
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

    fn moment(&self) -> PickContext {
        PickContext {
            now: self.now,
            oldest_snapshot: Seq(self.seq + 1),
            draining: !self.presses,
            writers: if self.presses {
                WriterState::Throttled
            } else {
                WriterState::Resting
            },
            reads: ReadDemand::default(),
        }
    }

    /// Starts what can be started; whether anything was.
    fn start(&mut self) -> bool {
        let Some(plan) = pick(&self.version, &self.policy, &self.busy, self.moment()) else {
            return false;
        };
        self.begin(plan);
        true
    }

    fn begin(&mut self, plan: Plan) {
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
        if self.policy.compaction_style == CompactionStyle::Universal && !plan.manual {
            self.check_runs(&plan);
            self.check_space(&plan);
        }
        let ticket = self.busy.register(&KeyOrder::Bytewise, &plan);
        self.running.push((plan, ticket, self.version.clone()));
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
    /// What a merge of the oldest run writes is alive: the bound grows with it.
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
        let running = self.running.iter().map(|(p, _, at)| (p, at.clone()));
        let (mut peak, mut alive) = (self.version.bytes(), 0);
        for (merge, at_start) in running.chain([(plan, self.version.clone())]) {
            if merge.kind == PlanKind::Merge {
                let written = ENTRY_BYTES * self.kept(merge, at_start).len() as u64;
                peak += written;
                alive = alive.max(if merge.bottommost { written } else { 0 });
            }
        }
        let level0 = self.version.level(Level::L0).files().iter().map(|f| f.size);
        let deeper = self.version.levels().iter().skip(1).map(|l| l.bytes());
        let alive = level0.chain(deeper).fold(alive, u64::max);
        let extra = (alive * percent / 100).max(2 * trigger * self.policy.write_buffer_size);
        assert!(peak <= alive + extra, "{peak} above {alive} + {extra}");
    }

    fn finish(&mut self, which: usize) {
        if self.running.is_empty() {
            return;
        }
        let (plan, ticket, at_start) = self.running.swap_remove(which % self.running.len());
        let edit = plan
            .edit_without_job()
            .unwrap_or_else(|| self.merge(&plan, at_start));
        self.install(edit);
        self.busy.release(ticket);
    }

    /// What a merge writes: the newest entry of each key, no deletions with nothing below, and
    /// sequences of zero at the bottom.
    fn kept(&self, plan: &Plan, at_start: Arc<Version>) -> Vec<Entry> {
        let mut newest: BTreeMap<u8, Entry> = BTreeMap::new();
        for e in plan.files().flat_map(|(_, f)| &self.contents[&f.number]) {
            newest
                .entry(e.key)
                .and_modify(|old| *old = if e.seq > old.seq { *e } else { *old })
                .or_insert(*e);
        }
        let mut below = BelowOutput::new(at_start, plan);
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

    fn check_reads(&self) {
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

    fn settle(&mut self) {
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

fn policy(style: CompactionStyle, dynamic: bool, pri: CompactionPri, trigger: u32) -> Policy {
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

fn universal() -> impl Strategy<Value = UniversalSettings> {
    let widths = (2u32..4, prop_oneof![Just(u32::MAX), 3u32..6]);
    let read_amp = prop_oneof![Just(-1), Just(0), 5i32..9];
    let peak = prop_oneof![Just(0u32), Just(10), 20u32..200];
    let amplification = prop_oneof![Just(200u32), 10u32..100];
    (
        widths,
        read_amp,
        peak,
        amplification,
        any::<[bool; 3]>(),
        0u32..60,
    )
        .prop_map(
            |((min, max), max_read_amp, peak, amplification, flags, size_ratio)| {
                let mut options = UniversalSettings::default();
                options.size_ratio = size_ratio;
                options.min_merge_width = min;
                options.max_merge_width = max;
                options.max_size_amplification_percent = amplification;
                options.compression_size_percent = if flags[0] { 50 } else { -1 };
                if flags[1] {
                    options.stop_style = CompactionStopStyle::SimilarSize;
                }
                options.allow_trivial_move = flags[0];
                options.max_read_amp = max_read_amp;
                options.incremental = flags[2];
                options.max_peak_size_amplification_percent = peak;
                options
            },
        )
}

#[derive(Clone, Debug)]
enum Act {
    Flush(Vec<(u8, bool)>),
    Start,
    Finish(usize),
    Manual(u8, u8),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let scattered = prop::collection::vec((any::<u8>(), prop::bool::weighted(0.7)), 1..24);
    let narrow = (any::<u8>(), 1u8..12).prop_map(|(from, n)| {
        (from..=from.saturating_add(n))
            .map(|k| (k, true))
            .collect::<Vec<_>>()
    });
    let act = prop_oneof![
        4 => scattered.prop_map(Act::Flush),
        3 => narrow.prop_map(Act::Flush),
        6 => Just(Act::Start),
        5 => (0usize..8).prop_map(Act::Finish),
        1 => (any::<u8>(), any::<u8>()).prop_map(|(a, b)| Act::Manual(a.min(b), a.max(b))),
    ];
    prop::collection::vec(act, 1..80)
}

fn policies() -> impl Strategy<Value = Policy> {
    let style =
        prop_oneof![1 => Just(CompactionStyle::Level), 1 => Just(CompactionStyle::Universal)];
    let pri = prop_oneof![
        Just(CompactionPri::MinOverlappingRatio),
        Just(CompactionPri::ByCompensatedSize),
        Just(CompactionPri::OldestLargestSeqFirst),
        Just(CompactionPri::OldestSmallestSeqFirst),
        Just(CompactionPri::RoundRobin),
    ];
    (style, any::<bool>(), pri, 1u32..5, universal(), 0u32..12).prop_map(
        |(style, dynamic, pri, n, universal, stop)| {
            let mut policy = Policy {
                compaction_options_universal: universal,
                ..policy(style, dynamic, pri, n)
            };
            policy.stall_triggers.level0.stop = f64::from(n + stop);
            policy
        },
    )
}

/// A universal tree that wants nothing has few runs, and the oldest is most of it.
fn check_shape(model: &Model) {
    let options = &model.policy.compaction_options_universal;
    let level0 = model
        .version
        .level(Level::L0)
        .files()
        .iter()
        .map(|f| f.size);
    let deeper = model.version.levels().iter().skip(1).map(|l| l.bytes());
    let runs: Vec<u64> = level0.chain(deeper.filter(|b| *b > 0)).collect();
    let trigger = model.policy.level0_file_num_compaction_trigger as usize;
    if runs.len() < trigger.max(2) {
        return;
    }
    let (base, newer) = runs.split_last().expect("runs");
    let percent = u64::from(options.max_size_amplification_percent);
    let wasted: u64 = newer.iter().sum();
    assert!(wasted * 100 < percent * base, "{wasted} beside {base}");
    let most = match options.max_read_amp {
        // One more than doublings from a memtable to the tree.
        0 if options.stop_style == CompactionStopStyle::TotalSize => 10,
        given => usize::try_from(given)
            .ok()
            .filter(|n| *n > 0)
            .unwrap_or(trigger),
    };
    let least = options.min_merge_width as usize;
    assert!(
        runs.len() <= most.max(trigger) + least,
        "{} runs",
        runs.len()
    );
}

/// Compacts a range by hand while plans run; gives up at the first conflict.
fn manual(model: &mut Model, begin: u8, end: u8) {
    let range = ManualRange {
        begin: Some(vec![begin]),
        end: Some(vec![end]),
    };
    let force = BottommostLevelCompaction::Force;
    let next_file = FileNo(model.next_file);
    for step in steps(
        &model.version,
        &model.policy,
        &range,
        force,
        false,
        next_file,
    ) {
        let mut from = None;
        loop {
            let v = model.version.clone();
            match plan_step(&v, &model.policy, &model.busy, &step, &range, from.as_ref()) {
                Step::Done => break,
                Step::Conflict => return,
                Step::Run { plan, next } => {
                    model.begin(*plan);
                    let last = model.running.len() - 1;
                    model.finish(last);
                    let Some(next) = next else { break };
                    from = Some(next);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn trees_stay_valid_and_converge(acts in acts(), policy in policies(), epochs in any::<bool>()) {
        let mut model = Model::new(policy, epochs);
        for act in &acts {
            match act {
                Act::Flush(writes) => model.flush(writes),
                Act::Start => {
                    model.start();
                }
                Act::Finish(which) => model.finish(*which),
                Act::Manual(begin, end) => manual(&mut model, *begin, *end),
            }
            model.check_reads();
        }
        model.settle();
        model.check_reads();
        prop_assert!(pick(&model.version, &model.policy, &Busy::new(), model.moment()).is_none());
        if model.policy.compaction_style == CompactionStyle::Level {
            let highest = scores(&model.version, &model.policy, &Busy::new()).highest();
            prop_assert!(highest < 1.0, "score {highest} of\n{}", draw(&model.version));
            prop_assert_eq!(pending_compaction_bytes(&model.version, &model.policy), 0);
        }
        if model.policy.compaction_style == CompactionStyle::Universal {
            check_shape(&model);
        }
        let renumbered = recover_epochs(&model.version);
        prop_assert!(check::verify(&renumbered).is_ok());
        let largest = renumbered.files().map(|(_, f)| f.epoch).max();
        prop_assert!(largest <= Some(renumbered.last_epoch()));
    }

    #[test]
    fn searches_agree_with_a_scan(
        keys in prop::collection::btree_set(prop::collection::vec(prop_oneof![Just(0u8), Just(7), any::<u8>()], 0..14), 1..40),
        shared in prop::collection::vec(any::<u8>(), 0..12),
        probe in prop::collection::vec(prop_oneof![Just(0u8), Just(7), any::<u8>()], 0..16),
        prefixed in any::<bool>(),
    ) {
        let keys: Vec<Vec<u8>> = keys.into_iter().map(|k| [shared.clone(), k].concat()).collect();
        let probe = if prefixed { [shared, probe].concat() } else { probe };
        let target = InternalKey::new(&probe, Seq(5), ValueType::Value);
        for order in [KeyOrder::Bytewise, KeyOrder::ReverseBytewise] {
            let mut keys = keys.clone();
            keys.sort_by(|a, b| order.compare(a, b));
            let files = keys.chunks(2).enumerate().map(|(i, pair)| Arc::new(FileMeta {
                number: FileNo(i as u64 + 1),
                size: 1,
                smallest: InternalKey::new(&pair[0], Seq(9), ValueType::Value),
                largest: InternalKey::new(&pair[pair.len() - 1], Seq(5), ValueType::Value),
                smallest_seq: Seq(5),
                largest_seq: Seq(9),
                ..FileMeta::default()
            }));
            let edit = TreeEdit { added: files.map(|f| (Level(1), f)).collect(), ..TreeEdit::default() };
            let v = apply(&Version::empty(order.clone(), 3), &[edit]).expect("sorted and disjoint");
            let files = v.level(Level(1)).files();
            let at = |f: &Arc<FileMeta>| order.compare_internal(f.largest.as_bytes(), target.as_bytes()).is_ge();
            let scan = files.iter().position(at).unwrap_or(files.len());
            prop_assert_eq!(v.level(Level(1)).find(&order, target.as_bytes()), scan);
            let holds = |f: &&Arc<FileMeta>| f.overlaps(&order, Some(&probe), Some(&probe));
            let expected: Vec<_> = files.iter().filter(holds).map(|f| f.number).collect();
            let visited: Vec<_> = v.candidates(target.as_bytes()).map(|(_, f)| f.number).collect();
            prop_assert_eq!(&visited, &expected);
            let met: Vec<_> = v.overlapping_files(Level(1), Some(&probe), Some(&probe)).map(|f| f.number).collect();
            prop_assert_eq!(&met, &expected);
        }
    }
}

/// What writers do who do not wait: many flushes for each compaction that ends.
fn rush() -> impl Strategy<Value = Vec<Act>> {
    let scattered = prop::collection::vec((any::<u8>(), prop::bool::weighted(0.8)), 4..24);
    let act = prop_oneof![
        4 => scattered.prop_map(Act::Flush),
        5 => Just(Act::Start),
        3 => (0usize..3).prop_map(Act::Finish),
    ];
    prop::collection::vec(act, 60..200)
}

/// Level 0 above a base that fell behind, and merges through several levels beside others: no read
/// changes.
#[test]
fn overloaded_trees_stay_valid() {
    let (runs, slices) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let mut runner = TestRunner::new(ProptestConfig::with_cases(128));
    let body = |(acts, trigger): (Vec<Act>, u32)| {
        let mut model = Model::new(
            Policy {
                max_bytes_for_level_base: 8 * ENTRY_BYTES,
                target_file_size_base: 2 * ENTRY_BYTES,
                ..policy(
                    CompactionStyle::Level,
                    true,
                    CompactionPri::MinOverlappingRatio,
                    trigger,
                )
            },
            true,
        );
        let all: Vec<_> = (0..=u8::MAX).map(|k| (k, true)).collect();
        model.flush(&all);
        model.settle();
        model.presses = true;
        for act in &acts {
            match act {
                Act::Flush(writes) => model.flush(writes),
                Act::Finish(which) => model.finish(*which),
                Act::Start | Act::Manual(..) => {
                    if model.start()
                        && let Some((plan, ..)) = model.running.last()
                    {
                        let above = model.version.level(plan.output_level).is_empty();
                        let is_run = plan.start_level() == Level::L0 && above;
                        runs.fetch_add(usize::from(is_run), Relaxed);
                        let is_slice = plan.start_level() > Level::L0 && plan.inputs.len() > 2;
                        slices.fetch_add(usize::from(is_slice), Relaxed);
                    }
                }
            }
            model.check_reads();
        }
        model.presses = false;
        model.settle();
        model.check_reads();
        Ok(())
    };
    let done = runner.run(&(rush(), 1u32..5), body);
    done.expect("every tree is valid");
    let (runs, slices) = (runs.into_inner(), slices.into_inner());
    assert!(runs > 100 && slices > 100, "{runs} runs, {slices} slices");
}

#[test]
fn a_filled_tree_takes_its_shape() {
    let mut model = Model::new(
        policy(
            CompactionStyle::Level,
            true,
            CompactionPri::MinOverlappingRatio,
            2,
        ),
        true,
    );
    for round in 0..40u32 {
        let writes: Vec<_> = (0..20u32)
            .map(|i| (((round * 37 + i * 11) % 256) as u8, true))
            .collect();
        model.flush(&writes);
        model.settle();
    }
    model.check_reads();
    let deepest = model.version.deepest_level();
    assert_eq!(deepest, Some(Level(4)));
    assert!(model.version.level(Level(4)).bytes() > model.version.level(Level(3)).bytes());
    assert_eq!(draw_plan(None), "nothing");
}
