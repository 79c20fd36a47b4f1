//! `esker bench`, `esker lab` and `esker diff`: the commands of crates that read their arguments
//! and print by themselves, from several threads.
//!
//! The feature `lab` of this crate builds them in.

use crate::{check, say};
use clap::Args;
use std::process::ExitCode;

/// Everything after `diff`.
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// `--left lib:A --right lib:B --calls N --seed S`; `esker diff --list` lists the kinds of
    /// calls
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Everything after `bench`.
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// db_bench's flags; `esker bench --help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Everything after `lab`.
#[derive(Args, Debug)]
pub(crate) struct LabArgs {
    /// An experiment and its settings; `esker lab` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// The arguments of a command that reads them itself, without the `--json` of all commands.
fn own(args: &[String]) -> Vec<String> {
    let end = args.iter().position(|a| a == "--").unwrap_or(args.len());
    let (before, behind) = args.split_at(end);
    let is_own = |a: &&String| !(say::is_json() && *a == "--json");
    before
        .iter()
        .filter(is_own)
        .chain(behind)
        .cloned()
        .collect()
}

/// The arguments of `esker bench`, whose document follows `--json` unless it goes to a file.
fn of_bench(args: &[String]) -> Vec<String> {
    let mut args = own(args);
    if say::is_json() && !args.iter().any(|a| a.starts_with("--json=")) {
        args.push("--json".into());
    }
    args
}

/// The exit code of a run of the laboratory, whose failure is said here.
fn ended(outcome: Result<(), esker_lab::Failure>) -> ExitCode {
    let code = match &outcome {
        Ok(()) => 0,
        Err(failure) => {
            say::failure(failure.is_usage(), &failure.to_string());
            1 + u8::from(failure.is_usage())
        }
    };
    ExitCode::from(esker_lab::interrupt::exit_code().unwrap_or(code))
}

/// Runs benchmarks.
pub(crate) fn bench(args: &BenchArgs) -> ExitCode {
    ended(esker_lab::bench::esker_bench(&of_bench(&args.args)))
}

/// Runs an experiment.
pub(crate) fn lab(args: &LabArgs) -> ExitCode {
    ended(esker_lab::laboratory::main(&own(&args.args)))
}

/// Compares two libraries.
pub(crate) fn diff(args: &DiffArgs) -> ExitCode {
    match esker_differential::main(&own(&args.args), &check::is_whole) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            say::usage(&failure.to_string());
            ExitCode::from(2)
        }
    }
}
