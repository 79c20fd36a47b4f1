//! One event as one line of JSON, in the form that tools for RocksDB's LOG files read:
//! `EVENT_LOG_v1 {"time_micros": 1, "job": 2, "event": "flush_started"}`.

use std::fmt::Write as _;

/// The start of such a line.
pub const EVENT_LOG_PREFIX: &str = "EVENT_LOG_v1";

/// A line being put together.
#[derive(Clone, Debug)]
pub struct EventLine {
    text: String,
}

/// Writes `value` as a JSON string.
fn quote(out: &mut String, value: &str) {
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

impl EventLine {
    /// An event at `time_us` (microseconds since the Unix epoch) of the job `job`.
    pub fn new(event: &str, job: u64, time_us: u64) -> Self {
        let mut line = EventLine {
            text: format!("{EVENT_LOG_PREFIX} {{\"time_micros\": {time_us}, \"job\": {job}"),
        };
        line = line.text("event", event);
        line
    }

    fn name(&mut self, name: &str) {
        self.text.push_str(", ");
        quote(&mut self.text, name);
        self.text.push_str(": ");
    }

    /// Adds a text.
    #[must_use]
    pub fn text(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        quote(&mut self.text, value);
        self
    }

    /// Adds a number.
    #[must_use]
    pub fn number(mut self, name: &str, value: u64) -> Self {
        self.name(name);
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{value}");
        self
    }

    /// Adds a list of numbers.
    #[must_use]
    pub fn numbers(mut self, name: &str, values: impl IntoIterator<Item = u64>) -> Self {
        self.name(name);
        let list: Vec<String> = values.into_iter().map(|v| v.to_string()).collect();
        self.text.push('[');
        self.text.push_str(&list.join(", "));
        self.text.push(']');
        self
    }

    /// Adds an object of numbers.
    #[must_use]
    pub fn figures<'a>(
        mut self,
        name: &str,
        figures: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Self {
        self.name(name);
        self.text.push('{');
        for (at, (figure, value)) in figures.into_iter().enumerate() {
            self.text.push_str(if at == 0 { "" } else { ", " });
            quote(&mut self.text, figure);
            // Writing to a string cannot fail.
            let _ = write!(self.text, ": {value}");
        }
        self.text.push('}');
        self
    }

    /// The line.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.text.push('}');
        self.text
    }
}
