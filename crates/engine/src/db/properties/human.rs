//! Numbers as RocksDB's texts show them.

/// `12`, `34K`, `5M`, `6G`.
pub(super) fn count(n: u64) -> String {
    match n {
        0..10_000 => n.to_string(),
        10_000..10_000_000 => format!("{}K", n / 1_000),
        10_000_000..10_000_000_000 => format!("{}M", n / 1_000_000),
        _ => format!("{}G", n / 1_000_000_000),
    }
}

/// `1.50 MB`, never below kilobytes.
pub(super) fn bytes(n: u64) -> String {
    let mut size = n as f64 / 1024.0;
    let mut unit = 0;
    while unit < 3 && size >= 1024.0 {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.2} {}", ["KB", "MB", "GB", "TB"][unit])
}

/// `00:01:02.345 H:M:S`.
pub(super) fn hours(us: u64) -> String {
    let seconds = us / 1_000_000;
    format!(
        "{:02}:{:02}:{:05.3} H:M:S",
        seconds / 3_600,
        seconds / 60 % 60,
        (us % 60_000_000) as f64 / 1e6
    )
}

/// Gigabytes.
pub(super) fn gb(n: u64) -> f64 {
    n as f64 / 1_073_741_824.0
}

/// Megabytes.
pub(super) fn mb(n: u64) -> f64 {
    n as f64 / 1_048_576.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_in_rocksdb() {
        assert_eq!(count(9_999), "9999");
        assert_eq!(count(10_000), "10K");
        assert_eq!(count(9_999_999), "9999K");
        assert_eq!(count(10_000_000), "10M");
        assert_eq!(count(12_345_678_901), "12G");
        assert_eq!(bytes(0), "0.00 KB");
        assert_eq!(bytes(1_572_864), "1.50 MB");
        assert_eq!(bytes(u64::MAX), "16777216.00 TB");
        assert_eq!(hours(0), "00:00:0.000 H:M:S");
        assert_eq!(hours(3_723_004_000), "01:02:3.004 H:M:S");
    }
}
