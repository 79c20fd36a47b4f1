//! Reports for people: a report about every open database, and its form as text.
//!
//! No key and no value is in it, and no option whose name or value may hold a secret. Nothing here
//! begins an interval of RocksDB's statistics: `rocksdb.dbstats` is read as a map, which does not.

use esker::observe::{HistogramId, OperationKind, Statistics, timestamp};
use esker::options::dump;
use esker::{Db, FamilyHandle};
use std::fmt::Write as _;

/// Families of a database that are shown: those with most data.
const FAMILIES_SHOWN: usize = 20;

/// Everything that is shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) databases: Vec<DatabaseReport>,
}

/// A database.
#[derive(Clone, Debug, Default)]
pub(crate) struct DatabaseReport {
    pub(crate) path: String,
    /// Names and values.
    pub(crate) figures: Vec<(String, String)>,
    /// Titles and tables that are lines of text.
    pub(crate) parts: Vec<(String, String)>,
    /// Titles, and lines that are shown on demand.
    pub(crate) options: Vec<(String, String)>,
}

/// The report about these databases.
pub(crate) fn of(open: &[Db]) -> Report {
    Report {
        databases: open.iter().map(database).collect(),
    }
}

/// Families with the most bytes first, and how many there are.
fn largest_families(db: &Db) -> (Vec<FamilyHandle>, usize) {
    let mut families = db.families();
    let count = families.len();
    let bytes = |f: &FamilyHandle| {
        let get = |name| db.int_property(f, name).unwrap_or(0);
        get("rocksdb.live-sst-files-size") + get("rocksdb.cur-size-all-mem-tables")
    };
    families.sort_by_cached_key(|f| std::cmp::Reverse(bytes(f)));
    families.truncate(FAMILIES_SHOWN);
    (families, count)
}

fn database(db: &Db) -> DatabaseReport {
    let default = db.default_family_handle();
    let (families, count) = largest_families(db);
    let property = |name: &str| db.property_cf(&default, name).unwrap_or_default();
    let mut parts = vec![
        ("Jobs under way".to_owned(), property("rocksdb.esker.jobs")),
        (
            "Stalls".to_owned(),
            or(
                property("rocksdb.esker.stalls"),
                "no writer was held back\n",
            ),
        ),
        ("Times of operations".to_owned(), times(db)),
        ("Slowest operations".to_owned(), slowest(db)),
    ];
    for family in &families {
        let name = family.name();
        let property = |name: &str| db.property_cf(family, name).unwrap_or_default();
        parts.push((
            format!("Levels of {name:?}"),
            property("rocksdb.esker.levels"),
        ));
    }
    let hidden = count - families.len();
    if hidden > 0 {
        let text = format!("{hidden} smaller families are not shown; /metrics has them\n");
        parts.push(("More families".to_owned(), text));
    }
    let mut options = vec![(
        "Options of the database".to_owned(),
        dump::db_lines(&db.db_options()),
    )];
    for family in &families {
        let name = family.name();
        let lines = dump::family_lines(name, &family.options());
        options.push((format!("Options of {name:?}"), lines));
    }
    let shown = |(title, lines): (String, Vec<String>)| (title, without_secrets(&lines));
    DatabaseReport {
        path: db.path().display().to_string(),
        figures: figures(db, count),
        parts,
        options: options.into_iter().map(shown).collect(),
    }
}

fn or(text: String, otherwise: &str) -> String {
    if text.is_empty() {
        otherwise.to_owned()
    } else {
        text
    }
}

fn figures(db: &Db, families: usize) -> Vec<(String, String)> {
    let default = db.default_family_handle();
    let stats = db
        .map_property(&default, "rocksdb.dbstats")
        .unwrap_or_default();
    let mut out = vec![
        ("id".to_owned(), db.db_id().to_owned()),
        ("health".to_owned(), format!("{:?}", db.health())),
        ("families".to_owned(), families.to_string()),
    ];
    if let Some(error) = db.background_error() {
        // The kind alone: a message may quote data.
        out.push(("background error".to_owned(), format!("{:?}", error.kind())));
    }
    let mut map = |title: &str, name: &str| {
        let value = stats.get(name).cloned().unwrap_or_default();
        out.push((title.to_owned(), value));
    };
    map("seconds open", "db.uptime");
    map("keys written", "db.user_keys_written");
    map("bytes written", "db.user_bytes_written");
    map("bytes of log written", "db.wal_bytes_written");
    map("syncs of the log", "db.wal_syncs");
    map("microseconds stalled", "db.user_write_stall_micros");
    for (title, name) in [
        ("keys, estimated", "rocksdb.estimate-num-keys"),
        ("bytes of live tables", "rocksdb.live-sst-files-size"),
        ("bytes of memtables", "rocksdb.cur-size-all-mem-tables"),
        (
            "bytes of compaction owed",
            "rocksdb.estimate-pending-compaction-bytes",
        ),
        ("block cache capacity", "rocksdb.block-cache-capacity"),
        ("block cache usage", "rocksdb.block-cache-usage"),
    ] {
        if let Some(value) = db.aggregated_int_property(name) {
            out.push((title.to_owned(), value.to_string()));
        }
    }
    out
}

/// Operations of a kind that are shown.
const SLOWEST_SHOWN: usize = 8;

/// The slowest operations of the last minutes, with the perf context of each.
fn slowest(db: &Db) -> String {
    let all = db.slow_operations();
    if all.is_empty() {
        return "none in the last minutes\n".to_owned();
    }
    let mut out = format!(
        "{:<10} {:>12}  {:<27} {:>9}  {}\n",
        "", "microseconds", "began (UTC)", "thread", "family: perf context"
    );
    for kind in OperationKind::ALL {
        for o in all.iter().filter(|o| o.kind == kind).take(SLOWEST_SHOWN) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "{:<10} {:>12}  {:<27} {:>9}  {}: {}",
                kind.name(),
                o.took.as_micros(),
                timestamp(o.began_unix_us),
                o.thread,
                one_line(o.family.as_deref().unwrap_or("(several)")),
                o.perf_text()
            );
        }
    }
    out
}

/// Statistics have the distribution of all operations.
fn times(db: &Db) -> String {
    let options = db.db_options();
    let Some(statistics) = &options.statistics else {
        return "not known: the program opened the database without statistics\n".to_owned();
    };
    let mut out = format!(
        "{:<28} {:>12} {:>12} {:>12} {:>12}\n",
        "microseconds", "P50", "P99", "P99.9", "longest"
    );
    for id in [
        HistogramId::DbGet,
        HistogramId::DbMultiget,
        HistogramId::DbSeek,
        HistogramId::DbWrite,
        HistogramId::WalFileSyncMicros,
        HistogramId::FlushTime,
        HistogramId::CompactionTime,
    ] {
        line(&mut out, statistics, id);
    }
    out
}

fn line(out: &mut String, statistics: &Statistics, id: HistogramId) {
    let h = statistics.histogram(id);
    if h.count == 0 {
        return;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{:<28} {:>12.1} {:>12.1} {:>12.1} {:>12}",
        id.name().trim_start_matches("rocksdb."),
        h.median,
        h.percentile99,
        statistics.percentile(id, 99.9),
        h.max
    );
}

/// Parts of names of options whose values are nobody's business.
const SECRET: [&str; 9] = [
    "secret",
    "passw",
    "passphrase",
    "token",
    "credential",
    "private",
    "encrypt",
    "cipher",
    "auth",
];

/// Returns whether an option's value may be shown. Texts with an address may have a password in it.
fn is_public(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_key = name.ends_with("_key") || name.ends_with("_keys") || name.ends_with("_key_id");
    !is_key && !SECRET.iter().any(|s| name.contains(s)) && !value.contains("://")
}

/// Lines of options, without those that may hold a secret and without what is no option.
fn without_secrets(lines: &[String]) -> String {
    let mut out = String::new();
    for line in lines.iter().flat_map(|l| l.lines()) {
        let Some((name, value)) = line
            .trim()
            .strip_prefix("Options.")
            .and_then(|l| l.split_once(':'))
        else {
            continue;
        };
        let value = value.trim();
        let value = if is_public(name, value) {
            value
        } else {
            "(not shown)"
        };
        let _ = writeln!(out, "{name}: {value}");
    }
    out
}

/// The report as text.
pub(crate) fn text(report: &Report) -> String {
    let mut out = format!(
        "Esker {}, process {}, {} open\n",
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
        match report.databases.len() {
            1 => "1 database".to_owned(),
            n => format!("{n} databases"),
        }
    );
    for db in &report.databases {
        let _ = writeln!(out, "\n=== {}", one_line(&db.path));
        for (name, value) in &db.figures {
            let _ = writeln!(out, "{name:<26} {}", one_line(value));
        }
        for (title, part) in db.parts.iter().chain(&db.options) {
            let _ = write!(out, "\n--- {title}\n{part}");
        }
    }
    out
}

/// Text that cannot pretend to be another line.
pub(crate) fn one_line(text: &str) -> String {
    let escaped = |c: char| {
        if c.is_control() {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    };
    text.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let lines = [
            "   Options.write_buffer_size: 7".to_owned(),
            " Options.encryption_key: 00ff".to_owned(),
            "Options.env_uri: s3://user:word@host".to_owned(),
            "Options.db_password: x".to_owned(),
            "Options.whole_key_filtering: 1".to_owned(),
            "---- a title".to_owned(),
        ];
        assert_eq!(
            without_secrets(&lines),
            "write_buffer_size: 7\nencryption_key: (not shown)\nenv_uri: (not shown)\n\
             db_password: (not shown)\nwhole_key_filtering: 1\n"
        );
    }

    #[test]
    fn a_path_stays_in_its_line() {
        assert_eq!(one_line("a\n=== b\u{1b}[2J"), "a\\n=== b\\u{1b}[2J");
    }
}
