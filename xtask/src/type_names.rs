//! Names of types: each word of one is a term of the field.
//!
//! A word is known from the glossary of `ARCHITECTURE.md`, from RocksDB's public headers, or from
//! the type names of the standard library. Another word, or a type, is accepted by a line of
//! `type_names/accepted.txt` that gives a reason. A participle stands before a noun: a type is
//! named by what it holds, not by what happened to it. In the crates of the library no two types of
//! a crate share a name.

use crate::Findings;
use crate::modules::is_for_tests;
use crate::source::{Source, files};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use syn::visit::{self, Visit};
use syn::{Attribute, Ident};

/// Words of RocksDB's public headers, as `cargo xtask header-words` prints them.
const ROCKSDB: &str = include_str!("type_names/rocksdb.txt");
/// Words of the type names of the standard library.
const STANDARD: &str = include_str!("type_names/standard.txt");
/// Words and types that are accepted, each with a reason.
const ACCEPTED: &str = include_str!("type_names/accepted.txt");
const ACCEPTED_PATH: &str = "xtask/src/type_names/accepted.txt";
/// Crates in which a name belongs to one type.
const LIBRARY: &[&str] = &[
    "backup", "cache", "codec", "engine", "env", "files", "format", "lsm", "memindex", "options",
    "status", "sync", "txn",
];
/// Past participles that do not end in "ed".
const IRREGULAR: &[&str] = &[
    "brought", "done", "found", "given", "gone", "held", "hidden", "known", "left", "lent", "lost",
    "made", "said", "seen", "sought", "taken", "told", "written",
];
const COLUMNS: usize = 100;

/// The words of a name in either style, in small letters.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let (mut words, mut word) = (Vec::new(), String::new());
    for (at, &letter) in letters.iter().enumerate() {
        let after_small = at > 0 && letters[at - 1].is_lowercase();
        let before_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        let after_capital = at > 0 && letters[at - 1].is_uppercase();
        let begins = letter.is_uppercase() && (after_small || (after_capital && before_small));
        if (begins || !letter.is_alphabetic()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphabetic() {
            word.extend(letter.to_lowercase());
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// The terms in the first column of the glossary of a page.
fn glossary(page: &str) -> BTreeSet<String> {
    let (_, glossary) = page.split_once("## Glossary").unwrap_or_default();
    glossary
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split('|').next())
        .flat_map(|term| term.split(|c: char| !c.is_alphabetic()))
        .flat_map(words)
        .collect()
}

/// The lines `name: reason` of the list, and findings for those that are none.
fn accepted<'a>(list: &'a str, findings: &mut Findings) -> BTreeMap<&'a str, &'a str> {
    let mut accepted = BTreeMap::new();
    for (at, line) in list.lines().enumerate() {
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        match line.split_once(": ") {
            Some((name, reason)) if accepted.insert(name, reason).is_none() => {}
            Some(_) => findings.push(format!("{ACCEPTED_PATH}:{}: accepted twice", at + 1)),
            None => findings.push(format!("{ACCEPTED_PATH}:{}: no reason", at + 1)),
        }
    }
    accepted
}

/// Collects the types that a file declares outside tests.
struct Declarations<'a> {
    path: &'a str,
    types: &'a mut Vec<(String, String)>,
}

impl Declarations<'_> {
    fn add(&mut self, attributes: &[Attribute], name: &Ident) {
        if !is_for_tests(attributes) {
            let place = format!("{}:{}", self.path, name.span().start().line);
            self.types.push((name.to_string(), place));
        }
    }
}

impl<'ast> Visit<'ast> for Declarations<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add(&item.attrs, &item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add(&item.attrs, &item.ident);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add(&item.attrs, &item.ident);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.add(&item.attrs, &item.ident);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.add(&item.attrs, &item.ident);
    }
}

/// Name and place of each type of the crates.
fn types(sources: &[Source]) -> Vec<(String, String)> {
    let mut types = Vec::new();
    for source in sources {
        let is_crate = ["crates/", "bindings/"]
            .iter()
            .any(|prefix| source.path.starts_with(prefix));
        if !is_crate || source.tests_from == 0 || source.path.contains("/generated/") {
            continue;
        }
        // A file that does not parse is a finding of the check of modules.
        if let Ok(file) = syn::parse_file(&source.lines.join("\n")) {
            let path = &source.path;
            let types = &mut types;
            Declarations { path, types }.visit_file(&file);
        }
    }
    types
}

/// Returns whether a word is a past participle: clear before a noun, and no name for a thing alone.
fn is_participle(word: &str) -> bool {
    (word.ends_with("ed") && !word.ends_with("eed")) || IRREGULAR.contains(&word)
}

/// Finds types whose words are unknown, and lines of the list that accept nothing.
fn unknown(types: &[(String, String)], page: &str, list: &str, findings: &mut Findings) {
    let accepted = accepted(list, findings);
    let mut known = glossary(page);
    known.extend(ROCKSDB.split_whitespace().map(str::to_owned));
    known.extend(STANDARD.split_whitespace().map(str::to_owned));
    let is_in = |word: &str, is_word: &dyn Fn(&str) -> bool| {
        let singular = [word.strip_suffix('s'), word.strip_suffix("es")];
        is_word(word) || singular.into_iter().flatten().any(is_word)
    };
    let mut used = BTreeSet::new();
    for (name, place) in types {
        let words = words(name);
        for (at, word) in words.iter().enumerate() {
            let is_last = at + 1 == words.len();
            let is_clear = if is_participle(word) {
                !is_last
            } else {
                is_in(word, &|word| known.contains(word))
            };
            if is_clear {
                continue;
            }
            let lines = [name.as_str(), word, word.strip_suffix('s').unwrap_or(word)];
            match lines
                .iter()
                .find_map(|line| accepted.get_key_value::<str>(line))
            {
                Some((line, _)) => drop(used.insert(*line)),
                None => findings.push(format!(
                    "{place}: {name}: `{word}` is no term of the field: name the type by what it \
                     holds, or give a reason in {ACCEPTED_PATH}"
                )),
            }
        }
    }
    let twice = doubled(types);
    for (name, places) in &twice {
        match accepted.get_key_value::<str>(name) {
            Some((line, _)) => drop(used.insert(*line)),
            None => findings.push(format!("{name} is a type twice: {}", places.join(", "))),
        }
    }
    for name in accepted.keys().filter(|name| !used.contains(*name)) {
        findings.push(format!("{ACCEPTED_PATH}: {name} needs no line"));
    }
}

/// Names that several files of one crate of the library declare, and where.
fn doubled(types: &[(String, String)]) -> Vec<(String, Vec<String>)> {
    let mut by_name: BTreeMap<(&str, &str), BTreeMap<&str, &str>> = BTreeMap::new();
    for (name, place) in types {
        let of_crate = place.split('/').nth(1).unwrap_or_default();
        let file = place.split(':').next().unwrap_or_default();
        if place.starts_with("crates/") && LIBRARY.contains(&of_crate) {
            let places = by_name.entry((of_crate, name)).or_default();
            places.insert(file, place);
        }
    }
    by_name
        .into_iter()
        .filter(|(_, places)| places.len() > 1)
        .map(|((_, name), places)| {
            (
                name.to_owned(),
                places.into_values().map(str::to_owned).collect(),
            )
        })
        .collect()
}

/// Checks the names of all types against the glossary of `page`.
pub(crate) fn check(sources: &[Source], page: &str, findings: &mut Findings) {
    unknown(&types(sources), page, ACCEPTED, findings);
}

/// The words of identifiers in headers below `directory`, sorted, in lines.
fn header_words(directory: &Path) -> io::Result<String> {
    let mut texts = Vec::new();
    let is_header = |path: &Path| path.extension().is_some_and(|e| e == "h");
    files(directory, directory, &is_header, &mut texts)?;
    let mut found = BTreeSet::new();
    for (path, text) in texts {
        for line in Source::parse(path, &text).code {
            let names = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            found.extend(names.flat_map(words));
        }
    }
    let mut out = String::new();
    let mut column = 0;
    for word in found {
        let fits = column + word.len() < COLUMNS;
        out.push(if fits && column > 0 { ' ' } else { '\n' });
        column = if fits {
            column + word.len() + 1
        } else {
            word.len()
        };
        out.push_str(&word);
    }
    Ok(out.trim_start().to_owned() + "\n")
}

/// Writes the words of the headers below `directory`.
pub(crate) fn write_header_words(root: &Path, directory: &Path) -> io::Result<Findings> {
    let path = root.join("xtask/src/type_names/rocksdb.txt");
    crate::generated::write(&path, &header_words(directory)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A\n\n## Glossary\n\n| term | meaning |\n|---|---|\n| *zorb* | x |\n";

    fn found(sources: &[(&str, &str)], list: &str) -> Findings {
        let sources: Vec<Source> = sources
            .iter()
            .map(|(path, text)| Source::parse((*path).to_owned(), text))
            .collect();
        let mut findings = Vec::new();
        unknown(&types(&sources), PAGE, list, &mut findings);
        findings
    }

    #[test]
    fn a_name_is_split_into_its_words() {
        assert_eq!(words("WriteBatch"), ["write", "batch"]);
        assert_eq!(words("SSTFile2Reader"), ["sst", "file", "reader"]);
        assert_eq!(words("allow_mmap_reads"), ["allow", "mmap", "reads"]);
        assert!(words("_").is_empty());
    }

    #[test]
    fn a_word_that_nobody_knows_is_found_where_the_type_is() {
        let text = "//! a\npub struct TableShemp<T>(T);\ntype Iter = ();\nenum Zorbs {}";
        let findings = found(&[("crates/lsm/src/a.rs", text)], "");
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with("crates/lsm/src/a.rs:2: TableShemp: `shemp`"));
    }

    #[test]
    fn a_line_accepts_a_type_or_a_word() {
        let source = ("crates/lsm/src/a.rs", "trait ShempRead {}\nunion Shemp {}");
        assert_eq!(found(&[source], "").len(), 2);
        assert_eq!(found(&[source], "shemp: a product").len(), 0);
        assert_eq!(found(&[source], "ShempRead: a test").len(), 1);
        // A line without a reason accepts nothing, and one that is not needed is found.
        assert_eq!(found(&[source], "shemp").len(), 3);
        assert_eq!(found(&[source], "shemp: a product\nRead: a test").len(), 1);
        assert_eq!(found(&[source], "shemp: a\nshemp: b").len(), 1);
    }

    #[test]
    fn a_participle_stands_before_a_noun() {
        let text = "struct ParkedTable;\nstruct Parked;\nstruct TableFound;\nstruct Seed;";
        let findings = found(&[("crates/lsm/src/a.rs", text)], "");
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].contains("a.rs:2: Parked: `parked`"));
        assert!(findings[1].contains("a.rs:3: TableFound: `found`"));
    }

    #[test]
    fn tests_and_associated_types_do_not_count() {
        let text = "impl A for B { type Shemp = u8; }\n#[cfg(test)]\nmod tests { struct Shemp; }";
        assert_eq!(found(&[("crates/lsm/src/a.rs", text)], "").len(), 0);
        assert_eq!(
            found(&[("crates/lsm/tests/a.rs", "struct Shemp;")], "").len(),
            0
        );
    }

    #[test]
    fn a_name_of_two_types_of_a_library_is_found() {
        let (a, b) = ("crates/lsm/src/a.rs", "crates/lsm/src/b.rs");
        let text = "struct Table;";
        assert_eq!(found(&[(a, text), (b, text)], "").len(), 1);
        assert_eq!(found(&[(a, text), (b, text)], "Table: a test").len(), 0);
        assert_eq!(
            found(&[(a, text), ("crates/env/src/b.rs", text)], "").len(),
            0
        );
        assert_eq!(
            found(&[(a, "mod x { struct Table; }\nstruct Table;")], "").len(),
            0
        );
    }
}
