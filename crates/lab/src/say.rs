//! Lines on standard output and on standard error.
//!
//! A reader of its first lines closes the pipe (`| head`), and standard error may be closed or
//! full. That ends the output, not the run, and nobody panics.

use std::io::Write as _;

/// Prints a line.
pub(crate) fn line(text: std::fmt::Arguments<'_>) {
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
    let _closed = writeln!(std::io::stderr().lock(), "{text}");
}

/// Prints a line on standard error, as `eprintln!` does where nobody can go away.
macro_rules! complain {
    ($($text:tt)*) => { crate::say::error_line(format_args!($($text)*)) };
}
pub(crate) use complain;
