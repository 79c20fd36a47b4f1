//! Random lives of a tree: flushes, concurrent plans that finish in any order, lookups.
//!
//! The files of the model hold real entries, so that a wrong plan shows as a wrong answer: an old
//! value that comes back, a deletion that went too early, two entries of one key and sequence.

mod beside;
mod tree;

use esker_format::{FileNo, InternalKey, KeyOrder, Level, Seq, ValueType};
use esker_lsm::check;
use esker_lsm::edit::{TreeEdit, apply, recover_epochs};
use esker_lsm::file::FileMeta;
use esker_lsm::pick::manual::{BottommostLevelCompaction, ManualRange, Step, plan_step, steps};
use esker_lsm::pick::{
    CompactionPri, CompactionStopStyle, CompactionStyle, Policy, UniversalSettings, pick,
};
use esker_lsm::plan::Busy;
use esker_lsm::score::{pending_compaction_bytes, scores};
use esker_lsm::shape::{draw, draw_plan};
use esker_lsm::version::Version;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tree::{ENTRY_BYTES, Model, Running, policy};

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

/// Draws the acts of writers who do not wait: many flushes for each compaction that ends.
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
                        && let Some(Running { plan, .. }) = model.running.last()
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
