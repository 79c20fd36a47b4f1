//! Errors of the benchmark, as one sentence for the terminal.
//!
//! A benchmark that fails stops the run; nothing here is matched on, so a text is enough.

use std::fmt;

/// Why a run stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    text: String,
    /// The command line is wrong.
    is_usage: bool,
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with the given sentence.
    pub fn new(text: impl Into<String>) -> Failure {
        Failure {
            text: text.into(),
            is_usage: false,
        }
    }

    /// A failure of the command line.
    pub fn usage(text: impl Into<String>) -> Failure {
        Failure::new(text).of_usage()
    }

    /// Counts it as a failure of the command line.
    #[must_use]
    pub fn of_usage(mut self) -> Failure {
        self.is_usage = true;
        self
    }

    /// Tells whether the command line is wrong.
    pub fn is_usage(&self) -> bool {
        self.is_usage
    }

    /// The call that a loaded library does not have, if that is the failure: nothing has run then.
    pub fn lack(&self) -> Option<&str> {
        let starts = ["this library has no ", "this library does not export "];
        let at = starts.iter().find_map(|start| self.text.find(start))?;
        Some(&self.text[at..])
    }

    /// Puts what was being done in front of what went wrong.
    pub fn context(mut self, what: impl fmt::Display) -> Failure {
        self.text = format!("{what}: {}", self.text);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::new(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_a_library_does_not_have_is_told_from_a_failure() {
        let old = Failure::new("this library has no batched multi-get").context("multireadrandom");
        assert_eq!(old.lack(), Some("this library has no batched multi-get"));
        assert_eq!(Failure::new("IO error: No space left").lack(), None);
    }
}
