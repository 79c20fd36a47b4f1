//! The list of the files of an installation, and the links that give `esker` the names of RocksDB's
//! tools.
//!
//! A link is made only where nothing is, or our own link; `--uninstall` removes what the list
//! names, and nothing else.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Component, Path};

/// Where the list is, below the prefix.
const LIST: &str = "share/esker/installed";
/// The program, and the names that it answers to.
const PROGRAM: &str = "esker";
const NAMES: [&str; 2] = ["ldb", "sst_dump"];

/// Paths below the prefix.
#[derive(Debug, Default)]
pub(crate) struct InstalledFiles(BTreeSet<String>);

impl InstalledFiles {
    /// The list of an installation below `place`; empty when there is none.
    fn read(place: &Path) -> io::Result<InstalledFiles> {
        match std::fs::read_to_string(place.join(LIST)) {
            Ok(text) => Ok(InstalledFiles(text.lines().map(str::to_owned).collect())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(InstalledFiles::default()),
            Err(e) => Err(e),
        }
    }

    /// Adds a file.
    pub(crate) fn add(&mut self, path: String) {
        self.0.insert(path);
    }

    /// Writes the list, with what an earlier installation has put there.
    pub(crate) fn write(mut self, place: &Path) -> io::Result<()> {
        self.0.extend(InstalledFiles::read(place)?.0);
        let list = place.join(LIST);
        std::fs::create_dir_all(list.parent().unwrap_or(place))?;
        let lines: Vec<String> = self.0.into_iter().map(|path| path + "\n").collect();
        std::fs::write(list, lines.concat())
    }
}

/// Tells whether the link of this name is ours, or nothing is there. Another file is an error.
fn is_ours(place: &Path, name: &str) -> io::Result<bool> {
    let link = place.join("bin").join(name);
    let metadata = match link.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e),
    };
    if metadata.is_symlink() && std::fs::read_link(&link)? == Path::new(PROGRAM) {
        return Ok(true);
    }
    Err(io::Error::other(format!(
        "{} is there and is not our link: remove it, or install without --links",
        link.display()
    )))
}

/// Refuses an installation whose links would take the place of foreign files.
pub(crate) fn check_links(place: &Path) -> io::Result<()> {
    NAMES
        .iter()
        .try_for_each(|name| is_ours(place, name).map(drop))
}

/// Makes the links; their paths below the prefix.
pub(crate) fn make_links(place: &Path) -> io::Result<Vec<String>> {
    let mut made = Vec::new();
    for name in NAMES {
        if !is_ours(place, name)? {
            // Fails where somebody was faster.
            symlink(PROGRAM, place.join("bin").join(name))?;
        }
        made.push(format!("bin/{name}"));
    }
    println!(
        "installed below {}: {}",
        place.join("bin").display(),
        NAMES.join(", ")
    );
    Ok(made)
}

/// Removes the files of the list, and the list.
pub(crate) fn uninstall(place: &Path) -> io::Result<()> {
    let files = InstalledFiles::read(place)?;
    if files.0.is_empty() {
        let list = place.join(LIST);
        return Err(io::Error::other(format!(
            "{}: no list of an installation",
            list.display()
        )));
    }
    let mut removed = 0;
    for path in &files.0 {
        let below = Path::new(path);
        if !below
            .components()
            .all(|c| matches!(c, Component::Normal(_)))
        {
            return Err(io::Error::other(format!(
                "the list names {path:?}: nothing below the prefix"
            )));
        }
        // A file that somebody has put in the place of a link is theirs.
        let name = path.strip_prefix("bin/").filter(|n| NAMES.contains(n));
        if let Some(name) = name
            && let Err(foreign) = is_ours(place, name)
        {
            println!("left alone: {foreign}");
            continue;
        }
        match std::fs::remove_file(place.join(below)) {
            Ok(()) => removed += 1,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    std::fs::remove_file(place.join(LIST))?;
    // Only where nothing else is in it.
    let _kept = std::fs::remove_dir(place.join("share/esker"));
    println!("removed {removed} files below {}", place.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(dir.path().join("bin")).expect("made");
        std::fs::write(dir.path().join("bin/esker"), "program").expect("written");
        dir
    }

    fn installed(place: &Path) {
        let mut files = InstalledFiles::default();
        files.add("bin/esker".to_owned());
        for name in make_links(place).expect("links") {
            files.add(name);
        }
        files.write(place).expect("a list");
    }

    #[test]
    fn what_was_installed_is_removed_and_nothing_else() {
        let dir = place();
        let place = dir.path();
        std::fs::write(place.join("bin/other"), "theirs").expect("written");
        installed(place);
        installed(place);
        let link = std::fs::read(place.join("bin/ldb")).expect("a link");
        assert_eq!(link, b"program");
        uninstall(place).expect("removed");
        let left: Vec<_> = std::fs::read_dir(place.join("bin"))
            .expect("there")
            .collect();
        assert_eq!(left.len(), 1);
        assert!(place.join("bin/other").is_file());
        assert!(uninstall(place).is_err());
    }

    #[test]
    fn a_foreign_file_stays() {
        let dir = place();
        let place = dir.path();
        let theirs = place.join("bin/sst_dump");
        std::fs::write(&theirs, "theirs").expect("written");
        assert!(check_links(place).is_err() && make_links(place).is_err());
        assert_eq!(std::fs::read(&theirs).expect("there"), b"theirs");
        std::fs::remove_file(&theirs).expect("removed");
        installed(place);
        std::fs::remove_file(&theirs).expect("removed");
        std::fs::write(&theirs, "theirs").expect("written");
        uninstall(place).expect("removed");
        assert_eq!(std::fs::read(&theirs).expect("there"), b"theirs");
        assert!(!place.join("bin/ldb").exists());
    }

    #[test]
    fn a_list_that_leads_elsewhere_is_refused() {
        let dir = place();
        let place = dir.path();
        let mut files = InstalledFiles::default();
        files.add("../outside".to_owned());
        files.write(place).expect("a list");
        assert!(uninstall(place).is_err());
    }
}
