//! Properties of a table file, read without the database that it belongs to.

use esker_env::{Env, ReadOptions as FileReadOptions};
use esker_files::table;
use esker_format::properties::TableProperties;
use esker_status::Result;
use std::path::Path;

/// The properties of the table at `path`: where it came from, what it holds, how it was made. No
/// comparator is needed, and no other part of the file is looked at.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker::{Db, Env, Options, read_table_properties};
///
/// let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
/// db.put("key", "value")?;
/// db.flush()?;
/// let file = &db.live_files()?[0];
/// let properties = read_table_properties(&Env::posix(), &file.path)?;
/// assert_eq!((properties.num_entries, properties.db_id.as_str()), (1, db.db_id()));
/// # Ok(())
/// # }
/// ```
pub fn read_table_properties(env: &Env, path: impl AsRef<Path>) -> Result<TableProperties> {
    let file = env
        .fs
        .open_read(path.as_ref(), FileReadOptions::default())?;
    table::read_properties(file)
}
