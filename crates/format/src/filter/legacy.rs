//! The Bloom filter of format versions below 5: a 32-bit hash, one line per key.

use super::METADATA_LEN;

/// Bytes of a line in filters written here.
const LINE: usize = 64;

/// Returns whether all bits of `hash` are set. `data` holds `lines << log2_line` bytes.
#[inline]
pub(super) fn matches(data: &[u8], lines: u32, log2_line: u32, probes: u32, hash: u32) -> bool {
    let start = ((hash % lines) as usize) << log2_line;
    let Some(line) = data.get(start..start + (1 << log2_line)) else {
        return true;
    };
    let delta = hash.rotate_right(17);
    let mut h = hash;
    for _ in 0..probes {
        let bit = h as usize & ((8 << log2_line) - 1);
        if line[bit / 8] >> (bit % 8) & 1 == 0 {
            return false;
        }
        h = h.wrapping_add(delta);
    }
    true
}

/// An odd number of lines for `keys` keys.
fn lines_for(keys: usize, bits_per_key: u32) -> u32 {
    let bits = (keys as u64 * u64::from(bits_per_key)).min(0xffff_0000) as u32;
    bits.div_ceil(8 * LINE as u32) | 1
}

/// Bytes of the filter block.
pub(super) fn block_len(keys: usize, bits_per_key: u32) -> usize {
    lines_for(keys, bits_per_key) as usize * LINE + METADATA_LEN
}

/// The filter block of these 32-bit hashes, which are not empty.
pub(super) fn build(hashes: &[u64], bits_per_key: u32) -> Vec<u8> {
    let lines = lines_for(hashes.len(), bits_per_key);
    let probes = (f64::from(bits_per_key) * 0.69).clamp(1.0, 30.0) as u32;
    let len = lines as usize * LINE;
    let mut out = vec![0u8; len + METADATA_LEN];
    for &hash in hashes {
        let mut h = hash as u32;
        let start = (h % lines) as usize * LINE;
        let delta = h.rotate_right(17);
        for _ in 0..probes {
            let bit = h as usize & (8 * LINE - 1);
            out[start + bit / 8] |= 1 << (bit % 8);
            h = h.wrapping_add(delta);
        }
    }
    out[len] = probes as u8;
    out[len + 1..].copy_from_slice(&lines.to_le_bytes());
    out
}
