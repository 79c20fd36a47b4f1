//! A rate that follows a sine: `a * sin(b * seconds + c) + d`, as `db_bench` models a day.

use std::time::Duration;

use crate::flags::Flags;

/// A rate over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Sine {
    a: f64,
    b: f64,
    c: f64,
    d: f64,
    /// How long a rate holds.
    pub interval: Duration,
}

impl Sine {
    /// The curve of the flags; `interval` names the flag that says how long a rate holds.
    pub fn from_flags(flags: &Flags, interval: &str) -> Sine {
        Sine {
            a: flags.number("sine_a"),
            b: flags.number("sine_b"),
            c: flags.number("sine_c"),
            d: flags.number("sine_d"),
            interval: Duration::from_millis(flags.count(interval).max(1)),
        }
    }

    /// The rate after so long; never less than one.
    pub fn rate(&self, since: Duration) -> f64 {
        (self.a * (self.b * since.as_secs_f64() + self.c).sin() + self.d).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_goes_up_and_down() {
        let sine = Sine {
            a: 1000.0,
            b: std::f64::consts::PI,
            c: 0.0,
            d: 2000.0,
            interval: Duration::from_secs(1),
        };
        let at = |ms| sine.rate(Duration::from_millis(ms)).round();
        assert_eq!((at(0), at(500), at(1500)), (2000.0, 3000.0, 1000.0));
        let deep = Sine { d: 0.0, ..sine };
        assert_eq!(deep.rate(Duration::from_millis(1500)), 1.0);
    }
}
