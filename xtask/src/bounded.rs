//! `cargo xtask bounded`: runs a program with many databases in a control group of little memory,
//! with `ESKER_MEMORY=auto`, and beside it without the limit with a budget of as many bytes.
//!
//! It fails where the kernel kills the program, where more than nine tenths of the limit are
//! resident, and where the bounded run is slower than nine tenths of the other. Says so and ends
//! well where no control group can be made. `--library DIR` has `librocksdb.so` of another build,
//! which runs without the variable, for comparison: then nothing is checked.
//!
//! Behind `--` stands any other command that runs the same two ways; its rate is the number before
//! the word "operations" of its output, else its time. `--heap MB` is the Java heap of such a
//! command, which `auto` leaves out of the limit. `--unset` runs it in the group alone, without the
//! variable.

mod command;

use crate::Findings;
use crate::install::{self, Installation};
use crate::oracle::library;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const USAGE: &str = "usage: cargo xtask bounded [--limit MB] [--databases N] [--threads N] \
    [--seconds N] [--profile NAME | --prefix DIR (installed already)] [--library DIR] \
    | cargo xtask bounded [--limit MB] [--heap MB] [--unset] -- COMMAND \
    [ARGUMENT ...]";

/// A group of the memory controller, removed when this is dropped.
struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Makes one below that of this process; none where that cannot be.
    fn with_limit(bytes: u64) -> Option<Self> {
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let path_of = |line: &str, controller: &str| {
            let mut parts = line.splitn(3, ':').skip(1);
            let is_it = parts.next()?.split(',').any(|name| name == controller);
            let path = parts.next()?.trim_start_matches('/').to_owned();
            is_it.then_some(path)
        };
        let first = own.lines().find_map(|line| path_of(line, "memory"));
        let unified = own.lines().find_map(|line| path_of(line, ""));
        let name = format!("esker-bounded-{}", std::process::id());
        let candidates = [
            (first, "/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            (unified, "/sys/fs/cgroup", "memory.max"),
        ];
        candidates.into_iter().find_map(|(own, root, limit)| {
            // Where the own group is not to be seen, the root of the mount is.
            let below = Path::new(root).join(own?);
            let parent = if below.is_dir() {
                below
            } else {
                PathBuf::from(root)
            };
            let group = parent.join(&name);
            std::fs::create_dir(&group).ok()?;
            let made = ControlGroup(group);
            std::fs::write(made.0.join(limit), bytes.to_string()).ok()?;
            Some(made)
        })
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Empty once its program has ended.
        let _left = std::fs::remove_dir(&self.0);
    }
}

/// A shell that joins `group`, if there is one, and becomes the command that its arguments name.
fn command_in(group: Option<&ControlGroup>) -> Command {
    let mut command = Command::new("sh");
    let join = "if [ -n \"$0\" ]; then echo $$ >\"$0\"; fi; exec \"$@\"";
    let procs = group.map(|g| g.0.join("cgroup.procs")).unwrap_or_default();
    command.args(["-c", join]).arg(procs);
    command
}

/// A run of the program.
struct BoundedRun {
    rate: f64,
    resident: u64,
    line: String,
}

struct Program {
    binary: PathBuf,
    library: PathBuf,
    work: PathBuf,
    arguments: [String; 3],
}

impl Program {
    /// Runs it, in `group` if there is one.
    fn run(&self, memory: Option<&str>, group: Option<&ControlGroup>) -> io::Result<BoundedRun> {
        let data = self.work.join("data");
        let _gone = std::fs::remove_dir_all(&data);
        std::fs::create_dir_all(&data)?;
        let mut command = command_in(group);
        command.arg(&self.binary).arg(&data).args(&self.arguments);
        command
            .env("LD_LIBRARY_PATH", &self.library)
            .env_remove("ESKER_MEMORY");
        if let Some(memory) = memory {
            command.env("ESKER_MEMORY", memory);
        }
        let output = command.output()?;
        let budget = std::fs::read_to_string(data.join("0/LOG")).unwrap_or_default();
        let budget = budget
            .lines()
            .find(|line| line.contains("ESKER_MEMORY="))
            .unwrap_or_default();
        let run = read(&output, budget);
        std::fs::remove_dir_all(&data)?;
        run
    }
}

/// The number before the first `word` of `text`.
fn number_before(text: &str, word: &str) -> Option<f64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|w| *w == word)?;
    words.get(at.checked_sub(1)?)?.parse().ok()
}

/// The figures of a run; `budget` is the line of a LOG.
fn read(output: &Output, budget: &str) -> io::Result<BoundedRun> {
    let text = String::from_utf8_lossy(&output.stdout);
    match (
        number_before(&text, "operations"),
        number_before(&text, "KB"),
    ) {
        (Some(rate), Some(resident)) if output.status.success() => Ok(BoundedRun {
            rate,
            resident: resident as u64 * 1024,
            line: budget.to_owned(),
        }),
        _ => Err(io::Error::other(format!(
            "the program ended with {}: {text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}

/// Bytes of a budget, out of the line of a LOG that tells of it.
fn budget_of(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("ESKER_MEMORY=auto: ")?;
    rest.split(' ').next()?.parse().ok()
}

/// Runs the program as `args` say.
pub(crate) fn run(root: &Path, args: &[&str]) -> io::Result<Findings> {
    let (mut limit, mut counts) = (256u64, ["40", "4", "60"].map(str::to_owned));
    let (mut profile, mut prefix, mut other) = ("release", None, None);
    let (args, command) = match args.iter().position(|&word| word == "--") {
        Some(at) => (&args[..at], Some(&args[at + 1..])),
        None => (args, None),
    };
    if command.is_some_and(<[&str]>::is_empty) {
        return Err(io::Error::other(USAGE));
    }
    let of_command = ["--limit", "--heap", "--unset"];
    let is_other = |word: &&str| word.starts_with("--") && !of_command.contains(word);
    if command.is_some() && args.iter().any(is_other) {
        return Err(io::Error::other(USAGE));
    }
    let (mut is_unset, mut heap) = (false, 0u64);
    let mut args = args.iter();
    while let Some(&word) = args.next() {
        let mut value = || args.next().copied().ok_or_else(|| io::Error::other(USAGE));
        match word {
            "--limit" => limit = value()?.parse().map_err(|_| io::Error::other(USAGE))?,
            "--heap" if command.is_some() => {
                heap = value()?.parse().map_err(|_| io::Error::other(USAGE))?;
            }
            "--unset" if command.is_some() => is_unset = true,
            "--databases" => counts[0] = value()?.to_owned(),
            "--threads" => counts[1] = value()?.to_owned(),
            "--seconds" => counts[2] = value()?.to_owned(),
            "--profile" => profile = value()?,
            "--prefix" => prefix = Some(std::path::absolute(value()?)?),
            "--library" => other = Some(std::path::absolute(value()?)?),
            _ => return Err(io::Error::other(USAGE)),
        }
    }
    let limit = limit << 20;
    let Some(group) = ControlGroup::with_limit(limit) else {
        println!("bounded: SKIPPED, no control group of the memory controller can be made here");
        return Ok(Findings::new());
    };
    if let Some(words) = command {
        return if is_unset {
            command::show(limit, &group, words)
        } else {
            command::compare(limit, heap << 20, &group, words)
        };
    }
    let work = library::target_directory(root)?.join("bounded");
    std::fs::create_dir_all(&work)?;
    let installed = match prefix {
        Some(prefix) => prefix,
        None => {
            let wanted = Installation {
                prefix: work.join("prefix"),
                destdir: None,
                profile: profile.to_owned(),
                debug_info: false,
                java: false,
                cxx: false,
                programs: false,
                links: false,
            };
            let findings = install::install(root, &wanted)?;
            if !findings.is_empty() {
                return Ok(findings);
            }
            wanted.prefix
        }
    };
    let program = Program {
        binary: work.join("many"),
        library: other.clone().unwrap_or_else(|| installed.join("lib")),
        work: work.clone(),
        arguments: counts,
    };
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O2", "-pthread", "-o"])
        .arg(&program.binary);
    compiler.arg(root.join("examples/c/many.c"));
    compiler.arg(format!("-I{}", installed.join("include").display()));
    compiler
        .arg(format!("-L{}", installed.join("lib").display()))
        .arg("-lrocksdb");
    if !compiler.status()?.success() {
        return Ok(vec!["examples/c/many.c does not compile".to_owned()]);
    }
    let show = |what: &str, run: &BoundedRun| {
        let mb = run.resident >> 20;
        println!(
            "{what}: {:.0} operations a second, at most {mb} MB resident",
            run.rate
        );
    };
    if other.is_some() {
        show(
            "without the variable, bounded",
            &program.run(None, Some(&group))?,
        );
        return Ok(Findings::new());
    }
    let bounded = program.run(Some("auto"), Some(&group))?;
    show("ESKER_MEMORY=auto, bounded", &bounded);
    let Some(budget) = budget_of(&bounded.line) else {
        return Ok(vec![format!(
            "the LOG tells of no budget: {}",
            bounded.line
        )]);
    };
    let free = program.run(Some(&budget.to_string()), None)?;
    show(&format!("ESKER_MEMORY={budget}, not bounded"), &free);
    let ratio = bounded.rate / free.rate;
    println!(
        "limit {} MB, budget {} MB, rates {ratio:.2}",
        limit >> 20,
        budget >> 20
    );
    Ok(beyond(limit, bounded.resident, ratio))
}

/// Findings on a run that kept `resident` bytes of `limit` and had `ratio` of the rate without it.
fn beyond(limit: u64, resident: u64, ratio: f64) -> Findings {
    let mut findings = Findings::new();
    if resident * 10 > limit * 9 {
        findings.push(format!("{resident} bytes resident of {limit}"));
    }
    if ratio < 0.9 {
        findings.push(format!("bounded at {ratio:.2} of the rate without a limit"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_stands_in_the_log() {
        let line = "ESKER_MEMORY=auto: 134217728 bytes (half of 268435456 in /sys/fs/cgroup/x)";
        assert_eq!(budget_of(line), Some(134_217_728));
        assert_eq!(budget_of("nothing"), None);
    }
}
