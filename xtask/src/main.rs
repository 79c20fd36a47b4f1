//! Repository tasks.
//!
//! `cargo xtask tidy [--bless]` checks the rules of the repository (`--bless` writes the unsafe ledger);
//! `cargo xtask compat [--check]` writes `COMPAT.md` from the option catalogue, or checks that it is
//! current.

mod floors;
mod generated;
mod ledger;
mod source;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What a task found wrong, one line each.
pub(crate) type Findings = Vec<String>;

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["tidy"] => tidy::run(&root(), false),
        ["tidy", "--bless"] => tidy::run(&root(), true),
        ["compat"] => generated::write(
            &root().join("COMPAT.md"),
            &esker::options::compat_markdown(),
        ),
        ["compat", "--check"] => generated::check(
            &root().join("COMPAT.md"),
            &esker::options::compat_markdown(),
            "cargo xtask compat",
        ),
        _ => {
            eprintln!("usage: cargo xtask tidy [--bless] | compat [--check]");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(findings) if findings.is_empty() => {
            println!("{}: ok", args.join(" "));
            ExitCode::SUCCESS
        }
        Ok(findings) => {
            for finding in &findings {
                println!("{finding}");
            }
            println!("{}: {} findings", args.join(" "), findings.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{}: {error}", args.join(" "));
            ExitCode::FAILURE
        }
    }
}
