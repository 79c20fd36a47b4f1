//! The specification as a value: what it holds, how it is read and printed, how two of them differ.
//!
//! One line per item, in C's own types:
//!
//! ```text
//! type rocksdb_t
//! struct rocksdb_slice_t(const char* data, size_t size)
//! callback on_flush_begin_cb(void* arg0, rocksdb_t* db) -> void
//! enum
//!   rocksdb_no_compression = 0
//! fn rocksdb_put(rocksdb_t* db, ..., char** errptr) -> void
//! ```

use super::c_lexer::{Lexer, bad};
use super::c_types::{Enum, Param, Signature};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// A whole interface.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spec {
    /// Opaque types.
    pub(crate) types: Vec<String>,
    /// Types with members, which are passed by value.
    pub(crate) structs: Vec<(String, Vec<Param>)>,
    /// Named function types.
    pub(crate) callbacks: Vec<(String, Signature)>,
    /// Groups of constants.
    pub(crate) enums: Vec<Enum>,
    /// Functions, in the header's order.
    pub(crate) functions: Vec<(String, Signature)>,
}

impl Spec {
    /// Reads a specification.
    pub(crate) fn parse(text: &str) -> io::Result<Spec> {
        let mut spec = Spec::default();
        for (at, line) in text.lines().enumerate() {
            let here = |e: io::Error| bad(format!("line {}: {e}", at + 1));
            let line = line.trim_end();
            let (word, rest) = line.trim_start().split_once(' ').unwrap_or((line, ""));
            match word {
                "" => {}
                _ if word.starts_with('#') => {}
                "enum" => spec.enums.push(Enum::default()),
                "type" => spec.types.push(rest.to_owned()),
                "struct" => {
                    let mut lexer = Lexer::new(rest);
                    let name = lexer.next().to_owned();
                    spec.structs.push((name, lexer.params().map_err(here)?));
                }
                "callback" => spec.callbacks.push(Lexer::new(rest).item().map_err(here)?),
                "fn" => spec.functions.push(Lexer::new(rest).item().map_err(here)?),
                _ if line.starts_with("  ") => {
                    let (name, value) = line
                        .split_once('=')
                        .ok_or_else(|| here(bad("name = value")))?;
                    let value = value
                        .trim()
                        .parse()
                        .map_err(|_| here(bad("a whole number")))?;
                    let group = spec.enums.last_mut();
                    let group = group.ok_or_else(|| here(bad("a value outside an enum")))?;
                    group.values.push((name.trim().to_owned(), value));
                }
                _ => return Err(here(bad("not type, callback, enum or fn"))),
            }
        }
        Ok(spec)
    }

    /// The text that [`Spec::parse`] reads.
    pub(crate) fn print(&self) -> String {
        let mut out = String::new();
        for name in &self.types {
            out.push_str(&format!("type {name}\n"));
        }
        for (name, fields) in &self.structs {
            let fields: Vec<String> = fields.iter().map(|p| p.of.in_c(&p.name)).collect();
            out.push_str(&format!("struct {name}({})\n", fields.join(", ")));
        }
        out.push('\n');
        for (name, signature) in &self.callbacks {
            out.push_str(&format!("callback {}\n", item(name, signature)));
        }
        for group in &self.enums {
            out.push_str("\nenum\n");
            for (name, value) in &group.values {
                out.push_str(&format!("  {name} = {value}\n"));
            }
        }
        out.push('\n');
        for (name, signature) in &self.functions {
            out.push_str(&format!("fn {}\n", item(name, signature)));
        }
        out
    }

    /// Lists the names that only one of both has, and those that are not the same in both.
    pub(crate) fn differences(&self, other: &Spec) -> Vec<String> {
        let mut findings = Vec::new();
        let functions = |s: &Spec| -> BTreeMap<String, String> {
            s.functions
                .iter()
                .chain(&s.callbacks)
                .map(|(name, f)| (name.clone(), f.shape()))
                .collect()
        };
        let values = |s: &Spec| -> BTreeMap<String, String> {
            let all = s.enums.iter().flat_map(|e| &e.values);
            all.map(|(name, v)| (name.clone(), v.to_string())).collect()
        };
        let types = |s: &Spec| -> BTreeMap<String, String> {
            let opaque = s.types.iter().map(|t| (t.clone(), String::new()));
            let whole = s.structs.iter().map(|(name, fields)| {
                let fields: Vec<String> = fields.iter().map(|p| p.of.in_c(&p.name)).collect();
                (name.clone(), fields.join("; "))
            });
            opaque.chain(whole).collect()
        };
        for (ours, theirs) in [
            (functions(self), functions(other)),
            (values(self), values(other)),
            (types(self), types(other)),
        ] {
            let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
            for name in names {
                match (ours.get(name), theirs.get(name)) {
                    (Some(a), Some(b)) if a == b => {}
                    (Some(a), Some(b)) => findings.push(format!("{name}: {a} here, {b} there")),
                    (Some(_), None) => findings.push(format!("{name}: only here")),
                    _ => findings.push(format!("{name}: missing here")),
                }
            }
        }
        findings
    }
}

fn item(name: &str, signature: &Signature) -> String {
    let params: Vec<String> = signature
        .params
        .iter()
        .map(|p| p.of.in_c(&p.name))
        .collect();
    format!(
        "{name}({}) -> {}",
        params.join(", "),
        signature.result.in_c("")
    )
}
