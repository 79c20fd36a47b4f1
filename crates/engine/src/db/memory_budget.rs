//! The memory budget of a database.

use super::Db;
use crate::memory::MemoryBudget;
use esker_sync::Arc;

impl Db {
    /// The budget of memory that the database shares or has for itself; `None` without one, and
    /// where it was opened for reading.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options};
    ///
    /// let options = Options::new().create_if_missing(true).set("memory_budget", "64m")?;
    /// let db = Db::open(dir.path(), options)?;
    /// let budget = db.memory_budget().expect("it was set");
    /// assert_eq!(budget.total(), 64 << 20);
    /// assert!(db.property("rocksdb.esker.memory-budget").is_some());
    /// # Ok(())
    /// # }
    /// ```
    pub fn memory_budget(&self) -> Option<&Arc<MemoryBudget>> {
        self.core().budget.as_ref().map(|part| &part.budget)
    }
}
