//! Starting a loading process, listening to it, and ending it.
//!
//! The process is this program again, with the hidden command `load`. A thread reads its pipe to
//! the end, so that what it said before it died counts, however late it is read. Used by one
//! thread.

use crate::check::{Violation, ViolationKind, violation};
use crate::load::{Counts, Promise, THREADS};
use crate::recipe::Recipe;
use crate::report::lock;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a process may take to open its database.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reports of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessReport {
    /// The last operation of each thread that must survive.
    pub(crate) sure: Counts,
    /// The last prepared transaction of each thread that must survive, or be committed.
    pub(crate) held: Counts,
    /// Counts of the last check.
    pub(crate) counted: Counts,
    /// The error that ended it.
    pub(crate) failed: Option<String>,
}

impl ProcessReport {
    /// Adds what a later process said, and forgets prepared transactions, which opening decided.
    pub(crate) fn follow(&mut self, later: ProcessReport) {
        for (sure, new) in self.sure.iter_mut().zip(later.sure) {
            *sure = (*sure).max(new);
        }
        self.held = later.held;
        self.failed = later.failed;
    }
}

/// A process at work.
pub(crate) struct Loader {
    child: Child,
    ready: Receiver<()>,
    heard: Arc<Mutex<ProcessReport>>,
    reader: JoinHandle<()>,
}

/// This program, for a process of its own.
pub(crate) fn this_program() -> Result<Command, Violation> {
    match std::env::current_exe() {
        Ok(path) => Ok(Command::new(path)),
        Err(e) => violation(
            ViolationKind::Misbehaved,
            format!("this program has no path: {e}"),
        ),
    }
}

impl Loader {
    /// Starts loading the database at `dir`.
    pub(crate) fn start(
        dir: &Path,
        recipe: Recipe,
        promise: Promise,
        seed: u64,
    ) -> Result<Loader, Violation> {
        let promise = match promise {
            Promise::Process => "process",
            Promise::Power => "power",
        };
        let seed = seed.to_string();
        let started = this_program()?
            .args(["load", "--recipe", recipe.name, "--promise", promise])
            .args(["--sync-one-in", &recipe.sync_one_in.to_string()])
            .args(["--seed", &seed, "--dir"])
            .arg(dir)
            .stdout(Stdio::piped())
            .spawn();
        let out = started.and_then(|mut child| {
            let out = child.stdout.take();
            let out = out.ok_or_else(|| std::io::Error::other("it has no pipe"))?;
            Ok((child, out))
        });
        let (child, out) = match out {
            Ok(both) => both,
            Err(e) => return violation(ViolationKind::Misbehaved, format!("no process: {e}")),
        };
        let (say_ready, ready) = channel();
        let heard = Arc::new(Mutex::new(ProcessReport::default()));
        let hears = Arc::clone(&heard);
        let reader = std::thread::spawn(move || listen(BufReader::new(out), &say_ready, &hears));
        Ok(Loader {
            child,
            ready,
            heard,
            reader,
        })
    }

    /// Waits until the database is open.
    pub(crate) fn wait_ready(&self) -> Result<(), Violation> {
        match self.ready.recv_timeout(PATIENCE) {
            Ok(()) => Ok(()),
            Err(e) => violation(
                ViolationKind::Misbehaved,
                format!("the process did not open: {e}"),
            ),
        }
    }

    /// Returns whether it has not ended by itself.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns its reports so far.
    pub(crate) fn heard(&self) -> ProcessReport {
        lock(&self.heard).clone()
    }

    /// Kills the process; what it said, and whether it lived until then.
    pub(crate) fn kill(mut self) -> (ProcessReport, bool) {
        let alive = self.is_alive();
        // It may have ended by itself just now.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The pipe is read to its end.
        let read = self.reader.join().is_ok();
        (lock(&self.heard).clone(), alive && read)
    }
}

fn listen(mut out: impl BufRead, ready: &Sender<()>, heard: &Mutex<ProcessReport>) {
    let mut line = String::new();
    loop {
        line.clear();
        match out.read_line(&mut line) {
            Ok(n) if n > 0 && line.ends_with('\n') => {}
            // The last line may be cut: the kill came while it was written.
            _ => return,
        }
        let (word, rest) = line
            .trim_end()
            .split_once(' ')
            .unwrap_or((line.trim_end(), ""));
        let mut heard = lock(heard);
        match word {
            "ready" => drop(ready.send(())),
            "sure" => raise(&mut heard.sure, rest),
            "held" => raise(&mut heard.held, rest),
            "failed" => heard.failed = Some(rest.to_owned()),
            _ => {}
        }
    }
}

/// Takes pairs of a thread and its operation.
fn raise(counts: &mut Counts, text: &str) {
    let numbers: Vec<u64> = text.split(' ').filter_map(|w| w.parse().ok()).collect();
    for pair in numbers.chunks_exact(2) {
        let thread = usize::try_from(pair[0]).unwrap_or(THREADS);
        if let Some(count) = counts.get_mut(thread) {
            *count = (*count).max(pair[1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_before_the_end_counts_and_half_a_line_does_not() {
        let said = "ready\nsure 0 5 1 7\nalive\nheld 2 4\nsure 0 3 3 9\nsure 1 99";
        let (send, ready) = channel();
        let hears = Mutex::new(ProcessReport::default());
        listen(said.as_bytes(), &send, &hears);
        let heard = lock(&hears).clone();
        assert_eq!(heard.sure, [5, 7, 0, 9]);
        assert_eq!(heard.held, [0, 0, 4, 0]);
        assert_eq!(heard.failed, None);
        assert!(ready.try_recv().is_ok());
        listen(&b"failed IO error: full\n"[..], &send, &hears);
        assert_eq!(lock(&hears).failed.as_deref(), Some("IO error: full"));
    }
}
