//! A store that does not compress, above a log-structured one that does (a device or a filesystem).
//!
//! The lower store appends and collects garbage. It cleans a segment when g percent of it is
//! garbage, so it writes 100/g bytes for each byte that it is given, and takes 100/(100-g) of the
//! space. Compression shrinks both by r, the compressed part of a byte.

use super::table::{Cell, Table};
use crate::{Failure, Result};

/// Bytes written for a byte given: 100/g.
pub fn write_amp(g: f64) -> f64 {
    100.0 / g
}

/// Bytes taken for a byte that is live: 100/(100-g).
pub fn space_amp(g: f64) -> f64 {
    100.0 / (100.0 - g)
}

/// The costs of a pair of g (percent of garbage) and r (compressed size / size).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Space for a byte of the store above: r 100/(100-g).
    pub s: f64,
    /// Bytes written for a byte that the store above writes: r 100/g.
    pub w1: f64,
    /// Writes when the store above need not write its pages twice, since the lower store does not
    /// overwrite: w1/2.
    pub w2: f64,
}

/// The costs at `g` and `r`.
pub fn costs(g: f64, r: f64) -> Costs {
    let w1 = r * write_amp(g);
    Costs {
        s: r * space_amp(g),
        w1,
        w2: w1 / 2.0,
    }
}

const FORMULAS: [&str; 4] = [
    "g = percent of garbage in what is cleaned; r = compressed size / size",
    "write-amp = 100/g, space-amp = 100/(100-g)",
    "s = r 100/(100-g), w1 = r 100/g, w2 = w1/2 (pages are not written twice)",
    "%cap = 100/space-amp, %end = 100/write-amp; %cap + %end = 100",
];

/// The log-structured store alone: space against writes. `pfull` is 100-g, the part of the device
/// that may hold data.
pub fn log_table() -> Table {
    let formulas = [FORMULAS[0], FORMULAS[1], FORMULAS[3]];
    let columns = ["pfull", "g", "write_amp", "space_amp", "%cap", "%end"];
    let mut table = Table::new(
        "Log-structured store: space against writes",
        &formulas,
        &columns,
    );
    for step in (1..=9).rev() {
        let pfull = f64::from(step * 10);
        let g = 100.0 - pfull;
        table.row(vec![
            Cell::Number(pfull, 0),
            Cell::Number(g, 0),
            Cell::Number(write_amp(g), 2),
            Cell::Number(space_amp(g), 2),
            Cell::Number(100.0 / space_amp(g), 0),
            Cell::Number(100.0 / write_amp(g), 0),
        ]);
    }
    table
}

/// The costs for each g of 10, 20 to 90, at one r.
pub fn table(r: f64) -> Table {
    let title = format!("Compression outside the engine, r = {r}");
    let columns = ["g", "write_amp", "space_amp", "s", "w1", "w2"];
    let mut table = Table::new(&title, &FORMULAS[..3], &columns);
    for step in 1..=9 {
        let g = f64::from(step * 10);
        let costs = costs(g, r);
        table.row(vec![
            Cell::Number(g, 0),
            Cell::Number(write_amp(g), 2),
            Cell::Number(space_amp(g), 2),
            Cell::Number(costs.s, 2),
            Cell::Number(costs.w1, 2),
            Cell::Number(costs.w2, 2),
        ]);
    }
    table
}

/// A distribution of g or of r.
#[derive(Debug, Clone, PartialEq)]
pub enum Spread {
    /// Always the same.
    Fixed(f64),
    /// Uniform between two bounds.
    Uniform(f64, f64),
    /// Triangular: least, most likely, most.
    Triangle(f64, f64, f64),
    /// Each of these equally often, as measured.
    Samples(Vec<f64>),
}

impl Spread {
    /// Parses `0.5`, `uniform:LOW:HIGH`, `triangle:LOW:MODE:HIGH` or `samples:A:B:C...`.
    ///
    /// # Errors
    /// Text of another form, or bounds out of order.
    pub fn parse(text: &str) -> Result<Spread> {
        let bad = || Failure::new(format!("`{text}` is no distribution"));
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let numbers: std::result::Result<Vec<f64>, _> = parts.map(str::parse).collect();
        let mut numbers = numbers.map_err(|_| bad())?;
        match (name, numbers.as_slice()) {
            ("uniform", &[low, high]) if low <= high => Ok(Spread::Uniform(low, high)),
            ("triangle", &[low, mode, high]) if low <= mode && mode <= high => {
                Ok(Spread::Triangle(low, mode, high))
            }
            ("samples", [_, ..]) => {
                numbers.sort_by(f64::total_cmp);
                Ok(Spread::Samples(numbers))
            }
            (number, []) => number.parse().map(Spread::Fixed).map_err(|_| bad()),
            _ => Err(bad()),
        }
    }

    /// The value that the part `p` (0 to 1) of the distribution lies below.
    pub fn quantile(&self, p: f64) -> f64 {
        match self {
            Spread::Fixed(value) => *value,
            Spread::Uniform(low, high) => low + p * (high - low),
            Spread::Triangle(low, mode, high) => {
                let width = high - low;
                if width == 0.0 {
                    return *mode;
                }
                let turn = (mode - low) / width;
                if p < turn {
                    low + (p * width * (mode - low)).sqrt()
                } else {
                    high - ((1.0 - p) * width * (high - mode)).sqrt()
                }
            }
            Spread::Samples(sorted) => {
                let at = (p * sorted.len() as f64) as usize;
                sorted[at.min(sorted.len() - 1)]
            }
        }
    }

    /// Returns whether all of it lies between `low` and `high`, both excluded.
    fn within(&self, low: f64, high: f64) -> bool {
        self.quantile(0.0) > low && self.quantile(1.0) < high
    }
}

/// Points of each distribution that [`spread_table`] combines.
const POINTS: usize = 250;

/// The costs when g and r vary independently: mean and percentiles over all pairs of quantiles.
///
/// # Errors
/// g outside 0 to 100 or r not above 0.
pub fn spread_table(g: &Spread, r: &Spread) -> Result<Table> {
    if !g.within(0.0, 100.0) {
        return Err(Failure::new("g must lie between 0 and 100 percent"));
    }
    if !r.within(0.0, f64::INFINITY) {
        return Err(Failure::new("r must be above 0"));
    }
    let middle = |i: usize| (i as f64 + 0.5) / POINTS as f64;
    let mut all: [Vec<f64>; 3] = Default::default();
    for i in 0..POINTS {
        for j in 0..POINTS {
            let costs = costs(g.quantile(middle(i)), r.quantile(middle(j)));
            for (list, value) in all.iter_mut().zip([costs.s, costs.w1, costs.w2]) {
                list.push(value);
            }
        }
    }
    let mut formulas = FORMULAS[..3].to_vec();
    formulas.push("g and r are independent; the mean of 100/g is above 100 / the mean of g");
    let columns = ["cost", "mean", "p5", "p50", "p95"];
    let mut table = Table::new(
        "Compression outside the engine, g and r spread",
        &formulas,
        &columns,
    );
    for (name, mut list) in ["s", "w1", "w2"].into_iter().zip(all) {
        list.sort_by(f64::total_cmp);
        let mean = list.iter().sum::<f64>() / list.len() as f64;
        let at = |p: f64| list[((p * list.len() as f64) as usize).min(list.len() - 1)];
        table.row(vec![
            name.into(),
            Cell::Number(mean, 3),
            Cell::Number(at(0.05), 3),
            Cell::Number(at(0.5), 3),
            Cell::Number(at(0.95), 3),
        ]);
    }
    Ok(table)
}
