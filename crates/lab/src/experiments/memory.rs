//! `memory`: one budget for the block cache and the memtables, split differently, and set as one
//! number.

use crate::experiment::plan::{Request, Setting};
use crate::experiment::ratio::geometric_mean;
use crate::experiment::record::{Outcome, Record, Table, median};
use crate::page::number;
use crate::{Failure, Result};

use super::recipe::{on_tree, prepare, rate};
use super::recipes::{Chains, Recipe};
use super::settings::{ENTRY, flag, setting};

/// One budget of memory, split differently.
pub(super) static MEMORY: Recipe = Recipe {
    name: "memory",
    title: "One budget of memory, split between cache and memtables",
    help: "a workload that shifts between writes, reads and ranges, under several splits",
    about: "The same budget goes to the block cache and to memtables in several parts, named by \
            the percentage of the cache. The workload shifts within one process: overwrite, read \
            at random, a mix of both, ranges, and the first two again. A fixed split is good in \
            one phase; what a tuner could gain is the best split of each phase beside the best \
            one for all. Where Esker is alone, its memory_budget, which begins in the middle, is \
            another split.",
    settings: &MEMORY_SETTINGS,
    chains: memory,
    size: |request| {
        let splits = memory_splits(request)?.len() as u64;
        let (num, duration) = (request.count("num")?, request.count("duration")?);
        Ok((
            splits * (phases(request)?.len() as u64 * duration + num / 100_000),
            num * ENTRY * 3,
        ))
    },
    sum: None,
    finish: memory_table,
};

const MEMORY_SETTINGS: [Setting; 5] = [
    setting("num", "400000", "20000000", "keys"),
    setting("duration", "3", "120", "seconds of each phase"),
    setting(
        "budget_mb",
        "128",
        "4096",
        "megabytes for the cache and the memtables together",
    ),
    setting(
        "splits",
        "10,50,90",
        "10,30,50,70,90",
        "parts of the cache, in percent",
    ),
    setting(
        "phases",
        "writes,reads,mix,ranges,writes again,reads again",
        "writes,reads,mix,ranges,writes again,reads again",
        "phases in their order, with commas between",
    ),
];

/// Benchmark, name, and what it does.
type Phase = (&'static str, &'static str, &'static str);

const PHASES: [Phase; 6] = [
    ("overwrite", "writes", "overwrite at random"),
    ("readrandom", "reads", "read a key"),
    ("readrandomwriterandom", "mix", "half reads, half writes"),
    ("seekrandom", "ranges", "ranges of ten entries"),
    ("overwrite", "writes again", "overwrite at random once more"),
    ("readrandom", "reads again", "read a key once more"),
];

/// The split that changes.
const ONE_BUDGET: &str = "one budget";

/// How the memory is split, by name, with the percentage of the cache where it is fixed.
fn memory_splits(request: &Request) -> Result<Vec<(String, Option<u64>)>> {
    let mut out = Vec::new();
    for percent in request.counts("splits")? {
        if percent == 0 || percent >= 100 {
            return Err(Failure::new(
                "--splits: percentages between 1 and 99 are wanted",
            ));
        }
        out.push((format!("cache {percent} %"), Some(percent)));
    }
    // Other engines have no such option.
    if request
        .engines
        .iter()
        .all(|engine| engine.kind() == "esker")
    {
        out.push((ONE_BUDGET.into(), None));
    }
    Ok(out)
}

fn memory(request: &Request) -> Result<Chains> {
    let (num, budget) = (request.count("num")?, request.count("budget_mb")? << 20);
    let mut out = Vec::new();
    for (name, percent) in memory_splits(request)? {
        let mut common = vec![
            flag("num", num),
            flag("compression_type", "none"),
            flag("readwritepercent", 50),
            flag("seek_nexts", 10),
        ];
        if let Some(percent) = percent {
            let cache = budget / 100 * percent;
            let memtables = budget - cache;
            common.extend([
                flag("cache_size", cache),
                flag("db_write_buffer_size", memtables),
                flag("write_buffer_size", (memtables / 4).max(1 << 20)),
            ]);
        } else {
            common.push(flag("options", format!("memory_budget={budget}")));
        }
        let load = vec![prepare("filluniquerandom"), prepare("waitforcompaction")];
        let parts = phases(request)?.into_iter();
        let parts = parts.map(|(benchmark, name, help)| rate(benchmark, name, help));
        let timed = [
            common.clone(),
            vec![flag("duration", request.count("duration")?)],
        ]
        .concat();
        let stages = vec![on_tree(load, &common), on_tree(parts.collect(), &timed)];
        out.push((name, stages));
    }
    Ok(out)
}

/// The phases that are asked for, in their order.
fn phases(request: &Request) -> Result<Vec<Phase>> {
    let wanted = request.words("phases");
    let known = || PHASES.map(|(_, name, _)| name).join(",");
    let find = |name: &&str| {
        let found = PHASES.iter().find(|(_, phase, _)| phase == name);
        found.copied().ok_or_else(|| {
            let text = format!("--phases={name}: the phases are {}", known());
            Failure::new(text)
        })
    };
    let found: Vec<Phase> = wanted.iter().map(find).collect::<Result<_>>()?;
    let mut names: Vec<&str> = found.iter().map(|(_, name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() != found.len() || found.is_empty() {
        return Err(Failure::new("--phases: each phase once, and one at least"));
    }
    Ok(found)
}

/// The rate of a phase.
type Rate = fn(&Outcome) -> Option<f64>;

/// The rates that are compared: a split that changes needs time to find its place.
const RATES: [(&str, Rate); 2] = [
    ("Whole phases", |run| run.figure("ops_sec")),
    ("The second half of each phase", |run| {
        let half = &run.series[run.series.len() / 2..];
        let sum: f64 = half.iter().map(|second| second.operations).sum();
        (!half.is_empty()).then(|| sum / half.len() as f64)
    }),
];

/// Rates of one engine, by split and phase.
struct Rates {
    /// The fixed splits with the percentage of the cache.
    fixed: Vec<(u64, Vec<Option<f64>>)>,
    /// Rates of each phase with `memory_budget`.
    budget: Option<Vec<Option<f64>>>,
}

impl Rates {
    fn of(
        record: &Record,
        engine: usize,
        rate: Rate,
        splits: &[(String, Option<u64>)],
        phases: &[Phase],
    ) -> Rates {
        let row = |split: &str| -> Vec<Option<f64>> {
            let one = |(_, phase, _): &Phase| {
                let name = format!("{split} {phase}");
                let step = record.steps.iter().position(|step| step.name == name)?;
                let runs = record.runs(step, engine).filter_map(rate);
                median(&mut runs.collect::<Vec<f64>>())
            };
            phases.iter().map(one).collect()
        };
        let fixed = splits
            .iter()
            .filter_map(|(name, percent)| Some(((*percent)?, row(name))));
        let budget = splits.iter().find(|(_, percent)| percent.is_none());
        Rates {
            fixed: fixed.collect(),
            budget: budget.map(|(name, _)| row(name)),
        }
    }

    /// The best and the worst fixed split of a phase.
    fn range(&self, phase: usize) -> Option<(f64, f64)> {
        let all = || self.fixed.iter().filter_map(|(_, row)| row[phase]);
        all().reduce(f64::max).zip(all().reduce(f64::min))
    }

    /// The best fixed split for all phases, and what the best one of each phase would gain.
    fn gain(&self) -> Option<(u64, f64)> {
        let mean = |row: &[Option<f64>]| {
            let all: Option<Vec<f64>> = row.iter().copied().collect();
            geometric_mean(all?.into_iter().filter(|rate| *rate > 0.0))
        };
        let phases = 0..self.fixed.first()?.1.len();
        let best: Vec<Option<f64>> = phases.map(|at| Some(self.range(at)?.0)).collect();
        let means = self.fixed.iter();
        let means = means.filter_map(|(percent, row)| Some((*percent, mean(row)?)));
        let (percent, one) = means.max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((percent, mean(&best)? / one - 1.0))
    }

    /// For each phase the rate with the budget, times that of the best and of the worst fixed
    /// split.
    fn beside(&self, phases: &[Phase]) -> Vec<String> {
        let Some(budget) = &self.budget else {
            return Vec::new();
        };
        let one = |(at, (_, phase, _)): (usize, &Phase)| {
            let (best, worst) = self.range(at)?;
            let rate = budget[at]?;
            Some(format!(
                "{phase} {:.2} and {:.2}",
                rate / best,
                rate / worst
            ))
        };
        phases.iter().enumerate().filter_map(one).collect()
    }
}

/// The best split of each phase beside the best one for all phases, and what the budget makes of
/// each phase.
fn memory_table(request: &Request, record: &mut Record) {
    let (Ok(splits), Ok(phases)) = (memory_splits(request), phases(request)) else {
        return;
    };
    for (title, rate) in RATES {
        let mut rows = Vec::new();
        let mut said = Vec::new();
        for (engine, info) in record.present() {
            let rates = Rates::of(record, engine, rate, &splits, &phases);
            let fixed = rates.fixed.iter();
            let fixed = fixed.map(|(percent, row)| (format!("{percent} %"), row));
            let budget = rates.budget.iter().map(|row| (ONE_BUDGET.to_string(), row));
            for (name, row) in fixed.chain(budget) {
                let cells = row.iter().map(|rate| rate.map_or("-".into(), number));
                rows.push([name, info.name.clone()].into_iter().chain(cells).collect());
            }
            said.extend(rates.gain().map(|(percent, gain)| {
                format!(
                    "{title}, {}: the best fixed split is {percent} % for the cache; a split that \
                     changes with the phase could gain {:.0} % at most.",
                    info.name,
                    100.0 * gain
                )
            }));
            let beside = rates.beside(&phases);
            if !beside.is_empty() {
                said.push(format!(
                    "{title}, {}: with memory_budget the rates are, times those of the best and \
                     of the worst fixed split: {}.",
                    info.name,
                    beside.join(", ")
                ));
            }
        }
        record.sentences.extend(said);
        record.tables.push(Table {
            title: title.into(),
            about: "Operations a second, medians of the runs.".into(),
            columns: ["part of the cache", "engine"]
                .into_iter()
                .chain(phases.iter().map(|(_, phase, _)| *phase))
                .map(String::from)
                .collect(),
            rows,
            chart: None,
        });
    }
    let said = resident(request, record);
    record.sentences.extend(said);
}

/// The most memory that the process had with the budget.
fn resident(request: &Request, record: &Record) -> Option<String> {
    let budget = request.count("budget_mb").ok()?;
    let runs = record.results.iter().filter(|run| {
        let step = record.steps.get(run.step);
        step.is_some_and(|step| step.name.starts_with(ONE_BUDGET))
    });
    let most = runs.filter_map(|run| run.figure("rss")).reduce(f64::max)?;
    Some(format!(
        "With a memory_budget of {budget} MB the process had {:.0} MB resident at most, after a \
         phase.",
        most / 1_048_576.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::plan::EngineSpec;
    use crate::experiment::record::Second;

    fn request(settings: &[Setting]) -> Request {
        Request::of("memory", settings, true, &[], &[])
    }

    #[test]
    fn the_gain_of_a_changing_split_is_told() {
        let rates = |split: &'static str, all: [f64; 6]| {
            PHASES
                .iter()
                .zip(all)
                .map(move |((_, phase, _), rate)| (format!("{split} {phase}"), rate))
        };
        let mut all: Vec<(String, f64)> = Vec::new();
        all.extend(rates("cache 10 %", [32.0, 1.0, 1.0, 1.0, 1.0, 1.0]));
        all.extend(rates("cache 50 %", [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]));
        all.extend(rates("cache 90 %", [1.0, 2.0, 1.0, 1.0, 1.0, 1.0]));
        all.extend(rates(ONE_BUDGET, [24.0, 2.0, 1.0, 1.0, 1.0, 1.0]));
        let mut record = Record::of_rates(&all);
        memory_table(&request(&MEMORY_SETTINGS), &mut record);
        // Fixed: the sixth root of 32; changing: of 64.
        let [one, beside, resident] = &record.sentences[..] else {
            panic!("{:?}", record.sentences);
        };
        assert!(
            resident.contains("of 128 MB the process had 100 MB resident"),
            "{resident}"
        );
        assert!(
            one.contains("10 % for the cache") && one.contains("gain 12 %"),
            "{one}"
        );
        assert!(
            beside.contains("writes 0.75 and 24.00, reads 1.00 and 2.00,"),
            "{beside}"
        );
        assert_eq!(record.tables[0].rows.len(), 4);
        // By second, of which the first half does not count.
        for run in &mut record.results {
            let rate = run.figure("ops_sec").expect("a rate");
            let second = |operations| Second {
                operations,
                ..Second::default()
            };
            run.series = [9e9, 9e9, rate, rate].map(second).into();
        }
        record.sentences.clear();
        memory_table(&request(&MEMORY_SETTINGS), &mut record);
        let said = &record.sentences[3];
        assert!(said.starts_with("The second half of each phase"), "{said}");
        assert!(said.contains("writes 0.75 and 24.00, reads"), "{said}");
    }

    #[test]
    fn phases_are_chosen_by_name() {
        let chosen = |text: &str| {
            let given = [("phases", text)];
            phases(&Request::of("memory", &MEMORY_SETTINGS, true, &[], &given))
        };
        let names: Vec<&str> = chosen("writes again, reads")
            .expect("phases")
            .iter()
            .map(|(_, name, _)| *name)
            .collect();
        assert_eq!(names, ["writes again", "reads"]);
        assert!(chosen("").is_err() && chosen("reads,reads").is_err());
        let said = chosen("sleep").expect_err("no such phase").to_string();
        assert!(
            said.contains("writes,reads,mix,ranges,writes again,reads again"),
            "{said}"
        );
    }

    #[test]
    fn other_engines_have_no_budget() {
        let mut both = request(&MEMORY_SETTINGS);
        assert_eq!(memory(&both).expect("chains").len(), 4);
        both.engines = vec![EngineSpec::parse("esker"), EngineSpec::parse("lib:/x.so")];
        assert_eq!(memory(&both).expect("chains").len(), 3);
    }
}
