//! `mixgraph`: reads, writes and scans of a social graph (Cao, Dong, Vemuri and Du, FAST 2020).
//!
//! Keys are hot by a power law, alone or within ranges that are hot by a sum of two exponentials.
//! Sizes of values and lengths of scans follow a Pareto distribution. All of it is fitted to
//! traces; the parameters are flags.

use std::hint::black_box;
use std::time::Instant;

use super::{Settings, Sine};
use crate::flags::Flags;
use crate::generate::{Pacer, Rng};
use crate::measure::Meter;
use crate::store::{Iter, Session};
use crate::{Failure, Result};

/// A Pareto distribution, by the inverse of its cumulative function.
#[derive(Debug, Clone, Copy, Default)]
struct Pareto {
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

    /// What `u` of (0, 1] stands for; never negative.
    fn at(&self, u: f64) -> u64 {
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
enum Keys {
    /// All alike.
    Uniform,
    /// Hot by a power law.
    Power,
    /// By ranges that are hot by a sum of exponentials.
    Ranges(Ranges),
}

/// Ranges of keys, each with its part of the accesses.
#[derive(Debug, Clone)]
struct Ranges {
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
    keys: Keys,
    /// The power law of keys.
    power: (f64, f64),
    values: Pareto,
    scans: Pareto,
    /// Of `1..=ratios[2]` numbers those that are reads, then writes, then scans; as sums.
    ratios: [u64; 3],
    most_value: u64,
    most_scan: u64,
    /// Operations of all threads; `None` for `reads` of each.
    accesses: Option<u64>,
    rate: Option<Sine>,
    noise: f64,
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
    fn key(&self, drawn: u64, num: u64) -> u64 {
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

    fn value_size(&self, u: f64) -> usize {
        let size = match self.values.at(u) {
            n if n > self.most_value => n % self.most_value,
            n => n,
        };
        size.max(10) as usize
    }
}

#[derive(Default)]
struct Counts {
    gets: u64,
    puts: u64,
    seeks: u64,
    found: u64,
    value_bytes: u64,
    scanned: u64,
}

/// Runs one thread's share.
pub(super) fn run<S: Session>(
    session: &mut S,
    s: &Settings,
    rng: &mut Rng,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let mix = &s.mix;
    let (mut keys, mut values) = (s.keys(), s.value_maker());
    let each = mix.accesses.map(|all| all / s.threads as u64);
    let mut budget = s.budget(each.unwrap_or(s.reads));
    let mut pace = Pace::of(mix, s.threads);
    let mut n = Counts::default();
    while budget.more(1) {
        let drawn = s.pick(rng);
        let u = drawn as f64 / s.num as f64;
        let number = mix.key(drawn, s.num) % s.num;
        session.choose(number);
        let key = keys.key(number);
        let kind = drawn % mix.ratios[2];
        if kind < mix.ratios[0] {
            n.gets += 1;
            if let Some(size) = session.get(key, |value| black_box(value).len())? {
                n.found += 1;
                meter.add_bytes((key.len() + size) as u64);
            }
        } else if kind < mix.ratios[1] {
            n.puts += 1;
            let value = values.value_of(mix.value_size(u));
            n.value_bytes += value.len() as u64;
            session.put(key, value)?;
        } else {
            n.seeks += 1;
            scan(session, key, mix.scans.at(u) % mix.most_scan, &mut n, meter)?;
        }
        meter.finished(1);
        pace.wait(rng, meter);
    }
    let average = |sum: u64, of: u64| sum as f64 / of.max(1) as f64;
    meter.set_message(format!(
        "( Gets:{} Puts:{} Seek:{}, reads {} in {} found, avg size: {:.1} value, {:.1} scan)",
        n.gets,
        n.puts,
        n.seeks,
        n.found,
        n.gets + n.seeks,
        average(n.value_bytes, n.puts),
        average(n.scanned, n.seeks)
    ));
    Ok(())
}

fn scan<S: Session>(
    session: &mut S,
    key: &[u8],
    length: u64,
    n: &mut Counts,
    meter: &mut Meter<'_>,
) -> Result<()> {
    let mut iter = session.iter(None, None)?;
    let mut on = iter.seek(key);
    n.found += u64::from(on && iter.key() == key);
    let mut left = length;
    while on && left > 0 {
        meter.add_bytes((iter.key().len() + black_box(iter.value()).len()) as u64);
        n.scanned += 1;
        left -= 1;
        on = iter.next();
    }
    iter.status()
}

/// The rate of all operations, where it follows a sine with noise.
struct Pace {
    sine: Option<(Sine, f64, f64)>,
    pacer: Option<Pacer>,
    began: Instant,
    looked: Instant,
}

impl Pace {
    fn of(mix: &Mix, threads: usize) -> Pace {
        let now = Instant::now();
        let mut pace = Pace {
            sine: (mix.rate.clone()).map(|sine| (sine, mix.noise, threads as f64)),
            pacer: None,
            began: now,
            looked: now,
        };
        pace.pacer = pace.draw(&mut Rng::new(0));
        pace
    }

    fn draw(&self, rng: &mut Rng) -> Option<Pacer> {
        let (sine, noise, threads) = self.sine.as_ref()?;
        let noisy = 1.0 + noise * (2.0 * rng.unit() - 1.0);
        Pacer::new((sine.rate(self.began.elapsed()) * noisy / threads).max(1.0))
    }

    fn wait(&mut self, rng: &mut Rng, meter: &mut Meter<'_>) {
        let Some((sine, ..)) = &self.sine else { return };
        if self.looked.elapsed() >= sine.interval {
            self.looked = Instant::now();
            self.pacer = self.draw(rng);
        }
        super::pace(&mut self.pacer, 1, meter);
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
