//! Lines on standard output and on standard error.
//!
//! A reader that closes the pipe ends the output, not the run, and nobody panics.

use std::io::Write as _;
use std::sync::OnceLock;

/// The printers of a caller that has a form of its own for lines.
pub struct Printers {
    /// Prints a line of output.
    pub output: fn(&str),
    /// Prints a note beside it.
    pub note: fn(&str),
    /// Prints an error.
    pub error: fn(&str),
}

static PRINTERS: OnceLock<Printers> = OnceLock::new();

/// Hands all lines to a caller. Set once.
pub fn print_by(printers: Printers) {
    let _first = PRINTERS.set(printers);
}

/// Prints a line.
pub(crate) fn line(text: &str) {
    if let Some(printers) = PRINTERS.get() {
        return (printers.output)(text);
    }
    let mut out = std::io::stdout().lock();
    let _closed = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Prints a note on standard error.
pub(crate) fn note(text: &str) {
    if let Some(printers) = PRINTERS.get() {
        return (printers.note)(text);
    }
    let _closed = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints an error on standard error.
pub(crate) fn error(text: &str) {
    match PRINTERS.get() {
        Some(printers) => (printers.error)(text),
        None => note(&format!("error: {text}")),
    }
}

/// Prints a line, as `println!` does where the reader stays.
macro_rules! say {
    ($($text:tt)*) => { crate::say::line(&format!($($text)*)) };
}
pub(crate) use say;
