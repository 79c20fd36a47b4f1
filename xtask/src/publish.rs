//! Published records of the laboratory: the gate, and the index that is made of them.
//!
//! `cargo xtask page --publish [RESULTS ...]` takes in the records of directories of results that
//! pass the gate, and writes the index of all records. With `--check` nothing is written: every
//! record has to pass, and every row of the index has to be what its record says.

use std::io;
use std::path::{Path, PathBuf};

use esker_lab::experiment::record::Record;
use esker_lab::experiment::state::read_record;
use esker_lab::page::publish::{index, index_findings, refusals};

use crate::Findings;

const RECORDS: &str = "docs/benchmarks/records";
const INDEX: &str = "docs/benchmarks/index.md";

fn read(path: &Path) -> io::Result<Record> {
    read_record(path).map_err(io::Error::other)
}

/// The published records by name, in order.
fn records(root: &Path) -> io::Result<Vec<(String, Record)>> {
    let directory = root.join(RECORDS);
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    paths.sort();
    let named = paths.iter().map(|path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok((name.into_owned(), read(path)?))
    });
    named.collect()
}

fn refused(name: &str, record: &Record) -> Findings {
    let all = refusals(record).into_iter();
    all.map(|why| format!("{name}: {why}")).collect()
}

/// Takes in a record that passes.
fn take_in(root: &Path, results: &str) -> io::Result<Findings> {
    let record = read(Path::new(results))?;
    let found = refused(results, &record);
    if found.is_empty() {
        let text = serde_json::to_string(&record).map_err(io::Error::other)?;
        std::fs::create_dir_all(root.join(RECORDS))?;
        let path = format!("{RECORDS}/{}.json", record.experiment);
        std::fs::write(root.join(path), text + "\n")?;
    }
    Ok(found)
}

/// Runs it.
pub(crate) fn run(root: &Path, args: &[&str]) -> io::Result<Findings> {
    let mut out = Vec::new();
    let (checks, results) = match args {
        ["--check"] => (true, &args[1..]),
        _ => (false, args),
    };
    if let Some(wrong) = results.iter().find(|arg| arg.starts_with('-')) {
        return Err(io::Error::other(format!("{wrong} is not an argument")));
    }
    for path in results {
        out.extend(take_in(root, path)?);
    }
    let all = records(root)?;
    for (name, record) in &all {
        out.extend(refused(name, record));
    }
    let path = root.join(INDEX);
    if !checks {
        std::fs::write(&path, index(&all))?;
        return Ok(out);
    }
    let text = std::fs::read_to_string(&path)?;
    let rows = index_findings(&all, &text).into_iter();
    out.extend(rows.map(|why| format!("{INDEX}: {why}: run `cargo xtask page --publish`")));
    out.extend(pages(root)?);
    Ok(out)
}

/// Pages in the tree, which are drawn again from records.
fn pages(root: &Path) -> io::Result<Findings> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(root.join("docs/benchmarks"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".html") {
            out.push(format!(
                "docs/benchmarks/{name}: pages are not kept; `esker lab report` draws them"
            ));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_lab::page::sample;

    #[test]
    fn a_record_that_fails_is_not_taken_in_and_one_that_passes_has_its_row() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(root.path().join("docs/benchmarks")).expect("a directory");
        let results = root.path().join("record.json");
        let write = |record: &Record| {
            let text = serde_json::to_string(record).expect("a document");
            std::fs::write(&results, text).expect("writes");
        };
        let arg = results.to_string_lossy().into_owned();
        let publish = |args: &[&str]| run(root.path(), args).expect("runs");
        let mut stopped = sample::record();
        stopped.complete = false;
        write(&stopped);
        let found = publish(&[&arg]);
        assert!(
            found[0].ends_with("it was stopped before its end"),
            "{found:?}"
        );
        assert!(records(root.path()).expect("none").is_empty());
        write(&sample::record());
        assert_eq!(publish(&[&arg]), [""; 0]);
        assert_eq!(publish(&["--check"]), [""; 0]);
        // The record changes, and its row does not.
        let path = root.path().join(RECORDS).join("sample.json");
        let text = std::fs::read_to_string(&path).expect("a record");
        std::fs::write(
            &path,
            text.replacen("\"began\":17957", "\"began\":17947", 1),
        )
        .expect("writes");
        let found = publish(&["--check"]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("the row of sample"), "{found:?}");
        std::fs::write(root.path().join("docs/benchmarks/old.html"), "").expect("writes");
        assert_eq!(publish(&["--check"]).len(), 2);
    }
}
