//! Running a program with an eye on the clock: what it says, how it ended, whether it hung.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How a watched program ended.
pub(crate) struct Ended {
    /// The lines that it wrote to both of its outputs.
    pub(crate) lines: Vec<String>,
    /// `None` when it said nothing for too long and was ended.
    pub(crate) status: Option<ExitStatus>,
}

impl Ended {
    pub(crate) fn success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    pub(crate) fn text(&self) -> String {
        self.lines.join("\n")
    }

    /// How it ended, for a person.
    pub(crate) fn how(&self) -> String {
        match self.status {
            None => "hung".into(),
            Some(status) => status.to_string(),
        }
    }
}

/// Runs `command` until it ends, or has said nothing for `patience`.
pub(crate) fn watch(
    command: &mut Command,
    patience: Duration,
    mut each: impl FnMut(&str),
) -> io::Result<Ended> {
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .spawn()
        .map_err(|error| io::Error::other(format!("{program}: {error}")))?;
    let (sender, receiver) = channel();
    if let Some(out) = child.stdout.take() {
        forward(out, sender.clone());
    }
    if let Some(err) = child.stderr.take() {
        forward(err, sender);
    }
    let lines = collect(&receiver, patience, &mut each);
    let status = finish(&mut child, lines.1)?;
    Ok(Ended {
        lines: lines.0,
        status,
    })
}

/// The lines, and whether the outputs were closed in time.
fn collect(
    receiver: &Receiver<String>,
    patience: Duration,
    each: &mut impl FnMut(&str),
) -> (Vec<String>, bool) {
    let mut lines = Vec::new();
    loop {
        match receiver.recv_timeout(patience) {
            Ok(line) => {
                each(&line);
                lines.push(line);
            }
            Err(RecvTimeoutError::Disconnected) => return (lines, true),
            Err(RecvTimeoutError::Timeout) => return (lines, false),
        }
    }
}

fn finish(child: &mut Child, closed: bool) -> io::Result<Option<ExitStatus>> {
    if closed {
        return child.wait().map(Some);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

fn forward(stream: impl Read + Send + 'static, sender: Sender<String>) {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&line);
            if sender.send(text.trim_end().to_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
}

/// Runs `command` to its end; what it said is part of the error.
pub(crate) fn must(command: &mut Command, what: &str) -> io::Result<Ended> {
    println!("{what} ...");
    let ended = watch(command, Duration::from_secs(30 * 60), |_| {})?;
    if ended.success() {
        return Ok(ended);
    }
    let (text, how) = (ended.text(), ended.how());
    Err(io::Error::other(format!("{what}: {how}\n{text}")))
}
