//! Processes of database servers: started and stopped by the laboratory, on loopback, in a
//! temporary directory.
//!
//! A server never outlives its owner. It is stopped when [`Server`] is dropped; `setpriv` tells the
//! kernel to end it when the thread that started it dies, however that happens. As root the server
//! runs as its own user, since servers refuse root.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::process::{Usage, wait_until_quiet};
use crate::{Failure, Result, interrupt};

/// Who runs a server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct User {
    id: u32,
    group: u32,
}

/// The user of one of these names, the first that exists.
fn user(names: &[&str]) -> Result<User> {
    let text = fs::read_to_string("/etc/passwd")?;
    for name in names {
        let line = text
            .lines()
            .find(|line| line.split(':').next() == Some(*name));
        let fields: Vec<&str> = line.unwrap_or_default().split(':').collect();
        let number = |at: usize| fields.get(at).and_then(|f| f.parse().ok());
        if let (Some(id), Some(group)) = (number(2), number(3)) {
            return Ok(User { id, group });
        }
    }
    let names = names.join(", ");
    Err(Failure::new(format!(
        "root may not run it, and there is no user {names}"
    )))
}

/// Where a program is: in one of `directories`, or on the path.
pub(crate) fn program(name: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let known = ["/usr/sbin", "/usr/libexec", "/usr/local/sbin"].map(PathBuf::from);
    let all = directories
        .iter()
        .cloned()
        .chain(std::env::split_paths(&path))
        .chain(known);
    all.map(|directory| directory.join(name))
        .find(|file| file.is_file())
}

/// A port of loopback that is free now.
///
/// # Errors
/// There is none.
pub(crate) fn free_port() -> Result<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    Ok(listener.local_addr()?.port())
}

/// Programs of one server that run in one directory.
pub(crate) struct ServerDirectory {
    directory: PathBuf,
    user: Option<User>,
}

impl ServerDirectory {
    /// Uses an empty directory. As root it is given to the first user that exists.
    ///
    /// # Errors
    /// There is no such user, or the directory cannot be given away.
    pub(crate) fn new(directory: &Path, users: &[&str]) -> Result<ServerDirectory> {
        let user = if geteuid().is_root() {
            Some(user(users)?)
        } else {
            None
        };
        fs::create_dir_all(directory)?;
        if let Some(user) = &user {
            std::os::unix::fs::chown(directory, Some(user.id), Some(user.group))?;
        }
        Ok(ServerDirectory {
            directory: directory.to_path_buf(),
            user,
        })
    }

    /// A command that runs as the server's user, and that `ending` (a signal's name) ends when the
    /// calling thread dies.
    fn command(&self, program: &Path, ending: &str) -> Result<Command> {
        let setpriv = crate::relational::server::program("setpriv", &[]);
        let Some(setpriv) = setpriv else {
            if self.user.is_some() {
                return Err(Failure::new(
                    "as root it needs setpriv, which is not installed",
                ));
            }
            return Ok(Command::new(program));
        };
        let mut command = Command::new(setpriv);
        if let Some(user) = &self.user {
            command.arg(format!("--reuid={}", user.id));
            command.arg(format!("--regid={}", user.group));
            command.arg("--clear-groups");
        }
        command
            .arg(format!("--pdeathsig={ending}"))
            .arg("--")
            .arg(program);
        Ok(command)
    }

    fn log(&self, name: &str) -> Result<(File, PathBuf)> {
        let path = self.directory.with_extension(name);
        Ok((File::create(&path)?, path))
    }

    /// Runs a program to its end.
    ///
    /// # Errors
    /// It fails; the end of its output says why.
    pub(crate) fn run(&self, program: &Path, arguments: &[String]) -> Result<()> {
        let (out, path) = self.log("setup.log")?;
        let mut command = self.command(program, "KILL")?;
        command
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out);
        let status = command.status()?;
        if status.success() {
            return Ok(());
        }
        let name = program.display();
        Err(Failure::new(format!("{name}: {status}: {}", tail(&path))))
    }

    /// Starts a server, which `stop` ends in good order.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(
        &self,
        program: &Path,
        arguments: &[String],
        stop: Signal,
    ) -> Result<Server> {
        let (out, log) = self.log("server.log")?;
        let ending = if stop == Signal::INT { "QUIT" } else { "KILL" };
        let mut command = self.command(program, ending)?;
        command
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            // Ctrl-C at the terminal is for the laboratory, which stops the server in order.
            .process_group(0);
        let child = command.spawn()?;
        interrupt::own_process(child.id());
        Ok(Server { child, stop, log })
    }
}

/// The end of a log, in one line.
fn tail(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().rev().take(4).collect();
    let lines: Vec<&str> = lines.into_iter().rev().collect();
    lines.join("; ")
}

/// A server that runs.
pub(crate) struct Server {
    child: Child,
    stop: Signal,
    log: PathBuf,
}

impl Server {
    /// Waits until `connect` succeeds.
    ///
    /// # Errors
    /// The server ended, or did not answer within a minute.
    pub(crate) fn wait<T>(&mut self, mut connect: impl FnMut() -> Result<T>) -> Result<T> {
        let begin = Instant::now();
        loop {
            let why = match connect() {
                Ok(connected) => return Ok(connected),
                Err(why) => why,
            };
            if let Some(status) = self.child.try_wait()? {
                let text = format!("the server ended: {status}: {}", tail(&self.log));
                return Err(Failure::new(text));
            }
            if begin.elapsed() > Duration::from_secs(60) || interrupt::stopped() {
                let text = format!("the server does not answer: {why}: {}", tail(&self.log));
                return Err(Failure::new(text));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns the usage of its processes since they began.
    pub(crate) fn usage(&self) -> Usage {
        tree_usage(self.child.id())
    }

    /// Waits until its processes have written nothing for half a second, a minute at most.
    pub(crate) fn wait_until_quiet(&self) {
        wait_until_quiet(|| self.usage().device_write_bytes);
    }

    /// Its process, for tests.
    #[cfg(test)]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(id) = id {
            // It may have ended by itself.
            let _ = kill_process(id, signal);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal(self.stop);
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(30) {
            if !matches!(self.child.try_wait(), Ok(None)) {
                interrupt::disown_process(self.child.id());
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.signal(Signal::KILL);
        let _ = self.child.wait();
        interrupt::disown_process(self.child.id());
    }
}

/// Parents of all processes.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let parent = |entry: fs::DirEntry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (_, rest) = stat.rsplit_once(')')?;
        Some((id, rest.split_whitespace().nth(1)?.parse().ok()?))
    };
    entries.flatten().filter_map(parent).collect()
}

/// Returns the usage of a process and its descendants, those that ended included.
fn tree_usage(root: u32) -> Usage {
    let parents = parents();
    let mut all = vec![root];
    let mut at = 0;
    while at < all.len() {
        let parent = all[at];
        all.extend(
            parents
                .iter()
                .filter(|(_, p)| *p == parent)
                .map(|(id, _)| *id),
        );
        at += 1;
    }
    let mut sum = Usage::default();
    for id in all {
        let one = Usage::of(id);
        sum.user_seconds += one.user_seconds;
        sum.system_seconds += one.system_seconds;
        sum.device_write_bytes += one.device_write_bytes;
        sum.device_read_bytes += one.device_read_bytes;
        sum.rss_bytes += one.rss_bytes;
    }
    sum
}
