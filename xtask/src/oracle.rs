//! The oracles of the C library: other people's test suites, run on our `librocksdb.so`.
//!
//! `cargo xtask oracle c-test | rust-suite | go-suite | hostile | debian | served-cost [options]`.
//! Each takes its material from a package registry through that registry's own client, builds it
//! below `target/oracle`, runs it, counts, and ends with one line that says how it went. Nothing
//! that is fetched is kept in the repository; what is skipped, and why, stands in
//! `crates/capi/tests`. `hostile` and `served-cost` run programs of our own.

mod c_test;
mod debian;
pub(crate) mod go_suite;
mod hostile;
pub(crate) mod library;
pub(crate) mod package;
pub(crate) mod process;
mod rust_suite;
mod served_cost;
mod skip;
mod tally;

use crate::Findings;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of the command line.
pub(crate) struct Request {
    root: PathBuf,
    /// The library to test; built from this repository when absent.
    library: Option<PathBuf>,
    /// The cargo profile of the library that is built.
    profile: String,
    /// A directory with `rocksdb/c.h` to compile against, instead of the suite's own.
    include: Option<PathBuf>,
    /// Run under valgrind.
    valgrind: bool,
    /// Instrument with AddressSanitizer.
    sanitize: bool,
    /// Run only names that contain this.
    only: Option<String>,
    /// A further skip list for the C test.
    skip: Option<PathBuf>,
    /// Take no notice of the skip list.
    all: bool,
    /// How long one test, or one phase, may be silent.
    patience: Duration,
}

const USAGE: &str = "usage: cargo xtask oracle c-test|rust-suite|go-suite|hostile|debian|served-cost \
    [--library PATH] [--profile NAME] [--include DIR] [--only TEXT] [--all] [--valgrind] \
    [--skip FILE] [--sanitize] [--patience SECONDS]";

/// Runs the oracle that `args` name.
pub(crate) fn run(root: &Path, args: &[&str]) -> io::Result<Findings> {
    let [name, rest @ ..] = args else {
        return Err(io::Error::other(USAGE));
    };
    let request = parse(root, rest)?;
    match *name {
        "c-test" => c_test::run(&request),
        "rust-suite" => rust_suite::run(&request),
        "go-suite" => go_suite::run(&request),
        "hostile" => hostile::run(&request),
        "debian" => debian::run(&request),
        "served-cost" => served_cost::run(&request),
        _ => Err(io::Error::other(USAGE)),
    }
}

fn parse(root: &Path, args: &[&str]) -> io::Result<Request> {
    let mut request = Request {
        root: root.to_owned(),
        library: None,
        profile: "release".into(),
        include: None,
        valgrind: false,
        sanitize: false,
        only: None,
        skip: None,
        all: false,
        patience: Duration::from_secs(120),
    };
    let mut args = args.iter();
    while let Some(&flag) = args.next() {
        let mut value = || {
            let value = args.next().copied();
            value.ok_or_else(|| io::Error::other(format!("{flag} needs a value\n{USAGE}")))
        };
        match flag {
            "--library" => request.library = Some(std::path::absolute(value()?)?),
            "--profile" => request.profile = value()?.into(),
            "--include" => request.include = Some(std::path::absolute(value()?)?),
            "--only" => request.only = Some(value()?.into()),
            "--patience" => {
                let seconds = value()?.parse().map_err(io::Error::other)?;
                request.patience = Duration::from_secs(seconds);
            }
            "--skip" => request.skip = Some(std::path::absolute(value()?)?),
            "--all" => request.all = true,
            "--valgrind" => request.valgrind = true,
            "--sanitize" => request.sanitize = true,
            _ => return Err(io::Error::other(format!("unknown {flag}\n{USAGE}"))),
        }
    }
    Ok(request)
}

impl Request {
    /// Returns whether a test of this name was asked for.
    fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| name.contains(only))
    }
}
