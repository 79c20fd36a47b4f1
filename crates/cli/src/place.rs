//! Where the database is named: `--db=DB` before or after the command's name, an argument, or the
//! variable `ESKER_DB`. Each command's parser knows one of the forms; here the other ones become
//! that one.

use clap::{Arg, Command};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Commands that name the database last, since it is what they make.
const LAST: &[&str] = &["restore"];

/// Commands that remove what the database holds: it has to be named on their line.
const EXPLICIT: &[&str] = &["destroy", "restore"];

/// The command line, taken apart.
struct Parts<'c> {
    command: &'c Command,
    /// Everything but `--db` and its value.
    words: Vec<OsString>,
    /// Where the words behind the command's name begin.
    behind: usize,
    /// Where the arguments without a name are in it.
    positions: Vec<usize>,
    db: Option<OsString>,
    /// The command reads its arguments itself.
    is_opaque: bool,
}

/// The arguments as the command's parser wants them, and the command. `fallback` is the database
/// where none is named.
pub(crate) fn placed(
    root: &Command,
    args: Vec<OsString>,
    fallback: Option<OsString>,
) -> (Vec<OsString>, &Command) {
    let mut parts = parts(root, &args);
    if parts.db.is_none() && !parts.is_opaque && parts.lacks_database() {
        parts.db = fallback;
    }
    let command = parts.command;
    if parts.is_opaque {
        return (args, command);
    }
    (put(parts), command)
}

fn parts<'c>(root: &'c Command, args: &[OsString]) -> Parts<'c> {
    let mut parts = Parts {
        command: root,
        words: Vec::new(),
        behind: 1,
        positions: Vec::new(),
        db: None,
        is_opaque: false,
    };
    let mut rest = args.iter();
    parts.words.extend(rest.next().cloned());
    let mut is_escaped = false;
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        if is_escaped || !text.starts_with('-') || text.len() == 1 {
            let found = parts.command.find_subcommand(word);
            if let Some(command) = found.filter(|_| parts.positions.is_empty() && !is_escaped) {
                parts.command = command;
                parts.behind = parts.words.len() + 1;
                parts.is_opaque |= command.is_disable_help_flag_set();
            } else {
                parts.positions.push(parts.words.len());
            }
        } else if text == "--" {
            is_escaped = true;
        } else if text == "--db" {
            parts.db = rest.next().cloned();
            continue;
        } else if let Some(path) = word.as_bytes().strip_prefix(b"--db=") {
            parts.db = Some(OsStr::from_bytes(path).to_owned());
            continue;
        } else if takes_value(parts.command, root, &text) {
            parts.words.push(word.clone());
            parts.words.extend(rest.next().cloned());
            continue;
        }
        parts.words.push(word.clone());
    }
    parts
}

/// Tells whether the word after `--name` is its value.
fn takes_value(command: &Command, root: &Command, text: &str) -> bool {
    let Some(name) = text.strip_prefix("--").filter(|n| !n.contains('=')) else {
        return false;
    };
    let is_it = |a: &&Arg| {
        let others = a.get_all_aliases().unwrap_or_default();
        a.get_long() == Some(name) || others.contains(&name)
    };
    let mut all = command.get_arguments().chain(root.get_arguments());
    all.find(is_it)
        .is_some_and(|a| a.get_action().takes_values() && !a.is_require_equals_set())
}

/// The command wants the database by position.
fn is_database(arg: &Arg) -> bool {
    let names = arg.get_value_names().unwrap_or_default();
    arg.is_positional() && names.iter().any(|n| n.split('|').any(|part| part == "DB"))
}

impl Parts<'_> {
    /// The command wants a database, and has fewer words than it needs with one.
    fn lacks_database(&self) -> bool {
        let named = self
            .command
            .get_arguments()
            .find(|a| a.get_long() == Some("db"));
        let by_position = self.command.get_positionals().any(is_database);
        let required = self.command.get_positionals();
        let words = |a: &Arg| a.get_num_args().map_or(1, |n| n.min_values().max(1));
        let required: usize = required.filter(|a| a.is_required_set()).map(words).sum();
        let lacks = match named {
            Some(db) => db.is_required_set() && self.positions.len() <= required,
            None => by_position && self.positions.len() < required,
        };
        lacks && !EXPLICIT.contains(&self.command.get_name())
    }
}

fn put(parts: Parts<'_>) -> Vec<OsString> {
    let Parts {
        command,
        mut words,
        behind,
        positions,
        db,
        ..
    } = parts;
    let named = command.get_arguments().any(|a| a.get_long() == Some("db"));
    let by_position = command.get_positionals().any(is_database);
    let option = |db: &OsStr| {
        let mut word = OsString::from("--db=");
        word.push(db);
        word
    };
    match db {
        // Before `--`, which would end the options.
        Some(db) if named || !by_position => words.insert(behind, option(&db)),
        Some(db) => {
            let at = positions.first().copied().unwrap_or(words.len());
            words.insert(at, db);
        }
        None if named => {
            let wanted = command
                .get_positionals()
                .filter(|a| a.is_required_set())
                .count();
            let at = if LAST.contains(&command.get_name()) {
                positions.last()
            } else {
                positions.first()
            };
            if let Some(at) = at.filter(|_| positions.len() > wanted) {
                let db = words.remove(*at);
                words.insert(behind, option(&db));
            }
        }
        None => {}
    }
    words
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;
    use clap::CommandFactory;
    use std::ffi::OsString;

    fn put(words: &str) -> String {
        put_or(words, None)
    }

    fn put_or(words: &str, fallback: Option<&str>) -> String {
        let mut root = Cli::command();
        root.build();
        let args = words.split(' ').map(OsString::from).collect();
        let (words, _) = super::placed(&root, args, fallback.map(OsString::from));
        let words: Vec<_> = words.iter().map(|w| w.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn a_database_is_named_by_option_or_by_position() {
        for (given, placed) in [
            ("esker get D k", "esker get --db=D k"),
            ("esker get --hex D 0x00", "esker get --db=D --hex 0x00"),
            ("esker get --cf users D k", "esker get --db=D --cf users k"),
            ("esker --db D get k", "esker get --db=D k"),
            ("esker --json --db=D get k", "esker --json get --db=D k"),
            ("esker get k --db D", "esker get --db=D k"),
            ("esker get k", "esker get k"),
            ("esker get --db=D -- --k", "esker get --db=D -- --k"),
            ("esker put D a 1", "esker put --db=D a 1"),
            ("esker batchput D a 1", "esker batchput --db=D a 1"),
            ("esker scan D", "esker scan --db=D"),
            ("esker scan --from a D", "esker scan --db=D --from a"),
            ("esker check --db=D", "esker check D"),
            (
                "esker --db=D check --threads 2",
                "esker check --threads 2 D",
            ),
            ("esker sst --db D --scan", "esker sst --scan D"),
            ("esker options lint --db=D", "esker options lint D"),
            (
                "esker families create D f",
                "esker families create --db=D f",
            ),
            ("esker checkpoint D TO", "esker checkpoint --db=D TO"),
            ("esker backup create D B", "esker backup create --db=D B"),
            ("esker backup restore B D", "esker backup restore --db=D B"),
            ("esker backup list B", "esker backup list B"),
            ("esker bench --db=D x", "esker bench --db=D x"),
        ] {
            assert_eq!(put(given), placed, "{given}");
        }
    }

    #[test]
    fn a_variable_names_the_database_where_nothing_else_does() {
        for (given, placed) in [
            ("esker get k", "esker get --db=E k"),
            ("esker scan", "esker scan --db=E"),
            ("esker get D k", "esker get --db=D k"),
            ("esker get --db=D k", "esker get --db=D k"),
            ("esker put a 1", "esker put --db=E a 1"),
            ("esker check", "esker check E"),
            ("esker check D", "esker check D"),
            ("esker sst --scan", "esker sst --scan E"),
            ("esker families create f", "esker families create --db=E f"),
            ("esker checkpoint TO", "esker checkpoint --db=E TO"),
            // These remove what is there.
            ("esker destroy", "esker destroy"),
            ("esker backup restore B", "esker backup restore B"),
            // These take no database.
            ("esker backup list", "esker backup list"),
            ("esker options explain", "esker options explain"),
        ] {
            assert_eq!(put_or(given, Some("E")), placed, "{given}");
        }
    }
}
