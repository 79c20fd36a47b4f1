//! The command line: one declared table of flags, and the parser that works from it.
//!
//! The names, types and defaults are those of RocksDB's `db_bench`; wrapper scripts run unchanged.
//! Every flag has a fate, so that none is ignored silently. Syntax as with gflags: `--name=value`,
//! `--name value`, `--flag`, `--noflag`, one dash or two.

mod table;

use crate::{Failure, Result};
pub use table::FLAGS;

/// The type of a flag's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`; `--name` alone means true and `--noname` false.
    Bool,
    /// A signed integer.
    Int,
    /// A number.
    Number,
    /// Any text.
    Text,
}

/// What becomes of a flag.
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
    pub kind: Kind,
    /// Its default, as one would write it.
    pub default: &'static str,
    /// What becomes of it.
    pub fate: Fate,
    /// One line for `--help`.
    pub doc: &'static str,
}

/// The values of all flags.
#[derive(Debug, Clone)]
pub struct Flags {
    values: Vec<Option<String>>,
    /// Whether the person asked for help.
    pub help: bool,
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
    // Unsigned 64-bit flags are read as their signed twin only where they fit.
    i64::try_from(value).ok().map(|v| v * sign)
}

impl Flag {
    fn check(&self, value: &str) -> Result<()> {
        let fits = match self.kind {
            Kind::Bool => parse_bool(value).is_some(),
            Kind::Int => parse_int(value).is_some(),
            Kind::Number => value.parse::<f64>().is_ok_and(f64::is_finite),
            Kind::Text => true,
        };
        if !fits {
            let kind = match self.kind {
                Kind::Bool => "true or false",
                Kind::Int => "an integer",
                _ => "a number",
            };
            return Err(Failure::new(format!(
                "--{}: `{value}` is not {kind}",
                self.name
            )));
        }
        let same = match self.kind {
            Kind::Bool => parse_bool(value) == parse_bool(self.default),
            Kind::Number => value.parse::<f64>().ok() == self.default.parse().ok(),
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
            help: false,
        }
    }

    /// Parses arguments (without the program's name).
    ///
    /// # Errors
    /// An unknown flag that `--undefok` does not name, a value of the wrong type, a refused flag.
    pub fn parse<S: AsRef<str>>(args: &[S]) -> Result<Flags> {
        let mut flags = Flags::defaults();
        let mut unknown: Vec<String> = Vec::new();
        let mut args = args.iter().map(AsRef::as_ref).peekable();
        while let Some(arg) = args.next() {
            let Some(body) = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-')) else {
                return Err(Failure::new(format!(
                    "unexpected argument `{arg}`; flags are --name=value"
                )));
            };
            if body == "help" || body == "h" {
                flags.help = true;
                continue;
            }
            let (name, value) = match body.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (body, None),
            };
            let Some(index) = position(name) else {
                let negated = name.strip_prefix("no").and_then(position);
                match negated.filter(|&i| FLAGS[i].kind == Kind::Bool && value.is_none()) {
                    Some(i) => flags.put(i, "false")?,
                    None => unknown.push(name.to_string()),
                }
                continue;
            };
            let value = match (value, FLAGS[index].kind) {
                (Some(value), _) => value,
                (None, Kind::Bool) => "true",
                (None, _) => args
                    .next()
                    .ok_or_else(|| Failure::new(format!("--{name} needs a value: --{name}=...")))?,
            };
            flags.put(index, value)?;
        }
        let tolerated = flags.text("undefok");
        unknown.retain(|name| !tolerated.split(',').any(|t| t.trim() == name));
        match unknown.first() {
            None => Ok(flags),
            Some(name) => Err(Failure::new(unknown_flag(name))),
        }
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

    /// Whether the flag was given.
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

fn unknown_flag(name: &str) -> String {
    let mut near: Vec<(usize, &str)> = FLAGS
        .iter()
        .map(|flag| (distance(name, flag.name), flag.name))
        .collect();
    near.sort_unstable();
    let hint = match near.first() {
        Some((d, best)) if *d <= 3 => format!("; did you mean --{best}?"),
        _ => String::new(),
    };
    format!("unknown flag --{name}{hint} (--help lists all; --undefok={name} tolerates it)")
}

/// Edit distance.
fn distance(a: &str, b: &str) -> usize {
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
    for (name, doc) in crate::runner::BENCHMARKS
        .iter()
        .chain(crate::codec::BENCHMARKS)
    {
        out.push_str(&format!("  {name:<22} {doc}\n"));
    }
    out.push_str("\nflags (with defaults):\n");
    for flag in FLAGS {
        let fate = match flag.fate {
            Fate::Run => String::new(),
            Fate::Option(name) | Fate::Table(name) if name == flag.name => {
                " [engine option]".into()
            }
            Fate::Option(name) | Fate::Table(name) => format!(" [engine option {name}]"),
            Fate::Accepted(why) => format!(" [accepted: {why}]"),
            Fate::Refused(why) => format!(" [only at its default: {why}]"),
        };
        let default = if flag.default.is_empty() {
            "\"\""
        } else {
            flag.default
        };
        out.push_str(&format!(
            "  --{}={default}\n        {}{fate}\n",
            flag.name, flag.doc
        ));
    }
    out
}

#[cfg(test)]
mod tests;
