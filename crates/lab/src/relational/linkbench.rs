//! LinkBench: a social graph of nodes and links (Armstrong and others, SIGMOD 2013).
//!
//! Three tables: nodes; links with an index from newest to oldest; counts of visible links by node
//! and type. A change of a link writes the link, its entry in the index and its count in one
//! transaction. After a run [`verify`] counts all links again: a lost update, or an index that
//! disagrees with its table, is found by that.

pub mod graph;
pub mod verify;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::drive::{OperationResult, Pace, StepFigures, Worker, drive};
use super::engine::{Access, Engine, Rows, Scan, Session, TransactionError, retry};
use super::row::{ColumnType, Index, Row, Schema, Table, Value, size};
use crate::generate::{Rng, ValueSizes, ValueSource};
use crate::{Failure, Result, interrupt};
use graph::Graph;

/// Tables by number.
pub const NODES: usize = 0;
/// See [`NODES`].
pub const LINKS: usize = 1;
/// See [`NODES`].
pub const COUNTS: usize = 2;

// Columns of links.
const VISIBILITY: usize = 3;
const DATA: usize = 4;
const TIME: usize = 5;
const VERSION: usize = 6;
// Columns of nodes and counts.
const NODE_VERSION: usize = 2;
const NODE_DATA: usize = 4;
/// The number in a row of counts.
pub const COUNT: usize = 2;

const VISIBLE: i64 = 1;
const HIDDEN: i64 = 0;

/// Rows of a list of links at most, as the original asks for.
const LIST: u64 = 10_000;

/// The published mix: operations and how many of 10,000 requests they are.
pub const MIX: [(&str, u64); 10] = [
    ("addlink", 899),
    ("deletelink", 299),
    ("updatelink", 801),
    ("countlink", 489),
    ("getlink", 53),
    ("getlinklist", 5071),
    ("getnode", 1293),
    ("addnode", 257),
    ("updatenode", 737),
    ("deletenode", 101),
];

/// Names of the operations in the order of [`MIX`].
pub fn names() -> Vec<&'static str> {
    MIX.iter().map(|(name, _)| *name).collect()
}

/// The operation of a number below 10,000.
pub fn pick(mut number: u64) -> usize {
    for (operation, (_, share)) in MIX.iter().enumerate() {
        if number < *share {
            return operation;
        }
        number -= share;
    }
    MIX.len() - 1
}

/// The tables.
pub fn schema() -> Schema {
    use ColumnType::{Bytes, Int};
    let table = |name, columns, key, indexes| Table {
        name,
        columns,
        key,
        indexes,
    };
    let index = Index {
        name: "id1_type",
        columns: vec![1, 0, VISIBILITY, TIME],
        carried: vec![VERSION, DATA],
        later: false,
    };
    let nodes = vec![
        ("id", Int),
        ("type", Int),
        ("version", Int),
        ("time", Int),
        ("data", Bytes(1024)),
    ];
    let links = vec![
        ("link_type", Int),
        ("id1", Int),
        ("id2", Int),
        ("visibility", Int),
        ("data", Bytes(255)),
        ("time", Int),
        ("version", Int),
    ];
    let counts = vec![
        ("id", Int),
        ("link_type", Int),
        ("count", Int),
        ("time", Int),
        ("version", Int),
    ];
    Schema {
        tables: vec![
            table("nodetable", nodes, 1, vec![]),
            table("linktable", links, 3, vec![index]),
            table("counttable", counts, 2, vec![]),
        ],
    }
}

/// Sizes of the data: a node has 128 bytes, a link 8, as the original's medians.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Nodes that are loaded.
    pub nodes: u64,
    /// Bytes of a node's data.
    pub node_data: usize,
    /// Bytes of a link's data.
    pub link_data: usize,
}

/// State that all threads share.
pub struct Bench {
    graph: Graph,
    sizes: Sizes,
    /// The id of the newest node.
    newest: AtomicI64,
    clock: AtomicI64,
}

impl Bench {
    /// A graph that is not loaded yet.
    pub fn new(sizes: Sizes) -> Arc<Bench> {
        Arc::new(Bench {
            graph: Graph::new(sizes.nodes),
            sizes,
            newest: AtomicI64::new(sizes.nodes as i64),
            clock: AtomicI64::new(1),
        })
    }

    fn tick(&self) -> i64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Loads nodes, links and counts with several threads, and says how many rows and bytes.
    ///
    /// # Errors
    /// The engine's error.
    pub fn load(self: &Arc<Bench>, engine: &dyn Engine, threads: usize) -> Result<StepFigures> {
        let bench = Arc::clone(self);
        let pace = Pace {
            threads,
            ..Pace::default()
        };
        let part = self.sizes.nodes.div_ceil(threads.max(1) as u64);
        drive(engine, "load", pace, &["batch"], &|number| {
            let from = number as u64 * part + 1;
            Box::new(Loader {
                bench: Arc::clone(&bench),
                next: from,
                end: (from + part).min(bench.sizes.nodes + 1),
                values: ValueSource::new(ValueSizes::Fixed(8), 0.5),
            })
        })
    }

    /// Rows, entries of indexes and transactions that a run of the mix changed: a link that is
    /// added or updated changes its row, two entries and sometimes a count.
    pub fn changes(step: &StepFigures) -> (f64, f64) {
        let of = |name: &str| {
            let found = step.latencies.iter().find(|kind| kind.name == name);
            found.map_or(0.0, |kind| kind.service.len() as f64)
        };
        let links = of("addlink") + of("updatelink");
        let nodes = of("addnode") + of("updatenode") + of("deletenode");
        let commits = links + nodes + of("deletelink");
        (3.5 * links + 4.0 * of("deletelink") + nodes, commits)
    }

    /// Runs the mix.
    ///
    /// # Errors
    /// The engine's error.
    pub fn run(
        self: &Arc<Bench>,
        engine: &dyn Engine,
        name: &str,
        pace: Pace,
    ) -> Result<StepFigures> {
        let bench = Arc::clone(self);
        drive(engine, name, pace, &names(), &|number| {
            Box::new(Client::new(&bench, number as u64 + 1))
        })
    }

    fn link(&self, key: graph::Link, data: &[u8], visibility: i64) -> Row {
        vec![
            Value::Int(key.kind),
            Value::Int(key.id1),
            Value::Int(key.id2),
            Value::Int(visibility),
            Value::Bytes(data.to_vec()),
            Value::Int(self.tick()),
            Value::Int(0),
        ]
    }

    fn count(&self, id: i64, kind: i64, count: i64) -> Row {
        let time = Value::Int(self.tick());
        vec![
            Value::Int(id),
            Value::Int(kind),
            Value::Int(count),
            time,
            Value::Int(0),
        ]
    }
}

/// Loads a range of nodes with their links and counts, some nodes a transaction.
struct Loader {
    bench: Arc<Bench>,
    next: u64,
    end: u64,
    values: ValueSource,
}

/// Nodes of a transaction of the load.
const LOAD_NODES: u64 = 100;

impl Loader {
    fn rows_of(&mut self, id: i64, out: &mut Vec<(usize, Row)>) {
        let bench = Arc::clone(&self.bench);
        let data = self.values.value_of(bench.sizes.node_data).to_vec();
        let node = vec![
            Value::Int(id),
            Value::Int(1),
            Value::Int(0),
            Value::Int(bench.tick()),
            Value::Bytes(data),
        ];
        out.push((NODES, node));
        for kind in graph::TYPES {
            let links = bench.graph.links(id, kind);
            for key in &links {
                let data = self.values.value_of(bench.sizes.link_data).to_vec();
                out.push((LINKS, bench.link(*key, &data, VISIBLE)));
            }
            if !links.is_empty() {
                out.push((COUNTS, bench.count(id, kind, links.len() as i64)));
            }
        }
    }
}

impl Worker for Loader {
    fn operation(&mut self, session: &mut dyn Session) -> Result<Option<OperationResult>> {
        if self.next >= self.end {
            return Ok(None);
        }
        let end = (self.next + LOAD_NODES).min(self.end);
        let mut all = Vec::new();
        for id in self.next..end {
            self.rows_of(id as i64, &mut all);
        }
        self.next = end;
        let conflicts = retry(session, Access::Write, &mut |rows| {
            for (table, row) in &all {
                if !rows.insert(*table, row)? {
                    return Err(Failure::new("the database is not empty").into());
                }
            }
            Ok(())
        })?;
        Ok(Some(OperationResult {
            wrote: all.iter().map(|(_, row)| size(row)).sum(),
            conflicts,
            ..OperationResult::default()
        }))
    }
}

/// A thread that runs the mix.
pub struct Client {
    bench: Arc<Bench>,
    rng: Rng,
    values: ValueSource,
}

impl Client {
    /// A client with its own random numbers.
    pub fn new(bench: &Arc<Bench>, seed: u64) -> Client {
        Client {
            bench: Arc::clone(bench),
            rng: Rng::new(seed),
            values: ValueSource::new(ValueSizes::Fixed(8), 0.5),
        }
    }

    /// Runs one operation of the mix.
    fn one(&mut self, session: &mut dyn Session, kind: usize) -> Result<OperationResult> {
        let mut did = match MIX[kind].0 {
            "addlink" => self.add_link(session, false),
            "updatelink" => self.add_link(session, true),
            "deletelink" => self.delete_link(session),
            "countlink" => self.count_link(session),
            "getlink" => self.get_link(session),
            "getlinklist" => self.list_links(session),
            "getnode" => self.get_node(session),
            "addnode" => self.add_node(session),
            "updatenode" => self.update_node(session),
            _ => self.delete_node(session),
        }?;
        did.kind = kind;
        Ok(did)
    }

    fn node(&mut self) -> i64 {
        let newest = self.bench.newest.load(Ordering::Relaxed);
        // New nodes are read now and then, as they are in the original.
        if self.rng.below(100) == 0 {
            return newest;
        }
        self.bench.graph.node(&mut self.rng)
    }

    fn add_link(&mut self, session: &mut dyn Session, existing: bool) -> Result<OperationResult> {
        let bench = Arc::clone(&self.bench);
        let key = if existing {
            bench.graph.existing(&mut self.rng)
        } else {
            bench.graph.fresh(&mut self.rng)
        };
        let data = self.values.value_of(bench.sizes.link_data).to_vec();
        let link = bench.link(key, &data, VISIBLE);
        let mut wrote = 0;
        let conflicts = retry(session, Access::Write, &mut |rows| {
            wrote = size(&link);
            let old = rows.get(LINKS, &link[..3], true)?;
            let delta = match old {
                None if rows.insert(LINKS, &link)? => 1,
                // Somebody else has inserted it since.
                None => return Err(TransactionError::Conflict),
                Some(old) => {
                    let set = [
                        (VISIBILITY, link[VISIBILITY].clone()),
                        (DATA, link[DATA].clone()),
                        (TIME, link[TIME].clone()),
                        (VERSION, Value::Int(old[VERSION].int() + 1)),
                    ];
                    rows.update(LINKS, &link[..3], &set)?;
                    i64::from(old[VISIBILITY].int() != VISIBLE)
                }
            };
            wrote += change_count(rows, &bench, key, delta)?;
            Ok(())
        })?;
        Ok(OperationResult {
            wrote,
            conflicts,
            ..OperationResult::default()
        })
    }

    fn delete_link(&mut self, session: &mut dyn Session) -> Result<OperationResult> {
        let bench = Arc::clone(&self.bench);
        let key = bench.graph.existing(&mut self.rng);
        let values = key.values();
        let mut wrote = 0;
        let conflicts = retry(session, Access::Write, &mut |rows| {
            wrote = 0;
            let old = rows.get(LINKS, &values, true)?;
            let Some(old) = old.filter(|old| old[VISIBILITY].int() == VISIBLE) else {
                return Ok(());
            };
            // Links are hidden; the original deletes none by default.
            rows.update(LINKS, &values, &[(VISIBILITY, Value::Int(HIDDEN))])?;
            wrote = size(&old) + change_count(rows, &bench, key, -1)?;
            Ok(())
        })?;
        Ok(OperationResult {
            wrote,
            conflicts,
            ..OperationResult::default()
        })
    }

    fn count_link(&mut self, session: &mut dyn Session) -> Result<OperationResult> {
        let key = self.bench.graph.existing(&mut self.rng);
        read(
            session,
            COUNTS,
            &[Value::Int(key.id1), Value::Int(key.kind)],
        )
    }

    fn get_link(&mut self, session: &mut dyn Session) -> Result<OperationResult> {
        let key = self.bench.graph.existing(&mut self.rng);
        read(session, LINKS, &key.values())
    }

    fn list_links(&mut self, session: &mut dyn Session) -> Result<OperationResult> {
        let key = self.bench.graph.existing(&mut self.rng);
        let scan = Scan {
            table: LINKS,
            index: Some(0),
            prefix: vec![
                Value::Int(key.id1),
                Value::Int(key.kind),
                Value::Int(VISIBLE),
            ],
            descending: true,
            limit: LIST,
            ..Scan::default()
        };
        let mut did = OperationResult::default();
        did.conflicts = retry(session, Access::Read, &mut |rows| {
            did.read = 0;
            did.rows = rows.scan(&scan, &mut |row| {
                did.read += size(row);
                true
            })?;
            Ok(())
        })?;
        Ok(did)
    }

    fn get_node(&mut self, session: &mut dyn Session) -> Result<OperationResult> {
        let id = self.node();
        read(session, NODES, &[Value::Int(id)])
    }

    fn add_node(&mut self, session: &mut dyn Session) -> Result<OperationResult> {
        let id = self.bench.newest.fetch_add(1, Ordering::Relaxed) + 1;
        let data = self.values.value_of(self.bench.sizes.node_data).to_vec();
        let time = self.bench.tick();
        let node = vec![
            Value::Int(id),
            Value::Int(1),
            Value::Int(0),
            Value::Int(time),
            Value::Bytes(data),
        ];
        let conflicts = retry(session, Access::Single, &mut |rows| {
            if rows.insert(NODES, &node)? {
                return Ok(());
            }
            Err(Failure::new(format!("node {id} exists")).into())
        })?;
        Ok(OperationResult {
            wrote: size(&node),
            conflicts,
            ..OperationResult::default()
        })
    }

    fn update_node(&mut self, session: &mut dyn Session) -> Result<OperationResult> {
        let id = self.node();
        let data = self.values.value_of(self.bench.sizes.node_data).to_vec();
        let version = self.bench.tick();
        let set = [
            (NODE_VERSION, Value::Int(version)),
            (NODE_DATA, Value::Bytes(data)),
        ];
        let mut found = false;
        let conflicts = retry(session, Access::Single, &mut |rows| {
            found = rows.update(NODES, &[Value::Int(id)], &set)?;
            Ok(())
        })?;
        let wrote = u64::from(found) * (32 + set[1].1.size());
        Ok(OperationResult {
            wrote,
            conflicts,
            ..OperationResult::default()
        })
    }

    fn delete_node(&mut self, session: &mut dyn Session) -> Result<OperationResult> {
        let id = self.node();
        let mut found = false;
        let conflicts = retry(session, Access::Single, &mut |rows| {
            found = rows.delete(NODES, &[Value::Int(id)])?;
            Ok(())
        })?;
        Ok(OperationResult {
            wrote: u64::from(found) * 8,
            conflicts,
            ..OperationResult::default()
        })
    }
}

/// Changes a count, and says how many bytes that are. The caller's link is locked.
fn change_count(
    rows: &mut dyn Rows,
    bench: &Bench,
    key: graph::Link,
    delta: i64,
) -> super::engine::Outcome<u64> {
    if delta == 0 {
        return Ok(0);
    }
    let count = bench.count(key.id1, key.kind, delta.max(0));
    rows.add(COUNTS, &count, COUNT, delta)?;
    Ok(size(&count))
}

/// Reads a row by its key.
fn read(session: &mut dyn Session, table: usize, key: &[Value]) -> Result<OperationResult> {
    let mut did = OperationResult::default();
    did.conflicts = retry(session, Access::Read, &mut |rows| {
        let row = rows.get(table, key, false)?;
        did.rows = u64::from(row.is_some());
        did.read = row.map_or(0, |row| size(&row));
        Ok(())
    })?;
    Ok(did)
}

impl Worker for Client {
    fn operation(&mut self, session: &mut dyn Session) -> Result<Option<OperationResult>> {
        if interrupt::stopped() {
            return Ok(None);
        }
        let kind = pick(self.rng.below(10_000));
        self.one(session, kind).map(Some)
    }
}
