//! A reference to a database that listeners are given. What it refers to is known to `db` alone,
//! which stands above the events.

use esker_sync::Weak;
use std::any::Any;

/// A database, such as the one that an event is about. It does not keep the database open.
///
/// The database is meant for the duration of a call: reads, writes and properties work as ever;
/// closing it is refused, since a listener's thread is one of those that closing waits for.
#[derive(Clone, Default)]
pub struct DbRef(Option<Weak<dyn Any + Send + Sync>>);

impl DbRef {
    /// Refers to the open database whose parts are `core`.
    pub fn new(core: Option<Weak<dyn Any + Send + Sync>>) -> DbRef {
        DbRef(core)
    }

    /// The parts, while the database is there.
    pub fn parts(&self) -> Option<std::sync::Arc<dyn Any + Send + Sync>> {
        self.0.as_ref()?.upgrade()
    }
}

impl std::fmt::Debug for DbRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DbRef")
    }
}
