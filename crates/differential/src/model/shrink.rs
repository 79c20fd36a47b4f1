//! Smaller programs that still fail. Threads make a failure a matter of chance, so a program has
//! failed when it failed once in several tries.

use std::time::{Duration, Instant};

use super::kinds;
use super::program::Program;
use crate::Failure;

/// How often a candidate may run.
const TRIES: usize = 4;

/// Where a run failed, and how.
pub(super) struct FailedCall {
    /// The number of the model's call, when one of them was wrong.
    pub(super) call: Option<usize>,
    pub(super) failure: Failure,
}

/// Makes the program shorter for so long; `run` gives the failure of one run.
pub(super) fn shrink(
    mut program: Program,
    found: FailedCall,
    time: Duration,
    run: &dyn Fn(&Program) -> Option<FailedCall>,
) -> (Program, FailedCall) {
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
    thin(&mut program, &mut found, end, &fails);
    (program, found)
}

/// Takes groups out of the lists of arguments.
fn thin(
    program: &mut Program,
    found: &mut FailedCall,
    end: Instant,
    fails: &dyn Fn(&Program) -> Option<FailedCall>,
) {
    for call in 0..program.threads.first().map_or(0, Vec::len) {
        let kind = kinds::find(program.threads[0][call].kind);
        let Some((before, size)) = kind.and_then(kinds::groups) else {
            continue;
        };
        let mut at = program.threads[0][call].args.len();
        while at >= before + size && Instant::now() < end {
            at -= size;
            if program.threads[0][call].args.len() < before + 2 * size {
                break; // one group stays
            }
            let mut candidate = program.clone();
            candidate.threads[0][call].args.drain(at..at + size);
            if let Some(newer) = fails(&candidate) {
                (*program, *found) = (candidate, newer);
            }
        }
    }
}

/// Leaves out what comes behind the call that was wrong.
fn cut(program: &mut Program, found: &FailedCall) {
    if let (Some(call), Some(calls)) = (found.call, program.threads.first_mut()) {
        calls.truncate(call + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails while the two calls are there that a wrong answer needs.
    fn needs_two(program: &Program) -> Option<FailedCall> {
        let calls = &program.threads[0];
        let first = calls.iter().position(|call| call.kind == "flush")?;
        let second = calls.iter().position(|call| call.args.contains(&77))?;
        (first < second).then(|| FailedCall {
            call: Some(second),
            failure: Failure::new("wrong"),
        })
    }

    #[test]
    fn what_is_left_is_what_the_failure_needs() {
        let mut text = "options a=1;\nthread 0\n".to_owned();
        for number in 0..100 {
            let call = match number {
                40 => "flush 0 1",
                70 => "batch 1 0 0 3 5 1 0 0 9 77 1 0 0 4 6 1",
                _ => "get 0 1 9",
            };
            text.push_str(&format!("{call}\n"));
        }
        text.push_str("thread 1\nflush 0 0\nsleep 3\n");
        let program = Program::parse(&text).expect("it is a program");
        let found = needs_two(&program).expect("it fails");
        let (program, _) = shrink(program, found, Duration::from_secs(60), &needs_two);
        let left: Vec<String> = program.threads[0].iter().map(ToString::to_string).collect();
        assert_eq!(left, ["flush 0 1", "batch 1 0 0 9 77 1"]);
        assert_eq!(program.threads.len(), 1);
    }
}
