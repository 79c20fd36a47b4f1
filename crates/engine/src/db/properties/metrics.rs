//! Statistics and properties of databases as OpenMetrics text: what a monitor scrapes.
//!
//! Names and the mapping from RocksDB's are `crate::observe::MetricText`'s. The label `db` is the
//! path of the database, `cf` the family. Nothing here waits for a job or reads a file, and nothing
//! of it costs anything between two scrapes. A database with 1,000 families takes milliseconds:
//! numbers are taken family by family, in one look at its view, and written metric by metric.

use super::numbers::{NUMBERS, NumberOf, NumberProperty, NumberSource, SharedContext};
use super::{ROCKSDB_VERSION, database};
use crate::core::Core;
use crate::db::Db;
use crate::family::{Family, View};
use crate::observe::{MetricKind, MetricLabels, MetricText, StallLedger, StallRow, Statistics};
use esker_sync::Arc;
use hashbrown::HashSet;
use std::rc::Rc;

/// A family with its labels and its view.
struct Subject<'a> {
    core: &'a Core,
    family: Arc<Family>,
    view: Arc<View>,
    labels: MetricLabels,
    /// The database's.
    moment: Rc<SharedContext>,
}

impl Subject<'_> {
    fn numbers(&self) -> NumberSource<'_> {
        NumberSource::new(self.core, &self.family, &self.view, &self.moment)
    }
}

/// A database with its labels and its families.
struct Database<'a> {
    core: &'a Core,
    labels: MetricLabels,
    families: Vec<Subject<'a>>,
}

impl Db {
    /// The database's statistics, properties and stalls as OpenMetrics text: what a monitor
    /// scrapes. `docs/statistics.md` describes it.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
    /// db.put("key", "value")?;
    /// let text = db.metrics();
    /// assert!(text.contains("# TYPE rocksdb_estimate_num_keys gauge\n"));
    /// assert!(text.ends_with("# EOF\n"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn metrics(&self) -> String {
        Db::metrics_of(&[self])
    }

    /// One text about several databases. Statistics and block caches that they share count once,
    /// with the labels of the first.
    pub fn metrics_of(databases: &[&Db]) -> String {
        let databases = named(databases);
        let families: usize = databases.iter().map(|d| d.families.len()).sum();
        let mut text = MetricText::with_capacity((64 << 10) + families * 3000);
        about(&mut text, &databases);
        of_databases(&mut text, &databases);
        of_families(&mut text, &databases);
        levels(&mut text, &databases);
        caches(&mut text, &databases);
        stalls(&mut text, &databases);
        statistics(&mut text, &databases);
        text.finish()
    }
}

/// Databases by their paths; those that have one path in common are numbered.
fn named<'a>(databases: &[&'a Db]) -> Vec<Database<'a>> {
    let mut paths: Vec<String> = Vec::new();
    let mut out = Vec::new();
    for db in databases {
        let core: &Core = db.core();
        let path = core.services.dir.display().to_string();
        let before = paths.iter().filter(|p| **p == path).count();
        let name = match before {
            0 => path.clone(),
            n => format!("{path} ({})", n + 1),
        };
        paths.push(path);
        let labels = MetricLabels::none().and("db", &name);
        let families = core.trees.families.all().into_iter();
        let moment = Rc::new(SharedContext::new());
        let families = families.map(|family| Subject {
            core,
            moment: Rc::clone(&moment),
            view: family.view(),
            labels: labels.and("cf", &family.name),
            family,
        });
        out.push(Database {
            core,
            families: families.collect(),
            labels,
        });
    }
    out
}

fn about(text: &mut MetricText, databases: &[Database<'_>]) {
    let help = "versions of the engine, and of the RocksDB whose names these are";
    text.begin("esker.build", MetricKind::Info, help);
    let labels = MetricLabels::none()
        .and("version", env!("CARGO_PKG_VERSION"))
        .and("rocksdb", ROCKSDB_VERSION);
    text.sample(&labels, 1);
    text.begin("esker.database", MetricKind::Info, "open databases");
    for db in databases {
        let mode = match (&db.core.reads.follower, db.core.admin.read_only) {
            (Some(_), _) => "secondary",
            (None, true) => "read-only",
            (None, false) => "read-write",
        };
        let id = &db.core.services.identity.db_id;
        text.sample(&db.labels.and("id", id).and("mode", mode), 1);
    }
}

fn kind(property: &NumberProperty) -> MetricKind {
    if property.is_counter {
        MetricKind::Counter
    } else {
        MetricKind::Gauge
    }
}

fn begin(text: &mut MetricText, property: &NumberProperty) {
    let name = format!("rocksdb.{}", property.name);
    text.begin(&name, kind(property), &name);
}

fn of_databases(text: &mut MetricText, databases: &[Database<'_>]) {
    let maps: Vec<_> = databases
        .iter()
        .map(|d| database::numbers(d.core))
        .collect();
    let names = maps.first().into_iter().flatten().map(|(name, _)| *name);
    for (at, name) in names.enumerate() {
        let name = format!("rocksdb.{name}");
        let help = "a figure of rocksdb.dbstats";
        text.begin(&name, MetricKind::Counter, help);
        for (db, figures) in databases.iter().zip(&maps) {
            text.sample(&db.labels, figures[at].1);
        }
    }
    text.begin(
        "rocksdb.db.uptime",
        MetricKind::Gauge,
        "seconds since the database was opened",
    );
    for db in databases {
        text.decimal(&db.labels, db.core.uptime_us() as f64 / 1e6);
    }
    for property in NUMBERS.iter().filter(|n| n.of == NumberOf::Database) {
        begin(text, property);
        for db in databases {
            let first = db.families.first();
            if let Some(value) = first.and_then(|f| (property.get)(&f.numbers())) {
                text.sample(&db.labels, value);
            }
        }
    }
}

fn of_families(text: &mut MetricText, databases: &[Database<'_>]) {
    let all: Vec<&Subject<'_>> = databases.iter().flat_map(|d| &d.families).collect();
    let rows: Vec<&NumberProperty> = NUMBERS
        .iter()
        .filter(|n| n.of == NumberOf::Family)
        .collect();
    // Row by row in memory, as they are written.
    let mut values = vec![None; all.len() * rows.len()];
    for (at, subject) in all.iter().enumerate() {
        let numbers = subject.numbers();
        for (row, property) in rows.iter().enumerate() {
            values[row * all.len() + at] = (property.get)(&numbers);
        }
    }
    for (property, values) in rows.iter().zip(values.chunks(all.len().max(1))) {
        begin(text, property);
        for (subject, value) in all.iter().zip(values) {
            if let Some(value) = value {
                text.sample(&subject.labels, *value);
            }
        }
    }
}

/// Levels down to the last with a table; level 0 in any case.
fn levels(text: &mut MetricText, databases: &[Database<'_>]) {
    let all = || databases.iter().flat_map(|d| &d.families);
    let mut labels = Vec::new();
    for subject in all() {
        let levels = subject.view.version.levels();
        let last = levels.iter().rposition(|l| !l.is_empty()).unwrap_or(0);
        for level in 0..=last.min(levels.len().saturating_sub(1)) {
            labels.push(subject.labels.and("level", &level.to_string()));
        }
    }
    type Figure = fn(&esker_lsm::version::LevelFiles) -> u64;
    let figures: [(&str, Figure); 2] = [
        ("rocksdb.num-files-at-level", |l| l.len() as u64),
        ("rocksdb.esker.bytes-at-level", |l| l.bytes()),
    ];
    for (name, figure) in figures {
        text.begin(name, MetricKind::Gauge, name);
        let mut labels = labels.iter();
        for subject in all() {
            let levels = subject.view.version.levels();
            let last = levels.iter().rposition(|l| !l.is_empty()).unwrap_or(0);
            for (level, labels) in levels.iter().take(last + 1).zip(&mut labels) {
                text.sample(labels, figure(level));
            }
        }
    }
}

/// Each cache once, under the first family that uses it.
fn caches(text: &mut MetricText, databases: &[Database<'_>]) {
    let mut seen = HashSet::new();
    let mut first = Vec::new();
    for subject in databases.iter().flat_map(|d| &d.families) {
        let cache = subject
            .family
            .reading
            .cache()
            .map(|c| Arc::as_ptr(&c).addr());
        if cache.is_some_and(|cache| seen.insert(cache)) {
            first.push(subject);
        }
    }
    for property in NUMBERS.iter().filter(|n| n.of == NumberOf::Cache) {
        begin(text, property);
        for subject in &first {
            let value = (property.get)(&subject.numbers());
            if let Some(value) = value {
                text.sample(&subject.labels, value);
            }
        }
    }
}

/// The database's ledger with all its rows, and those rows of families that held a writer back.
fn stalls(text: &mut MetricText, databases: &[Database<'_>]) {
    let mut of_databases = Vec::new();
    let mut of_families = Vec::new();
    let rows = |ledger: &StallLedger, labels: &MetricLabels, is_all: bool| {
        let rows = ledger.rows().filter(|r| is_all || r.times > 0);
        let named = |r: StallRow| {
            let labels = labels.and("cause", r.cause.name());
            (labels.and("kind", r.kind.name()), r)
        };
        rows.map(named).collect::<Vec<_>>()
    };
    for db in databases {
        db.core.writes.admission.stall_tracker.settle();
        of_databases.extend(rows(&db.core.services.stalls, &db.labels, true));
        for subject in &db.families {
            if subject.family.stalls.has_waits() {
                of_families.extend(rows(&subject.family.stalls, &subject.labels, false));
            }
        }
    }
    type Figure = fn(&StallRow) -> u64;
    let figures: [(&str, Figure); 3] = [
        ("times", |r| r.times),
        ("micros", |r| r.stall_us),
        ("writers-micros", |r| r.writers_us),
    ];
    let help = "a figure of the ledger of stalls, rocksdb.esker.stalls";
    for (of, rows) in [("db", &of_databases), ("cf", &of_families)] {
        for (what, figure) in figures {
            text.begin(
                &format!("rocksdb.esker.stalls.{of}.{what}"),
                MetricKind::Counter,
                help,
            );
            for (labels, row) in rows {
                text.sample(labels, figure(row));
            }
        }
    }
}

/// Each set of statistics once, under the first database that uses it.
fn statistics(text: &mut MetricText, databases: &[Database<'_>]) {
    let mut all: Vec<(MetricLabels, &Statistics)> = Vec::new();
    for db in databases {
        if let Some(own) = db.core.services.statistics.as_deref()
            && !all.iter().any(|(_, s)| std::ptr::eq(*s, own))
        {
            all.push((db.labels.clone(), own));
        }
    }
    text.statistics(&all);
}
