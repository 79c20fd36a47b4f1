//! Lines about the program and the machine, as `db_bench` prints them: scripts cut dates, versions
//! and builds out of these lines.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// The version of RocksDB whose formats, options and flags these are.
pub const ROCKSDB_VERSION: &str = "11.8.1";

/// The answer to `--version`: three words and more where gflags has three.
pub fn version(program: &str) -> String {
    format!("{program} version {ROCKSDB_VERSION}")
}

/// The answer to `--build_info`, in RocksDB's form.
pub fn build_info(program: &str) -> String {
    let properties = [
        (
            "rocksdb_build_git_sha",
            option_env!("ESKER_GIT_SHA").unwrap_or("0"),
        ),
        ("esker_version", env!("CARGO_PKG_VERSION")),
        ("esker_build_target", std::env::consts::ARCH),
        (
            "esker_build_checks",
            if cfg!(debug_assertions) { "on" } else { "off" },
        ),
    ];
    let mut text = format!("{program} (RocksDB) {ROCKSDB_VERSION}");
    for (name, value) in properties {
        let _ = write!(text, "\n    {name}: {value}");
    }
    text
}

/// The lines about version, time and processors that go to standard error before a run.
pub fn environment() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut out = format!(
        "RocksDB:    version {ROCKSDB_VERSION}\nDate:       {}",
        now()
    );
    let fields = |name: &str| {
        let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let values = lines.filter(|(key, _)| key.trim() == name);
        values.map(|(_, value)| value.trim()).collect::<Vec<_>>()
    };
    let models = fields("model name");
    if let Some(model) = models.last() {
        let _ = write!(out, "\nCPU:        {} * {model}", models.len());
    }
    if let Some(size) = fields("cache size").last() {
        let _ = write!(out, "\nCPUCache:   {size}");
    }
    out
}

fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    ctime(now.map_or(0, |d| d.as_secs()))
}

/// A time as C's `ctime` prints it, in UTC: `Thu Nov 26 15:04:05 2026`.
pub(crate) fn ctime(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    format!(
        "{} {} {day:2} {:02}:{:02}:{:02} {year}",
        DAYS[(days % 7) as usize],
        MONTHS[month],
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

/// Year, month from 0 and day from 1 of a number of days since 1970.
fn date(mut days: u64) -> (u64, usize, u64) {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [
        31,
        28 + u64::from(leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_ctime() {
        assert_eq!(ctime(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(ctime(951_782_400), "Tue Feb 29 00:00:00 2000");
        assert_eq!(ctime(1_795_708_984), "Thu Nov 26 16:03:04 2026");
    }

    #[test]
    fn scripts_find_what_they_cut_out() {
        assert_eq!(version("db_bench").split_whitespace().count(), 3);
        let lines = environment();
        let date = lines.lines().find(|line| line.starts_with("Date:"));
        // benchmark.sh makes a date of the second word to the sixth.
        let words = date.map_or(0, |line| line.split_whitespace().count());
        assert_eq!(words, 6, "{lines}");
        assert!(build_info("db_bench").contains("\n    rocksdb_build_git_sha: "));
    }
}
