//! Figures of each second of a step: stalls, processor time, memory, the device.

use std::path::Path;
use std::sync::Mutex;

use crate::process::{Device, Usage};
use crate::report::Second;
use crate::shape::stalls;
use crate::store::Store;

/// Cumulative figures at one moment.
struct Tick {
    /// Microseconds that writers were stopped, delayed and paced.
    held: [u64; 3],
    usage: Usage,
    device: Option<Device>,
}

/// Kinds of the ledger, in the order of [`Tick::held`].
const KINDS: [&str; 3] = ["stops", "delays", "paces"];

impl Tick {
    fn now<S: Store>(store: &S, path: &Path) -> Tick {
        let ledger = stalls(store);
        let held = KINDS.map(|kind| {
            let of_kind = ledger.iter().filter(|stall| stall.kind == kind);
            of_kind.map(|stall| stall.writers_micros).sum()
        });
        Tick {
            held,
            usage: Usage::now(),
            device: Device::below(path),
        }
    }

    fn since(&self, before: &Tick) -> Second {
        let usage = self.usage.since(before.usage);
        let device = self.device.zip(before.device);
        let device = device
            .map(|(now, then)| now.since(then))
            .unwrap_or_default();
        let held = |kind: usize| self.held[kind].saturating_sub(before.held[kind]);
        Second {
            stopped_us: held(0),
            delayed_us: held(1),
            paced_us: held(2),
            cpu_seconds: usage.user_seconds + usage.system_seconds,
            rss_bytes: self.usage.rss_bytes,
            read_bytes: device.reads.bytes,
            write_bytes: device.writes.bytes,
        }
    }
}

/// Looks at the cumulative figures at the end of each second.
pub(super) struct Seconds<'a, S: Store> {
    store: &'a S,
    path: &'a Path,
    /// The figures of the last look, and the seconds so far.
    seen: Mutex<(Tick, Vec<Second>)>,
}

impl<'a, S: Store> Seconds<'a, S> {
    pub(super) fn begin(store: &'a S, path: &'a Path) -> Seconds<'a, S> {
        Seconds {
            store,
            path,
            seen: Mutex::new((Tick::now(store, path), Vec::new())),
        }
    }

    /// A second is over.
    pub(super) fn note(&self) {
        let now = Tick::now(self.store, self.path);
        if let Ok(mut seen) = self.seen.lock() {
            let second = now.since(&seen.0);
            seen.1.push(second);
            seen.0 = now;
        }
    }

    /// All seconds, and what came behind the last of them.
    pub(super) fn finish(self) -> (Vec<Second>, Second) {
        let now = Tick::now(self.store, self.path);
        match self.seen.into_inner() {
            Ok((last, seconds)) => (seconds, now.since(&last)),
            Err(_) => (Vec::new(), Second::default()),
        }
    }
}
