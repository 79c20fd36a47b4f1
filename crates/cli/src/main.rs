//! The `esker` command: reads, checks, writes and measures databases of Esker and RocksDB.
//!
//! One module per command. A command gets its arguments and an [`out::Out`], and returns a
//! [`failure::Outcome`]; only `main` turns that into a message ([`say`]) and an exit code: 0 done,
//! 1 an error or problems found, 2 wrong usage, 3 a repair that could not keep everything.
#![forbid(unsafe_code)]

mod access;
mod args;
mod backup;
mod check;
mod checkpoint;
mod compact;
mod database;
mod destroy;
mod directory;
mod failure;
mod families;
mod fold;
mod forecast;
#[cfg(feature = "lab")]
mod laboratory;
mod load;
mod manifest;
mod options;
mod out;
mod place;
mod progress;
mod repair;
mod say;
mod scan;
mod shape;
mod sst;
mod text;
mod version_edit;
mod wal;

use failure::Failure;
use std::process::ExitCode;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    #[cfg(feature = "jemalloc")]
    esker::declare_allocator(esker::Allocator::Jemalloc);
    let cli = match args::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(e) => return args::refused(&e),
    };
    match args::run(cli) {
        Ok(code) => code,
        Err(Failure::Closed) => ExitCode::SUCCESS,
        Err(Failure::Usage(text)) => {
            say::usage(&text);
            ExitCode::from(2)
        }
        Err(Failure::Said) => ExitCode::FAILURE,
        Err(Failure::LostData) => ExitCode::from(3),
        Err(Failure::Status(e)) => {
            say::error(&e);
            ExitCode::FAILURE
        }
    }
}
