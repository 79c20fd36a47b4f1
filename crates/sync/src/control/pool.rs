//! Threads that are kept for the next body: a simulation starts and ends thousands of them a
//! second.
//!
//! Callers: schedules, and simulations that run on the machine's time. Invariant: a thread runs one
//! body at a time; what it has done is nothing to the next. Threads end with the process.
//! Thread-safety: the list of those that wait is behind a lock.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

type Body = Box<dyn FnOnce() + Send>;

static IDLE: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

fn idle() -> MutexGuard<'static, Vec<Kept>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that waits, owned by one pool.
#[derive(Debug)]
pub(super) struct Kept {
    thread: Thread,
    bodies: Sender<(Body, Kept)>,
}

impl Kept {
    /// One that was kept, or a new one.
    pub(super) fn take() -> io::Result<Kept> {
        if let Some(kept) = idle().pop() {
            return Ok(kept);
        }
        let (bodies, next) = channel::<(Body, Kept)>();
        let work = move || {
            while let Ok((body, me)) = next.recv() {
                // The body reports a panic to the thread that waits for it.
                let _ = catch_unwind(AssertUnwindSafe(body));
                idle().push(me);
            }
        };
        let started = std::thread::Builder::new()
            .name("simulated".to_owned())
            .spawn(work)?;
        let thread = started.thread().clone();
        Ok(Kept { thread, bodies })
    }

    pub(super) fn thread(&self) -> &Thread {
        &self.thread
    }

    /// Lets it run `body`.
    pub(super) fn begin(self, body: Body) {
        let bodies = self.bodies.clone();
        // It waits for as long as somebody could send: this cannot fail.
        let _ = bodies.send((body, self));
    }
}

/// A body that runs, or has ended.
#[derive(Debug)]
pub struct Running(pub(super) Receiver<std::thread::Result<()>>);

impl Running {
    /// Waits for its end; the panic that ended it is the error.
    pub fn join(self) -> std::thread::Result<()> {
        self.0
            .recv()
            .unwrap_or_else(|_| Err(Box::new("the thread is gone")))
    }
}

/// Runs `body` on a thread of its own, beside the caller.
pub fn start(body: impl FnOnce() + Send + 'static) -> io::Result<Running> {
    let (tell, hear) = channel();
    let body = move || {
        // There may be no waiter.
        let _ = tell.send(catch_unwind(AssertUnwindSafe(body)));
    };
    Kept::take()?.begin(Box::new(body));
    Ok(Running(hear))
}
