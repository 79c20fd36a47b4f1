//! Decisions over trees, as pictures: a tree as text goes in, a plan as text comes out.
//!
//! The file is long because each decision has its picture, and all are drawn with the same few
//! helpers.

#[path = "support/trees.rs"]
mod trees;

use esker_format::{FileNo, InternalKey, KeyOrder, Level, Seq, ValueType};
use esker_lsm::edit::{TreeEdit, apply};
use esker_lsm::pick::manual::{
    BottommostLevelCompaction, ManualRange, ManualStep, Step, plan_step, refit_level, steps,
};
use esker_lsm::pick::{CompactionPri, PickContext, Policy, pick};
use esker_lsm::plan::{Anchor, BelowOutput, Busy, subcompaction_boundaries};
use esker_lsm::pressure::fill;
use esker_lsm::score::{pending_compaction_bytes, scores, targets};
use esker_lsm::shape::{draw, draw_plan, parse, summary};
use esker_lsm::version::{BlobFile, Version};
use std::sync::Arc;
use trees::{NOW, dynamic, fixed, picked, tree, with_times};

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

/// Sizes by cost, with level 0 of 1M tables.
fn by_cost() -> Policy {
    Policy {
        level_shape_by_cost: true,
        write_buffer_size: 1 << 20,
        ..dynamic()
    }
}

#[test]
fn a_level_that_costs_more_than_it_saves_drains() {
    // RocksDB's rule keeps 12M, 120M and 1.2G, and puts a level of 10M above them.
    let v = tree("L3: 1[a-c]#1M\nL4: 2[a-z]#12M\nL5: 3[a-z]#120M\nL6: 4[a-z]#1200M");
    let fixed_ratio = targets(&v, &dynamic());
    assert_eq!(fixed_ratio.base_level, Level(3));
    let t = targets(&v, &by_cost());
    assert_eq!(
        (t.base_level, t.lowest_unnecessary_level),
        (Level(3), Some(Level(3)))
    );
    assert_eq!(
        picked(&v, &by_cost()),
        "L3 1 -> L4 merge LevelMaxLevelSize".replace("1 ->", "1 + L4 2 ->")
    );
    assert!((t.of(Level(6))) == 1200 << 20 && t.of(Level(5)) <= 120 << 20);
}

/// It is older than level 0: what passed it by would be hidden behind it.
#[test]
fn level0_does_not_pass_by_a_level_that_drains() {
    let v = tree(
        "L0: 8[a-z]@8..8 7[a-z]@7..7 6[a-z]@6..6 5[a-z]@5..5\n\
         L3: 1[a-c]#1M\nL4: 2[a-z]#12M\nL5: 3[a-z]#120M\nL6: 4[a-z]#1200M",
    );
    let t = targets(&v, &by_cost());
    assert_eq!(
        (t.base_level, t.lowest_unnecessary_level),
        (Level(3), Some(Level(3)))
    );
}

#[test]
fn level0_waits_for_more_while_writers_press() {
    let level0 = |tables: u64| {
        let tables = (1..=tables).rev();
        let tables: Vec<_> = tables
            .map(|n| format!("{}[a-z]@{n}..{n}", n + 10))
            .collect();
        tree(&format!(
            "L0: {}\nL5: 1[a-z]#90M\nL6: 2[a-z]#1000M",
            tables.join(" ")
        ))
    };
    let goes_down = |v: &Version, moment: PickContext| {
        let plan = pick(v, &by_cost(), &Busy::new(), moment);
        plan.is_some_and(|p| p.start_level() == Level::L0)
    };
    let fresh = |tables: u64| with_times(&level0(tables), 0, NOW.now, 0);
    assert!(!goes_down(&fresh(4), NOW) && !goes_down(&fresh(13), NOW));
    assert!(goes_down(&fresh(14), NOW));
    // Readers should find few tables where somebody waits, and where writers rest.
    let waits = PickContext {
        draining: true,
        ..NOW
    };
    assert!(goes_down(&fresh(4), waits) && !goes_down(&fresh(3), waits));
    let created = |at: u64| goes_down(&with_times(&level0(4), 0, at, 0), NOW);
    assert!(!created(NOW.now - 1));
    assert!(created(NOW.now - 2) && created(0) && created(NOW.now + 1));
    // RocksDB's rule knows no such thing.
    assert!(pick(&fresh(4), &dynamic(), &Busy::new(), NOW).is_some());
}

/// So many tables of level 0, each over all keys, the newest first.
fn wide_tables(count: u64) -> String {
    let tables = (1..=count).rev();
    let tables: Vec<_> = tables
        .map(|n| format!("{}[a-z]@{n}..{n}", n + 10))
        .collect();
    tables.join(" ")
}

/// Level 0 over a base of two tables, with more above the last level than there should be.
fn above_a_base(level0: u64, base: &str, size: &str) -> Version {
    tree(&format!(
        "L0: {}\n{base}: 1[a-m]#{size} 2[n-z]#{size}\nL5: 5[a-z]#90M\nL6: 3[a-m]#500M 4[n-z]#500M",
        wide_tables(level0)
    ))
}

#[test]
fn a_batch_becomes_a_run_of_its_own_above_a_base_that_fell_behind() {
    let base_of = |size: &str| targets(&above_a_base(14, "L4", size), &by_cost()).base_level;
    assert_eq!(base_of("5M"), Level(4));
    let v = above_a_base(14, "L4", "30M");
    assert_eq!(base_of("30M"), Level(3));
    let plan = pick(&v, &by_cost(), &Busy::new(), NOW).expect("much to do");
    assert_eq!(
        (plan.start_level(), plan.output_level, plan.runs()),
        (Level::L0, Level(3), 14)
    );
    // It is not to stay there.
    assert_eq!(
        targets(&v, &by_cost()).lowest_unnecessary_level,
        Some(Level(3))
    );
    // Not where all above the last level is half of that already.
    assert_eq!(base_of("230M"), Level(4));
    // RocksDB's rule knows no such thing.
    assert_eq!(targets(&v, &dynamic()).base_level, Level(4));
}

#[test]
fn an_overgrown_base_gives_away_before_level0_comes() {
    let with_base = |level: &str, size: &str| {
        pick(
            &above_a_base(14, level, size),
            &by_cost(),
            &Busy::new(),
            NOW,
        )
        .expect("much to do")
        .start_level()
    };
    assert_eq!(with_base("L1", "5M"), Level::L0);
    assert_eq!(with_base("L1", "90M"), Level(1));
    assert_eq!(with_base("L4", "230M"), Level(4));
}

/// Two runs above a base of 40M, and a last level of two tables, under level 0 that was written
/// just now.
fn stack(level0: &str, top: &str, last: (u64, u64)) -> Version {
    let below = "L4: 3[a-f]#40M 6[n-p]#10M\nL5: 4[a-m]#40M 5[n-z]#40M";
    let last = format!("L6: 7[a-m]#{}M 8[n-z]#{}M", last.0, last.1);
    let text = format!("L0: {level0}\n{top}: 1[a-m]#40M 2[n-z]#40M\n{below}\n{last}");
    with_times(&tree(&text), 0, NOW.now, 0)
}

/// Sizes by cost, where compactions may be of any size.
fn roomy() -> Policy {
    Policy {
        max_compaction_bytes: 1 << 40,
        ..by_cost()
    }
}

#[test]
fn tables_of_a_stack_fall_until_they_meet_something() {
    let fresh = |text: &str| {
        let v = tree(&format!("L0: {}\n{text}", wide_tables(10)));
        picked(&with_times(&v, 0, NOW.now, 0), &roomy())
    };
    let below = "L5: 4[a-m]#40M 5[n-z]#40M\nL6: 7[a-m]#300M 8[n-z]#500M";
    assert_eq!(
        fresh(&format!(
            "L3: 1[a-m]#40M 2[n-z]#40M\nL4: 3[a-f]#40M\n{below}"
        )),
        "L3 2 -> L4 move LevelMaxLevelSize"
    );
    // What lies lowest goes first, however many levels are empty.
    let deep = "L2: 1[a-c]#9M\nL3: 2[d-z]#9M\nL5: 4[n-z]#40M\nL6: 7[a-m]#300M 8[n-z]#500M";
    assert_eq!(fresh(deep), "L3 2 -> L4 move LevelMaxLevelSize");
}

#[test]
fn the_column_that_meets_least_goes_down_and_dear_ones_wait() {
    let next = |level0: u64, top: &str, last: (u64, u64)| {
        picked(&stack(&wide_tables(level0), top, last), &roomy())
    };
    let column = |top: &str| format!("{top} 1 + L4 3 + L5 4 + L6 7 -> L6 merge LevelMaxLevelSize");
    // 120M meet 300M there, and the other half 90M meet 500M.
    assert_eq!(next(8, "L3", (300, 500)), column("L3"));
    // Five runs of 80M would meet 2.5 times as much of 1000M. Four times that is dear.
    assert_eq!(next(8, "L3", (500, 500)), "nothing");
    // The fuller the stack, the dearer a column may be.
    let with_more = |more: u64| {
        let text = format!(
            "L0: {}\nL3: 1[a-m]#40M 2[n-z]#{more}M\nL4: 3[a-f]#40M 6[n-p]#10M\nL5: 4[a-m]#40M 5[n-z]#40M\n\
             L6: 7[a-m]#416M 8[n-z]#585M",
            wide_tables(8)
        );
        picked(&with_times(&tree(&text), 0, NOW.now, 0), &roomy())
    };
    assert_eq!(with_more(40), "nothing");
    assert_eq!(with_more(110), column("L3"));
    // Nothing is dear while writers hardly press, and where no level is left for the next run.
    assert_eq!(next(3, "L3", (500, 500)), column("L3"));
    let text = format!(
        "L0: {}\nL1: 31[a-m]#40M 32[n-z]#40M\nL2: 33[a-m]#1M 34[n-z]#1M\nL3: 35[a-m]#1M 36[n-z]#1M\n\
         L4: 37[a-f]#40M 38[g-z]#10M\nL5: 39[a-z]#40M\nL6: 40[a-z]#1000M",
        wide_tables(8)
    );
    let full = with_times(&tree(&text), 0, NOW.now, 0);
    let plan = pick(&full, &roomy(), &Busy::new(), NOW).expect("there is no room");
    assert_eq!(
        (plan.start_level(), plan.output_level),
        (Level(1), Level(6))
    );
    // A running column has its part of all levels, and the rest is free.
    let v = stack(&wide_tables(8), "L3", (170, 170));
    let mut busy = Busy::new();
    let first = pick(&v, &roomy(), &busy, NOW).expect("a column");
    assert_eq!(draw_plan(Some(&first)), column("L3"));
    let ticket = busy.register(v.order(), &first);
    let second = pick(&v, &roomy(), &busy, NOW);
    let other = "L3 2 + L4 6 + L5 5 + L6 8 -> L6 merge LevelMaxLevelSize";
    assert_eq!(draw_plan(second.as_ref()), other);
    busy.release(ticket);
    // Writers that rest get the tree in its usual shape, level by level.
    let rested = with_times(&v, 0, NOW.now - 2, 0);
    assert_ne!(picked(&rested, &roomy()), column("L3"));
}

#[test]
fn a_batch_goes_above_a_stack_when_it_is_large() {
    let goes = |level0: &str, top: &str| {
        let v = stack(level0, top, (571, 429));
        let plan = pick(&v, &by_cost(), &Busy::new(), NOW)?;
        Some((
            plan.start_level(),
            plan.output_level,
            plan.inputs[0].files.len(),
        ))
    };
    let tables = |count: u64, size: &str| {
        let tables = (1..=count).rev();
        let tables: Vec<_> = tables
            .map(|n| format!("{}[a-z]#{size}@{n}..{n}", n + 10))
            .collect();
        tables.join(" ")
    };
    let (l0, down) = (Level::L0, Level(2));
    // 80M are a batch, of which an eighth stays; fewer wait, and merge in themselves where they are
    // many tables.
    assert_eq!(goes(&tables(8, "9M"), "L3"), None);
    assert_eq!(goes(&tables(9, "9M"), "L3"), Some((l0, down, 8)));
    assert_eq!(goes(&tables(8, "1M"), "L3"), None);
    assert_eq!(goes(&tables(9, "1M"), "L3"), Some((l0, l0, 9)));
    // So do a batch's where level 0 is full already.
    assert_eq!(goes(&tables(27, "3M"), "L3"), Some((l0, down, 24)));
    assert_eq!(goes(&tables(28, "3M"), "L3"), Some((l0, l0, 16)));
    // Its tables end where those of the stack do, from a small size on.
    let v = stack(&tables(9, "9M"), "L3", (500, 500));
    let plan = pick(&v, &by_cost(), &Busy::new(), NOW).expect("a batch");
    assert_eq!(plan.edge_bytes, Some((72 << 20) / 256));
    let edges: Vec<_> = plan.grandparents.iter().map(|f| f.number.0).collect();
    assert_eq!(edges, [1, 2]);
    // No level is left above the uppermost run.
    let full = goes(&tables(9, "9M"), "L1").expect("a column, or tables that fall");
    assert_ne!(full.0, l0);
}

#[test]
fn a_batch_takes_what_little_is_in_its_way_and_columns_leave_that_alone() {
    let tables: Vec<_> = (11..19).rev().map(|n| format!("{n}[a-z]#10M")).collect();
    let runs = "L2: 2[a-m]#20M\nL3: 3[a-m]#20M\nL4: 4[a-m]#20M\nL5: 5[a-m]#20M\nL6: 6[a-m]#100M 7[n-z]#400M";
    let tree_with = |rest: u64| {
        let text = format!("L0: {}\nL1: 1[a-c]#{rest}M\n{runs}", tables.join(" "));
        with_times(&tree(&text), 0, NOW.now, 0)
    };
    let column = "L1 1 + L2 2 + L3 3 + L4 4 + L5 5 + L6 6 -> L6 merge LevelMaxLevelSize";
    assert_eq!(picked(&tree_with(11), &roomy()), column);
    let small = tree_with(10);
    let mut busy = Busy::new();
    let batch = pick(&small, &roomy(), &busy, NOW).expect("a batch");
    let from: Vec<_> = batch
        .inputs
        .iter()
        .map(|i| (i.level, i.files.len()))
        .collect();
    // The newest one costs no more of level 1, and compactions may be of any size here.
    assert_eq!(from, [(Level::L0, 8), (Level(1), 1)]);
    // It waits for a column that has what is in its way, and no other one begins.
    let large = tree_with(11);
    let running = pick(&large, &roomy(), &busy, NOW).expect("a column");
    let ticket = busy.register(large.order(), &running);
    assert_eq!(
        draw_plan(pick(&small, &roomy(), &busy, NOW).as_ref()),
        "nothing"
    );
    busy.release(ticket);
    let _ticket = busy.register(small.order(), &batch);
    assert_eq!(
        draw_plan(pick(&small, &roomy(), &busy, NOW).as_ref()),
        "nothing"
    );
    // What comes meanwhile merges in itself.
    let then = |came: u64| {
        let came: Vec<_> = (20..20 + came)
            .rev()
            .map(|n| format!("{n}[a-z]#1M"))
            .collect();
        let text = format!(
            "L0: {} {}\nL1: 1[a-c]#10M\n{runs}",
            came.join(" "),
            tables.join(" ")
        );
        let v = with_times(&tree(&text), 0, NOW.now, 0);
        pick(&v, &roomy(), &busy, NOW).map(|p| (p.output_level, p.inputs[0].files.len()))
    };
    assert_eq!(then(8), None);
    assert_eq!(then(9), Some((Level::L0, 9)));
}

#[test]
fn a_stack_says_how_full_it_is() {
    let text = "L0: 9[a-z]#20M\nL3: 1[a-m]#30M\nL5: 2[a-z]#50M\nL6: 3[a-z]#400M";
    let some = fill(&tree(text), &by_cost()).expect("runs lie above the base");
    // Level 0 and five levels of 0.15 of the last one.
    assert_eq!((some.above, some.room), (100 << 20, 360 << 20));
    assert_eq!(fill(&tree(text), &dynamic()), None);
    let usual = tree("L0: 9[a-z]#20M\nL5: 2[a-z]#50M\nL6: 3[a-z]#400M");
    assert_eq!(fill(&usual, &by_cost()), None);
}

#[test]
fn outputs_end_with_what_lies_uppermost_below_them() {
    let v =
        tree("L3: 1[a-z]#90M\nL4: 2[b-e]#1M\nL5: 3[a-c]#9M 4[g-k]#9M\nL6: 5[f-m]#900M 6[n-p]#900M");
    let edges = |policy: Policy| {
        let plan = pick(&v, &policy, &Busy::new(), NOW).expect("level 3 holds too much");
        assert_eq!(plan.output_level, Level(4));
        let edges = plan.grandparents.iter().map(|f| f.number.0);
        edges.collect::<Vec<_>>()
    };
    assert_eq!(edges(dynamic()), [3, 4]);
    // File 5 reaches out of file 4, which ends at the same edge.
    assert_eq!(edges(by_cost()), [3, 5, 6]);
}

#[test]
fn an_edge_is_where_all_levels_have_one() {
    // Files 1 and 2 ended at the edges of 3 and 4, and short of them. A key between would have to
    // go to the left of the edge.
    let v = tree(
        "L3: 9[a-z]#90M\nL4: 8[g-h]#1M\nL5: 1[a-c]#9M 2[f-j]#9M 5[x-z]#9M\nL6: 3[a-d]#900M 4[e-k]#900M 6[l-y]#900M",
    );
    let plan = pick(&v, &by_cost(), &Busy::new(), NOW).expect("level 3 holds too much");
    let edges: Vec<_> = plan.grandparents.iter().map(|f| f.number.0).collect();
    // File 6 lies across the beginning of file 5, and gives an edge to neither.
    assert_eq!((plan.output_level, edges), (Level(4), vec![3, 4, 5]));
}

#[test]
fn a_wide_column_takes_what_lies_within_it() {
    let text = "L0: 20[a-z]#1M\nL3: 1[a-b]#9M 2[c-d]#9M 3[e-f]#9M\nL4: 5[a-d]#9M 4[f-m]#9M\nL5: 10[b-c]#9M 9[k-m]#9M\nL6: 6[a-g]#400M 7[h-z]#400M";
    let v = with_times(&tree(text), 0, NOW.now, 0);
    // File 3 lies on file 4, which reaches out of it.
    assert_eq!(
        picked(&v, &by_cost()),
        "L3 1 2 + L4 5 + L5 10 + L6 6 -> L6 merge LevelMaxLevelSize"
    );
}

#[test]
fn a_crowded_level0_merges_in_itself_while_its_base_cannot_give_away() {
    let v = tree(&format!(
        "L0: {}\nL1: 1[a-m]#90M 2[n-z]#90M\nL2: 3[a-z]#200M\nL6: 4[a-m]#500M 5[n-z]#500M",
        wide_tables(18)
    ));
    let v = with_times(&v, 0, NOW.now, 0);
    let mut busy = Busy::new();
    // What the base meets is taken.
    let below = tree("L2: 3[a-z]#200M\nL6: 4[a-m]#500M 5[n-z]#500M");
    let running = pick(&below, &by_cost(), &busy, NOW).expect("level 2 holds too much");
    assert_eq!(running.start_level(), Level(2));
    let _ticket = busy.register(v.order(), &running);
    let plan = pick(&v, &by_cost(), &busy, NOW).expect("writers would be slowed down");
    assert_eq!(
        (plan.start_level(), plan.output_level),
        (Level::L0, Level::L0)
    );
}

#[test]
fn a_merge_goes_on_through_levels_that_hold_too_much() {
    let allowed = |megabytes: u64, policy: Policy| Policy {
        max_compaction_bytes: megabytes << 20,
        ..policy
    };
    let above = "L4: 1[a-c]#16M 2[d-z]#48M\nL5: 3[a-c]#20M";
    let full = |last: &str, policy: Policy| {
        let v = tree(&format!("{above} 4[d-z]#200M\nL6: {last} 6[d-z]#900M"));
        picked(&v, &policy)
    };
    let one = "L4 1 + L5 3 -> L5 merge LevelMaxLevelSize";
    let two = "L4 1 + L5 3 + L6 5 -> L6 merge LevelMaxLevelSize";
    // On average a table of level 5 meets about four times its size below.
    assert_eq!(full("5[a-c]#70M", allowed(110, by_cost())), two);
    assert_eq!(full("5[a-c]#130M", allowed(200, by_cost())), one);
    // Not with more than a compaction may have, and not by RocksDB's rule.
    assert_eq!(full("5[a-c]#70M", allowed(100, by_cost())), one);
    assert_eq!(full("5[a-c]#70M", allowed(110, dynamic())), one);
    // Nor where the level does not hold too much.
    let v = tree(&format!("{above} 4[d-z]#65M\nL6: 5[a-c]#70M 6[d-z]#900M"));
    assert_eq!(picked(&v, &allowed(110, by_cost())), one);
}

/// Level 0, written just now, over two levels of one table each.
fn over_two_levels(level0: u64) -> Version {
    let level0 = wide_tables(level0);
    let text = format!("L0: {level0}\nL5: 1[a-z]#90M\nL6: 2[a-z]#1000M");
    with_times(&tree(&text), 0, NOW.now, 0)
}

#[test]
fn a_crowded_level0_merges_in_itself_while_the_way_down_is_blocked() {
    let old = over_two_levels(14);
    let mut busy = Busy::new();
    let down = pick(&old, &by_cost(), &busy, NOW).expect("level 0 goes down");
    let ticket = busy.register(old.order(), &down);
    assert!(pick(&over_two_levels(14), &by_cost(), &busy, NOW).is_none());
    assert!(pick(&over_two_levels(17), &by_cost(), &busy, NOW).is_none());
    let plan =
        pick(&over_two_levels(22), &by_cost(), &busy, NOW).expect("writers would be slowed down");
    assert_eq!(
        (plan.output_level, plan.inputs[0].files.len()),
        (Level::L0, 8)
    );
    busy.release(ticket);
}

#[test]
fn a_crowded_level0_goes_before_a_base_that_gives_away() {
    let with_level0 = |tables: u64| {
        let base = "L1: 1[a-f]#90M 2[g-m]#90M 3[n-z]#90M\nL5: 4[a-f]#30M 7[g-m]#30M 8[n-z]#30M";
        tree(&format!(
            "L0: {}\n{base}\nL6: 5[a-m]#500M 6[n-z]#500M",
            wide_tables(tables)
        ))
    };
    let goes_to = |tables: u64, busy: &Busy| {
        let plan = pick(&with_level0(tables), &by_cost(), busy, NOW);
        plan.map(|p| (p.start_level(), p.output_level))
    };
    let mut busy = Busy::new();
    let v = with_level0(17);
    let gives = pick(&v, &by_cost(), &busy, NOW).expect("the base is overgrown");
    assert_eq!(gives.start_level(), Level(1));
    let ticket = busy.register(v.order(), &gives);
    assert_ne!(goes_to(17, &busy), Some((Level::L0, Level::L0)));
    assert_eq!(goes_to(18, &busy), Some((Level::L0, Level::L0)));
    busy.release(ticket);
    // With the base free it gives away first, as ever.
    assert_eq!(goes_to(18, &busy), Some((Level(1), Level(2))));
}

#[test]
fn level0_near_its_brim_merges_in_itself_before_it_goes_down() {
    let goes_to = |tables: u64| {
        let v = over_two_levels(tables);
        let plan = pick(&v, &by_cost(), &Busy::new(), NOW).expect("level 0 is full");
        assert_eq!(plan.start_level(), Level::L0);
        plan.output_level
    };
    assert_ne!(goes_to(27), Level::L0);
    assert_eq!(goes_to(28), Level::L0);
}

#[test]
fn debt_counts_what_must_be_rewritten() {
    let v = tree("L1: 1[a-c]#30M\nL2: 2[a-z]#60M");
    // 20M too much, each byte meets two below.
    assert_eq!(pending_compaction_bytes(&v, &fixed()), 60 << 20);
    assert!(summary(&v, &fixed(), &Busy::new()).contains("pending compaction bytes: 62914560"));
}

/// What a merge takes along through levels that hold too much is written once.
#[test]
fn debt_of_levels_that_go_down_together_counts_once() {
    let v = tree("L3: 1[a-z]#100M\nL4: 2[a-z]#100M\nL5: 3[a-z]#200M\nL6: 4[a-z]#400M");
    let debt = |policy: &Policy| pending_compaction_bytes(&v, policy) >> 20;
    let t = targets(&v, &by_cost());
    let over = |level: u8, held: u64| held - (t.of(Level(level)) >> 20);
    // Level 3 meets as much; both of them half as much again, and all three what there is once
    // more.
    let (first, second) = (over(3, 100), over(4, 100 + over(3, 100)));
    let third = over(5, 200 + second);
    let meets = [
        first * 2,
        second * 200 / (100 + first),
        third * 400 / (200 + second),
    ];
    assert!(debt(&by_cost()).abs_diff(meets.iter().sum()) < 4);
    assert!(debt(&dynamic()) > debt(&by_cost()));
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
