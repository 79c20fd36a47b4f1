//! Instructions of an operation, under callgrind, where valgrind is installed.
//!
//! A benchmark runs twice with different numbers of operations, so that opening, loading and
//! warming cancel out. On request the caches of a processor are simulated too, and give misses.

use std::fs;
use std::path::PathBuf;

use crate::experiment::Run;
use crate::experiment::plan::Request;
use crate::experiment::record::{Aim, Flag, Outcome, Step};
use crate::{Failure, Result, interrupt};

use super::recipe;
use super::settings::tree_and;

/// A benchmark whose instructions are counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountedBenchmark {
    /// Its name in the step.
    pub(super) name: &'static str,
    pub(super) benchmark: &'static str,
    /// Benchmarks that run before it.
    pub(super) before: &'static [&'static str],
    /// The flag that says how many operations it does.
    pub(super) limit: &'static str,
    /// Flags of its own.
    pub(super) flags: &'static [&'static str],
}

impl CountedBenchmark {
    pub(super) fn step(&self) -> Step {
        Step {
            name: format!("instructions of {}", self.name),
            help: "instructions of an operation, under callgrind".into(),
            figure: "instructions_op".into(),
            aim: Aim::Less,
            counts: true,
            ..Step::default()
        }
    }
}

/// Where valgrind is.
fn valgrind() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut all = std::env::split_paths(&path).map(|directory| directory.join("valgrind"));
    all.find(|path| path.is_file())
}

/// Returns whether instructions are counted: they are wanted, and valgrind is there.
///
/// # Errors
/// The setting is no number.
pub(super) fn are_counted(request: &Request) -> Result<bool> {
    Ok(request.count("instructions")? > 0 && valgrind().is_some())
}

/// A flag where instructions are wanted and valgrind is not installed.
pub(super) fn not_counted(request: &Request) -> Option<Flag> {
    let are_wanted = request.count("instructions").is_ok_and(|count| count > 0);
    let text = "valgrind is not installed: instructions of an operation were not counted";
    (are_wanted && valgrind().is_none()).then(|| Flag {
        kind: "no-instructions".into(),
        text: text.into(),
        ..Flag::default()
    })
}

/// Measurements beside instructions.
#[derive(Debug, Clone, Default)]
pub(super) struct CountingPlan {
    /// Flags of all benchmarks behind those of the tree.
    pub(super) flags: Vec<String>,
    /// Simulates caches.
    pub(super) misses: bool,
}

/// The events that are shown: callgrind's names, the figure and its unit.
const EVENTS: [(&[&str], &str, &str); 3] = [
    (&["Ir"], "instructions_op", "instructions"),
    (&["D1mr", "D1mw"], "d1_misses_op", "misses"),
    (&["DLmr", "DLmw"], "ll_misses_op", "misses"),
];

/// Counts benchmarks one after the other, and keeps each as a step of the chain behind those that
/// are timed.
///
/// # Errors
/// A step that cannot be kept.
pub(super) fn count_all(
    request: &Request,
    run: &mut Run<'_>,
    timed: usize,
    all: impl Iterator<Item = &'static CountedBenchmark>,
    how: &CountingPlan,
) -> Result<()> {
    for (at, counted) in all.enumerate() {
        if interrupt::stopped() {
            break;
        }
        run.show(&run.chain.steps[timed + at].name, 0.0);
        let outcome = count(request, run, counted, how)?;
        run.keep(timed + at, outcome)?;
    }
    Ok(())
}

/// Instructions of an operation: what a run with more operations has more, over those.
fn count(
    request: &Request,
    run: &Run<'_>,
    counted: &CountedBenchmark,
    how: &CountingPlan,
) -> Result<Outcome> {
    let few = request.count("instructions")?;
    let many = 2 * few;
    let mut texts = Vec::new();
    for operations in [few, many] {
        match callgrind(request, run, counted, how, (operations, many)) {
            Ok(text) => texts.push(text),
            Err(why) => {
                // A library may have instructions that valgrind does not know.
                let mut out = Outcome::default();
                out.flags
                    .push(format!("instructions could not be counted: {why}"));
                return Ok(out);
            }
        }
    }
    let mut out = Outcome::default();
    for (events, figure, unit) in EVENTS {
        let sum = |text: &String| total(text, events);
        if let (Some(less), Some(more)) = (sum(&texts[0]), sum(&texts[1])) {
            let each = more.saturating_sub(less) as f64 / few.max(1) as f64;
            out.put(figure, each, unit);
        }
    }
    Ok(out)
}

/// The file that callgrind writes about a run of that number of operations, of a database for the
/// most.
fn callgrind(
    request: &Request,
    run: &Run<'_>,
    counted: &CountedBenchmark,
    how: &CountingPlan,
    (operations, most): (u64, u64),
) -> Result<String> {
    let file = run.directory.with_file_name("callgrind.out");
    let valgrind = valgrind().ok_or_else(|| Failure::new("valgrind is gone"))?;
    let wrapper = [
        valgrind.display().to_string(),
        "--tool=callgrind".into(),
        format!("--cache-sim={}", if how.misses { "yes" } else { "no" }),
        format!("--callgrind-out-file={}", file.display()),
    ];
    let mut names: Vec<&str> = counted.before.to_vec();
    names.push(counted.benchmark);
    let mut flags = tree_and(&[
        format!("--benchmarks={}", names.join(",")),
        format!("--num={most}"),
        format!("--{}={operations}", counted.limit),
        "--compression_type=none".into(),
        "--seek_nexts=10".into(),
        "--histogram=false".into(),
    ]);
    flags.extend(counted.flags.iter().map(|flag| (*flag).to_string()));
    flags.extend_from_slice(&how.flags);
    flags.extend_from_slice(&request.flags);
    let _earlier = fs::remove_dir_all(run.directory);
    let rows = recipe::process(run, 90, &flags, &wrapper)?;
    if rows.len() != names.len() {
        return Err(Failure::new("not all benchmarks ran"));
    }
    let text = fs::read_to_string(&file)?;
    let _ = fs::remove_file(&file);
    total(&text, &["Ir"]).ok_or_else(|| Failure::new("callgrind gave no total"))?;
    Ok(text)
}

/// The sum of some events in a file of callgrind's; none where it did not count all of them.
fn total(text: &str, events: &[&str]) -> Option<u64> {
    let names = text.lines().find_map(|line| line.strip_prefix("events:"))?;
    let names: Vec<&str> = names.split_whitespace().collect();
    let sums = text.lines().rev().find_map(|line| {
        line.strip_prefix("totals:")
            .or_else(|| line.strip_prefix("summary:"))
    })?;
    let sums: Vec<u64> = sums
        .split_whitespace()
        .map_while(|sum| sum.parse().ok())
        .collect();
    let of = |event: &&str| {
        let at = names.iter().position(|name| name == event)?;
        sums.get(at).copied()
    };
    events.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_by_the_name_of_the_event() {
        let text = "events: Ir Dr D1mr D1mw\nfn=(1) main\n1 5 3 2 1\nsummary: 9 9 9 9\n\
                    totals: 12346 700 20 3\n";
        assert_eq!(total(text, &["Ir"]), Some(12_346));
        assert_eq!(total(text, &["D1mr", "D1mw"]), Some(23));
        assert_eq!(total(text, &["DLmr", "DLmw"]), None, "not simulated");
        assert_eq!(total("events: Ir\nsummary: 7\n", &["Ir"]), Some(7));
        assert_eq!(total("events: Ir\n", &["Ir"]), None);
    }
}
