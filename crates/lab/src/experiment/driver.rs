//! Runs the plan of an experiment: A B B A, pair by pair, and keeps what ended.

use std::fs;
use std::io::IsTerminal as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use indicatif::{ProgressBar, ProgressStyle};

use super::plan::{Plan, Request};
use super::record::{Engine, FORMAT, MEANING, Outcome, Record};
use super::state::{RunKey, State};
use super::{Experiment, Run, host, validity};
use crate::interrupt::{self, Scratch};
use crate::process::{self, Busy};
use crate::say::complain;
use crate::{Failure, Result};

/// The seed of the first pair; each further pair has the next.
const SEED: u64 = 42;

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Runs what is not done yet. Returns the record of all that is there, also when a signal ended the
/// run early.
///
/// # Errors
/// Settings that make no sense, no engine that runs, or a failure of one that ran before.
pub fn run(
    experiment: &dyn Experiment,
    request: &Request,
    state: &State,
    command: &str,
) -> Result<Record> {
    let plan = experiment.plan(request)?;
    let scratch = if request.scratch.as_os_str().is_empty() {
        std::env::temp_dir()
    } else {
        request.scratch.clone()
    };
    fs::create_dir_all(&scratch)
        .map_err(|e| Failure::new(format!("cannot create {}: {e}", scratch.display())))?;
    let mut driver = Driver {
        experiment,
        request,
        state,
        scratch: &scratch,
        record: begin(experiment, request, state, &plan, command, &scratch)?,
        bar: RunProgress::new(&plan, request),
        plan,
        told: Vec::new(),
    };
    driver.all()?;
    driver.bar.finish();
    let complete = driver.is_complete();
    let mut record = driver.record;
    (record.ended, record.complete) = (now(), complete);
    tell_apart(&mut record.engines);
    record.results = state.outcomes()?;
    if record.engines[record.base].missing.is_some() {
        let first = record.present().next().map(|(at, _)| at);
        record.base = first.unwrap_or(0);
    }
    record.results.retain(|run| {
        let engine = record.engines.get(run.engine);
        engine.is_some_and(|engine| engine.missing.is_none())
    });
    let place = |run: &Outcome| (run.step, run.pair, run.turn, run.engine);
    record.results.sort_by_key(place);
    experiment.finish(request, &mut record);
    record.flags.extend(validity::flags(&record));
    count_equal_work(&mut record);
    state.write_record(&record)?;
    Ok(record)
}

/// Takes steps out of the mean in which engines did not do the same work.
fn count_equal_work(record: &mut Record) {
    let unequal = record.flags.iter().filter(|flag| flag.kind == "unequal");
    let steps: Vec<usize> = unequal.filter_map(|flag| flag.step).collect();
    for step in steps {
        record.steps[step].counts = false;
        record.steps[step].why = "unequal work".into();
    }
}

/// The record before anything ran.
fn begin(
    experiment: &dyn Experiment,
    request: &Request,
    state: &State,
    plan: &Plan,
    command: &str,
    scratch: &Path,
) -> Result<Record> {
    let mut engines = Vec::new();
    for spec in &request.engines {
        let mut engine = match experiment.supports(spec) {
            Ok(()) => experiment.describe(request, spec)?,
            Err(why) => Engine {
                missing: Some(why.to_string()),
                name: spec.text.clone(),
                ..Engine::default()
            },
        };
        engine.spec = spec.text.clone();
        if !spec.label.is_empty() {
            engine.name = spec.label.clone();
        }
        engines.push(engine);
    }
    if let Some(before) = state.engines().filter(|known| known.len() == engines.len()) {
        // What was learned in runs that are done. A binary that changed since makes them void.
        for (engine, known) in engines.iter_mut().zip(before) {
            if engine.hash != known.hash {
                return Err(Failure::new(format!(
                    "{}: its binary is not the one that the results in {} are of; name another \
                     directory with --out",
                    engine.spec,
                    state.root().display()
                )));
            }
            *engine = known;
        }
    }
    tell_apart(&mut engines);
    let base = experiment.base(&request.engines);
    Ok(Record {
        format: FORMAT,
        meaning: MEANING,
        experiment: request.experiment.clone(),
        title: experiment.title().into(),
        about: experiment.about().into(),
        quick: request.quick,
        pairs: request.pairs,
        command: command.into(),
        settings: request.settings.clone(),
        began: now(),
        host: host::host(scratch, plan.bytes),
        engines,
        base,
        steps: plan.steps(),
        ..Record::default()
    })
}

/// Gives engines of one name letters.
pub(super) fn tell_apart(engines: &mut [Engine]) {
    let names: Vec<String> = engines.iter().map(|engine| engine.name.clone()).collect();
    for (at, engine) in engines.iter_mut().enumerate() {
        let same = names.iter().filter(|name| **name == names[at]).count();
        let before = names[..at]
            .iter()
            .filter(|name| **name == names[at])
            .count();
        if same > 1 {
            let letter = char::from(b'A' + (before % 26) as u8);
            engine.name = format!("{} {letter}", names[at]);
        }
    }
}

struct Driver<'a> {
    experiment: &'a dyn Experiment,
    request: &'a Request,
    state: &'a State,
    scratch: &'a Path,
    record: Record,
    plan: Plan,
    bar: RunProgress,
    /// Steps of which it was said that engines do other work.
    told: Vec<usize>,
}

impl Driver<'_> {
    /// Which runs there are, in the order in which they are made.
    fn keys(&self) -> Vec<RunKey> {
        let forward: Vec<usize> = self.record.present().map(|(at, _)| at).collect();
        let mut backward = forward.clone();
        backward.reverse();
        let mut keys = Vec::new();
        for pair in 0..self.request.pairs {
            for chain in 0..self.plan.chains.len() {
                for (turn, order) in [&forward, &backward].into_iter().enumerate() {
                    for engine in order {
                        keys.push(RunKey {
                            pair,
                            chain,
                            turn,
                            engine: *engine,
                        });
                    }
                }
            }
        }
        keys
    }

    fn is_complete(&self) -> bool {
        self.keys().iter().all(|key| self.state.is_done(*key))
    }

    /// How many runs there still are, and about how long they take.
    fn ahead(&self) -> String {
        let left = self.left();
        let seconds = left as u64 * self.plan.seconds / self.plan.chains.len().max(1) as u64;
        format!("{left} runs, about {} on an idle machine", about(seconds))
    }

    fn left(&self) -> usize {
        let all = self.keys();
        all.iter().filter(|key| !self.state.is_done(**key)).count()
    }

    fn all(&mut self) -> Result<()> {
        complain!("{}", self.ahead());
        let (start, mut ended) = (Instant::now(), 0);
        for key in self.keys() {
            if interrupt::stopped() {
                break;
            }
            let missing = self.record.engines[key.engine].missing.is_some();
            if missing || self.state.is_done(key) {
                self.bar.skip(self.plan.chains[key.chain].steps.len());
                continue;
            }
            self.record.host.loads.push(process::load());
            if ended > 0 {
                let left = self.left();
                let each = start.elapsed() / ended;
                let count = self.keys().len();
                let text = about(each.as_secs() * left as u64);
                self.bar.say(&format!(
                    "{} of {count} runs, about {text} left",
                    count - left
                ));
            }
            ended += 1;
            if let Err(failure) = self.one(key) {
                self.failed(key, failure)?;
            }
            self.state.keep_engines(&self.record.engines)?;
            self.tell_unequal()?;
        }
        if self.record.present().next().is_none() {
            let why = self.record.engines.iter().filter_map(|e| e.missing.clone());
            let why: Vec<String> = why.collect();
            return Err(Failure::new(format!("no engine ran: {}", why.join("; "))));
        }
        Ok(())
    }

    /// Says, once, of which steps the runs so far did other work on two engines.
    fn tell_unequal(&mut self) -> Result<()> {
        self.record.results = self.state.outcomes()?;
        for flag in validity::unequal(&self.record) {
            let Some(step) = flag.step.filter(|step| !self.told.contains(step)) else {
                continue;
            };
            self.told.push(step);
            let text = format!(
                "{}: so far the step is in no mean and no verdict",
                flag.text
            );
            self.bar.say(&text);
        }
        Ok(())
    }

    /// One chain on one engine.
    fn one(&mut self, key: RunKey) -> Result<()> {
        let (experiment, request, state) = (self.experiment, self.request, self.state);
        let keep_in = state.begin(key)?;
        let scratch = Scratch::within(self.scratch)?;
        let first = self.plan.first_step(key.chain);
        let (mut engine, bar) = (self.record.engines[key.engine].clone(), &self.bar);
        bar.begin(&engine.name, key, self.request.pairs);
        let mut others = ForeignLoad::begin(self.record.host.processors);
        let mut keep = |step: usize, mut outcome: Outcome| {
            outcome.others = others.until_now();
            (outcome.step, outcome.engine) = (first + step, key.engine);
            (outcome.pair, outcome.turn) = (key.pair, key.turn);
            bar.step();
            state.keep(key, &outcome)
        };
        let mut run = Run {
            engine: &request.engines[key.engine],
            facts: &mut engine,
            chain: &self.plan.chains[key.chain],
            pair: key.pair,
            turn: key.turn,
            seed: SEED + key.pair as u64,
            directory: &scratch.path().join("db"),
            keep_in: &keep_in,
            keep: &mut keep,
            progress: &|step, rate| bar.show(step, rate),
        };
        experiment.run(request, &mut run)?;
        self.record.engines[key.engine] = engine;
        if !interrupt::stopped() {
            self.state.done(key)?;
        }
        Ok(())
    }

    /// An engine that never came to an end is left out; one that did before ends the experiment.
    fn failed(&mut self, key: RunKey, failure: Failure) -> Result<()> {
        if interrupt::stopped() {
            return Ok(());
        }
        let keys = self.keys();
        let of_engine = keys.iter().filter(|other| other.engine == key.engine);
        if of_engine.clone().any(|other| self.state.is_done(*other)) {
            return Err(failure.context(&self.record.engines[key.engine].name));
        }
        complain!("{}: {failure}", self.record.engines[key.engine].name);
        self.record.engines[key.engine].missing = Some(failure.to_string());
        Ok(())
    }
}

/// A time in words.
fn about(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} seconds"),
        120..7200 => format!("{} minutes", seconds / 60),
        _ => format!("{} hours", seconds / 3600),
    }
}

/// The part of the processors that others took between steps that are kept.
struct ForeignLoad {
    processors: usize,
    since: Instant,
    before: Busy,
    last: Option<f64>,
}

impl ForeignLoad {
    fn begin(processors: usize) -> ForeignLoad {
        ForeignLoad {
            processors,
            since: Instant::now(),
            before: Busy::now(),
            last: None,
        }
    }

    /// Since the last step that was kept. Steps of one process are kept one behind the other when
    /// it has ended: they have one figure.
    fn until_now(&mut self) -> Option<f64> {
        const LEAST: Duration = Duration::from_millis(500);
        let elapsed = self.since.elapsed();
        if self.last.is_none() || elapsed >= LEAST {
            let now = Busy::now();
            self.last = Some(now.others_since(self.before, elapsed, self.processors));
            (self.since, self.before) = (Instant::now(), now);
        }
        self.last
    }
}

/// Progress: a bar on a terminal, a line for each run otherwise.
struct RunProgress {
    bar: Option<ProgressBar>,
    run: std::cell::RefCell<String>,
}

impl RunProgress {
    fn new(plan: &Plan, request: &Request) -> RunProgress {
        let steps = plan.steps().len() * request.engines.len() * request.pairs * 2;
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = "{bar:24} {pos}/{len} steps, {elapsed} of about {duration}: {msg}";
            let style = ProgressStyle::with_template(style);
            ProgressBar::new(steps as u64)
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        RunProgress {
            bar,
            run: std::cell::RefCell::default(),
        }
    }

    fn begin(&self, engine: &str, key: RunKey, pairs: usize) {
        let (pair, turn) = (key.pair + 1, key.turn + 1);
        let text = format!("pair {pair} of {pairs}, run {turn} of 2, {engine}");
        if self.bar.is_none() {
            complain!("{text}");
        }
        *self.run.borrow_mut() = text;
    }

    /// A line of its own.
    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => complain!("{text}"),
        }
    }

    fn show(&self, step: &str, rate: f64) {
        if let Some(bar) = &self.bar {
            let rate = if rate > 0.0 {
                format!(" {rate:.0}/s")
            } else {
                String::new()
            };
            bar.set_message(format!("{}, {step}{rate}", self.run.borrow()));
        }
    }

    fn step(&self) {
        self.skip(1);
    }

    fn skip(&self, steps: usize) {
        if let Some(bar) = &self.bar {
            bar.inc(steps as u64);
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests;
