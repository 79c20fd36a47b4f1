//! Lines on standard output and on standard error.
//!
//! A reader of its first lines closes the pipe (`| head`), and standard error may be closed or
//! full. That ends the output, not the run, and nobody panics.

use std::io::Write as _;
use std::sync::OnceLock;

/// Prints a line.
type Printer = fn(&str);

/// Printers of output and of notes, of a caller that has a form of its own for them.
static PRINTERS: OnceLock<(Printer, Printer)> = OnceLock::new();

/// Hands all lines to a caller: those of output, and the notes beside it. Set once.
pub fn print_by(output: Printer, note: Printer) {
    let _first = PRINTERS.set((output, note));
}

/// Prints a line.
pub(crate) fn line(text: std::fmt::Arguments<'_>) {
    match PRINTERS.get() {
        Some((output, _)) => output(&text.to_string()),
        None => plain(text),
    }
}

/// Prints a line that has its form already.
pub(crate) fn plain(text: std::fmt::Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    let _closed = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Prints a line, as `println!` does where nobody can go away.
macro_rules! say {
    ($($text:tt)*) => { crate::say::line(format_args!($($text)*)) };
}
pub(crate) use say;

/// Prints a line on standard error.
pub(crate) fn error_line(text: std::fmt::Arguments<'_>) {
    if let Some((_, note)) = PRINTERS.get() {
        return note(&text.to_string());
    }
    let _closed = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints a line on standard error, as `eprintln!` does where nobody can go away.
macro_rules! complain {
    ($($text:tt)*) => { crate::say::error_line(format_args!($($text)*)) };
}
pub(crate) use complain;
