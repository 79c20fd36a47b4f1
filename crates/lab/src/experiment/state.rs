//! Finished steps as files, so that an experiment goes on where it was stopped.
//!
//! A directory belongs to one request, which `request.json` in it names. Each run of a chain on an
//! engine has a directory below `runs`, with a JSON file for each step that ended and an empty file
//! `done` when the chain did. Every file is written beside its place and renamed, so it is whole or
//! absent. A run without `done` is started again when the experiment goes on, because the database
//! of its steps is gone; until then its steps count for the report.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::plan::Request;
use super::record::{Engine, Outcome, Record};
use crate::{Failure, Result};

const REQUEST: &str = "request.json";
const RECORD: &str = "record.json";
const ENGINES: &str = "engines.json";
const DONE: &str = "done";
const LOCK: &str = "lock";

/// Which run of a chain on an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunKey {
    /// The pair.
    pub pair: usize,
    /// The chain.
    pub chain: usize,
    /// Which run of the engine within the pair.
    pub turn: usize,
    /// The engine.
    pub engine: usize,
}

impl RunKey {
    fn name(self) -> String {
        let RunKey {
            pair,
            chain,
            turn,
            engine,
        } = self;
        format!("pair{pair:02}-chain{chain:03}-turn{turn}-engine{engine}")
    }
}

/// The directory of an experiment.
#[derive(Debug)]
pub struct State {
    root: PathBuf,
    /// Locked as long as this process uses the directory.
    _lock: File,
}

/// Writes a file beside its place and renames it.
///
/// # Errors
/// As reported by the system, with the path.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let beside = path.with_extension("tmp");
    let done = fs::write(&beside, bytes)
        .and_then(|()| File::open(&beside)?.sync_all())
        .and_then(|()| fs::rename(&beside, path));
    done.map_err(|e| Failure::new(format!("cannot write {}: {e}", path.display())))
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
    write_whole(path, text.as_bytes())
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let wrong = |e: String| Failure::new(format!("{}: {e}", path.display()));
    let text = fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
    serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))
}

impl State {
    /// Opens a directory for a request, and makes it if it is not there.
    ///
    /// # Errors
    /// Another process uses it, or it belongs to another request.
    pub fn open(root: &Path, request: &Request) -> Result<State> {
        fs::create_dir_all(root.join("runs"))
            .map_err(|e| Failure::new(format!("cannot create {}: {e}", root.display())))?;
        let lock = File::create(root.join(LOCK))?;
        let busy = |e| format!("{} is in use by another run: {e}", root.display());
        lock.try_lock().map_err(|e| Failure::new(busy(e)))?;
        let path = root.join(REQUEST);
        if path.exists() {
            let before: Request = read_json(&path)?;
            // Where databases are made changes nothing of what was asked.
            let same = Request {
                scratch: before.scratch.clone(),
                ..request.clone()
            };
            if before != same && has_steps(&root.join("runs"))? {
                return Err(Failure::new(format!(
                    "{} holds results of another request (see {REQUEST} in it); name another \
                     directory with --out",
                    root.display()
                )));
            }
            if before != same {
                begin_again(root)?;
                write_json(&path, request)?;
            }
        } else {
            write_json(&path, request)?;
        }
        Ok(State {
            root: root.to_path_buf(),
            _lock: lock,
        })
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn of(&self, key: RunKey) -> PathBuf {
        self.root.join("runs").join(key.name())
    }

    /// Returns whether the chain of a run was run to its end.
    pub fn is_done(&self, key: RunKey) -> bool {
        self.of(key).join(DONE).exists()
    }

    /// Begins a run: what is there of an earlier attempt goes. Returns its directory.
    ///
    /// # Errors
    /// As reported by the system.
    pub fn begin(&self, key: RunKey) -> Result<PathBuf> {
        let path = self.of(key);
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Keeps a step that ended.
    ///
    /// # Errors
    /// As reported by the system.
    pub fn keep(&self, key: RunKey, outcome: &Outcome) -> Result<()> {
        let name = format!("step{:03}.json", outcome.step);
        write_json(&self.of(key).join(name), outcome)
    }

    /// Says that a run came to its end.
    ///
    /// # Errors
    /// As reported by the system.
    pub fn done(&self, key: RunKey) -> Result<()> {
        write_whole(&self.of(key).join(DONE), b"")
    }

    /// All steps that ended, in the order of the plan.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn outcomes(&self) -> Result<Vec<Outcome>> {
        let mut files = Vec::new();
        for run in fs::read_dir(self.root.join("runs"))? {
            for file in fs::read_dir(run?.path())? {
                let path = file?.path();
                let name = path.file_name().and_then(|name| name.to_str());
                if name.is_some_and(|n| n.starts_with("step") && n.ends_with(".json")) {
                    files.push(path);
                }
            }
        }
        files.sort();
        files.iter().map(|path| read_json(path)).collect()
    }

    /// Returns the descriptions of the engines, where a run was made.
    pub fn engines(&self) -> Option<Vec<Engine>> {
        read_json(&self.root.join(ENGINES)).ok()
    }

    /// Keeps what was learned about the engines.
    ///
    /// # Errors
    /// As reported by the system.
    pub fn keep_engines(&self, engines: &[Engine]) -> Result<()> {
        write_json(&self.root.join(ENGINES), &engines)
    }

    /// Writes the record of all that there is.
    ///
    /// # Errors
    /// As reported by the system.
    pub fn write_record(&self, record: &Record) -> Result<()> {
        write_json(&self.root.join(RECORD), record)
    }
}

/// Tells whether any step ended in the runs of a directory.
fn has_steps(runs: &Path) -> Result<bool> {
    for run in fs::read_dir(runs)? {
        for file in fs::read_dir(run?.path())? {
            let name = file?.file_name();
            let name = name.to_string_lossy();
            if name == DONE || (name.starts_with("step") && name.ends_with(".json")) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Removes what a request left behind that ended before its first step.
fn begin_again(root: &Path) -> Result<()> {
    fs::remove_dir_all(root.join("runs"))?;
    fs::create_dir_all(root.join("runs"))?;
    for name in [ENGINES, RECORD] {
        match fs::remove_file(root.join(name)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
            _ => {}
        }
    }
    Ok(())
}

/// The record in a directory, or in a file.
///
/// # Errors
/// It is not there, or it is none.
pub fn read_record(path: &Path) -> Result<Record> {
    if path.is_dir() {
        return read_json(&path.join(RECORD));
    }
    read_json(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(quick: bool) -> Request {
        Request {
            scratch: PathBuf::from("somewhere"),
            ..Request::of("byrx", &[], quick, &[], &[])
        }
    }

    fn key(pair: usize) -> RunKey {
        RunKey {
            pair,
            chain: 0,
            turn: 0,
            engine: 0,
        }
    }

    #[test]
    fn steps_that_ended_are_found_again_and_runs_without_end_start_anew() {
        let directory = tempfile::tempdir().expect("a directory");
        let step = |step| Outcome {
            step,
            ..Outcome::default()
        };
        let state = State::open(directory.path(), &request(true)).expect("opens");
        for pair in 0..2 {
            state.begin(key(pair)).expect("begins");
            state.keep(key(pair), &step(0)).expect("keeps");
        }
        state.keep(key(0), &step(1)).expect("keeps");
        state.done(key(0)).expect("is done");
        drop(state);
        let again = State::open(directory.path(), &request(true)).expect("opens");
        assert!(again.is_done(key(0)) && !again.is_done(key(1)));
        assert_eq!(again.outcomes().expect("steps").len(), 3);
        again.begin(key(1)).expect("begins");
        let steps: Vec<usize> = again
            .outcomes()
            .expect("steps")
            .iter()
            .map(|o| o.step)
            .collect();
        assert_eq!(
            steps,
            [0, 1],
            "the step of the run that begins again is gone"
        );
    }

    #[test]
    fn a_directory_belongs_to_one_request_and_one_process() {
        let directory = tempfile::tempdir().expect("a directory");
        let first = State::open(directory.path(), &request(true)).expect("opens");
        let busy = State::open(directory.path(), &request(true)).expect_err("is in use");
        assert!(busy.to_string().contains("in use"), "{busy}");
        first.begin(key(0)).expect("begins");
        drop(first);
        // Nothing of the first request ended, as when a setting of it was wrong.
        let second = State::open(directory.path(), &request(false)).expect("takes it over");
        drop(second);
        let first = State::open(directory.path(), &request(true)).expect("takes it back");
        first.begin(key(0)).expect("begins");
        first.keep(key(0), &Outcome::default()).expect("keeps");
        drop(first);
        let other = State::open(directory.path(), &request(false)).expect_err("is another");
        assert!(other.to_string().contains("another request"), "{other}");
        let moved = Request {
            scratch: PathBuf::from("elsewhere"),
            ..request(true)
        };
        assert!(State::open(directory.path(), &moved).is_ok());
    }

    #[test]
    fn a_file_that_was_not_written_whole_is_not_there() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a").join("b.json");
        let failure = write_whole(&path, b"x").expect_err("there is no directory a");
        assert!(failure.to_string().contains("b.json"));
        let path = directory.path().join("b.json");
        write_whole(&path, b"first").expect("writes");
        write_whole(&path, b"second").expect("writes");
        assert_eq!(fs::read(&path).expect("reads"), b"second");
        assert_eq!(fs::read_dir(directory.path()).expect("lists").count(), 1);
    }
}
