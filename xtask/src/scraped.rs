//! `cargo xtask scraped COMMAND...`: runs a command unchanged with `ESKER_STATS`, and scrapes every
//! process of it that serves statistics, in a loop, until the command ends.
//!
//! The processes listen on sockets in a directory of our own, named by their numbers. Each is asked
//! for its metrics, its text and its page in turn. An answer that is cut off counts only while its
//! process is there: programs may be killed. The task ends with the command's code, or with 1 where
//! nothing was answered or an answer was wrong.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const USAGE: &str = "usage: cargo xtask scraped [--pause MILLISECONDS] COMMAND [ARGUMENT ...]";

/// How long an answer may take. A program that is stopped by its own test does not answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Wrong answers that are printed.
const PRINTED: usize = 5;

/// A part of what is served.
#[derive(Clone, Copy)]
struct Part {
    target: &'static str,
    media: &'static str,
    /// The first bytes of the body, and the last.
    edges: (&'static str, &'static str),
}

const PARTS: [Part; 3] = [
    Part {
        target: "/metrics",
        media: "application/openmetrics-text",
        edges: ("# ", "# EOF\n"),
    },
    Part {
        target: "/text",
        media: "text/plain",
        edges: ("Esker ", "\n"),
    },
    Part {
        target: "/",
        media: "text/html",
        edges: ("<!", "</html>\n"),
    },
];

/// Answers of a run.
#[derive(Default)]
struct Tally {
    answers: u64,
    bytes: u64,
    /// Answers of each process, by its number.
    processes: BTreeMap<u32, u64>,
    /// Processes that ended before their answer was whole.
    cut: u64,
    wrong: Vec<String>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} answers with {} bytes from {} processes, {} cut off by the end of theirs, {} wrong",
            self.answers,
            self.bytes,
            self.processes.len(),
            self.cut,
            self.wrong.len()
        )
    }
}

/// Tells why a line of metrics is none.
fn wrong_line(line: &str) -> Option<String> {
    if line.starts_with("# ") {
        return None;
    }
    let (name, value) = line.rsplit_once(' ').unwrap_or((line, ""));
    let family = name.split('{').next().unwrap_or(name);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_whole = name == family || name.ends_with('}');
    let is_sample = !family.is_empty() && family.chars().all(is_name) && is_whole;
    (!is_sample || value.parse::<f64>().is_err()).then(|| format!("no sample: {line:?}"))
}

/// Tells why `answer` is not a whole one to a request for `part`.
fn wrong_answer(part: Part, answer: &[u8]) -> Option<String> {
    let Ok(answer) = std::str::from_utf8(answer) else {
        return Some("no UTF-8".to_owned());
    };
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        return Some(format!("no end of the head: {answer:?}"));
    };
    if !head.starts_with("HTTP/1.1 200 OK\r\n") {
        return Some(format!("not 200: {head:?}"));
    }
    let field = |name: &str| {
        let line = head
            .lines()
            .find(|l| l.to_ascii_lowercase().starts_with(name))?;
        Some(line[name.len()..].trim())
    };
    if field("content-length:").and_then(|n| n.parse().ok()) != Some(body.len()) {
        return Some(format!("{} bytes of body: {head:?}", body.len()));
    }
    if !field("content-type:").is_some_and(|media| media.starts_with(part.media)) {
        return Some(format!("another type: {head:?}"));
    }
    let (first, last) = part.edges;
    if !body.starts_with(first) || !body.ends_with(last) {
        return Some(format!("{} does not begin or end as it does", part.target));
    }
    if part.target == "/metrics" {
        return body.lines().find_map(wrong_line);
    }
    None
}

/// Gets a part from the server at `socket`.
fn ask(socket: &Path, part: Part) -> io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = format!("GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", part.target);
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

/// Returns whether the process has not ended. One that was killed and is not waited for has.
fn is_there(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !['Z', 'X'].contains(&state))
}

impl Tally {
    /// Asks one process for one part.
    fn scrape(&mut self, process: u32, socket: &Path, part: Part) {
        let answer = ask(socket, part);
        let wrong = match &answer {
            Ok(answer) => wrong_answer(part, answer),
            Err(e) => Some(e.to_string()),
        };
        match wrong {
            None => {
                self.answers += 1;
                self.bytes += answer.map_or(0, |a| a.len() as u64);
                *self.processes.entry(process).or_default() += 1;
            }
            Some(_) if !is_there(process) => {
                self.cut += 1;
                // A socket of a process that is gone.
                let _gone = std::fs::remove_file(socket);
            }
            Some(why) => {
                let target = part.target;
                self.wrong
                    .push(format!("process {process}, {target}: {why}"));
            }
        }
    }
}

/// The sockets in a directory, with the numbers of their processes.
fn sockets(directory: &Path) -> Vec<(u32, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let process = |path: PathBuf| Some((path.file_name()?.to_str()?.parse().ok()?, path));
    let paths = entries.filter_map(|e| Some(e.ok()?.path()));
    paths.filter_map(process).collect()
}

/// Scrapes until it shall end.
fn scrape(directory: &Path, pause: Duration, is_over: &AtomicBool) -> Tally {
    let mut tally = Tally::default();
    for part in PARTS.iter().cycle() {
        for (process, socket) in sockets(directory) {
            tally.scrape(process, &socket, *part);
        }
        if is_over.load(Relaxed) {
            break;
        }
        std::thread::sleep(pause);
    }
    tally
}

fn run_scraped(pause: Duration, command: &[&str]) -> io::Result<u8> {
    let [program, arguments @ ..] = command else {
        return Err(io::Error::other(USAGE));
    };
    let directory = tempfile::tempdir()?;
    let address = format!("unix:{}/%p", directory.path().display());
    let is_over = AtomicBool::new(false);
    let (status, tally) = std::thread::scope(|scope| {
        let scraper = scope.spawn(|| scrape(directory.path(), pause, &is_over));
        let status = Command::new(program)
            .args(arguments)
            .env("ESKER_STATS", address)
            .status();
        is_over.store(true, Relaxed);
        (status, scraper.join())
    });
    let tally = tally.map_err(|_| io::Error::other("the scraper failed"))?;
    let status = status?;
    for wrong in tally.wrong.iter().take(PRINTED) {
        eprintln!("scraped: {wrong}");
    }
    eprintln!("scraped: {tally}; the command ended with {status}");
    if tally.answers == 0 {
        eprintln!("scraped: no process answered; does the command load our library?");
    }
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(1),
        (None, signal) => u8::try_from(128 + signal.unwrap_or(0)).unwrap_or(1),
    };
    let is_well = tally.answers > 0 && tally.wrong.is_empty();
    Ok(if code == 0 && !is_well { 1 } else { code })
}

/// Runs the command that `args` are.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let done = match args {
        ["--pause", pause, command @ ..] => pause
            .parse()
            .map_err(io::Error::other)
            .and_then(|ms| run_scraped(Duration::from_millis(ms), command)),
        command => run_scraped(Duration::from_millis(20), command),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            eprintln!("scraped: {e}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn metrics(body: &str) -> Vec<u8> {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }

    #[test]
    fn answers_are_checked() {
        let good = metrics("# TYPE a gauge\na{db=\"a } b\"} 1.5\nb_total 2\n# EOF\n");
        assert_eq!(wrong_answer(PARTS[0], &good), None);
        let wrong = |answer: &[u8]| wrong_answer(PARTS[0], answer).expect("wrong");
        assert!(wrong(&good[..good.len() - 1]).contains("bytes of body"));
        assert!(wrong(&good[..20]).contains("no end"));
        assert!(wrong(&metrics("# TYPE a gauge\na one\n# EOF\n")).contains("no sample"));
        assert!(wrong(&metrics("# TYPE a gauge\na{db=\"x\" 1\n# EOF\n")).contains("no sample"));
        assert!(wrong(&metrics("# TYPE a gauge\n")).contains("begin or end"));
        assert!(wrong(b"HTTP/1.1 500 X\r\n\r\n").contains("not 200"));
        assert!(
            wrong_answer(PARTS[1], &good)
                .expect("wrong")
                .contains("another type")
        );
    }

    #[test]
    fn a_command_that_serves_nothing_fails_and_one_that_fails_keeps_its_code() {
        let run = |command: &[&str]| run_scraped(Duration::from_millis(1), command).expect("runs");
        assert_eq!(run(&["true"]), 1);
        assert_eq!(run(&["sh", "-c", "exit 7"]), 7);
        assert_eq!(run(&["sh", "-c", "kill -9 $$"]), 137);
        assert!(run_scraped(Duration::ZERO, &["/none/such"]).is_err());
    }

    #[test]
    fn a_wrong_answer_of_a_process_that_is_there_counts() {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join(std::process::id().to_string());
        let listener = UnixListener::bind(&socket).expect("listens");
        let mut tally = Tally::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for answer in [metrics("# \n# EOF\n"), b"HTTP/1.1 200 OK\r\n".to_vec()] {
                    let (mut stream, _) = listener.accept().expect("a client");
                    let _asked = stream.read(&mut [0; 1024]).expect("reads");
                    stream.write_all(&answer).expect("writes");
                }
            });
            assert_eq!(
                sockets(directory.path()),
                [(std::process::id(), socket.clone())]
            );
            tally.scrape(std::process::id(), &socket, PARTS[0]);
            tally.scrape(std::process::id(), &socket, PARTS[0]);
        });
        assert_eq!((tally.answers, tally.wrong.len(), tally.cut), (1, 1, 0));
        // Nobody has this number.
        let gone = directory.path().join("4194304");
        drop(UnixListener::bind(&gone).expect("listens"));
        tally.scrape(4_194_304, &gone, PARTS[0]);
        assert_eq!((tally.wrong.len(), tally.cut), (1, 1));
        assert!(!gone.exists());
    }
}
