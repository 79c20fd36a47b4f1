//! How flushes and compactions share the limit on jobs.

use super::*;

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
