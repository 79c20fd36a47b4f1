//! The primitive encodings: fixed-width integers, varints and length-prefixed strings.
//!
//! All integers are little-endian. [`Reader`] walks a slice and checks every length before it
//! believes it; [`put_varint32`] and its siblings append to a `Vec<u8>`. Reading never panics and
//! never allocates. Everything in this crate that parses stored bytes goes through here.
//! Thread-safety: plain values.

use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};

/// The longest encoding of a 32-bit varint.
pub const MAX_VARINT32_LEN: usize = 5;
/// The longest encoding of a 64-bit varint.
pub const MAX_VARINT64_LEN: usize = 10;

/// Appends two bytes.
#[inline]
pub fn put_fixed16(out: &mut Vec<u8>, v: u16) {
    out.extend_from_slice(&v.to_le_bytes());
}

/// Appends four bytes.
#[inline]
pub fn put_fixed32(out: &mut Vec<u8>, v: u32) {
    out.extend_from_slice(&v.to_le_bytes());
}

/// Appends eight bytes.
#[inline]
pub fn put_fixed64(out: &mut Vec<u8>, v: u64) {
    out.extend_from_slice(&v.to_le_bytes());
}

/// Appends a 32-bit varint: one to five bytes.
#[inline]
pub fn put_varint32(out: &mut Vec<u8>, v: u32) {
    if v < 0x80 {
        out.push(v as u8);
    } else {
        put_varint64_slow(out, u64::from(v));
    }
}

/// Appends a 64-bit varint: one to ten bytes. A small value has the same bytes as a 32-bit varint.
#[inline]
pub fn put_varint64(out: &mut Vec<u8>, v: u64) {
    if v < 0x80 {
        out.push(v as u8);
    } else {
        put_varint64_slow(out, v);
    }
}

fn put_varint64_slow(out: &mut Vec<u8>, v: u64) {
    let mut bytes = [0u8; MAX_VARINT64_LEN];
    let n = encode_varint64(&mut bytes, v);
    out.extend_from_slice(&bytes[..n]);
}

/// Writes a varint to the front of `buf` and says how many bytes it took.
#[inline]
pub fn encode_varint64(buf: &mut [u8; MAX_VARINT64_LEN], mut v: u64) -> usize {
    let mut n = 0;
    while v >= 0x80 {
        buf[n] = v as u8 | 0x80;
        v >>= 7;
        n += 1;
    }
    buf[n] = v as u8;
    n + 1
}

/// Appends a signed varint: zigzag (0, -1, 1, -2, ... become 0, 1, 2, 3, ...), then a varint.
#[inline]
pub fn put_varsigned64(out: &mut Vec<u8>, v: i64) {
    put_varint64(out, zigzag(v));
}

/// Appends `varint32 length` and the bytes. Lengths are 32-bit on disk; callers bound them before.
#[inline]
pub fn put_lpstr(out: &mut Vec<u8>, bytes: &[u8]) {
    debug_assert!(
        u32::try_from(bytes.len()).is_ok(),
        "a length-prefixed string is below 4 GiB"
    );
    put_varint32(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

/// Folds the sign into the lowest bit.
#[inline]
pub fn zigzag(v: i64) -> u64 {
    ((v << 1) ^ (v >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline]
pub fn unzigzag(v: u64) -> i64 {
    ((v >> 1) as i64) ^ -((v & 1) as i64)
}

/// Bytes that a varint of this value takes.
#[inline]
pub fn varint_len(v: u64) -> usize {
    let bits = 64 - (v | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Reads four little-endian bytes at `at`; `None` past the end.
#[inline]
pub fn fixed32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let b = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*b))
}

/// Reads eight little-endian bytes at `at`; `None` past the end.
#[inline]
pub fn fixed64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let b = bytes.get(at..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*b))
}

/// Decodes a 32-bit varint at the front of `bytes`: its value and its length.
#[inline(always)]
pub fn decode_varint32(bytes: &[u8]) -> Option<(u32, usize)> {
    match bytes.first() {
        Some(&b) if b < 0x80 => Some((u32::from(b), 1)),
        _ => decode_varint32_slow(bytes),
    }
}

/// Decodes a 64-bit varint at the front of `bytes`: its value and its length.
#[inline(always)]
pub fn decode_varint64(bytes: &[u8]) -> Option<(u64, usize)> {
    match bytes.first() {
        Some(&b) if b < 0x80 => Some((u64::from(b), 1)),
        _ => decode_varint64_slow(bytes),
    }
}

#[inline(never)]
fn decode_varint32_slow(bytes: &[u8]) -> Option<(u32, usize)> {
    let mut v = 0u32;
    for (i, &b) in bytes.iter().take(MAX_VARINT32_LEN).enumerate() {
        // The fifth byte may hold four bits only: more would not fit 32.
        if i == MAX_VARINT32_LEN - 1 && b > 0x0f {
            return None;
        }
        v |= u32::from(b & 0x7f) << (7 * i);
        if b < 0x80 {
            return Some((v, i + 1));
        }
    }
    if seeded(Bug::VarintCutAccepted) {
        return Some((v, bytes.len().min(10)));
    }
    None
}

#[inline(never)]
fn decode_varint64_slow(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut v = 0u64;
    for (i, &b) in bytes.iter().take(MAX_VARINT64_LEN).enumerate() {
        if i == MAX_VARINT64_LEN - 1 && b > 0x01 {
            return None;
        }
        v |= u64::from(b & 0x7f) << (7 * i);
        if b < 0x80 {
            return Some((v, i + 1));
        }
    }
    if seeded(Bug::VarintCutAccepted) {
        return Some((v, bytes.len().min(10)));
    }
    None
}

/// A position in a slice of stored bytes.
///
/// Every method takes what it names from the front or fails with `Corruption`, leaving the position
/// unspecified but valid. Copying a reader is free; the slices it returns live as long as the
/// input.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the front of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader {
            rest: bytes,
            total: bytes.len(),
        }
    }

    /// Returns the bytes that are left.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// How many bytes are left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Returns whether nothing is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many bytes were taken.
    #[inline]
    pub fn position(&self) -> usize {
        self.total - self.rest.len()
    }

    /// Takes one byte.
    #[inline(always)]
    pub fn u8(&mut self) -> Result<u8> {
        match self.rest.split_first() {
            Some((&b, rest)) => {
                self.rest = rest;
                Ok(b)
            }
            None => Err(self.short("a byte")),
        }
    }

    /// Takes a 16-bit integer.
    #[inline(always)]
    pub fn fixed16(&mut self) -> Result<u16> {
        match self.rest.split_first_chunk::<2>() {
            Some((b, rest)) => {
                self.rest = rest;
                Ok(u16::from_le_bytes(*b))
            }
            None => Err(self.short("fixed16")),
        }
    }

    /// Takes a 32-bit integer.
    #[inline(always)]
    pub fn fixed32(&mut self) -> Result<u32> {
        match self.rest.split_first_chunk::<4>() {
            Some((b, rest)) => {
                self.rest = rest;
                Ok(u32::from_le_bytes(*b))
            }
            None => Err(self.short("fixed32")),
        }
    }

    /// Takes a 64-bit integer.
    #[inline(always)]
    pub fn fixed64(&mut self) -> Result<u64> {
        match self.rest.split_first_chunk::<8>() {
            Some((b, rest)) => {
                self.rest = rest;
                Ok(u64::from_le_bytes(*b))
            }
            None => Err(self.short("fixed64")),
        }
    }

    /// Takes a 32-bit varint; one that needs more than 32 bits is malformed.
    #[inline(always)]
    pub fn varint32(&mut self) -> Result<u32> {
        match decode_varint32(self.rest) {
            Some((v, n)) => {
                self.rest = &self.rest[n..];
                Ok(v)
            }
            None => Err(self.short("varint32")),
        }
    }

    /// Takes a 64-bit varint.
    #[inline(always)]
    pub fn varint64(&mut self) -> Result<u64> {
        match decode_varint64(self.rest) {
            Some((v, n)) => {
                self.rest = &self.rest[n..];
                Ok(v)
            }
            None => Err(self.short("varint64")),
        }
    }

    /// Takes a zigzag varint.
    #[inline]
    pub fn varsigned64(&mut self) -> Result<i64> {
        Ok(unzigzag(self.varint64()?))
    }

    /// Takes `n` bytes.
    #[inline(always)]
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8]> {
        match self.rest.split_at_checked(n) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(self.overrun(n)),
        }
    }

    /// Takes a length-prefixed string.
    #[inline(always)]
    pub fn lpstr(&mut self) -> Result<&'a [u8]> {
        let n = self.varint32()?;
        self.bytes(n as usize)
    }

    /// Takes a length-prefixed string that must be UTF-8: a name.
    pub fn lptext(&mut self) -> Result<&'a str> {
        let at = self.position();
        std::str::from_utf8(self.lpstr()?)
            .map_err(|_| Error::corruption(format!("text at byte {at} is not UTF-8")))
    }

    /// Fails unless everything was taken; `what` names the thing that should have ended.
    pub fn finish(&self, what: &str) -> Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Error::corruption(format!(
            "{} bytes are left over after {what}",
            self.rest.len()
        )))
    }

    #[cold]
    #[inline(never)]
    fn short(&self, what: &str) -> Error {
        Error::corruption(format!(
            "truncated or malformed {what} at byte {} of {}",
            self.position(),
            self.total
        ))
    }

    #[cold]
    #[inline(never)]
    fn overrun(&self, n: usize) -> Error {
        Error::corruption(format!(
            "a length of {n} at byte {} runs past the end of {} bytes",
            self.position(),
            self.total
        ))
    }
}

#[cfg(test)]
#[path = "coding_tests.rs"]
mod tests;
