//! `ESKER_STATS` in the environment of programs that know nothing of it: a C program and a Python
//! program, on the library as cargo built it.
//!
//! `ESKER_STATS_SECONDS=600 cargo test --release -p esker-capi --test stats_server -- beside` runs
//! the loop beside a scraper for ten minutes.

#[path = "common/loaded.rs"]
mod loaded;
#[path = "common/program.rs"]
mod program;

use loaded::{directory, ours};
use program::{compile, copy_program};
use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The C program, which was linked with the library; `None` where there is no compiler.
fn program() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<(TempDir, PathBuf)>> = OnceLock::new();
    let built = BUILT.get_or_init(|| compile("stats_program.c"));
    built.as_ref().map(|(_, program)| program.as_path())
}

/// A program that runs; it is killed if the test fails.
struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Running {
    fn begin(db: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Option<Running> {
        let mut command = Command::new(program()?);
        command.arg(db).args(arguments).env_remove("ESKER_STATS");
        command.envs(variables.iter().copied());
        Some(Running::of(command))
    }

    fn of(mut command: Command) -> Running {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let stdout = child.stdout.take().expect("a pipe");
        Running {
            stdin: child.stdin.take(),
            lines: BufReader::new(stdout),
            child,
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("UTF-8");
        line.trim_end().to_owned()
    }

    /// Lets it end, in an orderly way. Returns what it printed since.
    fn end(&mut self) -> String {
        drop(self.stdin.take());
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).expect("UTF-8");
        let status = self.child.wait().expect("ends");
        assert!(status.success(), "{status}");
        rest
    }

    fn has_server(&self) -> bool {
        let tasks = format!("/proc/{}/task", self.child.id());
        let tasks = fs::read_dir(tasks).expect("a directory");
        let names = tasks.filter_map(|t| fs::read_to_string(t.ok()?.path().join("comm")).ok());
        names
            .into_iter()
            .any(|name| name.trim_end() == "esker-stats")
    }
}

fn log(db: &Path) -> String {
    fs::read_to_string(db.join("LOG")).expect("a LOG")
}

/// Where the LOG says that statistics are served.
fn served_at(db: &Path) -> String {
    let log = log(db);
    let line = log
        .lines()
        .find_map(|l| l.split("statistics are served at ").nth(1));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    line.trim_start_matches("http://")
        .trim_end_matches('/')
        .to_owned()
}

fn ask(stream: &mut (impl Read + std::io::Write), target: &str) -> String {
    let request = format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    let mut out = Vec::new();
    let mut bytes = [0; 65536];
    if stream.write_all(request.as_bytes()).is_ok() {
        while let Ok(n @ 1..) = stream.read(&mut bytes) {
            out.extend_from_slice(&bytes[..n]);
        }
    }
    String::from_utf8(out).expect("UTF-8")
}

fn get(at: &str, target: &str) -> String {
    let Ok(mut stream) = TcpStream::connect(at) else {
        return String::new();
    };
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).expect("a socket");
    ask(&mut stream, target)
}

const ANY_PORT: (&str, &str) = ("ESKER_STATS", "127.0.0.1:0");

#[test]
fn it_is_off_by_default() {
    let dir = directory();
    let db = dir.path().join("db");
    for variables in [
        &[][..],
        &[("ESKER_STATS", "")][..],
        &[("ESKER_STATS_REMOTE", "1")][..],
    ] {
        let Some(mut running) = Running::begin(&db, &["hold"], variables) else {
            return;
        };
        assert_eq!(running.line(), "ready");
        assert!(!running.has_server());
        running.end();
        assert!(!log(&db).contains("ESKER_STATS"));
    }
}

#[test]
fn a_c_program_is_served_unchanged() {
    let dir = directory();
    let db = dir.path().join("db");
    let Some(mut running) = Running::begin(&db, &["hold"], &[ANY_PORT]) else {
        return;
    };
    assert_eq!(running.line(), "ready");
    let at = served_at(&db);
    for target in ["/", "/text", "/metrics"] {
        let answer = get(&at, target);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains(&*db.to_string_lossy()));
        assert!(!answer.contains("private"), "no key and no value");
    }
    let metrics = get(&at, "/metrics");
    assert!(
        metrics.contains("\nrocksdb_number_keys_written_total{db=\""),
        "{metrics}"
    );
    // Clients that are gone before they are answered do not end the program, which has SIGPIPE's
    // default.
    for _ in 0..200 {
        let mut stream = TcpStream::connect(&at).expect("connects");
        let request = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
        stream.write_all(request).expect("sends");
        drop(stream);
    }
    // Signals to the process are taken by threads of the program.
    for _ in 0..50 {
        let id = running.child.id().to_string();
        let kill = Command::new("kill").args(["-USR1", &id]).status();
        assert!(kill.expect("kill is there").success());
        // The clients that went away may have all connections still.
        let began = Instant::now();
        while !get(&at, "/text").starts_with("HTTP/1.1 200") {
            assert!(began.elapsed() < Duration::from_secs(30), "no answer");
        }
    }
    assert!(running.end().contains("foreign 0"));
}

#[test]
fn what_is_wrong_is_a_warning_and_stops_nothing() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("binds");
    let port = taken.local_addr().expect("an address").port();
    let taken = format!("127.0.0.1:{port}");
    let dir = directory();
    for (n, wrong) in [
        "on",
        "0.0.0.0:0",
        "localhost:1",
        "unix:",
        "unix:/proc/x",
        &taken,
    ]
    .iter()
    .enumerate()
    {
        let db = dir.path().join(n.to_string());
        let Some(mut running) = Running::begin(&db, &["hold"], &[("ESKER_STATS", wrong)]) else {
            return;
        };
        assert_eq!(running.line(), "ready");
        assert!(!running.has_server());
        running.end();
        let log = log(&db);
        let warning = log
            .lines()
            .find(|l| l.contains("ESKER_STATS: no statistics are served"));
        assert!(
            warning.is_some_and(|l| l.contains("WARN")),
            "{wrong}: {log}"
        );
    }
    let db = dir.path().join("remote");
    let remote = [("ESKER_STATS", "0.0.0.0:0"), ("ESKER_STATS_REMOTE", "1")];
    let mut running = Running::begin(&db, &["hold"], &remote).expect("as above");
    assert_eq!(running.line(), "ready");
    assert!(served_at(&db).starts_with("0.0.0.0:"));
}

/// The program belongs to another user and takes that user's rights.
#[test]
fn a_set_uid_program_ignores_it() {
    let Some(program) = program() else {
        return;
    };
    let is_root = fs::metadata("/proc/self").is_ok_and(|m| {
        use std::os::unix::fs::MetadataExt as _;
        m.uid() == 0
    });
    if !is_root {
        println!("skipped: only root can give a program to another user");
        return;
    }
    const NOBODY: u32 = 65534;
    let dir = tempfile::tempdir().expect("a directory");
    let copy = dir.path().join("set_uid");
    copy_program(program, &copy);
    std::os::unix::fs::chown(&copy, Some(NOBODY), None).expect("it is given away");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).expect("a mode");
    std::os::unix::fs::chown(dir.path(), Some(NOBODY), None).expect("it is given away");
    let db = dir.path().join("db");
    let mut command = Command::new(&copy);
    command.arg(&db).arg("hold").env(ANY_PORT.0, ANY_PORT.1);
    let mut running = Running::of(command);
    assert_eq!(running.line(), "ready");
    let status = fs::read_to_string(format!("/proc/{}/status", running.child.id()));
    let status = status.expect("the kernel says so");
    if !status.contains(&format!("Uid:\t0\t{NOBODY}\t")) {
        println!("skipped: this filesystem gives no rights to programs");
        return;
    }
    assert!(!running.has_server());
    running.end();
    assert!(!log(&db).contains("ESKER_STATS"));
}

#[test]
fn a_child_of_a_fork_serves_nothing() {
    let dir = directory();
    let db = dir.path().join("db");
    let pattern = format!("unix:{}/stats.%p", dir.path().display());
    let stats = [("ESKER_STATS", pattern.as_str())];
    let Some(mut running) = Running::begin(&db, &["fork"], &stats) else {
        return;
    };
    let child = running.line();
    let child = child.strip_prefix("child ").expect("a number").to_owned();
    assert_eq!(running.line(), "ready");
    let path = dir.path().join(format!("stats.{}", running.child.id()));
    let mode = fs::metadata(&path)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!dir.path().join(format!("stats.{child}")).exists());
    let mut stream = UnixStream::connect(&path).expect("connects");
    assert!(ask(&mut stream, "/metrics").ends_with("# EOF\n"));
    // The child holds none of the sockets: with its parent the server is gone.
    running.child.kill().expect("it is there");
    running.child.wait().expect("ends");
    assert!(
        Path::new(&format!("/proc/{child}")).exists(),
        "the child lives on"
    );
    let refused = UnixStream::connect(&path).expect_err("nobody is there");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    let _gone = Command::new("kill").arg(&child).status();
}

/// Bytes of memory of a process, and how many descriptors it has open but those of tables, of which
/// a database has as many as it was opened and closed without time to merge them.
fn used(process: u32) -> Option<(u64, usize)> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    let kb: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).ok()?;
    let targets = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let others = targets.filter(|file| file.extension() != Some("sst".as_ref()));
    Some((kb << 10, others.count()))
}

/// Sets its flag when it is dropped, in a panic, too.
struct EndFlag<'a>(&'a AtomicBool);

impl Drop for EndFlag<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Programs that open, write, fork and close, or are killed, beside clients that ask without end.
#[test]
fn open_close_fork_and_kill_beside_a_scraper() {
    let seconds = std::env::var("ESKER_STATS_SECONDS")
        .ok()
        .and_then(|s| s.parse().ok());
    let time = Duration::from_secs(seconds.unwrap_or(8));
    let dir = directory();
    let path = dir.path().join("stats");
    let pattern = format!("unix:{}", path.display());
    let stats = [("ESKER_STATS", pattern.as_str())];
    let (is_over, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let scrape = || {
            while !is_over.load(Ordering::Relaxed) {
                let Ok(mut stream) = UnixStream::connect(&path) else {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                };
                let patience = Some(Duration::from_secs(20));
                stream.set_read_timeout(patience).expect("a socket");
                let answer = ask(&mut stream, "/metrics");
                if answer.ends_with("# EOF\n") {
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        scope.spawn(scrape);
        scope.spawn(scrape);
        let _end = EndFlag(&is_over);
        let mut n = 0u32;
        while begun.elapsed() < time {
            n += 1;
            // Each takes the place of the socket that the one before it left.
            let db = dir.path().join("db");
            let part = (time / 4).as_millis().clamp(500, 10_000) as u64;
            let Some(mut running) = Running::begin(&db, &["loop", "1000000"], &stats) else {
                break;
            };
            assert_eq!(running.line(), "ready");
            std::thread::sleep(Duration::from_millis(part / 3));
            let (early, _) = used(running.child.id()).expect("it runs");
            std::thread::sleep(Duration::from_millis(part * 2 / 3));
            let (late, descriptors) = used(running.child.id()).expect("it runs on");
            assert!(late < early + (32 << 20), "memory: {early} and then {late}");
            assert!(descriptors < 50, "{descriptors} descriptors");
            // In the middle of whatever it does.
            std::thread::sleep(Duration::from_millis(u64::from(n * 37 % 50)));
            running.child.kill().expect("it is there");
            running.child.wait().expect("ends");
        }
    });
    if program().is_none() {
        return;
    }
    println!(
        "{} answers in {:?}",
        answers.load(Ordering::Relaxed),
        begun.elapsed()
    );
    assert!(answers.load(Ordering::Relaxed) > 50);
    let db = dir.path().join("db");
    let mut last = Running::begin(&db, &["loop", "20"], &stats).expect("as before");
    assert_eq!(last.line(), "ready");
    assert!(last.end().contains("rounds 20"), "the database is well");
}

#[test]
fn a_python_program_is_served_unchanged() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = root.join("../../examples/python/quickstart.py");
    let libraries = directory();
    symlink(ours(), libraries.path().join("librocksdb.so.11")).expect("links");
    let run = |stats: &str| {
        let dir = directory();
        let mut python = Command::new("python3");
        python.arg(&script).arg(dir.path().join("work"));
        python
            .env("LD_LIBRARY_PATH", libraries.path())
            .env("ESKER_STATS", stats);
        let output = python.output().ok()?;
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let was_served = find_in_logs(dir.path(), "statistics are served at");
        Some((text.replace(&*dir.path().to_string_lossy(), ""), was_served))
    };
    let (Some(without), Some(with)) = (run(""), run(ANY_PORT.1)) else {
        println!("skipped: python3 is not installed");
        return;
    };
    assert_eq!(without.0, with.0);
    assert_eq!((without.1, with.1), (false, true));
}

/// Returns whether a LOG below `dir` has `text`.
fn find_in_logs(dir: &Path, text: &str) -> bool {
    let entries = fs::read_dir(dir).expect("a directory");
    entries.map(|e| e.expect("an entry").path()).any(|path| {
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            find_in_logs(&path, text)
        } else {
            name.starts_with("LOG") && fs::read_to_string(&path).is_ok_and(|l| l.contains(text))
        }
    })
}
