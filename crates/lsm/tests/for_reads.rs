//! Merges for reads: what they take, in which order, and when they do not take place.

#[path = "support/trees.rs"]
mod trees;

use esker_lsm::pick::{CompactionStyle, PickContext, Policy, WriterState};
use esker_lsm::plan::Busy;
use esker_lsm::read_demand::{LEAST_DEBT_NS, ReadDemand, SampledReads, extra_ns};
use esker_lsm::shape::draw_plan;
use esker_lsm::version::Version;
use std::sync::atomic::Ordering::Relaxed;
use trees::{NOW, fixed, pick, tree, with_times};

fn paid(debt_ns: u64) -> PickContext {
    PickContext {
        reads: ReadDemand {
            debt_ns,
            merge_pace: None,
            writers_rest: false,
        },
        ..NOW
    }
}

fn picked(tree: &Version, policy: &Policy, moment: PickContext) -> String {
    draw_plan(pick(tree, policy, &Busy::new(), moment).as_ref())
}

const RICH: u64 = u64::MAX / 4;

#[test]
fn a_leveled_tree_is_emptied_from_where_a_run_is_cheapest() {
    let policy = fixed();
    let v = tree("L0: 9[a-m]#1M@40..49\nL1: 7[a-m]#4M 6[n-z]#4M\nL3: 2[a-m]#40M 1[n-z]#40M");
    assert_eq!(picked(&v, &policy, paid(0)), "nothing");
    assert_eq!(
        picked(&v, &policy, paid(RICH)),
        "L0 9 + L1 7 -> L1 merge ReadTriggered"
    );
    // One part after the other, past the empty level.
    let v = tree("L1: 7[a-m]#4M 6[n-z]#4M\nL3: 2[a-m]#40M 1[n-z]#41M");
    assert_eq!(
        picked(&v, &policy, paid(RICH)),
        "L1 7 + L3 2 -> L3 merge ReadTriggered"
    );
    let v = tree("L1: 6[n-z]#4M\nL3: 3[a-m]#44M 1[n-z]#41M");
    assert_eq!(
        picked(&v, &policy, paid(RICH)),
        "L1 6 + L3 1 -> L3 merge ReadTriggered"
    );
    let v = tree("L3: 3[a-m]#44M 4[n-z]#45M");
    assert_eq!(picked(&v, &policy, paid(RICH)), "nothing");
}

#[test]
fn level0_alone_becomes_one_run() {
    let v = tree("L0: 9[a-m]#1M@40..49 8[a-m]#1M@30..39");
    assert_eq!(
        picked(&v, &fixed(), paid(RICH)),
        "L0 9 8 -> L1 merge ReadTriggered"
    );
    let one = tree("L0: 9[a-m]#1M@40..49");
    assert_eq!(picked(&one, &fixed(), paid(RICH)), "nothing");
    let seek = |took_ns| SampledReads::Seek { took_ns };
    assert_eq!(extra_ns(&one, 0, seek(7_000)), 0);
    // Half of it with two runs; not less than a search takes, nor what no search takes.
    assert_eq!(extra_ns(&one, 1, seek(7_000)), 3_500);
    assert_eq!(extra_ns(&one, 1, seek(0)), 500);
    assert_eq!(extra_ns(&one, 2, seek(u64::MAX)), 20_000);
}

#[test]
fn point_reads_pay_for_filters_and_for_blocks_beyond_one_each() {
    let v = tree("L0: 9[a-m]#1M@40..49 8[a-m]#1M@30..39 7[a-m]#1M@20..29");
    let gets = |count, took_ns, data_blocks| SampledReads::Gets {
        count,
        took_ns,
        data_blocks,
    };
    let filtered = extra_ns(&v, 0, gets(1, 900, 1));
    assert_eq!(filtered, 200, "two filters");
    assert_eq!(
        extra_ns(&v, 0, gets(1, 3_000, 3)),
        2_000,
        "two blocks of three"
    );
    assert_eq!(extra_ns(&v, 0, gets(10, 9_000, 10)), 10 * filtered);
    assert_eq!(extra_ns(&v, 0, gets(10, 40_000, 20)), 20_000);
    // Never more blocks than runs, whatever a read has counted.
    assert_eq!(extra_ns(&v, 0, gets(1, 9_000, 9)), 2_000);
    assert_eq!(extra_ns(&v, 0, gets(1, 0, 0)), filtered);
}

#[test]
fn merges_cost_what_those_before_did() {
    let v = tree("L2: 7[a-z]#80M\nL3: 6[a-z]#80M");
    let bytes = 160 << 20;
    let at = |pace| {
        let mut moment = paid(3 * bytes);
        moment.reads.merge_pace = pace;
        picked(&v, &fixed(), moment)
    };
    assert_eq!(at(None), "nothing");
    assert_eq!(at(Some(3.1)), "nothing");
    assert_eq!(at(Some(2.9)), "L2 7 + L3 6 -> L3 merge ReadTriggered");
}

#[test]
fn a_merge_begins_when_reads_have_paid_for_it() {
    // Two runs beyond the first; the cheaper pair has half of the debt.
    let v = tree("L1: 7[a-z]#8M\nL2: 6[a-z]#8M\nL3: 1[a-z]#800M");
    let cost = 8 * (16 << 20);
    assert_eq!(picked(&v, &fixed(), paid(2 * cost - 1)), "nothing");
    let plan = pick(&v, &fixed(), &Busy::new(), paid(2 * cost)).expect("it is paid");
    assert_eq!(
        draw_plan(Some(&plan)),
        "L1 7 + L2 6 -> L2 merge ReadTriggered"
    );
    assert_eq!(ReadDemand::default().merge_ns(plan.input_bytes()), cost);
    assert!(plan.urgency > 0.0 && plan.urgency < 0.2, "others go first");
    // However small it is.
    let v = tree("L1: 7[a-z]#1K\nL3: 1[a-z]#1K");
    assert_eq!(picked(&v, &fixed(), paid(LEAST_DEBT_NS - 1)), "nothing");
    assert_ne!(picked(&v, &fixed(), paid(LEAST_DEBT_NS)), "nothing");
}

#[test]
fn runs_of_a_universal_tree_merge_as_far_as_is_paid() {
    let universal = Policy {
        compaction_style: CompactionStyle::Universal,
        ..fixed()
    };
    let v = tree("L0: 9[a-z]#1M@40..49 8[a-z]#2M@30..39\nL6: 1[a-z]#800M");
    let cost = |megabytes: u64| 8 * (megabytes << 20);
    assert_eq!(picked(&v, &universal, paid(2 * cost(3) - 1)), "nothing");
    let newest = picked(&v, &universal, paid(LEAST_DEBT_NS));
    assert_eq!(newest, "L0 9 8 -> L5 merge ReadTriggered");
    let all = picked(&v, &universal, paid(cost(803)));
    assert_eq!(all, "L0 9 8 + L6 1 -> L6 merge ReadTriggered");
}

#[test]
fn writers_running_jobs_and_the_option_come_first() {
    let v = tree("L1: 7[a-m]#4M 5[n-z]#4M\nL3: 2[a-m]#40M 1[n-z]#41M");
    let held = PickContext {
        writers: WriterState::Writing,
        ..paid(RICH)
    };
    assert_eq!(picked(&v, &fixed(), held), "nothing");
    let off = Policy {
        compaction_for_reads: false,
        ..fixed()
    };
    assert_eq!(picked(&v, &off, paid(RICH)), "nothing");
    let mut busy = Busy::new();
    let first = pick(&v, &fixed(), &busy, paid(RICH)).expect("it is paid");
    let _running = busy.register(v.order(), &first);
    assert!(pick(&v, &fixed(), &busy, paid(RICH)).is_none());
    // A flush a moment ago.
    let v = tree("L0: 9[a-m]#1M@40..49\nL1: 7[a-m]#4M");
    let fresh = with_times(&v, 0, NOW.now, 0);
    assert_eq!(picked(&fresh, &fixed(), paid(RICH)), "nothing");
    let rested = with_times(&v, 0, NOW.now - 2, 0);
    assert_ne!(picked(&rested, &fixed(), paid(RICH)), "nothing");
}

/// The tree, with as many reads in vain of each file as `reads` says.
fn read_in_vain(tree: Version, reads: &[(u64, u64)]) -> Version {
    for (_, file) in tree.files() {
        if let Some((_, n)) = reads.iter().find(|(number, _)| *number == file.number.0) {
            file.collapsible_reads.store(*n, Relaxed);
        }
    }
    tree
}

fn with_threshold(threshold: f64) -> Policy {
    Policy {
        read_triggered_compaction_threshold: threshold,
        ..fixed()
    }
}

#[test]
fn files_that_reads_search_in_vain_go_down_the_most_searched_first() {
    let shape = "L1: 7[a-f]#4M 6[n-z]#4M\nL2: 2[a-m]#40M 1[n-z]#40M";
    let reads = [(7, 50_000), (6, 90_000), (2, 900_000_000)];
    let v = read_in_vain(tree(shape), &reads);
    // 4M bytes: 0.0119 and 0.0215 reads a byte. The last level has nowhere to go.
    assert_eq!(
        picked(&v, &with_threshold(0.01), paid(0)),
        "L1 6 + L2 1 -> L2 merge ReadTriggered"
    );
    assert_eq!(picked(&v, &with_threshold(0.03), paid(0)), "nothing");
    assert_eq!(picked(&v, &with_threshold(0.0), paid(0)), "nothing");
    let fifo = Policy {
        compaction_style: CompactionStyle::Fifo,
        ..with_threshold(0.01)
    };
    let level0 = read_in_vain(tree("L0: 9[a-m]#1M@40..49"), &[(9, 900_000)]);
    assert_eq!(picked(&level0, &fifo, paid(0)), "nothing");
}

#[test]
fn a_file_of_level0_that_reads_search_in_vain_takes_those_that_overlap_along() {
    let shape = "L0: 9[a-f]#1M@40..49 8[d-m]#1M@30..39 5[p-q]#1M@20..29\nL4: 1[a-z]#40M";
    let v = read_in_vain(tree(shape), &[(9, 50_000)]);
    assert_eq!(
        picked(&v, &with_threshold(0.01), paid(0)),
        "L0 9 8 -> L1 merge ReadTriggered"
    );
    let universal = Policy {
        compaction_style: CompactionStyle::Universal,
        level0_file_num_compaction_trigger: 10,
        ..with_threshold(0.01)
    };
    // With the oldest run in it, the other table is free to come along.
    assert_eq!(
        picked(&v, &universal, paid(0)),
        "L0 9 8 5 + L4 1 -> L4 merge ReadTriggered"
    );
}
