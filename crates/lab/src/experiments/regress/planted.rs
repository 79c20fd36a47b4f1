//! A slowdown of known size: a copy of an engine that does work on top of each operation.
//!
//! The work is a number of rounds of [`planted_work`]. Before anything runs, `readrandom` is
//! measured on the engine and a round on the machine, which gives the rounds that make `readrandom`
//! slower by the wanted part. They stay in a file, so that a run that goes on has the same copy.

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::child::Child;
use crate::experiment::plan::{EngineSpec, Request};
use crate::experiment::ratio;
use crate::experiment::record::{Record, median};
use crate::experiment::state::write_whole;
use crate::measure::planted_work;
use crate::report::Row;
use crate::{Failure, Result};

use super::super::engine::{self, PLANTED};
use super::super::settings::tree_and;

/// Where the rounds are kept.
const FILE: &str = "planted";
/// The step that the part is of.
const STEP: &str = "readrandom";

/// The wanted part, in percent; `None` where none is wanted.
fn percent(request: &Request) -> Result<Option<f64>> {
    let text = request.text("plant");
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.trim_end_matches('%').parse().ok();
    let number = number.filter(|part: &f64| *part > 0.0 && *part <= 1000.0);
    let wrong = || Failure::new(format!("--plant={text}: a part in percent is wanted, as 5"));
    number.ok_or_else(wrong).map(Some)
}

/// Puts the copy behind the engines of a request that asks for one.
///
/// # Errors
/// The setting is no part, or the engine cannot be measured.
pub(in super::super) fn plant(request: &mut Request, out: &Path) -> Result<()> {
    let Some(percent) = percent(request)? else {
        return Ok(());
    };
    let first = request.engines[0].clone();
    engine::supports(&first)?;
    let file = out.join(FILE);
    let kept = fs::read_to_string(&file).ok();
    let rounds = match kept.and_then(|text| text.trim().parse::<u64>().ok()) {
        Some(rounds) => rounds,
        None => {
            let rounds = rounds(request, &first, percent)?;
            fs::create_dir_all(out)?;
            write_whole(&file, rounds.to_string().as_bytes())?;
            rounds
        }
    };
    let join = if first.options().is_empty() { '?' } else { ';' };
    request.engines.push(EngineSpec {
        text: format!("{}{join}{PLANTED}={rounds}", first.text),
        label: "planted".into(),
    });
    Ok(())
}

/// Nanoseconds of a round: the fastest of some tries.
fn round_ns() -> f64 {
    const ROUNDS: u64 = 2_000_000;
    let once = || {
        let begin = Instant::now();
        planted_work(ROUNDS);
        begin.elapsed().as_secs_f64() * 1e9 / ROUNDS as f64
    };
    (0..5).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// The rounds that make `readrandom` slower by a part.
fn rounds(request: &Request, first: &EngineSpec, percent: f64) -> Result<u64> {
    let scratch = if request.scratch.as_os_str().is_empty() {
        std::env::temp_dir()
    } else {
        request.scratch.clone()
    };
    fs::create_dir_all(&scratch)?;
    let scratch = crate::interrupt::Scratch::within(&scratch)?;
    let (program, name) = engine::program(first);
    let mut args = tree_and(&[
        "--benchmarks=fillseq,waitforcompaction,readrandom[X3-W1]".into(),
        format!("--num={}", request.count("num")?),
        "--duration=1".into(),
        "--disable_wal=true".into(),
        format!("--cache_size={}", 1u64 << 30),
        "--compression_type=none".into(),
    ]);
    args.extend_from_slice(&request.flags);
    let child = Child {
        path: scratch.path().join("db"),
        args,
        engine: name,
        seed: 1,
        program,
        ..Child::default()
    };
    let rows = child.run(&|| {})?;
    let us = read_us(&rows).ok_or_else(|| Failure::new("readrandom gave no time"))?;
    Ok(((us * 1000.0 * percent / 100.0 / round_ns()).round() as u64).max(1))
}

/// Microseconds of a read on its thread: the processor's, which other work on the machine does not
/// make longer by itself. By the clock a busy machine would get a slowdown many times as large.
fn read_us(rows: &[Row]) -> Option<f64> {
    let reads = rows.iter().filter(|row| row.test == STEP);
    let mut us: Vec<f64> = reads
        .filter_map(|row| row.number("cpu_client_us_op"))
        .collect();
    median(&mut us)
}

/// Says whether the copy was found, by time and by instructions; `None` where there is none.
pub(super) fn sentence(request: &Request, record: &Record) -> Option<String> {
    let percent = percent(request).ok()??;
    let at = record
        .engines
        .iter()
        .position(|e| e.spec.contains(PLANTED))?;
    let found = ratio::told_apart(record, at);
    let verdict = |name: &str| {
        let step = record.steps.iter().position(|step| step.name == name)?;
        let ratio = ratio::of(record, step, at)?;
        let is_found = found.iter().any(|(s, r)| *s == step && r.median < 1.0);
        let word = if is_found { "found" } else { "NOT found" };
        Some(format!("{word} in {name} ({:.3})", ratio.median))
    };
    let both = [STEP.to_string(), format!("instructions of {STEP}")];
    let said: Vec<String> = both.iter().filter_map(|name| verdict(name)).collect();
    let said = match said.as_slice() {
        [] => "was not looked for, since no step of readrandom ran".to_string(),
        said => format!("was {}", said.join(", and ")),
    };
    Some(format!("The planted slowdown of {percent} % {said}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_does_not_make_the_slowdown_larger() {
        let row = |test: &str, us: f64, cpu: f64| {
            let json = serde_json::json!({
                "test": test, "usec_op": us, "cpu_client_us_op": cpu,
            });
            Row::from_json(&json).expect("a row")
        };
        let rows = [
            row("fillseq", 9.0, 9.0),
            row(STEP, 8.0, 1.0),
            row(STEP, 30.0, 2.0),
            row(STEP, 20.0, 1.5),
        ];
        assert_eq!(read_us(&rows), Some(1.5));
        assert_eq!(read_us(&rows[..1]), None);
    }
}
