//! Saving the contents of the block cache by hand.

use super::Db;
use crate::job::saved_cache;
use esker_status::Result;

impl Db {
    /// Saves which of the database's blocks are in the block cache, as closing does with
    /// `save_block_cache`: an opening with that option loads them again, in the background and as
    /// far as there is room. Returns how many blocks it saved the names of; the file has a few
    /// bytes for each. A crash after that costs only what the cache learned since.
    ///
    /// `NotSupported` where the database was opened for reading; `ShutdownInProgress` while it
    /// closes.
    ///
    /// ```
    /// # fn main() -> esker::Result<()> {
    /// # let dir = tempfile::tempdir().expect("a directory");
    /// use esker::{Db, Options};
    ///
    /// let options = Options::new().create_if_missing(true).set("save_block_cache", "true")?;
    /// let db = Db::open(dir.path(), options)?;
    /// db.put("key", "value")?;
    /// db.flush()?;
    /// db.get("key")?;
    /// assert_eq!(db.save_block_cache()?, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn save_block_cache(&self) -> Result<u64> {
        self.core().check_open_for_writes()?;
        saved_cache::save(self.core(), false)
    }
}
