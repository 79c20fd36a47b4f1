//! Creating directories durably.
//!
//! Called by whoever makes one for a database, a checkpoint or backups. A function of its
//! arguments, for any thread.

use crate::FileSystem;
use esker_status::Result;
use std::path::Path;

/// Makes the directory `dir` where it is missing, with its parents, so that it survives power loss.
pub fn make_dir(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let mut made = Vec::new();
    for place in dir.ancestors() {
        if place.as_os_str().is_empty() || fs.exists(place)? {
            break;
        }
        made.push(place);
    }
    fs.create_dir_all(dir)?;
    for place in made {
        let parent = place.parent().filter(|p| !p.as_os_str().is_empty());
        fs.sync_dir(parent.unwrap_or(Path::new(".")))?;
    }
    Ok(())
}
