//! The measures of the code that have a limit: lines of functions and files, columns of lines.
//!
//! Generated files have none. A line may be too long where it cannot be broken: in a table, for a
//! link, and in a block of commands or output of a document. Code is broken by rustfmt, which
//! leaves strings and the arguments of macros alone: so of a source file comments count.

use crate::Findings;
use crate::modules::is_for_tests;
use crate::source::Source;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The most lines of a file.
pub(crate) const LONG_FILE: usize = 800;
/// The most lines of all functions but one in a hundred, outside tests.
const LONG_FUNCTION: usize = 60;
/// The most columns of a line.
const LONG_LINE: usize = 100;

/// Returns whether a file is written by a task.
fn is_generated(path: &str) -> bool {
    path.contains("/generated/")
        || matches!(path, "COMPAT.md" | "docs/db-bench.md" | "docs/unsafe.md")
}

/// Collects the lengths of functions.
struct Lengths<'a>(&'a mut Vec<usize>);

impl Lengths<'_> {
    fn add(&mut self, function: &dyn Spanned) {
        let span = function.span();
        self.0.push(span.end().line - span.start().line + 1);
    }
}

impl<'ast> Visit<'ast> for Lengths<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if !is_for_tests(&function.attrs) {
            self.add(&function.block);
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            self.add(&function.block);
            visit::visit_impl_item_fn(self, function);
        }
    }
}

/// The length that `percent` of 100 lengths in `sorted` do not exceed.
fn percentile(sorted: &[usize], percent: usize) -> usize {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(0)
}

/// Returns whether a line of a document or a comment cannot be broken.
fn cannot_break(line: &str) -> bool {
    let text = line
        .trim_start()
        .trim_start_matches(['/', '!'])
        .trim_start();
    text.starts_with('|') || text.contains("://") || text.contains("](")
}

/// The lines that are too long, counted from 1.
fn long_lines<'a>(
    lines: impl Iterator<Item = &'a str>,
    may_be_long: &dyn Fn(usize, &str) -> bool,
) -> Vec<usize> {
    lines
        .enumerate()
        .filter(|(_, line)| line.chars().count() > LONG_LINE && !cannot_break(line))
        .filter(|(at, line)| !may_be_long(*at, line))
        .map(|(at, _)| at + 1)
        .collect()
}

/// The long lines of a document outside its blocks of code.
fn long_lines_of_document(text: &str) -> Vec<usize> {
    let mut is_code = false;
    let in_code: Vec<bool> = text
        .lines()
        .map(|line| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            is_code || is_fence || line.starts_with("    ")
        })
        .collect();
    long_lines(text.lines(), &|at, _| in_code[at])
}

/// Checks the limits, and says in one line how the code is.
pub(crate) fn check(
    texts: &[(String, String)],
    sources: &[Source],
    findings: &mut Findings,
) -> String {
    let (mut functions, mut longest_file, mut long) = (Vec::new(), 0, 0);
    for source in sources.iter().filter(|s| !is_generated(&s.path)) {
        let lines = source.lines.len();
        longest_file = longest_file.max(lines);
        if lines > LONG_FILE {
            findings.push(format!("{}: {lines} lines; split it", source.path));
        }
        // A file that does not parse is a finding of the check of modules.
        if let Ok(file) = syn::parse_file(&source.lines.join("\n"))
            && source.tests_from > 0
        {
            Lengths(&mut functions).visit_file(&file);
        }
        let lines = source.lines.iter().map(String::as_str);
        for line in long_lines(lines, &|_, line| !line.trim_start().starts_with("//")) {
            long += 1;
            findings.push(format!("{}:{line}: over {LONG_LINE} columns", source.path));
        }
    }
    for (path, text) in texts.iter().filter(|(path, _)| path.ends_with(".md")) {
        if !is_generated(path) {
            for line in long_lines_of_document(text) {
                long += 1;
                findings.push(format!("{path}:{line}: over {LONG_LINE} columns"));
            }
        }
    }
    functions.sort_unstable();
    let p99 = percentile(&functions, 99);
    if p99 > LONG_FUNCTION {
        findings.push(format!(
            "functions: p99 is {p99} lines, over {LONG_FUNCTION}"
        ));
    }
    format!(
        "functions {}: lines median {}, p90 {}, p99 {p99}, most {}; longest file {longest_file}; \
         lines over {LONG_LINE} columns: {long}",
        functions.len(),
        percentile(&functions, 50),
        percentile(&functions, 90),
        functions.last().copied().unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Findings {
        let mut findings = Vec::new();
        let texts = [(path.to_owned(), text.to_owned())];
        let is_rust = path.ends_with(".rs");
        let sources: Vec<Source> = is_rust
            .then(|| Source::parse(path.to_owned(), text))
            .into_iter()
            .collect();
        check(&texts, &sources, &mut findings);
        findings
    }

    #[test]
    fn long_files_functions_and_lines_are_found() {
        let long = "\n".repeat(LONG_FILE + 1);
        assert_eq!(findings("crates/lsm/src/a.rs", &long).len(), 1);
        assert_eq!(findings("crates/x/src/generated/a.rs", &long).len(), 0);
        let function = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(LONG_FUNCTION));
        assert_eq!(findings("crates/lsm/src/a.rs", &function).len(), 1);
        let test = format!("#[cfg(test)]\nmod tests {{\n{function}}}\n");
        assert_eq!(findings("crates/lsm/src/a.rs", &test).len(), 0);
        let comment = format!("// {}\n", "word ".repeat(21));
        assert_eq!(findings("crates/lsm/src/a.rs", &comment).len(), 1);
        assert_eq!(findings("docs/locks.md", &"word ".repeat(21)).len(), 1);
    }

    #[test]
    fn lines_that_cannot_be_broken_are_not_found() {
        let words = "word ".repeat(21);
        for text in [
            format!("//! | {words} |"),
            format!("fn f() {{ g(\"{words}\") }}"),
            format!("// see https://example.org/{}", "x".repeat(100)),
        ] {
            assert_eq!(findings("crates/lsm/src/a.rs", &text).len(), 0, "{text}");
        }
        for text in [format!("| {words} |"), format!("```\n{words}\n```")] {
            assert_eq!(findings("docs/locks.md", &text).len(), 0, "{text}");
        }
    }

    #[test]
    fn percentiles_are_lengths_that_occur() {
        let sorted: Vec<usize> = (1..=100).collect();
        assert_eq!((percentile(&sorted, 99), percentile(&sorted, 50)), (99, 50));
        assert_eq!(percentile(&[], 99), 0);
    }
}
