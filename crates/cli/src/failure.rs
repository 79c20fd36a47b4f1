//! Failures of a command: exit code and text on stderr.

use esker_status::Error;

/// The result of a command and of its parts.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something went wrong: one `error:` line, exit code 1.
    Status(Error),
    /// The arguments contradict each other: one `error:` line, exit code 2.
    Usage(String),
    /// Problems were found and printed already: exit code 1.
    Said,
    /// Done, but data was lost, which was printed already: exit code 3.
    LostData,
    /// Nobody reads the output any more, as behind `head`: exit code 0.
    Closed,
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Failure::Status(e)
    }
}
