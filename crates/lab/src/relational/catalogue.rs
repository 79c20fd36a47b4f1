//! Which engines there are, and why some of them cannot be run.

use std::path::Path;

use super::engine::{Engine, EnginePlan};
use super::{embedded, library};
use crate::dlopen::LibTransactions;
use crate::{Failure, Result};

/// Names of engines that a workload can be run on, in the order of tables.
pub const NAMES: [&str; 9] = [
    "esker", "lib", "lmdb", "redb", "fjall", "sqlite", "postgres", "innodb", "myrocks",
];

/// The feature that an engine is behind, if it is behind one.
pub fn feature(kind: &str) -> Option<&'static str> {
    match kind {
        "lmdb" => Some("peer-lmdb"),
        "redb" => Some("peer-redb"),
        "fjall" => Some("peer-fjall"),
        "sqlite" => Some("peer-sqlite"),
        "postgres" | "innodb" | "myrocks" => Some("servers"),
        _ => None,
    }
}

/// Tells whether an engine is a process of its own, which is asked over a socket.
pub fn is_server(kind: &str) -> bool {
    feature(kind) == Some("servers")
}

/// The name of an engine in tables.
pub fn title(kind: &str) -> &str {
    match kind {
        "esker" => "Esker",
        "lib" => "RocksDB",
        "lmdb" => "LMDB",
        "sqlite" => "SQLite",
        "postgres" => "PostgreSQL",
        "innodb" => "InnoDB",
        "myrocks" => "MyRocks",
        other => other,
    }
}

/// Checks that this build drives an engine, and that its parts are installed.
///
/// # Errors
/// Why it cannot be run.
pub fn check(kind: &str, path: Option<&str>) -> Result<()> {
    match (kind, path) {
        ("esker", _) => Ok(()),
        ("lib", Some(path)) if Path::new(path).is_file() => LibTransactions::check(Path::new(path)),
        ("lib", Some(path)) => Err(Failure::new(format!("there is no library {path}"))),
        ("lib", None) => Err(Failure::new(
            "lib needs the path of a librocksdb.so: lib:PATH",
        )),
        #[cfg(feature = "peer-lmdb")]
        ("lmdb", _) => Ok(()),
        #[cfg(feature = "peer-redb")]
        ("redb", _) => Ok(()),
        #[cfg(feature = "peer-fjall")]
        ("fjall", _) => Ok(()),
        #[cfg(feature = "peer-sqlite")]
        ("sqlite", _) => Ok(()),
        #[cfg(feature = "servers")]
        ("postgres", _) => super::postgres::programs().map(|_| ()),
        #[cfg(feature = "servers")]
        ("innodb" | "myrocks", path) => super::mariadb::programs(&storage(kind, path)).map(|_| ()),
        (kind, _) => Err(match feature(kind) {
            Some(feature) => Failure::new(format!("this build lacks the feature {feature}")),
            None => {
                let names = NAMES.join(", ");
                Failure::new(format!("no engine is called {kind}; there are {names}"))
            }
        }),
    }
}

/// The tables' engine in MariaDB; `path` is that of a plugin other than the installed one.
#[cfg(feature = "servers")]
fn storage(kind: &str, path: Option<&str>) -> super::mariadb::Storage {
    match kind {
        "myrocks" => super::mariadb::Storage::MyRocks(path.map(Into::into)),
        _ => super::mariadb::Storage::InnoDb,
    }
}

/// Opens an engine; `path` is that of a library or a plugin.
///
/// # Errors
/// It cannot be run, or does not open.
pub fn open(kind: &str, path: Option<&str>, plan: &EnginePlan) -> Result<Box<dyn Engine>> {
    check(kind, path)?;
    match (kind, path) {
        ("lib", Some(path)) => Ok(Box::new(library::open(Path::new(path), plan)?)),
        #[cfg(feature = "peer-lmdb")]
        ("lmdb", _) => Ok(Box::new(super::lmdb::open(plan)?)),
        #[cfg(feature = "peer-redb")]
        ("redb", _) => Ok(Box::new(super::redb::open(plan)?)),
        #[cfg(feature = "peer-fjall")]
        ("fjall", _) => Ok(Box::new(super::fjall::open(plan)?)),
        #[cfg(feature = "peer-sqlite")]
        ("sqlite", _) => Ok(Box::new(super::sqlite::open(plan)?)),
        #[cfg(feature = "servers")]
        ("postgres", _) => Ok(Box::new(super::postgres::open(plan)?)),
        #[cfg(feature = "servers")]
        ("innodb" | "myrocks", path) => {
            Ok(Box::new(super::mariadb::open(plan, storage(kind, path))?))
        }
        _ => Ok(Box::new(embedded::open(plan)?)),
    }
}
