//! SQLite behind the relational workloads, through the crate `rusqlite`: statements of its own
//! dialect, a log in front of the B-tree, one writer at a time.
//!
//! Compiled only with the feature `peer-sqlite`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, ToSql};

use super::engine::{
    Durability, Engine, EngineInfo, EnginePlan, Outcome, Session, Shape, TransactionError, Visit,
};
use super::row::Value;
use super::sql::{Connection, Dialect, Sql, SqlSession, Statement};
use crate::process::directory_bytes;
use crate::{Failure, Result};

/// An open database.
pub struct Sqlite {
    file: PathBuf,
    pragmas: String,
    sql: Sql,
    facts: EngineInfo,
}

fn failure(error: &rusqlite::Error) -> Failure {
    Failure::new(format!("SQLite: {error}"))
}

fn trouble(error: rusqlite::Error) -> TransactionError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => TransactionError::Conflict,
        _ => TransactionError::Failed(failure(&error)),
    }
}

/// Opens an engine for `plan`.
///
/// # Errors
/// As reported by SQLite.
pub fn open(plan: &EnginePlan) -> Result<Sqlite> {
    let directory = plan.directory.join("sqlite");
    std::fs::create_dir_all(&directory)?;
    let synchronous = match plan.durability {
        Durability::Sync => "FULL",
        Durability::Process => "NORMAL",
    };
    // The cache belongs to a connection, so that it is divided among those that a run has.
    let cache = plan.cache / 1024 / (plan.sessions.max(1) as u64);
    let pages = (plan.memtable / 4096).max(1000);
    let pragmas = format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; \
         PRAGMA cache_size = -{cache}; PRAGMA wal_autocheckpoint = {pages}; \
         PRAGMA busy_timeout = 10000;"
    );
    let sql = Sql::new(Dialect::Sqlite, plan.schema.clone());
    let owned = |name: &str, value: String| (name.to_string(), value);
    let options = BTreeMap::from([
        owned("journal_mode", "WAL".into()),
        owned("synchronous", synchronous.into()),
        owned("cache_size", format!("-{cache} (each connection)")),
        owned("wal_autocheckpoint", pages.to_string()),
    ]);
    let opened = Sqlite {
        file: directory.join("data.db"),
        pragmas,
        facts: EngineInfo {
            name: format!("SQLite {}", rusqlite::version()),
            options,
            durability: format!("synchronous = {synchronous}, journal_mode = WAL"),
            shape: Shape::InPlace {
                page: 4096.0,
                copies: 2.0,
            },
        },
        sql,
    };
    let connection = opened.connect()?;
    for statement in opened.sql.create() {
        connection
            .execute_batch(&statement)
            .map_err(|e| failure(&e))?;
    }
    Ok(opened)
}

impl Sqlite {
    fn connect(&self) -> Result<rusqlite::Connection> {
        let connection = rusqlite::Connection::open(&self.file).map_err(|e| failure(&e))?;
        connection
            .execute_batch(&self.pragmas)
            .map_err(|e| failure(&e))?;
        connection.set_prepared_statement_cache_capacity(256);
        Ok(connection)
    }
}

impl Engine for Sqlite {
    fn facts(&self) -> EngineInfo {
        self.facts.clone()
    }

    fn session(&self) -> Result<Box<dyn Session>> {
        Ok(Box::new(SqlSession {
            connection: SqliteConnection(self.connect()?),
            sql: self.sql.clone(),
        }))
    }

    fn build_index(&self, table: usize, index: usize) -> Result<()> {
        let statement = self.sql.create_index(table, index);
        self.connect()?
            .execute_batch(&statement)
            .map_err(|e| failure(&e))
    }

    fn settle(&self) -> Result<()> {
        let connection = self.connect()?;
        let done = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        done.map_err(|e| failure(&e))
    }

    fn disk_bytes(&self) -> u64 {
        directory_bytes(self.file.parent().unwrap_or(Path::new("/nonexistent")))
    }
}

struct SqliteConnection(rusqlite::Connection);

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Value::Absent => ToSqlOutput::Borrowed(ValueRef::Null),
            Value::Int(number) => ToSqlOutput::Borrowed(ValueRef::Integer(*number)),
            Value::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

fn values_of(row: &rusqlite::Row<'_>, width: usize) -> rusqlite::Result<Vec<Value>> {
    let one = |at: usize| {
        Ok(match row.get_ref(at)? {
            ValueRef::Integer(number) => Value::Int(number),
            ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
            _ => Value::Absent,
        })
    };
    (0..width).map(one).collect()
}

impl Connection for SqliteConnection {
    fn execute(&mut self, sql: &Sql, statement: &Statement, values: &[Value]) -> Outcome<u64> {
        let text = sql.text(statement);
        let mut prepared = self.0.prepare_cached(&text).map_err(trouble)?;
        let parameters = rusqlite::params_from_iter(values);
        let changed = prepared.execute(parameters).map_err(trouble)?;
        Ok(changed as u64)
    }

    fn query(
        &mut self,
        sql: &Sql,
        statement: &Statement,
        values: &[Value],
        visit: &mut Visit<'_>,
    ) -> Outcome<()> {
        let text = sql.text(statement);
        let mut prepared = self.0.prepare_cached(&text).map_err(trouble)?;
        let width = prepared.column_count();
        let parameters = rusqlite::params_from_iter(values);
        let mut rows = prepared.query(parameters).map_err(trouble)?;
        while let Some(row) = rows.next().map_err(trouble)? {
            if !visit(&values_of(row, width).map_err(trouble)?) {
                break;
            }
        }
        Ok(())
    }

    fn run(&mut self, text: &str) -> Outcome<()> {
        self.0.execute_batch(text).map_err(trouble)
    }

    fn begin(&mut self) -> Outcome<()> {
        // The lock of the one writer is taken at once, so that no reader has to become one.
        self.run("BEGIN IMMEDIATE")
    }

    fn rollback(&mut self) -> Outcome<()> {
        // A failure may have ended it.
        if self.0.is_autocommit() {
            return Ok(());
        }
        self.run("ROLLBACK")
    }
}
