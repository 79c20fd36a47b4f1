//! PostgreSQL: a cluster in a temporary directory, a server on loopback, prepared statements.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::ToSql;
use postgres::{Client, Config, NoTls};
use rustix::process::Signal;

use super::engine::{
    Durability, Engine, EngineInfo, EnginePlan, Outcome, Session, Shape, TransactionError, Visit,
};
use super::row::Value;
use super::server::{Server, ServerDirectory, free_port, program};
use super::sql::{Connection, Dialect, Sql, SqlSession, Statement};
use crate::process::{Usage, directory_bytes};
use crate::{Failure, Result};

/// A server that runs.
pub struct Postgres {
    // Dropped in this order: the connection, then the server.
    admin: std::sync::Mutex<Client>,
    server: Server,
    config: Config,
    sql: Sql,
    data: PathBuf,
    facts: EngineInfo,
    durability: Durability,
    /// True if this version has the counters of [`WRITTEN`].
    counts: bool,
}

/// Bytes of a page, of tables and of the log.
const PAGE: u64 = 8192;

/// Bytes of the log, how often it was written, pages of tables and indexes, pages of transaction
/// states, bytes of temporary files: since the cluster was made. Pages that a backend writes by
/// itself include those by which files grow. Of versions 14 to 16.
const WRITTEN: &str = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint, \
    (SELECT wal_write FROM pg_stat_wal)::bigint, \
    (SELECT buffers_checkpoint + buffers_clean + buffers_backend FROM pg_stat_bgwriter)::bigint, \
    (SELECT sum(blks_written) FROM pg_stat_slru)::bigint, \
    (SELECT sum(temp_bytes) FROM pg_stat_database)::bigint";

fn failure(error: &postgres::Error) -> Failure {
    match error.as_db_error() {
        Some(db) => Failure::new(format!(
            "PostgreSQL: {} ({})",
            db.message(),
            db.code().code()
        )),
        None => Failure::new(format!("PostgreSQL: {error}")),
    }
}

fn trouble(error: postgres::Error) -> TransactionError {
    let passing = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
    ];
    match error.code() {
        Some(code) if passing.contains(code) => TransactionError::Conflict,
        _ => TransactionError::Failed(failure(&error)),
    }
}

/// Where Debian has the programs of each version, the newest first.
fn directories() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let mut all: Vec<(u32, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    all.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    all.into_iter().map(|(_, path)| path).collect()
}

/// The programs, or why there are none.
///
/// # Errors
/// They are not installed.
pub fn programs() -> Result<(PathBuf, PathBuf)> {
    let find = |name: &str| {
        program(name, &directories())
            .ok_or_else(|| Failure::new(format!("PostgreSQL is not installed: no {name}")))
    };
    Ok((find("initdb")?, find("postgres")?))
}

/// The settings that differ from PostgreSQL's.
fn settings(plan: &EnginePlan) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut set = |name: &str, value: String| all.insert(name.to_string(), value);
    set("shared_buffers", format!("{}kB", plan.cache / 1024));
    // The least that it takes is two segments of 16 MB.
    set(
        "max_wal_size",
        format!("{}MB", ((plan.memtable * 8) >> 20).max(32)),
    );
    set("wal_level", "minimal".into());
    set("max_wal_senders", "0".into());
    set("checkpoint_timeout", "5min".into());
    set("jit", "off".into());
    set("max_connections", "200".into());
    set("synchronous_commit", "on".into());
    let fsync = plan.durability == Durability::Sync;
    set("fsync", if fsync { "on" } else { "off" }.into());
    all
}

/// Starts a server for `plan`.
///
/// # Errors
/// It is not installed or does not start.
pub fn open(plan: &EnginePlan) -> Result<Postgres> {
    let (initdb, postgres) = programs()?;
    let data = plan.directory.join("postgres");
    let home = ServerDirectory::new(&data, &["postgres", "nobody"])?;
    let words = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let path = data.display().to_string();
    let mut arguments = words(&["--auth=trust", "--username=esker", "--no-sync"]);
    arguments.extend(words(&["--encoding=SQL_ASCII", "--locale=C", "--pgdata"]));
    arguments.push(path.clone());
    home.run(&initdb, &arguments)?;
    let port = free_port()?;
    let mut arguments = words(&["-D", &path, "-h", "127.0.0.1", "-k", ""]);
    arguments.extend(words(&["-p", &port.to_string()]));
    let options = settings(plan);
    for (name, value) in &options {
        arguments.extend(words(&["-c", &format!("{name}={value}")]));
    }
    let mut server = home.start(&postgres, &arguments, Signal::INT)?;
    let mut config = Config::new();
    config
        .host("127.0.0.1")
        .port(port)
        .user("esker")
        .dbname("postgres");
    let connect = || config.connect(NoTls).map_err(|e| failure(&e));
    let mut admin = server.wait(connect)?;
    let sql = Sql::new(Dialect::Postgres, plan.schema.clone());
    for statement in sql.create() {
        admin.batch_execute(&statement).map_err(|e| failure(&e))?;
    }
    let version = admin
        .query_one("SHOW server_version", &[])
        .map_err(|e| failure(&e))?;
    let version: String = version.get(0);
    let counts = admin.query_one(WRITTEN, &[]).is_ok();
    let durability = match plan.durability {
        Durability::Sync => "fsync = on, synchronous_commit = on",
        Durability::Process => "fsync = off, synchronous_commit = on",
    };
    let facts = EngineInfo {
        name: format!("PostgreSQL {version}"),
        options,
        durability: durability.into(),
        // Pages are logged as a whole after each checkpoint.
        shape: Shape::InPlace {
            page: 8192.0,
            copies: 2.0,
        },
    };
    Ok(Postgres {
        admin: std::sync::Mutex::new(admin),
        server,
        config,
        sql,
        data,
        facts,
        durability: plan.durability,
        counts,
    })
}

impl Postgres {
    fn admin(&self, statement: &str) -> Result<()> {
        let mut admin = self
            .admin
            .lock()
            .map_err(|_| Failure::new("a thread with the connection panicked"))?;
        admin.batch_execute(statement).map_err(|e| failure(&e))
    }

    /// The counters of [`WRITTEN`].
    fn counters(&self) -> Result<[u64; 5]> {
        let mut admin = self
            .admin
            .lock()
            .map_err(|_| Failure::new("a thread with the connection panicked"))?;
        let row = admin.query_one(WRITTEN, &[]).map_err(|e| failure(&e))?;
        Ok(std::array::from_fn(|at| {
            let count: Option<i64> = row.get(at);
            count.map_or(0, i64::unsigned_abs)
        }))
    }

    /// The server's process, for tests.
    #[cfg(test)]
    pub(crate) fn process(&self) -> u32 {
        self.server.id()
    }
}

impl Engine for Postgres {
    fn facts(&self) -> EngineInfo {
        self.facts.clone()
    }

    fn session(&self) -> Result<Box<dyn Session>> {
        let client = self.config.connect(NoTls).map_err(|e| failure(&e))?;
        Ok(Box::new(SqlSession {
            connection: PostgresConnection {
                client,
                prepared: HashMap::new(),
            },
            sql: self.sql.clone(),
        }))
    }

    fn build_index(&self, table: usize, index: usize) -> Result<()> {
        self.admin(&self.sql.create_index(table, index))
    }

    fn settle(&self) -> Result<()> {
        self.admin("VACUUM (ANALYZE)")?;
        self.admin("CHECKPOINT")?;
        self.server.wait_until_quiet();
        Ok(())
    }

    fn server_usage(&self) -> Option<Usage> {
        Some(self.server.usage())
    }

    fn written(&self) -> Result<Vec<(&'static str, u64)>> {
        if !self.counts {
            return Ok(Vec::new());
        }
        let [log, times, pages, states, temporary] = self.counters()?;
        let log = match self.durability {
            // The page in which a commit ends is synced with it, and once more with the next.
            Durability::Sync => log.max(times * PAGE),
            Durability::Process => log,
        };
        Ok(vec![
            ("log", log),
            ("pages", pages * PAGE),
            ("transaction states", states * PAGE),
            ("temporary files", temporary),
        ])
    }

    fn counts_written(&self) -> &'static str {
        match (self.counts, self.durability) {
            (false, _) => "as the kernel counts for the server's processes",
            (true, Durability::Process) => {
                "bytes of the log by its position; buffers_checkpoint, buffers_clean and \
                 buffers_backend of pg_stat_bgwriter and blks_written of pg_stat_slru in pages \
                 of 8 KB; temp_bytes of pg_stat_database. Not counted: indexes that are built in \
                 bulk, and a page of the log that is written again before it reaches the device"
            }
            (true, Durability::Sync) => {
                "bytes of the log by its position or wal_write in pages of 8 KB, whichever is \
                 more; buffers_checkpoint, buffers_clean and buffers_backend of pg_stat_bgwriter \
                 and blks_written of pg_stat_slru in pages of 8 KB; temp_bytes of \
                 pg_stat_database. Not counted: indexes that are built in bulk"
            }
        }
    }

    fn disk_bytes(&self) -> u64 {
        directory_bytes(Path::new(&self.data))
    }
}

struct PostgresConnection {
    client: Client,
    prepared: HashMap<Statement, postgres::Statement>,
}

impl PostgresConnection {
    fn prepare(&mut self, sql: &Sql, statement: &Statement) -> Outcome<postgres::Statement> {
        if let Some(found) = self.prepared.get(statement) {
            return Ok(found.clone());
        }
        let made = self.client.prepare(&sql.text(statement)).map_err(trouble)?;
        self.prepared.insert(statement.clone(), made.clone());
        Ok(made)
    }
}

/// A value as a parameter.
fn parameter(value: &Value) -> &(dyn ToSql + Sync) {
    match value {
        Value::Absent => &None::<i64>,
        Value::Int(number) => number,
        Value::Bytes(bytes) => bytes,
    }
}

fn values_of(row: &postgres::Row) -> Vec<Value> {
    let columns = row.columns().iter().enumerate();
    columns
        .map(|(at, column)| match *column.type_() {
            postgres::types::Type::BYTEA => Value::Bytes(row.get(at)),
            _ => Value::Int(row.get(at)),
        })
        .collect()
}

impl Connection for PostgresConnection {
    fn execute(&mut self, sql: &Sql, statement: &Statement, values: &[Value]) -> Outcome<u64> {
        let prepared = self.prepare(sql, statement)?;
        let parameters: Vec<_> = values.iter().map(parameter).collect();
        self.client.execute(&prepared, &parameters).map_err(trouble)
    }

    fn query(
        &mut self,
        sql: &Sql,
        statement: &Statement,
        values: &[Value],
        visit: &mut Visit<'_>,
    ) -> Outcome<()> {
        let prepared = self.prepare(sql, statement)?;
        let parameters = values.iter().map(parameter);
        let mut rows = self
            .client
            .query_raw(&prepared, parameters)
            .map_err(trouble)?;
        while let Some(row) = rows.next().map_err(trouble)? {
            if !visit(&values_of(&row)) {
                break;
            }
        }
        Ok(())
    }

    fn run(&mut self, text: &str) -> Outcome<()> {
        self.client.batch_execute(text).map_err(trouble)
    }
}
