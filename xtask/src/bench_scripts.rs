//! `cargo xtask bench-scripts`: RocksDB's own benchmark scripts, unmodified, on our `db_bench`.
//!
//! The scripts are in the package with RocksDB's sources, which cargo fetches; nothing of it is
//! kept in the repository. Every job of `benchmark.sh` runs at the smallest size, and every column
//! of `report.tsv` that RocksDB's program fills has to be filled. `--compare` also runs
//! `benchmark_compare.sh`, one job of which takes five minutes at any size. `--db-bench PATH` runs
//! another program in the place of ours, to see what it fills.

use crate::Findings;
use crate::install::executable;
use crate::oracle::package;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const USAGE: &str = "usage: cargo xtask bench-scripts [--compare] [--db-bench PATH]";

/// Programs that the scripts call.
const TOOLS: [&str; 7] = ["bash", "awk", "bc", "gzip", "ps", "vmstat", "/usr/bin/time"];

/// The jobs of `benchmark.sh` in an order that gives each the database that it needs, with the test
/// in `report.tsv` where there is one. What merges comes late: jobs that only read have no
/// operator.
const JOBS: [(&str, &str); 23] = [
    ("fillseq_disable_wal", "fillseq.wal_disabled.v400"),
    ("fillseq_enable_wal", "fillseq.wal_enabled.v400"),
    ("filluniquerandom", "filluniquerandom"),
    ("overwrite", "overwrite.t2.s0"),
    ("overwritesome", "overwritesome.t2.s0"),
    ("overwriteandwait", "overwriteandwait.t2.s0"),
    ("updaterandom", "updaterandom.t2.s0"),
    ("readrandom", "readrandom.t2"),
    ("multireadrandom", "multireadrandom.t2"),
    ("fwdrange", "fwdrange.t2"),
    ("revrange", "revrange.t2"),
    ("flush_mt_l0", ""),
    ("waitforcompaction", ""),
    ("readwhilewriting", "readwhilewriting.t2"),
    ("fwdrangewhilewriting", "fwdrangewhilewriting.t2"),
    ("revrangewhilewriting", "revrangewhilewriting.t2"),
    ("mergerandom", "mergerandom.t2.s0"),
    ("readwhilemerging", "readwhilemerging.t2"),
    ("fwdrangewhilemerging", "fwdrangewhilemerging.t2"),
    ("revrangewhilemerging", "revrangewhilemerging.t2"),
    ("bulkload", "bulkload"),
    ("randomtransaction", ""),
    ("universal_compaction", ""),
];

/// Columns that may be empty: RocksDB 11 does not print the line of `Nstall` either, and `rss`
/// comes from `ps` every ten seconds, which is more than a job takes here.
const MAY_BE_EMPTY: [&str; 2] = ["Nstall", "rss"];

/// `benchmark_compare.sh` clears the environment and passes no job id on.
const EMPTY_IN_COMPARE: [&str; 1] = ["job_id"];

/// Jobs of one second on few keys.
const SIZE: [(&str, &str); 12] = [
    ("NUM_KEYS", "2000"),
    ("DURATION", "1"),
    ("NUM_THREADS", "2"),
    ("CACHE_SIZE", "8388608"),
    ("WRITE_BUFFER_SIZE_MB", "1"),
    ("TARGET_FILE_SIZE_BASE_MB", "1"),
    ("MAX_BYTES_FOR_LEVEL_BASE_MB", "4"),
    ("MAX_BACKGROUND_JOBS", "4"),
    ("STATS_INTERVAL_SECONDS", "1"),
    ("COMPRESSION_TYPE", "lz4"),
    ("DB_BENCH_NO_SYNC", "1"),
    ("JOB_ID", "smallest"),
];

/// Gives a script processes of its own: it ends all of a name at the end of each job.
const APART: [&str; 4] = ["unshare", "--pid", "--fork", "--mount-proc"];

/// Stands before the system's `killall` where that does not work: ends what the caller started.
const KILLALL: &str = "#!/bin/bash\n\
    ps -o pid=,comm= --ppid \"$PPID\" | awk -v name=\"$1\" '$2 == name { print $1 }' |\n\
    xargs -r kill\n";

/// Runs as `args` say.
pub(crate) fn run(root: &Path, args: &[&str]) -> io::Result<Findings> {
    let (mut compare, mut program) = (false, None);
    let mut args = args.iter();
    while let Some(&flag) = args.next() {
        match flag {
            "--compare" => compare = true,
            "--db-bench" => {
                let path = args.next().ok_or_else(|| io::Error::other(USAGE))?;
                program = Some(std::path::absolute(path)?);
            }
            _ => return Err(io::Error::other(USAGE)),
        }
    }
    let missing: Vec<&str> = TOOLS.into_iter().filter(|tool| !is_there(tool)).collect();
    if !missing.is_empty() {
        println!(
            "bench-scripts: skipped, not installed: {}",
            missing.join(", ")
        );
        return Ok(Vec::new());
    }
    let work = root.join("target/bench-scripts");
    std::fs::create_dir_all(&work)?;
    let sources = match package::fetch(&work, package::ROCKSDB_SOURCES) {
        Ok(sources) => sources.join("rocksdb/tools"),
        Err(error) => {
            println!("bench-scripts: skipped, no RocksDB sources: {error}");
            return Ok(Vec::new());
        }
    };
    let program = match program {
        Some(program) => program,
        None => build(root)?,
    };
    let place = Place::new(&work.join("run"), &program)?;
    let mut findings = Vec::new();
    for (job, _) in JOBS {
        findings.extend(place.job(&sources.join("benchmark.sh"), job, &[])?);
    }
    let report = std::fs::read_to_string(place.out().join("report.tsv"))?;
    for (_, test) in JOBS.iter().filter(|(_, test)| !test.is_empty()) {
        findings.extend(check(&report, test, &[]));
    }
    for style in ["universal", "blob"] {
        let own = place.out().join(style);
        let more = [
            ("COMPACTION_STYLE", style.to_owned()),
            ("OUTPUT_DIR", own.display().to_string()),
        ];
        let script = sources.join("benchmark.sh");
        findings.extend(place.job(&script, "fillseq_disable_wal", &more)?);
        findings.extend(place.job(&script, "overwrite", &more)?);
        let report = std::fs::read_to_string(own.join("report.tsv"))?;
        findings.extend(check(&report, "overwrite.t2.s0", &[]));
    }
    if compare {
        findings.extend(place.compare(&sources)?);
    }
    print_columns(&report);
    Ok(findings)
}

fn is_there(tool: &str) -> bool {
    if tool.starts_with('/') {
        return Path::new(tool).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(tool).is_file())
}

/// Builds our program and says where it is.
fn build(root: &Path) -> io::Result<PathBuf> {
    let output = Command::new(package::cargo())
        .current_dir(root)
        .args(["build", "--bin", "db_bench"])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other("db_bench does not build"));
    }
    executable(&output.stdout, "db_bench")
}

/// Where the scripts run: `db_bench` has to be in their directory.
struct Place {
    path: PathBuf,
    /// True if scripts run apart from the other processes of the machine.
    is_apart: bool,
}

impl Place {
    fn new(path: &Path, program: &Path) -> io::Result<Place> {
        if path.exists() {
            std::fs::remove_dir_all(path)?;
        }
        for part in ["db", "out", "bin"] {
            std::fs::create_dir_all(path.join(part))?;
        }
        symlink(program, path.join("db_bench"))?;
        symlink(program, path.join("db_bench.ours"))?;
        let killall = path.join("bin/killall");
        std::fs::write(&killall, KILLALL)?;
        std::fs::set_permissions(&killall, PermissionsExt::from_mode(0o755))?;
        let mut apart = Command::new(APART[0]);
        apart.args(&APART[1..]).arg("true");
        let done = apart.stderr(Stdio::null()).status();
        Ok(Place {
            path: path.to_owned(),
            is_apart: done.is_ok_and(|status| status.success()),
        })
    }

    fn out(&self) -> PathBuf {
        self.path.join("out")
    }

    fn command(&self, script: &Path) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = if self.is_apart {
            let mut command = Command::new(APART[0]);
            command.args(&APART[1..]).arg("bash");
            command
        } else {
            Command::new("bash")
        };
        command
            .arg(script)
            .current_dir(&self.path)
            .env(
                "PATH",
                format!("{}:{path}", self.path.join("bin").display()),
            )
            .env("TEST_TMPDIR", self.path.join("tmp"))
            .envs(SIZE)
            .stdin(Stdio::null());
        command
    }

    /// One job of `benchmark.sh`.
    fn job(&self, script: &Path, job: &str, more: &[(&str, String)]) -> io::Result<Findings> {
        let began = std::time::Instant::now();
        let output = self
            .command(script)
            .arg(job)
            .env("DB_DIR", self.path.join("db"))
            .env("WAL_DIR", self.path.join("db"))
            .env("OUTPUT_DIR", self.out())
            .envs(more.iter().map(|(name, value)| (*name, value.as_str())))
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        println!("{job}: {:.1} s", began.elapsed().as_secs_f64());
        let complaints = ["db_bench: ", "unknown flag", "ERROR: unknown", "panicked"];
        let complaint = |line: &&str| complaints.iter().any(|c| line.starts_with(c));
        let mut findings: Findings = said
            .lines()
            .filter(complaint)
            .map(|line| format!("{job}: {line}"))
            .collect();
        if !output.status.success() {
            findings.push(format!("{job}: the script ended with {}", output.status));
        }
        Ok(findings)
    }

    /// `benchmark_compare.sh` with our program as the only version.
    fn compare(&self, sources: &Path) -> io::Result<Findings> {
        if !self.is_apart {
            // It clears the path, and so calls the system's own `killall`.
            println!("benchmark_compare.sh: skipped, `unshare --pid` is not allowed here");
            return Ok(Vec::new());
        }
        let script = self.path.join("benchmark.sh");
        std::fs::copy(sources.join("benchmark.sh"), script)?;
        let status = self
            .command(&sources.join("benchmark_compare.sh"))
            .args([self.path.join("db"), self.out().join("compare")])
            .arg("ours")
            .env("DURATION_RW", "2")
            .env("DURATION_RO", "2")
            .env("CACHE_SIZE_MB", "8")
            .status()?;
        if !status.success() {
            return Ok(vec![format!("benchmark_compare.sh ended with {status}")]);
        }
        let own = self.out().join("compare/ours/report.tsv");
        let report = std::fs::read_to_string(&own)?;
        let tests = [
            "fillseq.wal_disabled.v400",
            "revrange.t1",
            "readrandom.t2",
            "fwdrange.t2",
            "multireadrandom.t2",
            "overwritesome.t2.s0",
            "revrangewhilewriting.t2",
            "fwdrangewhilewriting.t2",
            "readwhilewriting.t2",
            "overwriteandwait.t2.s0",
        ];
        print_columns(&report);
        let found = |test: &&str| check(&report, test, &EMPTY_IN_COMPARE);
        Ok(tests.iter().flat_map(found).collect())
    }
}

fn header(report: &str) -> Vec<&str> {
    let line = report.lines().find(|line| line.starts_with("ops_sec"));
    line.map_or_else(Vec::new, |line| line.split('\t').collect())
}

/// The last row of a test in a report, as columns.
fn last_row<'a>(report: &'a str, test: &str) -> Option<Vec<&'a str>> {
    let at = header(report).iter().position(|name| *name == "test")?;
    let mut rows = report
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    rows.rfind(|row| row.get(at) == Some(&test))
}

/// The columns that the row of a test lacks; those in `script` are never filled by the script.
fn check(report: &str, test: &str, script: &[&str]) -> Findings {
    let Some(row) = last_row(report, test) else {
        return vec![format!("report.tsv has no row of {test}, or it failed")];
    };
    let header = header(report);
    let empty = header.iter().enumerate().filter(|(at, name)| {
        let is_empty = row.get(*at).is_none_or(|cell| cell.trim().is_empty());
        is_empty && !MAY_BE_EMPTY.contains(name) && !script.contains(name)
    });
    empty
        .map(|(_, name)| format!("report.tsv: {test} has no {name}"))
        .collect()
}

/// Prints which columns are filled, and which are not, in the rows of a report.
fn print_columns(report: &str) {
    let header = header(report);
    let rows: Vec<Vec<&str>> = report
        .lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with("ops_sec"))
        .map(|line| line.split('\t').collect())
        .collect();
    let is_filled = |at: usize| {
        let cell = |row: &Vec<&str>| row.get(at).is_some_and(|cell| !cell.trim().is_empty());
        rows.iter().filter(|row| cell(row)).count()
    };
    let cells = header.iter().enumerate();
    let cells: Vec<String> = cells
        .map(|(at, name)| format!("{name} {}", is_filled(at)))
        .collect();
    println!(
        "columns filled in {} rows: {}",
        rows.len(),
        cells.join(", ")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_column_and_a_missing_row_are_findings() {
        let report = "# a comment\nops_sec\tmb_sec\tNstall\ttest\tversion\n\
                      10\t\t\tfill\t11.8.1\n20\t1.5\t\tread\t11.8.1\n";
        assert_eq!(check(report, "read", &[]), Vec::<String>::new());
        assert_eq!(
            check(report, "fill", &[]),
            ["report.tsv: fill has no mb_sec"]
        );
        assert_eq!(check(report, "fill", &["mb_sec"]), Vec::<String>::new());
        assert_eq!(check(report, "scan", &[]).len(), 1);
        let failed = "ops_sec\tmb_sec\tNstall\ttest\tversion\nfailed\t\t\tread\t11.8.1\n";
        assert!(!check(failed, "read", &[]).is_empty());
    }
}
