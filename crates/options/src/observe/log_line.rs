//! The parts that every line of the LOG has.

use crate::enums::InfoLogLevel;

/// Returns the label before a line of `level`.
pub(super) fn label(level: InfoLogLevel) -> &'static str {
    match level {
        InfoLogLevel::Info | InfoLogLevel::Header => "",
        InfoLogLevel::Debug => "[DEBUG] ",
        InfoLogLevel::Warn => "[WARN] ",
        InfoLogLevel::Error => "[ERROR] ",
        InfoLogLevel::Fatal => "[FATAL] ",
    }
}

/// `2026/11/21-02:00:00.000000`, in UTC.
pub fn timestamp(unix_us: u64) -> String {
    let seconds = unix_us / 1_000_000;
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01: years then begin after a leap day.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}/{month:02}/{day:02}-{:02}:{:02}:{:02}.{:06}",
        of_day / 3_600,
        of_day / 60 % 60,
        of_day % 60,
        unix_us % 1_000_000
    )
}
