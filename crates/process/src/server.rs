//! The server of statistics: one thread, which waits for clients and answers one after the other.
//!
//! It has [`CONNECTIONS`] at most, and turns further ones away. The thread takes no signal, writes
//! without SIGPIPE, and lives as long as the process. A child of a fork has no such thread and
//! gives its descriptors up. A report that panics is an answer 500.
//!
//! Thread-safety: [`opened`] may be called by any thread; everything else belongs to the server's.

use crate::address::StatsAddress;
use crate::connection::{Connection, Progress, response};
use crate::databases::{Databases, OpenDatabase};
use crate::free_pages;
use crate::listener::listen;
use crate::memory::log_budget;
use crate::request::View;
use crate::switches::switches;
use crate::{page, report, sys};
use esker::Db;
use esker::env::{Clock, Env};
use esker::observe::OPEN_METRICS_TYPE;
use esker::options::InfoLogLevel;
use esker_sync::{Arc, OnceLock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, SendFlags, SocketFlags};
use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Connections at a time.
const CONNECTIONS: usize = 8;
/// Clients that are turned away before the others get a turn.
const ACCEPTED_MAX: usize = 32;
/// How long no client is accepted after accepting one failed, in microseconds.
const PAUSE_US: u64 = 100_000;
/// Stack of the thread.
const STACK: usize = 1 << 20;

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    databases: Arc<Databases>,
    /// The process that it belongs to.
    process: u32,
    at: String,
}

impl Server {
    /// Serves `databases` at `address`. The error is a sentence.
    pub fn begin(
        address: &StatsAddress,
        databases: Arc<Databases>,
        is_remote: bool,
    ) -> Result<Server, String> {
        let (socket, at) = listen(address)?;
        sys::children_give_up_descriptors();
        sys::note_descriptor(socket.as_raw_fd());
        let mut serving = ServerState {
            listener: socket,
            databases: Arc::clone(&databases),
            connections: Vec::new(),
            is_remote,
            clock: Env::posix().clock,
            paused_until_us: 0,
        };
        // A thread of its own, and none of those that databases share: its signals are blocked from
        // its first instruction on, and it never ends.
        sys::without_signals(|| {
            std::thread::Builder::new()
                .name("esker-stats".to_owned())
                .stack_size(STACK)
                .spawn(move || serving.run())
        })
        .map_err(|e| format!("there is no thread for the server: {e}"))?;
        Ok(Server {
            databases,
            process: std::process::id(),
            at,
        })
    }

    /// Where it is.
    pub fn at(&self) -> &str {
        &self.at
    }
}

/// Takes note of a database that was opened. The first one begins the server, if the switches ask
/// for it; what is wrong with them is a warning in its LOG.
pub fn opened(db: &Db) -> OpenDatabase {
    log_budget(db);
    free_pages::watch();
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let server = SERVER.get_or_init(|| {
        let switches = switches();
        if switches.stats.is_empty() {
            return None;
        }
        let process = std::process::id();
        let begun = StatsAddress::parse(&switches.stats, process, switches.stats_remote)
            .and_then(|at| Server::begin(&at, Databases::new(), switches.stats_remote));
        match begun {
            Ok(server) => {
                let line = format!("ESKER_STATS: statistics are served at {}", server.at());
                db.log(InfoLogLevel::Info, &line);
                Some(server)
            }
            Err(why) => {
                let line = format!("ESKER_STATS: no statistics are served: {why}");
                db.log(InfoLogLevel::Warn, &line);
                None
            }
        }
    });
    match server {
        // In a child of a fork nobody would ask.
        Some(server) if server.process == std::process::id() => server.databases.add(db),
        _ => OpenDatabase::unlisted(),
    }
}

/// The state of the thread.
struct ServerState {
    listener: OwnedFd,
    databases: Arc<Databases>,
    connections: Vec<Connection>,
    is_remote: bool,
    clock: std::sync::Arc<dyn Clock>,
    /// No client is accepted before, by the clock.
    paused_until_us: u64,
}

impl ServerState {
    fn run(&mut self) {
        loop {
            let (is_listener_ready, ready) = self.wait();
            let now_us = self.clock.now_us();
            let mut at = 0;
            for is_ready in ready {
                let connection = &mut self.connections[at];
                let mut progress = if is_ready {
                    connection.go_on(self.is_remote, now_us)
                } else {
                    Progress::Waits
                };
                if let Progress::Asks(view) = progress {
                    progress = answer(connection, &self.databases, view, now_us);
                }
                if progress == Progress::Ends || now_us >= connection.until_us {
                    self.connections.remove(at);
                } else {
                    at += 1;
                }
            }
            if is_listener_ready {
                self.accept(now_us);
            }
        }
    }

    /// Waits until something can be done. Tells whether somebody connects, and which connections
    /// are ready.
    fn wait(&self) -> (bool, Vec<bool>) {
        let now_us = self.clock.now_us();
        let is_paused = now_us < self.paused_until_us;
        let mut until: Option<u64> = self.connections.iter().map(|c| c.until_us).min();
        if is_paused {
            until = Some(until.unwrap_or(u64::MAX).min(self.paused_until_us));
        }
        // Rounded up, so that the time has come when the wait is over.
        let timeout = until.map(|until| {
            let us = until.saturating_sub(now_us) + 1000;
            Timespec {
                tv_sec: i64::try_from(us / 1_000_000).unwrap_or(i64::MAX),
                tv_nsec: i64::try_from(us % 1_000_000 * 1000).unwrap_or(0),
            }
        });
        let mut waiting: Vec<PollFd<'_>> = self
            .connections
            .iter()
            .map(|c| {
                let flags = if c.is_writing() {
                    PollFlags::OUT
                } else {
                    PollFlags::IN
                };
                PollFd::new(c, flags)
            })
            .collect();
        if !is_paused {
            waiting.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        match poll(&mut waiting, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            // No memory in the kernel, if anything.
            Err(_) => self.clock.sleep(std::time::Duration::from_micros(PAUSE_US)),
        }
        let mut ready: Vec<bool> = waiting.iter().map(|w| !w.revents().is_empty()).collect();
        let is_listener_ready = !is_paused && ready.pop().unwrap_or(false);
        (is_listener_ready, ready)
    }

    fn accept(&mut self, now_us: u64) {
        for _ in 0..ACCEPTED_MAX {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match net::accept_with(&self.listener, flags) {
                Ok(socket) if self.connections.len() < CONNECTIONS => {
                    self.connections.push(Connection::new(socket, now_us));
                }
                Ok(socket) => {
                    let busy = response(
                        "503 Service Unavailable",
                        "text/plain; charset=utf-8",
                        "eight clients are served at a time\n",
                    );
                    // It is closed in any case.
                    let _sent = net::send(&socket, &busy, SendFlags::NOSIGNAL);
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) => {
                    // No descriptor is free, mostly.
                    self.paused_until_us = now_us + PAUSE_US;
                    return;
                }
            }
        }
    }
}

fn answer(connection: &mut Connection, databases: &Databases, view: View, now_us: u64) -> Progress {
    let make = || match view {
        View::Metrics => databases.with_open(|open| {
            let open: Vec<&Db> = open.iter().collect();
            (OPEN_METRICS_TYPE, Db::metrics_of(&open))
        }),
        View::Text => (
            "text/plain; charset=utf-8",
            report::text(&databases.with_open(report::of)),
        ),
        View::Page => (
            "text/html; charset=utf-8",
            page::html(&databases.with_open(report::of)),
        ),
    };
    match catch_unwind(AssertUnwindSafe(make)) {
        Ok((media, body)) => connection.answer("200 OK", media, &body, now_us),
        Err(_) => {
            let status = "500 Internal Server Error";
            let body = "the report could not be made; the database goes on\n";
            connection.answer(status, "text/plain; charset=utf-8", body, now_us)
        }
    }
}
