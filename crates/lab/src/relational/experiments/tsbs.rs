//! `tsbs`: time series of machines.

use super::outcome::outcome;
use super::{
    CACHE, DURABILITY, MEMTABLE, Relational, StepWriter, THREADS, seconds, setting, step, threads,
};
use crate::Result;
use crate::experiment::plan::{Request, Setting};
use crate::experiment::record::{self, Aim};
use crate::relational::drive::Pace;
use crate::relational::engine::Engine;
use crate::relational::tsbs::{Bench, queries, schema};

const SETTINGS: [Setting; 7] = [
    setting(
        "hosts",
        "20",
        "4000",
        "hosts, each with a point every ten seconds",
    ),
    setting("hours", "24", "72", "hours that the points cover"),
    setting("seconds", "2", "60", "seconds of each kind of query"),
    THREADS,
    DURABILITY,
    CACHE,
    MEMTABLE,
];

/// `tsbs`.
pub static TSBS: Relational = Relational {
    name: "tsbs",
    title: "TSBS: points of machines over time, and questions about them",
    help: "devops, cpu-only: loads points by time, then asks the 15 published kinds of queries",
    about: "Each host has a point of ten figures every ten seconds; all points are loaded in the \
            order of time, with an index by time. Then the published kinds of queries are asked, \
            at random hosts and times. Groups and aggregates are computed by the client on every \
            engine, so that storage is compared and not the executors of servers.",
    settings: &SETTINGS,
    engines: &["esker"],
    schema,
    steps,
    run,
    finish: |_, _| {},
    size: |request| {
        let bench = bench(request)?;
        let timed = queries().len() as f64 * seconds(request, "seconds")?;
        Ok((timed as u64 + bench.points() / 20_000, bench.points() * 400))
    },
};

fn bench(request: &Request) -> Result<Bench> {
    Ok(Bench {
        hosts: request.count("hosts")?.max(1),
        hours: request.count("hours")?.max(1),
    })
}

fn steps(_: &Request) -> Result<Vec<record::Step>> {
    let help = "points in the order of time, 20 of each host a commit";
    let mut steps = vec![step("load", help, "points_sec", Aim::More, true)];
    for (name, query) in queries() {
        steps.push(step(name, &query.words(), "ops_sec", Aim::More, true));
    }
    Ok(steps)
}

fn run(request: &Request, engine: &dyn Engine, keep: &mut StepWriter<'_, '_>) -> Result<()> {
    let (bench, threads) = (bench(request)?, threads(request)?);
    keep.show("load");
    let load = bench.load(engine, threads)?;
    let mut out = outcome(&load, Some(load.wrote));
    out.put(
        "points_sec",
        load.rows as f64 / load.seconds.max(1e-9),
        "points/s",
    );
    if !keep.keep(out)? {
        return Ok(());
    }
    let pace = Pace {
        threads,
        seconds: seconds(request, "seconds")?,
        ..Pace::default()
    };
    for (name, query) in queries() {
        keep.show(name);
        let step = bench.run(engine, (name, query), pace)?;
        if !keep.keep(outcome(&step, None))? {
            return Ok(());
        }
    }
    Ok(())
}
