//! Any command in a control group of little memory, and beside it without one.
//!
//! Memory of the group is sampled ten times a second: anonymous memory alone, since the page cache
//! fills whatever it may.

use super::{ControlGroup, beyond, command_in};
use crate::Findings;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A run of the command.
struct CommandRun {
    status: ExitStatus,
    took: Duration,
}

/// Runs `words`, in `group` if there is one, with a budget of `memory`.
fn run_once(words: &[&str], memory: &str, group: Option<&ControlGroup>) -> io::Result<CommandRun> {
    let mut command = command_in(group);
    command.args(words).env("ESKER_MEMORY", memory);
    let begin = Instant::now();
    let status = command.status()?;
    Ok(CommandRun {
        status,
        took: begin.elapsed(),
    })
}

/// The number behind the first of `names` in `file`: lines of a name and a number.
fn figure(file: &Path, names: &[&str]) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let of = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(word, _)| *word == name)?.1.trim().parse().ok()
    };
    names.iter().find_map(|name| of(name))
}

impl ControlGroup {
    /// Bytes of anonymous memory of its processes.
    fn resident(&self) -> Option<u64> {
        figure(&self.0.join("memory.stat"), &["anon", "total_rss"])
    }

    /// Processes of it that the kernel killed.
    fn killed(&self) -> Option<u64> {
        ["memory.events", "memory.oom_control"]
            .iter()
            .find_map(|file| figure(&self.0.join(file), &["oom_kill"]))
    }
}

/// Runs the command twice and compares.
pub(super) fn compare(limit: u64, group: &ControlGroup, words: &[&str]) -> io::Result<Findings> {
    let is_done = AtomicBool::new(false);
    let (bounded, resident) = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut most = None;
            while !is_done.load(Relaxed) {
                most = most.max(group.resident());
                std::thread::sleep(Duration::from_millis(100));
            }
            most
        });
        let run = run_once(words, "auto", Some(group));
        is_done.store(true, Relaxed);
        (run, sampler.join().ok().flatten())
    });
    let bounded = bounded?;
    let mut findings = Findings::new();
    let (Some(resident), Some(killed)) = (resident, group.killed()) else {
        return Err(io::Error::other(
            "the control group tells nothing of its memory",
        ));
    };
    if !bounded.status.success() {
        findings.push(format!(
            "bounded, the command ended with {}",
            bounded.status
        ));
    }
    if killed > 0 {
        findings.push(format!("the kernel killed {killed} of its processes"));
    }
    let free = run_once(words, &(limit / 2).to_string(), None)?;
    if !free.status.success() {
        findings.push(format!(
            "not bounded, the command ended with {}",
            free.status
        ));
    }
    let ratio = free.took.as_secs_f64() / bounded.took.as_secs_f64();
    println!(
        "limit {} MB: at most {} MB resident, {killed} killed; {:.1} s, {:.1} s without the limit, \
         rates {ratio:.2}",
        limit >> 20,
        resident >> 20,
        bounded.took.as_secs_f64(),
        free.took.as_secs_f64(),
    );
    findings.extend(beyond(limit, resident, ratio));
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_found_by_its_whole_name() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("memory.stat");
        std::fs::write(&file, "inactive_anon 7\nanon 4096\nfile 1\n")?;
        assert_eq!(figure(&file, &["anon", "total_rss"]), Some(4096));
        std::fs::write(&file, "cache 1\nrss 5\ntotal_rss 9\n")?;
        assert_eq!(figure(&file, &["anon", "total_rss"]), Some(9));
        assert_eq!(figure(&file, &["oom_kill"]), None);
        Ok(())
    }
}
