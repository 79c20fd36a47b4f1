//! `esker bench` as a program of its own.
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    esker_lab::bench::main(&args)
}
