//! The calls of a Get and a Put, as `ARCHITECTURE.md` traces them.
//!
//! A line of a trace is `CRATE/FILE.rs::function`, indented below the function that calls it.
//! Each function has to exist, and the one above it has to name it, in the order of the lines.
//! The number of files that a trace passes may fall and not rise.

use crate::Findings;
use crate::source::Source;
use std::collections::BTreeSet;

const DOCUMENT: &str = "ARCHITECTURE.md";
/// The heading above the traces.
const CHAPTER: &str = "## Calls of a Get and a Put";
/// The headings of the traces, and how many files each may pass.
const TRACES: [(&str, usize); 2] = [("### Get", 40), ("### Put", 39)];

/// One line of a trace.
struct Line {
    /// In the document.
    number: usize,
    depth: usize,
    file: String,
    function: String,
}

/// The path of a file that a trace names `engine/db/mod.rs`.
fn path_of(file: &str) -> String {
    match file.split_once('/') {
        Some((name, inside)) => format!("crates/{name}/src/{inside}"),
        None => file.to_owned(),
    }
}

/// The lines of the block below `heading`.
fn trace(document: &str, heading: &str, findings: &mut Findings) -> Vec<Line> {
    let lines = document.lines().enumerate();
    let block = lines
        .skip_while(|(_, line)| *line != CHAPTER)
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "))
        .skip_while(|(_, line)| *line != heading)
        .skip_while(|(_, line)| !line.starts_with("```"))
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("```"));
    let mut out = Vec::new();
    for (at, line) in block {
        let call = line.trim_start();
        let depth = (line.len() - call.len()) / 2;
        let call = call.split_whitespace().next().unwrap_or_default();
        match call.split_once("::") {
            Some((file, function)) => out.push(Line {
                number: at + 1,
                depth,
                file: path_of(file),
                function: function.to_owned(),
            }),
            None => findings.push(format!("{DOCUMENT}:{}: {line:?} is no call", at + 1)),
        }
    }
    out
}

/// The words of a piece of code.
fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
}

/// The words of each function of this name, from its name to its end.
fn functions<'a>(source: &'a Source, name: &str) -> Vec<Vec<&'a str>> {
    let code = &source.code[..source.tests_from];
    let begins = |line: &str| {
        words(line)
            .zip(words(line).skip(1))
            .any(|(before, word)| before == "fn" && word == name)
    };
    let mut out = Vec::new();
    for (at, line) in code.iter().enumerate().filter(|(_, line)| begins(line)) {
        let indent = line.len() - line.trim_start().len();
        let is_end = |line: &&String| {
            line.len() - line.trim_start().len() == indent && line.trim_start().starts_with('}')
        };
        let is_short = line.trim_end().ends_with(['}', ';']);
        let rest = &code[at + 1..];
        let end = match rest.iter().position(|line| is_end(&line)) {
            Some(end) if !is_short => at + 1 + end,
            _ => at,
        };
        let body = code[at..=end].iter().flat_map(|line| words(line));
        out.push(body.skip_while(|word| *word != name).skip(1).collect());
    }
    out
}

/// Tells whether `calls` stand in `body` in their order.
fn is_in_order(body: &[&str], calls: &[&str]) -> bool {
    let mut rest = body.iter();
    calls.iter().all(|call| rest.any(|word| word == call))
}

fn check_trace(lines: &[Line], sources: &[Source], findings: &mut Findings) {
    for (at, line) in lines.iter().enumerate() {
        let place = format!(
            "{DOCUMENT}:{}: {}::{}",
            line.number, line.file, line.function
        );
        let bodies = sources
            .iter()
            .find(|source| source.path == line.file)
            .map(|source| functions(source, &line.function));
        let bodies = match bodies {
            None => {
                findings.push(format!("{place}: there is no such file"));
                continue;
            }
            Some(bodies) if bodies.is_empty() => {
                findings.push(format!("{place}: there is no such function"));
                continue;
            }
            Some(bodies) => bodies,
        };
        let below = lines[at + 1..].iter().take_while(|l| l.depth > line.depth);
        let calls: Vec<&str> = below
            .filter(|l| l.depth == line.depth + 1)
            .map(|l| l.function.as_str())
            .collect();
        for call in &calls {
            if !bodies.iter().any(|body| body.contains(call)) {
                findings.push(format!("{place}: does not name {call}"));
            }
        }
        if !bodies.iter().any(|body| is_in_order(body, &calls)) {
            findings.push(format!("{place}: does not name its calls in this order"));
        }
    }
}

/// Checks the traces of `ARCHITECTURE.md` against the functions that they name.
pub(crate) fn check(texts: &[(String, String)], sources: &[Source], findings: &mut Findings) {
    let document = texts.iter().find(|(path, _)| path == DOCUMENT);
    let document = document.map_or("", |(_, text)| text.as_str());
    for (heading, most) in TRACES {
        let lines = trace(document, heading, findings);
        if lines.len() < 2 {
            findings.push(format!(
                "{DOCUMENT}: no trace under {CHAPTER:?}, {heading:?}"
            ));
        }
        check_trace(&lines, sources, findings);
        let files: BTreeSet<&str> = lines.iter().map(|l| l.file.as_str()).collect();
        if files.len() > most {
            findings.push(format!(
                "{DOCUMENT}: {heading:?} passes {} files, and {most} before",
                files.len()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DB: (&str, &str) = (
        "crates/engine/src/db/mod.rs",
        "impl Db {\n    pub fn get(&self) {\n        self.seq();\n        run(self)\n    }\n}",
    );
    const READ: (&str, &str) = (
        "crates/engine/src/read/get.rs",
        "fn run(db: &Db) { look() }\nfn seq() {}\nfn look() {}\n#[cfg(test)]\nmod tests {\n    fn aid() {}\n}",
    );

    /// Returns the findings where both traces are `lines`.
    fn found(lines: &[&str]) -> String {
        let block = format!("\n```text\n{}\n```\n", lines.join("\n"));
        let traces: String = TRACES.iter().map(|(h, _)| format!("{h}{block}")).collect();
        let document = format!("# x\n{CHAPTER}\n{traces}## y\n```text\nnot read\n```\n");
        let sources = [DB, READ].map(|(path, text)| Source::parse(path.to_owned(), text));
        let mut findings = Vec::new();
        check(&[(DOCUMENT.to_owned(), document)], &sources, &mut findings);
        findings.join("\n")
    }

    #[test]
    fn a_trace_of_calls_is_fine() {
        let lines = [
            "engine/db/mod.rs::get",
            "  engine/read/get.rs::seq   the number",
            "  engine/read/get.rs::run",
            "    engine/read/get.rs::look",
        ];
        assert_eq!(found(&lines), "");
    }

    #[test]
    fn what_is_wrong_with_a_trace_is_found() {
        for (lines, expected) in [
            (vec!["engine/db/mod.rs::get"], "no trace under"),
            (vec!["engine/db/gone.rs::get"], "there is no such file"),
            (vec!["engine/db/mod.rs::gone"], "there is no such function"),
            (vec!["engine/read/get.rs::aid"], "there is no such function"),
            (vec!["a word"], "is no call"),
            (
                vec!["engine/db/mod.rs::get", "  engine/read/get.rs::look"],
                "get: does not name look",
            ),
            (
                vec![
                    "engine/db/mod.rs::get",
                    "  engine/read/get.rs::run",
                    "  engine/read/get.rs::seq",
                ],
                "does not name its calls in this order",
            ),
        ] {
            let findings = found(&lines);
            assert!(findings.contains(expected), "{lines:?}: {findings}");
        }
    }
}
