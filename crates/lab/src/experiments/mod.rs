//! The experiments of `esker lab`.
//!
//! Most are recipes: lists of benchmarks of `esker bench` in the order in which RocksDB's users run
//! them, on Esker and on any `librocksdb.so`. `all` lists every experiment.

mod blob;
mod byrx;
mod cached;
mod compaction;
mod directions;
mod engine;
mod instructions;
mod memory;
mod mixed;
mod outcome;
mod recipe;
mod recipes;
mod regress;
mod settings;

use std::path::Path;

use crate::Result;
use crate::experiment::Experiment;
use crate::experiment::plan::Request;
use crate::experiment::record::Record;

/// Every experiment, in the order of the help.
pub fn all() -> Vec<&'static dyn Experiment> {
    let mut all: Vec<&'static dyn Experiment> = vec![
        &byrx::BYRX,
        &byrx::IOBUF,
        &byrx::IODIR,
        &cached::CACHED,
        &compaction::UNIVERSAL,
        &compaction::SHAPE,
        &regress::REGRESS,
        &mixed::CACHE,
        &mixed::YCSB,
        &mixed::MIXGRAPH,
        &blob::BLOB,
        &memory::MEMORY,
    ];
    all.extend(crate::relational::experiments::all());
    all
}

/// An experiment by its name.
pub fn named(name: &str) -> Option<&'static dyn Experiment> {
    all()
        .into_iter()
        .find(|experiment| experiment.name() == name)
}

/// Searches the engines of a request of `regress` for the first that is slower in the step that its
/// setting `bisect` names. Returns the records of all comparisons, and what was found.
///
/// # Errors
/// No such step, or a comparison that failed.
pub fn bisect(request: &Request, root: &Path, command: &str) -> Result<(Vec<Record>, String)> {
    regress::bisect(request, root, command)
}

/// Puts a copy of the first engine that is slowed down beside it, where the setting `plant` of
/// `regress` asks for one. How much work that is stays in a file below `out`.
///
/// # Errors
/// The setting is no part, or the engine cannot be measured.
pub fn plant(request: &mut Request, out: &Path) -> Result<()> {
    regress::plant(request, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_has_a_plan_at_both_sizes_and_names_that_differ() {
        for experiment in all() {
            for quick in [true, false] {
                let (name, settings) = (experiment.name(), experiment.settings());
                let request = Request::of(name, settings, quick, &["esker"], &[]);
                let plan = experiment.plan(&request).expect("a plan");
                let steps = plan.steps();
                assert!(!steps.is_empty(), "{}", experiment.name());
                let mut names: Vec<&str> = steps.iter().map(|s| s.name.as_str()).collect();
                names.sort_unstable();
                let count = names.len();
                names.dedup();
                assert_eq!(names.len(), count, "{}", experiment.name());
                assert!(
                    steps.iter().any(|step| step.counts),
                    "{}",
                    experiment.name()
                );
            }
            assert!(named(experiment.name()).is_some());
        }
        assert!(named("nonsense").is_none());
    }
}
