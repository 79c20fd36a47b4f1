//! Reasons that weaken or invalidate figures: found in a record, said in a sentence each.
//!
//! | kind | when |
//! |---|---|
//! | `few-repeats` | an engine has fewer than three runs of a step |
//! | `too-short` | a rate comes from less than two seconds |
//! | `missed-rate` | a paced writer reached less than 95 % of its rate |
//! | `client-bound` | the client takes over a third of the time of an operation that is not paced |
//! | `ledger` | the stall ledger's sums by cause, by second and in the statistics differ by 1 % |
//! | `memory` | 5 % or more of the resident memory has no owner |
//! | `writes` | log, flushes and compactions are 5 % off what the process wrote |
//! | `device` | the device wrote 5 % more or less than the process, whose pages were written out |
//! | `unequal` | an operation reads 10 % more or fewer rows than on the engine of comparison |
//! | `noise` | runs of one engine differ by more than the engines do |
//! | `busy` | other processes took more than a quarter of the processors while a step ran |
//! | `failed` | an engine could not be run, or stopped before the end |

use super::ratio;
use super::record::{Aim, Flag, Record, median};

/// Runs below which there is no spread to speak of.
const FEW_RUNS: usize = 3;
/// Seconds below which a rate is that of a start.
const SHORT: f64 = 2.0;
/// The part of a target that has to be reached.
pub const REACHED: f64 = 0.95;
/// The part of an operation's time that the client may take.
const CLIENT: f64 = 1.0 / 3.0;
/// The part of all processors from which on other processes are in the figures.
pub const OTHERS: f64 = 0.25;
/// The fewest pairs that give an interval.
pub const FEWEST_PAIRS: usize = 3;

/// The figure that says what part of an operation's time its client takes.
pub const CLIENT_PART: &str = "client_part";

pub use super::ratio::ROWS;

/// The figure that says by how many percent the parts of write amplification miss what was written.
pub const PARTS_OFF: &str = "w_amp_parts_off%";
/// The figure that says by how many percent the device's writes miss those of the process.
pub const DEVICE_OFF: &str = "w_amp_device_off%";

/// Figures that have to be sums, with the flag, the most or least that is sound, and what is said.
const SUMS: [(&str, &str, f64, bool, &str); 4] = [
    (
        "ledger",
        "ledger_off%",
        1.0,
        true,
        "percent between the sums of the stall ledger by cause and by second",
    ),
    (
        "memory",
        "memory_named%",
        95.0,
        false,
        "percent of the resident memory have an owner",
    ),
    (
        "writes",
        PARTS_OFF,
        5.0,
        true,
        "percent between log, flushes and compactions and what the process wrote",
    ),
    (
        "device",
        DEVICE_OFF,
        5.0,
        true,
        "percent between what the process wrote and the device; others may use it",
    ),
];

/// Figures of a step that do not add up.
fn sums(record: &Record, step: usize, engine: usize, out: &mut Vec<Flag>) {
    for (kind, figure, bound, is_most, what) in SUMS {
        let found = record.median(step, engine, figure);
        let is_wrong = |value: &f64| {
            if is_most {
                *value > bound
            } else {
                *value < bound
            }
        };
        if let Some(value) = found.filter(is_wrong) {
            let (name, step_name) = (&record.engines[engine].name, &record.steps[step].name);
            let text = format!("{step_name}, {name}: {value:.1} {what}");
            out.push(flag(kind, Some(step), Some(engine), text));
        }
    }
}

fn flag(kind: &str, step: Option<usize>, engine: Option<usize>, text: String) -> Flag {
    Flag {
        kind: kind.to_string(),
        step,
        engine,
        text,
    }
}

/// All flags of a record.
pub fn flags(record: &Record) -> Vec<Flag> {
    let mut out = Vec::new();
    for (at, engine) in record.engines.iter().enumerate() {
        if let Some(why) = &engine.missing {
            let text = format!("{} was not run: {why}", engine.name);
            out.push(flag("failed", None, Some(at), text));
        }
    }
    repeats(record, &mut out);
    if let Some(text) = busy(record) {
        out.push(flag("busy", None, None, text));
    }
    for step in 0..record.steps.len() {
        for (engine, info) in record.present() {
            if let Some(why) = record.missing(step, engine) {
                let text = format!("{}: {}: {why}", record.steps[step].name, info.name);
                out.push(flag("failed", Some(step), Some(engine), text));
            }
            of_runs(record, step, engine, &mut out);
            noise(record, step, engine, &mut out);
            sums(record, step, engine, &mut out);
            out.extend(rows(record, step, engine));
        }
    }
    out
}

/// The work of other processes meanwhile, if that was too much. Records that do not tell have the
/// load before the first run, which has nothing of their own in it.
pub fn busy(record: &Record) -> Option<String> {
    if let Some(part) = record.others() {
        let text = format!("others took {:.0} % of the processors", 100.0 * part);
        return (part > OTHERS).then_some(text);
    }
    let first = record.host.loads.first()?;
    let processors = processors(record)?;
    let text = format!("load {first:.1} on {processors} processors before the first run");
    (*first > OTHERS * processors as f64).then_some(text)
}

/// How many processors the machine of a record has; older records have them in a fact alone.
fn processors(record: &Record) -> Option<usize> {
    let facts = &record.host.facts;
    let machine = facts.iter().find(|(name, _)| name == "machine");
    let counted = machine.and_then(|(_, text)| text.split(' ').next()?.parse().ok());
    match record.host.processors {
        0 => counted,
        count => Some(count),
    }
}

/// Why nothing can be claimed from a record; empty where something can.
pub fn doubts(record: &Record) -> Vec<String> {
    let mut out = Vec::new();
    if !record.complete {
        out.push("the run was stopped before its end".to_string());
    }
    match record.pairs {
        FEWEST_PAIRS.. => {}
        1 => out.push("1 pair".into()),
        few => out.push(format!("{few} pairs")),
    }
    out.extend(busy(record));
    out
}

fn repeats(record: &Record, out: &mut Vec<Flag>) {
    let counts = (0..record.steps.len()).flat_map(|step| {
        let engines = record.present();
        engines.map(move |(engine, _)| record.runs(step, engine).count())
    });
    let Some(fewest) = counts.filter(|n| *n > 0).min().filter(|n| *n < FEW_RUNS) else {
        return;
    };
    let text = format!(
        "some steps were run {} on an engine: ratios have no interval, and no verdict",
        if fewest == 1 { "once" } else { "twice" }
    );
    out.push(flag("few-repeats", None, None, text));
}

/// Collects the flags of the runs of a step on an engine.
fn of_runs(record: &Record, step: usize, engine: usize, out: &mut Vec<Flag>) {
    let (name, info) = (&record.engines[engine].name, &record.steps[step]);
    let mut add = |kind: &str, text: String| {
        out.push(flag(kind, Some(step), Some(engine), text));
    };
    let mut seconds: Vec<f64> = record.runs(step, engine).map(|run| run.seconds).collect();
    if let Some(seconds) = median(&mut seconds)
        && info.aim == Aim::More
        && info.counts
        && seconds < SHORT
    {
        add(
            "too-short",
            format!("{}: {name} took {seconds:.1} s", info.name),
        );
    }
    let reached = record.runs(step, engine).filter_map(|run| {
        let target = run.target.filter(|target| target.asked > 0.0)?;
        Some(target.reached / target.asked)
    });
    if let Some(part) = median(&mut reached.collect::<Vec<f64>>()).filter(|p| *p < REACHED) {
        let text = format!(
            "{}: the writer beside {name} reached {:.0} % of its rate",
            info.name,
            100.0 * part
        );
        add("missed-rate", text);
    }
    // A paced client waits most of the time.
    let client = record.median(step, engine, CLIENT_PART);
    if let Some(part) = client.filter(|p| *p > CLIENT && info.aim == Aim::More) {
        let text = format!(
            "{}: the client takes {:.0} % of the time of an operation of {name}",
            info.name,
            100.0 * part
        );
        add("client-bound", text);
    }
    for run in record.runs(step, engine) {
        for why in &run.flags {
            add("run", format!("{}: {name}: {why}", info.name));
        }
    }
}

/// The runs of one engine differ by more than it differs from the base.
fn noise(record: &Record, step: usize, engine: usize, out: &mut Vec<Flag>) {
    let info = &record.steps[step];
    if engine == record.base || !info.counts || info.aim == Aim::Neither {
        return;
    }
    let Some(ratio) = ratio::of(record, step, engine) else {
        return;
    };
    let effect = ratio.median.max(1.0 / ratio.median);
    if !(ratio::YELLOW..=ratio::BLUE).contains(&ratio.median) && ratio.max / ratio.min > effect {
        let text = format!(
            "{}: the ratios of {} lie between {:.2} and {:.2}, wider than the effect",
            info.name, record.engines[engine].name, ratio.min, ratio.max
        );
        out.push(flag("noise", Some(step), Some(engine), text));
    }
}

/// Steps in which an operation does other work than on the base.
pub fn unequal(record: &Record) -> Vec<Flag> {
    let steps = 0..record.steps.len();
    let all = steps.flat_map(|step| {
        let engines = record.present();
        engines.filter_map(move |(engine, _)| rows(record, step, engine))
    });
    all.collect()
}

/// An operation does other work than on the base.
fn rows(record: &Record, step: usize, engine: usize) -> Option<Flag> {
    if !ratio::unequal(record, step, [engine, record.base]) {
        return None;
    }
    let of = |engine| record.median(step, engine, ROWS).unwrap_or(0.0);
    let text = format!(
        "{}: an operation of {} reads {:.1} rows, one of {} {:.1}",
        record.steps[step].name,
        record.engines[engine].name,
        of(engine),
        record.engines[record.base].name,
        of(record.base)
    );
    Some(flag("unequal", Some(step), Some(engine), text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::record::{Engine, Outcome, Step, Target};

    fn record(runs: &[(f64, f64)], change: impl Fn(&mut Outcome)) -> Record {
        let mut results = Vec::new();
        for (at, (ours, theirs)) in runs.iter().enumerate() {
            for (engine, value) in [(0, ours), (1, theirs)] {
                let mut run = Outcome {
                    engine,
                    pair: at / 2,
                    turn: at % 2,
                    seconds: 10.0,
                    ..Outcome::default()
                };
                run.put("ops_sec", *value, "ops/s");
                change(&mut run);
                results.push(run);
            }
        }
        let engine = |name: &str| Engine {
            name: name.into(),
            ..Engine::default()
        };
        Record {
            base: 1,
            engines: vec![engine("ours"), engine("theirs")],
            steps: vec![Step {
                name: "readrandom".into(),
                figure: "ops_sec".into(),
                counts: true,
                ..Step::default()
            }],
            results,
            ..Record::default()
        }
    }

    fn kinds(record: &Record) -> Vec<String> {
        flags(record).into_iter().map(|flag| flag.kind).collect()
    }

    #[test]
    fn sound_runs_have_no_flag() {
        assert_eq!(kinds(&record(&[(2.0, 1.0); 6], |_| {})), [""; 0]);
    }

    #[test]
    fn each_flag_is_raised_by_what_it_is_about() {
        assert_eq!(kinds(&record(&[(2.0, 1.0); 2], |_| {})), ["few-repeats"]);
        let short = record(&[(2.0, 1.0); 6], |run| run.seconds = 0.5);
        assert_eq!(kinds(&short), ["too-short", "too-short"]);
        let slow = record(&[(2.0, 1.0); 6], |run| {
            run.target = (run.engine == 1).then_some(Target {
                asked: 100.0,
                reached: 80.0,
            });
        });
        assert_eq!(kinds(&slow), ["missed-rate"]);
        let bound = record(&[(2.0, 1.0); 6], |run| {
            let part = if run.engine == 0 { 0.5 } else { 0.1 };
            run.put(CLIENT_PART, part, "");
        });
        assert_eq!(kinds(&bound), ["client-bound"]);
        let noisy = [
            (1.0, 1.0),
            (1.0, 2.0),
            (1.3, 1.0),
            (1.2, 1.0),
            (1.2, 1.0),
            (1.2, 1.0),
        ];
        assert_eq!(kinds(&record(&noisy, |_| {})), ["noise"]);
        for (figure, sound, wrong, kind) in [
            ("ledger_off%", 0.9, 1.1, "ledger"),
            ("memory_named%", 95.5, 94.0, "memory"),
            (PARTS_OFF, 4.9, 5.1, "writes"),
            (DEVICE_OFF, 4.9, 5.1, "device"),
        ] {
            let with = |value: f64| {
                record(&[(2.0, 1.0); 6], |run| {
                    if run.engine == 0 {
                        run.put(figure, value, "%");
                    }
                })
            };
            assert_eq!(kinds(&with(sound)), [""; 0], "{figure}");
            assert_eq!(kinds(&with(wrong)), [kind], "{figure}");
        }
        for (own, raised) in [(92.0, &[][..]), (85.0, &["unequal"])] {
            let rows = record(&[(2.0, 1.0); 6], |run| {
                run.put(ROWS, if run.engine == 0 { own } else { 100.0 }, "");
            });
            assert_eq!(kinds(&rows), raised, "{own}");
        }
        let mut busy = record(&[(2.0, 1.0); 6], |run| run.others = Some(0.2));
        busy.host.loads = vec![9.0];
        assert_eq!(kinds(&busy), [""; 0]);
        busy.results[3].others = Some(0.3);
        busy.engines[0].missing = Some("no such library".into());
        assert_eq!(kinds(&busy), ["failed", "busy"]);
        let mut older = record(&[(2.0, 1.0); 6], |_| {});
        older.host.facts = vec![("machine".into(), "2 x Processor".into())];
        for (load, raised) in [(0.45, &[][..]), (1.5, &["busy"])] {
            older.host.loads = vec![load, 9.0];
            assert_eq!(kinds(&older), raised, "{load}");
        }
    }
}
