//! Decisions over trees, as pictures: a tree as text goes in, a plan as text comes out.

#[path = "support/trees.rs"]
mod trees;

use esker_format::{FileNo, InternalKey, KeyOrder, Level, Seq, ValueType};
use esker_lsm::check::overtaking;
use esker_lsm::edit::{TreeEdit, apply, recover_epochs};
use esker_lsm::pick::manual::{
    BottommostLevelCompaction, ManualRange, ManualStep, Step, StepKind, plan_files, plan_step,
    refit_level, steps,
};
use esker_lsm::pick::{CompactionPri, PickContext, Policy};
use esker_lsm::plan::{Anchor, Busy, LowerLevels, subcompaction_boundaries};
use esker_lsm::score::{pending_compaction_bytes, scores, targets};
use esker_lsm::shape::{draw, draw_plan, parse, summary};
use esker_lsm::version::{BlobFile, Version};
use std::sync::Arc;
use trees::{NOW, dynamic, fixed, pick, picked, tree, with_times};

#[test]
fn pictures_come_back() {
    let text = "L0: 9[a-c]@20..29e5* 8[b-x]#3K@10..19e4\nL6: 3[a-f]#64M 4[f\\x2d1-k)#17b7\n";
    assert_eq!(draw(&tree(text)), text);
    let text = "L1: 3[a-f]#64Md90/100r2G 4[g-k)r1K*\n";
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

/// In each tree three tables of a full level meet as much below: the one whose deletions free most
/// goes first.
#[test]
fn deletions_go_first() {
    let below = "L2: 4[a-c]#9Md0/9000 5[d-f]#9Md0/9000 6[g-i]#9Md0/9000";
    let goes = |level1: &str| picked(&tree(&format!("L1: {level1}\n{below}")), &fixed());
    let second = "L1 2 + L2 5 -> L2 merge LevelMaxLevelSize";
    let plain = "1[a-c]#6Md0/6000 2[d-f]#6Md0/6000 3[g-i]#6Md0/6000";
    assert_eq!(goes(plain), "L1 1 + L2 4 -> L2 merge LevelMaxLevelSize");
    // Up to half of the entries, deletions change nothing: a tree that stays as large as it is has
    // as many.
    let half = plain.replace("[d-f]#6Md0", "[d-f]#6Md3000");
    assert_eq!(goes(&half), goes(plain));
    let more = plain.replace("[d-f]#6Md0", "[d-f]#6Md3100");
    assert_eq!(goes(&more), second);
    // Deletions alone have no size of their own to go by.
    assert_eq!(
        goes("1[a-c]#6Md0/6000 2[d-f]#300Kd6000/6000 3[g-i]#6Md0/6000"),
        second
    );
    assert_eq!(
        goes("1[a-c]#6Md0/6000 2[d-f]#1Kr9M 3[g-i]#6Md0/6000"),
        second
    );
}

/// A level is as full as what its deletions hide, too: they go on down while the level is far below
/// its target.
#[test]
fn hidden_bytes_fill_a_level() {
    let below = "L2: 3[a-c]#8Md0/8000 4[d-f]#8Md0/8000";
    let v = tree(&format!(
        "L1: 1[a-c]#2Md0/2000 2[d-f]#90Kd4000/4000\n{below}"
    ));
    assert_eq!(
        picked(&v, &fixed()),
        "L1 2 + L2 4 -> L2 merge LevelMaxLevelSize"
    );
    let score = scores(&v, &fixed(), &Busy::new()).of(Level(1));
    // 2M, and twice 4000 entries of 1K, which are somewhat more with the bytes of the deletions.
    assert!((1.0..1.1).contains(&score), "{score}");
    let v = tree(&format!(
        "L1: 1[a-c]#2Md0/2000 2[d-f]#90Kd4000/8000\n{below}"
    ));
    assert_eq!(picked(&v, &fixed()), "nothing");
    let v = tree(&format!("L1: 1[a-c]#2Md0/2000 2[d-f]#1Kr8M\n{below}"));
    assert_eq!(
        picked(&v, &fixed()),
        "L1 2 + L2 4 -> L2 merge LevelMaxLevelSize"
    );
    let v = tree(&format!("L1: 1[a-c]#2Md0/2000 2[d-f]#1Kr7M\n{below}"));
    assert_eq!(picked(&v, &fixed()), "nothing");
}

/// Level 0 does not wait for its fourth table when what its range deletions cover is as much as the
/// base may hold.
#[test]
fn a_wide_range_deletion_does_not_wait_at_level0() {
    let v = tree("L0: 9[a-i)#1Kr16M@90..99\nL2: 3[a-c]#8M 4[d-f]#8M");
    let moved = "L0 9 -> L1 move LevelL0FilesNum";
    assert_eq!(picked(&v, &fixed()), moved);
    let v = tree("L0: 9[a-i)#1Kr9M@90..99\nL2: 3[a-c]#8M 4[d-f]#8M");
    assert_eq!(picked(&v, &fixed()), "nothing");
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
    // In level 0 also where no other level has files; at the last level that has files not.
    let v = tree("L0: 9[a-c]@40..49* 8[b-d]@30..39 7[x-z]@20..29");
    assert_eq!(
        picked(&v, &fixed()),
        "L0 9 8 -> L1 merge FilesMarkedForCompaction"
    );
    assert_eq!(picked(&tree("L1: 1[a-c]*"), &fixed()), "nothing");
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
    let held = PickContext {
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

#[test]
fn a_forced_manual_compaction_rewrites_what_was_only_moved() {
    let v = tree("L0: 9[a-c]@40..49");
    let all = ManualRange::default();
    let stages = |force| {
        steps(&v, &fixed(), &all, force, false, FileNo(10))
            .iter()
            .map(|s| (s.kind, s.ignore_files_from))
            .collect::<Vec<_>>()
    };
    let down = (StepKind::Level0ToBase, None);
    let rewrite = StepKind::Rewrite(Level(1));
    assert_eq!(stages(BottommostLevelCompaction::Skip), [down]);
    assert_eq!(
        stages(BottommostLevelCompaction::Force),
        [down, (rewrite, None)]
    );
    assert_eq!(
        stages(BottommostLevelCompaction::ForceOptimized),
        [down, (rewrite, Some(FileNo(10)))]
    );
}

#[test]
fn a_manual_range_goes_level_by_level() {
    let v = tree("L0: 9[a-c]@40..49 8[x-z]@30..39\nL1: 1[a-b] 2[d-h]\nL2: 3[a-c] 4[e-f]");
    let all = ManualRange::default();
    let force = BottommostLevelCompaction::ForceOptimized;
    let stages = steps(&v, &fixed(), &all, force, false, FileNo(10));
    let kinds: Vec<_> = stages.iter().map(|s| s.kind).collect();
    let wanted = [
        StepKind::Level0ToBase,
        StepKind::OneDown(Level(1)),
        StepKind::Rewrite(Level(2)),
    ];
    assert_eq!(kinds, wanted);
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
    let step = ManualStep::new(StepKind::OneDown(Level(1)));
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
fn level_0_goes_to_the_base_of_the_version_that_is_planned_on() {
    let range = ManualRange::default();
    let policy = dynamic();
    let base = |v: &Version| targets(v, &policy).base_level;
    // When the steps are listed nothing lies above level 5; then an automatic plan has put older
    // data into level 4.
    let before = tree("L0: 9[a-c]@40..49\nL5: 3[a-z]@9..19#9M\nL6: 1[a-z]@1..8#20M");
    let after =
        tree("L0: 9[a-c]@40..49\nL4: 5[a-z]@20..29\nL5: 3[a-z]@9..19#9M\nL6: 1[a-z]@1..8#20M");
    assert_ne!(base(&before), base(&after));
    let skip = BottommostLevelCompaction::Skip;
    let stages = steps(&before, &policy, &range, skip, false, FileNo(10));
    let step = plan_step(&after, &policy, &Busy::new(), &stages[0], &range, None);
    let Step::Run { plan, .. } = step else {
        panic!("{step:?}")
    };
    assert_eq!(plan.output_level, base(&after));
    assert_eq!(overtaking(&after, plan.files(), plan.output_level), None);
    let level0 = plan.files().take(1);
    let past = overtaking(&after, level0, Level(5)).expect("level 4 is older");
    assert_eq!((past.table, past.passed), (FileNo(9), FileNo(5)));
    // No level is left out: 1 and 2 are asked as well, and empty.
    let kinds: Vec<_> = stages.iter().map(|s| s.kind).collect();
    let sorted = (1..6).map(|l| StepKind::OneDown(Level(l)));
    assert!(kinds.iter().skip(1).copied().eq(sorted));
}

#[test]
fn level_0_does_not_go_past_what_a_running_plan_puts_above_the_base() {
    let policy = fixed();
    let v = tree("L0: 9[a-c]@40..49\nL2: 3[a-z]@9..19");
    let mut busy = Busy::new();
    let key = |user| InternalKey::new(user, Seq(1), ValueType::Value);
    let _older = busy.reserve(
        Vec::new(),
        Some((Level(1)..=Level(1), key(b"b"), key(b"d"))),
    );
    assert!(plan_files(&v, &policy, &busy, &[FileNo(9)], Level(2), 0).is_err());
    assert!(plan_files(&v, &policy, &Busy::new(), &[FileNo(9)], Level(2), 0).is_ok());
}

#[test]
fn a_level_is_refitted_only_into_empty_ones() {
    let v = tree("L2: 3[a-c] 4[e-f]\nL5: 5[a-z]");
    let refit = refit_level(&v, &Busy::new(), Level(2), Level(4))
        .expect("free")
        .expect("files");
    assert_eq!(
        draw(&apply(&v, &[refit.edit]).expect("valid")),
        "L4: 3[a-c] 4[e-f]\nL5: 5[a-z]\n"
    );
    assert!(refit_level(&v, &Busy::new(), Level(2), Level(6)).is_err());
    assert!(
        refit_level(&v, &Busy::new(), Level(3), Level(6))
            .expect("nothing to move")
            .is_none()
    );
    // Several files have no order in level 0.
    assert!(refit_level(&v, &Busy::new(), Level(2), Level(0)).is_err());
}

#[test]
fn a_level_is_not_refitted_past_what_a_running_plan_writes() {
    let v = tree("L0: 9[a-c]@40..49\nL6: 1[a-z]@1..8");
    let mut busy = Busy::new();
    let plan = plan_files(&v, &fixed(), &busy, &[FileNo(9)], Level(4), 0).expect("free");
    let ticket = busy.register(v.order(), &plan);
    let refused = refit_level(&v, &busy, Level(6), Level(2)).expect_err("newer data comes");
    assert!(refused.message().contains("level 4"), "{refused}");
    busy.release(ticket);
    let refit = refit_level(&v, &busy, Level(6), Level(2));
    let refit = refit.expect("free").expect("a file");
    // From here on nothing else is put where the file passes.
    let _ticket = refit.reserve(&mut busy);
    assert!(plan_files(&v, &fixed(), &busy, &[FileNo(9)], Level(4), 0).is_err());
}

#[test]
fn a_deletion_above_what_a_running_plan_puts_below_is_kept() {
    // The plan that takes 9 to level 3 runs; 5 was ingested between them, and deletes a key of 9.
    let v = tree("L0: 9[a-z]@40..49\nL2: 5[c-d]@50..50");
    let key = |user| InternalKey::new(user, Seq(1), ValueType::Value);
    let mut busy = Busy::new();
    let rewrite = |busy: &Busy| {
        let plan = plan_files(&v, &fixed(), busy, &[FileNo(5)], Level(2), 0).expect("free");
        let mut below = LowerLevels::new(Arc::new(v.clone()), &plan);
        let is_gone = below.key_not_exists_beyond_output_level(b"c");
        (plan.bottommost, is_gone)
    };
    assert_eq!(rewrite(&busy), (true, true));
    let ticket = busy.reserve(
        vec![FileNo(9)],
        Some((Level(3)..=Level(3), key(b"a"), key(b"z"))),
    );
    assert_eq!(rewrite(&busy), (false, false));
    busy.release(ticket);
    let above = Some((Level(1)..=Level(2), key(b"x"), key(b"z")));
    let _above = busy.reserve(Vec::new(), above);
    assert_eq!(rewrite(&busy), (true, true));
}

#[test]
fn a_file_of_level_0_does_not_go_below_a_merge_that_spans_it() {
    // 2 and 3 are merged in level 0: their output spans the keys of 5, which is newer.
    let before = tree("L0: 3[z-z]@7..7 2[a-a]@6..6 1[a-c]@1..4");
    let v = tree("L0: 5[q-q]@8..8 3[z-z]@7..7 2[a-a]@6..6 1[a-c]@1..4");
    let mut busy = Busy::new();
    let files = [FileNo(3), FileNo(2)];
    let plan = plan_files(&before, &fixed(), &busy, &files, Level(0), 0).expect("free");
    let ticket = busy.register(v.order(), &plan);
    let down = |busy: &Busy| plan_files(&v, &fixed(), busy, &[FileNo(5)], Level(1), 0);
    assert!(down(&busy).is_err());
    busy.release(ticket);
    assert!(down(&busy).is_ok());
}

#[test]
fn nothing_is_put_where_a_running_plan_goes_past() {
    // 15 goes from level 1 to level 4; 16 and 14 would span its keys in level 3.
    let v = tree("L1: 15[f-f]@15..15 16[g-g]@16..16\nL2: 14[e-e]@14..14\nL4: 1[a-z]@1..2");
    let mut busy = Busy::new();
    let plan = plan_files(&v, &fixed(), &busy, &[FileNo(15)], Level(4), 0).expect("free");
    let ticket = busy.register(v.order(), &plan);
    let beside = |busy: &Busy| {
        let files = [FileNo(16), FileNo(14)];
        plan_files(&v, &fixed(), busy, &files, Level(3), 0)
    };
    assert!(beside(&busy).is_err());
    busy.release(ticket);
    assert!(beside(&busy).is_ok());
}

#[test]
fn tables_that_would_pass_others_are_named() {
    let past = |picture: &str, leaving: &[u64], to: u8| {
        let v = tree(picture);
        let leaving = v.files().filter(|(_, f)| leaving.contains(&f.number.0));
        overtaking(&v, leaving.collect::<Vec<_>>().into_iter(), Level(to)).map(|o| o.to_string())
    };
    let down = "L1: 5[a-c]@40..49\nL2: 4[b-d]@30..39\nL3: 3[x-z]@9..9";
    let text = "table 5 of level 1 would go to level 3 past table 4 of level 2";
    assert_eq!(past(down, &[5], 3).as_deref(), Some(text));
    assert_eq!(past(down, &[5, 4], 3), None);
    assert_eq!(past(down, &[4], 3), None);
    // What was ingested into a gap is newer as a whole.
    assert_eq!(past("L1: 5[a-c]@10..19\nL2: 4[b-b]@30..30", &[5], 3), None);
    let up = "L2: 4[b-b]@30..30\nL3: 3[a-z]@9..9";
    assert!(past(up, &[3], 1).is_some());
    assert!(past(up, &[4], 1).is_none());
    let level0 = "L0: 9[a-c]@40..49e4 8[a-b]@30..39e3 7[b-c]@20..29e2 6[x-z]@10..19e1";
    assert!(past(level0, &[9], 1).is_some());
    assert!(past(level0, &[8], 1).is_some());
    assert!(past(level0, &[7, 6], 1).is_none());
    assert!(past(level0, &[9, 7], 0).is_some(), "8 would be in front");
    assert!(past(level0, &[9, 8], 0).is_none());
    assert!(past(level0, &[7, 6], 0).is_none());
}

#[test]
fn interleaved_tables_without_epochs_stay_without() {
    let sure = tree("L0: 9[a-c]@40..49 8[a-b]@30..39\nL6: 1[a-z]@1..8");
    let recovered = recover_epochs(&sure);
    assert!(!recovered.lacks_epochs());
    assert_eq!(recovered.last_epoch(), 3);
    // 8 was flushed after 9 had been merged with what was ingested: which is newer?
    let unsure = tree("L0: 9[a-c]@3..6 8[a-b]@5..5\nL6: 1[a-z]@1..2");
    assert!(recover_epochs(&unsure).lacks_epochs());
    let apart = tree("L0: 9[a-c]@3..6 8[d-e]@5..5");
    assert!(!recover_epochs(&apart).lacks_epochs());
}

#[test]
fn epochs_do_not_go_back_when_their_tables_are_gone() {
    let v = tree("L0: 9[a-c]@40..49e7 8[a-b]@30..39e3");
    let gone = TreeEdit {
        deleted: vec![(Level(0), FileNo(9))],
        ..TreeEdit::default()
    };
    assert_eq!(apply(&v, &[gone]).expect("valid").last_epoch(), 7);
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
    let mut below = LowerLevels::new(v, &plan);
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
