//! [`Recipe`]: an experiment whose chains are stages of benchmarks.

use crate::Result;
use crate::experiment::plan::{Chain, EngineSpec, Plan, Request, Setting};
use crate::experiment::record::{Engine, Outcome, Record, Step};
use crate::experiment::{Experiment, Run};
use crate::report::Row;

use super::engine;
use super::recipe::{self, Stage};

/// Name and stages of each chain.
pub(super) type Chains = Vec<(String, Vec<Stage>)>;

/// A step that sums up a chain, and how it follows from the rows of all benchmarks.
pub(super) type Sum = (fn() -> Step, fn(&[Row]) -> Outcome);

/// An experiment whose chains are stages of benchmarks.
pub(super) struct Recipe {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) help: &'static str,
    pub(super) about: &'static str,
    pub(super) settings: &'static [Setting],
    pub(super) chains: fn(&Request) -> Result<Chains>,
    /// Seconds of one run, and bytes of a database at most.
    pub(super) size: fn(&Request) -> Result<(u64, u64)>,
    /// A last step of each chain that sums up its benchmarks.
    pub(super) sum: Option<Sum>,
    pub(super) finish: fn(&Request, &mut Record),
}

impl Experiment for Recipe {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn help(&self) -> &'static str {
        self.help
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn settings(&self) -> &'static [Setting] {
        self.settings
    }

    fn supports(&self, engine: &EngineSpec) -> Result<()> {
        engine::supports(engine)
    }

    fn plan(&self, request: &Request) -> Result<Plan> {
        let (seconds, bytes) = (self.size)(request)?;
        let mut chains = Vec::new();
        for (name, stages) in (self.chains)(request)? {
            recipe::check(request, &stages)?;
            let mut chain: Chain = recipe::chain(&name, &stages);
            if let Some((step, _)) = &self.sum {
                let step = step();
                chain.steps.push(Step {
                    name: format!("{name} {}", step.name).trim().to_string(),
                    ..step
                });
            }
            chains.push(chain);
        }
        Ok(Plan {
            chains,
            seconds,
            bytes,
        })
    }

    fn describe(&self, _request: &Request, engine: &EngineSpec) -> Result<Engine> {
        engine::describe(engine)
    }

    fn run(&self, request: &Request, run: &mut Run<'_>) -> Result<()> {
        let chains = (self.chains)(request)?;
        let found = chains.iter().find(|(name, _)| *name == run.chain.name);
        let (_, stages) = found.ok_or_else(|| crate::Failure::new("no such chain"))?;
        let rows = recipe::run(request, run, stages)?;
        let wanted: usize = stages.iter().map(|stage| stage.parts.len()).sum();
        if let (Some((_, sum)), true) = (&self.sum, rows.len() == wanted) {
            run.keep(run.chain.steps.len() - 1, sum(&rows))?;
        }
        Ok(())
    }

    fn finish(&self, request: &Request, record: &mut Record) {
        record.sentences.extend(recipe::age_sentence(request));
        (self.finish)(request, record);
    }
}

/// For recipes that add nothing.
pub(super) fn nothing(_: &Request, _: &mut Record) {}
