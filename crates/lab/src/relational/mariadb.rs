//! MariaDB with InnoDB or MyRocks: a server on loopback in a temporary directory, prepared
//! statements.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use mysql::consts::CapabilityFlags;
use mysql::prelude::Queryable as _;
use mysql::{Conn, Opts, OptsBuilder, Params};
use rustix::process::Signal;

use super::embedded::FANOUT;
use super::engine::{
    Durability, Engine, EngineInfo, EnginePlan, Outcome, Session, Shape, TransactionError, Visit,
};
use super::row::Value;
use super::server::{Server, ServerDirectory, free_port, program};
use super::sql::{Connection, Dialect, Sql, SqlSession, Statement};
use crate::process::{Usage, directory_bytes};
use crate::{Failure, Result};

/// Bytes of a page of InnoDB.
const PAGE: u64 = 16 << 10;

/// The storage engine of the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// A B-tree, updated in place.
    InnoDb,
    /// RocksDB: the plugin that is installed, or the one of this file.
    MyRocks(Option<PathBuf>),
}

/// A server that runs.
pub struct MariaDb {
    // Dropped in this order: the connection, then the server.
    admin: std::sync::Mutex<Conn>,
    server: Server,
    storage: Storage,
    options: Opts,
    sql: Sql,
    data: PathBuf,
    facts: EngineInfo,
}

fn failure(error: &mysql::Error) -> Failure {
    Failure::new(format!("MariaDB: {error}"))
}

fn trouble(error: mysql::Error) -> TransactionError {
    // Lock wait timeout, deadlock.
    match &error {
        mysql::Error::MySqlError(inner) if matches!(inner.code, 1205 | 1213) => {
            TransactionError::Conflict
        }
        _ => TransactionError::Failed(failure(&error)),
    }
}

/// The programs, or why there are none.
///
/// # Errors
/// They are not installed, or the plugin of MyRocks is not.
pub fn programs(storage: &Storage) -> Result<(PathBuf, PathBuf)> {
    let find = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| program(name, &[]));
        found.ok_or_else(|| Failure::new(format!("MariaDB is not installed: no {}", names[0])))
    };
    let install = find(["mariadb-install-db", "mysql_install_db"])?;
    let server = find(["mariadbd", "mysqld"])?;
    match storage {
        Storage::MyRocks(None) if plugin().is_none() => {
            Err(Failure::new("MariaDB's plugin ha_rocksdb is not installed"))
        }
        Storage::MyRocks(Some(file)) if !file.is_file() => {
            let file = file.display();
            Err(Failure::new(format!("there is no plugin {file}")))
        }
        _ => Ok((install, server)),
    }
}

/// The directory of the plugin.
fn plugin() -> Option<PathBuf> {
    let known = [
        "/usr/lib/mysql/plugin",
        "/usr/lib64/mysql/plugin",
        "/usr/lib/x86_64-linux-gnu/mariadb/plugin",
        "/usr/lib/aarch64-linux-gnu/mariadb/plugin",
        "/usr/lib/mariadb/plugin",
        "/usr/lib64/mariadb/plugin",
    ];
    let directories = known.iter().map(PathBuf::from);
    directories
        .into_iter()
        .find(|directory| directory.join("ha_rocksdb.so").is_file())
}

/// The settings that differ from MariaDB's.
fn settings(plan: &EnginePlan, storage: &Storage) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut set = |name: &str, value: String| all.insert(name.to_string(), value);
    // A commit is written to the system with 2, and synced with 1.
    let flush = match plan.durability {
        Durability::Sync => "1",
        Durability::Process => "2",
    };
    set("skip_log_bin", "1".into());
    set("performance_schema", "0".into());
    set("transaction_isolation", "READ-COMMITTED".into());
    set("innodb_flush_log_at_trx_commit", flush.into());
    match storage {
        Storage::InnoDb => {
            set(
                "innodb_buffer_pool_size",
                plan.cache.max(8 << 20).to_string(),
            );
            set(
                "innodb_log_file_size",
                (plan.memtable * 8).max(8 << 20).to_string(),
            );
            set("innodb_flush_neighbors", "0".into());
            // The default keeps 1536 pages free, three quarters of a small pool: what was changed
            // is written out soon after it was read.
            let pages = plan.cache.max(8 << 20) / PAGE;
            set(
                "innodb_lru_scan_depth",
                (pages / 16).clamp(100, 1536).to_string(),
            );
            set("innodb_flush_method", "O_DIRECT".into());
            set("innodb_doublewrite", "1".into());
        }
        Storage::MyRocks(plugin) => {
            // InnoDB has only the server's own tables then.
            set("innodb_buffer_pool_size", (8u64 << 20).to_string());
            let name = plugin.as_deref().and_then(Path::file_name);
            let name = name.map_or("ha_rocksdb".into(), |name| name.to_string_lossy());
            set("plugin_load_add", name.into_owned());
            if let Some(directory) = plugin.as_deref().and_then(Path::parent) {
                set("plugin_dir", directory.display().to_string());
                // One that is built from sources says that it is not stable.
                set("plugin_maturity", "unknown".into());
            }
            set("rocksdb_flush_log_at_trx_commit", flush.into());
            set("rocksdb_block_cache_size", plan.cache.to_string());
            // Its counters of bytes; with 0 there are none.
            set("rocksdb_stats_level", "1".into());
            let memtable = plan.memtable;
            let family = format!(
                "write_buffer_size={memtable};target_file_size_base={memtable};\
                 max_bytes_for_level_base={};max_bytes_for_level_multiplier={FANOUT};\
                 level_compaction_dynamic_level_bytes=true;compression=kNoCompression;\
                 block_based_table_factory={{block_size=8192;\
                 filter_policy=bloomfilter:10:false}}",
                4 * memtable
            );
            set("rocksdb_default_cf_options", family);
        }
    }
    all
}

/// Starts a server for `plan`.
///
/// # Errors
/// It is not installed or does not start.
pub fn open(plan: &EnginePlan, storage: Storage) -> Result<MariaDb> {
    let (install, server) = programs(&storage)?;
    let data = plan.directory.join("mariadb");
    let home = ServerDirectory::new(&data, &["mysql", "nobody"])?;
    let mut arguments = vec![
        "--no-defaults".to_string(),
        format!("--datadir={}", data.display()),
        format!("--tmpdir={}", data.display()),
        "--auth-root-authentication-method=normal".into(),
        "--skip-test-db".into(),
    ];
    home.run(&install, &arguments)?;
    arguments.truncate(3);
    let port = free_port()?;
    arguments.extend([
        "--bind-address=127.0.0.1".into(),
        format!("--port={port}"),
        format!("--socket={}/esker.sock", data.display()),
        format!("--pid-file={}/esker.pid", data.display()),
        "--skip-name-resolve".into(),
        "--max-connections=200".into(),
    ]);
    let options = settings(plan, &storage);
    arguments.extend(
        options
            .iter()
            .map(|(name, value)| format!("--{name}={value}")),
    );
    let mut server = home.start(&server, &arguments, Signal::TERM)?;
    let builder = OptsBuilder::new()
        .ip_or_hostname(Some("127.0.0.1"))
        .tcp_port(port)
        .prefer_socket(false)
        .user(Some("root"))
        .stmt_cache_size(0)
        .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS);
    let mut admin = server.wait(|| Conn::new(builder.clone()).map_err(|e| failure(&e)))?;
    let run = |admin: &mut Conn, text: &str| admin.query_drop(text).map_err(|e| failure(&e));
    run(&mut admin, "CREATE DATABASE esker")?;
    run(&mut admin, "USE esker")?;
    let engine = match storage {
        Storage::InnoDb => "InnoDB",
        Storage::MyRocks(_) => "ROCKSDB",
    };
    let sql = Sql::new(Dialect::MariaDb(engine), plan.schema.clone());
    for statement in sql.create() {
        run(&mut admin, &statement)?;
    }
    let version: Option<String> = admin
        .query_first("SELECT VERSION()")
        .map_err(|e| failure(&e))?;
    Ok(MariaDb {
        admin: std::sync::Mutex::new(admin),
        server,
        facts: facts(plan, &storage, options, &version.unwrap_or_default()),
        storage,
        options: builder.db_name(Some("esker")).into(),
        sql,
        data,
    })
}

fn facts(
    plan: &EnginePlan,
    storage: &Storage,
    options: BTreeMap<String, String>,
    version: &str,
) -> EngineInfo {
    let (name, variable, shape) = match storage {
        Storage::InnoDb => (
            "InnoDB",
            "innodb_flush_log_at_trx_commit",
            Shape::InPlace {
                page: PAGE as f64,
                copies: 2.0,
            },
        ),
        Storage::MyRocks(_) => (
            "MyRocks",
            "rocksdb_flush_log_at_trx_commit",
            Shape::Lsm { fanout: FANOUT },
        ),
    };
    let number = match plan.durability {
        Durability::Sync => "1",
        Durability::Process => "2 (and a sync each second)",
    };
    EngineInfo {
        name: format!("{name} in MariaDB {version}"),
        options,
        durability: format!("{variable} = {number}"),
        shape,
    }
}

impl MariaDb {
    fn admin<T>(&self, work: impl FnOnce(&mut Conn) -> mysql::Result<T>) -> Result<T> {
        let mut admin = self
            .admin
            .lock()
            .map_err(|_| Failure::new("a thread with the connection panicked"))?;
        work(&mut admin).map_err(|e| failure(&e))
    }

    /// Writes all changed pages of InnoDB.
    fn clean_pages(&self) -> Result<()> {
        let set =
            |name: &str, to: &str| format!("SET GLOBAL innodb_max_dirty_pages_pct{name} = {to}");
        self.admin(|admin| admin.query_drop(set("_lwm", "0")))?;
        self.admin(|admin| admin.query_drop(set("", "0")))?;
        let begin = std::time::Instant::now();
        while begin.elapsed().as_secs() < 60 && !crate::interrupt::stopped() {
            let dirty: Option<(String, u64)> = self.admin(|admin| {
                admin.query_first("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'")
            })?;
            if dirty.is_none_or(|(_, pages)| pages == 0) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        self.admin(|admin| admin.query_drop(set("", "90")))
    }

    /// The server's process, for tests.
    #[cfg(test)]
    pub(crate) fn process(&self) -> u32 {
        self.server.id()
    }
}

impl Engine for MariaDb {
    fn facts(&self) -> EngineInfo {
        self.facts.clone()
    }

    fn session(&self) -> Result<Box<dyn Session>> {
        let connection = Conn::new(self.options.clone()).map_err(|e| failure(&e))?;
        Ok(Box::new(SqlSession {
            connection: MariaConnection {
                connection,
                prepared: HashMap::new(),
            },
            sql: self.sql.clone(),
        }))
    }

    fn build_index(&self, table: usize, index: usize) -> Result<()> {
        let text = self.sql.create_index(table, index);
        self.admin(|admin| admin.query_drop(text))
    }

    fn settle(&self) -> Result<()> {
        match &self.storage {
            Storage::InnoDb => self.clean_pages()?,
            Storage::MyRocks(_) => self.admin(|admin| {
                admin.query_drop("SET GLOBAL rocksdb_force_flush_memtable_now = 1")
            })?,
        }
        self.server.wait_until_quiet();
        Ok(())
    }

    fn server_usage(&self) -> Option<Usage> {
        Some(self.server.usage())
    }

    fn written(&self) -> Result<Vec<(&'static str, u64)>> {
        let text = "SHOW GLOBAL STATUS WHERE Variable_name LIKE 'Innodb\\_%written' \
                    OR Variable_name LIKE 'rocksdb\\_%\\_bytes'";
        let found: Vec<(String, u64)> = self.admin(|admin| admin.query(text))?;
        let of = |name: &str| {
            let known = found
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name));
            known.map_or(0, |(_, count)| *count)
        };
        let log = of("Innodb_os_log_written");
        let pages = of("Innodb_pages_written") * PAGE;
        let doublewrite = of("Innodb_dblwr_pages_written") * PAGE;
        Ok(match &self.storage {
            Storage::InnoDb => vec![("log", log), ("pages", pages), ("doublewrite", doublewrite)],
            Storage::MyRocks(_) => vec![
                ("log", of("Rocksdb_wal_bytes")),
                ("flush", of("Rocksdb_flush_write_bytes")),
                ("compaction", of("Rocksdb_compact_write_bytes")),
                // InnoDB has the server's own tables.
                ("server's tables", log + pages + doublewrite),
            ],
        })
    }

    fn counts_written(&self) -> &'static str {
        match &self.storage {
            Storage::InnoDb => {
                "Innodb_os_log_written, and Innodb_pages_written and Innodb_dblwr_pages_written \
                 in pages of 16 KB"
            }
            Storage::MyRocks(_) => {
                "rocksdb_wal_bytes, rocksdb_flush_write_bytes, rocksdb_compact_write_bytes, and \
                 what InnoDB writes for the server's own tables; not the MANIFEST"
            }
        }
    }

    fn disk_bytes(&self) -> u64 {
        directory_bytes(Path::new(&self.data))
    }
}

struct MariaConnection {
    connection: Conn,
    prepared: HashMap<Statement, mysql::Statement>,
}

impl MariaConnection {
    fn prepare(&mut self, sql: &Sql, statement: &Statement) -> Outcome<mysql::Statement> {
        if let Some(found) = self.prepared.get(statement) {
            return Ok(found.clone());
        }
        let made = self.connection.prep(sql.text(statement)).map_err(trouble)?;
        self.prepared.insert(statement.clone(), made.clone());
        Ok(made)
    }
}

fn parameters(values: &[Value]) -> Params {
    let one = |value: &Value| match value {
        Value::Absent => mysql::Value::NULL,
        Value::Int(number) => mysql::Value::Int(*number),
        Value::Bytes(bytes) => mysql::Value::Bytes(bytes.clone()),
    };
    Params::Positional(values.iter().map(one).collect())
}

fn values_of(row: mysql::Row) -> Vec<Value> {
    let one = |value: mysql::Value| match value {
        mysql::Value::Int(number) => Value::Int(number),
        mysql::Value::Bytes(bytes) => Value::Bytes(bytes),
        _ => Value::Absent,
    };
    let values = row.unwrap_raw().into_iter();
    values
        .map(|value| value.map_or(Value::Absent, one))
        .collect()
}

impl Connection for MariaConnection {
    fn execute(&mut self, sql: &Sql, statement: &Statement, values: &[Value]) -> Outcome<u64> {
        let prepared = self.prepare(sql, statement)?;
        let done = self
            .connection
            .exec_iter(&prepared, parameters(values))
            .map_err(trouble)?;
        Ok(done.affected_rows())
    }

    fn query(
        &mut self,
        sql: &Sql,
        statement: &Statement,
        values: &[Value],
        visit: &mut Visit<'_>,
    ) -> Outcome<()> {
        let prepared = self.prepare(sql, statement)?;
        let rows = self
            .connection
            .exec_iter(&prepared, parameters(values))
            .map_err(trouble)?;
        for row in rows {
            if !visit(&values_of(row.map_err(trouble)?)) {
                break;
            }
        }
        Ok(())
    }

    fn run(&mut self, text: &str) -> Outcome<()> {
        self.connection.query_drop(text).map_err(trouble)
    }
}
