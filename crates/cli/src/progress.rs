//! Progress of long work, on stderr and only when that is a terminal.
//!
//! A command that prints what it reads shows none where stdout is a terminal: the two would be
//! written over each other. Shared by worker threads; every method takes `&self`.

use crate::text::size;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two looks at work that is done elsewhere.
const LOOK: Duration = Duration::from_millis(200);
/// Bytes done and due, the rate, and the time left.
const BYTES: &str = "{msg} {wide_bar} {bytes} of {total_bytes}, {rate}, {eta} left";

/// A progress bar, or nothing.
pub(crate) struct Progress {
    bar: ProgressBar,
    watcher: Option<ProgressThread>,
}

/// The thread that asks how much is done.
struct ProgressThread {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Progress {
    /// Counts bytes up to `total`.
    pub(crate) fn bytes(doing: &str, total: u64) -> Progress {
        Self::start(doing, total, BYTES)
    }

    /// Counts things without a known end.
    pub(crate) fn count(doing: &str) -> Progress {
        Self::start(
            doing,
            0,
            "{spinner} {msg} {human_pos}, {per_second} a second",
        )
    }

    /// Counts the entries of a listing on `stdout`, unless that is a terminal.
    pub(crate) fn listing(doing: &str, is_shown: bool) -> Progress {
        if is_shown {
            return Self::on(ProgressDrawTarget::hidden(), doing, 0, "");
        }
        Self::count(doing)
    }

    /// Counts bytes of work that goes on elsewhere: `done` says how many. Work may turn out to be
    /// more than `due`.
    pub(crate) fn watched(
        doing: &str,
        due: u64,
        done: impl Fn() -> u64 + Send + 'static,
    ) -> Progress {
        let mut progress = Self::start(doing, due.max(1), BYTES);
        if progress.bar.is_hidden() {
            return progress;
        }
        let (bar, stop) = (progress.bar.clone(), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        bar.tick();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let done = done();
                if bar.length().is_some_and(|due| due < done) {
                    bar.set_length(done);
                }
                bar.set_position(done);
                std::thread::park_timeout(LOOK);
            }
        });
        progress.watcher = Some(ProgressThread { stop, thread });
        progress
    }

    /// Shows that something goes on that cannot be counted.
    pub(crate) fn wait(doing: &str) -> Progress {
        let progress = Self::start(doing, 0, "{spinner} {msg} {elapsed}");
        progress.bar.enable_steady_tick(LOOK);
        progress
    }

    fn start(doing: &str, total: u64, template: &str) -> Progress {
        let target = if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr_with_hz(5)
        } else {
            ProgressDrawTarget::hidden()
        };
        Self::on(target, doing, total, template)
    }

    fn on(target: ProgressDrawTarget, doing: &str, total: u64, template: &str) -> Progress {
        let bar = ProgressBar::with_draw_target((total > 0).then_some(total), target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(
                style
                    .with_key("rate", rate)
                    .with_key("per_second", per_second),
            );
        }
        bar.set_message(doing.to_owned());
        Progress { bar, watcher: None }
    }

    /// Adds work that is done.
    pub(crate) fn add(&self, n: u64) {
        self.bar.inc(n);
    }
}

fn rate(state: &ProgressState, to: &mut dyn Write) {
    let _ = write!(to, "{}/s", size(state.per_sec() as u64));
}

fn per_second(state: &ProgressState, to: &mut dyn Write) {
    let _ = write!(to, "{:.0}", state.per_sec());
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(watcher) = self.watcher.take() {
            watcher.stop.store(true, Ordering::Relaxed);
            watcher.thread.thread().unpark();
            // It shows only what others do.
            let _shown = watcher.thread.join();
        }
        self.bar.finish_and_clear();
    }
}
