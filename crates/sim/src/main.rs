//! `esker-sim`.

use clap::Parser;
use esker_sim::run::{Counts, Size, run};
use esker_sim::world::World;

/// Crashes of a database on a simulated disk
#[derive(Parser, Debug)]
struct Args {
    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs
    #[arg(long, default_value_t = 10)]
    runs: u64,
    /// Let the machine schedule the threads: the seed does not decide what they do
    #[arg(long)]
    real_threads: bool,
}

fn main() {
    let args = Args::parse();
    let world = match args.real_threads {
        true => World::default(),
        false => World::controlled(),
    };
    let start = std::time::Instant::now();
    let mut counts = Counts::default();
    for seed in args.seed..args.seed + args.runs {
        let (c, failures) = run(
            &world,
            seed,
            Size {
                steps: 60,
                cuts: 40,
            },
        );
        counts.add(&c);
        println!("{seed}: {c:?} {} failures", failures.len());
        for f in failures.iter().take(5) {
            let cuts: Vec<_> = f.cuts.iter().map(|c| c.to_string()).collect();
            println!("  {} {}", cuts.join("+"), f.violation);
        }
    }
    println!(
        "{counts:?} {:.1} states/s",
        counts.states as f64 / start.elapsed().as_secs_f64()
    );
}
