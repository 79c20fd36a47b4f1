//! A run of benchmarks in a process of its own, so that memory and threads start afresh.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::report::Row;
use crate::{Failure, Result, interrupt};

/// Flags that a child does not get from its caller.
const OWN: [&str; 5] = ["json", "db", "seed", "pairs", "configs"];

/// A program to run, with its database.
#[derive(Debug, Clone, Default)]
pub(crate) struct Child {
    /// The directory of the database, which stays.
    pub(crate) path: PathBuf,
    /// The flags.
    pub(crate) args: Vec<String>,
    /// The engine.
    pub(crate) engine: String,
    /// The seed.
    pub(crate) seed: u64,
    /// Another program than this one: an `esker`, `esker-bench` or `db_bench` of some build.
    pub(crate) program: Option<PathBuf>,
    /// Words in front of the program, such as those of a profiler.
    pub(crate) wrapper: Vec<String>,
    /// Where what it prints goes; empty for nowhere.
    pub(crate) log: PathBuf,
}

/// Returns whether a program needs the word `bench` to become a benchmark.
fn needs_word(program: &Path) -> bool {
    let name = program.file_name().and_then(|name| name.to_str());
    !name.is_some_and(|name| name.contains("bench"))
}

impl Child {
    /// The command, which writes its results into a file.
    fn command(&self, results: &Path) -> Result<Command> {
        let (program, word) = match &self.program {
            Some(program) => (program.clone(), needs_word(program)),
            None => {
                // The command `esker` needs the word again, a program of its own has none.
                let mut words = std::env::args().skip(1);
                let word = words
                    .find(|word| !word.starts_with('-'))
                    .unwrap_or_default();
                (std::env::current_exe()?, word == "bench" || word == "lab")
            }
        };
        let mut command = match self.wrapper.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(&program);
                command
            }
            None => Command::new(&program),
        };
        if word {
            command.arg("bench");
        }
        let kept = self.args.iter().filter(|arg| {
            let name = arg.trim_start_matches('-').split('=').next().unwrap_or("");
            !OWN.contains(&name)
        });
        command.args(kept);
        command
            .arg(format!("--engine={}", self.engine))
            .arg(format!("--seed={}", self.seed))
            .arg(format!("--db={}", self.path.display()))
            .arg(format!("--json={}", results.display()));
        Ok(command)
    }

    /// Runs it. `look` is called a few times a second. Of a run that a signal ended the rows are
    /// those that it had.
    ///
    /// # Errors
    /// It cannot be started, or it failed, with the end of what it said.
    pub(crate) fn run(&self, look: &dyn Fn()) -> Result<Vec<Row>> {
        let parent = self.path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent)?;
        let base = format!("esker-bench-{}", std::process::id());
        let results = parent.join(format!("{base}.json"));
        let log = if self.log.as_os_str().is_empty() {
            parent.join(format!("{base}.log"))
        } else {
            self.log.clone()
        };
        let out = File::create(&log)?;
        let mut command = self.command(&results)?;
        command.stderr(out.try_clone()?).stdout(out);
        let name = command.get_program().to_string_lossy().into_owned();
        let start = command.spawn();
        let mut child = start.map_err(|e| Failure::new(format!("cannot run {name}: {e}")))?;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            std::thread::sleep(std::time::Duration::from_millis(200));
            look();
        };
        let text = std::fs::read_to_string(&results).unwrap_or_default();
        let _ = std::fs::remove_file(&results);
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        if self.log.as_os_str().is_empty() {
            let _ = std::fs::remove_file(&log);
        }
        if !status.success() && !interrupt::stopped() {
            return Err(Failure::new(format!(
                "{} failed: {}",
                self.engine,
                cause(&said)
            )));
        }
        if text.is_empty() && interrupt::stopped() {
            return Ok(Vec::new());
        }
        let value: Value = serde_json::from_str(&text)
            .map_err(|e| Failure::new(format!("results of {}: {e}", self.engine)))?;
        let rows = value["rows"].as_array().cloned().unwrap_or_default();
        Ok(rows.iter().filter_map(Row::from_json).collect())
    }
}

/// The line that says why a program ended, and then the end of what it had said before.
fn cause(said: &str) -> String {
    const BEFORE: usize = 7;
    let lines: Vec<&str> = said.trim().lines().collect();
    let Some((last, before)) = lines.split_last() else {
        return "it said nothing".into();
    };
    let before = &before[before.len().saturating_sub(BEFORE)..];
    if before.is_empty() {
        return (*last).to_string();
    }
    format!("{last}\nbefore that:\n{}", before.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(child: &Child) -> Vec<String> {
        let command = child.command(Path::new("r.json")).expect("a command");
        let program = command.get_program().to_string_lossy().into_owned();
        let args = command.get_args().map(|a| a.to_string_lossy().into_owned());
        std::iter::once(program).chain(args).collect()
    }

    #[test]
    fn a_child_gets_the_callers_flags_and_its_own() {
        let child = Child {
            path: "d/db".into(),
            args: ["--num=5", "--db=elsewhere", "--json=-", "--pairs=3"]
                .map(String::from)
                .into(),
            engine: "esker".into(),
            seed: 7,
            program: Some("old/esker".into()),
            wrapper: vec!["valgrind".into(), "--tool=callgrind".into()],
            ..Child::default()
        };
        let expected = "valgrind --tool=callgrind old/esker bench --num=5 --engine=esker --seed=7 \
                        --db=d/db --json=r.json";
        assert_eq!(words(&child).join(" "), expected);
        let bench = Child {
            program: Some("old/db_bench".into()),
            wrapper: Vec::new(),
            ..child
        };
        assert_eq!(words(&bench)[1], "--num=5");
    }

    #[test]
    fn the_cause_stands_before_what_was_printed() {
        let said = "Keys: 16 bytes\nValues: 100 bytes\nesker bench: multireadrandom: it broke\n";
        assert_eq!(
            cause(said),
            "esker bench: multireadrandom: it broke\nbefore that:\nKeys: 16 bytes\nValues: 100 \
             bytes"
        );
        assert_eq!(
            (cause("x").as_str(), cause(" ").as_str()),
            ("x", "it said nothing")
        );
    }

    #[test]
    fn a_program_that_is_not_there_and_one_that_fails_are_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let child = |program: &str| Child {
            path: directory.path().join("db"),
            engine: "esker".into(),
            program: Some(program.into()),
            ..Child::default()
        };
        let missing = child("no-such-program")
            .run(&|| {})
            .expect_err("is missing");
        assert!(missing.to_string().contains("cannot run"), "{missing}");
        let failed = child("false").run(&|| {}).expect_err("fails");
        assert!(failed.to_string().contains("esker failed"), "{failed}");
    }
}
