//! `esker lab model`: the calculators on the command line.

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::amplification::{BTree, Tree, leveled_n_table};
use super::outsourced::{self, Spread};
use super::scalability::fit;
use super::table::Table;
use crate::say::say;
use crate::{Failure, Result};

/// The calculators, with their formulas.
#[derive(Debug, Parser)]
#[command(
    name = "esker lab model",
    about = "Calculators of amplification and scalability"
)]
pub struct Command {
    #[command(subcommand)]
    topic: Option<Topic>,
    /// How the tables are printed
    #[arg(long, value_enum, default_value = "text", global = true)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Tsv,
    Json,
    Markdown,
}

#[derive(Debug, Subcommand)]
enum Topic {
    /// Leveled and tiered trees: write-, space-amplification and runs by the number of levels
    Lsm(Lsm),
    /// A leveled tree with several sorted runs a level: the fanouts that write least
    LeveledN(LeveledN),
    /// A B-tree that updates in place
    Btree(Pages),
    /// A log-structured store alone: space against writes
    Log,
    /// A store that leaves compression to a log-structured one below it
    Outsourced(OutsourcedArgs),
    /// The universal scalability law, fitted to throughput by threads
    Usl(Usl),
}

#[derive(Debug, Args)]
struct Lsm {
    /// Bytes of the database / bytes of the memtable
    #[arg(long, default_value_t = 1024.0)]
    total_fanout: f64,
    /// Part of the fanout that a level rewrites
    #[arg(long, default_value_t = 1.0)]
    efficiency: f64,
    /// Up to this many levels
    #[arg(long, default_value_t = 12)]
    levels: u32,
}

#[derive(Debug, Args)]
struct LeveledN {
    /// Bytes of the last level / bytes of the first
    #[arg(long, default_value_t = 1000.0)]
    total_fanout: f64,
    /// Sorted runs of each level below the first
    #[arg(long, value_delimiter = ',', default_value = "1,2,2")]
    runs: Vec<f64>,
}

#[derive(Debug, Args)]
struct Pages {
    /// Bytes of a page
    #[arg(long, default_value_t = 16384.0)]
    page: f64,
    /// Bytes of a row
    #[arg(long, default_value_t = 128.0)]
    row: f64,
    /// How often a page is written: 2 with a double-write buffer
    #[arg(long, default_value_t = 1.0)]
    copies: f64,
    /// Log bytes for a byte changed
    #[arg(long, default_value_t = 1.0)]
    log: f64,
    /// Part of a page that has rows
    #[arg(long, default_value_t = 2.0 / 3.0)]
    fill: f64,
}

#[derive(Debug, Args)]
struct OutsourcedArgs {
    /// Compressed size / size: a number, uniform:LOW:HIGH, triangle:LOW:MODE:HIGH, samples:A:B...
    #[arg(long, default_value = "0.5")]
    r: String,
    /// Percent of garbage that is cleaned, in the same forms; without it, a table over 10 to 90
    #[arg(long)]
    g: Option<String>,
}

#[derive(Debug, Args)]
struct Usl {
    /// THREADS=THROUGHPUT pairs; without any, SPEC SDM91 of 1994
    points: Vec<String>,
    /// A file of lines with threads and throughput
    #[arg(long)]
    file: Option<std::path::PathBuf>,
    /// Fixes the throughput of one thread
    #[arg(long)]
    gamma: Option<f64>,
}

/// SPEC SDM91 on a SPARCcenter 2000, the example that the field fits the law to.
const EXAMPLE: &str = "1=64.9 18=995.9 36=1652.4 72=1853.2 108=1828.9 144=1775.0 216=1702.2";

fn positive(what: &str, values: &[f64]) -> Result<()> {
    if values.is_empty() || values.iter().any(|v| !v.is_finite() || *v <= 0.0) {
        return Err(Failure::new(format!("{what} must be above 0")));
    }
    Ok(())
}

fn pair(text: &str) -> Result<(f64, f64)> {
    let mut parts = text.split(['=', '\t', ' ', ',']).filter(|p| !p.is_empty());
    let mut next = || parts.next().and_then(|part| part.parse().ok());
    match (next(), next()) {
        (Some(n), Some(x)) => Ok((n, x)),
        _ => Err(Failure::new(format!("`{text}` is not THREADS=THROUGHPUT"))),
    }
}

impl Usl {
    fn points(&self) -> Result<Vec<(f64, f64)>> {
        if let Some(file) = &self.file {
            let text = std::fs::read_to_string(file)
                .map_err(|e| Failure::new(format!("{}: {e}", file.display())))?;
            let lines = text.lines().map(str::trim);
            return lines
                .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
                .map(pair)
                .collect();
        }
        if self.points.is_empty() {
            return EXAMPLE.split(' ').map(pair).collect();
        }
        self.points.iter().map(|point| pair(point)).collect()
    }
}

fn outsourced_table(args: &OutsourcedArgs) -> Result<Table> {
    let r = Spread::parse(&args.r)?;
    match (&args.g, &r) {
        (None, Spread::Fixed(fixed)) => {
            positive("r", &[*fixed])?;
            Ok(outsourced::table(*fixed))
        }
        (None, _) => Err(Failure::new("a spread of r needs --g")),
        (Some(g), _) => outsourced::spread_table(&Spread::parse(g)?, &r),
    }
}

/// The table of one topic.
fn table(topic: &Topic) -> Result<Table> {
    match topic {
        Topic::Lsm(lsm) => {
            positive("the total fanout", &[lsm.total_fanout - 1.0])?;
            positive("the efficiency", &[lsm.efficiency])?;
            Ok(Tree::table(
                lsm.total_fanout,
                lsm.efficiency,
                lsm.levels.clamp(1, 100),
            ))
        }
        Topic::LeveledN(tree) => {
            positive("the runs of a level", &tree.runs)?;
            positive("the total fanout", &[tree.total_fanout])?;
            Ok(leveled_n_table(tree.total_fanout, &tree.runs))
        }
        Topic::Btree(pages) => {
            positive(
                "sizes and parts",
                &[pages.page, pages.row, pages.copies, pages.fill],
            )?;
            let tree = BTree {
                page: pages.page,
                row: pages.row,
                changes_per_write: 1.0,
                copies: pages.copies,
                log: pages.log,
                fill: pages.fill,
            };
            Ok(tree.table())
        }
        Topic::Log => Ok(outsourced::log_table()),
        Topic::Outsourced(args) => outsourced_table(args),
        Topic::Usl(usl) => {
            let points = usl.points()?;
            Ok(fit(&points, usl.gamma)?.table(&points))
        }
    }
}

/// Every table with its defaults.
pub fn all_tables() -> Result<Vec<Table>> {
    let topics = ["lsm", "leveled-n", "btree", "log", "outsourced", "usl"];
    topics
        .iter()
        .map(|topic| {
            let command = Command::try_parse_from(["model", topic])
                .map_err(|e| Failure::new(e.to_string()))?;
            let topic = command.topic.ok_or_else(|| Failure::new("no topic"))?;
            table(&topic)
        })
        .collect()
}

impl Command {
    /// The tables that were asked for.
    ///
    /// # Errors
    /// Numbers that make no sense.
    pub fn tables(&self) -> Result<Vec<Table>> {
        match &self.topic {
            Some(topic) => Ok(vec![table(topic)?]),
            None => all_tables(),
        }
    }

    /// The output.
    ///
    /// # Errors
    /// Numbers that make no sense.
    pub fn render(&self) -> Result<String> {
        let tables = self.tables()?;
        let texts: Vec<String> = match self.format {
            Format::Text => tables.iter().map(Table::to_text).collect(),
            Format::Tsv => tables.iter().map(Table::to_tsv).collect(),
            Format::Markdown => tables.iter().map(Table::to_markdown).collect(),
            Format::Json => {
                let all: Vec<_> = tables.iter().map(Table::to_json).collect();
                let text = serde_json::to_string_pretty(&all);
                vec![text.map_err(|e| Failure::new(e.to_string()))?]
            }
        };
        Ok(texts.join("\n"))
    }
}

/// Prints the tables that `arguments` (behind the words `esker lab model`) ask for.
///
/// # Errors
/// Numbers that make no sense.
pub fn main(arguments: &[String]) -> Result<()> {
    let words = ["esker lab model".to_string()];
    match Command::try_parse_from(words.iter().chain(arguments)) {
        Ok(command) => {
            say!("{}", command.render()?.trim_end());
            Ok(())
        }
        Err(help) if !help.use_stderr() => {
            say!("{help}");
            Ok(())
        }
        Err(wrong) => Err(Failure::usage(
            wrong.to_string().trim_start_matches("error: "),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(words: &[&str]) -> Result<String> {
        let words = ["model"].iter().chain(words);
        let command = Command::try_parse_from(words).map_err(|e| Failure::new(e.to_string()))?;
        command.render()
    }

    #[test]
    fn every_form_of_every_table() {
        let text = render(&[]).unwrap();
        for formula in [
            "f n T^(1/n)",
            "100/(100-g)",
            "gamma N",
            "copies x page",
            "w2 = w1/2",
        ] {
            assert!(text.contains(formula), "{formula}");
        }
        let json: serde_json::Value =
            serde_json::from_str(&render(&["--format=json"]).unwrap()).unwrap();
        assert_eq!(json.as_array().unwrap().len(), 6);
        assert_eq!(json[5]["rows"][0]["what"], "alpha");
        let tsv = render(&["log", "--format=tsv"]).unwrap();
        assert_eq!(tsv.lines().count(), 10);
        assert_eq!(
            tsv.lines().nth(1),
            Some("90\t10\t10\t1.1111111111111112\t90\t10")
        );
    }

    #[test]
    fn nonsense_is_refused() {
        for words in [
            &["lsm", "--total-fanout=1"][..],
            &["btree", "--row=0"],
            &["usl", "1=2"],
            &["usl", "1-2"],
            &["outsourced", "--r=0"],
            &["outsourced", "--r=uniform:1:2"],
            &["outsourced", "--g=100"],
            &["leveled-n", "--runs=0"],
            &["nothing"],
        ] {
            assert!(render(words).is_err(), "{words:?}");
        }
    }
}
