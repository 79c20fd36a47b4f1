//! A program: options, and a list of calls for each thread. Text that says all of it.

use std::fmt::{self, Write as _};

use super::kinds::{self, CallKind, KINDS};
use crate::draw::RandomStream;
use crate::{Failure, Result};

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) kind: &'static str,
    pub(super) args: Vec<u64>,
}

/// How the database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Plain,
    Optimistic,
    Pessimistic,
}

const MODES: [(Mode, &str); 3] = [
    (Mode::Plain, "plain"),
    (Mode::Optimistic, "optimistic"),
    (Mode::Pessimistic, "pessimistic"),
];

/// Settings that do not change while a program runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// Options of all families, as text.
    pub(super) options: String,
    /// Microseconds that the compaction filter sleeps, on average, for each entry.
    pub(super) sleep: u64,
    pub(super) mode: Mode,
    /// Families at the beginning.
    pub(super) families: usize,
    pub(super) keys: usize,
    /// Tells whether ranges are deleted: then there are no tailing iterators, as in RocksDB.
    pub(super) ranges: bool,
    /// Tells whether some writes skip the log.
    pub(super) nowal: bool,
}

/// Options and calls; the first list is the model's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) setting: Setting,
    pub(super) threads: Vec<Vec<Call>>,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)?;
        self.args.iter().try_for_each(|arg| write!(f, " {arg}"))
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let setting = &self.setting;
        writeln!(f, "options {}", setting.options)?;
        let mode = MODES.iter().find(|(mode, _)| *mode == setting.mode);
        let flag = |on: bool| if on { "on" } else { "off" };
        writeln!(
            f,
            "filter_sleep {}\nmode {}\nfamilies {}\nkeys {}\nranges {}\nnowal {}",
            setting.sleep,
            mode.map_or("plain", |(_, name)| name),
            setting.families,
            setting.keys,
            flag(setting.ranges),
            flag(setting.nowal)
        )?;
        for (number, calls) in self.threads.iter().enumerate() {
            writeln!(f, "thread {number}")?;
            calls.iter().try_for_each(|call| writeln!(f, "{call}"))?;
        }
        Ok(())
    }
}

fn number(text: &str, line: usize) -> Result<u64> {
    let parsed = text.parse::<u64>();
    parsed.map_err(|_| Failure::new(format!("line {line}: {text} is not a number")))
}

impl Program {
    /// How many calls all threads have.
    pub(super) fn calls(&self) -> usize {
        self.threads.iter().map(Vec::len).sum()
    }

    /// Reads what `Display` wrote.
    pub(super) fn parse(text: &str) -> Result<Program> {
        let mut program = Program {
            setting: Setting {
                options: String::new(),
                sleep: 0,
                mode: Mode::Plain,
                families: 1,
                keys: 160,
                ranges: true,
                nowal: false,
            },
            threads: Vec::new(),
        };
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                program.parse_line(line, index + 1)?;
            }
        }
        if program.threads.is_empty() {
            return Err(Failure::new("the program has no thread"));
        }
        Ok(program)
    }

    fn parse_line(&mut self, line: &str, at: usize) -> Result<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let setting = &mut self.setting;
        match word {
            "options" => setting.options = rest.to_owned(),
            "filter_sleep" => setting.sleep = number(rest, at)?,
            "families" => setting.families = number(rest, at)?.clamp(1, 8) as usize,
            "keys" => setting.keys = number(rest, at)?.clamp(2, 1000) as usize,
            "ranges" => setting.ranges = rest == "on",
            "nowal" => setting.nowal = rest == "on",
            "mode" => {
                let found = MODES.iter().find(|(_, name)| *name == rest);
                let unknown = || Failure::new(format!("line {at}: no mode is called {rest}"));
                setting.mode = found.ok_or_else(unknown)?.0;
            }
            "thread" => self.threads.push(Vec::new()),
            _ => {
                let unknown = || Failure::new(format!("line {at}: no call is called {word}"));
                let kind = kinds::find(word).ok_or_else(unknown)?;
                let args = rest.split_whitespace().map(|text| number(text, at));
                let call = Call {
                    kind: kind.name,
                    args: args.collect::<Result<_>>()?,
                };
                let early = || Failure::new(format!("line {at}: a call before any thread"));
                self.threads.last_mut().ok_or_else(early)?.push(call);
            }
        }
        Ok(())
    }
}

/// Choices that programs are drawn from.
pub(super) struct ProgramGenerator<'a> {
    /// Tells whether the library has all functions of a kind, and the kind is wanted.
    pub(super) wanted: &'a dyn Fn(&CallKind) -> bool,
    /// Tells whether the library takes a text of options.
    pub(super) accepts: &'a dyn Fn(&str) -> bool,
    /// Calls of the model's thread.
    pub(super) calls: usize,
    /// Tells whether the library has all that transactions need.
    pub(super) transactions: bool,
}

/// How likely each option is in 12 draws, its name, and its values.
const OPTIONS: &[(usize, &str, &[&str])] = &[
    (
        12,
        "write_buffer_size",
        &["4096", "8192", "16384", "32768", "65536"],
    ),
    (12, "max_write_buffer_number", &["2", "3", "4", "6"]),
    (
        12,
        "target_file_size_base",
        &["2048", "4096", "8192", "16384", "32768", "65536"],
    ),
    (
        12,
        "max_bytes_for_level_base",
        &["1024", "2048", "4096", "8192", "16384", "65536"],
    ),
    (12, "max_bytes_for_level_multiplier", &["2", "3", "4", "10"]),
    (
        12,
        "level0_file_num_compaction_trigger",
        &["2", "3", "4", "5"],
    ),
    (12, "max_background_jobs", &["1", "2", "4", "6"]),
    (
        12,
        "level_compaction_dynamic_level_bytes",
        &["true", "true", "false"],
    ),
    (3, "compaction_style", &["kCompactionStyleUniversal"]),
    (
        6,
        "compression",
        &[
            "kNoCompression",
            "kSnappyCompression",
            "kZlibCompression",
            "kLZ4Compression",
            "kZSTD",
        ],
    ),
    (3, "max_subcompactions", &["3"]),
    (2, "atomic_flush", &["true"]),
    (3, "recycle_log_file_num", &["1", "2", "4"]),
    (3, "min_write_buffer_number_to_merge", &["2"]),
    (3, "max_successive_merges", &["1", "3"]),
    (2, "memtable_max_range_deletions", &["1", "3", "5"]),
    (2, "min_tombstones_for_range_conversion", &["1", "3", "6"]),
    (2, "memtable_op_scan_flush_trigger", &["3", "9", "20"]),
    (3, "max_sequential_skip_in_iterations", &["0", "1", "3"]),
    (3, "max_manifest_file_size", &["2000"]),
    (3, "optimize_filters_for_hits", &["true"]),
    (3, "avoid_flush_during_recovery", &["true"]),
    (2, "enable_pipelined_write", &["true"]),
    (2, "allow_ingest_behind", &["false"]),
    (2, "row_cache", &["1048576"]),
    (3, "prefix_extractor", &["fixed:2", "fixed:3"]),
    (
        2,
        "compaction_pri",
        &[
            "kByCompensatedSize",
            "kOldestSmallestSeqFirst",
            "kRoundRobin",
        ],
    ),
    (2, "periodic_compaction_seconds", &["1"]),
    (2, "max_compaction_bytes", &["4096", "16384"]),
];

const TABLE: &[(usize, &str, &[&str])] = &[
    (
        8,
        "filter_policy",
        &["bloomfilter:10:false", "ribbonfilter:8"],
    ),
    (12, "block_size", &["256", "512", "1024", "4096"]),
    (
        4,
        "index_type",
        &["kTwoLevelIndexSearch", "kBinarySearchWithFirstKey"],
    ),
    (3, "cache_index_and_filter_blocks", &["true"]),
    (3, "whole_key_filtering", &["false"]),
];

fn choose(
    draw: &mut RandomStream,
    from: &[(usize, &str, &[&str])],
    fits: impl Fn(&str) -> bool,
) -> String {
    let mut text = String::new();
    for (weight, name, values) in from {
        let drawn = draw.below(12) < *weight;
        let value = values[draw.below(values.len())];
        let one = format!("{name}={value};");
        if drawn && fits(&one) {
            text.push_str(&one);
        }
    }
    text
}

impl ProgramGenerator<'_> {
    /// The program of a seed.
    pub(super) fn program(&self, seed: u64) -> Program {
        let mut draw = RandomStream::new(seed);
        let setting = self.setting(&mut draw);
        let mut id = 0;
        // Some kinds are left out of a program and some come more often: what is rare in the
        // average program is common in some.
        let factors: Vec<u32> = KINDS
            .iter()
            .map(|_| [0, 1, 1, 1, 1, 4][draw.below(6)])
            .collect();
        let mut threads = Vec::new();
        let fits = |kind: &CallKind| {
            (self.wanted)(kind)
                && (setting.ranges || kind.name != "delete_range" && kind.name != "files_in_range")
                && (!setting.ranges || kind.name != "tail")
        };
        let weights = |of: &dyn Fn(&CallKind) -> u32| -> Vec<u32> {
            let weight =
                |(kind, factor): (&CallKind, &u32)| if fits(kind) { of(kind) * factor } else { 0 };
            KINDS.iter().zip(&factors).map(weight).collect()
        };
        let (writer, neutral) = (weights(&|kind| kind.writer), weights(&|kind| kind.neutral));
        threads.push(list(&mut draw, &writer, self.calls, &mut id));
        for _ in 0..draw.below(4) {
            threads.push(list(&mut draw, &neutral, 80, &mut id));
        }
        Program { setting, threads }
    }

    fn setting(&self, draw: &mut RandomStream) -> Setting {
        let mut options = choose(draw, OPTIONS, self.accepts);
        let in_table = |one: &str| (self.accepts)(&format!("block_based_table_factory={{{one}}}"));
        let table = choose(draw, TABLE, in_table);
        if options.contains("atomic_flush") {
            options = options.replace("enable_pipelined_write=true;", "");
        }
        let nowal = draw.below(6) == 0 && !options.contains("recycle_log");
        if !nowal && draw.below(4) == 0 {
            options.push_str("avoid_flush_during_shutdown=true;");
        }
        write!(options, "block_based_table_factory={{{table}}}").expect("a String takes all");
        let modes = [
            Mode::Plain,
            Mode::Plain,
            Mode::Optimistic,
            Mode::Pessimistic,
        ];
        let mode = modes[draw.below(4)];
        Setting {
            options,
            sleep: [0, 0, 20, 60][draw.below(4)],
            mode: if self.transactions { mode } else { Mode::Plain },
            families: [1, 1, 3][draw.below(3)],
            keys: [40, 160, 160, 400][draw.below(4)],
            ranges: draw.below(4) > 0,
            nowal,
        }
    }
}

/// Draws `calls` calls of the kinds with these weights.
fn list(draw: &mut RandomStream, weights: &[u32], calls: usize, id: &mut u64) -> Vec<Call> {
    let total: u32 = weights.iter().sum();
    let mut calls_drawn = Vec::new();
    for _ in 0..if total == 0 { 0 } else { calls } {
        let mut at = draw.below(total as usize) as u32;
        for (kind, weight) in KINDS.iter().zip(weights) {
            if at < *weight {
                let mut args = Vec::new();
                kinds::draw(kind.args, draw, id, &mut args);
                calls_drawn.push(Call {
                    kind: kind.name,
                    args,
                });
                break;
            }
            at -= weight;
        }
    }
    calls_drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64) -> Program {
        let drawer = ProgramGenerator {
            wanted: &|_| true,
            accepts: &|_| true,
            calls: 300,
            transactions: true,
        };
        drawer.program(seed)
    }

    #[test]
    fn a_program_is_read_as_it_was_written() {
        for seed in 0..20 {
            let program = drawn(seed);
            assert!(
                Program::parse(&program.to_string()) == Ok(program),
                "seed {seed}"
            );
        }
    }

    #[test]
    fn a_seed_gives_one_program_and_seeds_give_all_kinds() {
        assert_eq!(drawn(3), drawn(3));
        let programs: Vec<Program> = (0..20).map(drawn).collect();
        for kind in KINDS {
            let made = |program: &Program| {
                let mut calls = program.threads.iter().flatten();
                calls.any(|call| call.kind == kind.name)
            };
            assert!(programs.iter().any(made), "{} is not drawn", kind.name);
        }
    }

    #[test]
    fn a_line_that_is_no_call_is_named() {
        let error = Program::parse("thread 0\nput 1 2 3 4\nputt 1").expect_err("no such call");
        assert_eq!(error.to_string(), "line 3: no call is called putt");
        let error = Program::parse("put 1 2").expect_err("no thread");
        assert_eq!(error.to_string(), "line 1: a call before any thread");
    }
}
