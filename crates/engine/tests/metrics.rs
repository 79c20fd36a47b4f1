//! OpenMetrics text of databases: what counts is in it and nothing else is, in the format's rules,
//! with names that nobody would choose.

use esker::observe::{HistogramId, Statistics, Ticker, metric_name};
use esker::{Db, FamilyOptions, Options};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Names of families that break careless writers.
const HOSTILE: [&str; 7] = [
    "a\"b",
    "back\\slash\\n",
    "line\nfeed\r",
    "{cf=\"x\"} 1",
    "# EOF",
    "tab\tnul\0",
    "\u{1f980}\u{2028}",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn opened(dir: &Path, statistics: Option<Arc<Statistics>>) -> Db {
    let mut options = Options::new().create_if_missing(true);
    options.db.statistics = statistics;
    Db::open(dir, options).expect("opens")
}

/// A sample: its name, its labels as they are written, its value.
type Sample = (String, String, String);

/// The samples of each metric, with its type, after a check of the rules of the format.
fn parsed(text: &str) -> BTreeMap<String, (String, Vec<Sample>)> {
    let text = text.strip_suffix("# EOF\n").expect("the end");
    let mut out: BTreeMap<String, (String, Vec<Sample>)> = BTreeMap::new();
    let mut current = String::new();
    let mut seen = BTreeSet::new();
    for line in text.split_terminator('\n') {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a type");
            let entry = (kind.to_owned(), Vec::new());
            assert!(out.insert(name.to_owned(), entry).is_none(), "{name} twice");
            name.clone_into(&mut current);
            continue;
        }
        if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.starts_with(&format!("{current} ")), "{line}");
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        assert!(seen.insert(series.to_owned()), "{series} twice");
        let (kind, samples) = out.get_mut(&current).expect("a type before its samples");
        let suffix = name
            .strip_prefix(&*current)
            .expect("samples stand together");
        let allowed: &[&str] = match kind.as_str() {
            "counter" => &["_total"],
            "gauge" => &[""],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_sum", "_count"],
            other => panic!("type {other}"),
        };
        assert!(allowed.contains(&suffix), "{line}");
        value.parse::<f64>().expect("a number");
        samples.push((name.to_owned(), labels.to_owned(), value.to_owned()));
    }
    out
}

/// The value of the one sample of a metric with these labels.
fn value(text: &str, metric: &str, labels: &str) -> u64 {
    let metrics = parsed(text);
    let (_, samples) = metrics.get(metric).unwrap_or_else(|| panic!("no {metric}"));
    let found: Vec<_> = samples.iter().filter(|s| s.1.contains(labels)).collect();
    assert_eq!(found.len(), 1, "{metric} {labels}");
    found[0].2.parse().expect("a whole number")
}

/// Metrics as `prometheus_client` reads them: a line for each metric, name, type and number of
/// samples, and one for each different value of the label `cf`. `None` where it is not installed.
fn read_by_prometheus_client(text: &str) -> Option<String> {
    const READER: &str = r"
import sys
try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
except ImportError:
    sys.exit(77)
families = set()
for metric in parse(sys.stdin.buffer.read().decode()):
    print(metric.name, metric.type, len(metric.samples))
    families.update(s.labels['cf'] for s in metric.samples if 'cf' in s.labels)
for family in sorted(families):
    print('cf', family.encode().hex())
";
    let child = Command::new("python3")
        .args(["-c", READER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        println!("skipped: python3 is not installed");
        return None;
    };
    let mut stdin = child.stdin.take().expect("a pipe");
    let text = text.to_owned();
    let writer = std::thread::spawn(move || {
        // It does not read if the package is missing.
        let _ = stdin.write_all(text.as_bytes());
    });
    let output = child.wait_with_output().expect("ends");
    writer.join().expect("no panic");
    if output.status.code() == Some(77) {
        println!("skipped: prometheus_client is not installed (pip install prometheus_client)");
        return None;
    }
    assert!(output.status.success(), "it reads the text");
    Some(String::from_utf8(output.stdout).expect("UTF-8"))
}

/// Every source file below `dir`.
fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// The words that stand behind `prefix` in the code of the engine.
fn words_behind(prefixes: [&str; 2]) -> BTreeSet<String> {
    let mut files = Vec::new();
    for name in ["engine", "options", "files", "cache", "txn", "backup"] {
        sources(&root().join("crates").join(name).join("src"), &mut files);
    }
    let mut out = BTreeSet::new();
    for file in files {
        let is_test = |p: &Path| {
            let name = p.file_stem().expect("a name").to_string_lossy();
            name.ends_with("tests") || name == "names" || name == "open_metrics"
        };
        if is_test(&file) {
            continue;
        }
        let code = fs::read_to_string(&file).expect("UTF-8");
        let code = code.split("\nmod tests {").next().expect("a part");
        for prefix in prefixes {
            for (at, _) in code.match_indices(prefix) {
                let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
                if code[..at].ends_with(is_word) {
                    continue;
                }
                let rest = &code[at + prefix.len()..];
                out.insert(
                    rest.split(|c| !is_word(c))
                        .next()
                        .unwrap_or_default()
                        .to_owned(),
                );
            }
        }
    }
    out
}

#[test]
fn the_table_marks_what_code_counts_and_the_document_lists_it() {
    let code = words_behind(["Ticker::", "T::"]);
    let in_code: Vec<_> = Ticker::ALL
        .iter()
        .filter(|t| code.contains(&format!("{t:?}")))
        .collect();
    assert_eq!(in_code, Ticker::COUNTED.iter().collect::<Vec<_>>());
    let code = words_behind(["HistogramId::", "H::"]);
    let in_code: Vec<_> = HistogramId::ALL
        .iter()
        .filter(|t| code.contains(&format!("{t:?}")))
        .collect();
    assert_eq!(in_code, HistogramId::COUNTED.iter().collect::<Vec<_>>());

    let page = fs::read_to_string(root().join("docs/statistics.md")).expect("the page");
    let listed = |title: &str| {
        let part = page
            .split(&format!("\n## {title}\n"))
            .nth(1)
            .expect("the part");
        let part = part.split("\n## ").next().expect("a part");
        let names = part
            .lines()
            .filter_map(|l| l.strip_prefix("- `")?.strip_suffix('`'));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let tickers: Vec<_> = Ticker::COUNTED
        .iter()
        .map(|t| t.name().to_owned())
        .collect();
    assert_eq!(listed("Tickers that are counted"), tickers);
    let histograms: Vec<_> = HistogramId::COUNTED
        .iter()
        .map(|t| t.name().to_owned())
        .collect();
    assert_eq!(listed("Histograms that are filled"), histograms);
}

#[test]
fn every_name_that_rocksdb_answers_with_a_number_is_a_metric() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = opened(dir.path(), None);
    let metrics = parsed(&db.metrics());
    let family = db.default_family_handle();
    // The reason is in `docs/statistics.md`.
    let asked = [
        "rocksdb.estimate-oldest-key-time",
        "rocksdb.block-cache-pinned-usage",
    ];
    for name in Db::property_names() {
        if name.ends_with('N') || db.int_property(&family, &name).is_none() {
            continue;
        }
        let is_there = metrics.contains_key(&metric_name(&name));
        assert_eq!(is_there, !asked.contains(&&*name), "{name}");
    }
    assert!(
        !metrics.contains_key("rocksdb_block_cache_hit"),
        "there are no statistics"
    );
}

#[test]
fn metrics_have_what_was_done() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = opened(dir.path(), Some(Statistics::new()));
    for n in 0..100u32 {
        db.put(format!("key{n:03}"), "value").expect("writes");
    }
    db.flush().expect("flushes");
    db.get("key007").expect("reads");
    let text = db.metrics();
    assert_eq!(value(&text, "rocksdb_number_keys_written", ""), 100);
    assert_eq!(value(&text, "rocksdb_number_keys_read", ""), 1);
    assert_eq!(value(&text, "rocksdb_db_user_keys_written", ""), 100);
    assert_eq!(value(&text, "rocksdb_num_files_at_level", "level=\"0\""), 1);
    assert_eq!(
        value(&text, "rocksdb_estimate_num_keys", "cf=\"default\""),
        100
    );
    assert_eq!(
        value(
            &text,
            "rocksdb_esker_stalls_db_times",
            "cause=\"low-priority\",kind=\"stops\""
        ),
        0
    );
    let metrics = parsed(&text);
    let (kind, samples) = &metrics["rocksdb_bytes_per_write"];
    assert_eq!(kind, "histogram");
    let buckets: Vec<u64> = samples
        .iter()
        .filter(|s| s.0.ends_with("_bucket"))
        .map(|s| s.2.parse().expect("a number"))
        .collect();
    assert!(buckets.is_sorted());
    assert_eq!(buckets.last(), Some(&100));
    assert!(
        !metrics.contains_key("rocksdb_row_cache_hit"),
        "nothing counts it"
    );
}

#[test]
fn names_that_break_careless_writers_come_back_as_they_are() {
    let dir = tempfile::tempdir().expect("a directory");
    let at = dir.path().join("a \"path\"\nwith \\");
    let db = opened(&at, Some(Statistics::new()));
    for name in HOSTILE {
        db.create_family(name, FamilyOptions::default())
            .expect("creates");
    }
    let text = db.metrics();
    let metrics = parsed(&text);
    assert_eq!(
        metrics["rocksdb_num_live_versions"].1.len(),
        HOSTILE.len() + 1
    );
    let Some(read) = read_by_prometheus_client(&text) else {
        return;
    };
    let hex = |name: &str| name.bytes().map(|b| format!("{b:02x}")).collect::<String>();
    for name in HOSTILE {
        let line = format!("cf {}", hex(name));
        assert!(read.lines().any(|l| l == line), "{name:?}");
    }
    for (name, (kind, samples)) in &metrics {
        let line = format!("{name} {kind} {}", samples.len());
        assert!(read.lines().any(|l| l == line), "{line}");
    }
}

#[test]
fn shared_parts_of_databases_count_once() {
    let dirs = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let statistics = Statistics::new();
    let [a, b] = [0, 1].map(|n| opened(dirs[n].path(), Some(Arc::clone(&statistics))));
    let again = Db::open_read_only(dirs[0].path(), Options::new()).expect("opens");
    a.put("key", "value").expect("writes");
    b.put("key", "value").expect("writes");
    let text = Db::metrics_of(&[&a, &b, &again]);
    let metrics = parsed(&text);
    assert_eq!(value(&text, "rocksdb_number_keys_written", ""), 2);
    assert_eq!(metrics["rocksdb_num_snapshots"].1.len(), 3);
    let first = dirs[0].path().display();
    assert!(
        text.contains(&format!("db=\"{first} (2)\"")),
        "one path twice"
    );
    assert!(text.contains("mode=\"read-only\""));
    assert_eq!(parsed(&Db::metrics_of(&[]))["esker_build"].1.len(), 1);
}

/// Microseconds of processor time of this thread.
fn processor_us() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("the kernel says so");
    let nanos = text.split(' ').next().expect("a number");
    nanos.parse::<u64>().expect("a number") / 1000
}

/// With `--release` the time is checked too.
#[test]
fn a_thousand_families_take_milliseconds() {
    let dir = tempfile::tempdir().expect("a directory");
    let db = opened(dir.path(), Some(Statistics::new()));
    for n in 0..999 {
        let name = format!("family-{n:04}");
        let family = db
            .create_family(&name, FamilyOptions::default())
            .expect("creates");
        db.put_cf(&family, "key", "value").expect("writes");
    }
    db.flush().expect("flushes");
    db.metrics();
    // The kernel adds the time up by ticks: one scrape is too short for them.
    const SCRAPES: u64 = 100;
    let before = processor_us();
    for _ in 0..SCRAPES {
        assert!(db.metrics().len() > 1 << 20);
    }
    let each = (processor_us() - before) / SCRAPES;
    let bytes = db.metrics().len();
    println!("{each} us of processor time for {bytes} bytes");
    if !cfg!(debug_assertions) {
        // The goal is 5 ms; this finds what grows with the square of the families.
        assert!(each <= 20_000, "{each} us");
    }
    if let Some(read) = read_by_prometheus_client(&db.metrics()) {
        assert!(
            read.contains("rocksdb_estimate_num_keys gauge 1000\n"),
            "{read}"
        );
    }
}
