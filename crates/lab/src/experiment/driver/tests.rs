//! The driver with an experiment that only writes down what it is asked to do.

use std::sync::Mutex;

use super::*;
use crate::experiment::plan::{Chain, EngineSpec, Setting};
use crate::experiment::record::Step;

#[derive(Default)]
struct Pretend {
    /// Engine, chain, pair and turn of each run.
    runs: Mutex<Vec<(String, String, usize, usize)>>,
    /// An engine that fails, and from which run on.
    fails: Option<(&'static str, usize)>,
    /// Rows that an operation of the second step reads, by kind of engine.
    rows: Option<fn(&str) -> f64>,
}

impl Experiment for Pretend {
    fn name(&self) -> &'static str {
        "pretend"
    }
    fn title(&self) -> &'static str {
        "Nothing"
    }
    fn help(&self) -> &'static str {
        "nothing"
    }
    fn about(&self) -> &'static str {
        "Nothing."
    }
    fn settings(&self) -> &'static [Setting] {
        &[]
    }
    fn supports(&self, engine: &EngineSpec) -> Result<()> {
        match engine.kind() {
            "strange" => Err(Failure::new("it is strange")),
            _ => Ok(()),
        }
    }
    fn plan(&self, _: &Request) -> Result<Plan> {
        let step = Step {
            counts: true,
            ..Step::default()
        };
        let chain = |name: &str| Chain {
            name: name.into(),
            steps: vec![step.clone(), step.clone()],
        };
        Ok(Plan {
            chains: vec![chain("x"), chain("y")],
            seconds: 1,
            bytes: 1,
        })
    }
    fn describe(&self, _: &Request, engine: &EngineSpec) -> Result<Engine> {
        Ok(Engine {
            name: engine.kind().into(),
            ..Engine::default()
        })
    }
    fn run(&self, _: &Request, run: &mut Run<'_>) -> Result<()> {
        let text = run.engine.text.clone();
        {
            let mut runs = self.runs.lock().expect("no thread died");
            let before = runs.iter().filter(|r| r.0 == text).count();
            if self.fails == Some((run.engine.kind(), before)) {
                return Err(Failure::new("it broke"));
            }
            runs.push((text, run.chain.name.clone(), run.pair, run.turn));
        }
        for step in 0..2 {
            let mut outcome = Outcome::default();
            if let (1, Some(rows)) = (step, self.rows) {
                outcome.put(validity::ROWS, rows(run.engine.kind()), "");
            }
            run.keep(step, outcome)?;
        }
        Ok(())
    }
}

fn request(engines: &[&str], pairs: usize) -> Request {
    Request {
        pairs,
        ..Request::of("pretend", &[], true, engines, &[])
    }
}

#[test]
fn runs_go_forward_and_backward_chain_by_chain() {
    let directory = tempfile::tempdir().expect("a directory");
    let (pretend, request) = (
        Pretend::default(),
        request(&["esker", "lib:/a", "strange"], 2),
    );
    let state = State::open(directory.path(), &request).expect("opens");
    let record = run(&pretend, &request, &state, "esker lab pretend").expect("runs");
    let runs = pretend.runs.lock().expect("no thread died").clone();
    let first: Vec<(&str, &str, usize)> = runs[..8]
        .iter()
        .map(|(engine, chain, _, turn)| (engine.as_str(), chain.as_str(), *turn))
        .collect();
    let chain = |name| {
        let [a, b] = ["esker", "lib:/a"];
        [(a, name, 0), (b, name, 0), (b, name, 1), (a, name, 1)]
    };
    assert_eq!(first, [chain("x"), chain("y")].concat());
    assert_eq!((runs.len(), record.results.len()), (16, 32));
    assert!(record.complete);
    assert_eq!(record.base, 1, "what is not Esker is what it is divided by");
    let missing = record.engines[2].missing.as_deref();
    assert_eq!(missing, Some("it is strange"));
    assert!(record.flags.iter().any(|flag| flag.kind == "failed"));
}

#[test]
fn what_is_done_is_not_run_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let request = request(&["esker"], 2);
    let broken = Pretend {
        fails: Some(("esker", 3)),
        ..Pretend::default()
    };
    let state = State::open(directory.path(), &request).expect("opens");
    let failure = run(&broken, &request, &state, "").expect_err("it broke");
    assert!(failure.to_string().contains("it broke"), "{failure}");
    let rest = Pretend::default();
    let record = run(&rest, &request, &state, "").expect("runs");
    assert_eq!(rest.runs.lock().expect("no thread died").len(), 5);
    assert!(record.complete && record.results.len() == 16);
}

#[test]
fn an_engine_that_never_ran_is_left_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let request = request(&["lib:/a", "esker"], 1);
    let pretend = Pretend {
        fails: Some(("lib", 0)),
        ..Pretend::default()
    };
    let state = State::open(directory.path(), &request).expect("opens");
    let record = run(&pretend, &request, &state, "").expect("runs");
    assert_eq!(record.engines[0].missing.as_deref(), Some("it broke"));
    assert!(record.complete && record.results.iter().all(|run| run.engine == 1));
}

#[test]
fn a_step_with_unequal_work_is_in_no_mean() {
    let counted = |rows: fn(&str) -> f64| {
        let directory = tempfile::tempdir().expect("a directory");
        let request = request(&["esker", "lib:/a"], 1);
        let pretend = Pretend {
            rows: Some(rows),
            ..Pretend::default()
        };
        let state = State::open(directory.path(), &request).expect("opens");
        let record = run(&pretend, &request, &state, "").expect("runs");
        let steps = record.steps.iter();
        let counted: Vec<bool> = steps.clone().map(|step| step.counts).collect();
        (counted, steps.filter(|s| s.why == "unequal work").count())
    };
    assert_eq!(counted(|_| 7.0), (vec![true; 4], 0));
    let unequal = |kind: &str| if kind == "lib" { 7.0 } else { 9.0 };
    assert_eq!(counted(unequal), (vec![true, false, true, false], 2));
}

#[test]
fn engines_of_one_name_get_letters() {
    let engine = |name: &str| Engine {
        name: name.into(),
        ..Engine::default()
    };
    let mut engines = [engine("a"), engine("b"), engine("a")];
    tell_apart(&mut engines);
    assert_eq!(engines.map(|e| e.name), ["a A", "b", "a B"]);
}
