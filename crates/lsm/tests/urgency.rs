//! The one scale of urgency, as pictures: trees as text, each with the plan that it gets and that
//! plan's place.

#[path = "support/trees.rs"]
mod trees;

use esker_lsm::load::StallTriggers;
use esker_lsm::pick::{CompactionStyle, Policy};
use esker_lsm::plan::Busy;
use esker_lsm::shape::draw_plan;
use esker_lsm::version::Version;
use trees::{NOW, fixed, pick, tree, with_times};

/// The plan and its urgency.
fn urgency(v: &Version, policy: &Policy) -> (String, f64) {
    let plan = pick(v, policy, &Busy::new(), NOW);
    let urgency = plan.as_ref().map_or(0.0, |p| p.urgency);
    (draw_plan(plan.as_ref()), urgency)
}

/// This many tables of level 0 that all meet.
fn wide(count: u64) -> String {
    let tables = (1..=count).rev();
    let tables: Vec<_> = tables
        .map(|n| format!("{}[a-z]#1M@{n}..{n}", n + 10))
        .collect();
    tables.join(" ")
}

fn by_cost() -> Policy {
    Policy {
        level_compaction_dynamic_level_bytes: true,
        level_shape_by_cost: true,
        write_buffer_size: 1 << 20,
        max_compaction_bytes: 1 << 40,
        ..fixed()
    }
}

/// A stack of runs below this many tables of level 0, with writers at work.
fn stack(level0: u64) -> Version {
    let text = format!(
        "L0: {}\nL3: 1[a-m]#40M 2[n-z]#40M\nL4: 3[a-f]#40M 6[n-p]#10M\nL5: 4[a-m]#40M 5[n-z]#40M\n\
         L6: 7[a-m]#300M 8[n-z]#500M",
        wide(level0)
    );
    with_times(&tree(&text), 0, NOW.now, 0)
}

#[track_caller]
fn check(v: &Version, policy: &Policy, plan: &str, range: std::ops::RangeInclusive<f64>) {
    let (drawn, urgency) = urgency(v, policy);
    assert!(drawn.contains(plan), "{drawn}");
    assert!(range.contains(&urgency), "{urgency} of {drawn}");
}

#[test]
fn what_is_only_old_stands_below_what_is_too_large() {
    let marked = tree("L5: 2[a-c]#1M*\nL6: 1[a-f]#64M");
    check(&marked, &fixed(), "FilesMarkedForCompaction", 0.8..=0.8);
    let old = with_times(&tree("L5: 2[a-c]#1M\nL6: 1[a-f]#64M"), 5, 5, 0);
    let ttl = Policy {
        ttl: 100,
        ..fixed()
    };
    check(&old, &ttl, "Ttl", 0.5..=0.5);
    let period = Policy {
        periodic_compaction_seconds: 100,
        ..fixed()
    };
    check(&old, &period, "PeriodicCompaction", 0.4..=0.4);
    let full = tree("L1: 1[a-c]#6M 2[d-f]#6M\nL2: 4[a-b]#9M");
    check(&full, &fixed(), "LevelMaxLevelSize", 1.1..=1.2);
    let fuller = tree("L1: 1[a-c]#16M 2[d-f]#16M\nL2: 4[a-b]#9M");
    check(&fuller, &fixed(), "LevelMaxLevelSize", 1.6..=1.7);
}

#[test]
fn level0_rises_with_what_its_writers_have_left() {
    let at = |count| {
        urgency(
            &tree(&format!("L0: {}\nL1: 1[a-z]#9M", wide(count))),
            &fixed(),
        )
        .1
    };
    let all: Vec<f64> = [4, 5, 14, 15, 19, 20, 28, 36, 40].map(at).to_vec();
    assert!(all.is_sorted(), "{all:?}");
    assert!(all[0] >= 1.0 && all[2] < 2.0, "{all:?}");
    // From 15 of 20 on they are near, from 20 on slowed down, and stopped at 36.
    assert!((2.75..=2.76).contains(&all[3]), "{all:?}");
    assert!((3.0..=3.1).contains(&all[5]), "{all:?}");
    assert!((3.4..=3.6).contains(&all[6]), "{all:?}");
    assert!(all[7] == 4.0 && all[8] == 4.0, "{all:?}");
}

/// All of these had no score and lost to any level at its target.
#[test]
fn the_plans_of_an_overloaded_tree_stand_by_its_need() {
    // A slice of a tree whose level 0 has room, and whose stack is nearly half full.
    check(
        &stack(8),
        &by_cost(),
        "L3 1 + L4 3 + L5 4 + L6 7 -> L6",
        2.8..=2.85,
    );
    // The same while level 0 fills up, which slices make room for.
    let (drawn, _) = urgency(&stack(17), &by_cost());
    check(&stack(17), &by_cost(), &drawn, 2.8..=2.9);
    // Level 0 merges in itself when it is about to stop writers.
    check(
        &stack(30),
        &by_cost(),
        "-> L0 merge LevelL0FilesNum",
        3.5..=3.7,
    );
    // A move into an empty range.
    let pick_trivial_move = with_times(
        &tree(&format!(
            "L0: {}\nL3: 1[a-m]#40M 2[n-z]#40M\nL4: 3[a-f]#40M\nL5: 4[a-m]#40M 5[n-z]#40M\n\
             L6: 7[a-m]#300M 8[n-z]#500M",
            wide(18)
        )),
        0,
        NOW.now,
        0,
    );
    check(
        &pick_trivial_move,
        &by_cost(),
        "L3 2 -> L4 move",
        2.85..=2.95,
    );
    // Relief: level 0 merges in itself while the base is too large, and no runs lie above it.
    let crowded = tree(&format!(
        "L0: {}\nL5: 4[a-z]#400M\nL6: 7[a-z]#900M",
        wide(29)
    ));
    check(&crowded, &by_cost(), "", 3.5..=3.7);
}

#[test]
fn debt_counts_for_what_pays_it() {
    let owed = Policy {
        stall_triggers: StallTriggers::new((20, 36), (20 << 20, 200 << 20)),
        ..fixed()
    };
    let deep = tree("L1: 1[a-c]#5M\nL2: 2[a-c]#120M 3[d-f]#20M\nL3: 4[a-b]#90M");
    check(&deep, &owed, "L2 3 -> L3 move", 3.0..=3.9);
    check(&deep, &fixed(), "L2 3 -> L3 move", 1.0..=2.0);
}

#[test]
fn other_styles_have_their_places() {
    let universal = Policy {
        compaction_style: CompactionStyle::Universal,
        ..fixed()
    };
    let runs = |count| tree(&format!("L0: {}\nL6: 1[a-z]#400M", wide(count)));
    check(&runs(5), &universal, "Universal", 1.0..=2.0);
    check(&runs(17), &universal, "Universal", 2.85..=2.95);
    check(&runs(27), &universal, "Universal", 3.4..=3.6);
    let mut fifo = Policy {
        compaction_style: CompactionStyle::Fifo,
        ..fixed()
    };
    fifo.compaction_options_fifo.max_table_files_size = 3 << 20;
    let v = tree(&format!("L0: {}", wide(6)));
    check(&v, &fifo, "FifoMaxSize", 1.4..=1.6);
    let expiring = Policy {
        ttl: 100,
        ..fifo.clone()
    };
    let old = with_times(&tree(&format!("L0: {}", wide(3))), 5, 5, 0);
    check(&old, &expiring, "FifoTtl", 0.9..=0.9);
}
