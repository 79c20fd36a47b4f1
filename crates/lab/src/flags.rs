//! The command line: one declared table of flags, and the parser that works from it.
//!
//! The names, types and defaults are those of RocksDB's `db_bench`; wrapper scripts run unchanged.
//! Every flag has a fate, so that none is ignored silently. Syntax as with gflags: `--name=value`,
//! `--name value`, `--flag`, `--noflag`, one dash or two.

pub mod page;
mod table;

use crate::{Failure, Result};
pub use table::FLAGS;

/// The type of a flag's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagType {
    /// `true` or `false`; `--name` alone means true and `--noname` false.
    Bool,
    /// A signed integer.
    Int,
    /// A number.
    Number,
    /// Any text.
    Text,
}

/// The fate of a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Drives the laboratory.
    Run,
    /// Becomes this database or column family option.
    Option(&'static str),
    /// Becomes this option of the block-based table.
    Table(&'static str),
    /// Known and harmless; the reason why nothing needs to be done.
    Accepted(&'static str),
    /// An error unless it is at its default; the reason.
    Refused(&'static str),
}

/// One flag.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its name, without dashes.
    pub name: &'static str,
    /// Its type.
    pub kind: FlagType,
    /// Its default, as one would write it.
    pub default: &'static str,
    /// Its fate.
    pub fate: Fate,
    /// One line for `--help`.
    pub doc: &'static str,
}

/// The values of all flags.
#[derive(Debug, Clone)]
pub struct Flags {
    values: Vec<Option<String>>,
    /// The text to print instead of running anything.
    pub asked: Option<InfoRequest>,
}

/// Texts that a command line may ask for instead of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InfoRequest {
    /// The list of benchmarks and flags.
    Help,
    /// Name and version, in three words.
    Version,
}

impl InfoRequest {
    /// gflags has other names for its help, all of which end the program.
    fn of(flag: &str) -> Option<InfoRequest> {
        match flag {
            "help" | "h" | "helpfull" | "helpshort" => Some(InfoRequest::Help),
            "version" => Some(InfoRequest::Version),
            _ => None,
        }
    }
}

fn position(name: &str) -> Option<usize> {
    FLAGS.iter().position(|flag| flag.name == name)
}

fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "true" | "1" | "t" | "yes" | "y" => Some(true),
        "false" | "0" | "f" | "no" | "n" => Some(false),
        _ => None,
    }
}

fn parse_int(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse::<u64>().ok()?,
    };
    // The largest unsigned numbers are RocksDB's way of saying "the engine's choice".
    match i64::try_from(value) {
        Ok(value) => Some(value * sign),
        Err(_) if sign > 0 => Some(value as i64),
        Err(_) => None,
    }
}

impl Flag {
    /// A line for `--help`: what it is for, and what becomes of it.
    fn about(&self) -> String {
        let option = |name: &str| {
            if name == self.name {
                "[engine option]".to_string()
            } else {
                format!("[engine option {name}]")
            }
        };
        let fate = match self.fate {
            Fate::Run => String::new(),
            Fate::Option(name) | Fate::Table(name) => option(name),
            Fate::Accepted(why) => format!("[accepted: {why}]"),
            Fate::Refused(why) => format!("[only at its default: {why}]"),
        };
        format!("{} {fate}", self.doc).trim().to_string()
    }

    fn check(&self, value: &str) -> Result<()> {
        let fits = match self.kind {
            FlagType::Bool => parse_bool(value).is_some(),
            FlagType::Int => parse_int(value).is_some(),
            FlagType::Number => value.parse::<f64>().is_ok_and(f64::is_finite),
            FlagType::Text => true,
        };
        if !fits {
            let kind = match self.kind {
                FlagType::Bool => "true or false",
                FlagType::Int => "an integer",
                _ => "a number",
            };
            return Err(Failure::new(format!(
                "--{}: `{value}` is not {kind}",
                self.name
            )));
        }
        let same = match self.kind {
            FlagType::Bool => parse_bool(value) == parse_bool(self.default),
            FlagType::Number => value.parse::<f64>().ok() == self.default.parse().ok(),
            _ => value == self.default,
        };
        match self.fate {
            Fate::Refused(why) if !same => Err(Failure::new(format!(
                "--{}={value} is not supported: {why}",
                self.name
            ))),
            _ => Ok(()),
        }
    }
}

impl Flags {
    /// All flags at their defaults.
    pub fn defaults() -> Flags {
        Flags {
            values: vec![None; FLAGS.len()],
            asked: None,
        }
    }

    /// Parses arguments (without the program's name).
    ///
    /// # Errors
    /// Unknown flags that no `--undefok` names, values of the wrong type, refused flags: all of
    /// them at once.
    pub fn parse<S: AsRef<str>>(args: &[S]) -> Result<Flags> {
        let mut flags = Flags::defaults();
        let (mut unknown, mut tolerated) = (Vec::new(), Vec::new());
        let mut wrong = Vec::new();
        let mut args = args.iter().map(AsRef::as_ref).peekable();
        while let Some(arg) = args.next() {
            let Some(body) = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-')) else {
                let text = format!("unexpected argument `{arg}`; flags are --name=value");
                wrong.push(text);
                continue;
            };
            if let Some(asked) = InfoRequest::of(body) {
                flags.asked = Some(asked);
                continue;
            }
            let (name, value) = match body.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (body, None),
            };
            let Some(index) = position(name) else {
                let negated = name.strip_prefix("no").and_then(position);
                match negated.filter(|&i| FLAGS[i].kind == FlagType::Bool && value.is_none()) {
                    Some(i) => flags.put(i, "false")?,
                    None => unknown.push(name.to_string()),
                }
                continue;
            };
            let value = match (value, FLAGS[index].kind) {
                (Some(value), _) => Some(value),
                (None, FlagType::Bool) => Some("true"),
                // As in all other commands: the document goes to standard output.
                (None, _) if name == "json" && next_is_flag(args.peek()) => Some("-"),
                (None, _) => args.next(),
            };
            let Some(value) = value else {
                wrong.push(format!("--{name} needs a value: --{name}=..."));
                continue;
            };
            // Each call of it adds names: a wrapper's do not replace those of the script it wraps.
            if name == "undefok" {
                tolerated.extend(value.split(',').map(|name| name.trim().to_string()));
            }
            if let Err(failure) = flags.put(index, value) {
                wrong.push(failure.to_string());
            }
        }
        unknown.retain(|name| {
            let negated = name.strip_prefix("no").unwrap_or(name);
            !tolerated.iter().any(|t| t == name || t == negated)
        });
        wrong.extend(unknown_flags(&unknown));
        if wrong.is_empty() || flags.asked.is_some() {
            return Ok(flags);
        }
        Err(Failure::usage(wrong.join("\n  ")))
    }

    fn put(&mut self, index: usize, value: &str) -> Result<()> {
        FLAGS[index].check(value)?;
        self.values[index] = Some(value.to_string());
        Ok(())
    }

    /// Sets a flag by name, as if it had been on the command line.
    ///
    /// # Errors
    /// As [`Flags::parse`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let index = position(name).ok_or_else(|| Failure::new(unknown_flag(name)))?;
        self.put(index, value)
    }

    fn index(name: &str) -> usize {
        position(name).expect("callers name flags of the table; a test parses every name used")
    }

    /// Returns whether the flag was given.
    pub fn is_set(&self, name: &str) -> bool {
        self.values[Flags::index(name)].is_some()
    }

    /// The value as text, given or default.
    pub fn text(&self, name: &str) -> &str {
        let index = Flags::index(name);
        self.values[index]
            .as_deref()
            .unwrap_or(FLAGS[index].default)
    }

    /// The value of a boolean flag.
    pub fn flag(&self, name: &str) -> bool {
        parse_bool(self.text(name)).expect("checked when set")
    }

    /// The value of an integer flag.
    pub fn int(&self, name: &str) -> i64 {
        parse_int(self.text(name)).expect("checked when set")
    }

    /// The value of an integer flag, with negative numbers as 0.
    pub fn count(&self, name: &str) -> u64 {
        self.int(name).max(0) as u64
    }

    /// The value of a number flag.
    pub fn number(&self, name: &str) -> f64 {
        self.text(name).parse().expect("checked when set")
    }

    /// The flags that were given, in the table's order.
    pub fn given(&self) -> impl Iterator<Item = (&'static Flag, &str)> {
        FLAGS
            .iter()
            .zip(&self.values)
            .filter_map(|(flag, value)| Some((flag, value.as_deref()?)))
    }
}

/// Tells whether no value follows.
fn next_is_flag(next: Option<&&str>) -> bool {
    next.is_none_or(|next| next.starts_with("--"))
}

fn unknown_flag(name: &str) -> String {
    if name.eq_ignore_ascii_case("ycsb") {
        return format!(
            "unknown flag --{name}; `esker lab ycsb` runs A to F, and --benchmarks=ycsba one of them"
        );
    }
    let mut near: Vec<(usize, &str)> = FLAGS
        .iter()
        .map(|flag| (distance(name, flag.name), flag.name))
        .collect();
    near.sort_unstable();
    let hint = match near.first() {
        Some((d, best)) if *d <= 3 => format!("; did you mean --{best}?"),
        _ => String::new(),
    };
    format!("unknown flag --{name}{hint}")
}

/// A line for each flag that nobody knows, and one that says what to do.
fn unknown_flags(names: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = names.iter().map(|name| unknown_flag(name)).collect();
    if !names.is_empty() {
        let names = names.join(",");
        lines.push(format!(
            "--help lists all; --undefok={names} tolerates these"
        ));
    }
    lines
}

/// Edit distance.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = (corner + usize::from(x != *y))
                .min(row[j] + 1)
                .min(row[j + 1] + 1);
            corner = row[j + 1];
            row[j + 1] = cost;
        }
    }
    row[b.len()]
}

/// The benchmarks, a line for each.
pub fn benchmarks() -> String {
    let all = crate::benchmarks::BENCHMARKS.iter();
    let all = all.chain(crate::benchmarks::CODEC_BENCHMARKS);
    all.map(|(name, doc)| format!("  {name:<22} {doc}\n"))
        .collect()
}

/// The text of `--help`.
pub fn help() -> String {
    let mut out = String::from(
        "Measures a key-value store the way RocksDB's db_bench does, with the same flags.\n\n\
         usage: esker bench                          a short tour on a temporary database\n\
         \x20      esker bench --benchmarks=fillseq,readrandom --num=1000000 [flags]\n\
         \x20      esker bench compare --engine=A --engine=B --benchmarks=... --pairs=5 [flags]\n\
         \x20      esker bench universal --engine=A --engine=B --num=... [flags]\n\n\
         benchmarks:\n",
    );
    out.push_str(&benchmarks());
    out.push_str("\nflags (with defaults):\n");
    for flag in FLAGS {
        let default = if flag.default.is_empty() {
            "\"\""
        } else {
            flag.default
        };
        out.push_str(&format!(
            "  --{}={default}\n        {}\n",
            flag.name,
            flag.about()
        ));
    }
    out
}

#[cfg(test)]
mod tests;
