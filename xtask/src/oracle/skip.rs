//! Skip lists: one `name: reason` per line; `#` begins a comment; a `*` at the end of a name stands
//! for anything.
//!
//! A name without a reason is an error, and so is one that the suite does not have: a list that has
//! outlived its cause should not go unnoticed.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Names that are not run, each with the reason.
#[derive(Default)]
pub(super) struct SkipList {
    reasons: BTreeMap<String, String>,
}

impl SkipList {
    pub(super) fn read(path: &Path) -> io::Result<SkipList> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
        let mut reasons = BTreeMap::new();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some((name, reason)) = line.split_once(": ") else {
                let place = path.display();
                return Err(io::Error::other(format!("{place}: no reason: {line}")));
            };
            reasons.insert(name.trim().to_owned(), reason.trim().to_owned());
        }
        Ok(SkipList { reasons })
    }

    /// Takes the names of another list in.
    pub(super) fn extend(&mut self, other: SkipList) {
        self.reasons.extend(other.reasons);
    }

    pub(super) fn reason(&self, name: &str) -> Option<&str> {
        let found = self.reasons.iter().find(|entry| covers(entry.0, name));
        found.map(|(_, reason)| reason.as_str())
    }

    /// The names of the list that are not among those of the suite.
    pub(super) fn unknown(&self, suite: &[String]) -> Vec<String> {
        let known = |entry: &str| suite.iter().any(|name| covers(entry, name));
        let names = self.reasons.keys().filter(|name| !known(name));
        names
            .map(|name| format!("the skip list names {name}, which the suite does not have"))
            .collect()
    }
}

fn covers(entry: &str, name: &str) -> bool {
    match entry.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => entry == name,
    }
}
