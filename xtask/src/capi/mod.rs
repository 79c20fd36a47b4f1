//! The C library's interface: one specification, and everything that follows from it.
//!
//! `crates/capi/spec/rocksdb.api` names every type, enum value, callback and function of RocksDB's
//! C API. From it and from what `crates/capi/src` implements by hand come the header, the accessors
//! of options, the refusals of what is not supported yet, and a compile-time check that each
//! function has the signature it must have. A function becomes supported by being written; nothing
//! else has to be told.

mod c_header;
mod c_lexer;
mod c_types;
mod header;
mod routes;
mod rust;
mod scan;
mod spec;

use crate::{Findings, generated};
use spec::Spec;
use std::io;
use std::path::{Path, PathBuf};

fn read_spec(root: &Path) -> io::Result<Spec> {
    let path = root.join("crates/capi/spec/rocksdb.api");
    Spec::parse(&std::fs::read_to_string(path)?)
}

fn read_additions(root: &Path) -> io::Result<Spec> {
    let path = root.join("crates/capi/spec/esker.api");
    Spec::parse(&std::fs::read_to_string(path)?)
}

fn generate(root: &Path) -> io::Result<(Spec, rust::Generated)> {
    let spec = read_spec(root)?;
    let capi = root.join("crates/capi");
    let written = scan::hand_written(&capi.join("src"))?;
    let routes = routes::Routes::read(&capi.join("spec/accessors.txt"))?;
    let made = rust::generate(&spec, &written, &routes)?;
    Ok((spec, made))
}

/// The files that follow from the specification, with their contents.
fn outputs(root: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let (spec, made) = generate(root)?;
    let additions = read_additions(root)?;
    let capi = root.join("crates/capi");
    Ok(vec![
        (capi.join("include/rocksdb/c.h"), header::print(&spec)),
        (
            capi.join("include/rocksdb/esker.h"),
            header::print_additions(&additions),
        ),
        (
            capi.join("src/generated/added.rs"),
            rust::additions(&additions)?,
        ),
        (capi.join("src/generated/types.rs"), made.types),
        (capi.join("src/generated/accessors.rs"), made.accessors),
        (capi.join("src/generated/refused.rs"), made.refused),
        (capi.join("src/generated/signatures.rs"), made.signatures),
    ])
}

/// The names of the functions that Esker adds.
pub(crate) fn added(root: &Path) -> io::Result<Vec<String>> {
    let functions = read_additions(root)?.functions.into_iter();
    Ok(functions.map(|(name, _)| name).collect())
}

/// The figures of the perf context by their names and numbers in the C interface.
pub(crate) fn perf_metrics(root: &Path) -> io::Result<Vec<(String, i64)>> {
    let groups = read_spec(root)?.enums.into_iter().map(|e| e.values);
    let mut groups = groups.filter(|values| values.iter().any(|(n, _)| n == PERF_END));
    let metrics = groups.next().unwrap_or_default().into_iter();
    Ok(metrics.filter(|(name, _)| name != PERF_END).collect())
}

/// Ends the group of the figures of the perf context.
const PERF_END: &str = "rocksdb_total_metric_count";

/// The names of the declared functions.
pub(crate) fn functions(root: &Path) -> io::Result<Vec<String>> {
    let functions = read_spec(root)?.functions.into_iter();
    Ok(functions.map(|(name, _)| name).collect())
}

/// The section of the compatibility page about the C library.
pub(crate) fn status(root: &Path) -> io::Result<String> {
    Ok(generate(root)?.1.status)
}

/// Writes what follows from the specification.
pub(crate) fn write(root: &Path) -> io::Result<Findings> {
    let mut findings = Findings::new();
    for (path, text) in outputs(root)? {
        findings.extend(generated::write(&path, &text)?);
    }
    Ok(findings)
}

/// Checks that what follows from the specification is current.
pub(crate) fn check(root: &Path) -> io::Result<Findings> {
    let mut findings = Findings::new();
    for (path, text) in outputs(root)? {
        findings.extend(generated::check(&path, &text, "cargo xtask capi")?);
    }
    Ok(findings)
}

/// Prints a specification made from one of RocksDB's headers, to start from or to compare with.
pub(crate) fn import(header: &Path) -> io::Result<Findings> {
    let spec = c_header::parse(&std::fs::read_to_string(header)?)?;
    print!("{}", spec.print());
    Ok(Findings::new())
}

/// Compares the specification with one of RocksDB's headers: names, types and values.
pub(crate) fn compare(root: &Path, header: &Path) -> io::Result<Findings> {
    let ours = read_spec(root)?;
    let theirs = c_header::parse(&std::fs::read_to_string(header)?)?;
    let findings = ours.differences(&theirs);
    println!(
        "{} functions, {} types, {} callbacks, {} enum values in the specification; {} functions in the header",
        ours.functions.len(),
        ours.types.len(),
        ours.callbacks.len(),
        ours.enums.iter().map(|e| e.values.len()).sum::<usize>(),
        theirs.functions.len(),
    );
    Ok(findings)
}
