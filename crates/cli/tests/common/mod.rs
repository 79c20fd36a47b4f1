//! Running the command, and making databases with RocksDB's own tools where they are installed.
#![allow(dead_code)] // Each test program uses its part.

pub(crate) mod damage;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// The exit code and the output of a run of `esker`.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Ran {
        Ran {
            code: output
                .status
                .code()
                .expect("the command was not killed by a signal"),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The output as JSON lines.
    #[track_caller]
    pub(crate) fn json(&self) -> Vec<Value> {
        let parse =
            |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.out.lines().map(parse).collect()
    }

    /// Checks that the run exited with `code`, and returns it.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Ran {
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.out, self.err
        );
        self
    }
}

/// Runs `esker` with these arguments.
pub(crate) fn esker<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_esker"))
        .args(args)
        .output();
    Ran::of(output.expect("the command runs"))
}

/// Runs `esker` with words and a path at the end.
pub(crate) fn esker_on(args: &[&str], path: &Path) -> Ran {
    let mut all: Vec<&std::ffi::OsStr> = args.iter().map(std::ffi::OsStr::new).collect();
    all.push(path.as_os_str());
    esker(&all)
}

/// Runs one of RocksDB's tools; `None`, and a word, when it is not installed.
pub(crate) fn tool(name: &str, args: &[String]) -> Option<String> {
    match Command::new(name).args(args).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{name} {args:?}: {text}{err}");
            Some(text)
        }
        Err(e) => {
            println!("skipped: {name}: {e}");
            None
        }
    }
}

/// Puts pairs into a database with `ldb`.
pub(crate) fn ldb_put(db: &Path, pairs: &[(&str, &str)]) -> Option<()> {
    let mut args = vec![
        format!("--db={}", db.display()),
        "--create_if_missing".into(),
        "batchput".into(),
    ];
    args.extend(
        pairs
            .iter()
            .flat_map(|(k, v)| [(*k).to_owned(), (*v).to_owned()]),
    );
    tool("ldb", &args).map(drop)
}

/// A database of several tables and a log, made by `db_bench`.
pub(crate) fn db_bench(db: &Path, extra: &[&str]) -> Option<()> {
    let mut args = vec![
        format!("--db={}", db.display()),
        "--benchmarks=fillrandom".to_owned(),
        "--num=20000".to_owned(),
        "--value_size=100".to_owned(),
        "--write_buffer_size=500000".to_owned(),
        "--target_file_size_base=300000".to_owned(),
        "--max_bytes_for_level_base=600000".to_owned(),
        "--bloom_bits=10".to_owned(),
        "--seed=7".to_owned(),
    ];
    args.extend(extra.iter().map(|s| (*s).to_owned()));
    tool("db_bench", &args).map(drop)
}

/// Every file of a directory with its bytes, to see that nothing changed.
pub(crate) fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = std::fs::read_dir(dir)
        .expect("a directory")
        .map(|e| e.expect("an entry"))
        .filter(|e| e.path().is_file())
        .map(|e| {
            (
                e.file_name().to_string_lossy().into_owned(),
                std::fs::read(e.path()).expect("a file"),
            )
        })
        .collect();
    all.sort();
    all
}
