//! The memory that an allocation really takes, and counters of memory by owner.
//!
//! An allocator rounds a request up to one of its sizes. A cache that charges the bytes that it
//! asked for holds more than it says: a block of 4.2 KB takes 5 KB of jemalloc. The sizes follow
//! from the request alone, so no call of the allocator is needed; the program says once which one
//! it has ([`declare_allocator`]).

use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// Whose sizes count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Allocator {
    /// The system's: that of glibc.
    #[default]
    System = 0,
    /// Jemalloc from 5.3.1 on: sizes 16 bytes apart, then four for each doubling, then pages.
    Jemalloc = 1,
}

static DECLARED: AtomicU8 = AtomicU8::new(Allocator::System as u8);

/// Says which allocator the program uses. Until then it is the system's.
pub fn declare_allocator(allocator: Allocator) {
    DECLARED.store(allocator as u8, Ordering::Relaxed);
}

/// The bytes that an allocation of `bytes` can use, of the declared allocator.
#[inline]
pub fn usable_size(bytes: usize) -> usize {
    let allocator = if DECLARED.load(Ordering::Relaxed) == Allocator::Jemalloc as u8 {
        Allocator::Jemalloc
    } else {
        Allocator::System
    };
    allocator.usable_size(bytes)
}

/// From here on glibc asks the kernel for each piece.
const GLIBC_MAPPED: usize = 128 << 10;
const PAGE: usize = 4096;
/// Jemalloc gives larger pieces in whole pages.
const JEMALLOC_SMALL: usize = 14 << 10;

impl Allocator {
    /// The bytes that an allocation of `bytes` can use.
    pub fn usable_size(self, bytes: usize) -> usize {
        match self {
            _ if bytes == 0 => 0,
            Allocator::System if bytes < GLIBC_MAPPED => {
                // A word before the piece has its size.
                (bytes.saturating_add(8).next_multiple_of(16)).max(32) - 8
            }
            Allocator::System => bytes.saturating_add(16).div_ceil(PAGE) * PAGE - 16,
            Allocator::Jemalloc if bytes <= 8 => 8,
            Allocator::Jemalloc if bytes > JEMALLOC_SMALL => bytes.div_ceil(PAGE) * PAGE,
            Allocator::Jemalloc => {
                // 16 apart up to 128, then in quarters of the power of two below.
                let below = (bytes - 1).ilog2();
                let step = 1usize << below.saturating_sub(2).max(4);
                bytes.div_ceil(step) * step
            }
        }
    }
}

/// Bytes that one owner has now. Anybody adds and takes away.
#[derive(Debug, Default)]
pub struct Gauge(AtomicUsize);

impl Gauge {
    /// No bytes.
    pub const fn new() -> Self {
        Gauge(AtomicUsize::new(0))
    }

    /// Counts `bytes` more.
    pub fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts `bytes` less; they were added before.
    pub fn take(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The bytes now.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Bytes of a gauge that go with this value.
#[derive(Debug)]
pub struct CountedBytes {
    gauge: &'static Gauge,
    bytes: usize,
}

impl CountedBytes {
    /// Counts `bytes` until this is dropped.
    pub fn new(gauge: &'static Gauge, bytes: usize) -> Self {
        gauge.add(bytes);
        CountedBytes { gauge, bytes }
    }

    /// Counts `bytes` from now on.
    #[inline]
    pub fn set(&mut self, bytes: usize) {
        if bytes != self.bytes {
            self.gauge.add(bytes);
            self.gauge.take(std::mem::replace(&mut self.bytes, bytes));
        }
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        self.gauge.take(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_allocators() {
        let jemalloc = |bytes| Allocator::Jemalloc.usable_size(bytes);
        for (asked, given) in [
            (0, 0),
            (1, 8),
            (9, 16),
            (17, 32),
            (97, 112),
            (113, 128),
            (129, 160),
            (257, 320),
            (4096, 4096),
            (4097, 5120),
            (8200, 10 << 10),
            (14337, 16 << 10),
            (16385, 20 << 10),
            ((1 << 20) + 4097, (1 << 20) + 8192),
        ] {
            assert_eq!(jemalloc(asked), given, "{asked}");
        }
        let system = |bytes| Allocator::System.usable_size(bytes);
        for (asked, given) in [
            (0, 0),
            (1, 24),
            (24, 24),
            (25, 40),
            (4096, 4104),
            (1 << 20, (1 << 20) + 4080),
        ] {
            assert_eq!(system(asked), given, "{asked}");
        }
        for bytes in (1..100_000).step_by(7) {
            assert!(jemalloc(bytes) >= bytes && system(bytes) >= bytes);
            assert_eq!(jemalloc(jemalloc(bytes)), jemalloc(bytes));
        }
    }

    #[test]
    fn a_gauge_has_what_is_counted_now() {
        static GAUGE: Gauge = Gauge::new();
        let mut one = CountedBytes::new(&GAUGE, 10);
        let two = CountedBytes::new(&GAUGE, 5);
        one.set(100);
        assert_eq!(GAUGE.get(), 105);
        drop(two);
        one.set(1);
        assert_eq!(GAUGE.get(), 1);
        drop(one);
        assert_eq!(GAUGE.get(), 0);
    }

    #[test]
    fn the_sizes_of_the_system_are_the_default() {
        assert_eq!(usable_size(25), 40);
    }
}
