//! Messages on stderr: one place for errors, warnings and notes of every command.
//!
//! With `--json` each is one JSON object. A stderr that nobody reads, or that is full, changes
//! nothing: what a command did is in its exit code.

use crate::text::one_line;
use esker_format::file_name::{CURRENT, FileKind, parse_file_name};
use esker_status::{Error, Subcode};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;
use std::sync::OnceLock;

/// The manner of messages, by the command line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MessageStyle {
    /// Messages are JSON objects.
    pub(crate) json: bool,
    /// The command takes `--set`.
    pub(crate) takes_set: bool,
    /// The command takes `--create-if-missing`.
    pub(crate) takes_create: bool,
    /// Notes are not given.
    pub(crate) is_quiet: bool,
}

static MANNER: OnceLock<MessageStyle> = OnceLock::new();

/// Sets how messages are given, once, for the crates that print by themselves as well.
pub(crate) fn begin(manner: MessageStyle) {
    let _first = MANNER.set(manner);
    #[cfg(feature = "lab")]
    if manner.json {
        esker_lab::print_by(output, remark);
        esker_differential::print_by(esker_differential::Printers {
            output,
            note: remark,
            error: |text| failure(false, text),
        });
    }
}

/// Tells whether output and messages are JSON objects.
#[cfg(feature = "lab")]
pub(crate) fn is_json() -> bool {
    manner().json
}

/// A line of output of a crate that prints by itself, as an object.
#[cfg(feature = "lab")]
fn output(text: &str) {
    let object = json!({"type": "text", "text": text.trim_end()});
    let mut out = io::stdout().lock();
    // A reader that goes away ends the output, not the run.
    let _closed = writeln!(out, "{object}").and_then(|()| out.flush());
}

fn manner() -> MessageStyle {
    MANNER.get().copied().unwrap_or_default()
}

fn put(text: &str) {
    // There is no other place to tell of a failure.
    let _unread = writeln!(io::stderr().lock(), "{text}");
}

/// A line as it is, of a program with lines of its own.
pub(crate) fn plain(text: &str) {
    put(text);
}

fn say(kind: &str, text: &str, object: impl FnOnce() -> Value) {
    if manner().json {
        put(&object().to_string());
    } else {
        put(&format!("{kind}: {}", one_line(text)));
    }
}

/// Why the command failed.
pub(crate) fn error(e: &Error) {
    let e = explained(e.clone());
    say("error", &e.to_string(), || error_json("error", &e));
}

/// An error as an object.
pub(crate) fn error_json(kind: &str, e: &Error) -> Value {
    json!({"type": kind, "kind": format!("{:?}", e.kind()), "message": e.message(),
        "file": e.file().map(|f| f.to_string_lossy()), "offset": e.offset(), "hint": e.hint()})
}

/// A fault of the arguments.
pub(crate) fn usage(text: &str) {
    say(
        "error",
        text,
        || json!({"type": "error", "kind": "Usage", "message": one_line(text)}),
    );
}

/// A note of a crate that prints by itself, as an object; it may have several lines.
#[cfg(feature = "lab")]
fn remark(text: &str) {
    put(&json!({"type": "note", "message": text.trim()}).to_string());
}

/// Why a run of the laboratory failed; it may take several lines.
#[cfg(feature = "lab")]
pub(crate) fn failure(is_usage: bool, text: &str) {
    if manner().json {
        let kind = if is_usage { "Usage" } else { "Failed" };
        put(&json!({"type": "error", "kind": kind, "message": text}).to_string());
    } else {
        put(&format!("error: {text}"));
    }
}

/// The parser's refusal of the arguments.
pub(crate) fn refused(e: &clap::Error) {
    if manner().json {
        usage(e.to_string().trim_start_matches("error: "));
    } else {
        let _unread = e.print();
    }
}

/// Something that the command did not expect, and went on with.
pub(crate) fn warning(text: &str) {
    say(
        "warning",
        text,
        || json!({"type": "warning", "message": one_line(text)}),
    );
}

/// Something worth a line.
pub(crate) fn note(text: &str) {
    if manner().is_quiet {
        return;
    }
    say(
        "note",
        text,
        || json!({"type": "note", "message": one_line(text)}),
    );
}

/// Gives an error the hint that says what to type.
pub(crate) fn explained(e: Error) -> Error {
    let manner = manner();
    match e.hint() {
        Some(hint) => match typed(hint, manner) {
            same if same == hint => e,
            other => with_other_hint(&e, other),
        },
        None => match missing(&e).or_else(|| full(&e)) {
            Some(hint) => e.with_hint(hint),
            None => e,
        },
    }
}

/// Copies an error with another hint.
fn with_other_hint(e: &Error, hint: String) -> Error {
    let mut other = Error::new(e.kind(), e.message()).with_subcode(e.subcode());
    if let Some(file) = e.file() {
        other = other.with_file(file);
    }
    if let Some(offset) = e.offset() {
        other = other.with_offset(offset);
    }
    other.with_hint(hint)
}

/// The engine's hint in the words of the command line.
fn typed(hint: &str, manner: MessageStyle) -> String {
    if let Some(rest) = hint.strip_prefix("set create_if_missing") {
        return if manner.takes_create {
            format!("add --create-if-missing{rest}")
        } else {
            "is this the directory of a database?".to_owned()
        };
    }
    let Some((before, rest)) = hint.split_once("open with ") else {
        return hint.to_owned();
    };
    if !rest.contains('=') {
        return hint.to_owned();
    }
    let set = if manner.takes_set {
        "add --set "
    } else {
        "open it by a command that takes --set, as `esker scan`, with --set "
    };
    format!("{before}{set}{rest}")
}

/// A hint about a file that a database lacks.
fn missing(e: &Error) -> Option<String> {
    let path = e.file().filter(|_| e.is_not_found())?;
    let name = path.file_name()?.to_str()?;
    let dir = path.parent()?.display();
    if name == CURRENT {
        return Some(format!(
            "is this the directory of a database? If it was one, `esker repair --db={dir} \
             --dry-run` reports what can be saved"
        ));
    }
    let (kind, _) = parse_file_name(name)?;
    let is_named = matches!(kind, FileKind::Table | FileKind::Blob | FileKind::Manifest);
    is_named.then(|| {
        format!(
            "the database names the file: restore it, or run `esker repair --db={dir} --dry-run`, \
             which lists what would be lost"
        )
    })
}

/// A hint about a filesystem that is full.
fn full(e: &Error) -> Option<String> {
    let place = match e.file().and_then(Path::parent) {
        _ if e.subcode() != Subcode::NoSpace => return None,
        Some(dir) => format!("the filesystem of {}", dir.display()),
        None => "a filesystem".to_owned(),
    };
    Some(format!(
        "{place} is full: free some space there and run it again; what was acknowledged before is kept"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_say_what_to_type() {
        let all = MessageStyle {
            takes_set: true,
            takes_create: true,
            ..MessageStyle::default()
        };
        let none = MessageStyle::default();
        let create = "set create_if_missing to make one";
        assert_eq!(typed(create, all), "add --create-if-missing to make one");
        assert_eq!(typed(create, none), "is this the directory of a database?");
        let skip = "open with wal_recovery_mode=kSkipAnyCorruptedRecords";
        let added = "add --set wal_recovery_mode=kSkipAnyCorruptedRecords";
        assert_eq!(typed(skip, all), added);
        assert!(typed(skip, none).contains("--set wal_recovery_mode="));
        let lost = format!("restore the file, or {skip} to go on");
        let typed_lost = format!("restore the file, or {added} to go on");
        assert_eq!(typed(&lost, all), typed_lost);
        assert_eq!(typed("use --hex", all), "use --hex");
    }

    #[test]
    fn a_full_filesystem_comes_with_what_to_do() {
        let e = Error::new(esker_status::ErrorKind::Io, "write").with_file("D/000008.log");
        assert_eq!(explained(e.clone()).hint(), None);
        let text = explained(e.with_subcode(Subcode::NoSpace)).to_string();
        assert!(text.contains("the filesystem of D is full"), "{text}");
    }

    #[test]
    fn a_file_that_is_missing_comes_with_what_to_do() {
        let e = Error::not_found("open").with_file("D/000008.sst");
        assert!(explained(e).to_string().contains("esker repair --db=D"));
        let e = Error::not_found("open").with_file("D/CURRENT");
        assert!(explained(e).hint().is_some());
        assert_eq!(explained(Error::not_found("key")).hint(), None);
    }
}
