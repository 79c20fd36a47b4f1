//! Progress of long work, on stderr and only when that is a terminal.
//!
//! Shared by worker threads; every method takes `&self`.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::Duration;

/// A progress bar, or nothing.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Counts bytes up to `total`.
    pub(crate) fn bytes(doing: &str, total: u64) -> Progress {
        let template = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        Self::start(doing, total, template)
    }

    /// Counts things without a known end.
    pub(crate) fn count(doing: &str) -> Progress {
        Self::start(doing, 0, "{spinner} {msg} {human_pos} {per_sec}")
    }

    /// Shows that something goes on that cannot be counted.
    pub(crate) fn wait(doing: &str) -> Progress {
        let progress = Self::start(doing, 0, "{spinner} {msg} {elapsed}");
        progress.0.enable_steady_tick(Duration::from_millis(200));
        progress
    }

    fn start(doing: &str, total: u64, template: &str) -> Progress {
        let target = if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr_with_hz(5)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target((total > 0).then_some(total), target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(doing.to_owned());
        Progress(bar)
    }

    /// Adds work that is done.
    pub(crate) fn add(&self, n: u64) {
        self.0.inc(n);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
