//! `regress`: the same steps over several builds or libraries, relative to the first.
//!
//! `--plant=5` puts a copy of the first engine beside it that is 5 % slower ([`planted`]), and
//! says whether the experiment found that.
//!
//! Beside rates it counts instructions of an operation under callgrind, where valgrind is
//! installed: twice with different numbers of operations, so that opening and loading cancel out.
//! Instructions vary by less than rates do. `--bisect=STEP` searches a list of builds, the oldest
//! first, for the first that is slower in a step.

mod planted;

use std::path::Path;

use crate::experiment::plan::{EngineSpec, Plan, Request, Setting};
use crate::experiment::ratio::{self, Verdict};
use crate::experiment::record::{Engine, Record};
use crate::experiment::state::State;
use crate::experiment::validity;
use crate::experiment::{Experiment, Run, driver};
use crate::{Failure, Result, interrupt};

use super::engine;
use super::instructions::{self, CountedBenchmark, CountingPlan, count_all, not_counted};
use super::recipe::{self, BenchmarkPart, Stage, on_tree, prepare, rate};
use super::settings::{AGE, ENTRY, setting};
pub(super) use planted::plant;

/// The experiment.
pub(super) static REGRESS: Regress = Regress;

/// See the module.
pub(super) struct Regress;

const SETTINGS: [Setting; 8] = [
    setting("num", "300000", "10000000", "keys"),
    setting("duration", "2", "120", "seconds of each timed step"),
    setting(
        "rate",
        "2",
        "2",
        "megabytes a second of the writer beside readers",
    ),
    setting(
        "instructions",
        "5000",
        "10000",
        "operations to count instructions of; 0 for none",
    ),
    setting(
        "bisect",
        "",
        "",
        "a step: find the first engine of the list that is slower in it",
    ),
    setting(
        "only",
        "",
        "",
        "steps to run behind the load, with commas between; all unless given",
    ),
    setting(
        "plant",
        "",
        "",
        "percent: a copy of the first engine that is so much slower in readrandom runs beside it",
    ),
    AGE,
];

impl Experiment for Regress {
    fn name(&self) -> &'static str {
        "regress"
    }

    fn title(&self) -> &'static str {
        "Builds beside each other"
    }

    fn help(&self) -> &'static str {
        "sixteen steps over several builds or libraries, relative to the first; --bisect"
    }

    fn about(&self) -> &'static str {
        "Sixteen steps run on every build or library of the list, and each figure is divided by \
         that of the first. Where valgrind is installed, instructions of an operation are counted \
         as well: they vary by less than rates."
    }

    fn settings(&self) -> &'static [Setting] {
        &SETTINGS
    }

    fn base(&self, _engines: &[EngineSpec]) -> usize {
        0
    }

    /// Three pairs cannot tell identical builds from others over so many steps.
    fn default_pairs(&self) -> usize {
        5
    }

    fn supports(&self, engine: &EngineSpec) -> Result<()> {
        engine::supports(engine)
    }

    fn plan(&self, request: &Request) -> Result<Plan> {
        let stages = chosen(request)?;
        recipe::check(request, &stages)?;
        let mut chain = recipe::chain("", &stages);
        chain
            .steps
            .extend(counted(request)?.map(CountedBenchmark::step));
        if chain.steps.is_empty() {
            let text = "--only names counts of instructions alone, which need valgrind";
            return Err(Failure::new(text));
        }
        let (num, duration) = (request.count("num")?, request.count("duration")?);
        Ok(Plan {
            chains: vec![chain],
            seconds: 14 * duration + num / 50_000,
            bytes: num * ENTRY * 3,
        })
    }

    fn describe(&self, _request: &Request, engine: &EngineSpec) -> Result<Engine> {
        engine::describe(engine)
    }

    fn run(&self, request: &Request, run: &mut Run<'_>) -> Result<()> {
        let stages = chosen(request)?;
        let timed: usize = recipe::chain("", &stages).steps.len();
        if timed > 0 {
            recipe::run(request, run, &stages)?;
        }
        count_all(
            request,
            run,
            timed,
            counted(request)?,
            &CountingPlan::default(),
        )
    }

    fn finish(&self, request: &Request, record: &mut Record) {
        record.sentences.extend(recipe::age_sentence(request));
        let said = told_apart(record);
        record.sentences.extend(said);
        record.sentences.extend(planted::sentence(request, record));
        record.flags.extend(not_counted(request));
    }
}

/// In which steps each engine differs from the base, after correction for the number of steps.
fn told_apart(record: &Record) -> Vec<String> {
    let judged = record.steps.iter().filter(|step| step.counts).count();
    let mut out = Vec::new();
    let base = &record.engines[record.base].name;
    for (engine, info) in record.present().filter(|(at, _)| *at != record.base) {
        let name = &info.name;
        if !ratio::can_tell_apart(record.pairs, judged) {
            let pairs = if record.pairs == 1 { "pair" } else { "pairs" };
            out.push(format!(
                "{} {pairs} cannot tell {name} from {base} over {judged} steps; more are needed.",
                record.pairs
            ));
            continue;
        }
        if let Some(why) = validity::busy(record) {
            out.push(format!("{name} and {base} are not told apart: {why}."));
            continue;
        }
        let found = ratio::told_apart(record, engine);
        let steps: Vec<String> = found
            .iter()
            .map(|(step, ratio)| format!("{} ({:.3})", record.steps[*step].name, ratio.median))
            .collect();
        out.push(if steps.is_empty() {
            format!("{name} and {base} are not told apart in any of {judged} steps.")
        } else {
            format!(
                "{name} differs from {base} in {}; identical builds would do so in any of {judged} \
                 steps in one run of 20 at most.",
                steps.join(", ")
            )
        });
    }
    out
}

/// The steps that `--only` names; all where it names none.
fn chosen(request: &Request) -> Result<Vec<Stage>> {
    let mut stages = stages(request)?;
    let only = request.words("only");
    if only.is_empty() {
        return Ok(stages);
    }
    let steps = recipe::chain("", &stages).steps.into_iter();
    let mut names: Vec<String> = steps.map(|step| step.name).collect();
    names.extend(COUNTED.iter().map(|of| of.step().name));
    if let Some(wrong) = only.iter().find(|name| !names.iter().any(|n| n == *name)) {
        let text = format!("--only={wrong}: the steps are {}", names.join(", "));
        return Err(Failure::new(text));
    }
    let is_wanted = |part: &BenchmarkPart| {
        let step = part.step.as_ref();
        step.is_none_or(|step| only.contains(&step.name.as_str()))
    };
    // The load prepares the others.
    let load = &mut stages[0].parts;
    load.retain(|part| is_wanted(part) || part.benchmark == "fillseq");
    if !is_wanted(&load[0]) {
        load[0].step = None;
    }
    for stage in &mut stages[1..] {
        stage.parts.retain(is_wanted);
    }
    stages.retain(|stage| is_load(stage) || stage.parts.iter().any(|part| part.step.is_some()));
    if recipe::chain("", &stages).steps.is_empty() {
        stages.clear();
    }
    Ok(stages)
}

/// Returns whether a stage fills the database that the others use.
fn is_load(stage: &Stage) -> bool {
    stage
        .parts
        .first()
        .is_some_and(|part| part.benchmark == "fillseq")
}

/// The benchmarks whose instructions are counted; none without valgrind.
fn counted(request: &Request) -> Result<impl Iterator<Item = &'static CountedBenchmark>> {
    let is_on = instructions::are_counted(request)?;
    let only: Vec<String> = request
        .words("only")
        .into_iter()
        .map(String::from)
        .collect();
    Ok(COUNTED
        .iter()
        .filter(move |of| is_on && (only.is_empty() || only.contains(&of.step().name))))
}

fn stages(request: &Request) -> Result<Vec<Stage>> {
    let num = request.count("num")?;
    let common = [
        format!("--num={num}"),
        format!("--cache_size={}", (num * ENTRY * 2).max(64 << 20)),
        "--compression_type=none".to_string(),
    ];
    let duration = format!("--duration={}", request.count("duration")?);
    let write_rate = format!(
        "--background_write_rate_limit={}",
        request.count("rate")? << 20
    );
    let make = |parts: Vec<BenchmarkPart>, more: &[&str]| {
        let more = more.iter().map(|flag| (*flag).to_string());
        let all: Vec<String> = common.iter().cloned().chain(more).collect();
        on_tree(parts, &all)
    };
    let timed = |benchmark, name: &str, help: &str| rate(benchmark, name, help);
    Ok(vec![
        make(
            vec![
                timed("fillseq", "fillseq", "load in key order, no log"),
                prepare("waitforcompaction"),
                timed("readseq", "readseq", "iterate forward"),
                timed("readreverse", "readreverse", "iterate backward"),
            ],
            // A pass over so few keys ends before its rate counts.
            &[
                "--disable_wal=true",
                "--statistics",
                &duration,
                "--repeat_walks=true",
            ],
        ),
        make(
            vec![
                timed("readrandom", "readrandom", "read a key"),
                timed("readmissing", "readmissing", "read a key that is not there"),
                timed("seekrandom", "fwdrange", "a range of ten"),
                timed("newiterator", "newiterator", "create an iterator"),
            ],
            &[&duration, "--seek_nexts=10"],
        ),
        make(
            vec![timed("seekrandom", "revrange", "a range of ten, backward")],
            &[&duration, "--seek_nexts=10", "--reverse_iterator=true"],
        ),
        make(
            vec![timed(
                "multireadrandom",
                "multireadrandom",
                "ten keys at once",
            )],
            &[&duration, "--batch_size=10"],
        ),
        make(
            vec![
                timed("updaterandom", "updaterandom", "read a key and write it"),
                timed(
                    "readrandomwriterandom",
                    "readrandomwriterandom",
                    "90 % reads, 10 % writes",
                ),
                prepare("waitforcompaction"),
            ],
            &[&duration],
        ),
        make(
            vec![
                timed(
                    "revrangewhilewriting",
                    "revrangewhilewriting",
                    "beside a paced writer",
                ),
                timed(
                    "fwdrangewhilewriting",
                    "fwdrangewhilewriting",
                    "beside a paced writer",
                ),
                timed(
                    "readwhilewriting",
                    "readwhilewriting",
                    "beside a paced writer",
                ),
            ],
            &[&duration, "--seek_nexts=10", &write_rate],
        ),
        make(
            vec![
                timed("overwrite", "overwrite", "overwrite at full speed"),
                prepare("waitforcompaction"),
                timed("deleterandom", "deleterandom", "delete random keys"),
            ],
            &[&duration, "--statistics"],
        ),
    ])
}

const COUNTED: [CountedBenchmark; 3] = [
    CountedBenchmark {
        name: "fillrandom",
        benchmark: "fillrandom",
        before: &[],
        limit: "num",
        flags: &[],
    },
    CountedBenchmark {
        name: "readrandom",
        benchmark: "readrandom",
        before: &["fillrandom"],
        limit: "reads",
        flags: &[],
    },
    CountedBenchmark {
        name: "seekrandom",
        benchmark: "seekrandom",
        before: &["fillrandom"],
        limit: "reads",
        flags: &[],
    },
];

/// The first of `count` that is bad, where the first of all is good and each after a bad one is
/// bad; `None` when the last is good.
fn first_bad(count: usize, mut is_bad: impl FnMut(usize) -> Result<bool>) -> Result<Option<usize>> {
    if count < 2 || !is_bad(count - 1)? {
        return Ok(None);
    }
    let (mut good, mut bad) = (0, count - 1);
    while bad - good > 1 {
        let middle = (good + bad) / 2;
        if is_bad(middle)? {
            bad = middle;
        } else {
            good = middle;
        }
    }
    Ok(Some(bad))
}

/// Searches the engines of a request; returns the records of all comparisons, and a sentence.
///
/// # Errors
/// No such step, or a comparison that failed.
pub(super) fn bisect(
    request: &Request,
    root: &Path,
    command: &str,
) -> Result<(Vec<Record>, String)> {
    let wanted = request.text("bisect");
    let steps = REGRESS.plan(request)?.steps();
    let Some(step) = steps.iter().position(|step| step.name == wanted) else {
        let names: Vec<String> = steps.into_iter().map(|step| step.name).collect();
        let text = format!("--bisect={wanted}: the steps are {}", names.join(", "));
        return Err(Failure::new(text));
    };
    let mut records = Vec::new();
    let found = first_bad(request.engines.len(), |at| {
        let part = Request {
            engines: vec![request.engines[0].clone(), request.engines[at].clone()],
            ..request.clone()
        };
        let state = State::open(&root.join(format!("bisect{at:02}")), &part)?;
        let record = driver::run(&REGRESS, &part, &state, command)?;
        if interrupt::stopped() {
            return Err(Failure::new("stopped; the same command goes on"));
        }
        let found = ratio::of(&record, step, 1);
        records.push(record);
        let found = found.ok_or_else(|| Failure::new(format!("{wanted} gave no ratio")))?;
        if !found.has_interval() {
            return Err(Failure::new(
                "--bisect needs --pairs=3 or more for a verdict",
            ));
        }
        Ok(ratio::verdict(&found) == Verdict::Loss)
    })?;
    let sentence = match found {
        Some(at) => format!(
            "The first that is slower in {wanted} is number {} of the list, {}.",
            at + 1,
            request.engines[at].text
        ),
        None => format!("The last of the list is not slower in {wanted} than the first."),
    };
    Ok((records, sentence))
}

#[cfg(test)]
mod tests;
