//! `esker forecast`: what a tree would look like, and what it would cost, from options alone.

use crate::database::set_all;
use crate::failure::{Failure, Outcome};
use crate::out::Out;
use crate::progress::Progress;
use crate::text::size;
use clap::{Args, ValueEnum};
use esker::Options;
use esker_lsm::forecast::{Forecast, KeysCome, Load};
use esker_lsm::pick::CompactionStyle;
use serde_json::json;

/// Arguments of `esker forecast`.
#[derive(Args, Debug)]
pub(crate) struct ForecastArgs {
    /// Distinct keys
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    keys: u64,
    /// Entries written; without it each key once in order, or twice as many as there are keys at random
    #[arg(long, value_name = "N")]
    writes: Option<u64>,
    /// Bytes of an entry in a table: key, value, and about 12 more
    #[arg(long, value_name = "BYTES", default_value_t = 132)]
    entry_bytes: u64,
    /// In which order keys are written
    #[arg(long, value_enum, default_value_t = OrderArg::Random)]
    order: OrderArg,
    /// Bytes that compactions can read for each byte that is flushed
    #[arg(long, value_name = "RATIO")]
    service: Option<f64>,
    /// Set an option by RocksDB's name; can be given often. `esker options explain` lists the names
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OrderArg {
    /// Every key is as likely as any other, each time
    Random,
    /// Ascending
    Sequential,
}

/// Runs `esker forecast`.
pub(crate) fn run(args: &ForecastArgs, out: &mut Out) -> Outcome {
    let wrong = |what: &str| Err(Failure::Usage(what.to_owned()));
    if args.keys == 0 || args.entry_bytes == 0 {
        return wrong("--keys and --entry-bytes must be above 0");
    }
    if args.service.is_some_and(|s| s.is_nan() || s <= 0.0) {
        return wrong("--service must be above 0");
    }
    let mut options = Options::new();
    set_all(&mut options, &args.set)?;
    let jobs = options.db.job_limits().compactions;
    let family = options.family.resolve();
    let levels = usize::try_from(family.num_levels).unwrap_or(1);
    let stop = usize::try_from(family.level0_stop_writes_trigger).unwrap_or(usize::MAX);
    let policy = family.to_policy();
    if policy.compaction_style == CompactionStyle::None || policy.disable_auto_compactions {
        return wrong("there is nothing to foretell without automatic compactions");
    }
    let load = Load {
        keys: args.keys,
        entry_bytes: args.entry_bytes,
        order: match args.order {
            OrderArg::Random => KeysCome::AtRandom,
            OrderArg::Sequential => KeysCome::InOrder,
        },
        service: args.service.unwrap_or(f64::INFINITY),
        jobs,
        level0_stop: stop,
    };
    let writes = args.writes.unwrap_or(match args.order {
        OrderArg::Random => args.keys.saturating_mul(2),
        OrderArg::Sequential => args.keys,
    });
    let mut forecast = Forecast::new(policy, levels, load);
    let progress = Progress::wait("forecasting");
    forecast.write(writes)?;
    drop(progress);
    print(&forecast, out)
}

fn print(forecast: &Forecast, out: &mut Out) -> Outcome {
    out.line(format!(
        "{:>5} {:>7} {:>11} {:>7} {:>11} {:>11} {:>11} {:>6}",
        "level", "tables", "size", "ratio", "read", "written", "moved", "jobs"
    ))?;
    let mut above = 0;
    for (level, (files, work)) in forecast
        .version()
        .levels()
        .iter()
        .zip(&forecast.work)
        .enumerate()
    {
        if files.is_empty() && work.written + work.moved == 0 {
            continue;
        }
        let ratio = match above {
            0 => String::new(),
            above => format!("{:.1}", files.bytes() as f64 / above as f64),
        };
        above = if level == 0 { 0 } else { files.bytes() };
        out.line(format!(
            "{level:>5} {:>7} {:>11} {ratio:>7} {:>11} {:>11} {:>11} {:>6}",
            files.len(),
            size(files.bytes()),
            size(work.read),
            size(work.written),
            size(work.moved),
            work.compactions
        ))?;
        out.object(|| {
            json!({"type": "level", "level": level, "files": files.len(), "bytes": files.bytes(),
                "read_bytes": work.read, "written_bytes": work.written, "moved_bytes": work.moved,
                "compactions": work.compactions})
        })?;
    }
    let (writes, space) = (
        forecast.write_amplification(),
        forecast.space_amplification(),
    );
    out.line(format!(
        "write-amp {writes:.2} (flush included), space-amp {space:.2}, at most {} tables at level 0{}",
        forecast.level0_max,
        match forecast.blocked() {
            0.0 => String::new(),
            part => format!(", writers held back for {:.0} % of the time", part * 100.0),
        }
    ))?;
    out.object(|| {
        json!({"type": "forecast", "write_amp": writes, "space_amp": space,
            "level0_files_max": forecast.level0_max, "blocked": forecast.blocked(),
            "writes": forecast.written()})
    })
}
