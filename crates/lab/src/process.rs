//! Figures of this process and this machine, from `/proc`.
//!
//! Everything is best effort: a figure that the system does not give is 0 or absent.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Cumulative figures of the process; subtract two for a step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Seconds of processor time in user mode.
    pub user_seconds: f64,
    /// Seconds of processor time in the kernel.
    pub system_seconds: f64,
    /// Bytes that the process caused to be written to storage, less those of pages that it gave up
    /// before they were: a log that is deleted young never reaches the device.
    pub device_write_bytes: u64,
    /// Bytes of those pages: files that were deleted before they were written out.
    pub given_up_bytes: u64,
    /// Bytes that the process caused to be read from storage.
    pub device_read_bytes: u64,
    /// Resident bytes now.
    pub rss_bytes: u64,
    /// Switches of processors from one thread to another, of all processes.
    pub switches: u64,
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

impl Usage {
    /// The figures now.
    pub fn now() -> Usage {
        Usage::below("/proc/self")
    }

    /// The figures of another process now; nothing when it has ended.
    #[cfg(feature = "servers")]
    pub(crate) fn of(process: u32) -> Usage {
        Usage::below(&format!("/proc/{process}"))
    }

    fn below(process: &str) -> Usage {
        let stat = fs::read_to_string(format!("{process}/stat")).unwrap_or_default();
        // The command name may hold spaces; the fields start behind its parenthesis.
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace().collect())
            .unwrap_or_default();
        let ticks = |i: usize| {
            fields
                .get(i)
                .and_then(|f| f.parse::<f64>().ok())
                .unwrap_or(0.0)
                / 100.0
        };
        let io = fs::read_to_string(format!("{process}/io")).unwrap_or_default();
        let status = fs::read_to_string(format!("{process}/status")).unwrap_or_default();
        Usage {
            user_seconds: ticks(11),
            system_seconds: ticks(12),
            device_write_bytes: field(&io, "write_bytes:")
                .saturating_sub(field(&io, "cancelled_write_bytes:")),
            given_up_bytes: field(&io, "cancelled_write_bytes:"),
            device_read_bytes: field(&io, "read_bytes:"),
            rss_bytes: field(&status, "VmRSS:") * 1024,
            switches: field(
                &fs::read_to_string("/proc/stat").unwrap_or_default(),
                "ctxt",
            ),
        }
    }

    /// Returns the usage since `before`; the resident size is that of now.
    pub fn since(self, before: Usage) -> Usage {
        Usage {
            user_seconds: self.user_seconds - before.user_seconds,
            system_seconds: self.system_seconds - before.system_seconds,
            device_write_bytes: self
                .device_write_bytes
                .saturating_sub(before.device_write_bytes),
            given_up_bytes: self.given_up_bytes.saturating_sub(before.given_up_bytes),
            device_read_bytes: self
                .device_read_bytes
                .saturating_sub(before.device_read_bytes),
            rss_bytes: self.rss_bytes,
            switches: self.switches.saturating_sub(before.switches),
        }
    }
}

/// Resident bytes by what they are for, as the kernel has them: the program's own code and data,
/// stacks, and everything else that was allocated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resident {
    /// Mapped files: programs, libraries, files of databases.
    pub files: u64,
    /// Stacks: that of the first thread, and mappings behind a page that nobody may touch, which is
    /// how threads get theirs.
    pub stacks: u64,
    /// All the rest.
    pub anonymous: u64,
}

/// The largest guard of a stack.
const GUARD: u64 = 64 << 10;

/// Bytes between two addresses of a mapping.
fn size(from: &str, to: &str) -> u64 {
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
    number(to).saturating_sub(number(from))
}

impl Resident {
    /// The figures now.
    pub fn now() -> Resident {
        Self::parse(&fs::read_to_string("/proc/self/smaps").unwrap_or_default())
    }

    fn parse(smaps: &str) -> Resident {
        let mut sums = Resident::default();
        let (mut name, mut is_stack) = ("", false);
        // Where a guard page ended.
        let mut guard = "";
        for line in smaps.lines() {
            let mut words = line.split_whitespace();
            let first = words.next().unwrap_or_default();
            if let Some((from, to)) = first.split_once('-').filter(|_| !first.ends_with(':')) {
                let access = words.next().unwrap_or_default();
                name = words.nth(3).unwrap_or_default();
                is_stack = name.starts_with("[stack") || name.is_empty() && from == guard;
                guard = if access.starts_with("---") && size(from, to) <= GUARD {
                    to
                } else {
                    ""
                };
            } else if first == "Rss:" {
                let bytes = field(line, "Rss:") * 1024;
                match name {
                    _ if is_stack => sums.stacks += bytes,
                    _ if name.starts_with('/') => sums.files += bytes,
                    _ => sums.anonymous += bytes,
                }
            }
        }
        sums
    }
}

/// Cumulative figures of the calling thread, and what the host took from its machine; subtract two
/// for a step.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadUsage {
    /// On a processor.
    pub ran: Duration,
    /// Ready to run, while others did.
    pub waited: Duration,
    /// Of all processors, for other guests of the host; in hundredths of a second.
    pub stolen: Duration,
}

impl ThreadUsage {
    /// The figures now.
    pub fn now() -> ThreadUsage {
        let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let mut figures = text.split_whitespace().map(|f| f.parse().unwrap_or(0));
        let mut next = || Duration::from_nanos(figures.next().unwrap_or(0));
        let (ran, waited) = (next(), next());
        // `cpu`, then user, nice, system, idle, iowait, irq, softirq, steal.
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let steal = text.split_whitespace().nth(8).and_then(|s| s.parse().ok());
        ThreadUsage {
            ran,
            waited,
            stolen: Duration::from_millis(10 * steal.unwrap_or(0)),
        }
    }

    /// Returns the usage since `before`.
    pub fn since(self, before: ThreadUsage) -> ThreadUsage {
        ThreadUsage {
            ran: self.ran.saturating_sub(before.ran),
            waited: self.waited.saturating_sub(before.waited),
            stolen: self.stolen.saturating_sub(before.stolen),
        }
    }
}

/// Cumulative figures of one direction of a block device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests that the device completed.
    pub done: u64,
    /// Requests that were merged into one of those before it got them.
    pub merged: u64,
    /// Bytes.
    pub bytes: u64,
    /// Milliseconds that requests took, added up.
    pub millis: u64,
}

impl Requests {
    /// Four fields of a line of `/proc/diskstats`.
    fn parse(fields: &[&str]) -> Option<Requests> {
        let number = |i: usize| fields.get(i)?.parse::<u64>().ok();
        Some(Requests {
            done: number(0)?,
            merged: number(1)?,
            bytes: number(2)? * 512,
            millis: number(3)?,
        })
    }

    fn since(self, before: Requests) -> Requests {
        Requests {
            done: self.done.saturating_sub(before.done),
            merged: self.merged.saturating_sub(before.merged),
            bytes: self.bytes.saturating_sub(before.bytes),
            millis: self.millis.saturating_sub(before.millis),
        }
    }

    /// Milliseconds of a request, waiting for others included.
    pub fn average_ms(self) -> Option<f64> {
        (self.done > 0).then(|| self.millis as f64 / self.done as f64)
    }

    /// Kilobytes of a request, as the device got them: what `iostat -x` calls `rareq-sz` and
    /// `wareq-sz`.
    pub fn average_kb(self) -> Option<f64> {
        (self.done > 0).then(|| self.bytes as f64 / 1024.0 / self.done as f64)
    }
}

/// Figures of the block device below a directory, for all processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Device {
    /// Reads.
    pub reads: Requests,
    /// Writes.
    pub writes: Requests,
}

impl Device {
    /// The figures now; `None` where there is no single device below the directory.
    pub fn below(directory: &Path) -> Option<Device> {
        let number = fs::metadata(directory).ok()?.dev();
        let stats = fs::read_to_string("/proc/diskstats").ok()?;
        Self::find(&stats, number)
    }

    fn find(stats: &str, number: u64) -> Option<Device> {
        let major = (number >> 8 & 0xFFF) | (number >> 32 & !0xFFF);
        let minor = (number & 0xFF) | (number >> 12 & !0xFF);
        let (major, minor) = (major.to_string(), minor.to_string());
        stats.lines().find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_it = fields.first() == Some(&&*major) && fields.get(1) == Some(&&*minor);
            (is_it && fields.len() >= 11).then_some(())?;
            Some(Device {
                reads: Requests::parse(&fields[3..7])?,
                writes: Requests::parse(&fields[7..11])?,
            })
        })
    }

    /// Returns the figures since `before`.
    pub fn since(self, before: Device) -> Device {
        Device {
            reads: self.reads.since(before.reads),
            writes: self.writes.since(before.writes),
        }
    }

    /// A line for people.
    pub fn line(&self) -> String {
        let part = |requests: Requests, what: &str| {
            let size = requests.average_kb().unwrap_or(0.0);
            let Requests { done, merged, .. } = requests;
            format!("{done} {what} of {size:.1} KB ({merged} merged)")
        };
        let (reads, writes) = (part(self.reads, "reads"), part(self.writes, "writes"));
        format!("device: {reads}, {writes}")
    }
}

/// Waits until `written`, a count of bytes, has not grown for half a second; a minute at most.
#[cfg(any(feature = "servers", feature = "peer-fjall"))]
pub(crate) fn wait_until_quiet(written: impl Fn() -> u64) {
    let begin = Instant::now();
    let (mut last, mut since) = (written(), Instant::now());
    while since.elapsed() < Duration::from_millis(500) {
        if begin.elapsed() > Duration::from_secs(60) || crate::interrupt::stopped() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        let now = written();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
}

/// Bytes of all files below a directory.
pub fn directory_bytes(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => directory_bytes(&entry.path()),
            // A map of LMDB is far longer than what it takes.
            Ok(data) => data.len().min(data.blocks() * 512),
            Err(_) => 0,
        })
        .sum()
}

/// The most that a directory takes, looked at until this is dropped: ten times a second, or less
/// often where that would be half a percent of a processor.
#[derive(Debug)]
pub struct SpaceWatch {
    most: Arc<AtomicU64>,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SpaceWatch {
    /// One that never looks: the most is what it is asked with.
    pub fn none() -> SpaceWatch {
        SpaceWatch {
            most: Arc::default(),
            end: None,
            thread: None,
        }
    }

    /// Begins to look.
    pub fn begin(directory: &Path) -> SpaceWatch {
        let (directory, most) = (directory.to_path_buf(), Arc::new(AtomicU64::new(0)));
        let (end, ended) = std::sync::mpsc::channel();
        let seen = Arc::clone(&most);
        let look = move || {
            let mut pause = EVERY;
            while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let began = Instant::now();
                seen.fetch_max(directory_bytes(&directory), Ordering::Relaxed);
                pause = EVERY.max(began.elapsed() * 200);
            }
        };
        SpaceWatch {
            most,
            end: Some(end),
            thread: Some(std::thread::spawn(look)),
        }
    }

    /// The most bytes since this was asked before, of which `now` is one.
    pub fn most(&self, now: u64) -> u64 {
        self.most.swap(0, Ordering::Relaxed).max(now)
    }
}

impl Drop for SpaceWatch {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

/// How often a [`SpaceWatch`] looks at most.
const EVERY: Duration = Duration::from_millis(100);

/// Bytes of memory of the machine; 0 where it does not say.
pub fn memory_bytes() -> u64 {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    field(&memory, "MemTotal:") * 1024
}

/// One line about the machine: processors, memory, kernel.
pub fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or("");
    let model = model.trim_start_matches([' ', '\t', ':']);
    let cores = processors();
    let gib = memory_bytes() as f64 / 1_073_741_824.0;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let governor = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let governor = governor
        .map(|g| format!(", governor {}", g.trim()))
        .unwrap_or_default();
    format!(
        "{cores} x {model}, {gib:.1} GiB, Linux {}{governor}",
        kernel.trim()
    )
}

/// Processor time of all processes of the machine and of this one's tree, since it was booted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Busy {
    /// Seconds of all processors in which something ran, or another machine of the host did.
    pub machine: f64,
    /// Seconds of this process, of those that it began, and of theirs.
    pub own: f64,
}

impl Busy {
    /// The figures now.
    pub fn now() -> Busy {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let stats = processes
            .filter(|entry| {
                let name = entry.file_name();
                name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
            })
            .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
        Busy {
            machine: Busy::machine(&stat),
            own: Busy::tree(&stats.collect::<Vec<_>>(), std::process::id()),
        }
    }

    /// Busy seconds in a text of `/proc/stat`: user, nice, system, interrupts and stolen time.
    fn machine(stat: &str) -> f64 {
        let fields = stat.lines().next().unwrap_or_default().split_whitespace();
        let ticks = fields.skip(1).map(|field| field.parse().unwrap_or(0.0));
        let busy = ticks.take(8).enumerate();
        let busy = busy.filter(|(at, _)| !matches!(at, 3 | 4));
        busy.map(|(_, ticks)| ticks).sum::<f64>() / 100.0
    }

    /// Seconds of a process and all below it, in texts of `/proc/PID/stat`, with those of children
    /// that ended.
    fn tree(stats: &[String], root: u32) -> f64 {
        let read = |text: &String| {
            let (id, rest) = text.split_once(' ')?;
            let fields: Vec<&str> = rest.rsplit_once(')')?.1.split_whitespace().collect();
            let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
            let ticks = number(11)? + number(12)? + number(13)? + number(14)?;
            Some((id.parse::<u32>().ok()?, number(1)? as u32, ticks / 100.0))
        };
        let all: Vec<(u32, u32, f64)> = stats.iter().filter_map(read).collect();
        let (mut own, mut seconds) = (vec![root], 0.0);
        let mut next = 0;
        while let Some(&process) = own.get(next) {
            own.extend(
                all.iter()
                    .filter(|(_, parent, _)| *parent == process)
                    .map(|p| p.0),
            );
            seconds += all
                .iter()
                .filter(|p| p.0 == process)
                .map(|p| p.2)
                .sum::<f64>();
            next += 1;
        }
        seconds
    }

    /// The part of all processors that others took since `before`, from 0 to 1.
    pub fn others_since(self, before: Busy, elapsed: Duration, processors: usize) -> f64 {
        let others = (self.machine - before.machine) - (self.own - before.own);
        let all = elapsed.as_secs_f64() * processors.max(1) as f64;
        (others / all.max(1e-9)).clamp(0.0, 1.0)
    }
}

/// How many processors this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The load average over the last minute.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|t| t.parse().ok())
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::{Busy, Device, Requests, Resident, ThreadUsage};
    use std::time::{Duration, Instant};

    #[test]
    fn a_device_is_found_by_its_number() {
        let stats = " 254       0 vda 100 7 4096 3 200 9 8192 5 0 1 2\n 254 1 vda1 1 2 3 4 5 6 7 8 9 10 11\n";
        let device = Device::find(stats, 254 << 8).expect("it is there");
        let reads = Requests {
            done: 100,
            merged: 7,
            bytes: 2 << 20,
            millis: 3,
        };
        let writes = Requests {
            done: 200,
            merged: 9,
            bytes: 4 << 20,
            millis: 5,
        };
        assert_eq!(device, Device { reads, writes });
        assert_eq!(device.reads.average_kb(), Some(20.48));
        let line = "device: 100 reads of 20.5 KB (7 merged), 200 writes of 20.5 KB (9 merged)";
        assert_eq!(device.line(), line);
        assert_eq!(device.since(device), Device::default());
        assert_eq!(Device::default().reads.average_kb(), None);
        assert_eq!(device.writes.average_ms(), Some(0.025));
        assert_eq!(
            Device::find(stats, 254 << 8 | 1).map(|d| d.reads.bytes),
            Some(3 * 512)
        );
        assert_eq!(Device::find(stats, 9), None);
    }

    #[test]
    fn resident_bytes_are_told_apart() {
        let smaps = "55d0-55d1 r-xp 00000000 fe:00 123   /usr/bin/esker\nSize: 8 kB\nRss: 4 kB\n\
                     7f00-7f01 rw-p 00000000 00:00 0\nRss:      12 kB\n\
                     7f11000-7f12000 ---p 00000000 00:00 0\nRss: 0 kB\n\
                     7f12000-7f22000 rw-p 00000000 00:00 0\nRss: 8 kB\n\
                     7ffd-7ffe rw-p 00000000 00:00 0     [stack]\nRss: 2 kB\n";
        let expected = Resident {
            files: 4 << 10,
            stacks: 10 << 10,
            anonymous: 12 << 10,
        };
        assert_eq!(Resident::parse(smaps), expected);
        if std::path::Path::new("/proc/self/smaps").exists() {
            assert!(Resident::now().files > 0);
        }
    }

    #[test]
    fn others_are_what_the_tree_of_this_process_did_not_use() {
        let stat = "cpu  1000 200 300 90000 5000 10 20 70 0 0\ncpu0 1 2 3\n";
        assert_eq!(Busy::machine(stat), 16.0);
        let stats = [
            "7 (lab) S 1 0 0 0 0 0 0 0 0 0 100 50 30 20 0 0",
            "8 (a (b) c) S 7 0 0 0 0 0 0 0 0 0 200 0 0 0 0 0",
            "9 (below) S 8 0 0 0 0 0 0 0 0 0 300 0 0 0 0 0",
            "10 (other) S 1 0 0 0 0 0 0 0 0 0 9999 0 0 0 0 0",
        ];
        let own = Busy::tree(&stats.map(String::from), 7);
        assert_eq!(own, 7.0);
        let later = Busy {
            machine: 26.0,
            own: 12.0,
        };
        let before = Busy { machine: 16.0, own };
        let part = later.others_since(before, Duration::from_secs(5), 2);
        assert_eq!(part, 0.5);
        assert_eq!(before.others_since(later, Duration::from_secs(5), 2), 0.0);
        if std::path::Path::new("/proc/stat").exists() {
            let now = Busy::now();
            assert!(now.machine > 0.0 && now.own < now.machine, "{now:?}");
        }
    }

    #[test]
    fn the_kernel_knows_that_this_thread_ran() {
        let before = ThreadUsage::now();
        let end = Instant::now() + Duration::from_millis(20);
        while Instant::now() < end {}
        if std::path::Path::new("/proc/thread-self/schedstat").exists() {
            assert!(ThreadUsage::now().since(before).ran > Duration::from_millis(1));
        }
    }
}
