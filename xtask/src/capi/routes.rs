//! Which setters and getters are plain accessors of a field, from `crates/capi/spec/accessors.txt`.
//!
//! A line is `PREFIX PATH ROWS...`: a function called `PREFIX` + `set_` or `get_` + NAME reads or
//! writes `PATH.FIELD` of its handle; the path `.` is the handle itself. A row is `@db`, `@family`,
//! `@table`, ... for every option of that section of the catalogue, a field's name, or
//! `NAME=FIELD`.

use super::c_lexer::bad;
use esker::options::{
    CompressionSettings, DbOptions, FamilyOptions, FifoSettings, OptionSet, TableSettings,
    UniversalSettings,
};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Where the accessors lead.
#[derive(Debug, Default)]
pub(super) struct Routes {
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    prefix: String,
    path: String,
    fields: BTreeMap<String, String>,
}

/// Reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Get,
    Set,
}

fn rows<S: OptionSet>() -> Vec<&'static str> {
    S::entries().iter().map(|e| e.info.name).collect()
}

fn section(name: &str) -> Option<Vec<&'static str>> {
    Some(match name {
        "db" => rows::<DbOptions>(),
        "family" => rows::<FamilyOptions>(),
        "table" => rows::<TableSettings>(),
        "compression" => rows::<CompressionSettings>(),
        "universal" => rows::<UniversalSettings>(),
        "fifo" => rows::<FifoSettings>(),
        _ => return None,
    })
}

impl Routes {
    /// Reads the table of accessors.
    pub(super) fn read(path: &Path) -> io::Result<Routes> {
        let mut routes = Routes::default();
        for line in std::fs::read_to_string(path)?.lines() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.split_whitespace();
            let (Some(prefix), Some(path)) = (words.next(), words.next()) else {
                return Err(bad(format!("accessors: {line:?}")));
            };
            let mut fields = BTreeMap::new();
            for word in words {
                if let Some(name) = word.strip_prefix('@') {
                    let rows = section(name).ok_or_else(|| bad(format!("no section {name}")))?;
                    fields.extend(rows.iter().map(|r| (r.to_lowercase(), r.to_lowercase())));
                } else if let Some((name, field)) = word.split_once('=') {
                    fields.insert(name.to_lowercase(), field.to_owned());
                } else {
                    fields.insert(word.to_lowercase(), word.to_owned());
                }
            }
            routes.lines.push(Line {
                prefix: prefix.to_owned(),
                path: path.to_owned(),
                fields,
            });
        }
        Ok(routes)
    }

    /// The field that `function` accesses, and how, if it is an accessor.
    pub(super) fn find(&self, function: &str) -> Option<(Access, String)> {
        for line in &self.lines {
            let Some(rest) = function.strip_prefix(&line.prefix) else {
                continue;
            };
            let (access, name) = if let Some(name) = rest.strip_prefix("set_") {
                (Access::Set, name)
            } else if let Some(name) = rest.strip_prefix("get_") {
                (Access::Get, name)
            } else {
                continue;
            };
            if let Some(field) = line.fields.get(&name.to_lowercase()) {
                let path = match line.path.as_str() {
                    "." => field.clone(),
                    path => format!("{path}.{field}"),
                };
                return Some((access, path));
            }
        }
        None
    }
}
