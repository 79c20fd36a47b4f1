//! Hours of little load: RocksDB's `daily_offpeak_time_utc`.
//!
//! In these hours work is taken that would come due before they begin again, so that little of it
//! is left for the hours of load. Plain values; used by the pickers and by who checks options.

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Hours of each day, UTC, with both ends. Hours that end before they begin go past midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DailyHours {
    /// Seconds since midnight.
    begin: u64,
    end: u64,
}

/// Where a moment is between hours of little load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffPeak {
    /// It is in them.
    pub is_now: bool,
    /// Seconds until they begin next; `None` where there are no such hours.
    pub begins_in: Option<u64>,
}

impl DailyHours {
    /// Reads `HH:MM-HH:MM`, as lenient as RocksDB; `None` for text of another form.
    pub fn parse(text: &str) -> Option<Self> {
        let (begin, end) = text.strip_suffix('-').unwrap_or(text).split_once('-')?;
        Some(DailyHours {
            begin: time_of_day(begin)?,
            end: time_of_day(end)?,
        })
    }

    /// Tells whether they begin when they end, which RocksDB refuses.
    pub fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    /// Where the second `now` of the calendar is.
    pub fn at(&self, now: u64) -> OffPeak {
        if self.is_empty() {
            return OffPeak::default();
        }
        let second = now % DAY;
        let minute = second / MINUTE * MINUTE;
        let (has_begun, has_not_ended) = (self.begin <= minute, minute <= self.end);
        let is_now = if self.begin < self.end {
            has_begun && has_not_ended
        } else {
            has_begun || has_not_ended
        };
        let begin = if second < self.begin {
            self.begin
        } else {
            self.begin + DAY
        };
        OffPeak {
            is_now,
            begins_in: Some(begin - second),
        }
    }
}

impl OffPeak {
    /// The seconds after which a file is old that is to be rewritten after `period`: in the hours
    /// as much less as passes until they begin again. A period of less than a day ends between them
    /// in any case, and a file would be rewritten again and again.
    pub fn period(&self, period: u64) -> u64 {
        match self.begins_in {
            Some(begins_in) if self.is_now && period >= DAY => (period - begins_in).max(1),
            _ => period,
        }
    }
}

/// Seconds since midnight.
fn time_of_day(text: &str) -> Option<u64> {
    let (hours, rest) = number(text)?;
    let (minutes, rest) = number(skip_space(rest).strip_prefix(':')?)?;
    let is_time = rest.is_empty() && hours < 24 && minutes < 60;
    is_time.then_some(hours * HOUR + minutes * MINUTE)
}

/// A number, with what is behind it.
fn number(text: &str) -> Option<(u64, &str)> {
    let text = skip_space(text);
    let text = text.strip_prefix('+').unwrap_or(text);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    Some((number.parse().ok()?, rest))
}

fn skip_space(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(text: &str) -> DailyHours {
        DailyHours::parse(text).expect("hours")
    }

    #[test]
    fn text_is_read_as_rocksdb_reads_it() {
        for text in ["04:30-07:30", "4:30-7:30", " 4 : 30-+7:30", "04:30-07:30-"] {
            let read = hours(text);
            assert_eq!((read.begin, read.end), (16_200, 27_000), "{text:?}");
        }
        let wrong = [
            "",
            "-",
            "4",
            "4:30",
            "4:30-",
            "-4:30",
            "4:30-24:00",
            "4:60-7:00",
            "4:30-7:30 ",
            "4:30-7:30-8:30",
            "4:30-7:30--",
            "4.30-7:30",
            "4:-7:30",
            "99999999999999999999:0-1:0",
            "4:30 - 7:30",
        ];
        for text in wrong {
            assert_eq!(DailyHours::parse(text), None, "{text:?}");
        }
        assert!(hours("7:00-7:00").is_empty());
    }

    #[test]
    fn both_ends_belong_to_the_hours() {
        let read = hours("04:30-07:30");
        let midnight = 20_000 * DAY;
        let at = |hour: u64, minute: u64, second: u64| {
            let off_peak = read.at(midnight + hour * HOUR + minute * MINUTE + second);
            (off_peak.is_now, off_peak.begins_in.expect("hours"))
        };
        assert_eq!(at(4, 29, 59), (false, 1));
        assert_eq!(at(4, 30, 0), (true, DAY));
        assert_eq!(at(7, 30, 59), (true, DAY - 3 * HOUR - 59));
        assert_eq!(at(7, 31, 0), (false, DAY - 3 * HOUR - 60));
        let period = |hour: u64, period| read.at(midnight + hour * HOUR).period(period);
        assert_eq!(period(5, 3 * DAY), 2 * DAY + HOUR / 2);
        assert_eq!(period(8, 3 * DAY), 3 * DAY);
        assert_eq!(period(5, DAY), HOUR / 2);
        assert_eq!(period(5, DAY - 1), DAY - 1);
        assert_eq!(period(5, 0), 0);
        assert_eq!(
            read.at(midnight + 9 * HOUR / 2).period(DAY),
            1,
            "0 would be never"
        );
    }

    #[test]
    fn hours_go_past_midnight() {
        let read = hours("23:30-04:00");
        let is_now = |hour: u64, minute: u64| read.at(hour * HOUR + minute * MINUTE).is_now;
        assert!(is_now(23, 30) && is_now(0, 0) && is_now(4, 0));
        assert!(!is_now(23, 29) && !is_now(4, 1));
        assert_eq!(read.at(HOUR).begins_in, Some(22 * HOUR + HOUR / 2));
    }
}
