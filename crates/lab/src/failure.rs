//! Errors of the benchmark, as one sentence for the terminal.
//!
//! A benchmark that fails stops the run; nothing here is matched on, so a text is enough.

use std::fmt;

/// Why a run stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(String);

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with the given sentence.
    pub fn new(text: impl Into<String>) -> Failure {
        Failure(text.into())
    }

    /// What a loaded library has no call for, if that is the failure: nothing has run then.
    pub fn lack(&self) -> Option<&str> {
        let starts = ["this library has no ", "this library does not export "];
        let at = starts.iter().find_map(|start| self.0.find(start))?;
        Some(&self.0[at..])
    }

    /// Puts what was being done in front of what went wrong.
    pub fn context(self, what: impl fmt::Display) -> Failure {
        Failure(format!("{what}: {}", self.0))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure(error.to_string())
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
