//! How flushes and compactions share the limit on jobs.

use super::*;
use crate::observe::StallCause;
use crate::write::pace::{Limit, UNLIMITED};
use esker_format::Seq;

fn jobs(flushes_writing: usize, compactions: usize) -> Jobs {
    Jobs {
        flushes_writing,
        compactions,
        ..Jobs::default()
    }
}

#[test]
fn flushes_take_over_what_compactions_leave() {
    let limits = JobLimits {
        flushes: 1,
        most_flushes: 2,
        compactions: 2,
    };
    let may = |flushes, compactions| {
        let jobs = jobs(flushes, compactions);
        (jobs.may_flush(&limits), jobs.may_compact(&limits))
    };
    assert_eq!(may(0, 0), (true, true));
    assert_eq!(may(0, 2), (true, false), "a flush has a place of its own");
    assert_eq!(may(1, 1), (true, true));
    assert_eq!(may(1, 2), (false, false));
    assert_eq!(may(2, 0), (false, true));
    assert_eq!(may(2, 1), (false, false), "three run, which is all");
}

#[test]
fn a_limit_on_flushes_that_was_given_holds() {
    let limits = JobLimits {
        flushes: 1,
        most_flushes: 1,
        compactions: 8,
    };
    assert!(jobs(0, 0).may_flush(&limits));
    assert!(!jobs(1, 0).may_flush(&limits));
    assert!(jobs(1, 7).may_compact(&limits));
}

#[test]
fn a_tree_that_holds_its_writers_back_is_pressed() {
    let any = Moment {
        now: 1,
        oldest_snapshot: Seq(2),
        settle: false,
        pressed: false,
    };
    let (gate, now_us) = (Gate::new(), 1_000);
    let pressed = || moment_of(&gate, any, now_us).pressed;
    let set = |stop, bytes_per_s| {
        let cause = StallCause::L0FileCountLimit;
        let limit = Limit { cause, bytes_per_s };
        gate.set(&gate.turn(), now_us, stop, limit, false);
    };
    assert!(!pressed());
    set(None, 1e6);
    assert!(!pressed(), "nobody has waited yet");
    gate.note_held(now_us);
    assert!(pressed());
    set(None, UNLIMITED);
    assert!(!pressed());
    set(Some(StallCause::MemtableLimit), UNLIMITED);
    assert!(pressed());
    let moment = moment_of(&gate, any, now_us);
    assert_eq!((moment.now, moment.oldest_snapshot), (1, Seq(2)));
}
