//! Output of a benchmark that runs several times: means with their interval, and median.

use std::fmt::Write as _;

use crate::measure::Measurement;

/// The rates of the runs so far.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    operations: Vec<f64>,
    megabytes: Vec<f64>,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Half of the interval that holds the mean 19 times of 20.
fn half_interval(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = mean(values);
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    1.959_964 * (squares / (n - 1.0)).sqrt() / n.sqrt()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (low, high) = ((sorted.len() - 1) / 2, sorted.len() / 2);
    (sorted[low] + sorted[high]) / 2.0
}

impl Repeats {
    pub(super) fn add(&mut self, run: &Measurement) {
        self.operations.push(run.ops_per_second());
        self.megabytes.extend(run.mb_per_second());
    }

    fn bytes(&self) -> Option<&[f64]> {
        (self.megabytes.len() == self.operations.len()).then_some(&self.megabytes)
    }

    /// The line behind each run, from the second on.
    pub(super) fn line(&self, name: &str, only_interval: bool) -> Option<String> {
        let n = self.operations.len();
        if n < 2 {
            return None;
        }
        let (ops, half) = (mean(&self.operations), half_interval(&self.operations));
        let mut out = if only_interval {
            let (low, high) = (ops - half, ops + half);
            format!("{name} [CI95 {n} runs] : ({low:.0}, {high:.0}) ops/sec")
        } else {
            format!("{name} [AVG {n} runs] : {ops:.0} (\u{b1} {half:.0}) ops/sec")
        };
        if let Some(bytes) = self.bytes() {
            let (mb, half) = (mean(bytes), half_interval(bytes));
            let _ = if only_interval {
                write!(out, "; ({:.1}, {:.1}) MB/sec", mb - half, mb + half)
            } else {
                write!(out, "; {mb:6.1} (\u{b1} {half:.1}) MB/sec")
            };
        }
        Some(out)
    }

    /// The lines behind the last run.
    pub(super) fn summary(&self, name: &str) -> Option<String> {
        let n = self.operations.len();
        if n < 2 {
            return None;
        }
        let (ops, half) = (mean(&self.operations), half_interval(&self.operations));
        let mut average = format!(
            "{name} [AVG    {n} runs] : {ops:.0} (\u{b1} {half:.0}) ops/sec; {:.3} ms/op",
            1000.0 / ops.max(1e-9)
        );
        let mut middle = format!(
            "{name} [MEDIAN {n} runs] : {:.0} ops/sec",
            median(&self.operations)
        );
        if let Some(bytes) = self.bytes() {
            let (mb, half) = (mean(bytes), half_interval(bytes));
            let _ = write!(average, "; {mb:6.1} (\u{b1} {half:.1}) MB/sec");
            let _ = write!(middle, "; {:6.1} MB/sec", median(bytes));
        }
        Some(format!("\n{average}\n{middle}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_medians_of_runs() {
        let repeats = Repeats {
            operations: vec![100.0, 200.0, 600.0],
            megabytes: Vec::new(),
        };
        let line = repeats.line("readrandom", false).expect("three runs");
        assert_eq!(line, "readrandom [AVG 3 runs] : 300 (\u{b1} 299) ops/sec");
        let both = repeats.summary("readrandom").expect("three runs");
        assert!(
            both.ends_with("readrandom [MEDIAN 3 runs] : 200 ops/sec"),
            "{both}"
        );
        assert!(Repeats::default().line("x", true).is_none());
    }
}
