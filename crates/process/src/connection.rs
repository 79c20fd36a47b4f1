//! One connection: it reads a request, writes the answer, and waits a moment for the client to
//! close. Nothing here waits; the server calls when the socket is ready.
//!
//! Thread-safety: the server's thread alone.

use crate::request::{REQUEST_MAX, Request, View, parse};
use crate::sys;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, Shutdown};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// How long a request may take, answer included, in microseconds.
pub(crate) const TIME_US: u64 = 5_000_000;
/// How long a client may take to close after its answer, in microseconds.
const LINGER_US: u64 = 500_000;
/// Bytes that a client may send behind its request before it is cut off.
const REST_MAX: usize = 1 << 20;

#[derive(Debug)]
enum State {
    Reading,
    Writing {
        answer: Vec<u8>,
        written: usize,
    },
    /// The answer was sent whole; closing now could take it back from a client that still sends.
    Lingering {
        rest: usize,
    },
}

/// The next step of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Waits,
    /// The request is there: the server makes the answer.
    Asks(View),
    Ends,
}

/// A connection with a client.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: OwnedFd,
    request: Vec<u8>,
    state: State,
    /// When it is cut off, by the clock.
    pub(crate) until_us: u64,
}

impl Drop for Connection {
    fn drop(&mut self) {
        sys::forget_descriptor(self.socket.as_raw_fd());
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Connection {
    /// A connection that was accepted at `now_us`. Its socket does not block.
    pub(crate) fn new(socket: OwnedFd, now_us: u64) -> Connection {
        sys::note_descriptor(socket.as_raw_fd());
        Connection {
            socket,
            request: Vec::new(),
            state: State::Reading,
            until_us: now_us + TIME_US,
        }
    }

    /// Returns whether it waits for room to write, and not for bytes to read.
    pub(crate) fn is_writing(&self) -> bool {
        matches!(self.state, State::Writing { .. })
    }

    /// Does what can be done without waiting.
    pub(crate) fn go_on(&mut self, is_remote: bool, now_us: u64) -> Progress {
        match &mut self.state {
            State::Reading => self.read(is_remote, now_us),
            State::Writing { .. } => self.write(now_us),
            State::Lingering { rest } => {
                let mut bytes = [0u8; 4096];
                loop {
                    match net::recv(&self.socket, &mut bytes[..], RecvFlags::empty()) {
                        Ok((_, 0)) => return Progress::Ends,
                        Ok((_, n)) if *rest + n <= REST_MAX => *rest += n,
                        Err(Errno::AGAIN) => return Progress::Waits,
                        Err(Errno::INTR) => {}
                        _ => return Progress::Ends,
                    }
                }
            }
        }
    }

    fn read(&mut self, is_remote: bool, now_us: u64) -> Progress {
        let mut bytes = [0u8; REQUEST_MAX];
        loop {
            let room = REQUEST_MAX - self.request.len();
            match net::recv(&self.socket, &mut bytes[..room], RecvFlags::empty()) {
                Ok((_, 0)) => return Progress::Ends,
                Ok((_, n)) => self.request.extend_from_slice(&bytes[..n]),
                Err(Errno::AGAIN) => return Progress::Waits,
                Err(Errno::INTR) => continue,
                Err(_) => return Progress::Ends,
            }
            match parse(&self.request, is_remote) {
                Request::Partial => {}
                Request::Get(view) => return Progress::Asks(view),
                Request::Refused(status, text) => {
                    let text = format!("{text}\n");
                    return self.answer(status, "text/plain; charset=utf-8", &text, now_us);
                }
            }
        }
    }

    /// Begins to send an answer.
    pub(crate) fn answer(
        &mut self,
        status: &str,
        media: &str,
        body: &str,
        now_us: u64,
    ) -> Progress {
        self.state = State::Writing {
            answer: response(status, media, body),
            written: 0,
        };
        self.write(now_us)
    }

    fn write(&mut self, now_us: u64) -> Progress {
        let State::Writing { answer, written } = &mut self.state else {
            return Progress::Waits;
        };
        while *written < answer.len() {
            match net::send(&self.socket, &answer[*written..], SendFlags::NOSIGNAL) {
                Ok(n) => *written += n,
                Err(Errno::AGAIN) => return Progress::Waits,
                Err(Errno::INTR) => {}
                Err(_) => return Progress::Ends,
            }
        }
        if net::shutdown(&self.socket, Shutdown::Write).is_err() {
            return Progress::Ends;
        }
        self.state = State::Lingering { rest: 0 };
        self.until_us = self.until_us.min(now_us + LINGER_US);
        Progress::Waits
    }
}

/// An answer as it is sent. Browsers are told to give it to no other site's page, to load nothing
/// for it and to keep nothing of it.
pub(crate) fn response(status: &str, media: &str, body: &str) -> Vec<u8> {
    let allow = if status.starts_with("405") {
        "Allow: GET\r\n"
    } else {
        ""
    };
    let head = format!(
        "HTTP/1.1 {status}\r\n\
         Content-Type: {media}\r\n\
         Content-Length: {}\r\n\
         Connection: close\r\n\
         Cache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n\
         X-Content-Type-Options: nosniff\r\n\
         Referrer-Policy: no-referrer\r\n\
         {allow}\r\n",
        body.len()
    );
    let mut out = Vec::with_capacity(head.len() + body.len());
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(body.as_bytes());
    out
}
