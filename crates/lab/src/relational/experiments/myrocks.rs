//! `myrocks`: two plugins of MyRocks in MariaDB, by the number of clients.
//!
//! Rows of sysbench and the graph of LinkBench are two chains, each in a server of its own, so that
//! the memory of one says nothing of the other.

use super::outcome::outcome;
use super::{
    CACHE, DURABILITY, MEMTABLE, Relational, SECONDS, StepWriter, THREADS, seconds, setting, step,
    threads,
};
use crate::experiment::plan::{EngineSpec, Plan, Request, Setting};
use crate::experiment::record::{self, Aim, Ask, Record, Table};
use crate::experiment::{Experiment, Run};
use crate::relational::drive::Pace;
use crate::relational::engine::Engine;
use crate::relational::linkbench::verify::verify as verify_graph;
use crate::relational::linkbench::{self, Sizes};
use crate::relational::sysbench::{self, Work, verify as verify_rows};
use crate::{Result, interrupt};

const SETTINGS: [Setting; 8] = [
    setting(
        "rows",
        "100000",
        "10000000",
        "rows of the table of sysbench",
    ),
    setting("nodes", "20000", "2000000", "nodes of the graph"),
    setting("sweep", "8", "1,8,40", "clients of the closed loops"),
    SECONDS,
    THREADS,
    DURABILITY,
    CACHE,
    MEMTABLE,
];

/// Names and transactions of the steps over rows.
const WORK: [(&str, Work); 3] = [
    ("read-only", Work::ReadOnly { range: 100 }),
    ("write-only", Work::ReadWrite { range: 0 }),
    ("mixed", Work::ReadWrite { range: 100 }),
];

/// Clients at which the gates are.
const GATED: u64 = 8;
/// The least that a rate may be of the base's, and the most that resident memory may be.
const GATES: [f64; 2] = [1.0, 1.2];

static ROWS: Relational = Relational {
    name: "rows",
    title: TITLE,
    help: "",
    about: "",
    settings: &SETTINGS,
    engines: &["myrocks"],
    schema: sysbench::schema,
    steps: rows_steps,
    run: run_rows,
    finish,
    size: |request| Ok((timed(request, WORK.len())?, request.count("rows")? * 1500)),
};

static GRAPH: Relational = Relational {
    name: "graph",
    title: TITLE,
    help: "",
    about: "",
    settings: &SETTINGS,
    engines: &["myrocks"],
    schema: linkbench::schema,
    steps: graph_steps,
    run: run_graph,
    finish: |_, _| (),
    size: |request| Ok((timed(request, 1)?, request.count("nodes")? * 4000)),
};

const PARTS: [&Relational; 2] = [&ROWS, &GRAPH];
const TITLE: &str = "MyRocks on two plugins";

/// Seconds of the steps of a chain, with the load.
fn timed(request: &Request, loads: usize) -> Result<u64> {
    let steps = request.counts("sweep")?.len() * loads;
    Ok((steps as f64 * seconds(request, "seconds")?) as u64 + 30)
}

/// A closed loop of a number of clients.
fn closed(name: &str, help: &str, clients: u64) -> record::Step {
    let help = format!("{help}; {clients} at a time");
    let mut step = step(
        &format!("{name}-{clients}"),
        &help,
        "ops_sec",
        Aim::More,
        true,
    );
    step.asks = vec![Ask {
        figure: "rss".into(),
        what: "resident memory".into(),
        aim: Aim::Less,
    }];
    step
}

fn last(what: &str) -> record::Step {
    step(
        &format!("verify-{what}"),
        "indexes and counts are compared with their tables",
        "mismatches",
        Aim::Neither,
        false,
    )
}

fn rows_steps(request: &Request) -> Result<Vec<record::Step>> {
    let load = step("load-rows", "1000 a commit", "ops_sec", Aim::More, true);
    let mut steps = vec![load];
    for clients in request.counts("sweep")? {
        steps.extend(WORK.map(|(name, work)| closed(name, &work.words(), clients)));
    }
    steps.push(last("rows"));
    Ok(steps)
}

fn graph_steps(request: &Request) -> Result<Vec<record::Step>> {
    let help = "nodes with links and counts, 100 nodes a commit";
    let mut steps = vec![step("load-graph", help, "ops_sec", Aim::More, true)];
    for clients in request.counts("sweep")? {
        steps.push(closed("linkbench", "the published mix", clients));
    }
    steps.push(last("graph"));
    Ok(steps)
}

fn pace(request: &Request, clients: u64) -> Result<Pace> {
    Ok(Pace {
        threads: usize::try_from(clients).unwrap_or(1),
        seconds: seconds(request, "seconds")?,
        ..Pace::default()
    })
}

fn run_rows(request: &Request, engine: &dyn Engine, keep: &mut StepWriter<'_, '_>) -> Result<()> {
    let bench = sysbench::Bench::new(request.count("rows")?);
    keep.show("load-rows");
    let load = bench.load(engine, threads(request)?)?;
    if !keep.keep(outcome(&load, Some(load.wrote)))? {
        return Ok(());
    }
    for clients in request.counts("sweep")? {
        for (name, work) in WORK {
            let name = format!("{name}-{clients}");
            keep.show(&name);
            let step = bench.run(engine, (&name, work), pace(request, clients)?)?;
            if !keep.keep(outcome(&step, None))? {
                return Ok(());
            }
        }
    }
    keep.show("verify-rows");
    let (wrong, live) = verify_rows(engine)?;
    if interrupt::stopped() {
        return Ok(());
    }
    keep.check(wrong.len() as u64, &wrong, live, engine.disk_bytes())
}

fn run_graph(request: &Request, engine: &dyn Engine, keep: &mut StepWriter<'_, '_>) -> Result<()> {
    let bench = linkbench::Bench::new(Sizes {
        nodes: request.count("nodes")?.max(2),
        node_data: 128,
        link_data: 8,
    });
    keep.show("load-graph");
    let load = bench.load(engine, threads(request)?)?;
    if !keep.keep(outcome(&load, Some(load.wrote)))? {
        return Ok(());
    }
    for clients in request.counts("sweep")? {
        let name = format!("linkbench-{clients}");
        keep.show(&name);
        let step = bench.run(engine, &name, pace(request, clients)?)?;
        if !keep.keep(outcome(&step, None))? {
            return Ok(());
        }
    }
    keep.show("verify-graph");
    let found = verify_graph(engine)?;
    if interrupt::stopped() {
        return Ok(());
    }
    keep.check(
        found.mismatches,
        &found.wrong,
        found.live_bytes,
        engine.disk_bytes(),
    )
}

/// The gates: rates and resident memory of each plugin beside those of the base.
fn finish(_: &Request, record: &mut Record) {
    let mut table = Table {
        title: "Gates".into(),
        about: format!(
            "Medians at {GATED} clients, divided by those of {}: rates at least {}, resident \
             memory of the server at most {}.",
            record.engines[record.base].name, GATES[0], GATES[1]
        ),
        columns: ["engine", "step", "rate", "memory", "held"]
            .map(String::from)
            .to_vec(),
        ..Table::default()
    };
    let others: Vec<(usize, String)> = record
        .present()
        .filter(|(at, _)| *at != record.base)
        .map(|(at, engine)| (at, engine.name.clone()))
        .collect();
    for (engine, name) in others {
        for step in ["mixed", "linkbench"].map(|name| format!("{name}-{GATED}")) {
            let Some(at) = record.steps.iter().position(|known| known.name == step) else {
                continue;
            };
            let ratio = |figure| {
                let own = record.median(at, engine, figure)?;
                let base = record.median(at, record.base, figure)?;
                (base > 0.0).then(|| own / base)
            };
            let (Some(rate), Some(memory)) = (ratio("ops_sec"), ratio("rss")) else {
                continue;
            };
            let is_held = rate >= GATES[0] && memory <= GATES[1];
            let text = [rate, memory].map(|ratio| format!("{ratio:.2}"));
            let held = if is_held { "yes" } else { "no" };
            if !is_held {
                record.sentences.push(format!(
                    "{name} misses a gate at {step}: {} of the base's rate with {} of its memory.",
                    text[0], text[1]
                ));
            }
            let mut row = vec![name.clone(), step];
            row.extend(text);
            row.push(held.into());
            table.rows.push(row);
        }
    }
    if !table.rows.is_empty() {
        record.tables.push(table);
    }
}

/// Both chains.
pub struct Plugins;

/// `myrocks`.
pub static MYROCKS: Plugins = Plugins;

impl Experiment for Plugins {
    fn name(&self) -> &'static str {
        "myrocks"
    }

    fn title(&self) -> &'static str {
        TITLE
    }

    fn help(&self) -> &'static str {
        "sysbench and LinkBench on plugins of MyRocks, by clients: rates and resident memory"
    }

    fn about(&self) -> &'static str {
        "A table of rows and a graph are loaded, each in a server of its own. Closed loops of each \
         number of clients follow: ten rows by key and four ranges (read-only), two updates, a \
         deletion and an insertion (write-only), both (mixed), and the published mix of \
         LinkBench. The server, its settings and the client are the same; the plugin differs. At \
         the end indexes and counts are compared with their tables."
    }

    fn settings(&self) -> &'static [Setting] {
        &SETTINGS
    }

    fn default_engines(&self) -> &'static [&'static str] {
        ROWS.engines
    }

    /// The first: the plugin that the others stand beside.
    fn base(&self, _: &[EngineSpec]) -> usize {
        0
    }

    fn supports(&self, engine: &EngineSpec) -> Result<()> {
        ROWS.supports(engine)
    }

    fn plan(&self, request: &Request) -> Result<Plan> {
        let mut all = Plan::default();
        for part in PARTS {
            let mut plan = part.plan(request)?;
            for chain in &mut plan.chains {
                chain.name = part.name.into();
            }
            all.chains.extend(plan.chains);
            all.seconds += plan.seconds;
            all.bytes = all.bytes.max(plan.bytes);
        }
        Ok(all)
    }

    fn describe(&self, request: &Request, engine: &EngineSpec) -> Result<record::Engine> {
        ROWS.describe(request, engine)
    }

    fn run(&self, request: &Request, run: &mut Run<'_>) -> Result<()> {
        let part = PARTS.iter().find(|part| part.name == run.chain.name);
        part.map_or(Ok(()), |part| part.run(request, run))
    }

    fn finish(&self, request: &Request, record: &mut Record) {
        ROWS.finish(request, record);
    }
}
