//! Any command in a control group of little memory, and beside it without one.
//!
//! Memory of the group is sampled ten times a second: anonymous memory alone, since the page cache
//! fills whatever it may.

use super::{ControlGroup, beyond, command_in, number_before};
use crate::Findings;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A run of the command.
struct CommandRun {
    status: ExitStatus,
    /// Operations a second as its output tells them, else runs a second.
    rate: f64,
}

/// Runs `words`, in `group` if there is one, with a budget of `memory` if that is set.
fn run_once(
    words: &[&str],
    memory: Option<&str>,
    group: Option<&ControlGroup>,
) -> io::Result<CommandRun> {
    let mut command = command_in(group);
    command.args(words).env_remove("ESKER_MEMORY");
    if let Some(memory) = memory {
        command.env("ESKER_MEMORY", memory);
    }
    let begin = Instant::now();
    let output = command.stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    let rate = number_before(&text, "operations");
    let rate = rate.unwrap_or_else(|| 1.0 / begin.elapsed().as_secs_f64());
    Ok(CommandRun {
        status: output.status,
        rate,
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

/// A run in the group, the most anonymous memory of it, and how many processes the kernel killed.
fn run_bounded(
    words: &[&str],
    memory: Option<&str>,
    group: &ControlGroup,
) -> io::Result<(CommandRun, u64, u64)> {
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
        let run = run_once(words, memory, Some(group));
        is_done.store(true, Relaxed);
        (run, sampler.join().ok().flatten())
    });
    let run = bounded?;
    match (resident, group.killed()) {
        (Some(resident), Some(killed)) => Ok((run, resident, killed)),
        _ => Err(io::Error::other(
            "the control group tells nothing of its memory",
        )),
    }
}

/// Runs the command in the group alone, without a budget, and tells of it.
pub(super) fn show(limit: u64, group: &ControlGroup, words: &[&str]) -> io::Result<Findings> {
    let (run, resident, killed) = run_bounded(words, None, group)?;
    println!(
        "without the variable, limit {} MB: at most {} MB resident, {killed} killed, {}, \
         {:.3} a second",
        limit >> 20,
        resident >> 20,
        run.status,
        run.rate,
    );
    Ok(Findings::new())
}

/// Runs the command twice each way, in the order A B B A, and compares. `heap` bytes of the limit
/// are a Java heap.
pub(super) fn compare(
    limit: u64,
    heap: u64,
    group: &ControlGroup,
    words: &[&str],
) -> io::Result<Findings> {
    // Both runs have equal caches.
    let budget = esker_process::automatic_budget(limit, heap).to_string();
    let in_group = || run_bounded(words, Some("auto"), group);
    let outside = || run_once(words, Some(&budget), None);
    let (first, first_resident, _) = in_group()?;
    let free = [outside()?, outside()?];
    let (last, last_resident, killed) = in_group()?;
    let (bounded, resident) = ([first, last], first_resident.max(last_resident));
    let mut findings = Findings::new();
    for (place, runs) in [("bounded", &bounded), ("not bounded", &free)] {
        let failed = runs.iter().filter(|run| !run.status.success());
        findings
            .extend(failed.map(|run| format!("{place}, the command ended with {}", run.status)));
    }
    if killed > 0 {
        findings.push(format!("the kernel killed {killed} of its processes"));
    }
    let mean = |runs: &[CommandRun; 2]| (runs[0].rate * runs[1].rate).sqrt();
    let ratio = mean(&bounded) / mean(&free);
    println!(
        "limit {} MB: at most {} MB resident, {killed} killed; {:.3} and {:.3} a second, {:.3} and \
         {:.3} without the limit, {ratio:.2}",
        limit >> 20,
        resident >> 20,
        bounded[0].rate,
        bounded[1].rate,
        free[0].rate,
        free[1].rate,
    );
    findings.extend(beyond(limit, resident, ratio));
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_stands_before_its_word() {
        let text = "state RUNNING\n1200 operations a second, 9000 in 7.5 s\n";
        assert_eq!(number_before(text, "operations"), Some(1200.0));
        assert_eq!(number_before("operations", "operations"), None);
    }

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
