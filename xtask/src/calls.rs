//! The table of calls: where each function of the C interface and each public method of the Rust
//! API is drawn by a random test, or why it is not.
//!
//! Where a call is drawn follows from the sources of the tests: the C functions that they call
//! through their table of functions, and the names of the methods that they call. Reasons come from
//! `calls/reasons.txt`. A row that is drawn nowhere and has no reason is a finding, and so is a
//! reason that no row needs.

use crate::{Findings, generated};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/reliability-calls.md";
const REASONS: &str = "xtask/src/calls/reasons.txt";

/// Functions that only say that they are not supported.
const REFUSED: &str = "crates/capi/src/generated/refused.rs";

/// Random tests over the C interface, and where they are.
const C_SUITES: [(&str, &[&str]); 2] = [
    ("model", &["crates/differential/src/model"]),
    (
        "differential",
        &[
            "crates/differential/src/subject",
            "crates/differential/src/subject.rs",
        ],
    ),
];

/// Random tests over the Rust API, and where they are.
const RUST_SUITES: [(&str, &[&str]); 4] = [
    (
        "simulator",
        &[
            "crates/sim/src/crash",
            "crates/sim/src/model",
            "crates/sim/src/corruption",
            "crates/sim/src/live_check.rs",
            "crates/sim/src/trial.rs",
            "crates/sim/src/run.rs",
        ],
    ),
    (
        "schedules",
        &["crates/sim/src/schedules", "crates/sim/src/schedules.rs"],
    ),
    ("engine's model", &["crates/engine/tests/model"]),
    ("torture", &["crates/torture/src"]),
];

/// Crates with public methods, and the types that count; all that `lib.rs` exports where none.
const APIS: [(&str, &[&str]); 3] = [
    ("crates/engine/src", &["Db"]),
    ("crates/txn/src", &[]),
    ("crates/backup/src", &[]),
];

/// Why a row is not drawn, or through which C function it is.
struct Reasons {
    /// Patterns with texts.
    texts: Vec<(String, String)>,
    /// Methods with the C functions that call them.
    through: BTreeMap<String, String>,
}

/// One row.
struct Row {
    name: String,
    suites: Vec<&'static str>,
    reason: String,
}

/// Writes the page.
pub(crate) fn write(root: &Path) -> io::Result<Findings> {
    let (page, findings) = page(root)?;
    generated::write(&root.join(PAGE), &page)?;
    Ok(findings)
}

/// Checks that the page is current and that each row has an answer.
pub(crate) fn check(root: &Path) -> io::Result<Findings> {
    let (page, mut findings) = page(root)?;
    findings.extend(generated::check(
        &root.join(PAGE),
        &page,
        "cargo xtask calls",
    )?);
    Ok(findings)
}

/// Source files below a path, or the one that it is.
fn sources(path: &Path, to: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        if path.extension().is_some_and(|extension| extension == "rs") && path.is_file() {
            to.push(path.to_owned());
        }
        return Ok(());
    }
    let mut entries: Vec<PathBuf> = std::fs::read_dir(path)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    entries.sort();
    entries.iter().try_for_each(|entry| sources(entry, to))
}

/// The tokens of all files of a suite.
fn tokens(root: &Path, places: &[&str]) -> io::Result<Vec<TokenStream>> {
    let mut files = Vec::new();
    for place in places {
        sources(&root.join(place), &mut files)?;
    }
    let parsed = files.iter().map(|file| {
        let text = std::fs::read_to_string(file)?;
        let bad = |e| io::Error::other(format!("{}: {e}", file.display()));
        text.parse::<TokenStream>().map_err(bad)
    });
    parsed.collect()
}

/// Calls `seen` with each identifier and with what stands before it.
fn walk(stream: TokenStream, seen: &mut dyn FnMut(&[String], &str)) {
    let mut before: Vec<String> = Vec::new();
    for token in stream {
        match &token {
            TokenTree::Ident(name) => seen(&before, &name.to_string()),
            TokenTree::Group(group) => walk(group.stream(), seen),
            _ => {}
        }
        let text = match token {
            TokenTree::Group(_) => "()".to_owned(),
            other => other.to_string(),
        };
        before.push(text);
        if before.len() > 3 {
            before.remove(0);
        }
    }
}

/// C functions that a suite calls, without `rocksdb_`: `c!(self, name, ...)` and `api.name`.
fn c_calls(streams: Vec<TokenStream>) -> BTreeSet<String> {
    fn macros(stream: TokenStream, to: &mut BTreeSet<String>) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            let TokenTree::Group(group) = token else {
                continue;
            };
            let before = at.checked_sub(2).map(|from| &tokens[from..at]);
            let is_call =
                before.is_some_and(|b| b[0].to_string() == "c" && b[1].to_string() == "!");
            if is_call {
                let mut inside = group.stream().into_iter();
                let comma = |t: &TokenTree| matches!(t, TokenTree::Punct(p) if p.as_char() == ',');
                if inside.by_ref().any(|t| comma(&t))
                    && let Some(name) = inside.next()
                {
                    to.insert(name.to_string());
                }
            }
            macros(group.stream(), to);
        }
    }
    let mut calls = BTreeSet::new();
    for stream in streams {
        walk(stream.clone(), &mut |before, name| {
            if before.ends_with(&["api".to_owned(), ".".to_owned()]) {
                calls.insert(name.to_owned());
            }
        });
        macros(stream, &mut calls);
    }
    calls
}

/// Names behind `.` and `::`.
fn method_calls(streams: Vec<TokenStream>) -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    for stream in streams {
        walk(stream, &mut |before, name| {
            let dot = before.last().is_some_and(|last| last == ".");
            let path = before.ends_with(&[":".to_owned(), ":".to_owned()]);
            if dot || path {
                calls.insert(name.to_owned());
            }
        });
    }
    calls
}

/// The functions of the C interface.
fn c_functions(root: &Path) -> io::Result<Vec<String>> {
    let spec = |file: &str| std::fs::read_to_string(root.join("crates/capi/spec").join(file));
    let text = spec("rocksdb.api")? + &spec("esker.api")?;
    let name = |line: &str| {
        Some(
            line.strip_prefix("fn ")?
                .split('(')
                .next()?
                .trim()
                .to_owned(),
        )
    };
    Ok(text.lines().filter_map(name).collect())
}

/// Public methods of the types that a crate exports, as `Type::method`.
fn methods(root: &Path, place: &str, types: &[&str]) -> io::Result<BTreeSet<String>> {
    let mut exported: BTreeSet<String> = types.iter().map(|&name| name.to_owned()).collect();
    if exported.is_empty() {
        let text = std::fs::read_to_string(root.join(place).join("lib.rs"))?;
        let file = syn::parse_file(&text).map_err(io::Error::other)?;
        for item in file.items {
            if let syn::Item::Use(item) = item
                && matches!(item.vis, syn::Visibility::Public(_))
            {
                leaves(&item.tree, &mut exported);
            }
        }
    }
    let (mut files, mut found) = (Vec::new(), BTreeSet::new());
    sources(&root.join(place), &mut files)?;
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let parsed = syn::parse_file(&text).map_err(io::Error::other)?;
        for item in &parsed.items {
            if let syn::Item::Impl(item) = item {
                methods_of(item, &exported, &mut found);
            }
        }
    }
    Ok(found)
}

fn leaves(tree: &syn::UseTree, to: &mut BTreeSet<String>) {
    match tree {
        syn::UseTree::Path(path) => leaves(&path.tree, to),
        syn::UseTree::Name(name) => {
            to.insert(name.ident.to_string());
        }
        syn::UseTree::Group(group) => group.items.iter().for_each(|item| leaves(item, to)),
        _ => {}
    }
}

fn methods_of(item: &syn::ItemImpl, exported: &BTreeSet<String>, found: &mut BTreeSet<String>) {
    let syn::Type::Path(path) = &*item.self_ty else {
        return;
    };
    let Some(name) = path.path.segments.last().map(|s| s.ident.to_string()) else {
        return;
    };
    if item.trait_.is_some() || !exported.contains(&name) {
        return;
    }
    for method in &item.items {
        if let syn::ImplItem::Fn(method) = method
            && matches!(method.vis, syn::Visibility::Public(_))
        {
            found.insert(format!("{name}::{}", method.sig.ident));
        }
    }
}

impl Reasons {
    fn read(root: &Path) -> io::Result<Reasons> {
        let text = std::fs::read_to_string(root.join(REASONS))?;
        let mut reasons = Reasons {
            texts: Vec::new(),
            through: BTreeMap::new(),
        };
        for line in text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
        {
            let bad = || io::Error::other(format!("{REASONS}: no `:` in {line}"));
            let (patterns, said) = line.split_once(": ").ok_or_else(bad)?;
            for pattern in patterns.split_whitespace() {
                let pattern = pattern.to_owned();
                match said.strip_prefix("through ") {
                    Some(function) => {
                        reasons.through.insert(pattern, function.to_owned());
                    }
                    None => reasons.texts.push((pattern, said.to_owned())),
                }
            }
        }
        Ok(reasons)
    }

    /// The first reason whose pattern fits.
    fn find(&self, name: &str) -> Option<(usize, &str)> {
        let at = self
            .texts
            .iter()
            .position(|(pattern, _)| fits(pattern, name))?;
        Some((at, &self.texts[at].1))
    }
}

/// Tells whether a pattern, in which `*` stands for anything, fits a name.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => {
            let rest = name.strip_prefix(head);
            rest.is_some_and(|rest| {
                let mut ends = (0..=rest.len()).filter(|at| rest.is_char_boundary(*at));
                ends.any(|at| fits(tail, &rest[at..]))
            })
        }
    }
}

/// All rows, and what is wrong with them.
fn rows(root: &Path) -> io::Result<(Vec<Row>, Vec<Row>, Findings)> {
    let reasons = Reasons::read(root)?;
    let (mut findings, mut used) = (Findings::new(), BTreeSet::new());
    let mut drawn_c: Vec<(&str, BTreeSet<String>)> = Vec::new();
    for (suite, places) in C_SUITES {
        drawn_c.push((suite, c_calls(tokens(root, places)?)));
    }
    let in_c = |function: &str| -> Vec<&'static str> {
        let own = function.strip_prefix("rocksdb_").unwrap_or(function);
        let has = |at: &usize| drawn_c[*at].1.contains(own);
        (0..C_SUITES.len())
            .filter(has)
            .map(|at| C_SUITES[at].0)
            .collect()
    };
    let mut answer = |name: String, suites: Vec<&'static str>| {
        let mut reason = String::new();
        if suites.is_empty() {
            match reasons.find(&name) {
                Some((at, text)) => {
                    used.insert(at);
                    reason = text.to_owned();
                }
                None => findings.push(format!("{name}: neither drawn nor a reason ({REASONS})")),
            }
        }
        Row {
            name,
            suites,
            reason,
        }
    };
    let refused = std::fs::read_to_string(root.join(REFUSED))?;
    let mut c_rows = Vec::new();
    for name in c_functions(root)? {
        let with_family = format!("{name}_cf");
        let suites = in_c(&name);
        if suites.is_empty() && refused.contains(&format!("fn {name}(")) {
            let reason = "refused: not supported".to_owned();
            c_rows.push(Row {
                name,
                suites,
                reason,
            });
        } else if suites.is_empty() && !in_c(&with_family).is_empty() {
            let reason = "drawn in the form with a family, `..._cf`".to_owned();
            c_rows.push(Row {
                name,
                suites,
                reason,
            });
        } else {
            c_rows.push(answer(name, suites));
        }
    }
    let mut drawn_rust: Vec<(&'static str, BTreeSet<String>)> = Vec::new();
    for (suite, places) in RUST_SUITES {
        drawn_rust.push((suite, method_calls(tokens(root, places)?)));
    }
    let (mut rust_rows, mut undrawn) = (Vec::new(), Findings::new());
    for (place, types) in APIS {
        for name in methods(root, place, types)? {
            let own = name.rsplit("::").next().unwrap_or_default();
            let mut suites: Vec<&str> = drawn_rust
                .iter()
                .filter(|(_, calls)| calls.contains(own))
                .map(|(s, _)| *s)
                .collect();
            if let Some(function) = reasons.through.get(&name) {
                let drawn = in_c(function);
                if drawn.is_empty() {
                    undrawn.push(format!("{name}: {function} is not drawn ({REASONS})"));
                }
                suites.extend(drawn);
            }
            rust_rows.push(answer(name, suites));
        }
    }
    findings.extend(undrawn);
    for (at, (pattern, _)) in reasons.texts.iter().enumerate() {
        if !used.contains(&at) {
            findings.push(format!("{REASONS}: no row needs {pattern}"));
        }
    }
    Ok((c_rows, rust_rows, findings))
}

const HEAD: &str = "# Calls, and where random tests make them

<!-- Generated by `cargo xtask calls`; do not edit. -->

Each function of the C interface and each public method of the Rust API, with the random tests that
draw it, or the reason why none does. Which these are follows from their sources: the functions that
they call, and for the Rust API the names of the methods. Reasons are in
`xtask/src/calls/reasons.txt`. `cargo xtask calls --check` fails where a row has no answer.

- *model*: programs on real threads against a model, `esker-differential model`
- *differential*: one trace on two libraries, `esker diff`
- *simulator*, *schedules*, *engine's model*, *torture*: [reliability](reliability.md)
";

/// The rows, with the reasons as numbers, which begin at 1.
fn table(title: &str, rows: &[Row], reasons: &[&str]) -> String {
    let drawn = rows.iter().filter(|row| !row.suites.is_empty()).count();
    let all = rows.len();
    let mut text = format!("\n## {title}\n\n{drawn} of {all} are drawn.\n\n");
    text.push_str("| call | drawn by, or the number of the reason |\n|---|---|\n");
    for row in rows {
        let number = reasons.iter().position(|reason| *reason == row.reason);
        let answer = match number {
            Some(number) if row.suites.is_empty() => (number + 1).to_string(),
            _ => row.suites.join(", "),
        };
        writeln!(text, "| `{}` | {answer} |", row.name).expect("a String takes all");
    }
    text
}

fn page(root: &Path) -> io::Result<(String, Findings)> {
    let (c, rust, findings) = rows(root)?;
    let mut reasons: Vec<&str> = Vec::new();
    for row in c.iter().chain(&rust).filter(|row| !row.reason.is_empty()) {
        if !reasons.contains(&row.reason.as_str()) {
            reasons.push(&row.reason);
        }
    }
    let mut page = format!("{HEAD}\n## Reasons\n\n");
    for (at, reason) in reasons.iter().enumerate() {
        writeln!(page, "{}. {reason}", at + 1).expect("a String takes all");
    }
    page.push_str(&table("The C interface", &c, &reasons));
    page.push_str(&table("The Rust API", &rust, &reasons));
    Ok((page, findings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        assert!(fits("a_*_b*", "a_x_y_bc"));
        assert!(fits("*::name", "Type::name"));
        assert!(!fits("a_*_b", "a_b"));
        assert!(fits("plain", "plain") && !fits("plain", "plainer"));
    }

    #[test]
    fn functions_are_found_in_the_macro_and_behind_the_table() {
        let text = "fn f() { c!(self.world, get_cf, db); g(|| x.api.close.is_none()); h(other) }";
        let calls = c_calls(vec![text.parse().expect("it is Rust")]);
        let names: Vec<&str> = calls.iter().map(String::as_str).collect();
        assert_eq!(names, ["close", "get_cf"]);
    }

    #[test]
    fn methods_are_found_by_their_names() {
        let text = "fn f() { db.put(1); assert!(Db::open(x)); plain(y) }";
        let calls = method_calls(vec![text.parse().expect("it is Rust")]);
        let names: Vec<&str> = calls.iter().map(String::as_str).collect();
        assert_eq!(names, ["open", "put"]);
    }
}
