//! The cache-local Bloom filter: all probes of a key fall into one 64-byte line.

/// Bytes of a line.
pub(super) const LINE: usize = 64;
/// The multiplier between probes: 2^32 over the golden ratio.
const GOLDEN: u32 = 0x9e37_79b9;
/// The largest length of data: 32 bits, whole lines.
const LEN_MAX: u64 = 0xffff_ffc0;

/// Where the line of `hash` starts in `len` bytes of data. Below `len` when `len` is a positive
/// multiple of [`LINE`] that fits 32 bits.
#[inline(always)]
pub(super) fn line_offset(hash: u64, len: u32) -> usize {
    let lines = u64::from(len / LINE as u32);
    (((hash & 0xffff_ffff) * lines) >> 32) as usize * LINE
}

/// `GOLDEN` to the power of its index: each probe is one multiplication, none waits for another.
const POWERS: [u32; 31] = {
    let mut powers = [1u32; 31];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = powers[i - 1].wrapping_mul(GOLDEN);
        i += 1;
    }
    powers
};

/// Returns whether all bits of `hash` are set in its line. All probes are made: the line is one
/// cache line, and a branch per probe would cost more in mispredictions than it saves in work.
#[inline(always)]
pub(super) fn line_matches(line: &[u8; LINE], hash: u64, probes: u32) -> bool {
    let h = (hash >> 32) as u32;
    let mut all = 1u8;
    for power in POWERS.iter().take(probes as usize) {
        let p = h.wrapping_mul(*power);
        all &= line[(p >> 26) as usize] >> (p >> 23 & 7);
    }
    all & 1 == 1
}

#[inline(always)]
fn set_bits(line: &mut [u8], hash: u64, probes: u32) {
    let mut h = (hash >> 32) as u32;
    for _ in 0..probes {
        line[(h >> 26) as usize] |= 1 << (h >> 23 & 7);
        h = h.wrapping_mul(GOLDEN);
    }
}

/// The number of probes that RocksDB chooses for this many thousandths of a bit per key.
pub(super) fn probes_for(millibits_per_key: u32) -> u32 {
    const UP_TO: [u32; 12] = [
        2080, 3580, 5100, 6640, 8300, 10070, 11720, 14001, 16050, 18300, 22001, 25501,
    ];
    match UP_TO.iter().position(|limit| millibits_per_key <= *limit) {
        Some(i) => i as u32 + 1,
        None if millibits_per_key > 50_000 => 24,
        None => (millibits_per_key - 1) / 2000 - 1,
    }
}

/// Bytes of data for `keys` keys, whole lines.
pub(super) fn data_len(keys: usize, millibits_per_key: u32) -> usize {
    let bits = keys as u128 * u128::from(millibits_per_key);
    let bytes = bits.div_ceil(8000).min(u128::from(LEN_MAX)) as usize;
    bytes.next_multiple_of(LINE)
}

/// The expected false positive rate of a filter with all probes in one line of 512 bits.
pub(super) fn false_positive_rate(bits_per_key: f64, probes: u32) -> f64 {
    if bits_per_key <= 0.0 {
        return 1.0;
    }
    let standard = |bits: f64| (1.0 - (-f64::from(probes) / bits).exp()).powi(probes as i32);
    let keys_per_line = 512.0 / bits_per_key;
    let deviation = keys_per_line.sqrt();
    let crowded = standard(512.0 / (keys_per_line + deviation));
    let uncrowded = standard(512.0 / (keys_per_line - deviation));
    (crowded + uncrowded) / 2.0
}

/// The filter block of `hashes`, which are not empty.
pub(super) fn build(hashes: &[u64], millibits_per_key: u32) -> Vec<u8> {
    let len = data_len(hashes.len(), millibits_per_key);
    let probes = probes_for(millibits_per_key);
    let mut out = vec![0u8; len + super::METADATA_LEN];
    let len32 = len as u32;
    const AHEAD: usize = 8;
    for (i, &hash) in hashes.iter().enumerate() {
        if let Some(&coming) = hashes.get(i + AHEAD) {
            esker_codec::prefetch(&out, line_offset(coming, len32));
        }
        let at = line_offset(hash, len32);
        set_bits(&mut out[at..at + LINE], hash, probes);
    }
    out[len] = 0xff;
    out[len + 2] = probes as u8;
    out
}
