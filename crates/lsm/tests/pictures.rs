//! Decisions over trees, as pictures: a tree as text goes in, a plan as text comes out.

use esker_format::{FileNo, InternalKey, KeyOrder, Level, Seq, ValueType};
use esker_lsm::edit::{TreeEdit, apply};
use esker_lsm::file::{FileMeta, FileStats};
use esker_lsm::pick::manual::{
    BottommostLevelCompaction, ManualRange, ManualStep, Step, plan_step, refit_level, steps,
};
use esker_lsm::pick::{
    CompactionPri, CompactionStyle, FifoOptions, Moment, Policy, TemperatureAge, pick,
};
use esker_lsm::plan::{
    Anchor, BelowOutput, Busy, CompactionReason, PlanKind, subcompaction_boundaries,
};
use esker_lsm::score::{pending_compaction_bytes, scores, targets};
use esker_lsm::shape::{draw, draw_plan, parse, summary};
use esker_lsm::version::{BlobFile, Version};
use std::sync::Arc;

const NOW: Moment = Moment {
    now: 1_000_000,
    oldest_snapshot: Seq(1_000_000),
};

fn tree(text: &str) -> Version {
    parse(text, KeyOrder::Bytewise, 7).expect("the picture is a valid tree")
}

/// Levels of 10M, growing tenfold, not dynamic.
fn fixed() -> Policy {
    Policy {
        level_compaction_dynamic_level_bytes: false,
        max_bytes_for_level_base: 10 << 20,
        target_file_size_base: 2 << 20,
        ..Policy::default()
    }
}

fn dynamic() -> Policy {
    Policy {
        level_compaction_dynamic_level_bytes: true,
        ..fixed()
    }
}

fn picked(v: &Version, policy: &Policy) -> String {
    draw_plan(pick(v, policy, &Busy::new(), NOW).as_ref())
}

fn with_times(v: &Version, ancestor: u64, created: u64, deletions: u64) -> Version {
    let mut edit = TreeEdit::default();
    for (level, f) in v.files() {
        let mut new = FileMeta::from(esker_format::edit::NewFile::from(&**f));
        (new.oldest_ancestor_time, new.file_creation_time) = (ancestor, created);
        let stats = FileStats {
            num_entries: 10,
            num_deletions: deletions,
            ..FileStats::default()
        };
        new.stats.set(stats).expect("fresh");
        edit.added.push((level, Arc::new(new)));
    }
    apply(&Version::empty(v.order().clone(), v.num_levels()), &[edit]).expect("valid")
}

#[test]
fn pictures_come_back() {
    let text = "L0: 9[a-c]@20..29e5* 8[b-x]#3K@10..19e4\nL6: 3[a-f]#64M 4[f\\x2d1-k)#17b7\n";
    assert_eq!(draw(&tree(text)), text);
    assert!(parse("L0: 9[a-", KeyOrder::Bytewise, 7).is_err());
    assert!(
        parse("L1: 9[c-a]", KeyOrder::Bytewise, 7)
            .expect_err("backwards")
            .is_corruption()
    );
    assert!(
        parse("L1: 1[a-c] 2[b-d]", KeyOrder::Bytewise, 7)
            .expect_err("overlap")
            .is_corruption()
    );
    assert!(
        parse("L0: 1[a-c]e3 2[b-d]e3", KeyOrder::Bytewise, 7)
            .expect_err("one epoch")
            .is_corruption()
    );
    assert!(parse("L8: 1[a-c]", KeyOrder::Bytewise, 7).is_err());
}

#[test]
fn level0_goes_down_with_all_that_overlaps() {
    let v = tree(
        "L0: 9[a-c]@40..49 8[x-z]@30..39 7[c-e]@20..29 6[d-g]@10..19\nL1: 1[a-b] 2[f-h] 3[x-y]",
    );
    assert_eq!(
        picked(&v, &fixed()),
        "L0 9 7 6 + L1 1 2 -> L1 merge LevelL0FilesNum"
    );
}

#[test]
fn level0_below_the_trigger_waits() {
    let v = tree("L0: 9[a-c]@40..49 8[x-z]@30..39\nL1: 1[a-b]");
    assert_eq!(picked(&v, &fixed()), "nothing");
    assert_eq!(pending_compaction_bytes(&v, &fixed()), 0);
}

#[test]
fn sorted_level0_moves_to_the_last_level() {
    let v = tree("L0: 9[g-h]@40..49 8[e-f]@30..39 7[c-d]@20..29 6[a-b]@10..19");
    assert_eq!(
        picked(&v, &dynamic()),
        "L0 9 8 7 6 -> L6 move LevelL0FilesNum"
    );
    let off = Policy {
        allow_trivial_move: false,
        ..dynamic()
    };
    assert!(picked(&v, &off).contains("merge"));
}

#[test]
fn level0_merges_in_itself_beside_a_large_base() {
    let v = tree("L0: 9[a-z]@40..49 8[a-z]@30..39 7[a-z]@20..29 6[a-z]@10..19\nL1: 1[a-z]#9G");
    let roomy = Policy {
        max_bytes_for_level_base: 10 << 30,
        ..fixed()
    };
    assert_eq!(picked(&v, &roomy), "L0 9 8 7 6 -> L0 merge LevelL0FilesNum");
}

#[test]
fn blocked_level0_merges_its_newest_files() {
    let v = tree(
        "L0: 9[a-z]@90..99 8[a-z]@80..89 7[a-z]@70..79 6[a-z]@60..69 5[a-z]@50..59 4[a-z]@40..49\nL1: 1[a-z]",
    );
    let mut busy = Busy::new();
    let old = tree("L0: 5[a-z]@50..59 4[a-z]@40..49\nL1: 1[a-z]");
    let policy = Policy {
        level0_file_num_compaction_trigger: 2,
        ..fixed()
    };
    let plan = pick(&old, &policy, &busy, NOW).expect("the old files go down");
    let ticket = busy.register(v.order(), &plan);
    let second = pick(&v, &policy, &busy, NOW);
    assert_eq!(
        draw_plan(second.as_ref()),
        "L0 9 8 7 6 -> L0 merge LevelL0FilesNum"
    );
    busy.release(ticket);
    assert!(busy.is_empty() && !busy.contains(FileNo(5)));
}

#[test]
fn a_full_level_sends_the_file_that_costs_least() {
    let v = tree("L1: 1[a-c]#6M 2[d-f]#6M 3[g-i]#6M\nL2: 4[a-b]#9M 5[c-c]#9M 6[e-e]#1M 7[g-i]#9M");
    assert_eq!(
        picked(&v, &fixed()),
        "L1 2 + L2 6 -> L2 merge LevelMaxLevelSize"
    );
    let pri = |compaction_pri| Policy {
        compaction_pri,
        ..fixed()
    };
    let v = tree(
        "L1: 1[a-c]#6M@5..9 2[d-f]#7M@2..20 3[g-i]#6M@3..8\nL2: 4[a-b]#9M 6[e-e]#1M 7[g-i]#9M",
    );
    assert!(picked(&v, &pri(CompactionPri::ByCompensatedSize)).starts_with("L1 2 "));
    assert!(picked(&v, &pri(CompactionPri::OldestLargestSeqFirst)).starts_with("L1 3 "));
    assert!(picked(&v, &pri(CompactionPri::OldestSmallestSeqFirst)).starts_with("L1 2 "));
}

#[test]
fn round_robin_takes_turns_and_leaves_a_cursor() {
    let policy = Policy {
        compaction_pri: CompactionPri::RoundRobin,
        ..fixed()
    };
    let v = tree("L1: 1[a-c]#6M 2[d-f]#6M 3[g-i]#1M\nL2: 4[a-b]#1M 5[d-e]#1M 6[g-h]#1M");
    let plan = pick(&v, &policy, &Busy::new(), NOW).expect("over target");
    assert_eq!(
        draw_plan(Some(&plan)),
        "L1 1 + L2 4 -> L2 merge LevelMaxLevelSize"
    );
    let (level, key) = plan.cursor.clone().expect("a cursor");
    assert_eq!((level, key.user()), (Level(1), &b"d"[..]));
    let edit = TreeEdit {
        cursors: vec![(level, key)],
        ..TreeEdit::default()
    };
    let v = apply(&v, &[edit]).expect("valid");
    assert!(picked(&v, &policy).starts_with("L1 2 + L2 5"));
}

#[test]
fn equal_user_keys_across_a_cut_go_together() {
    let v = tree("L1: 1[a-c]#1M@1..20 2[c-f]#30M@0..0 3[g-i]#1M\nL2: 4[a-b] 7[g-i]");
    assert!(picked(&v, &fixed()).starts_with("L1 1 2 + L2 4"));
    // A tombstone's exclusive end does not tie its file to the next one.
    let v = tree("L1: 1[a-c)#1M@1..20 2[c-f]#30M@0..0 3[g-i]#1M\nL2: 4[a-b] 5[d-e]#1K 7[g-i]");
    assert!(picked(&v, &fixed()).starts_with("L1 2 + L2 5"));
}

#[test]
fn a_move_is_refused_when_the_grandparents_are_heavy() {
    let light = tree("L1: 1[a-c]#30M\nL2: 9[x-z]\nL3: 3[a-b]#10M");
    assert_eq!(
        picked(&light, &fixed()),
        "L1 1 -> L2 move LevelMaxLevelSize"
    );
    let heavy = tree("L1: 1[a-c]#30M\nL2: 9[x-z]\nL3: 3[a-b]#90M");
    assert_eq!(
        picked(&heavy, &fixed()),
        "L1 1 -> L2 merge LevelMaxLevelSize"
    );
    let plan = pick(&heavy, &fixed(), &Busy::new(), NOW).expect("over target");
    assert_eq!((plan.grandparents.len(), plan.bottommost), (1, false));
}

#[test]
fn moves_take_neighbours_along() {
    let v = tree("L1: 1[a-b]#4M 2[c-d]#4M 3[e-f]#4M 4[g-h]#4M 5[i-j]#4M\nL2: 9[i-z]");
    assert_eq!(
        picked(&v, &fixed()),
        "L1 1 2 3 4 -> L2 move LevelMaxLevelSize"
    );
}

#[test]
fn inputs_grow_when_the_output_level_stays_the_same() {
    let v = tree("L1: 1[a-c]#4M 2[d-f]#4M 3[g-i]#4M\nL2: 4[a-i]#1M");
    assert_eq!(
        picked(&v, &fixed()),
        "L1 1 2 3 + L2 4 -> L2 merge LevelMaxLevelSize"
    );
}

#[test]
fn marked_expired_and_old_files_are_rewritten() {
    let v = tree("L1: 1[a-c]*\nL2: 2[a-b]");
    assert_eq!(
        picked(&v, &fixed()),
        "L1 1 + L2 2 -> L2 merge FilesMarkedForCompaction"
    );
    let v = tree("L1: 1[a-c]@9..9\nL2: 2[a-b]@3..7");
    let aged = with_times(&v, 500_000, 600_000, 0);
    assert_eq!(
        picked(
            &aged,
            &Policy {
                ttl: 1000,
                ..fixed()
            }
        ),
        "L1 1 + L2 2 -> L2 merge Ttl"
    );
    let periodic = Policy {
        periodic_compaction_seconds: 1000,
        ..fixed()
    };
    assert_eq!(
        picked(&aged, &periodic),
        "L1 1 -> L1 merge PeriodicCompaction"
    );
    assert_eq!(
        picked(
            &aged,
            &Policy {
                ttl: 900_000,
                ..fixed()
            }
        ),
        "nothing"
    );
    let deleted = with_times(&v, 0, 0, 2);
    assert_eq!(
        picked(&deleted, &fixed()),
        "L2 2 -> L2 merge BottommostFiles"
    );
    let held = Moment {
        oldest_snapshot: Seq(7),
        ..NOW
    };
    assert!(pick(&deleted, &fixed(), &Busy::new(), held).is_none());
}

#[test]
fn running_plans_keep_others_off_their_files_and_ranges() {
    let v = tree("L1: 1[a-c]#9M 2[d-f]#9M\nL2: 4[a-e]#1M 7[h-i]");
    let mut busy = Busy::new();
    let first = pick(&v, &fixed(), &busy, NOW).expect("over target");
    let _ticket = busy.register(v.order(), &first);
    assert!(pick(&v, &fixed(), &busy, NOW).is_none());
    let key = |k: &[u8]| InternalKey::new(k, Seq(1), ValueType::Value);
    assert!(busy.writes_into(v.order(), Level(2), &key(b"e"), &key(b"h")));
    assert!(!busy.writes_into(v.order(), Level(2), &key(b"g"), &key(b"h")));
    assert!(!busy.writes_into(v.order(), Level(3), &key(b"a"), &key(b"z")));
}

#[test]
fn dynamic_targets_follow_the_largest_level() {
    let v = tree("L6: 1[a-z]#50M");
    let t = targets(&v, &dynamic());
    assert_eq!(
        (t.base_level, t.of(Level(5)), t.of(Level(6))),
        (Level(5), 10 << 20, 50 << 20)
    );
    let v = tree("L6: 1[a-z]#5G");
    let t = targets(&v, &dynamic());
    assert_eq!(t.base_level, Level(3));
    assert_eq!(
        targets(&Version::empty(KeyOrder::Bytewise, 7), &dynamic()).base_level,
        Level(6)
    );
}

#[test]
fn unnecessary_levels_drain() {
    let v = tree("L4: 1[a-c]#1M\nL6: 2[a-z]#20M");
    assert_eq!(
        targets(&v, &dynamic()).lowest_unnecessary_level,
        Some(Level(4))
    );
    assert_eq!(picked(&v, &dynamic()), "L4 1 -> L5 move LevelMaxLevelSize");
    assert!(scores(&v, &dynamic(), &Busy::new()).of(Level(4)) > 1.0);
}

#[test]
fn debt_counts_what_must_be_rewritten() {
    let v = tree("L1: 1[a-c]#30M\nL2: 2[a-z]#60M");
    // 20M too much, each byte meets two below.
    assert_eq!(pending_compaction_bytes(&v, &fixed()), 60 << 20);
    assert!(summary(&v, &fixed(), &Busy::new()).contains("pending compaction bytes: 62914560"));
}

fn universal() -> Policy {
    Policy {
        compaction_style: CompactionStyle::Universal,
        ..fixed()
    }
}

#[test]
fn universal_merges_everything_when_space_is_wasted() {
    let v = tree("L0: 9[a-z]#9M@40..49 8[a-z]#9M@30..39 7[a-z]#9M@20..29\nL6: 1[a-z]#10M");
    assert_eq!(
        picked(&v, &universal()),
        "L0 9 8 7 + L6 1 -> L6 merge UniversalSizeAmplification"
    );
}

#[test]
fn universal_merges_runs_of_similar_size() {
    let v = tree(
        "L0: 9[a-z]#1M@40..49 8[a-z]#1M@30..39 7[a-z]#2M@20..29\nL5: 2[a-z]#50M\nL6: 1[a-z]#100M",
    );
    assert_eq!(
        picked(&v, &universal()),
        "L0 9 8 7 -> L4 merge UniversalSizeRatio"
    );
}

#[test]
fn universal_reduces_the_number_of_runs() {
    let v = tree(
        "L0: 9[a-z]#1M@40..49 8[a-z]#5M@30..39 7[a-z]#20M@20..29\nL5: 2[a-z]#80M\nL6: 1[a-z]#400M",
    );
    assert_eq!(
        picked(&v, &universal()),
        "L0 9 8 -> L0 merge UniversalSortedRunNum"
    );
    let mut busy = Busy::new();
    let plan = pick(&v, &universal(), &busy, NOW).expect("too many runs");
    let _ticket = busy.register(v.order(), &plan);
    assert!(pick(&v, &universal(), &busy, NOW).is_none());
}

#[test]
fn files_are_not_moved_to_another_path() {
    let v = tree("L1: 1[a-b]#4M 2[c-d]#4M 3[e-f]#4M 4[g-h]#4M");
    let one = fixed();
    assert_eq!(picked(&v, &one), "L1 1 2 3 4 -> L2 move LevelMaxLevelSize");
    // Levels 0 and 1 fit into the first path, level 2 does not.
    let two = Policy {
        path_targets: vec![20 << 20, 0],
        ..fixed()
    };
    assert_eq!(picked(&v, &two), "L1 1 -> L2 merge LevelMaxLevelSize");
    let plan = pick(&v, &two, &Busy::new(), NOW).expect("a plan");
    assert_eq!(plan.output_path, 1);
    // Where both levels are in one path a file is moved, by itself.
    let roomy = Policy {
        path_targets: vec![200 << 20, 0],
        ..fixed()
    };
    assert_eq!(picked(&v, &roomy), "L1 1 -> L2 move LevelMaxLevelSize");

    let runs = tree("L0: 9[g-h]@40..49 8[e-f]@30..39 7[c-d]@20..29 6[a-b]@10..19");
    let mut universal = Policy {
        path_targets: vec![1, 0],
        ..universal()
    };
    universal.compaction_options_universal.allow_trivial_move = true;
    assert_eq!(
        picked(&runs, &universal),
        "L0 9 8 7 6 -> L6 merge UniversalSizeAmplification"
    );
    universal.path_targets[0] = 100 << 20;
    assert_eq!(
        picked(&runs, &universal),
        "L0 9 8 7 6 -> L6 move UniversalSizeAmplification"
    );
}

/// Ten files each at levels 5 and 6, and level 5 is a third of level 6; what is above comes before.
fn two_large_runs(above: &str) -> Version {
    let files = |first: u32, size: u32| {
        let ends = [
            "a-b", "c-d", "e-f", "g-h", "i-j", "k-l", "m-n", "o-p", "q-r", "s-t",
        ];
        let file = |(i, ends): (u32, &&str)| format!("{}[{ends}]#{size}M", first + i);
        let list: Vec<_> = (0..).zip(&ends).map(file).collect();
        list.join(" ")
    };
    tree(&format!(
        "{above}L5: {}\nL6: {}",
        files(20, 10),
        files(10, 30)
    ))
}

fn slicing(percent: u32, most_bytes: u64) -> Policy {
    let mut policy = Policy {
        level0_file_num_compaction_trigger: 2,
        max_compaction_bytes: most_bytes,
        target_file_size_base: 10 << 20,
        ..universal()
    };
    let options = &mut policy.compaction_options_universal;
    options.max_size_amplification_percent = percent;
    options.incremental = true;
    policy
}

#[test]
fn an_incremental_tree_is_merged_slice_by_slice() {
    let v = two_large_runs("");
    // Half of max_compaction_bytes is for two files and the six times as much that they meet.
    let mut policy = slicing(30, 160 << 20);
    assert_eq!(
        picked(&v, &policy),
        "L5 20 21 + L6 10 11 -> L6 merge UniversalSizeAmplification"
    );
    let plan = pick(&v, &policy, &Busy::new(), NOW).expect("a slice");
    assert_eq!(plan.max_compaction_bytes, 15 << 20);
    // Nothing else of these levels starts beside it.
    let mut busy = Busy::new();
    let _ticket = busy.register(v.order(), &plan);
    assert!(pick(&v, &policy, &busy, NOW).is_none());
    // Where not even one file fits, and without the option, it is everything.
    policy.max_compaction_bytes = 60 << 20;
    let all = picked(&v, &policy);
    assert!(
        all.starts_with("L5 20 21 22 23 24 25 26 27 28 29 + L6 10 11"),
        "{all}"
    );
    policy.max_compaction_bytes = 160 << 20;
    policy.compaction_options_universal.incremental = false;
    assert_eq!(picked(&v, &policy), all);
    let plan = pick(&v, &policy, &Busy::new(), NOW).expect("everything");
    assert_eq!(
        (plan.max_compaction_bytes, plan.grandparents.len()),
        (u64::MAX, 0)
    );
}

#[test]
fn a_slice_takes_newer_files_along_only_with_what_is_older() {
    let policy = slicing(30, 170 << 20);
    // File 6 lies inside the slice, file 7 reaches out of it on the right.
    let v = two_large_runs("L4: 6[b-c]#1M 7[d-e]#1M\n");
    assert_eq!(
        picked(&v, &policy),
        "L4 6 + L5 20 21 + L6 10 11 -> L6 merge UniversalSizeAmplification"
    );
    // File 5 is older than file 4, overlaps it and stays: so does file 4.
    let v = two_large_runs("L3: 4[b-c]#1M\nL4: 5[c-e]#1M\n");
    assert_eq!(
        picked(&v, &policy),
        "L5 20 21 + L6 10 11 -> L6 merge UniversalSizeAmplification"
    );
    // A level without files in the range hides nothing.
    let v = two_large_runs("L3: 4[b-c]#1M\nL4: 5[x-z]#1M\n");
    assert_eq!(
        picked(&v, &policy),
        "L3 4 + L5 20 21 + L6 10 11 -> L6 merge UniversalSizeAmplification"
    );
}

#[test]
fn a_tree_stays_within_its_peak() {
    let v = two_large_runs("");
    let mut policy = Policy {
        write_buffer_size: 1 << 20,
        ..slicing(30, 10 << 30)
    };
    policy.compaction_options_universal.incremental = false;
    let mut with_peak = |percent| {
        policy
            .compaction_options_universal
            .max_peak_size_amplification_percent = percent;
        picked(&v, &policy)
    };
    // The tree has a third more than its largest run, and a merge of all takes 400M beside it.
    let all = with_peak(0);
    assert_eq!(with_peak(170), all);
    assert_eq!(
        with_peak(80),
        "L5 20 21 22 + L6 10 11 12 -> L6 merge UniversalSizeAmplification"
    );
    // Over its peak it takes the smallest step.
    let least = "L5 20 + L6 10 -> L6 merge UniversalSizeAmplification";
    assert_eq!(with_peak(10), least);

    // A step that does not fit waits while another runs.
    let v = tree(
        "L0: 9[a-z]#10M@40..49 8[a-z]#10M@30..39 7[a-z]#10M@20..29\nL5: 2[a-z]#60M\nL6: 1[a-z]#100M",
    );
    policy
        .compaction_options_universal
        .max_peak_size_amplification_percent = 110;
    policy
        .compaction_options_universal
        .max_size_amplification_percent = 300;
    let plan = pick(&v, &policy, &Busy::new(), NOW).expect("runs of one size");
    assert_eq!(
        draw_plan(Some(&plan)),
        "L0 9 8 7 -> L4 merge UniversalSizeRatio"
    );
    let mut busy = Busy::new();
    let ticket = busy.register(v.order(), &plan);
    assert_eq!(busy.output_bytes(), 30 << 20);
    let v = apply_flush(&v);
    assert!(pick(&v, &policy, &busy, NOW).is_none());
    busy.release(ticket);
    assert!(pick(&v, &policy, &busy, NOW).is_some());
}

/// With two more files at level 0.
fn apply_flush(v: &Version) -> Version {
    let text = draw(v).replace("L0: ", "L0: 12[a-z]#10M@60..69 11[a-z]#10M@50..59 ");
    tree(&text)
}

#[test]
fn the_first_slices_come_from_what_level_0_was_merged_to() {
    let v = tree("L0: 9[a-z]#10M@40..49 8[a-z]#30M@30..39\nL6: 1[a-m]#50M 2[n-z]#50M");
    let mut policy = Policy {
        write_buffer_size: 1 << 20,
        ..slicing(30, 10 << 30)
    };
    let options = &mut policy.compaction_options_universal;
    (
        options.max_read_amp,
        options.max_peak_size_amplification_percent,
    ) = (5, 90);
    assert_eq!(
        picked(&v, &policy),
        "L0 9 8 -> L5 merge UniversalSizeAmplification"
    );
}

#[test]
fn read_amplification_has_a_limit_of_its_own() {
    let v = tree(
        "L0: 9[a-z]#1M@40..49 8[a-z]#5M@30..39 7[a-z]#20M@20..29\nL5: 2[a-z]#80M\nL6: 1[a-z]#400M",
    );
    let mut policy = universal();
    let mut with_limit = |most| {
        policy.compaction_options_universal.max_read_amp = most;
        picked(&v, &policy)
    };
    let reduced = "L0 9 8 -> L0 merge UniversalSortedRunNum";
    assert_eq!(with_limit(-1), reduced);
    assert_eq!(with_limit(4), reduced);
    assert_eq!(with_limit(5), "nothing");
    // From 64M: 64, 64.6, 130, 261, 525.
    assert_eq!(with_limit(0), "nothing");
    policy.write_buffer_size = 128 << 20;
    policy.compaction_options_universal.max_read_amp = 0;
    assert_eq!(picked(&v, &policy), reduced);
}

#[test]
fn old_data_is_compressed_first() {
    let v = tree(
        "L0: 9[a-z]#1M@40..49 8[a-z]#1M@30..39 7[a-z]#2M@20..29\nL5: 2[a-z]#36M\nL6: 1[a-z]#60M",
    );
    let uncompressed = |percent| {
        let mut policy = universal();
        policy.compaction_options_universal.compression_size_percent = percent;
        let plan = pick(&v, &policy, &Busy::new(), NOW).expect("runs of one size");
        assert_eq!(plan.reason, CompactionReason::UniversalSizeRatio);
        plan.uncompressed
    };
    assert_eq!(
        [-1, 0, 95, 96, 97].map(uncompressed),
        [false, true, true, true, false]
    );
}

#[test]
fn the_newest_runs_are_left_out_of_a_large_merge() {
    let v = tree(
        "L0: 9[a-z]#1M@50..59 8[a-z]#1M@40..49 7[a-z]#9M@20..29 6[a-z]#20M@10..19\nL6: 1[a-z]#10M",
    );
    let mut policy = universal();
    assert_eq!(
        picked(&v, &policy),
        "L0 7 6 + L6 1 -> L6 merge UniversalSizeAmplification"
    );
    // Not when so many may be merged beside it that writers go on.
    policy.compaction_options_universal.max_merge_width = 3;
    assert_eq!(
        picked(&v, &policy),
        "L0 9 8 7 6 + L6 1 -> L6 merge UniversalSizeAmplification"
    );
    // Two more runs would stop them: one of these is left, to be merged with the next.
    policy.level0_stop_writes_trigger = 6;
    policy.compaction_options_universal.max_merge_width = 2;
    assert_eq!(
        picked(&v, &policy),
        "L0 8 7 6 + L6 1 -> L6 merge UniversalSizeAmplification"
    );
}

#[test]
fn a_marked_file_goes_to_the_next_run() {
    let policy = Policy {
        level0_file_num_compaction_trigger: 9,
        ..universal()
    };
    let v = tree("L0: 9[a-c]@40..49 8[m-p]@30..39*\nL4: 3[a-k]#9M 4[l-z]#9M\nL6: 1[a-z]#90M");
    assert_eq!(
        picked(&v, &policy),
        "L0 8 + L4 4 -> L4 merge FilesMarkedForCompaction"
    );
    let v = tree("L4: 3[a-k]#9M 4[l-z]#9M*\nL6: 1[a-f]#50M 2[g-z]#40M*");
    assert_eq!(
        picked(&v, &policy),
        "L4 4 + L6 2 -> L6 merge FilesMarkedForCompaction"
    );
    assert_eq!(picked(&tree("L6: 1[a-f]#50M*"), &policy), "nothing");
}

#[test]
fn universal_moves_disjoint_runs() {
    let mut policy = universal();
    policy.compaction_options_universal.allow_trivial_move = true;
    let v = tree("L0: 9[g-h]@40..49 8[e-f]@30..39 7[c-d]@20..29 6[a-b]@10..19");
    assert_eq!(
        picked(&v, &policy),
        "L0 9 8 7 6 -> L6 move UniversalSizeAmplification"
    );
}

#[test]
fn fifo_drops_the_oldest() {
    let mut policy = Policy {
        compaction_style: CompactionStyle::Fifo,
        ..fixed()
    };
    policy.compaction_options_fifo.max_table_files_size = 10 << 20;
    let v = tree("L0: 9[a-z]#4M@40..49 8[a-z]#4M@30..39 7[a-z]#4M@20..29 6[a-z]#4M@10..19");
    assert_eq!(picked(&v, &policy), "L0 7 6 -> L0 delete FifoMaxSize");
    policy.compaction_options_fifo.max_table_files_size = 1 << 30;
    assert_eq!(picked(&v, &policy), "nothing");
    policy.ttl = 100;
    assert_eq!(
        picked(&with_times(&v, 5, 5, 0), &policy),
        "L0 9 8 7 6 -> L0 delete FifoTtl"
    );
    policy.ttl = 0;
    policy.compaction_options_fifo.allow_compaction = true;
    assert_eq!(
        picked(&v, &policy),
        "L0 9 8 7 6 -> L0 merge FifoReduceNumFiles"
    );
    let plan = pick(&v, &policy, &Busy::new(), NOW).expect("small files");
    assert!(plan.edit_without_job().is_none() && plan.kind == PlanKind::Merge);
}

/// The same tree, with the newest write of each level 0 file, newest first.
fn with_newest(v: &Version, newest: &[u64]) -> Version {
    let mut edit = TreeEdit::default();
    for ((level, f), time) in v.files().zip(newest) {
        let mut new = FileMeta::from(esker_format::edit::NewFile::from(&**f));
        // Merged of old and new files, and made a while later.
        (new.oldest_ancestor_time, new.file_creation_time) = (5, *time + 50);
        let stats = FileStats {
            newest_key_time: *time,
            ..FileStats::default()
        };
        new.stats.set(stats).expect("fresh");
        edit.added.push((level, Arc::new(new)));
    }
    apply(&Version::empty(v.order().clone(), v.num_levels()), &[edit]).expect("valid")
}

fn fifo() -> Policy {
    Policy {
        compaction_style: CompactionStyle::Fifo,
        ..fixed()
    }
}

#[test]
fn a_file_expires_by_its_newest_write() {
    let policy = Policy { ttl: 100, ..fifo() };
    let v = tree("L0: 9[a-z]@40..49 8[a-z]@30..39 7[a-z]@20..29");
    let at = |newest: [u64; 3]| picked(&with_newest(&v, &newest), &policy);
    let now = NOW.now;
    assert_eq!(at([now, now - 99, now - 100]), "nothing");
    assert_eq!(at([now, now - 99, now - 101]), "L0 7 -> L0 delete FifoTtl");
    // In order, even when an older file has newer writes.
    assert_eq!(at([now, now - 200, now - 10]), "nothing");
    // Files that nobody opened are as young as their creation.
    let unopened = with_times(&v, 5, now - 10, 0);
    assert_eq!(picked(&unopened, &policy), "nothing");
}

#[test]
fn blob_files_count_where_all_data_has_a_limit() {
    let v = tree("L0: 9[a-z]#4M@40..49b7 8[a-z]#4M@30..39b7 7[a-z]#2M@20..29b7 6[a-z]#2M@10..19b7");
    let blob = BlobFile {
        number: FileNo(7),
        total_count: 1,
        total_bytes: 12 << 20,
        ..BlobFile::default()
    };
    let edit = TreeEdit {
        blobs: vec![blob],
        ..TreeEdit::default()
    };
    let v = apply(&v, &[edit]).expect("valid");
    let mut policy = fifo();
    policy.compaction_options_fifo.max_table_files_size = 14 << 20;
    assert_eq!(picked(&v, &policy), "nothing");
    // Each table stands for as many bytes of values as it has of its own.
    policy.compaction_options_fifo.max_data_files_size = 20 << 20;
    assert_eq!(picked(&v, &policy), "L0 6 -> L0 delete FifoMaxSize");
    policy.compaction_options_fifo.max_data_files_size = 24 << 20;
    assert_eq!(picked(&v, &policy), "nothing");
}

#[test]
fn small_files_are_merged_tier_by_tier() {
    let mut policy = fifo();
    policy.max_compaction_bytes = 64 << 20;
    policy.level0_file_num_compaction_trigger = 4;
    policy.compaction_options_fifo = FifoOptions {
        allow_compaction: true,
        use_kv_ratio_compaction: true,
        max_data_files_size: 2 << 30,
        ..FifoOptions::default()
    };
    // Tiers of 64M, 16M, 4M and so on. The newest have not enough for 4M, and go with what makes 16M.
    let v = tree(
        "L0: 9[a-z]#1M@70..79 8[a-z]#1M@60..69 7[a-z]#1M@50..59 6[a-z]#5M@40..49 5[a-z]#5M@30..39 4[a-z]#7M@20..29 3[a-z]#70M@10..19",
    );
    assert_eq!(
        picked(&v, &policy),
        "L0 9 8 7 6 5 4 -> L0 merge FifoReduceNumFiles"
    );
    let v = tree(
        "L0: 10[a-z]#1M@80..89 9[a-z]#1M@70..79 8[a-z]#1M@60..69 7[a-z]#1M@50..59 6[a-z]#5M@40..49 5[a-z]#5M@30..39 4[a-z]#7M@20..29",
    );
    assert_eq!(
        picked(&v, &policy),
        "L0 10 9 8 7 -> L0 merge FifoReduceNumFiles"
    );
    // Without a size of its own a file is the limit's part for each of the trigger's number.
    policy.max_compaction_bytes = 0;
    policy.compaction_options_fifo.max_data_files_size = 1 << 30;
    let v = tree(
        "L0: 9[a-z]#50M@70..79 8[a-z]#90M@60..69 7[a-z]#90M@50..59 6[a-z]#90M@40..49 5[a-z]#256M@30..39",
    );
    assert_eq!(
        picked(&v, &policy),
        "L0 9 8 7 6 -> L0 merge FifoReduceNumFiles"
    );
    let v = tree("L0: 9[a-z]#256M@70..79 8[a-z]#256M@60..69 7[a-z]#256M@50..59 6[a-z]#30M@40..49");
    assert_eq!(picked(&v, &policy), "nothing");
}

#[test]
fn files_cool_with_age() {
    let mut policy = fifo();
    let age = |age, temperature| TemperatureAge { age, temperature };
    policy.compaction_options_fifo.temperature_ages = vec![age(100, 8), age(1000, 12)];
    let v = tree("L0: 9[a-z]@40..49 8[a-z]@30..39 7[a-z]@20..29");
    let now = NOW.now;
    let cooled = |v: &Version| {
        let plan = pick(v, &policy, &Busy::new(), NOW);
        let temperature = plan.as_ref().map_or(0, |p| p.temperature);
        (draw_plan(plan.as_ref()), temperature)
    };
    let nothing = ("nothing".to_owned(), 0);
    assert_eq!(
        cooled(&with_newest(&v, &[now, now - 50, now - 99])),
        nothing
    );
    let merge = |n: u32| format!("L0 {n} -> L0 merge ChangeTemperature");
    let v = with_newest(&v, &[now, now - 500, now - 2000]);
    assert_eq!(cooled(&v), (merge(7), 12));
    // Then the next, and then none.
    let cold = |v: &Version, number: u64, temperature: u8| {
        let (level, f) = v.find_file(FileNo(number)).expect("there");
        let mut new = FileMeta::from(esker_format::edit::NewFile::from(&**f));
        new.temperature = temperature;
        new.stats.set(*f.stats.get().expect("set")).expect("fresh");
        let edit = TreeEdit {
            deleted: vec![(level, f.number)],
            added: vec![(level, Arc::new(new))],
            ..TreeEdit::default()
        };
        apply(v, &[edit]).expect("valid")
    };
    let v = cold(&v, 7, 12);
    assert_eq!(cooled(&v), (merge(8), 8));
    assert_eq!(cooled(&cold(&v, 8, 8)), nothing);
}

#[test]
fn a_forced_manual_compaction_rewrites_what_was_only_moved() {
    let v = tree("L0: 9[a-c]@40..49");
    let all = ManualRange::default();
    let stages = |force| {
        steps(&v, &fixed(), &all, force, false, FileNo(10))
            .iter()
            .map(|s| {
                let from = s.input_level.map(|l| l.0);
                (from, s.output_level.0, s.ignore_files_from)
            })
            .collect::<Vec<_>>()
    };
    let down = (Some(0), 1, None);
    assert_eq!(stages(BottommostLevelCompaction::Skip), [down]);
    assert_eq!(
        stages(BottommostLevelCompaction::Force),
        [down, (Some(1), 1, None)]
    );
    assert_eq!(
        stages(BottommostLevelCompaction::ForceOptimized),
        [down, (Some(1), 1, Some(FileNo(10)))]
    );
}

#[test]
fn a_manual_range_goes_level_by_level() {
    let v = tree("L0: 9[a-c]@40..49 8[x-z]@30..39\nL1: 1[a-b] 2[d-h]\nL2: 3[a-c] 4[e-f]");
    let all = ManualRange::default();
    let force = BottommostLevelCompaction::ForceOptimized;
    let stages = steps(&v, &fixed(), &all, force, false, FileNo(10));
    let levels: Vec<_> = stages
        .iter()
        .map(|s| (s.input_level.map(|l| l.0), s.output_level.0))
        .collect();
    assert_eq!(levels, [(Some(0), 1), (Some(1), 2), (Some(2), 2)]);
    assert_eq!(stages[2].ignore_files_from, Some(FileNo(10)));
    let skip = BottommostLevelCompaction::IfHaveCompactionFilter;
    assert_eq!(steps(&v, &fixed(), &all, skip, false, FileNo(10)).len(), 2);

    let some = ManualRange {
        begin: Some(b"b".to_vec()),
        end: Some(b"e".to_vec()),
    };
    let run = |step: &ManualStep| match plan_step(&v, &fixed(), &Busy::new(), step, &some, None) {
        Step::Run { plan, next } => (draw_plan(Some(&plan)), next),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        run(&stages[0]).0,
        "L0 9 + L1 1 -> L1 merge ManualCompaction"
    );
    assert_eq!(
        run(&stages[1]).0,
        "L1 1 2 + L2 3 4 -> L2 merge ManualCompaction"
    );
    assert_eq!(
        run(&stages[2]),
        ("L2 3 4 -> L2 merge ManualCompaction".to_owned(), None)
    );
    let beyond = ManualRange {
        begin: Some(b"zz".to_vec()),
        end: None,
    };
    let done = plan_step(&v, &fixed(), &Busy::new(), &stages[1], &beyond, None);
    assert!(matches!(done, Step::Done));
}

#[test]
fn a_large_manual_range_is_cut() {
    let policy = Policy {
        max_compaction_bytes: 2 << 20,
        ..fixed()
    };
    let v = tree("L1: 1[a-b] 2[c-d] 3[e-f]\nL2: 9[a-z]");
    let step = ManualStep {
        input_level: Some(Level(1)),
        output_level: Level(2),
        output_path: 0,
        ignore_files_from: None,
    };
    let all = ManualRange::default();
    let Step::Run { plan, next } = plan_step(&v, &policy, &Busy::new(), &step, &all, None) else {
        panic!("there is work")
    };
    assert_eq!(
        draw_plan(Some(&plan)),
        "L1 1 2 + L2 9 -> L2 merge ManualCompaction"
    );
    let next = next.expect("a third file waits");
    assert_eq!(next.user(), b"e");
    let Step::Run { plan, next } = plan_step(&v, &policy, &Busy::new(), &step, &all, Some(&next))
    else {
        panic!("there is more work")
    };
    assert_eq!(
        (draw_plan(Some(&plan)).as_str(), next),
        ("L1 3 + L2 9 -> L2 merge ManualCompaction", None)
    );
}

#[test]
fn a_level_is_refitted_only_into_empty_ones() {
    let v = tree("L2: 3[a-c] 4[e-f]\nL5: 5[a-z]");
    let edit = refit_level(&v, &Busy::new(), Level(2), Level(4))
        .expect("free")
        .expect("files");
    assert_eq!(
        draw(&apply(&v, &[edit]).expect("valid")),
        "L4: 3[a-c] 4[e-f]\nL5: 5[a-z]\n"
    );
    assert!(refit_level(&v, &Busy::new(), Level(2), Level(6)).is_err());
    assert!(
        refit_level(&v, &Busy::new(), Level(3), Level(6))
            .expect("nothing to move")
            .is_none()
    );
}

#[test]
fn a_lookup_visits_only_files_that_may_hold_the_key() {
    let v = tree(
        "L0: 9[a-c]@40..49 8[b-x]@30..39 7[m-n]@20..29\nL1: 1[a-b]@9..9 2[b-d]@5..5 3[k-z]\nL6: 4[aa-b) 5[b-bb]",
    );
    let visits = |key: &[u8]| {
        let target = InternalKey::new(key, Seq::MAX, ValueType::SEEK);
        v.candidates(target.as_bytes())
            .map(|(_, f)| f.number.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(visits(b"b"), [9, 8, 1, 2, 4, 5]);
    assert_eq!(visits(b"c"), [9, 8, 2]);
    assert_eq!(visits(b"e"), [8]);
    assert_eq!(visits(b"zz"), [0u64; 0]);
    assert_eq!(visits(b""), [0u64; 0]);
    let met = |lo: &[u8], hi: &[u8]| {
        v.overlapping_files(Level(6), Some(lo), Some(hi))
            .map(|f| f.number.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(met(b"b", b"c"), [5]);
    assert_eq!(met(b"ab", b"b"), [4, 5]);
}

#[test]
fn what_lies_below_is_known_key_by_key() {
    let v = Arc::new(tree("L1: 1[a-z]#30M\nL2: 2[a-z]\nL3: 3[c-e] 4[k-m]"));
    let plan = pick(&v, &fixed(), &Busy::new(), NOW).expect("over target");
    assert!(!plan.bottommost);
    let mut below = BelowOutput::new(v, &plan);
    assert!(below.key_not_exists_beyond_output_level(b"b"));
    assert!(below.range_not_exists_beyond_output_level(b"b", b"c"));
    assert!(!below.range_not_exists_beyond_output_level(b"b", b"d"));
    assert!(!below.key_not_exists_beyond_output_level(b"e"));
    assert!(below.key_not_exists_beyond_output_level(b"f"));
    assert!(!below.key_not_exists_beyond_output_level(b"k"));
    assert!(below.key_not_exists_beyond_output_level(b"n"));
}

#[test]
fn parts_of_a_compaction_are_about_equal() {
    let anchor = |k: u8| Anchor {
        user_key: vec![k],
        bytes: 10,
    };
    let anchors: Vec<_> = (0..100).rev().map(anchor).collect();
    let cuts = subcompaction_boundaries(&KeyOrder::Bytewise, anchors.clone(), 4, 1);
    assert_eq!(cuts, [vec![24], vec![49], vec![74]]);
    assert!(subcompaction_boundaries(&KeyOrder::Bytewise, anchors, 4, 600).is_empty());
    let same = vec![anchor(1), anchor(1), anchor(1)];
    assert!(subcompaction_boundaries(&KeyOrder::Bytewise, same, 3, 1).is_empty());
}

#[test]
fn contradictory_edits_are_corruption() {
    let v = tree("L1: 1[a-c] 2[d-f]\nL2: 3[a-c]");
    let deletes = |level, file| TreeEdit {
        deleted: vec![(Level(level), FileNo(file))],
        ..TreeEdit::default()
    };
    let fails = |edits: &[TreeEdit]| {
        apply(&v, edits)
            .expect_err("a contradiction")
            .is_corruption()
    };
    assert!(fails(&[deletes(2, 1)]));
    assert!(fails(&[deletes(1, 7)]));
    assert!(fails(&[deletes(1, 1), deletes(1, 1)]));
    let first = v.level(Level(1)).files()[0].clone();
    let adds = |level| TreeEdit {
        added: vec![(Level(level), first.clone())],
        ..TreeEdit::default()
    };
    assert!(fails(&[adds(3)]));
    assert!(fails(&[deletes(1, 1), adds(2)]));
    let moved = TreeEdit {
        deleted: deletes(1, 1).deleted,
        added: adds(3).added,
        ..TreeEdit::default()
    };
    let after = apply(&v, &[moved]).expect("a move");
    assert!(Arc::ptr_eq(&after.level(Level(3)).files()[0], &first));
    assert!(
        std::ptr::eq(after.level(Level(2)), v.level(Level(2))),
        "an untouched level is shared"
    );
}

#[test]
fn blob_files_live_while_tables_need_them() {
    let blob = |n| BlobFile {
        number: FileNo(n),
        total_count: 2,
        total_bytes: 100,
        ..BlobFile::default()
    };
    let base = tree("L1: 1[a-c]b10 2[d-f]b12\nL2: 3[a-c]");
    let edit = TreeEdit {
        blobs: vec![blob(9), blob(10), blob(11), blob(12)],
        ..TreeEdit::default()
    };
    let v = apply(&base, &[edit]).expect("valid");
    let numbers = |v: &Version| v.blob_files().keys().map(|n| n.0).collect::<Vec<_>>();
    assert_eq!(numbers(&v), [10, 11, 12]);
    let garbage = |n, count| TreeEdit {
        garbage: vec![(FileNo(n), count, count * 50)],
        ..TreeEdit::default()
    };
    assert_eq!(
        numbers(&apply(&v, &[garbage(11, 2)]).expect("unlinked")),
        [10, 12]
    );
    assert!(
        apply(&v, &[garbage(11, 3)])
            .expect_err("too much")
            .is_corruption()
    );
    assert!(
        apply(&v, &[garbage(10, 2)])
            .expect_err("linked")
            .is_corruption()
    );
    assert!(
        apply(&v, &[garbage(99, 1)])
            .expect_err("unknown")
            .is_corruption()
    );
    let gone = TreeEdit {
        deleted: vec![(Level(1), FileNo(1))],
        ..TreeEdit::default()
    };
    assert_eq!(numbers(&apply(&v, &[gone]).expect("valid")), [12]);
    let again = TreeEdit::snapshot(&v);
    let mut record = esker_format::edit::VersionEdit::default();
    again.write_to(&mut record);
    let back = apply(
        &Version::empty(KeyOrder::Bytewise, 7),
        &[TreeEdit::from(&record)],
    )
    .expect("valid");
    assert_eq!((draw(&back), back.blob_files()), (draw(&v), v.blob_files()));
}
