//! The files that a Get and a Put pass, as `ARCHITECTURE.md` lists them: from top to bottom.
//!
//! A file of such a list may import those below it, and none above. Crates stand in the order of
//! their floors, which [`crate::floors`] checks against what they name.

use crate::Findings;
use crate::floors::floor;
use crate::modules::{FileImport, file_imports};
use crate::source::Source;
use std::collections::HashMap;

const DOCUMENT: &str = "ARCHITECTURE.md";
/// The heading above the lists.
const CHAPTER: &str = "## Files of a Get and a Put";
/// The headings of the lists.
const LISTS: [&str; 2] = ["### Get", "### Put"];

/// A list: its heading, and its files with their lines in the document.
struct List {
    heading: String,
    files: Vec<(usize, String)>,
}

/// The lists of the chapter: in each row of a table the first column names a file.
fn lists(document: &str) -> Vec<List> {
    let mut out: Vec<List> = Vec::new();
    let chapter = document
        .lines()
        .enumerate()
        .skip_while(|(_, line)| *line != CHAPTER)
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "));
    for (at, line) in chapter {
        if line.starts_with("### ") {
            out.push(List {
                heading: line.to_owned(),
                files: Vec::new(),
            });
        }
        let cell = line.strip_prefix("| `").and_then(|l| l.split_once('`'));
        if let (Some((file, _)), Some(list)) = (cell, out.last_mut()) {
            list.files.push((at + 1, file.to_owned()));
        }
    }
    out
}

/// The floor of the crate that a file is in.
fn floor_of(file: &str) -> Option<u8> {
    let name = file.strip_prefix("crates/")?.split('/').next()?;
    match name {
        "engine" => floor("esker"),
        name => floor(&format!("esker-{name}")),
    }
}

fn check_list(list: &List, sources: &[Source], imports: &[FileImport], findings: &mut Findings) {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut above = u8::MAX;
    for (at, (line, file)) in list.files.iter().enumerate() {
        let mut found = |text: String| findings.push(format!("{DOCUMENT}:{line}: {file} {text}"));
        if places.insert(file, at).is_some() {
            found(format!("is listed twice under {}", list.heading));
        }
        if !sources.iter().any(|s| s.path == *file) {
            found("does not exist".to_owned());
        }
        match floor_of(file) {
            None => found("is in no crate that has a floor".to_owned()),
            Some(floor) if floor > above => {
                found(format!(
                    "is on floor {floor}, below a file of floor {above}"
                ));
            }
            Some(floor) => above = floor,
        }
    }
    for import in imports {
        let place = |file: &str| places.get(file).copied();
        if let (Some(from), Some(to)) = (place(&import.from), place(&import.to))
            && to < from
        {
            findings.push(format!(
                "{}: imports {}, which stands above it under {} of {DOCUMENT}",
                import.place, import.to, list.heading
            ));
        }
    }
}

/// Checks the lists of `ARCHITECTURE.md` against what their files import.
pub(crate) fn check(texts: &[(String, String)], sources: &[Source], findings: &mut Findings) {
    let document = texts.iter().find(|(path, _)| path == DOCUMENT);
    let lists = document.map_or_else(Vec::new, |(_, text)| lists(text));
    let imports = file_imports(sources);
    for heading in LISTS {
        match lists.iter().find(|l| l.heading == heading) {
            Some(list) if list.files.len() > 1 => check_list(list, sources, &imports, findings),
            _ => findings.push(format!(
                "{DOCUMENT}: no list of files under {CHAPTER:?}, {heading:?}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: &str = "crates/engine/src/db/mod.rs";
    const READ: &str = "crates/engine/src/read/get.rs";
    const TABLE: &str = "crates/files/src/table/reader.rs";
    const KEY: &str = "crates/format/src/key.rs";

    /// What is found where both lists are `list`, and the files import what is given.
    fn found(list: &[&str], files: &[(&str, &str)]) -> Findings {
        let rows: String = list.iter().map(|f| format!("| `{f}` | x |\n")).collect();
        let lists: String = LISTS.iter().map(|h| format!("{h}\n{rows}")).collect();
        let document = format!("# x\n{CHAPTER}\n{lists}## y\n| `crates/x.rs` | not listed |\n");
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::parse((*path).to_owned(), text))
            .collect();
        let mut findings = Vec::new();
        check(&[(DOCUMENT.to_owned(), document)], &sources, &mut findings);
        findings
    }

    fn good() -> Vec<(&'static str, &'static str)> {
        vec![
            (
                "crates/engine/src/lib.rs",
                "mod db;\nmod read;\npub use db::Db;",
            ),
            (TOP, "use crate::read::get::PointRead;\npub struct Db;"),
            ("crates/engine/src/read/mod.rs", "pub(crate) mod get;"),
            (
                READ,
                "use esker_files::table::TableReader;\npub struct PointRead;",
            ),
            ("crates/files/src/lib.rs", "pub mod table;"),
            (
                "crates/files/src/table/mod.rs",
                "mod reader;\npub use reader::TableReader;",
            ),
            (TABLE, "use esker_format::key;\npub struct TableReader;"),
            ("crates/format/src/lib.rs", "pub mod key;"),
            (KEY, "pub fn pack() {}"),
        ]
    }

    #[test]
    fn a_path_from_top_to_bottom_is_fine() {
        assert_eq!(
            found(&[TOP, READ, TABLE, KEY], &good()),
            Findings::default()
        );
    }

    #[test]
    fn an_import_of_a_file_above_is_found() {
        let mut files = good();
        files[3].1 = "use crate::Db;\npub struct PointRead;";
        let findings = found(&[TOP, READ, TABLE, KEY], &files);
        assert_eq!(findings.len(), 2, "one for each list: {findings:?}");
        let expected = format!("{READ}:1 -> crate::Db: imports {TOP}, which stands above it");
        assert!(findings[0].starts_with(&expected), "{findings:?}");
    }

    #[test]
    fn an_import_of_another_crate_counts() {
        let findings = found(&[TOP, TABLE, READ, KEY], &good());
        let text = findings.join("\n");
        assert!(
            text.contains(&format!("{READ} is on floor 4, below a file of floor 2")),
            "{text}"
        );
        let expected = format!("{READ}:1 -> esker_files::table::TableReader: imports {TABLE}");
        assert!(text.contains(&expected), "{text}");
    }

    #[test]
    fn lists_that_are_wrong_are_found() {
        for (list, expected) in [
            (vec![TOP], "no list of files"),
            (vec![TOP, "crates/engine/src/gone.rs"], "does not exist"),
            (vec![TOP, READ, TOP], "is listed twice"),
            (vec![TOP, "docs/a.rs"], "in no crate"),
        ] {
            let findings = found(&list, &good()).join("\n");
            assert!(findings.contains(expected), "{list:?}: {findings}");
        }
    }
}
