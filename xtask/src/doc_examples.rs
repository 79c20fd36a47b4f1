//! Examples in the documentation of the facade: how many of its public items have one.
//!
//! The facade is the crate `esker` and those whose items it passes on. An item counts by the line
//! that declares it, tests apart; what a macro declares by a name of its own does not. The examples
//! run as tests of the documentation, which this does not check.

use crate::Findings;
use crate::source::Source;

/// The facade and the crates behind it, by their directories.
const CRATES: &[&str] = &["esker", "engine", "options", "txn", "backup"];
/// The fewest public items that have an example.
const FEWEST: usize = 200;
/// Words between `pub` and the name of an item.
const KINDS: &[&str] = &[
    "async", "const", "enum", "fn", "struct", "trait", "type", "unsafe",
];

/// Returns whether a line of code declares a public item.
fn is_item(line: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix("pub ") else {
        return false;
    };
    let mut words = rest.split_whitespace().peekable();
    let has_kind = words.peek().is_some_and(|word| KINDS.contains(word));
    let name = words.find(|word| !KINDS.contains(word));
    has_kind && name.is_some_and(|name| !name.starts_with('$'))
}

/// Returns whether the documentation at the end of `above`, attributes apart, has an example.
fn has_example(above: &[String]) -> bool {
    let is_attribute = |line: &&str| {
        let is_code = line.ends_with(['{', '}', ';']);
        !line.is_empty() && !line.starts_with("///") && !is_code
    };
    let above = above.iter().rev().map(|line| line.trim());
    above
        .skip_while(is_attribute)
        .take_while(|line| line.starts_with("///"))
        .any(|line| line.contains("```"))
}

/// Checks that enough public items have an example, and says in one line how many do.
pub(crate) fn check(sources: &[Source], findings: &mut Findings) -> String {
    let (mut items, mut with) = (0, 0);
    let is_facade = |source: &&Source| {
        CRATES.contains(&source.crate_name()) && source.path.split('/').nth(2) == Some("src")
    };
    for source in sources.iter().filter(is_facade) {
        for (line_no, _) in source.production().filter(|(_, line)| is_item(line)) {
            items += 1;
            with += usize::from(has_example(&source.lines[..line_no - 1]));
        }
    }
    if with < FEWEST {
        findings.push(format!(
            "{with} public items of the facade have an example, under {FEWEST}: write one for what \
             is new"
        ));
    }
    format!("{with} of {items} public items of the facade have an example")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(path: &str, text: &str) -> (String, Findings) {
        let mut findings = Findings::new();
        let said = check(&[Source::parse(path.to_owned(), text)], &mut findings);
        (said, findings)
    }

    fn counted(text: &str) -> String {
        let (said, _) = checked("crates/engine/src/a.rs", text);
        let (count, _) = said.split_once(" public").expect("a count of items");
        count.to_owned()
    }

    #[test]
    fn items_and_their_examples_are_counted() {
        let example = "/// x\n///\n/// ```\n/// f();\n/// ```\n";
        for (declared, count) in [
            ("pub fn f() {}", "1 of 1"),
            ("#[inline]\n#[must_use]\npub fn f() {}", "1 of 1"),
            (
                "#[allow(\n    dead_code,\n    reason = \"x\"\n)]\npub async fn f() {}",
                "1 of 1",
            ),
            ("    pub const fn f() {}", "1 of 1"),
            ("pub struct S {\n    pub field: u8,\n}", "1 of 1"),
            ("pub enum E {}\npub trait T {}\npub type A = E;", "1 of 3"),
            ("fn g() {}\npub fn f() {}", "0 of 1"),
            ("\npub const C: u8 = 0;", "0 of 1"),
            ("pub(crate) fn f() {}\npub use x;\npub mod m;", "0 of 0"),
            ("pub fn $name() {}", "0 of 0"),
            ("#[cfg(test)]\nmod tests {\n    pub fn f() {}\n}", "0 of 0"),
        ] {
            assert_eq!(
                counted(&format!("{example}{declared}\n")),
                count,
                "{declared}"
            );
        }
        assert_eq!(
            counted("/// pub fn f() is not code.\npub fn g() {}\n"),
            "0 of 1"
        );
    }

    #[test]
    fn too_few_examples_are_found() {
        let one = "/// ```\n/// ```\npub fn f() {}\n\n";
        let path = "crates/txn/src/a.rs";
        assert_eq!(checked(path, &one.repeat(FEWEST)).1, Findings::new());
        assert_eq!(checked(path, &one.repeat(FEWEST - 1)).1.len(), 1);
        for elsewhere in ["crates/lsm/src/a.rs", "crates/txn/tests/a.rs"] {
            let (said, findings) = checked(elsewhere, &one.repeat(FEWEST));
            assert!(said.starts_with("0 of 0 ") && findings.len() == 1, "{said}");
        }
    }
}
