//! Lines on standard output.
//!
//! A reader of its first lines closes the pipe (`| head`). That ends the output, not
//! the run, and nobody panics.

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
