//! CRC-32C with RocksDB's mask, and the five block checksums of table files.
//!
//! A block is followed by a type byte and a 32-bit checksum. All kinds cover the stored bytes and
//! the type byte; they differ in how the type byte takes part ([`ChecksumType::compute`]). Files of
//! format version 6 and above add a modifier that depends on the block's place, so that a block
//! found at a wrong offset does not verify ([`ChecksumType::compute_with_context`]). Pure
//! functions.

use std::hash::Hasher;
use twox_hash::{XxHash3_64, XxHash3_128, XxHash32, XxHash64};

/// The factor of the type byte in XXH3 checksums.
const LAST_BYTE_FACTOR: u32 = 0x6b90_83d9;
/// The number that the CRC mask adds.
const MASK_DELTA: u32 = 0xa282_ead8;

/// CRC-32C (Castagnoli) of `data`.
#[inline]
pub fn crc32c(data: &[u8]) -> u32 {
    crc32c::crc32c(data)
}

/// CRC-32C of the bytes that gave `crc` followed by `data`.
#[inline]
pub fn crc32c_extend(crc: u32, data: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, data)
}

/// CRC-32C of two adjoining pieces of which the checksums and the second length are known.
pub fn crc32c_combine(first: u32, second: u32, second_len: usize) -> u32 {
    crc32c::crc32c_combine(first, second, second_len)
}

/// The stored form of a CRC: a CRC over bytes that contain CRCs would be weak without it.
#[inline]
pub fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

/// The CRC inside a masked one.
#[inline]
pub fn unmask(masked: u32) -> u32 {
    masked.wrapping_sub(MASK_DELTA).rotate_left(15)
}

/// The 128-bit XXH3 of `data` under `seed`.
pub fn xxh3_128_seeded(data: &[u8], seed: u64) -> u128 {
    XxHash3_128::oneshot_with_seed(seed, data)
}

/// The 64-bit XXH3 (released version, seed 0) of `data`. Filters use another hash:
/// [`crate::hash::hash64`].
pub fn xxh3_64(data: &[u8]) -> u64 {
    XxHash3_64::oneshot(data)
}

/// The kind of checksum that a table file's blocks carry; the discriminants are those on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ChecksumType {
    /// No checksum: the field is 0 and not verified.
    None = 0,
    /// Masked CRC-32C.
    Crc32c = 1,
    /// XXH32.
    XxHash = 2,
    /// Low half of XXH64.
    XxHash64 = 3,
    /// Low half of XXH3-64 with a separate rule for the type byte.
    #[default]
    Xxh3 = 4,
}

/// Option names, in the order of the discriminants.
const OPTION_NAMES: [&str; 5] = ["kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3"];

impl ChecksumType {
    /// The kind with this number.
    pub fn from_u8(v: u8) -> Option<ChecksumType> {
        Some(match v {
            0 => ChecksumType::None,
            1 => ChecksumType::Crc32c,
            2 => ChecksumType::XxHash,
            3 => ChecksumType::XxHash64,
            4 => ChecksumType::Xxh3,
            _ => return None,
        })
    }

    /// RocksDB's name of the option value, for example `kXXH3`.
    pub fn option_name(self) -> &'static str {
        OPTION_NAMES[self as usize]
    }

    /// The kind with this option name.
    pub fn from_option_name(name: &str) -> Option<ChecksumType> {
        OPTION_NAMES
            .iter()
            .position(|n| *n == name)
            .and_then(|i| ChecksumType::from_u8(i as u8))
    }

    /// The checksum of `block` (as stored, after compression) followed by `type_byte`.
    #[inline]
    pub fn compute(self, block: &[u8], type_byte: u8) -> u32 {
        match self {
            ChecksumType::None => 0,
            ChecksumType::Crc32c => mask(crc32c_extend(crc32c(block), &[type_byte])),
            ChecksumType::XxHash => {
                let mut state = XxHash32::with_seed(0);
                state.write(block);
                state.write(&[type_byte]);
                state.finish_32()
            }
            ChecksumType::XxHash64 => {
                let mut state = XxHash64::with_seed(0);
                state.write(block);
                state.write(&[type_byte]);
                state.finish() as u32
            }
            ChecksumType::Xxh3 => {
                XxHash3_64::oneshot(block) as u32
                    ^ u32::from(type_byte).wrapping_mul(LAST_BYTE_FACTOR)
            }
        }
    }

    /// The checksum of a whole buffer, whose last byte plays the part of the type byte.
    pub fn compute_whole(self, buffer: &[u8]) -> u32 {
        match buffer.split_last() {
            Some((last, rest)) => self.compute(rest, *last),
            None => match self {
                ChecksumType::None => 0,
                ChecksumType::Crc32c => mask(crc32c(buffer)),
                ChecksumType::XxHash => XxHash32::oneshot(0, buffer),
                ChecksumType::XxHash64 => XxHash64::oneshot(0, buffer) as u32,
                ChecksumType::Xxh3 => 0,
            },
        }
    }

    /// [`ChecksumType::compute`] plus [`context_modifier`] for a block at file `offset`.
    /// `base` is the file's base context checksum; 0 for format versions below 6.
    #[inline]
    pub fn compute_with_context(self, block: &[u8], type_byte: u8, base: u32, offset: u64) -> u32 {
        self.compute(block, type_byte)
            .wrapping_add(context_modifier(base, offset))
    }
}

/// Returns the number that a file of format version 6 or above adds to the checksum of the bytes at
/// `offset`. A `base` of 0 means an older file, which adds nothing.
#[inline]
pub fn context_modifier(base: u32, offset: u64) -> u32 {
    if base == 0 {
        return 0;
    }
    base ^ (offset as u32).wrapping_add((offset >> 32) as u32)
}

#[cfg(test)]
mod tests;
