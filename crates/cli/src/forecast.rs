//! `esker forecast`: what a tree would look like, and what it would cost, from options alone.

use crate::database::set_all;
use crate::failure::{Failure, Outcome};
use crate::out::Out;
use crate::progress::Progress;
use crate::text::size;
use clap::{Args, ValueEnum};
use esker::Options;
use esker_lsm::forecast::{Forecast, Workload, WriteOrder};
use esker_lsm::pick::{CompactionStyle, Policy};
use esker_lsm::score::targets;
use serde_json::json;

/// Arguments of `esker forecast`.
#[derive(Args, Debug)]
pub(crate) struct ForecastArgs {
    /// Distinct keys; several numbers with --compare
    #[arg(
        long,
        value_name = "N",
        default_value = "10000000",
        value_delimiter = ','
    )]
    keys: Vec<u64>,
    /// Entries written; without it each key once in order, twice as many as there are keys at
    /// random, or as many again
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
    /// Writers rest after each flush, until the tree is in shape
    #[arg(long)]
    rest: bool,
    /// A table of what level_shape_by_cost does to the shape, beside RocksDB's rule
    #[arg(long)]
    compare: bool,
    /// Fanouts of that table
    #[arg(long, value_name = "F", value_delimiter = ',', requires = "compare")]
    fanout: Vec<f64>,
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
    /// Random writes into a tree that has every key; only what follows the first 40 % of them is
    /// counted
    Overwrite,
}

/// Settings that all trees of a command have in common.
struct Setting<'a> {
    args: &'a ForecastArgs,
    policy: Policy,
    levels: usize,
    jobs: usize,
    level0_stop: usize,
}

/// Runs `esker forecast`.
pub(crate) fn run(args: &ForecastArgs, out: &mut Out) -> Outcome {
    let wrong = |what: &str| Err(Failure::Usage(what.to_owned()));
    if args.keys.contains(&0) || args.entry_bytes == 0 {
        return wrong("--keys and --entry-bytes must be above 0");
    }
    if args.service.is_some_and(|s| s.is_nan() || s <= 0.0) {
        return wrong("--service must be above 0");
    }
    if args.fanout.iter().any(|f| f.is_nan() || *f <= 1.0) {
        return wrong("--fanout must be above 1");
    }
    let mut options = Options::new();
    set_all(&mut options, &args.set)?;
    let family = options.family.resolve();
    let setting = Setting {
        args,
        policy: family.to_policy(),
        levels: usize::try_from(family.num_levels).unwrap_or(1),
        jobs: options.db.job_limits().compactions,
        level0_stop: usize::try_from(family.level0_stop_writes_trigger).unwrap_or(usize::MAX),
    };
    let policy = &setting.policy;
    if policy.compaction_style == CompactionStyle::None || policy.disable_auto_compactions {
        return wrong("there is nothing to foretell without automatic compactions");
    }
    if args.compare {
        if policy.compaction_style != CompactionStyle::Level
            || !policy.level_compaction_dynamic_level_bytes
        {
            return wrong("--compare is about leveled compaction with dynamic level sizes");
        }
        return compare(&setting, out);
    }
    let [keys] = args.keys[..] else {
        return wrong("several --keys need --compare");
    };
    print(&setting.forecast(keys, policy.clone())?, out)
}

impl Setting<'_> {
    /// The tree after all writes.
    fn forecast(&self, keys: u64, policy: Policy) -> Result<Forecast, Failure> {
        let args = self.args;
        let load = Workload {
            keys,
            entry_bytes: args.entry_bytes,
            flush_bytes: policy.write_buffer_size,
            order: match args.order {
                OrderArg::Random | OrderArg::Overwrite => WriteOrder::AtRandom,
                OrderArg::Sequential => WriteOrder::InOrder,
            },
            service: args.service.unwrap_or(f64::INFINITY),
            jobs: self.jobs,
            level0_stop: self.level0_stop,
            rests: args.rest,
        };
        let writes = args.writes.unwrap_or(match args.order {
            OrderArg::Random => keys.saturating_mul(2),
            OrderArg::Sequential | OrderArg::Overwrite => keys,
        });
        let mut forecast = Forecast::new(policy, self.levels, load);
        let progress = Progress::wait("forecasting");
        let mut before = 0;
        if args.order == OrderArg::Overwrite {
            before = writes / 5 * 2;
            forecast.fill()?;
            forecast.write(before)?;
            forecast.measure();
        }
        forecast.write(writes - before)?;
        drop(progress);
        Ok(forecast)
    }
}

/// One tree of the table.
struct Row {
    keys: u64,
    fanout: f64,
    by_cost: bool,
    forecast: Forecast,
    /// Sizes from the base level on.
    targets: Vec<u64>,
}

/// RocksDB's rule and ours, for every number of keys and every fanout.
fn compare(setting: &Setting<'_>, out: &mut Out) -> Outcome {
    out.line(format!(
        "{:>11} {:>6} {:<8} {:>7} {:<30} {:<22} {:>9} {:>5} {:>9} {:>5} {:>7}",
        "keys",
        "fanout",
        "rule",
        "level 0",
        "level targets, MiB",
        "ratios",
        "write-amp",
        "of it",
        "space-amp",
        "runs",
        "blocked"
    ))?;
    let default = [setting.policy.max_bytes_for_level_multiplier];
    let fanouts = match &setting.args.fanout[..] {
        [] => &default[..],
        some => some,
    };
    for &fanout in fanouts {
        for &keys in &setting.args.keys {
            let mut rocksdb = None;
            for by_cost in [false, true] {
                let policy = Policy {
                    level_shape_by_cost: by_cost,
                    max_bytes_for_level_multiplier: fanout,
                    ..setting.policy.clone()
                };
                let forecast = setting.forecast(keys, policy.clone())?;
                let aims = targets(forecast.version(), &policy);
                let row = Row {
                    keys,
                    fanout,
                    by_cost,
                    targets: aims.max_bytes[aims.base_level.index()..].to_vec(),
                    forecast,
                };
                let against = *rocksdb.get_or_insert(row.forecast.write_amplification());
                row.print(against, out)?;
            }
        }
    }
    Ok(())
}

impl Row {
    fn print(&self, rocksdb: f64, out: &mut Out) -> Outcome {
        let join = |numbers: Vec<String>| numbers.join("/");
        let sizes = self.targets.iter().map(|b| format!("{}", b >> 20));
        let pairs = self.targets.windows(2);
        let ratios: Vec<f64> = pairs.map(|p| p[1] as f64 / p[0].max(1) as f64).collect();
        let (writes, space) = (
            self.forecast.write_amplification(),
            self.forecast.mean_space_amplification(),
        );
        let rule = if self.by_cost { "by cost" } else { "RocksDB" };
        out.line(format!(
            "{:>11} {:>6} {rule:<8} {:>7} {:<30} {:<22} {writes:>9.2} {:>5.2} {space:>9.3} {:>5.1} {:>6.0}%",
            self.keys,
            self.fanout,
            self.forecast.level0_max,
            join(sizes.collect()),
            join(ratios.iter().map(|r| format!("{r:.1}")).collect()),
            writes / rocksdb,
            self.forecast.mean_runs(),
            self.forecast.blocked() * 100.0,
        ))?;
        out.object(|| {
            json!({"type": "shape", "keys": self.keys, "fanout": self.fanout, "by_cost": self.by_cost,
                "level0_files_max": self.forecast.level0_max, "targets": self.targets, "ratios": ratios,
                "write_amp": writes, "space_amp": space, "runs": self.forecast.mean_runs(),
                "blocked": self.forecast.blocked()})
        })
    }
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
        "write-amp {writes:.2} (flush included), space-amp {space:.2}, {:.1} sorted runs on average, at most {} tables at level 0{}",
        forecast.mean_runs(),
        forecast.level0_max,
        match forecast.blocked() {
            0.0 => String::new(),
            part => format!(", writers held back for {:.0} % of the time", part * 100.0),
        }
    ))?;
    out.object(|| {
        json!({"type": "forecast", "write_amp": writes, "space_amp": space,
            "space_amp_mean": forecast.mean_space_amplification(), "runs": forecast.mean_runs(),
            "level0_files_max": forecast.level0_max, "blocked": forecast.blocked(),
            "writes": forecast.written()})
    })
}
