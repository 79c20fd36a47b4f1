//! Read amplification of a step: what its reads took on average, for I/O and for the processor.
//!
//! Read from the property `rocksdb.esker.read-amplification`, whose sums are estimates from reads
//! that were looked at; an engine without the property has none.

use serde_json::{Map, Value, json};

use crate::store::Store;

const PROPERTY: &str = "rocksdb.esker.read-amplification";

/// The sums of one kind of read, by the names of the property.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadWork {
    /// `get`, `multiget`, `seek` or `next`.
    pub operation: String,
    /// Reads of this kind.
    pub count: u64,
    /// Name and sum of each column, in the order of the property.
    pub sums: Vec<(String, u64)>,
}

impl ReadWork {
    /// The average of a column; 0 for one that is not there.
    pub fn each(&self, name: &str) -> f64 {
        let found = self.sums.iter().find(|(known, _)| known == name);
        found.map_or(0.0, |(_, sum)| *sum as f64 / self.count.max(1) as f64)
    }

    /// Returns the work since `before`.
    fn since(mut self, before: &[ReadWork]) -> ReadWork {
        let Some(before) = before.iter().find(|b| b.operation == self.operation) else {
            return self;
        };
        self.count = self.count.saturating_sub(before.count);
        for ((_, sum), (_, then)) in self.sums.iter_mut().zip(&before.sums) {
            *sum = sum.saturating_sub(*then);
        }
        self
    }

    /// The averages as a line, in the property's words.
    fn line(&self) -> String {
        let part = |part: &str| -> String {
            let own = self.sums.iter().filter(|(name, _)| name.starts_with(part));
            let each = own.map(|(name, _)| {
                let what = name.trim_start_matches(part).trim_start_matches('.');
                format!(" {what} {:.2}", self.each(name))
            });
            each.collect::<Vec<_>>().join(",")
        };
        let (io, cpu) = (part("io"), part("cpu"));
        format!("read-amp of a {}: I/O{io} | CPU{cpu}", self.operation)
    }

    fn json(&self) -> Value {
        let average = |name: &String| (self.each(name) * 1000.0).round() / 1000.0;
        let sums = self.sums.iter();
        let mut out: Map<String, Value> = sums
            .map(|(name, _)| (name.clone(), json!(average(name))))
            .collect();
        out.insert("count".into(), json!(self.count));
        Value::Object(out)
    }
}

/// The sums now.
pub fn read_work<S: Store>(store: &S) -> Vec<ReadWork> {
    parse(&store.property(PROPERTY).unwrap_or_default())
}

/// The table of the property: names in the line that begins with `operation`, sums below.
fn parse(text: &str) -> Vec<ReadWork> {
    let mut lines = text.lines();
    let header = lines.find_map(|line| line.strip_prefix("operation"));
    let names: Vec<&str> = header.unwrap_or("").split_whitespace().collect();
    let read = |line: &str| {
        let mut fields = line.split_whitespace();
        let operation = fields.next().filter(|name| !name.starts_with("each-"))?;
        let sums: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
        let (count, sums) = sums.split_first()?;
        let named = names.iter().skip(1).map(|name| (*name).to_string());
        Some(ReadWork {
            operation: operation.to_string(),
            count: *count,
            sums: named.zip(sums.iter().copied()).collect(),
        })
    };
    lines.filter_map(read).collect()
}

/// Returns the work between two moments; kinds of reads that did nothing are left out.
pub fn since(now: Vec<ReadWork>, before: &[ReadWork]) -> Vec<ReadWork> {
    let each = now.into_iter().map(|work| work.since(before));
    each.filter(|work| work.count > 0).collect()
}

/// The averages as lines; none where nothing was read.
pub fn table(reads: &[ReadWork]) -> Option<String> {
    let lines: Vec<String> = reads
        .iter()
        .map(|work| format!("  {}", work.line()))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The averages by kind.
pub fn json(reads: &[ReadWork]) -> Value {
    let each = reads
        .iter()
        .map(|work| (work.operation.clone(), work.json()));
    Value::Object(each.collect())
}

/// The columns of a row that are averages of its most frequent kind of read, steps apart.
pub const COLUMNS: [(&str, &[&str]); 8] = [
    ("read_blocks_op", &["io.blocks"]),
    ("read_bytes_op", &["io.bytes"]),
    (
        "cache_hits_op",
        &["cpu.data-hits", "cpu.index-hits", "cpu.filter-hits"],
    ),
    ("filters_op", &["cpu.filters"]),
    ("filters_useful_op", &["cpu.filters-useful"]),
    ("keys_compared_op", &["cpu.compared"]),
    ("runs_op", &["cpu.tables", "cpu.memtables"]),
    (
        "skipped_op",
        &["cpu.skipped", "cpu.recent", "cpu.deletions"],
    ),
];

/// The kind of read that a row is about: the most frequent one that is not a step.
pub fn chief(reads: &[ReadWork]) -> Option<&ReadWork> {
    let kinds = reads.iter().filter(|work| work.operation != "next");
    kinds.max_by_key(|work| work.count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\n** Read Amplification [default] **\nOne read in 61 is looked at: sums are \
        estimates\noperation  count io.blocks io.bytes cpu.data-hits cpu.compared\n\
        get 610 61 249856 549 9150\neach-get 1 0.100 409.600 0.900 15.000\n\
        seek 61 0 0 183 3050\neach-seek 1 0.000 0.000 3.000 50.000\n";

    #[test]
    fn a_step_has_the_difference_of_two_tables() {
        let before = parse(TEXT);
        assert_eq!(before.len(), 2);
        assert_eq!(before[0].operation, "get");
        assert!((before[0].each("io.blocks") - 0.1).abs() < 1e-9);
        let now = parse(&TEXT.replace(
            "get 610 61 249856 549 9150",
            "get 1220 61 249856 1159 18300",
        ));
        let step = since(now, &before);
        assert_eq!(step.len(), 1, "no seek was added: {step:?}");
        assert_eq!(step[0].count, 610);
        assert_eq!(step[0].each("io.blocks"), 0.0);
        assert_eq!(step[0].each("cpu.data-hits"), 1.0);
        let said = table(&step).expect("a line");
        assert!(
            said.contains("read-amp of a get: I/O blocks 0.00"),
            "{said}"
        );
        assert!(
            said.contains("CPU data-hits 1.00, compared 15.00"),
            "{said}"
        );
        assert_eq!(json(&step)["get"]["cpu.compared"], json!(15.0));
        assert_eq!(chief(&before).map(|w| w.operation.as_str()), Some("get"));
    }

    #[test]
    fn an_engine_without_the_property_has_none() {
        assert!(parse("").is_empty() && table(&[]).is_none() && chief(&[]).is_none());
    }
}
