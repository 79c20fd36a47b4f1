//! `linkbench`: a social graph in a closed loop and at a fixed rate.

use super::outcome::outcome;
use super::{
    CACHE, DURABILITY, MEMTABLE, Relational, SECONDS, StepWriter, THREADS, say_checks, seconds,
    setting, step, threads,
};
use crate::experiment::plan::{Request, Setting};
use crate::experiment::record::{self, Aim};
use crate::relational::drive::{Pace, StepFigures};
use crate::relational::engine::Engine;
use crate::relational::linkbench::verify::{Verification, verify};
use crate::relational::linkbench::{Bench, Sizes, schema};
use crate::{Failure, Result, interrupt};

pub(super) const SETTINGS: [Setting; 7] = [
    setting(
        "nodes",
        "30000",
        "20000000",
        "nodes; there are about 4 links for each and type",
    ),
    SECONDS,
    THREADS,
    setting("rate", "500", "4000", "requests a second of the paced step"),
    DURABILITY,
    CACHE,
    MEMTABLE,
];

/// `linkbench`.
pub static LINKBENCH: Relational = Relational {
    name: "linkbench",
    title: "LinkBench: a social graph with counts",
    help: "a graph of nodes, links and counts: the published mix, closed loop and paced",
    about: "Nodes, links and counts of links are loaded. Ten operations follow in the published \
            mix: addlink 8.99, deletelink 2.99, updatelink 8.01, countlink 4.89, getlink 0.53, \
            getlinklist 50.71, getnode 12.93, addnode 2.57, updatenode 7.37, deletenode 1.01 %. A \
            link, its entry in the index and its count change in one transaction. The closed loop \
            shows the rate; the paced step shows latencies from the intended start at one rate \
            for all. At the end all links are counted again.",
    settings: &SETTINGS,
    engines: &["esker"],
    schema,
    steps,
    run,
    finish: |_, record| say_checks(record, "Counts of links and the index"),
    size,
};

pub(super) fn steps(_: &Request) -> Result<Vec<record::Step>> {
    Ok(vec![
        step(
            "load",
            "nodes with their links and counts, 100 nodes a commit",
            "ops_sec",
            Aim::More,
            true,
        ),
        step(
            "closed",
            "the mix, as fast as it goes",
            "ops_sec",
            Aim::More,
            true,
        ),
        step(
            "paced",
            "the mix at a fixed rate; p99 from the intended start",
            "p99",
            Aim::Less,
            true,
        ),
        step(
            "verify",
            "all links are counted again",
            "mismatches",
            Aim::Neither,
            false,
        ),
    ])
}

pub(super) fn size(request: &Request) -> Result<(u64, u64)> {
    let nodes = request.count("nodes")?;
    let timed = 2.0 * seconds(request, "seconds")?;
    Ok((timed as u64 + nodes / 4000 + 10, nodes * 4000))
}

fn run(request: &Request, engine: &dyn Engine, keep: &mut StepWriter<'_, '_>) -> Result<()> {
    all(request, engine, keep).map(|_| ())
}

/// Runs all steps, and gives the closed loop with what the check found; nothing when it is to stop.
pub(super) fn all(
    request: &Request,
    engine: &dyn Engine,
    keep: &mut StepWriter<'_, '_>,
) -> Result<Option<(StepFigures, Verification)>> {
    let threads = threads(request)?;
    let bench = Bench::new(Sizes {
        nodes: request.count("nodes")?.max(2),
        node_data: 128,
        link_data: 8,
    });
    keep.show("load");
    let load = bench.load(engine, threads)?;
    if !keep.keep(outcome(&load, Some(load.wrote)))? {
        return Ok(None);
    }
    let rate = request.count("rate")? as f64;
    if rate <= 0.0 {
        return Err(Failure::new("--rate must be above 0"));
    }
    let pace = Pace {
        threads,
        seconds: seconds(request, "seconds")?,
        ..Pace::default()
    };
    keep.show("closed");
    let closed = bench.run(engine, "closed", pace)?;
    if !keep.keep(outcome(&closed, None))? {
        return Ok(None);
    }
    keep.show("paced");
    let paced = bench.run(engine, "paced", Pace { rate, ..pace })?;
    if !keep.keep(outcome(&paced, None))? {
        return Ok(None);
    }
    keep.show("verify");
    let found = verify(engine)?;
    if interrupt::stopped() {
        return Ok(None);
    }
    let disk = engine.disk_bytes();
    keep.check(found.mismatches, &found.wrong, found.live_bytes, disk)?;
    Ok(Some((closed, found)))
}
