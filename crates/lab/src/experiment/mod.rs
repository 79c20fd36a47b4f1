//! The interface of an experiment of `esker lab`, and its run.
//!
//! An [`Experiment`] declares its name, its settings at the quick and at the full size, the engines
//! that it can drive, and a [`Plan`]: chains of steps. The steps of one chain work on one database
//! in order, so a chain is what one engine runs at a time, in a directory of its own; chains are
//! independent. The [`driver`] runs each chain on all engines forward and then backward (A B B A),
//! as often as there are pairs, so that drift of the machine falls on all engines alike. It keeps
//! every step that ended in a file of its own ([`state`]), shows progress, and stops early when
//! asked. What it has is a [`record::Record`] at any time, from which pages are made.
//!
//! * [`record`]: all that was measured.
//! * [`plan`]: settings, requests, chains.
//! * [`ratio`]: paired ratios with bootstrap intervals.
//! * [`host`]: facts about the machine and the preflight.
//! * [`validity`]: what weakens or invalidates figures.
//! * [`state`]: finished steps as files.
//! * [`driver`]: runs a plan.

pub mod driver;
pub mod host;
pub mod plan;
pub mod ratio;
pub mod record;
pub mod state;
pub mod validity;

use std::path::Path;

use crate::Result;
use plan::{Chain, EngineSpec, Plan, Request, Setting};
use record::{Engine, Outcome, Record};

/// An experiment.
pub trait Experiment: Sync {
    /// The word on the command line.
    fn name(&self) -> &'static str;

    /// Returns the question, as the headline of the page.
    fn title(&self) -> &'static str;

    /// One line for the list of experiments.
    fn help(&self) -> &'static str;

    /// Describes the steps and their figures, in a few sentences for the page and the help.
    fn about(&self) -> &'static str;

    /// The settings that it has, each with its value at the quick and at the full size.
    fn settings(&self) -> &'static [Setting];

    /// How often A B B A is run where the command line does not say: three pairs are the fewest
    /// that give an interval.
    fn default_pairs(&self) -> usize {
        3
    }

    /// Engines that are taken where the command line names none.
    fn default_engines(&self) -> &'static [&'static str] {
        &["esker"]
    }

    /// The engines that are run for those that are named: an experiment may run several forms of
    /// each.
    fn engines(&self, named: Vec<EngineSpec>) -> Vec<EngineSpec> {
        named
    }

    /// The engine that the others are divided by: the first that is not the embedded one, or the
    /// first of all.
    fn base(&self, engines: &[EngineSpec]) -> usize {
        let other = engines.iter().position(|spec| spec.kind() != "esker");
        other.unwrap_or(0)
    }

    /// Checks that it can drive an engine at all.
    ///
    /// # Errors
    /// Why not, in a sentence.
    fn supports(&self, engine: &EngineSpec) -> Result<()>;

    /// The chains of steps.
    ///
    /// # Errors
    /// Settings that make no sense.
    fn plan(&self, request: &Request) -> Result<Plan>;

    /// Describes an engine before it runs: name, version, hash. `missing` says why it cannot be run
    /// here, and leaves it out of the runs.
    ///
    /// # Errors
    /// A failure that should end the experiment.
    fn describe(&self, request: &Request, engine: &EngineSpec) -> Result<Engine>;

    /// Runs the steps of one chain on one engine, and gives each outcome to [`Run::keep`] when the
    /// step has ended. It returns early when [`crate::interrupt::stopped`], without keeping a step
    /// that was cut short.
    ///
    /// # Errors
    /// The first failure of the engine.
    fn run(&self, request: &Request, run: &mut Run<'_>) -> Result<()>;

    /// Adds tables, sentences and flags, when all is measured; also for a part of the steps.
    fn finish(&self, _request: &Request, _record: &mut Record) {}
}

/// One chain on one engine: what [`Experiment::run`] gets.
pub struct Run<'a> {
    /// The engine as it was named.
    pub engine: &'a EngineSpec,
    /// Its facts; what is learned while it runs (options, version) may be added.
    pub facts: &'a mut Engine,
    /// The chain.
    pub chain: &'a Chain,
    /// The pair, from 0.
    pub pair: usize,
    /// Which run of this engine within the pair, 0 or 1.
    pub turn: usize,
    /// The seed, the same for all engines of a pair.
    pub seed: u64,
    /// A fresh directory for the database, removed when the chain has ended.
    pub directory: &'a Path,
    /// A directory for files to keep with the results: logs, OPTIONS.
    pub keep_in: &'a Path,
    /// Steps that ended, with the place of each in its chain.
    keep: &'a mut dyn FnMut(usize, Outcome) -> Result<()>,
    progress: &'a dyn Fn(&str, f64),
}

impl Run<'_> {
    /// Keeps what a step gave; `step` is its place in the chain.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&mut self, step: usize, outcome: Outcome) -> Result<()> {
        (self.keep)(step, outcome)
    }

    /// Shows what is going on: the step, and its rate now (0 where there is none).
    pub fn show(&self, step: &str, rate: f64) {
        (self.progress)(step, rate);
    }

    /// Returns the progress as a function of its own, for use beside the run.
    pub fn progress(&self) -> &dyn Fn(&str, f64) {
        self.progress
    }
}
