//! Names of our own that were given up for those of the field, and must not come back.

use crate::Findings;
use crate::source::Source;

/// Path prefixes and the identifiers that must not stand in code below them.
const OLD_NAMES: &[(&str, &[&str])] = &[
    (
        "crates/",
        &[
            "struct Held",
            "type Held",
            "enum Turn",
            "struct Turn",
            "struct Stack",
            "enum Stack",
        ],
    ),
    (
        "crates/env/src/",
        &[
            "ahead::",
            "behind::",
            "Later",
            "Stamps",
            "TURN",
            "mod over",
            "mod slack",
            "mod turns",
        ],
    ),
    ("crates/files/src/log/", &["Remains", "mod remains"]),
    (
        "crates/lsm/",
        &[
            "Moment",
            "WISHES",
            "wish",
            "Gathered",
            "CALM",
            "WIDEST",
            "DEAREST",
            "falling",
            "hangs",
            "run_above",
            "is_overgrown",
            "is_level0_near_its_brim",
            "writers_work",
            "writers_press",
            "reaching_down",
            "one_level_deeper",
            "relief_of_level0",
            "crowd",
            "crowd_beside_a_merge",
            "Fill",
        ],
    ),
    (
        "crates/lsm/src/pick/",
        &["Column", "price", "mod stack", "mod column"],
    ),
    (
        "crates/sim/src/",
        &[
            "mod rot",
            "mod hunt",
            "mod many",
            "mod live",
            "mod world",
            "mod beside",
            "World",
            "fn hunt",
            "fn many",
            "fn live",
        ],
    ),
    (
        "crates/torture/src/",
        &["mod starve", "mod starved", "fn starve"],
    ),
    (
        "crates/engine/src/",
        &[
            "Tide",
            "Holdups",
            "Entrant",
            "presses",
            "give_way",
            "Touched",
            "Shares",
            "Tally",
            "Tallied",
            "Ties",
            "ManifestMark",
            "stay_away",
            "stand_still",
            "wait_to_go_on",
            "let_aside",
            "run_hurried",
            "is_awaited",
            "Standing",
            "Did",
            "Tuning",
            "purge_but",
            "Garbage",
            "Flow",
            "Taking",
            "untold",
            "beyond_bound",
            "Relief",
            "takes_wish",
            "Gate",
            "Account",
            "Watched",
            "unseen",
            "UNSEEN",
            "steer",
            "gravest",
            "struct Place",
            "mod part",
            "Wake",
            "Halt",
            "mod tide",
            "mod gate",
            "mod holdup",
            "mod touched",
            "mod tally",
            "mod hurried",
            "mod announce",
            "mod line",
            "mod wake",
            "mod halt",
            "mod garbage",
            "mod flow",
            "mod traffic",
        ],
    ),
];

/// Whether `name` stands in `code` as a word of its own.
fn stands_in(code: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + name.len()..].chars().next();
        let ends = name.ends_with(':') || !after.is_some_and(is_word);
        !before.is_some_and(is_word) && ends
    })
}

/// Finds old names in the code of a file.
pub(crate) fn check(source: &Source, findings: &mut Findings) {
    for (prefix, names) in OLD_NAMES.iter().filter(|(p, _)| source.path.starts_with(p)) {
        for (at, line) in source.code.iter().enumerate() {
            for name in names.iter().filter(|name| stands_in(line, name)) {
                let (path, line) = (&source.path, at + 1);
                findings.push(format!("{path}:{line}: {name} is an old name ({prefix})"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        let mut findings = Vec::new();
        check(&Source::parse(path.to_owned(), text), &mut findings);
        findings.len()
    }

    #[test]
    fn old_names_are_found_where_they_were() {
        assert_eq!(
            found("crates/lsm/src/score.rs", "fn f(moment: Moment) {}"),
            1
        );
        assert_eq!(found("crates/sim/src/lib.rs", "pub mod rot;"), 1);
        assert_eq!(
            found("crates/lsm/src/score.rs", "fn writers_work_on() {}"),
            0
        );
        assert_eq!(found("crates/lsm/src/score.rs", "// a wish"), 0);
        assert_eq!(found("crates/engine/src/a.rs", "struct Moment;"), 0);
    }
}
