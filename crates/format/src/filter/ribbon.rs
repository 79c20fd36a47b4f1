//! The Standard128 Ribbon filter (Dillinger and Walzer, 2021): the solution of a banded linear
//! system.
//!
//! Each key is an equation over 128 consecutive slots: the parity of its coefficients AND the slots
//! must be its expected result, for each of up to 32 columns. Building solves the system by
//! Gaussian elimination while banding and back-substitution; querying computes a few parities.

use super::METADATA_LEN;

/// Coefficient bits, and slots in a block.
const BITS: u32 = 128;
/// Bytes of a segment: one column of one block.
const SEGMENT: usize = 16;
const COLUMNS_MAX: u32 = 32;
/// Beyond this RocksDB falls back to Bloom.
const KEYS_MAX: usize = 950_000_000;

/// Keys that 2^n slots take with a chance of failure of one in twenty, from n = 8 to 17.
const KEYS_PER_POW2: [f64; 10] = [
    248.851, 499.532, 1001.26, 2003.97, 4005.59, 8000.39, 15966.6, 31828.1, 63447.3, 126506.0,
];
const FIRST_POW2: u32 = 8;
const LAST_POW2: u32 = 17;
const OVERHEAD_PER_DOUBLING: f64 = 0.0038;

/// The seed that is mixed into hashes, from its ordinal.
fn raw_seed(ordinal: u8) -> u64 {
    let t = u64::from(ordinal).wrapping_mul(0xc782_19a2_3eea_dd03);
    (t ^ (t & 0xf0f0_f0f0_f0f0_f0f0) >> 4) & 0xffff_ffff
}

/// A key's equation.
struct Row {
    start: u32,
    coefficients: u128,
    expected: u32,
}

#[inline(always)]
fn row(hash: u64, seed: u64, starts: u32) -> Row {
    let g = (hash ^ seed).wrapping_mul(0x6193_d459_236a_3a0d);
    let start = ((u128::from(g) * u128::from(starts)) >> 64) as u32;
    let a = g.wrapping_mul(0xc28f_8282_2b65_0bed);
    let low = a ^ 0xc367_844a_6e52_731d;
    Row {
        start,
        coefficients: u128::from(a) << 64 | u128::from(low | 1),
        expected: a.swap_bytes() as u32,
    }
}

#[inline(always)]
fn parity(x: u128) -> u32 {
    (x as u64 ^ (x >> 64) as u64).count_ones() & 1
}

/// How segments lie in the data of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    blocks: u32,
    /// Columns of the later blocks.
    upper_columns: u32,
    /// The first block with that many; those before have one less.
    upper_start: u32,
}

impl Layout {
    /// `None` when there are too few blocks.
    pub(super) fn new(blocks: u32, data_len: usize) -> Option<Layout> {
        if blocks < 2 {
            return None;
        }
        let segments = u32::try_from(data_len / SEGMENT).ok()?;
        let upper_columns = segments.div_ceil(blocks);
        if upper_columns > COLUMNS_MAX {
            return Some(Layout {
                blocks,
                upper_columns: COLUMNS_MAX,
                upper_start: 0,
            });
        }
        let upper_start =
            (u64::from(upper_columns) * u64::from(blocks)).checked_sub(u64::from(segments))?;
        Some(Layout {
            blocks,
            upper_columns,
            upper_start: u32::try_from(upper_start).ok()?,
        })
    }

    fn starts(&self) -> u32 {
        self.blocks * BITS - (BITS - 1)
    }

    /// First segment and number of columns of a block.
    #[inline(always)]
    fn block(&self, block: u32) -> (usize, u32) {
        let first = u64::from(block) * u64::from(self.upper_columns)
            - u64::from(block.min(self.upper_start));
        (
            first as usize,
            self.upper_columns - u32::from(block < self.upper_start),
        )
    }

    fn segments(&self) -> usize {
        self.block(self.blocks).0
    }
}

/// The seed with this ordinal, ready for [`matches`].
pub(super) fn seed_of_ordinal(ordinal: u8) -> u32 {
    raw_seed(ordinal) as u32
}

/// Byte offset of the first segment that a query reads.
#[inline]
pub(super) fn first_byte(layout: &Layout, seed: u32, hash: u64) -> usize {
    let r = row(hash, u64::from(seed), layout.starts());
    layout.block(r.start / BITS).0 * SEGMENT
}

/// Returns whether the solution gives `hash` its expected result. Data that is too short matches.
#[inline]
pub(super) fn matches(data: &[u8], layout: &Layout, seed: u32, hash: u64) -> bool {
    let r = row(hash, u64::from(seed), layout.starts());
    let (first, columns) = layout.block(r.start / BITS);
    let shift = r.start % BITS;
    let count = if shift == 0 { columns } else { 2 * columns } as usize;
    let Some(segments) = data.get(first * SEGMENT..(first + count) * SEGMENT) else {
        return true;
    };
    let (left, right) = segments.split_at(columns as usize * SEGMENT);
    let segment =
        |bytes: &[u8], i: usize| match bytes.get(i * SEGMENT..).and_then(|b| b.first_chunk()) {
            Some(b) => u128::from_le_bytes(*b),
            None => 0,
        };
    let low = r.coefficients << shift;
    let high = if shift == 0 {
        0
    } else {
        r.coefficients >> (BITS - shift)
    };
    (0..columns as usize).all(|i| {
        let bits = segment(left, i) & low ^ segment(right, i) & high;
        parity(bits) == r.expected >> i & 1
    })
}

/// Keys that 2^n slots take.
fn keys_of_pow2(log2_slots: u32) -> f64 {
    let index = log2_slots.checked_sub(FIRST_POW2);
    if let Some(known) = index.and_then(|i| KEYS_PER_POW2.get(i as usize)) {
        return *known;
    }
    let last = f64::from(1u32 << LAST_POW2) / KEYS_PER_POW2[KEYS_PER_POW2.len() - 1];
    let factor = last + f64::from(log2_slots - LAST_POW2) * OVERHEAD_PER_DOUBLING;
    (1u64 << log2_slots) as f64 / factor
}

/// Slots for `keys` keys: whole blocks, at least two.
fn slots_for(keys: u32) -> u32 {
    let keys = f64::from(keys);
    let mut log2 = (keys.log2() + 0.5) as u32;
    if log2 < FIRST_POW2 {
        return 2 * BITS;
    }
    if keys < keys_of_pow2(log2) {
        log2 -= 1;
    }
    if log2 < FIRST_POW2 {
        return 2 * BITS;
    }
    let (lower, upper) = (keys_of_pow2(log2), keys_of_pow2(log2 + 1));
    let portion = (keys - lower) / (upper - lower);
    let slots = (1u64 << log2) as f64;
    ((portion * slots + slots + 0.999999999) as u32)
        .next_multiple_of(BITS)
        .max(2 * BITS)
}

/// Bytes of data that give `slots` slots a false positive rate of one in `one_in`.
/// `bias` (0 to 2^32) dithers the rounding, so that many filters together hit the rate.
fn bytes_for_rate(slots: u32, one_in: f64, bias: u32) -> usize {
    if one_in <= 1.0 {
        return SEGMENT;
    }
    if one_in > f64::from(u32::MAX) {
        return slots as usize * 4;
    }
    let lower_columns = (one_in as u32).ilog2();
    let lower_rate = 0.5f64.powi(lower_columns as i32);
    let upper_rate = lower_rate / 2.0;
    let lower_portion = (1.0 / one_in - upper_rate) / (lower_rate - upper_rate);
    let rounding = (f64::from(bias) + 0.5) / 4_294_967_296.0;
    let starts = f64::from(slots - BITS + 1);
    let blocks = slots / BITS;
    let upper_start = (((lower_portion * starts + rounding) / f64::from(BITS)) as u32).min(blocks);
    (blocks as usize * lower_columns as usize + (blocks - upper_start) as usize) * SEGMENT
}

/// Slots and data bytes for `keys` keys; `None` when a Bloom filter of `bloom_len` bytes (metadata
/// not counted) is the better choice. `first_hash` provides the dithering.
fn plan(keys: usize, one_in: f64, first_hash: u64, bloom_len: usize) -> Option<(u32, usize)> {
    if keys == 0 || keys > KEYS_MAX {
        return None;
    }
    let slots = slots_for(u32::try_from(keys).ok()?);
    let len = bytes_for_rate(slots, one_in, (first_hash >> 32) as u32);
    (slots >= 1024 || len <= bloom_len).then_some((slots, len))
}

/// Bytes of data of the filter block; `None` when Bloom is the better choice.
pub(super) fn data_len(
    keys: usize,
    one_in: f64,
    first_hash: u64,
    bloom_len: usize,
) -> Option<usize> {
    plan(keys, one_in, first_hash, bloom_len).map(|(_, len)| len)
}

/// The filter block of `hashes`; `None` when Bloom is the better choice or no seed works.
pub(super) fn build(hashes: &[u64], one_in: f64, bloom_len: usize) -> Option<Vec<u8>> {
    let first = *hashes.first()?;
    let (slots, len) = plan(hashes.len(), one_in, first, bloom_len)?;
    let blocks = slots / BITS;
    let layout = Layout::new(blocks, len).filter(|_| blocks < 1 << 24)?;
    let mut banding = BandMatrix::new(slots);
    // The starting ordinal is the low byte of the first hash: filters differ from each other.
    let ordinal = (0..=255u8)
        .map(|i| (first as u8).wrapping_add(i))
        .find(|&o| banding.solve(hashes, raw_seed(o)))?;
    let mut out = vec![0u8; layout.segments() * SEGMENT + METADATA_LEN];
    banding.substitute_back(&layout, &mut out);
    let meta = layout.segments() * SEGMENT;
    out[meta] = 0xfe;
    out[meta + 1] = ordinal;
    out[meta + 2..].copy_from_slice(&blocks.to_le_bytes()[..3]);
    Some(out)
}

/// The banded matrix: one row per slot, 0 for none.
struct BandMatrix {
    coefficients: Vec<u128>,
    results: Vec<u32>,
}

impl BandMatrix {
    fn new(slots: u32) -> BandMatrix {
        BandMatrix {
            coefficients: vec![0; slots as usize],
            results: vec![0; slots as usize],
        }
    }

    /// Inserts all equations under `seed`; `false` when two contradict each other.
    fn solve(&mut self, hashes: &[u64], seed: u64) -> bool {
        self.coefficients.fill(0);
        self.results.fill(0);
        let starts = self.coefficients.len() as u32 - BITS + 1;
        hashes
            .iter()
            .all(|&hash| self.insert(row(hash, seed, starts)))
    }

    fn insert(&mut self, row: Row) -> bool {
        let (mut at, mut coefficients, mut result) =
            (row.start as usize, row.coefficients, row.expected);
        loop {
            // The lowest coefficient is 1 here, so the slot lies inside the matrix.
            let there = self.coefficients[at];
            if there == 0 {
                self.coefficients[at] = coefficients;
                self.results[at] = result;
                return true;
            }
            coefficients ^= there;
            result ^= self.results[at];
            if coefficients == 0 {
                return result == 0;
            }
            let skip = coefficients.trailing_zeros();
            at += skip as usize;
            coefficients >>= skip;
        }
    }

    /// Solves from the last slot to the first, storing each block's columns.
    fn substitute_back(&self, layout: &Layout, out: &mut [u8]) {
        let mut windows = [0u128; COLUMNS_MAX as usize];
        for block in (0..layout.blocks).rev() {
            let (first, columns) = layout.block(block);
            let windows = &mut windows[..columns as usize];
            let start = (block * BITS) as usize;
            for slot in (start..start + BITS as usize).rev() {
                let (coefficients, result) = (self.coefficients[slot], self.results[slot]);
                for (column, window) in windows.iter_mut().enumerate() {
                    let shifted = *window << 1;
                    let bit = parity(shifted & coefficients) ^ result >> column & 1;
                    *window = shifted | u128::from(bit);
                }
            }
            for (column, window) in windows.iter().enumerate() {
                let at = (first + column) * SEGMENT;
                out[at..at + SEGMENT].copy_from_slice(&window.to_le_bytes());
            }
        }
    }
}
