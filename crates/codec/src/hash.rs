//! The two hashes that are part of the file format.
//!
//! [`hash32`] chooses bits in legacy Bloom filters and buckets in data-block hash indexes;
//! [`hash64`] feeds the new Bloom and the Ribbon filters. Both must never change: they are pinned
//! by golden values. `hash64` is XXH3-64 as it was before its release (xxHash 0.7.2) with a special
//! rule for the empty key; it never equals the released XXH3. Pure functions; the short-key paths
//! are inlined.

/// The default secret of XXH3.
const SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
];

const P32_1: u64 = 0x9E37_79B1;
const P32_2: u64 = 0x85EB_CA77;
const P32_3: u64 = 0xC2B2_AE3D;
const P64_1: u64 = 0x9E37_79B1_85EB_CA87;
const P64_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P64_3: u64 = 0x1656_67B1_9E37_79F9;
const P64_4: u64 = 0x85EB_CA77_C2B2_AE63;
const P64_5: u64 = 0x27D4_EB2F_1656_67C5;

const STRIPE: usize = 64;
const BLOCK: usize = 16 * STRIPE;

/// The seed of [`hash32`] in legacy Bloom filters.
pub const LEGACY_BLOOM_SEED: u32 = 0xbc9f_1d34;
/// The seed of [`hash32`] in data-block hash indexes.
pub const DATA_BLOCK_HASH_SEED: u32 = 397;

#[inline(always)]
fn r32(d: &[u8], at: usize) -> u64 {
    u64::from(u32::from_le_bytes(
        d[at..at + 4].try_into().expect("the slice has four bytes"),
    ))
}

#[inline(always)]
fn r64(d: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(d[at..at + 8].try_into().expect("the slice has eight bytes"))
}

/// Secret words at constant offsets fold to constants.
#[inline(always)]
fn s64(at: usize) -> u64 {
    r64(&SECRET, at)
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
fn avalanche(mut h: u64) -> u64 {
    h ^= h >> 37;
    h = h.wrapping_mul(P64_3);
    h ^ h >> 32
}

#[inline(always)]
fn mix16(d: &[u8], at: usize, secret: usize) -> u64 {
    fold(r64(d, at) ^ s64(secret), r64(d, at + 8) ^ s64(secret + 8))
}

/// The 64-bit key hash of the new Bloom and Ribbon filters.
#[inline]
pub fn hash64(d: &[u8]) -> u64 {
    let n = d.len();
    match n {
        9..=16 => {
            let lo = r64(d, 0) ^ s64(0);
            let hi = r64(d, n - 8) ^ s64(8);
            avalanche(
                (n as u64)
                    .wrapping_add(lo)
                    .wrapping_add(hi)
                    .wrapping_add(fold(lo, hi)),
            )
        }
        17..=128 => hash_17_to_128(d),
        4..=8 => {
            let k = (r32(d, 0) | r32(d, n - 4) << 32) ^ s64(0);
            let m = (n as u64).wrapping_add((k ^ k >> 51).wrapping_mul(P32_1));
            avalanche((m ^ m >> 47).wrapping_mul(P64_2))
        }
        1..=3 => {
            let c = u64::from(d[0])
                | u64::from(d[n >> 1]) << 8
                | u64::from(d[n - 1]) << 16
                | (n as u64) << 24;
            avalanche((c ^ r32(&SECRET, 0)).wrapping_mul(P64_1))
        }
        0 => fold(s64(0), P64_2),
        129..=240 => hash_129_to_240(d),
        _ => hash_long(d),
    }
}

#[inline]
fn hash_17_to_128(d: &[u8]) -> u64 {
    let n = d.len();
    let mut a = (n as u64).wrapping_mul(P64_1);
    if n > 32 {
        if n > 64 {
            if n > 96 {
                a = a
                    .wrapping_add(mix16(d, 48, 96))
                    .wrapping_add(mix16(d, n - 64, 112));
            }
            a = a
                .wrapping_add(mix16(d, 32, 64))
                .wrapping_add(mix16(d, n - 48, 80));
        }
        a = a
            .wrapping_add(mix16(d, 16, 32))
            .wrapping_add(mix16(d, n - 32, 48));
    }
    avalanche(
        a.wrapping_add(mix16(d, 0, 0))
            .wrapping_add(mix16(d, n - 16, 16)),
    )
}

#[inline(never)]
fn hash_129_to_240(d: &[u8]) -> u64 {
    let n = d.len();
    let mut a = (n as u64).wrapping_mul(P64_1);
    for i in 0..8 {
        a = a.wrapping_add(mix16(d, 16 * i, 16 * i));
    }
    a = avalanche(a);
    for i in 8..n / 16 {
        a = a.wrapping_add(mix16(d, 16 * i, 16 * (i - 8) + 3));
    }
    avalanche(a.wrapping_add(mix16(d, n - 16, 136 - 17)))
}

#[inline(always)]
fn accumulate(acc: &mut [u64; 8], stripe: &[u8], secret: usize) {
    for (i, lane) in acc.iter_mut().enumerate() {
        let v = r64(stripe, 8 * i);
        let k = v ^ s64(secret + 8 * i);
        *lane = lane
            .wrapping_add(v)
            .wrapping_add((k & 0xffff_ffff).wrapping_mul(k >> 32));
    }
}

#[inline(never)]
fn hash_long(d: &[u8]) -> u64 {
    let mut acc = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1];
    let mut blocks = d.chunks_exact(BLOCK);
    for block in &mut blocks {
        for (j, stripe) in block.chunks_exact(STRIPE).enumerate() {
            accumulate(&mut acc, stripe, 8 * j);
        }
        for (i, lane) in acc.iter_mut().enumerate() {
            *lane = (*lane ^ *lane >> 47 ^ s64(128 + 8 * i)).wrapping_mul(P32_1);
        }
    }
    for (j, stripe) in blocks.remainder().chunks_exact(STRIPE).enumerate() {
        accumulate(&mut acc, stripe, 8 * j);
    }
    if !d.len().is_multiple_of(STRIPE) {
        accumulate(&mut acc, &d[d.len() - STRIPE..], SECRET.len() - STRIPE - 7);
    }
    let mut sum = (d.len() as u64).wrapping_mul(P64_1);
    for j in 0..4 {
        let at = 11 + 16 * j;
        sum = sum.wrapping_add(fold(acc[2 * j] ^ s64(at), acc[2 * j + 1] ^ s64(at + 8)));
    }
    avalanche(sum)
}

/// The 32-bit hash of legacy Bloom filters and data-block hash indexes.
///
/// The one to three bytes after the last full word are sign-extended, as the format demands.
#[inline]
pub fn hash32(data: &[u8], seed: u32) -> u32 {
    const M: u32 = 0xc6a4_a793;
    let mut h = seed ^ (data.len() as u32).wrapping_mul(M);
    let mut words = data.chunks_exact(4);
    for word in &mut words {
        h = h.wrapping_add(r32(word, 0) as u32).wrapping_mul(M);
        h ^= h >> 16;
    }
    let tail = words.remainder();
    if let Some(last) = tail.len().checked_sub(1) {
        for i in (0..=last).rev() {
            h = h.wrapping_add((i32::from(tail[i] as i8) as u32) << (8 * i));
        }
        h = h.wrapping_mul(M);
        h ^= h >> 24;
    }
    h
}

#[cfg(test)]
mod tests;
