//! Keys, values, random numbers and pacing: everything a workload feeds an engine with.
//!
//! Keys have `db_bench`'s layout: the number as 8 bytes big-endian, then `'0'` up to the key size.
//! Values are cut, one after the other, from a buffer of at least 1 MiB made of fragments of 100
//! bytes, each compressible to `compression_ratio` of its size. All types here belong to one
//! thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sine::Sine;

/// A fast random number generator (xoshiro256++, Blackman and Vigna 2018), seeded by splitmix64.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// A generator whose whole sequence follows from `seed`.
    pub fn new(seed: u64) -> Rng {
        let mut x = seed;
        let mut next = || {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Rng {
            state: [next(), next(), next(), next()],
        }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number below `bound` (which must not be 0), by multiplication instead of division.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number of the normal distribution with mean 0 and deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let r = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        r * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Formats numbers as keys in a reused buffer.
#[derive(Debug, Clone)]
pub struct KeyFormatter {
    buffer: Vec<u8>,
    prefix_size: usize,
    keys_per_prefix: u64,
    num: u64,
    /// The keys by number, where they are those of the database.
    existing: Option<Arc<Vec<Vec<u8>>>>,
}

impl KeyFormatter {
    /// Keys of `key_size` bytes with no prefix part.
    pub fn new(key_size: usize) -> KeyFormatter {
        KeyFormatter::with_prefix(key_size, 0, 0, 1)
    }

    /// Keys that begin with a prefix of `prefix_size` bytes shared by `keys_per_prefix` of `num`
    /// keys (no prefix when that is 0).
    pub fn with_prefix(
        key_size: usize,
        prefix_size: usize,
        keys_per_prefix: u64,
        num: u64,
    ) -> KeyFormatter {
        KeyFormatter {
            buffer: vec![b'0'; key_size],
            prefix_size: prefix_size.min(key_size),
            keys_per_prefix,
            num,
            existing: None,
        }
    }

    /// Number `v` stands for the `v`-th of these keys from now on.
    pub fn use_existing(mut self, keys: Option<Arc<Vec<Vec<u8>>>>) -> KeyFormatter {
        self.existing = keys;
        self
    }

    /// The key of number `v`; valid until the next call.
    #[inline]
    pub fn key(&mut self, v: u64) -> &[u8] {
        if self.existing.is_some() {
            return self.existing_key(v);
        }
        let mut start = 0;
        if self.keys_per_prefix > 0 {
            start = self.fill_prefix(v);
        }
        let room = &mut self.buffer[start..];
        // The low bytes win when there is no room for all eight, as in db_bench.
        let n = room.len().min(8);
        room[..n].copy_from_slice(&v.to_be_bytes()[8 - n..]);
        &self.buffer
    }

    #[cold]
    fn existing_key(&self, v: u64) -> &[u8] {
        match &self.existing {
            Some(keys) => &keys[v as usize % keys.len()],
            None => &[],
        }
    }

    #[cold]
    fn fill_prefix(&mut self, v: u64) -> usize {
        let prefixes = (self.num / self.keys_per_prefix).max(1);
        let n = self.prefix_size.min(8);
        self.buffer[..n].copy_from_slice(&(v % prefixes).to_be_bytes()[8 - n..]);
        self.prefix_size
    }
}

/// How value sizes are distributed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueSizes {
    /// All alike.
    Fixed(usize),
    /// Uniform between the two, inclusive.
    Uniform(usize, usize),
    /// Normal around the middle of the two, three standard deviations reaching each, clamped.
    Normal(usize, usize),
}

impl ValueSizes {
    /// The size of a value on average.
    pub fn mean(self) -> usize {
        match self {
            ValueSizes::Fixed(n) => n,
            ValueSizes::Uniform(low, high) | ValueSizes::Normal(low, high) => (low + high) / 2,
        }
    }

    fn max(self) -> usize {
        match self {
            ValueSizes::Fixed(n) | ValueSizes::Uniform(_, n) | ValueSizes::Normal(_, n) => n,
        }
    }
}

/// Cuts values from a buffer of known compressibility.
#[derive(Debug, Clone)]
pub struct ValueSource {
    data: Vec<u8>,
    at: usize,
    sizes: ValueSizes,
    /// Of 100 values those that are the same bytes.
    same_percent: u64,
    rng: Rng,
}

/// Least size of the buffer that values are cut from.
pub const VALUE_BUFFER: usize = 1 << 20;
const FRAGMENT: usize = 100;

impl ValueSource {
    /// A generator of values of the given sizes that compress to `compression_ratio`.
    pub fn new(sizes: ValueSizes, compression_ratio: f64) -> ValueSource {
        let mut rng = Rng::new(301);
        let wanted = VALUE_BUFFER.max(sizes.max());
        let raw = ((FRAGMENT as f64 * compression_ratio) as usize).clamp(1, FRAGMENT);
        let mut data = Vec::with_capacity(wanted + FRAGMENT);
        while data.len() < wanted {
            let start = data.len();
            data.extend((0..raw).map(|_| rng.next_u64() as u8));
            while data.len() < start + FRAGMENT {
                let more = raw.min(start + FRAGMENT - data.len());
                data.extend_from_within(start..start + more);
            }
        }
        ValueSource {
            data,
            at: 0,
            sizes,
            same_percent: 0,
            rng,
        }
    }

    /// This many of 100 values are the same bytes from now on.
    pub fn with_same(mut self, percent: u64) -> ValueSource {
        self.same_percent = percent;
        self
    }

    /// The next value.
    #[inline]
    pub fn value(&mut self) -> &[u8] {
        let size = match self.sizes {
            ValueSizes::Fixed(n) => n,
            other => self.draw(other),
        };
        self.value_of(size)
    }

    /// The next value, of `size` bytes.
    #[inline]
    pub fn value_of(&mut self, size: usize) -> &[u8] {
        let size = size.min(self.data.len());
        if self.same_percent > 0 && self.rng.below(100) < self.same_percent {
            return &self.data[..size];
        }
        if self.at + size > self.data.len() {
            self.at = 0;
        }
        self.at += size;
        &self.data[self.at - size..self.at]
    }

    fn draw(&mut self, sizes: ValueSizes) -> usize {
        match sizes {
            ValueSizes::Fixed(n) => n,
            ValueSizes::Uniform(low, high) => {
                low + self.rng.below((high - low) as u64 + 1) as usize
            }
            ValueSizes::Normal(low, high) => {
                let z = self.rng.normal();
                let middle = (low + high) as f64 / 2.0;
                let size = middle + z * (high - low) as f64 / 6.0;
                size.clamp(low as f64, high as f64) as usize
            }
        }
    }
}

/// Visits every number below a bound once, in an order that looks random, without a table.
///
/// A permutation by a four-round Feistel network over the next even number of bits, walked until it
/// falls below the bound (cycle walking).
#[derive(Debug, Clone)]
pub struct Permutation {
    num: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// A permutation of `0..num` chosen by `seed`.
    pub fn new(num: u64, seed: u64) -> Permutation {
        let bits = 64 - num.saturating_sub(1).leading_zeros();
        let mut rng = Rng::new(seed);
        Permutation {
            num,
            half_bits: bits.div_ceil(2).max(1),
            keys: [
                rng.next_u64(),
                rng.next_u64(),
                rng.next_u64(),
                rng.next_u64(),
            ],
        }
    }

    /// Where `i` (below the bound) goes.
    pub fn at(&self, i: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let mut x = i;
        loop {
            let (mut left, mut right) = (x >> self.half_bits, x & mask);
            for key in self.keys {
                let mixed = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (left, right) = (right, left ^ ((mixed >> 32) & mask));
            }
            x = (left << self.half_bits) | right;
            if x < self.num {
                return x;
            }
        }
    }
}

/// When a thread's work is done: after this many operations, or after so long.
#[derive(Debug)]
pub struct Budget {
    ops: u64,
    max_ops: u64,
    until: Option<Instant>,
    check_every: u64,
}

impl Budget {
    /// `duration` of zero counts operations; otherwise only time counts, looked at every
    /// `check_every` operations.
    pub fn new(duration: Duration, max_ops: u64, check_every: u64) -> Budget {
        let until = (!duration.is_zero()).then(|| Instant::now() + duration);
        Budget {
            ops: 0,
            max_ops,
            until,
            check_every: check_every.max(1),
        }
    }

    /// Claims `n` operations; `false` when the work is done.
    #[inline]
    pub fn more(&mut self, n: u64) -> bool {
        let before = self.ops;
        self.ops += n;
        if crate::interrupt::stopped() {
            return false;
        }
        match self.until {
            None => self.ops <= self.max_ops,
            Some(until) => {
                before / self.check_every == self.ops / self.check_every || Instant::now() < until
            }
        }
    }
}

/// Holds a client back: to a rate, or to bursts with rests between them.
#[derive(Debug)]
pub enum Pacer {
    /// Keeps a rate.
    Rate(RatePacer),
    /// Lets everything pass, then nothing, in turns.
    Bursts(BurstPacer),
}

impl Pacer {
    /// A pacer of `units_per_second`, or none for a rate of 0 (no limit).
    pub fn new(units_per_second: f64) -> Option<Pacer> {
        (units_per_second > 0.0).then(|| Pacer::Rate(RatePacer::new(units_per_second, None)))
    }

    /// A pacer whose rate follows a sine; `threads` share it.
    pub fn following(sine: Sine, threads: f64) -> Pacer {
        let rate = sine.rate(Duration::ZERO) / threads;
        Pacer::Rate(RatePacer::new(rate, Some((sine, threads, Instant::now()))))
    }

    /// A pacer that lets everything pass for `burst` and nothing for `rest`, in turns.
    pub fn bursts(burst: Duration, rest: Duration) -> Pacer {
        let start = Instant::now();
        Pacer::Bursts(BurstPacer { burst, rest, start })
    }

    /// How long ago the operation that ends now should have begun, where a rate says so; asked
    /// before it is accounted for.
    pub fn late(&self) -> Option<Duration> {
        match self {
            Pacer::Rate(pacer) => Some(pacer.late()),
            Pacer::Bursts(_) => None,
        }
    }

    /// Accounts for `units`, and sleeps where they came too early. Says whether it slept.
    pub fn spend(&mut self, units: u64) -> bool {
        match self {
            Pacer::Rate(pacer) => pacer.spend(units),
            Pacer::Bursts(pacer) => pacer.rest(),
        }
    }
}

/// Free for a time, then at rest for another, in turns.
#[derive(Debug)]
pub struct BurstPacer {
    burst: Duration,
    rest: Duration,
    start: Instant,
}

impl BurstPacer {
    /// Sleeps to the end of a rest; says whether it did.
    fn rest(&self) -> bool {
        let turn = self.burst + self.rest;
        let turns = self.start.elapsed().div_duration_f64(turn).floor();
        let next = self.start + turn.mul_f64(turns + 1.0);
        let rests = Instant::now() + self.rest >= next;
        if rests {
            sleep_until(next);
        }
        rests
    }
}

/// Keeps a thread at a rate of units (bytes or operations) per second by sleeping.
#[derive(Debug)]
pub struct RatePacer {
    nanos_per_unit: f64,
    start: Instant,
    owed: f64,
    /// By how many nanoseconds the last sleep was too long: the client is late, not the engine.
    overslept: f64,
    /// A rate that changes, the threads that share it, and when it was looked at.
    sine: Option<(Sine, f64, Instant)>,
}

impl RatePacer {
    fn new(units_per_second: f64, sine: Option<(Sine, f64, Instant)>) -> RatePacer {
        RatePacer {
            nanos_per_unit: 1e9 / units_per_second,
            start: Instant::now(),
            owed: 0.0,
            overslept: 0.0,
            sine,
        }
    }

    fn follow(&mut self) {
        if let Some((sine, threads, looked)) = &mut self.sine
            && looked.elapsed() >= sine.interval
        {
            *looked = Instant::now();
            let now = self.start.elapsed();
            self.nanos_per_unit = 1e9 / (sine.rate(now) / *threads);
            self.owed = now.as_nanos() as f64;
        }
    }

    /// How long ago the operation that ends now should have begun; asked before it is accounted
    /// for. Zero where it began too early. What the last sleep took too long is left out: a timer
    /// that wakes the client late says nothing of the engine.
    fn late(&self) -> Duration {
        let late = self.start.elapsed().as_nanos() as f64 - self.owed - self.overslept;
        Duration::from_nanos(late.max(0.0) as u64)
    }

    /// Accounts for `units`; sleeps when ahead of schedule by more than a millisecond.
    /// Says whether it slept.
    fn spend(&mut self, units: u64) -> bool {
        self.follow();
        self.owed += units as f64 * self.nanos_per_unit;
        let ahead = self.owed - self.start.elapsed().as_nanos() as f64;
        if ahead < 1e6 {
            // A writer that fell behind by a second does not catch up in a burst.
            if ahead < -1e9 {
                self.owed -= ahead + 1e9;
            }
            return false;
        }
        let until = Instant::now() + Duration::from_nanos(ahead as u64);
        sleep_until(until);
        self.overslept = until.elapsed().as_nanos() as f64;
        true
    }
}

/// Sleeps; a run that is to stop does not wait for a slow pace.
fn sleep_until(until: Instant) {
    while !crate::interrupt::stopped() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        std::thread::sleep(left.min(Duration::from_millis(500)));
    }
}

#[cfg(test)]
mod tests;
