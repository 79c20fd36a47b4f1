//! Whose turn it is.

use super::*;

const A: FamilyId = FamilyId(1);
const B: FamilyId = FamilyId(2);
const C: FamilyId = FamilyId(3);

fn plan(urgency: f64) -> Option<QueuedPlan> {
    Some(QueuedPlan {
        urgency,
        relieves_level0: false,
        is_aged: false,
    })
}

fn never() -> Recheck {
    Recheck::default()
}

#[test]
fn the_family_with_most_memtables_is_flushed_first_and_then_the_one_that_waited() {
    let mut queue = WorkQueue::default();
    assert_eq!(queue.next_flush(), None);
    queue.enter_flush(B, 1, true);
    queue.enter_flush(A, 1, true);
    assert_eq!(queue.next_flush(), Some(B));
    queue.enter_flush(C, 2, true);
    assert_eq!(queue.next_flush(), Some(C));
    // A flush took them; they are there until it ends.
    queue.enter_flush(C, 0, true);
    assert_eq!(queue.next_flush(), Some(B));
    queue.enter_flush(A, 2, true);
    queue.enter_flush(A, 1, true);
    assert_eq!(queue.next_flush(), Some(B), "A came later all the same");
    for family in [A, B] {
        queue.enter_flush(family, 0, false);
    }
    assert_eq!(queue.next_flush(), None);
    assert!(queue.has_memtables());
    queue.forget(C);
    assert!(!queue.has_memtables());
}

#[test]
fn a_family_stands_in_line_once() {
    let mut queue = WorkQueue::default();
    queue.look_again(A);
    queue.look_again(B);
    queue.look_again(A);
    assert_eq!(queue.next_unlooked(), Some(A));
    queue.look_again(A);
    queue.forget(B);
    assert_eq!(queue.next_unlooked(), Some(A));
    assert_eq!(queue.next_unlooked(), None);
}

/// Every time that an overloaded family had a plan it went before one that needed less.
#[test]
fn a_trickling_family_gets_one_start_in_four_beside_an_overloaded_one() {
    let mut queue = WorkQueue::default();
    let mut started = Vec::new();
    for family in [A, B, C] {
        queue.look_again(family);
    }
    for _ in 0..16 {
        while let Some(family) = queue.next_unlooked() {
            let found = match family {
                A => plan(3.5),
                B => plan(1.0),
                _ => None,
            };
            queue.enter_compaction(family, found, never(), 0);
        }
        let next = queue.next_compaction(true).expect("A and B have plans");
        queue.started(next);
        started.push(next);
    }
    let turns = started.iter().filter(|f| **f == B).count();
    assert!((3..=4).contains(&turns), "{started:?}");
    assert!(!started.contains(&C));
    assert!(started.windows(8).all(|w| w.contains(&B)), "{started:?}");
}

#[test]
fn of_two_plans_the_more_urgent_one_goes_first() {
    let mut queue = WorkQueue::default();
    queue.enter_compaction(A, plan(1.5), never(), 0);
    queue.enter_compaction(B, plan(2.25), never(), 0);
    assert_eq!(queue.next_compaction(true), Some(B));
    // Its columns were merged.
    queue.enter_compaction(B, plan(0.4), never(), 0);
    assert_eq!(queue.next_compaction(true), Some(A));
    queue.enter_compaction(A, None, never(), 0);
    assert_eq!(queue.next_compaction(true), Some(B));
    assert_eq!(queue.looks(), 4);
}

#[test]
fn time_and_snapshots_bring_families_back() {
    let mut queue = WorkQueue::default();
    let recheck = |at, above| Recheck {
        at,
        above,
        in_us: None,
    };
    queue.enter_compaction(A, None, recheck(Some(100), None), 0);
    queue.enter_compaction(B, None, recheck(Some(50), Some(Seq(7))), 0);
    queue.pass(49, Seq(7), 0);
    assert_eq!(queue.next_unlooked(), None);
    queue.pass(49, Seq(8), 0);
    assert_eq!(queue.next_unlooked(), Some(B));
    queue.enter_compaction(B, None, never(), 0);
    queue.pass(100, Seq(9), 0);
    assert_eq!(queue.next_unlooked(), Some(A));
    assert_eq!(queue.next_unlooked(), None, "B has nothing to wait for");
    queue.pass(1_000, Seq(9), 0);
    assert_eq!(queue.next_unlooked(), None);
}

#[test]
fn the_clock_brings_families_back() {
    let mut queue = WorkQueue::default();
    let soon = Recheck {
        in_us: Some(30),
        ..never()
    };
    queue.enter_compaction(A, None, soon, 100);
    queue.enter_compaction(B, None, soon, 110);
    queue.pass(u64::MAX, Seq(9), 129);
    assert_eq!(queue.next_unlooked(), None);
    queue.enter_compaction(B, None, never(), 120);
    queue.pass(0, Seq(9), 130);
    assert_eq!(queue.next_unlooked(), Some(A));
    queue.pass(0, Seq(9), u64::MAX);
    assert_eq!(queue.next_unlooked(), None);
}

#[test]
fn plans_that_relieve_level0_are_known_apart() {
    let mut queue = WorkQueue::default();
    queue.enter_compaction(A, plan(3.5), never(), 0);
    assert_eq!(queue.next_level0(), None);
    let level0 = |urgency| {
        Some(QueuedPlan {
            urgency,
            relieves_level0: true,
            is_aged: false,
        })
    };
    queue.enter_compaction(B, level0(2.75), never(), 0);
    queue.enter_compaction(C, level0(3.0), never(), 0);
    assert_eq!(queue.next_level0(), Some((C, 3.0)));
    assert_eq!(queue.next_compaction(true), Some(A));
    queue.started(C);
    assert_eq!(queue.next_level0(), Some((B, 2.75)));
    queue.forget(B);
    assert_eq!(queue.next_level0(), None);
}

#[test]
fn what_is_due_by_age_waits_until_it_may_start() {
    let mut queue = WorkQueue::default();
    let aged = |urgency| {
        Some(QueuedPlan {
            urgency,
            relieves_level0: false,
            is_aged: true,
        })
    };
    queue.enter_compaction(A, aged(0.5), never(), 0);
    assert_eq!(queue.next_compaction(false), None);
    assert_eq!(queue.next_compaction(true), Some(A));
    assert!(queue.has_work());
    queue.enter_compaction(B, plan(0.1), never(), 0);
    assert_eq!(queue.next_compaction(false), Some(B));
    assert_eq!(queue.next_compaction(true), Some(A));
    for _ in 0..8 {
        // The turn of who waited longest is no way round it.
        queue.started(B);
        queue.enter_compaction(B, plan(1.0), never(), 0);
        assert_eq!(queue.next_compaction(false), Some(B));
    }
    queue.enter_compaction(A, plan(1.5), never(), 0);
    assert_eq!(queue.next_compaction(false), Some(A));
    queue.forget(A);
    queue.forget(B);
    assert!(queue.next_compaction(true).is_none());
}
