//! `sysbench`: the microbenchmarks.

use super::outcome::outcome;
use super::{
    CACHE, DURABILITY, MEMTABLE, Relational, StepWriter, THREADS, say_checks, seconds, setting,
    step, threads,
};
use crate::experiment::plan::{Request, Setting};
use crate::experiment::record::{self, Aim};
use crate::relational::drive::Pace;
use crate::relational::engine::Engine;
use crate::relational::sysbench::{Bench, Work, all, schema, verify};
use crate::{Failure, Result, interrupt};

const SETTINGS: [Setting; 7] = [
    setting("rows", "100000", "50000000", "rows of the table"),
    setting("seconds", "2", "300", "seconds of each microbenchmark"),
    setting(
        "only",
        "",
        "",
        "names of microbenchmarks, with commas; all of them when empty",
    ),
    THREADS,
    DURABILITY,
    CACHE,
    MEMTABLE,
];

/// `sysbench`.
pub static SYSBENCH: Relational = Relational {
    name: "sysbench",
    title: "sysbench: one kind of transaction at a time",
    help: "43 microbenchmarks over rows with a secondary index: points, ranges, writes, mixes",
    about: "A table of rows with a primary key and an index is loaded. Each microbenchmark runs one \
            kind of transaction: points and ranges by key and by index, covered and not, sums and \
            orders, changes of one row and of many, mixes. Reads come before the writes (.pre) and \
            again after them, to show what writes do to reads. At the end the index is compared \
            with its table.",
    settings: &SETTINGS,
    engines: &["esker"],
    schema,
    steps,
    run,
    finish: |_, record| say_checks(record, "The table and its index"),
    size: |request| {
        let rows = request.count("rows")?;
        let timed = chosen(request)?.len() as f64 * seconds(request, "seconds")?;
        Ok((timed as u64 + rows / 10_000 + 5, rows * 1500))
    },
};

/// The microbenchmarks that are asked for.
fn chosen(request: &Request) -> Result<Vec<(String, Work)>> {
    let words = request.words("only");
    let all = all();
    for word in &words {
        if !all.iter().any(|(name, _)| name == word) {
            return Err(Failure::new(format!(
                "--only={word}: there is no such microbenchmark"
            )));
        }
    }
    let wanted = |name: &str| words.is_empty() || words.contains(&name);
    Ok(all.into_iter().filter(|(name, _)| wanted(name)).collect())
}

fn steps(request: &Request) -> Result<Vec<record::Step>> {
    let mut steps = vec![step(
        "load",
        "all rows, 1000 a commit",
        "ops_sec",
        Aim::More,
        true,
    )];
    for (name, work) in chosen(request)? {
        steps.push(step(&name, &work.words(), "ops_sec", Aim::More, true));
    }
    let help = "the index is compared with its table";
    steps.push(step("verify", help, "mismatches", Aim::Neither, false));
    Ok(steps)
}

fn run(request: &Request, engine: &dyn Engine, keep: &mut StepWriter<'_, '_>) -> Result<()> {
    let threads = threads(request)?;
    let bench = Bench::new(request.count("rows")?);
    keep.show("load");
    let load = bench.load(engine, threads)?;
    if !keep.keep(outcome(&load, Some(load.wrote)))? {
        return Ok(());
    }
    let pace = Pace {
        threads,
        seconds: seconds(request, "seconds")?,
        ..Pace::default()
    };
    for (name, work) in chosen(request)? {
        keep.show(&name);
        // Timed ones would leave other rows on a faster engine, for the reads behind them.
        let pace = match work {
            Work::Insert | Work::Delete => Pace {
                seconds: 0.0,
                operations: (request.count("rows")? / 10).max(1),
                ..pace
            },
            _ => pace,
        };
        let step = bench.run(engine, (&name, work), pace)?;
        if !keep.keep(outcome(&step, None))? {
            return Ok(());
        }
    }
    keep.show("verify");
    let (wrong, live) = verify(engine)?;
    if interrupt::stopped() {
        return Ok(());
    }
    keep.check(wrong.len() as u64, &wrong, live, engine.disk_bytes())
}
