//! The parameters of `mixgraph`: reads, writes and scans of a social graph (Cao, Dong, Vemuri and
//! Du, FAST 2020).
//!
//! Keys are hot by a power law, alone or within ranges that are hot by a sum of two exponentials.
//! Sizes of values and lengths of scans follow a Pareto distribution. All of it is fitted to
//! traces; the parameters are flags.

use crate::flags::Flags;
use crate::generate::Rng;
use crate::sine::Sine;
use crate::{Failure, Result};

/// A Pareto distribution, by the inverse of its cumulative function.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pareto {
    theta: f64,
    k: f64,
    sigma: f64,
}

impl Pareto {
    fn from_flags(flags: &Flags, of: &str) -> Pareto {
        let number = |part: &str| flags.number(&format!("{of}_{part}"));
        Pareto {
            theta: number("theta"),
            k: number("k"),
            sigma: number("sigma"),
        }
    }

    /// Returns the value for `u` of (0, 1]; never negative.
    pub(super) fn at(&self, u: f64) -> u64 {
        let u = u.max(1e-12);
        let value = if self.k == 0.0 {
            self.theta - self.sigma * u.ln()
        } else {
            self.theta + self.sigma * (u.powf(-self.k) - 1.0) / self.k
        };
        value.ceil().max(0.0) as u64
    }
}

/// Which key, from a random number.
#[derive(Debug, Clone)]
pub(super) enum Keys {
    /// All alike.
    Uniform,
    /// Hot by a power law.
    Power,
    /// By ranges that are hot by a sum of exponentials.
    Ranges(Ranges),
}

/// Ranges of keys, each with its part of the accesses.
#[derive(Debug, Clone)]
pub(super) struct Ranges {
    /// Where the accesses of each range begin, in the order of the ranges.
    starts: Vec<u64>,
    /// All accesses.
    sum: u64,
    /// Keys of a range.
    keys: u64,
}

impl Ranges {
    fn from_flags(flags: &Flags, num: u64) -> Result<Ranges> {
        let number = |part: &str| flags.number(&format!("keyrange_dist_{part}"));
        let (a, b, c, d) = (number("a"), number("b"), number("c"), number("d"));
        let count = flags.count("keyrange_num").max(1);
        let chance = |range: u64| {
            let x = range as f64;
            let p = a * (b * x).exp() + c * (d * x).exp();
            if p < 1e-16 { 0.0 } else { p }
        };
        // The coldest range that is met at all gets about one access; the others more, in
        // proportion.
        let coldest = (1..=count).rev().map(chance).find(|p| *p > 0.0);
        let scale = coldest.map_or(0.0, |p| (1.0 / p).floor() + 1.0);
        let mut parts: Vec<u64> = (1..=count)
            .rev()
            .map(|range| (scale * chance(range)) as u64)
            .collect();
        let sum: u64 = parts.iter().sum();
        let keys = num / count;
        if sum == 0 || keys == 0 {
            return Err(Failure::new(
                "keyrange_dist_a to d meet no range, or keyrange_num is more than num",
            ));
        }
        // Hot ranges do not lie together; the same parameters give the same order.
        let mut rng = Rng::new(sum);
        for i in 0..parts.len() {
            parts.swap(i, rng.below(count) as usize);
        }
        let mut at = 0;
        let starts = parts.iter().map(|part| {
            at += part;
            at - part
        });
        Ok(Ranges {
            starts: starts.collect(),
            sum,
            keys,
        })
    }

    fn range(&self, drawn: u64) -> u64 {
        let drawn = drawn % self.sum;
        self.starts.partition_point(|start| *start <= drawn) as u64 - 1
    }
}

/// The settings of `mixgraph`.
#[derive(Debug, Clone)]
pub struct Mix {
    pub(super) keys: Keys,
    /// The power law of keys.
    pub(super) power: (f64, f64),
    pub(super) values: Pareto,
    pub(super) scans: Pareto,
    /// Of `1..=ratios[2]` numbers those that are reads, then writes, then scans; as sums.
    pub(super) ratios: [u64; 3],
    pub(super) most_value: u64,
    pub(super) most_scan: u64,
    /// Operations of all threads; `None` for `reads` of each.
    pub(super) accesses: Option<u64>,
    pub(super) rate: Option<Sine>,
    pub(super) noise: f64,
}

impl Mix {
    /// Resolves the flags.
    ///
    /// # Errors
    /// Values that make no sense together.
    pub fn from_flags(flags: &Flags, num: u64) -> Result<Mix> {
        let ratio = |part: &str| flags.number(&format!("mix_{part}_ratio")).max(0.0);
        let parts = [ratio("get"), ratio("put"), ratio("seek")];
        let sum: f64 = parts.iter().sum();
        if sum <= 0.0 {
            return Err(Failure::new("the mix_*_ratio are all zero"));
        }
        let mut at = 0;
        let ratios = parts.map(|part| {
            at += (1000.0 * part / sum).ceil() as u64;
            at
        });
        let power = (flags.number("key_dist_a"), flags.number("key_dist_b"));
        let has_ranges = ["a", "b", "c", "d"]
            .iter()
            .any(|part| flags.number(&format!("keyrange_dist_{part}")) != 0.0);
        let keys = match (power.0 == 0.0 || power.1 == 0.0, has_ranges) {
            (true, _) => Keys::Uniform,
            (false, false) => Keys::Power,
            (false, true) => Keys::Ranges(Ranges::from_flags(flags, num)?),
        };
        Ok(Mix {
            keys,
            power,
            values: Pareto::from_flags(flags, "value"),
            scans: Pareto::from_flags(flags, "iter"),
            ratios,
            most_value: flags.count("mix_max_value_size").clamp(1, 1 << 20),
            most_scan: flags.count("mix_max_scan_len").max(1),
            accesses: (flags.int("mix_accesses") >= 0).then(|| flags.count("mix_accesses")),
            rate: flags
                .flag("sine_mix_rate")
                .then(|| Sine::from_flags(flags, "sine_mix_rate_interval_milliseconds")),
            noise: flags.number("sine_mix_rate_noise"),
        })
    }

    /// The number of the key for a drawn number.
    pub(super) fn key(&self, drawn: u64, num: u64) -> u64 {
        let power = |u: f64| (u / self.power.0).powf(1.0 / self.power.1).ceil() as u64;
        // The place of a key in the order of heat is no neighbourhood: a generator spreads it.
        let spread = |seed: u64, below: u64| Rng::new(seed).below(below);
        match &self.keys {
            Keys::Uniform => drawn % num,
            Keys::Power => spread(power(drawn as f64 / num as f64), num),
            Keys::Ranges(ranges) => {
                let u = (drawn % ranges.keys) as f64 / ranges.keys as f64;
                ranges.keys * ranges.range(drawn) + spread(power(u), ranges.keys)
            }
        }
    }

    pub(super) fn value_size(&self, u: f64) -> usize {
        let size = match self.values.at(u) {
            n if n > self.most_value => n % self.most_value,
            n => n,
        };
        size.max(10) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(flags: &[&str]) -> Result<Mix> {
        Mix::from_flags(&Flags::parse(flags).expect("known flags"), 10_000)
    }

    /// The parameters of the published example: all dist and prefix dist of one service.
    const PUBLISHED: &[&str] = &[
        "--keyrange_dist_a=14.18",
        "--keyrange_dist_b=-2.917",
        "--keyrange_dist_c=0.0164",
        "--keyrange_dist_d=-0.08082",
        "--keyrange_num=30",
        "--key_dist_a=0.002312",
        "--key_dist_b=0.3467",
        "--mix_get_ratio=0.83",
        "--mix_put_ratio=0.14",
        "--mix_seek_ratio=0.03",
    ];

    #[test]
    fn keys_are_in_range_and_few_of_them_are_hot() {
        let mix = mix(PUBLISHED).expect("sound parameters");
        let mut counts = std::collections::HashMap::new();
        for drawn in 0..10_000 {
            *counts.entry(mix.key(drawn, 10_000)).or_insert(0u64) += 1;
        }
        assert!(counts.keys().all(|key| *key < 10_000));
        let mut counts: Vec<u64> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let hottest: u64 = counts.iter().take(100).sum();
        assert!(
            hottest > 2_000,
            "100 of 10,000 keys got {hottest} of 10,000"
        );
        assert_eq!(mix.ratios, [830, 970, 1000]);
    }

    #[test]
    fn sizes_follow_the_distribution_and_stay_in_bounds() {
        let mix = mix(&[]).expect("defaults");
        assert_eq!(mix.values.at(1.0), 0);
        assert_eq!(mix.value_size(1.0), 10);
        assert!(mix.values.at(0.5) < mix.values.at(0.1));
        assert!((0..1000).all(|i| mix.value_size(f64::from(i) / 1000.0) <= 1024));
        assert!(matches!(mix.keys, Keys::Uniform));
    }

    #[test]
    fn senseless_parameters_are_refused() {
        assert!(self::mix(&["--mix_get_ratio=0"]).is_err());
        let none = [
            "--key_dist_a=1",
            "--key_dist_b=1",
            "--keyrange_dist_b=1",
            "--keyrange_num=3",
        ];
        assert!(self::mix(&none).is_err(), "every range has chance zero");
    }
}
