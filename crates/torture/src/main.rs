//! `esker-torture`: real processes on real filesystems, killed, cut off from power, and starved.
//!
//! The failures that `crates/sim` simulates happen here for real, and more slowly. Each command
//! runs processes of its own (this program again), breaks them, and compares what is left with what
//! they acknowledged. The exit code is 1 when a promise was not kept.
#![deny(unsafe_code)]

mod check;
mod kill;
mod limited_process;
mod load;
mod mounts;
mod power;
mod pressure;
mod process;
mod quota;
mod recipe;
mod report;
mod resource_limits;
mod rng;
mod rocksdb;
#[allow(unsafe_code)]
mod shutdown;
mod survivor;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Breaks processes and filesystems under a loaded database, and checks what is left.
#[derive(Parser, Debug)]
#[command(
    version,
    after_help = "Examples:
  esker-torture kill --kills 400            what CI runs
  esker-torture kill --kills 20000          a long run, an hour or so
  esker-torture kill --recipe blobs --seed 7 --dir wrecks
  esker-torture power-cut --cycles 1000 --dir /dev/shm/cuts
  esker-torture starve --trials 200
  esker-torture soak --seconds 28800        eight hours"
)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Kill loading processes with SIGKILL and check what they leave
    ///
    /// A process writes batches from four threads over three families, under one of fifteen option
    /// sets (synced or not, pipelined, unordered, manually flushed logs, atomic flushes, blob
    /// files, transactions in two phases, ...), and reports through a pipe what was acknowledged.
    /// It is killed while it writes, flushes, compacts or recovers. What is left must hold all that
    /// was acknowledged, be a prefix of the order of writes, and open; RocksDB's tools must read
    /// the same.
    Kill(kill::Args),
    /// Cut the power of a real ext4 under a loading process and check what is left (root, loop
    /// device)
    ///
    /// An ext4 in a file is mounted, a process loads a database on it, and the ioctl
    /// EXT4_IOC_SHUTDOWN takes the filesystem away: what was not on the device is gone. It is
    /// mounted again, which replays its journal. No synced write may be missing, the state must be
    /// a prefix of the order of writes, and the database must open. Where mounting is not permitted
    /// it reports that it skips, and why.
    PowerCut(power::Args),
    /// Let a process run into a full disk, a file size limit or a limit of open files, and lift the
    /// limit again
    ///
    /// A process with a capped address space writes and reads on a small filesystem of its own (a
    /// tmpfs, which takes root). Again and again something runs out: the space, by a ballast file;
    /// the size of files, by RLIMIT_FSIZE; open files, by RLIMIT_NOFILE; a quota, on a btrfs in a
    /// file (root, a loop device, btrfs-progs). Writes must be refused with an error, reads go on,
    /// no call block for 10 s, and writes, flushes and compactions resume by themselves within 10 s
    /// after the limit is lifted. A third of the processes is killed in between. Nothing
    /// acknowledged may be missing.
    Starve(resource_limits::Args),
    /// Run into all limits in turn, on one database for a long time: memory, files and threads must
    /// stay flat
    Soak(resource_limits::SoakArgs),
    /// Write, read and run into limits; starve and soak start this
    #[command(hide = true)]
    Starved(limited_process::Args),
    /// Load a database until killed; the other commands start this
    #[command(hide = true)]
    Load {
        #[arg(long)]
        dir: PathBuf,
        #[arg(long, value_parser = recipe::named)]
        recipe: recipe::Recipe,
        #[arg(long)]
        promise: load::Promise,
        #[arg(long)]
        seed: u64,
        #[arg(long)]
        sync_one_in: u64,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    let start = Instant::now();
    let done = match &args.command {
        Command::Kill(args) => kill::run(args),
        Command::PowerCut(args) => power::run(args),
        Command::Starve(args) => resource_limits::run(args),
        Command::Soak(args) => resource_limits::soak(args),
        Command::Starved(args) => limited_process::run(args),
        Command::Load {
            dir,
            recipe,
            promise,
            seed,
            sync_one_in,
        } => {
            let mut recipe = *recipe;
            recipe.sync_one_in = *sync_one_in;
            load::run(dir, recipe, *promise, *seed)
        }
    };
    match done {
        Ok(report) => {
            println!("{report} in {:.0} s", start.elapsed().as_secs_f64());
            ExitCode::from(u8::from(report.violations() > 0))
        }
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}
