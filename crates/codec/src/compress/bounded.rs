//! The varint32 size prefix of stored blocks, checked against a limit and against what the bytes
//! after it can hold; and what the codecs share.

use super::Codec;
use esker_status::{Error, Result};

/// Appends the raw size.
pub(super) fn put_size(out: &mut Vec<u8>, mut size: u32) {
    while size >= 0x80 {
        out.push(size as u8 | 0x80);
        size >>= 7;
    }
    out.push(size as u8);
}

/// The most bytes that a codec makes of `len` at once: level 1 of zlib writes nine bits for a byte
/// at worst, and all others store what does not shrink.
pub(super) fn worst_case(len: usize) -> usize {
    len.saturating_add(len / 8).saturating_add(1024)
}

/// The raw size and the bytes after it.
pub(super) fn take_size(stored: &[u8]) -> Result<(usize, &[u8])> {
    let mut size = 0u64;
    for (i, &b) in stored.iter().take(5).enumerate() {
        size |= u64::from(b & 0x7f) << (7 * i);
        if b < 0x80 {
            return match u32::try_from(size) {
                Ok(size) => Ok((size as usize, &stored[i + 1..])),
                Err(_) => break,
            };
        }
    }
    Err(Error::corruption(
        "compressed block has a malformed size prefix",
    ))
}

/// The most that `stored` bytes of a format can stand for, where the format has such a bound: what
/// claims more is refused before anything is allocated. Generous by a little, so that nothing sound
/// comes near.
pub(super) fn check_ratio(codec: Codec, stored: &[u8], size: usize) -> Result<()> {
    const SLACK: usize = 1 << 16;
    let ratio = match codec {
        // A copy of 64 bytes takes at least two.
        Codec::Snappy => 32,
        // A match of 258 bytes takes at least two bits.
        Codec::Zlib => 1040,
        // A length grows by 255 with each byte.
        Codec::Lz4 | Codec::Lz4Hc => 256,
        Codec::Zstd if size > SLACK => {
            return if size <= zstd_bound(stored) {
                Ok(())
            } else {
                Err(too_much(size, stored.len()))
            };
        }
        _ => return Ok(()),
    };
    if size <= stored.len().saturating_mul(ratio).saturating_add(SLACK) {
        return Ok(());
    }
    Err(too_much(size, stored.len()))
}

#[cold]
fn too_much(size: usize, stored: usize) -> Error {
    Error::corruption(format!(
        "compressed block of {stored} bytes claims {size}, which they cannot hold"
    ))
}

/// The most that a zstd frame after the size prefix can decode to: 128 KiB for each of its blocks.
fn zstd_bound(stored: &[u8]) -> usize {
    const BLOCK_MAX: usize = 128 << 10;
    let Ok((_, frame)) = take_size(stored) else {
        return 0;
    };
    let Some(&descriptor) = frame.get(4) else {
        return 0;
    };
    let single = descriptor & 0x20 != 0;
    let window = usize::from(!single);
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let content = match descriptor >> 6 {
        0 => usize::from(single),
        n => 1 << n,
    };
    let mut at = 5 + window + dictionary + content;
    let mut blocks = 0usize;
    while let Some([a, b, c]) = frame.get(at..).and_then(|rest| rest.first_chunk::<3>()) {
        let header = u32::from_le_bytes([*a, *b, *c, 0]);
        let body = match header >> 1 & 3 {
            1 => 1,
            _ => (header >> 3) as usize,
        };
        blocks += 1;
        at += 3 + body;
        if header & 1 != 0 {
            break;
        }
    }
    blocks.saturating_mul(BLOCK_MAX)
}

/// Refuses a raw size above `limit`.
pub(super) fn check_limit(size: usize, limit: usize) -> Result<()> {
    if size <= limit {
        return Ok(());
    }
    Err(Error::corruption(format!(
        "compressed block claims {size} bytes, the limit here is {limit}"
    )))
}

#[cfg(any(
    feature = "bzip2",
    feature = "lz4",
    feature = "snappy",
    feature = "zlib",
    feature = "zstd"
))]
#[cold]
pub(super) fn damaged(codec: Codec, why: &str) -> esker_status::Error {
    esker_status::Error::corruption(format!(
        "cannot decompress a {} block: {why}",
        codec.property_name()
    ))
}

#[cfg(any(feature = "lz4", feature = "zstd"))]
#[cold]
pub(super) fn no_memory() -> Error {
    Error::new(
        esker_status::ErrorKind::Aborted,
        "no memory for a compression context",
    )
}

/// Makes the empty `out` so long. New memory comes zeroed from the system where it is much.
#[cfg(any(feature = "snappy", feature = "zlib"))]
pub(super) fn make_room(out: &mut Vec<u8>, len: usize) {
    if out.capacity() < len {
        *out = vec![0; len];
    } else {
        out.resize(len, 0);
    }
}
