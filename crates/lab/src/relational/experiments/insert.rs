//! `insert`: the Insert Benchmark.

use super::outcome::outcome;
use super::{
    CACHE, DURABILITY, MEMTABLE, Relational, SECONDS, StepWriter, THREADS, say_checks, seconds,
    setting, step, threads,
};
use crate::experiment::plan::{Request, Setting};
use crate::experiment::record::{self, Aim, Outcome, Target};
use crate::relational::drive::Pace;
use crate::relational::engine::Engine;
use crate::relational::insert::{Bench, Query, build_indexes, insert, query, schema, verify};
use crate::{Result, interrupt};

const SETTINGS: [Setting; 9] = [
    setting("rows", "100000", "40000000", "rows that l.i0 loads"),
    setting(
        "inserts",
        "30000",
        "40000000",
        "rows that l.i1 inserts; l.i2 inserts a quarter of them",
    ),
    setting("data", "10", "10", "bytes of the column data"),
    setting(
        "rates",
        "100,500,1000",
        "100,500,1000",
        "inserts a second beside queries",
    ),
    SECONDS,
    THREADS,
    DURABILITY,
    CACHE,
    MEMTABLE,
];

/// `insert`.
pub static INSERT: Relational = Relational {
    name: "insert",
    title: "The Insert Benchmark",
    help: "inserts with three secondary indexes, then queries beside paced inserts and deletes",
    about: "l.i0 loads rows in the order of the primary key; l.x makes three secondary indexes; \
            l.i1 and l.i2 insert rows and delete as many of the oldest, 50 and 5 a commit. Then \
            qr100 to qr1000 scan ten entries of an index, and qp100 to qp1000 read a row by its \
            key, beside that number of inserts and deletes a second. At the end rows and entries of all \
            indexes are counted.",
    settings: &SETTINGS,
    engines: &["esker"],
    schema,
    steps,
    run,
    finish: |_, record| say_checks(record, "Rows and entries of indexes"),
    size: |request| {
        let rows = request.count("rows")? + request.count("inserts")?;
        let steps = 2.0 * request.counts("rates")?.len() as f64;
        let timed = steps * seconds(request, "seconds")?;
        Ok((timed as u64 + rows / 5000, rows * 1000))
    },
};

fn steps(request: &Request) -> Result<Vec<record::Step>> {
    let mut steps = vec![
        step(
            "l.i0",
            "load in key order without secondary indexes",
            "rows_sec",
            Aim::More,
            true,
        ),
        step(
            "l.x",
            "make three secondary indexes",
            "seconds",
            Aim::Less,
            true,
        ),
        step(
            "l.i1",
            "inserts and deletes, 50 rows a commit",
            "rows_sec",
            Aim::More,
            true,
        ),
        step(
            "l.i2",
            "inserts and deletes, 5 rows a commit",
            "rows_sec",
            Aim::More,
            true,
        ),
    ];
    for rate in request.counts("rates")? {
        let help = format!("short scans of indexes beside {rate} inserts a second");
        steps.push(step(
            &format!("qr{rate}"),
            &help,
            "ops_sec",
            Aim::More,
            true,
        ));
        let help = format!("point queries beside {rate} inserts a second");
        steps.push(step(
            &format!("qp{rate}"),
            &help,
            "ops_sec",
            Aim::More,
            true,
        ));
    }
    let help = "rows and entries are counted";
    steps.push(step("verify", help, "mismatches", Aim::Neither, false));
    Ok(steps)
}

fn run(request: &Request, engine: &dyn Engine, keep: &mut StepWriter<'_, '_>) -> Result<()> {
    /// Rows of a commit of the load.
    const LOAD: u64 = 100;
    let threads = threads(request)?;
    let (rows, inserts) = (request.count("rows")?, request.count("inserts")?);
    let bench = Bench::new(
        usize::try_from(request.count("data")?)
            .unwrap_or(10)
            .min(4000),
    );
    keep.show("l.i0");
    let loaded = insert(&bench, engine, "l.i0", (rows, LOAD), threads, false)?;
    if !keep.keep(with_rows(outcome(&loaded, Some(loaded.wrote)), LOAD))? {
        return Ok(());
    }
    keep.show("l.x");
    let took = build_indexes(engine)?;
    let mut built = Outcome {
        seconds: took,
        ..Outcome::default()
    };
    built.put("seconds", took, "s");
    built.put("lsm_sz", engine.disk_bytes() as f64, "B");
    if !keep.keep(built)? {
        return Ok(());
    }
    for (name, count, batch) in [("l.i1", inserts, 50), ("l.i2", inserts / 4, 5)] {
        keep.show(name);
        let step = insert(&bench, engine, name, (count, batch), threads, true)?;
        if !keep.keep(with_rows(outcome(&step, None), batch))? {
            return Ok(());
        }
    }
    let pace = Pace {
        threads,
        seconds: seconds(request, "seconds")?,
        ..Pace::default()
    };
    for rate in request.counts("rates")? {
        for (word, kind) in [("qr", Query::Range), ("qp", Query::Point)] {
            let name = format!("{word}{rate}");
            keep.show(&name);
            let queried = query(&bench, engine, &name, kind, rate.max(1), pace)?;
            let mut out = outcome(&queried.step, None);
            out.target = Some(Target {
                asked: queried.asked,
                reached: queried.reached,
            });
            out.put("inserts_sec", queried.reached, "rows/s");
            if !keep.keep(out)? {
                return Ok(());
            }
        }
    }
    keep.show("verify");
    let (wrong, live) = verify(&bench, engine)?;
    if interrupt::stopped() {
        return Ok(());
    }
    keep.check(wrong.len() as u64, &wrong, live, engine.disk_bytes())
}

/// Rows a second, from commits of several rows.
fn with_rows(mut out: Outcome, batch: u64) -> Outcome {
    if let Some(commits) = out.figure("ops_sec") {
        out.put("rows_sec", commits * batch as f64, "rows/s");
    }
    out
}
