//! Statistics as OpenMetrics text (version 1.0.0), which Prometheus and its kin read.
//!
//! **Names** are RocksDB's, with `_` for each character that a name of a metric may not have:
//! `rocksdb.block.cache.miss` is `rocksdb_block_cache_miss`, and its samples end in `_total` as
//! those of every counter do ([`metric_name`]). A counter that the engine does not count is absent
//! ([`Ticker::COUNTED`]). A histogram has RocksDB's limits, every second one up to 10^10.
//!
//! All samples of a metric stand together, so a text about several databases is written metric by
//! metric. Thread-safety: a text belongs to one thread.

use super::histogram::{BUCKETS, limit};
use super::names::{HistogramId, Ticker};
use super::statistics::{Statistics, StatsLevel};
use std::fmt::Write as _;

/// The media type of the text.
pub const OPEN_METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Largest limit of a bucket that is written, before the one without a limit.
const LARGEST_LIMIT: u64 = 10_000_000_000;

/// The name of a metric for a name of RocksDB's.
pub fn metric_name(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(allowed).collect()
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Grows, but for a reset.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts of values by size.
    Histogram,
    /// Labels alone.
    Info,
}

impl MetricKind {
    fn text(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
            MetricKind::Info => "info",
        }
    }

    /// The end of the names of its samples.
    fn suffix(self) -> &'static str {
        match self {
            MetricKind::Counter => "_total",
            MetricKind::Info => "_info",
            MetricKind::Gauge | MetricKind::Histogram => "",
        }
    }
}

/// Labels of a sample, escaped once and written often.
#[derive(Clone, Debug, Default)]
pub struct MetricLabels(String);

impl MetricLabels {
    /// No labels.
    pub fn none() -> Self {
        MetricLabels::default()
    }

    /// These labels and one more. `name` is a word of letters and `_`; `value` is any text.
    #[must_use]
    pub fn and(&self, name: &str, value: &str) -> Self {
        let mut text = String::with_capacity(self.0.len() + name.len() + value.len() + 4);
        text.push_str(&self.0);
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        for c in value.chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                c => text.push(c),
            }
        }
        text.push('"');
        MetricLabels(text)
    }
}

/// OpenMetrics text under construction.
#[derive(Debug, Default)]
pub struct MetricText {
    out: String,
    /// The beginning of the current metric's samples.
    sample: String,
}

impl MetricText {
    /// An empty text with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        MetricText {
            out: String::with_capacity(bytes),
            sample: String::new(),
        }
    }

    /// Begins the metric called `name`, a name of RocksDB's; its samples follow.
    pub fn begin(&mut self, name: &str, kind: MetricKind, help: &str) {
        let name = metric_name(name);
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a string cannot fail.
        let _ = writeln!(
            self.out,
            "# TYPE {name} {}\n# HELP {name} {help}",
            kind.text()
        );
        self.sample = name + kind.suffix();
    }

    /// Adds a sample of the current metric.
    #[inline]
    pub fn sample(&mut self, labels: &MetricLabels, value: u64) {
        if labels.0.is_empty() {
            self.head("", labels, "");
        } else {
            // As `head` does it; thousands of samples are like this.
            let parts = [&*self.sample, "{", &*labels.0, "} "];
            self.out
                .reserve(parts.iter().map(|p| p.len()).sum::<usize>() + 21);
            parts.iter().for_each(|p| self.out.push_str(p));
        }
        digits(&mut self.out, value);
        self.out.push('\n');
    }

    /// Adds a sample of the current metric that is no whole number.
    pub fn decimal(&mut self, labels: &MetricLabels, value: f64) {
        self.head("", labels, "");
        let _ = writeln!(self.out, "{value:.6}");
    }

    #[inline]
    fn head(&mut self, suffix: &str, labels: &MetricLabels, limit: &str) {
        let out = &mut self.out;
        out.push_str(&self.sample);
        out.push_str(suffix);
        if labels.0.is_empty() && limit.is_empty() {
            out.push(' ');
            return;
        }
        out.push('{');
        out.push_str(&labels.0);
        if !limit.is_empty() {
            if !labels.0.is_empty() {
                out.push(',');
            }
            out.push_str("le=\"");
            out.push_str(limit);
            out.push('"');
        }
        out.push_str("} ");
    }

    fn histogram(&mut self, labels: &MetricLabels, buckets: &[u64; BUCKETS], sum: u64) {
        let mut below = 0;
        for (at, here) in buckets.iter().enumerate() {
            below += here;
            if at % 2 == 1 && limit(at) <= LARGEST_LIMIT {
                let text = format!("{}.0", limit(at));
                self.head("_bucket", labels, &text);
                digits(&mut self.out, below);
                self.out.push('\n');
            }
        }
        for (suffix, limit, value) in [
            ("_bucket", "+Inf", below),
            ("_sum", "", sum),
            ("_count", "", below),
        ] {
            self.head(suffix, labels, limit);
            digits(&mut self.out, value);
            self.out.push('\n');
        }
    }

    /// Adds every counter and every histogram that is counted in one of `all`, each of which has
    /// its labels.
    pub fn statistics(&mut self, all: &[(MetricLabels, &Statistics)]) {
        let counts = |s: &Statistics| s.level() > StatsLevel::DisableAll;
        for ticker in Ticker::COUNTED {
            let mut samples = all.iter().filter(|(_, s)| counts(s)).peekable();
            if samples.peek().is_none() {
                return;
            }
            self.begin(ticker.name(), MetricKind::Counter, ticker.name());
            for (labels, s) in samples {
                self.sample(labels, s.ticker(*ticker));
            }
        }
        for id in HistogramId::COUNTED {
            let records = |s: &Statistics| {
                s.level() > StatsLevel::ExceptHistogramOrTimers
                    && (s.wants_times() || !id.name().contains("micros"))
            };
            let mut samples = all.iter().filter(|(_, s)| records(s)).peekable();
            if samples.peek().is_none() {
                continue;
            }
            self.begin(id.name(), MetricKind::Histogram, id.name());
            for (labels, s) in samples {
                let (buckets, sum) = s.buckets(*id);
                self.histogram(labels, &buckets, sum);
            }
        }
    }

    /// The text.
    pub fn finish(mut self) -> String {
        self.out.push_str("# EOF\n");
        self.out
    }
}

/// Writes a number; the formatting machinery takes three times as long.
#[inline]
fn digits(out: &mut String, mut value: u64) {
    if value < 10 {
        // As most are.
        out.push(char::from(b'0' + value as u8));
        return;
    }
    let mut text = [0u8; 20];
    let mut at = text.len();
    loop {
        at -= 1;
        text[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&text[at..]).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_those_of_rocksdb_and_differ() {
        assert_eq!(
            metric_name("rocksdb.db-get.micros"),
            "rocksdb_db_get_micros"
        );
        let tickers = Ticker::ALL.iter().map(|t| metric_name(t.name()));
        let histograms = HistogramId::ALL.iter().map(|h| metric_name(h.name()));
        let all: Vec<String> = tickers.chain(histograms).collect();
        let different: HashSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert!(all.iter().all(|n| n.starts_with("rocksdb_")));
    }

    #[test]
    fn labels_are_escaped() {
        let labels = MetricLabels::none()
            .and("db", "a\"b\\c\nd")
            .and("cf", "{}=,");
        let mut text = MetricText::default();
        text.begin("a.b", MetricKind::Counter, "of \\ and\nmore");
        text.sample(&labels, u64::MAX);
        text.sample(&MetricLabels::none(), 0);
        assert_eq!(
            text.finish(),
            "# TYPE a_b counter\n# HELP a_b of \\\\ and\\nmore\n\
             a_b_total{db=\"a\\\"b\\\\c\\nd\",cf=\"{}=,\"} 18446744073709551615\n\
             a_b_total 0\n# EOF\n"
        );
    }

    #[test]
    fn what_nothing_counts_is_absent() {
        let s = Statistics::new();
        s.add(Ticker::BlockCacheMiss, 7);
        s.record(HistogramId::BytesPerRead, 3);
        s.record(HistogramId::BytesPerRead, u64::MAX / 2);
        let labels = MetricLabels::none().and("db", "x");
        let written = |level| {
            s.set_level(level);
            let mut text = MetricText::default();
            text.statistics(&[(labels.clone(), &s)]);
            text.finish()
        };
        let all = written(StatsLevel::default());
        assert!(all.contains("\nrocksdb_block_cache_miss_total{db=\"x\"} 7\n"));
        assert!(!all.contains("rocksdb_row_cache_hit"), "nothing counts it");
        assert!(all.contains("rocksdb_bytes_per_read_bucket{db=\"x\",le=\"2.0\"} 0\n"));
        assert!(all.contains("rocksdb_bytes_per_read_bucket{db=\"x\",le=\"4.0\"} 1\n"));
        assert!(all.contains("rocksdb_bytes_per_read_bucket{db=\"x\",le=\"+Inf\"} 2\n"));
        assert!(all.contains("rocksdb_bytes_per_read_count{db=\"x\"} 2\n"));
        assert!(all.contains("rocksdb_db_get_micros_count{db=\"x\"} 0\n"));
        let sizes = written(StatsLevel::ExceptTimers);
        assert!(sizes.contains("rocksdb_bytes_per_read_count"));
        assert!(!sizes.contains("rocksdb_db_get_micros"));
        assert!(!written(StatsLevel::ExceptHistogramOrTimers).contains("histogram"));
        assert_eq!(written(StatsLevel::DisableAll), "# EOF\n");
    }
}
