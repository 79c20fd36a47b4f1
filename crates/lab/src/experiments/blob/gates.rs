//! Every cell of an engine beside the base, with the gate that it has to pass: losses first.

use std::cmp::Ordering;

use crate::compare::Ratio;
use crate::experiment::plan::EngineSpec;
use crate::experiment::ratio;
use crate::experiment::record::{Aim, Record, Table};
use crate::experiment::validity;
use crate::page::number;

use super::{forms, settled};

/// A figure that is shown in each cell.
struct CellFigure {
    /// The end of the step's name.
    step: &'static str,
    what: &'static str,
    figure: &'static str,
    aim: Aim,
    /// The factor that a cell has to reach, by the size of its values; of figures of which less is
    /// better it may not be exceeded.
    gate: fn(u64) -> Option<f64>,
}

const fn shown(step: &'static str, what: &'static str, figure: &'static str) -> CellFigure {
    CellFigure {
        step,
        what,
        figure,
        aim: Aim::Less,
        gate: |_| None,
    }
}

const fn read(step: &'static str) -> CellFigure {
    CellFigure {
        aim: Aim::More,
        ..shown(step, "rate", "ops_sec")
    }
}

const FIGURES: [CellFigure; 12] = [
    CellFigure {
        aim: Aim::More,
        gate: |size| {
            Some(if matches!(size, 1024 | 4096) {
                1.5
            } else {
                1.0
            })
        },
        ..shown("overwrite", "rate", "ops_sec")
    },
    CellFigure {
        aim: Aim::More,
        ..shown("overwrite", "rate with debts paid", settled::RATE)
    },
    shown("overwrite", "p50", "p50"),
    CellFigure {
        gate: |size| (size >= 4096).then_some(1.0),
        ..shown("overwrite", "p99", "p99")
    },
    shown("overwrite", "p99.9", "p99.9"),
    CellFigure {
        gate: |_| Some(1.0),
        ..shown(
            "overwrite",
            "bytes to the device for a byte",
            settled::WRITTEN,
        )
    },
    shown("overwrite", "processor time with debts paid", settled::CPU),
    shown("overwrite", "space for a live byte", settled::SPACE),
    CellFigure {
        gate: |_| Some(1.5),
        ..read("readrandom")
    },
    read("multireadrandom"),
    read("seek + 10"),
    read("readseq"),
];

/// A cell that was measured on both engines.
struct CellLine {
    name: String,
    what: &'static str,
    aim: Aim,
    ours: f64,
    theirs: f64,
    unit: String,
    /// More than 1 is better.
    ratio: Ratio,
    gate: Option<f64>,
}

impl CellLine {
    /// The ratio against what it has to reach; below 1 it does not.
    fn margin(&self) -> f64 {
        let least = self.gate.map(|gate| match self.aim {
            Aim::Less => 1.0 / gate,
            _ => gate,
        });
        self.ratio.median / least.unwrap_or(1.0)
    }

    /// Tells whether the gate is missed in the two digits that are printed.
    fn is_lost(&self) -> bool {
        let printed = |ratio: f64| (ratio * 100.0).round();
        let turned = printed(self.turned(self.ratio.median));
        self.gate.is_some_and(|gate| match self.aim {
            Aim::Less => turned > printed(gate),
            _ => turned < printed(gate),
        })
    }

    /// Lost gates, then what is worse without a gate, then the rest; the largest loss first.
    fn order(&self, other: &CellLine) -> Ordering {
        let class = |line: &CellLine| match line.gate {
            Some(_) if line.is_lost() => 0,
            None if line.margin() < 1.0 => 1,
            _ => 2,
        };
        let by_class = class(self).cmp(&class(other));
        by_class.then(self.margin().total_cmp(&other.margin()))
    }

    /// A ratio as ours over theirs, whichever way is better.
    fn turned(&self, ratio: f64) -> f64 {
        match self.aim {
            Aim::Less => 1.0 / ratio,
            _ => ratio,
        }
    }

    fn range(&self) -> String {
        let (low, high, seen) = if self.ratio.has_interval() {
            (self.ratio.low, self.ratio.high, "")
        } else {
            (self.ratio.min, self.ratio.max, " seen")
        };
        let (a, b) = (self.turned(low), self.turned(high));
        format!("{:.2}..{:.2}{seen}", a.min(b), a.max(b))
    }

    fn gate_text(&self) -> String {
        let sign = if self.aim == Aim::Less { "<=" } else { ">=" };
        self.gate
            .map_or_else(|| "none".into(), |gate| format!("{sign} {gate:.2}"))
    }

    fn cells(&self, is_open: bool) -> Vec<String> {
        let result = match (self.gate, self.is_lost()) {
            (None, _) => "",
            (_, true) => "lost",
            (_, false) => "held",
        };
        let value = |value: f64| {
            format!("{} {}", number(value), self.unit)
                .trim()
                .to_string()
        };
        vec![
            self.name.clone(),
            self.what.to_string(),
            value(self.ours),
            value(self.theirs),
            format!("{:.2}", self.turned(self.ratio.median)),
            self.range(),
            self.gate_text(),
            match (result, is_open) {
                ("", _) | (_, false) => result.to_string(),
                (_, true) => format!("{result} here, open"),
            },
        ]
    }

    /// `1024 B overwrite, rate 0.87 (>= 1.50)`.
    fn short(&self) -> String {
        format!(
            "{}, {} {:.2} ({})",
            self.name,
            self.what,
            self.turned(self.ratio.median),
            self.gate_text()
        )
    }
}

/// Adds a table for each engine beside the base, and a sentence for each that has gates.
pub(super) fn tell(record: &mut Record) {
    let doubts = validity::doubts(record);
    let spec = |at: usize| EngineSpec::parse(&record.engines[at].spec);
    let base_name = record.engines[record.base].name.clone();
    let is_gated = forms::is_blob_library(&spec(record.base));
    let (mut tables, mut sentences) = (Vec::new(), Vec::new());
    for (at, engine) in record.present().filter(|(at, _)| *at != record.base) {
        let own = spec(at);
        let is_form = forms::has_blobs(&own) && !forms::has_tiers(&own);
        let has_gates = is_gated && own.kind() != "lib" && is_form;
        let mut lines = lines(record, at, has_gates);
        lines.sort_by(CellLine::order);
        if lines.is_empty() {
            continue;
        }
        let name = &engine.name;
        if has_gates {
            sentences.push(sentence(name, &base_name, &lines, &doubts));
        }
        tables.push(Table {
            title: format!("{name} beside {base_name}"),
            about: about(has_gates, name),
            columns: [
                "cell", "figure", name, &base_name, "ratio", "interval", "gate", "result",
            ]
            .map(String::from)
            .to_vec(),
            rows: lines
                .iter()
                .map(|line| line.cells(!doubts.is_empty()))
                .collect(),
            chart: None,
        });
    }
    if !is_gated {
        sentences.push(format!(
            "No library with blob files is the engine of comparison, {base_name} is: no gate is \
             looked at."
        ));
    }
    record.tables.extend(tables);
    record.sentences.extend(sentences);
}

fn about(has_gates: bool, name: &str) -> String {
    let order = if has_gates {
        "Lost gates first, then what is worse without a gate; a gate looks at the median."
    } else {
        "What is worse first; this engine has no gates."
    };
    format!(
        "{order} A ratio is the figure of {name} over that of the other, the median of paired \
         ratios."
    )
}

/// Everything that was measured on an engine and on the base.
fn lines(record: &Record, engine: usize, has_gates: bool) -> Vec<CellLine> {
    let mut out = Vec::new();
    for (at, step) in record.steps.iter().enumerate() {
        let end = step.name.strip_prefix(&step.chain).unwrap_or(&step.name);
        for figure in FIGURES.iter().filter(|figure| figure.step == end.trim()) {
            let Some(ratio) = ratio::of_figure(record, at, engine, figure.figure, figure.aim)
            else {
                continue;
            };
            let of = |engine| record.median(at, engine, figure.figure).unwrap_or(f64::NAN);
            let mut runs = record.runs(at, engine);
            let unit = runs.find_map(|run| Some(run.figures.get(figure.figure)?.unit.clone()));
            let gate = (figure.gate)(size_of(&step.chain)).filter(|_| has_gates);
            out.push(CellLine {
                name: step.name.clone(),
                what: figure.what,
                aim: figure.aim,
                ours: of(engine),
                theirs: of(record.base),
                unit: unit.unwrap_or_default(),
                ratio,
                gate,
            });
        }
    }
    out
}

/// The bytes of a value, from the name of a cell.
fn size_of(chain: &str) -> u64 {
    let digits = chain.split(' ').next().and_then(|word| word.parse().ok());
    digits.unwrap_or(0)
}

/// The number of gates that an engine holds, and those that it loses.
fn sentence(name: &str, base: &str, lines: &[CellLine], doubts: &[String]) -> String {
    let gated = lines.iter().filter(|line| line.gate.is_some()).count();
    let lost: Vec<String> = lines
        .iter()
        .filter(|line| line.is_lost())
        .map(CellLine::short)
        .collect();
    let text = match lost.as_slice() {
        [] => format!("{name} holds all {gated} gates against {base}."),
        lost => format!(
            "{name} loses {} of {gated} gates against {base}: {}.",
            lost.len(),
            lost.join("; ")
        ),
    };
    if doubts.is_empty() {
        return text;
    }
    format!(
        "Gates are open ({}). What was seen: {text}",
        doubts.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::record::{Engine, Outcome, Step};

    /// A cell of 4 KB on Esker's two forms and on a library with blob files.
    fn record(specs: [&str; 3]) -> Record {
        let step = |name: &str| Step {
            name: format!("4096 B {name}"),
            chain: "4096 B".into(),
            figure: "ops_sec".into(),
            ..Step::default()
        };
        let engine = |(spec, name): (&str, &str)| Engine {
            spec: spec.into(),
            name: name.into(),
            ..Engine::default()
        };
        let names = ["Esker inline", "Esker blobs", "RocksDB blobs"];
        let mut record = Record {
            complete: true,
            pairs: 3,
            base: 2,
            engines: specs.into_iter().zip(names).map(engine).collect(),
            steps: ["readrandom", "readseq", "overwrite"].map(step).into(),
            ..Record::default()
        };
        for (engine, rates, written) in [
            (0, [300.0, 90.0, 100.0], 8.0),
            (1, [160.0, 50.0, 140.0], 2.0),
            (2, [100.0, 100.0, 100.0], 2.5),
        ] {
            for (step, rate) in rates.into_iter().enumerate() {
                for (pair, turn) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)] {
                    let mut run = Outcome {
                        step,
                        engine,
                        pair,
                        turn,
                        ..Outcome::default()
                    };
                    run.put("ops_sec", rate, "ops/s");
                    if step == 2 {
                        run.put(settled::WRITTEN, written, "");
                        run.put("p99", 10.0, "us");
                    }
                    record.results.push(run);
                }
            }
        }
        record
    }

    const SPECS: [&str; 3] = [
        "esker?lab.enable_blob_files=false",
        "esker?lab.enable_blob_files=true",
        "lib:/a.so?lab.enable_blob_files=true",
    ];

    #[test]
    fn lost_gates_come_first_then_other_losses() {
        let mut record = record(SPECS);
        tell(&mut record);
        assert_eq!(
            record.sentences,
            [
                "Esker blobs loses 1 of 4 gates against RocksDB blobs: 4096 B overwrite, rate 1.40 \
                 (>= 1.50)."
            ]
        );
        let rows = |table: usize| -> Vec<String> {
            let rows = record.tables[table].rows.iter();
            rows.map(|row| {
                [&row[1], &row[4], &row[6], &row[7]]
                    .map(String::as_str)
                    .join(" ")
            })
            .collect()
        };
        assert_eq!(
            rows(1),
            [
                "rate 1.40 >= 1.50 lost",
                "rate 0.50 none ",
                "p99 1.00 <= 1.00 held",
                "rate 1.60 >= 1.50 held",
                "bytes to the device for a byte 0.80 <= 1.00 held",
            ]
        );
        // Values inline have no gates.
        assert_eq!(rows(0)[0], "bytes to the device for a byte 3.20 none ");
        assert_eq!(record.tables[1].rows[1][0], "4096 B readseq");
        assert_eq!(record.tables[1].rows[1][5], "0.50..0.50");
    }

    #[test]
    fn in_doubt_gates_are_open_and_without_blobdb_there_are_none() {
        let mut doubtful = record(SPECS);
        doubtful.pairs = 1;
        tell(&mut doubtful);
        let said = &doubtful.sentences[0];
        assert!(
            said.starts_with("Gates are open (1 pair). What was seen: Esker blobs"),
            "{said}"
        );
        assert_eq!(doubtful.tables[1].rows[0][7], "lost here, open");
        let mut inline = record([SPECS[0], SPECS[1], "lib:/a.so?lab.enable_blob_files=false"]);
        tell(&mut inline);
        assert!(
            inline.sentences[0].contains("no gate is looked at"),
            "{:?}",
            inline.sentences
        );
        let gates = inline.tables.iter().flat_map(|table| &table.rows);
        assert!(gates.map(|row| row[6].as_str()).all(|gate| gate == "none"));
    }

    #[test]
    fn gates_depend_on_the_size_of_values() {
        let gate = |what: &str, size| {
            let mut all = FIGURES.iter();
            let found = all.find(|figure| figure.what == what && figure.step == "overwrite");
            found.and_then(|figure| (figure.gate)(size))
        };
        let rates = [512, 1024, 4096, 16384].map(|size| gate("rate", size));
        assert_eq!(rates, [Some(1.0), Some(1.5), Some(1.5), Some(1.0)]);
        assert_eq!((gate("p99", 1024), gate("p99", 4096)), (None, Some(1.0)));
        assert_eq!((size_of("16384 B zstd"), size_of("")), (16384, 0));
    }
}
