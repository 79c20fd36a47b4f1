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
mod counted;
mod database;
mod destroy;
mod directory;
mod external;
mod failure;
mod families;
mod fold;
mod forecast;
mod histogram;
mod idump;
mod inspect;
mod internal_entries;
#[cfg(feature = "lab")]
mod laboratory;
mod ldb;
mod load;
mod manifest;
mod manual;
mod metrics;
mod options;
mod options_file;
mod out;
mod place;
mod progress;
mod recompress;
mod repair;
mod rocks_text;
mod say;
mod scan;
mod shape;
mod sst;
mod sst_dump;
mod text;
mod times;
mod unsafe_edits;
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
    // The names that `cargo xtask install --links` gives the program.
    let args: Vec<_> = std::env::args_os().collect();
    let own = args.first().map(std::path::Path::new);
    let own = own.and_then(|path| path.file_name()).unwrap_or_default();
    if own == "ldb" {
        return ldb::main(&args[1..]);
    }
    if own == "sst_dump" {
        return sst_dump::main(&args[1..]);
    }
    let cli = match args::parse(args.into_iter()) {
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
