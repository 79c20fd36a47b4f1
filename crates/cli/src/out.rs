//! Output: lines of text for people, or one JSON object per line for programs.
//!
//! Everything a command prints passes through here, so that a closed pipe ends a listing quietly.

use crate::failure::{Failure, Outcome};
use crate::text::printable;
use esker_status::{Error, ErrorKind};
use serde_json::Value;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

/// Buffered standard output.
pub(crate) struct Out {
    to: BufWriter<StdoutLock<'static>>,
    json: bool,
    is_terminal: bool,
}

impl Out {
    /// Standard output, as JSON lines when `json`.
    pub(crate) fn new(json: bool) -> Out {
        Out {
            to: BufWriter::with_capacity(1 << 16, io::stdout().lock()),
            json,
            is_terminal: io::stdout().is_terminal(),
        }
    }

    /// Returns whether a person sees the lines as they come.
    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// The bytes of a key or a value: as they are, or, on a terminal, with control bytes escaped.
    pub(crate) fn stored(&mut self, bytes: &[u8]) -> Outcome {
        if self.is_terminal {
            self.bytes(printable(bytes).as_bytes())
        } else {
            self.bytes(bytes)
        }
    }

    /// Returns whether the output is for programs.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// One line of text; nothing in JSON mode.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> Outcome {
        if self.json {
            return Ok(());
        }
        self.bytes(text.as_ref().as_bytes())?;
        self.bytes(b"\n")
    }

    /// One JSON object on a line of its own; nothing in text mode. Made only when wanted.
    pub(crate) fn object(&mut self, make: impl FnOnce() -> Value) -> Outcome {
        if !self.json {
            return Ok(());
        }
        let text = make().to_string();
        self.bytes(text.as_bytes())?;
        self.bytes(b"\n")
    }

    /// Raw bytes, whatever the mode.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Outcome {
        self.to.write_all(bytes).map_err(|e| failed(&e))
    }

    /// Writes what is buffered.
    pub(crate) fn flush(&mut self) -> Outcome {
        self.to.flush().map_err(|e| failed(&e))
    }
}

fn failed(e: &io::Error) -> Failure {
    if e.kind() == io::ErrorKind::BrokenPipe {
        return Failure::Closed;
    }
    Failure::Status(Error::new(ErrorKind::Io, format!("write the output: {e}")))
}
