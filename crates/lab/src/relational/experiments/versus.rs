//! `btree-vs-lsm`: LinkBench on B-trees and log-structured trees, beside what the model predicts.

use super::linkbench::{SETTINGS, all, size, steps};
use super::outcome::rows_of;
use super::{Relational, StepWriter, say_checks, step};
use crate::Result;
use crate::experiment::plan::Request;
use crate::experiment::ratio;
use crate::experiment::record::{Aim, Outcome, Record, Table};
use crate::experiment::validity::ROWS;
use crate::model::predict::{FORMULAS, Sizes, predict};
use crate::relational::drive::StepFigures;
use crate::relational::engine::Engine;
use crate::relational::linkbench::verify::Verification;
use crate::relational::linkbench::{Bench, schema};

/// Bytes on storage below which no engine is said to write least.
const LEAST_WRITTEN: f64 = 32.0 * 1_048_576.0;

/// `btree-vs-lsm`.
pub static BTREE_VS_LSM: Relational = Relational {
    name: "btree-vs-lsm",
    title: "B-trees and log-structured trees under LinkBench",
    help: "LinkBench on Esker, InnoDB, MyRocks, PostgreSQL and LMDB; amplification beside the model",
    about: "The same graph and the same mix of requests on every engine, with the same durability \
            and caches of one size. Servers run on loopback and are asked with prepared \
            statements; the others are libraries in the process of the client, without a network \
            in between. Read, write and space amplification are measured and stand beside what \
            the formulas of the model predict. Writes are counted until background work has ended: \
            compactions, checkpoints. At the end all links are counted again.",
    settings: &SETTINGS,
    engines: &["esker", "innodb", "myrocks", "postgres", "lmdb"],
    schema,
    steps: |request| {
        let mut all = steps(request)?;
        let help = "amplification of the closed loop, measured beside predicted";
        all.push(step("model", help, "w_amp_device", Aim::Less, false));
        Ok(all)
    },
    run,
    finish,
    size,
};

fn run(request: &Request, engine: &dyn Engine, keep: &mut StepWriter<'_, '_>) -> Result<()> {
    let Some((closed, found)) = all(request, engine, keep)? else {
        return Ok(());
    };
    keep.keep(beside(request, engine, &closed, &found)?)?;
    Ok(())
}

/// The amplifications of the closed loop with their predictions.
fn beside(
    request: &Request,
    engine: &dyn Engine,
    closed: &StepFigures,
    found: &Verification,
) -> Result<Outcome> {
    let (changes, commits) = Bench::changes(closed);
    let memtable = (request.count("memtable_mb")?.max(1) << 20) as f64;
    let live = found.live_bytes.max(1) as f64;
    let sizes = Sizes {
        live,
        copies: 1.0 + found.index_bytes as f64 / live,
        changed: closed.wrote.max(1) as f64,
        changes,
        commits,
        memtable,
        checkpoint: 8.0 * memtable,
        cache: (request.count("cache_mb")?.max(1) << 20) as f64,
        seen: closed.read as f64 / closed.operations.max(1) as f64,
    };
    let predicted = predict(engine.facts().shape, &sizes);
    let mut out = Outcome::default();
    out.put("w_amp_device", closed.write_amp().unwrap_or(f64::NAN), "");
    out.put("w_amp_predicted", predicted.write, "");
    out.put("space_amp", engine.disk_bytes() as f64 / live, "");
    out.put("space_amp_predicted", predicted.space, "");
    out.put("r_amp_device", closed.read_amp().unwrap_or(f64::NAN), "");
    out.put("r_amp_predicted", predicted.read, "");
    // Amplifications are those of the work that was done.
    out.put(ROWS, rows_of(closed), "");
    Ok(out)
}

/// The table of amplifications, and a sentence about them.
fn finish(_: &Request, record: &mut Record) {
    say_checks(record, "Counts of links and the index");
    let Some(at) = record.steps.iter().position(|step| step.name == "model") else {
        return;
    };
    let columns = [
        "engine",
        "write-amp",
        "predicted",
        "space-amp",
        "predicted ",
        "read-amp",
        "predicted  ",
    ];
    let mut table = Table {
        title: "Amplification, measured beside predicted".into(),
        about: format!(
            "Bytes of storage for a byte of the application in the closed loop. Read-amp is low \
             where the system's page cache holds what the engine's own cache does not. {}.",
            FORMULAS.join("; ")
        ),
        columns: columns.map(String::from).to_vec(),
        ..Table::default()
    };
    // Little is written late: pages of a log may not have reached the device.
    let closed = record.steps.iter().position(|step| step.name == "closed");
    let enough = |engine: usize| {
        let written = closed.and_then(|at| record.median(at, engine, "device_written_bytes"));
        written.is_some_and(|bytes| bytes >= LEAST_WRITTEN)
    };
    let present = || record.present().map(|(engine, _)| engine);
    let is_other = |engine| present().any(|other| ratio::unequal(record, at, [engine, other]));
    let is_told = present().all(|engine| enough(engine) && !is_other(engine));
    let mut least: Option<(f64, String)> = None;
    let mut smallest: Option<(f64, String)> = None;
    for (engine, facts) in record.present() {
        let figure = |name: &str| record.median(at, engine, name);
        let text = |name: &str| figure(name).map_or("-".into(), |x| format!("{x:.2}"));
        let mut row = vec![facts.name.clone()];
        row.extend(
            [
                "w_amp_device",
                "w_amp_predicted",
                "space_amp",
                "space_amp_predicted",
                "r_amp_device",
                "r_amp_predicted",
            ]
            .map(text),
        );
        table.rows.push(row);
        for (best, name) in [(&mut least, "w_amp_device"), (&mut smallest, "space_amp")] {
            if let Some(value) = figure(name)
                && best.as_ref().is_none_or(|(found, _)| value < *found)
            {
                *best = Some((value, facts.name.clone()));
            }
        }
    }
    if let (true, Some((write, first)), Some((space, second))) = (is_told, least, smallest) {
        record.sentences.push(format!(
            "{first} wrote least to storage ({write:.1} bytes for a byte changed); {second} took \
             least space ({space:.2} bytes for a live byte)."
        ));
    }
    record.tables.push(table);
}
