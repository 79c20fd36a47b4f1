//! The grammar of OPTIONS files and of nested option values; no knowledge of option names.
//!
//! A file is a list of sections (`[Title]`, `[Title "argument"]`) holding `name=value` statements.
//! `#` starts a comment unless a backslash stands before it. Values may nest: `{a=1;b={c=2;};}`.
//! Errors carry the line. Values are kept as written: the caller, which knows that an option is a
//! string, unescapes it.

use esker_status::{Error, Result};
use std::fmt;

/// How deep values may nest; RocksDB's own files nest three deep.
pub const MAX_NESTING: usize = 64;

/// One section of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// `Version`, `DBOptions`, `CFOptions`, `TableOptions/BlockBasedTable`.
    pub title: String,
    /// The family's name, unescaped; absent when the section has no argument.
    pub argument: Option<String>,
    /// Name and value of each statement, in order.
    pub statements: Vec<(String, String)>,
    /// The line of its header, counted from 1; 0 in a section that was not read.
    pub line: usize,
}

impl Section {
    /// A section without statements.
    pub fn new(title: impl Into<String>, argument: Option<&str>) -> Self {
        Section {
            title: title.into(),
            argument: argument.map(str::to_owned),
            ..Default::default()
        }
    }

    /// The value of a statement; the first one wins.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.statements
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }

    /// Adds a statement.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.statements.push((name.into(), value.into()));
    }
}

/// A parsed OPTIONS file. `Display` prints it in RocksDB's layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionsText {
    /// The sections, in order.
    pub sections: Vec<Section>,
}

impl OptionsText {
    /// Parses a file; `InvalidArgument` with the line when it is malformed.
    pub fn parse(text: &str) -> Result<OptionsText> {
        let mut sections: Vec<Section> = Vec::new();
        for (i, raw) in text.lines().enumerate() {
            let line = strip_comment(raw).trim();
            if line.is_empty() {
                continue;
            }
            if line.starts_with('[') {
                sections.push(parse_header(line, i + 1)?);
                continue;
            }
            let Some(section) = sections.last_mut() else {
                return Err(at_line(
                    "a statement stands before the first section",
                    i + 1,
                ));
            };
            let Some((name, value)) = line.split_once('=') else {
                return Err(at_line("a statement must have a '='", i + 1));
            };
            let name = name.trim();
            if name.is_empty() {
                return Err(at_line("a statement must have a name", i + 1));
            }
            section.push(name, value.trim());
        }
        Ok(OptionsText { sections })
    }

    /// The first section with this title and argument.
    pub fn section(&self, title: &str, argument: Option<&str>) -> Option<&Section> {
        self.sections
            .iter()
            .find(|s| s.title == title && s.argument.as_deref() == argument)
    }
}

impl fmt::Display for OptionsText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for section in &self.sections {
            match &section.argument {
                Some(a) => writeln!(f, "[{} \"{}\"]", section.title, escape(a))?,
                None => writeln!(f, "[{}]", section.title)?,
            }
            for (name, value) in &section.statements {
                writeln!(f, "  {name}={value}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn at_line(what: &str, line: usize) -> Error {
    Error::invalid_argument(format!("OPTIONS: {what} (at line {line})"))
}

/// The line up to the first `#` that no backslash escapes.
fn strip_comment(line: &str) -> &str {
    let mut escaped = false;
    for (i, c) in line.char_indices() {
        match c {
            '#' if !escaped => return &line[..i],
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    line
}

fn parse_header(line: &str, at: usize) -> Result<Section> {
    let inner = line
        .strip_prefix('[')
        .and_then(|l| l.strip_suffix(']'))
        .ok_or_else(|| at_line("a section header must end with ']'", at))?;
    let (title, argument) = match inner.split_once('"') {
        None => (inner.trim(), None),
        Some((title, rest)) => {
            let argument = rest
                .trim_end()
                .strip_suffix('"')
                .ok_or_else(|| at_line("a section's argument must end with '\"'", at))?;
            (title.trim(), Some(unescape(argument)))
        }
    };
    if title.is_empty() {
        return Err(at_line("a section must have a title", at));
    }
    Ok(Section {
        title: title.to_owned(),
        argument,
        statements: Vec::new(),
        line: at,
    })
}

/// Puts a backslash before `\`, `#`, `:` and turns line breaks into `\n` and `\r`.
pub fn escape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in raw.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' | '#' | ':' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

/// The inverse of [`escape`]; a lone backslash at the end disappears.
pub fn unescape(escaped: &str) -> String {
    let mut out = String::with_capacity(escaped.len());
    let mut chars = escaped.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => {}
            },
            _ => out.push(c),
        }
    }
    out
}

/// Parses `a=1;b={c=2;d=3};` into its pairs, in order. Outer braces, of the whole text and of each
/// value, are taken off once per level; parse a nested value by calling this again.
pub fn parse_pairs(text: &str) -> Result<Vec<(String, String)>> {
    let mut rest = strip_braces(text);
    let mut pairs = Vec::new();
    while !rest.is_empty() {
        let (name, after) = rest
            .split_once('=')
            .ok_or_else(|| Error::invalid_argument("Mismatched key value pair, '=' expected"))?;
        if name.contains(['{', '}', ';']) {
            return Err(Error::invalid_argument("Unexpected char in key"));
        }
        let name = name.trim();
        if name.is_empty() {
            return Err(Error::invalid_argument("Empty key found"));
        }
        let (value, next) = next_token(after, ';')?;
        pairs.push((name.to_owned(), value.to_owned()));
        rest = next.trim();
    }
    Ok(pairs)
}

/// Splits `a:b:{c:d}` at `delimiter`, leaving braced parts whole and unbraced.
pub fn split_list(text: &str, delimiter: char) -> Result<Vec<String>> {
    let mut rest = text.trim();
    let mut items = Vec::new();
    while !rest.is_empty() {
        let (item, next) = next_token(rest, delimiter)?;
        items.push(item.to_owned());
        rest = next.trim();
    }
    Ok(items)
}

/// Takes one value up to `delimiter`: a braced one without its braces. Returns it and what follows.
fn next_token(text: &str, delimiter: char) -> Result<(&str, &str)> {
    let text = text.trim_start();
    if !text.starts_with('{') {
        return Ok(match text.split_once(delimiter) {
            Some((token, rest)) => (token.trim(), rest),
            None => (text.trim(), ""),
        });
    }
    let close = matching_brace(text)?;
    let rest = text[close + 1..].trim_start();
    let rest = match rest.strip_prefix(delimiter) {
        Some(rest) => rest,
        None if rest.is_empty() => rest,
        None => {
            return Err(Error::invalid_argument(
                "Unexpected chars after nested options",
            ));
        }
    };
    Ok((text[1..close].trim(), rest))
}

/// Where the brace that opens `text` closes.
fn matching_brace(text: &str) -> Result<usize> {
    let mut depth = 0usize;
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Ok(i);
        }
        if depth > MAX_NESTING {
            return Err(Error::invalid_argument(
                "nested options are nested too deeply",
            ));
        }
    }
    Err(Error::invalid_argument(
        "Mismatched curly braces for nested options",
    ))
}

/// Takes off the braces that enclose all of `text`, however many.
pub fn strip_braces(text: &str) -> &str {
    let mut text = text.trim();
    while text.starts_with('{') && matching_brace(text).is_ok_and(|close| close + 1 == text.len()) {
        text = text[1..text.len() - 1].trim();
    }
    text
}

/// Prints pairs as `{a=1;b=2;}`; values that hold a `;` or `=` must come braced.
pub fn print_pairs<N: AsRef<str>, V: AsRef<str>>(pairs: &[(N, V)]) -> String {
    let mut out = String::from("{");
    for (name, value) in pairs {
        out.push_str(name.as_ref());
        out.push('=');
        out.push_str(value.as_ref());
        out.push(';');
    }
    out.push('}');
    out
}

#[cfg(test)]
#[path = "options_text_tests.rs"]
mod tests;
