//! Leaves calls out of a trace as long as its last call still differs.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::call::Call;
use super::{ComparisonPlan, Driver};
use crate::Result;
use crate::say::say;

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(600);

type Trace = Vec<(u64, &'static str, Call)>;

/// Plays the trace from new databases, and returns the difference if it still differs in a call of
/// this kind.
fn differs(plan: &ComparisonPlan, trace: &Trace, kind: &'static str) -> Result<Option<String>> {
    let mut plan = plan.clone();
    plan.directory = plan.directory.with_extension("shrink");
    // What an earlier try left; the first finds nothing.
    let _ = std::fs::remove_dir_all(&plan.directory);
    let mut driver = Driver::start(&plan)?;
    for (number, name, call) in trace {
        driver.one(*number, name, call.clone());
        if driver.outcome.count() > 0 {
            break;
        }
    }
    driver.finish();
    let found = driver.outcome.first.is_some_and(|(_, first)| first == kind);
    Ok(found.then(|| driver.outcome.reports.join("\n")))
}

/// Prints the calls that are needed for the difference in call `last`.
pub(super) fn shrink(plan: &ComparisonPlan, last: u64, kind: &'static str) -> Result<()> {
    let mut plan = plan.clone();
    plan.differences = 2;
    let mut trace: Trace = Vec::new();
    {
        let mut drawn = plan.clone();
        drawn.directory = plan.directory.with_extension("draw");
        let mut driver = Driver::start(&drawn)?;
        for number in 0..=last.min(plan.calls.saturating_sub(1)) {
            let (name, call) = driver.draw();
            trace.push((number, name, call));
        }
        driver.finish();
        let _ = std::fs::remove_dir_all(&drawn.directory);
    }
    let began = Instant::now();
    let mut queue: VecDeque<usize> = VecDeque::new();
    let mut size = trace.len() / 2;
    while size > 0 {
        queue.push_back(size);
        size /= 2;
    }
    let mut report = String::new();
    for size in queue {
        let mut end = trace.len().saturating_sub(1);
        while end > 0 && began.elapsed() < PATIENCE {
            let from = end.saturating_sub(size);
            let mut less = trace.clone();
            less.drain(from..end);
            if let Some(found) = differs(&plan, &less, kind)? {
                trace = less;
                report = found;
            }
            end = from.min(trace.len().saturating_sub(1));
        }
    }
    say!("{} calls are enough:", trace.len());
    for (number, _, call) in &trace {
        say!("{number} {call:?}");
    }
    say!("{report}");
    let _ = std::fs::remove_dir_all(plan.directory.with_extension("shrink"));
    Ok(())
}
