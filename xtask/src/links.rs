//! Links between the documents: each relative link names a file, and its anchor a heading of that
//! file. A page under `docs/` that any text names exists.

use crate::Findings;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

/// Checks the links of all texts, given by their paths from `root`.
pub(crate) fn check(root: &Path, texts: &[(String, String)]) -> Findings {
    let pages: HashMap<&Path, &str> = texts
        .iter()
        .map(|(path, text)| (Path::new(path.as_str()), text.as_str()))
        .collect();
    let mut findings = Findings::new();
    for (path, text) in texts {
        for (at, line) in text.lines().enumerate() {
            let place = format!("{path}:{}", at + 1);
            for page in pages_named(line) {
                // A crate of its own may have pages, too.
                let beside = Path::new(path).parent().unwrap_or(Path::new(""));
                if !root.join(page).is_file() && !root.join(beside).join(page).is_file() {
                    findings.push(format!("{place}: no such page: {page}"));
                }
            }
        }
        if path.ends_with(".md") {
            findings.extend(broken(root, path, text, &pages));
        }
    }
    findings
}

/// The pages under `docs/` that a line names.
fn pages_named(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices("docs/") {
        let before = line[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || "/.-_".contains(c)) {
            continue;
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        let end = line[at..]
            .find(|c| !is_part(c))
            .map_or(line.len(), |n| at + n);
        let name = &line[at..end];
        if let Some(cut) = name.find(".md") {
            found.push(&name[..cut + ".md".len()]);
        }
    }
    found
}

/// The relative links of a page that lead nowhere.
fn broken(root: &Path, path: &str, text: &str, pages: &HashMap<&Path, &str>) -> Findings {
    let mut findings = Findings::new();
    for (line_no, line) in prose(text) {
        for link in links(line) {
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let beside = Path::new(path).parent().unwrap_or(Path::new(""));
            let target = match file {
                "" => PathBuf::from(path),
                file => plain(&beside.join(file)),
            };
            let is_there = root.join(&target).exists();
            let has_anchor = anchor.is_empty()
                || pages
                    .get(target.as_path())
                    .is_some_and(|page| prose(page).any(|(_, line)| is_heading(line, anchor)));
            if !is_there || !has_anchor {
                findings.push(format!("{path}:{line_no}: broken link: {link}"));
            }
        }
    }
    findings
}

/// The lines of a page outside fenced blocks, counted from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

/// The targets of the links in a line.
fn links(line: &str) -> Vec<&str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(link, _)| link))
        .filter(|link| !link.contains(' '))
        .collect()
}

/// Returns whether a line is the heading that `anchor` names, as GitHub makes anchors.
fn is_heading(line: &str, anchor: &str) -> bool {
    let title = line.trim_start_matches('#');
    if title.len() == line.len() || !title.starts_with(' ') {
        return false;
    }
    let made: String = title
        .trim()
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect();
    made == anchor
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[(&str, &str)]) -> Findings {
        let texts: Vec<(String, String)> = texts
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        check(&crate::root(), &texts)
    }

    #[test]
    fn links_to_files_and_headings_are_followed() {
        let readme =
            "[a](docs/design.md) [b](#what-it-is) [c](https://example.org/x#y)\n# What it is\n";
        let page = "[up](../README.md#what-it-is)\n```text\n[not](a link.md)\n```\n";
        assert_eq!(
            found(&[("README.md", readme), ("docs/page.md", page)]),
            Findings::new()
        );
    }

    #[test]
    fn what_leads_nowhere_is_found() {
        for (path, text, finding) in [
            (
                "README.md",
                "\n[a](docs/gone)",
                "README.md:2: broken link: docs/gone",
            ),
            (
                "docs/a.md",
                "[a](#no-such)",
                "docs/a.md:1: broken link: #no-such",
            ),
            (
                "crates/x/src/a.rs",
                "//! See `docs/gone.md`.",
                "crates/x/src/a.rs:1: no such page: docs/gone.md",
            ),
        ] {
            assert_eq!(found(&[(path, text)]), [finding]);
        }
    }
}
