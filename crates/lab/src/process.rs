//! Figures of this process and this machine, from `/proc`.
//!
//! Everything is best effort: a figure that the system does not give is 0 or absent.

use std::fs;
use std::path::Path;

/// Cumulative figures of the process; subtract two for a step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Seconds of processor time in user mode.
    pub user_seconds: f64,
    /// Seconds of processor time in the kernel.
    pub system_seconds: f64,
    /// Bytes that the process caused to be written to storage.
    pub device_write_bytes: u64,
    /// Bytes that the process caused to be read from storage.
    pub device_read_bytes: u64,
    /// Resident bytes now.
    pub rss_bytes: u64,
}

fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

impl Usage {
    /// The figures now.
    pub fn now() -> Usage {
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
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
        let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Usage {
            user_seconds: ticks(11),
            system_seconds: ticks(12),
            device_write_bytes: field(&io, "write_bytes:"),
            device_read_bytes: field(&io, "read_bytes:"),
            rss_bytes: field(&status, "VmRSS:") * 1024,
        }
    }

    /// What was used since `before`; the resident size is that of now.
    pub fn since(self, before: Usage) -> Usage {
        Usage {
            user_seconds: self.user_seconds - before.user_seconds,
            system_seconds: self.system_seconds - before.system_seconds,
            device_write_bytes: self
                .device_write_bytes
                .saturating_sub(before.device_write_bytes),
            device_read_bytes: self
                .device_read_bytes
                .saturating_sub(before.device_read_bytes),
            rss_bytes: self.rss_bytes,
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
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}

/// One line about the machine: processors, memory, kernel.
pub fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or("");
    let model = model.trim_start_matches([' ', '\t', ':']);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let gib = field(&memory, "MemTotal:") as f64 / 1_048_576.0;
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

/// The load average over the last minute.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|t| t.parse().ok())
        .unwrap_or(0.0)
}
