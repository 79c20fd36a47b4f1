//! The loop of `mixgraph`.

use std::hint::black_box;
use std::time::Instant;

use super::Settings;
use super::mix::Mix;
use crate::Result;
use crate::generate::{Pacer, Rng};
use crate::measure::Meter;
use crate::sine::Sine;
use crate::store::{Iter, Session};

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
