//! `compact0` and `compact1`: all tables of one level go into the next level that has data.

use esker::{Db, FamilyHandle};

use crate::Result;

/// Compacts level 0, or the first level below it with data when `from` is 1; says what was done.
pub(super) fn compact(db: &Db, family: &FamilyHandle, from: u32) -> Result<String> {
    let levels = db.family_metadata(family).levels;
    let next = |least: u8| {
        let mut with_data = levels.iter().filter(|level| !level.files.is_empty());
        with_data.find(|level| level.level >= least)
    };
    let source = match from {
        0 => levels.first().filter(|level| !level.files.is_empty()),
        _ => next(1),
    };
    let Some(source) = source else {
        return Ok("found 0 files to compact".into());
    };
    let Some(target) = next(source.level + 1) else {
        return Ok(format!("found no data beyond L{}", source.level));
    };
    let names: Vec<_> = source.files.iter().map(|file| file.path()).collect();
    db.compact_files(family, &names, target.level)?;
    Ok(format!(
        "compacted {} files from L{} to L{}",
        names.len(),
        source.level,
        target.level
    ))
}
