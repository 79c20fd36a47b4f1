//! Smaller programs that still fail. Threads make a failure a matter of chance, so a program has
//! failed when it failed once in several tries.

use std::time::{Duration, Instant};

use super::program::Program;
use crate::Failure;

/// How often a candidate may run.
const TRIES: usize = 4;

/// Where a run failed, and how.
pub(super) struct Found {
    /// The number of the model's call, when one of them was wrong.
    pub(super) call: Option<usize>,
    pub(super) failure: Failure,
}

/// Makes the program shorter for so long; `run` gives the failure of one run.
pub(super) fn shrink(
    mut program: Program,
    found: Found,
    time: Duration,
    run: &dyn Fn(&Program) -> Option<Found>,
) -> (Program, Found) {
    let (end, mut found) = (Instant::now() + time, found);
    let fails = |candidate: &Program| {
        let late = || Instant::now() > end;
        (0..TRIES).find_map(|_| if late() { None } else { run(candidate) })
    };
    cut(&mut program, &found);
    for thread in (1..program.threads.len()).rev() {
        let mut candidate = program.clone();
        candidate.threads.remove(thread);
        if let Some(newer) = fails(&candidate) {
            (program, found) = (candidate, newer);
            cut(&mut program, &found);
        }
    }
    let mut size = program.threads.iter().map(Vec::len).max().unwrap_or(0) / 2;
    while size > 0 && Instant::now() < end {
        let before = program.calls();
        for thread in (0..program.threads.len()).rev() {
            let mut at = program.threads[thread].len();
            while at > 0 && Instant::now() < end {
                at = at.min(program.threads[thread].len());
                let from = at.saturating_sub(size);
                let mut candidate = program.clone();
                candidate.threads[thread].drain(from..at);
                if let Some(newer) = fails(&candidate) {
                    (program, found) = (candidate, newer);
                    cut(&mut program, &found);
                }
                at = from;
            }
        }
        if size > 1 {
            size /= 2;
        } else if program.calls() == before {
            break;
        }
    }
    (program, found)
}

/// Leaves out what comes behind the call that was wrong.
fn cut(program: &mut Program, found: &Found) {
    if let (Some(call), Some(calls)) = (found.call, program.threads.first_mut()) {
        calls.truncate(call + 1);
    }
}
