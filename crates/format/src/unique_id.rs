//! The identity of a table file, as the MANIFEST stores it and checks it at open.
//!
//! It follows from three properties of the file: the database's id, the session that wrote it and
//! its original number. Copies of a file keep their identity. Pure functions.

use esker_codec::checksum::xxh3_128_seeded;
use std::fmt;

/// The 128-bit internal unique id: the two fixed64 of MANIFEST field 12, first word first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UniqueId(pub [u64; 2]);

impl UniqueId {
    /// No identity: never checked.
    pub const NONE: UniqueId = UniqueId([0, 0]);

    /// Returns whether this says nothing.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The id of the file with these properties; `None` when one is missing or malformed.
    pub fn from_identity(db_id: &str, session_id: &str, file_number: u64) -> Option<UniqueId> {
        if db_id.is_empty() || file_number == 0 {
            return None;
        }
        decode_session_id(session_id).map(|session| Self::combine(db_id, session, file_number))
    }

    /// Like [`UniqueId::from_identity`], but hashes a missing or malformed session id instead of
    /// giving up.
    pub fn from_identity_forced(db_id: &str, session_id: &str, file_number: u64) -> UniqueId {
        let session = decode_session_id(session_id).unwrap_or_else(|| {
            let hash = xxh3_128_seeded(session_id.as_bytes(), 0);
            let (upper, lower) = ((hash >> 64) as u64, hash as u64);
            (upper, if lower == 0 { upper | 1 } else { lower })
        });
        Self::combine(db_id, session, file_number)
    }

    fn combine(db_id: &str, (upper, lower): (u64, u64), file_number: u64) -> UniqueId {
        let hash = xxh3_128_seeded(db_id.as_bytes(), upper);
        UniqueId([lower, (hash >> 64) as u64 ^ file_number])
    }

    /// The 16 bytes of MANIFEST field 12.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut out = [0; 16];
        out[..8].copy_from_slice(&self.0[0].to_le_bytes());
        out[8..].copy_from_slice(&self.0[1].to_le_bytes());
        out
    }

    /// The id in these 16 bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> UniqueId {
        let all = u128::from_le_bytes(bytes);
        UniqueId([all as u64, (all >> 64) as u64])
    }
}

impl fmt::Display for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{},{}}}", self.0[0], self.0[1])
    }
}

/// The upper and lower half of a session id of 13 to 24 base-36 digits; `None` when it is not one.
pub fn decode_session_id(session_id: &str) -> Option<(u64, u64)> {
    let bytes = session_id.as_bytes();
    if !(13..=24).contains(&bytes.len()) {
        return None;
    }
    let (a, b) = bytes.split_at(bytes.len() - 12);
    let (a, b) = (base36(a)?, base36(b)?);
    Some((a >> 2, b & u64::MAX >> 2 | a << 62))
}

/// The 20 characters of the session id with these halves (`upper` below 2^40), the inverse of
/// [`decode_session_id`] for ids of 20 characters.
pub fn encode_session_id(upper: u64, lower: u64) -> String {
    let (mut a, mut b) = (upper << 2 | lower >> 62, lower & u64::MAX >> 2);
    let mut out = [b'0'; 20];
    for digit in out[8..].iter_mut().rev() {
        *digit = DIGITS[(b % 36) as usize];
        b /= 36;
    }
    for digit in out[..8].iter_mut().rev() {
        *digit = DIGITS[(a % 36) as usize];
        a /= 36;
    }
    out.iter().map(|&d| char::from(d)).collect()
}

const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

fn base36(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |n, d| {
        let value = match d {
            b'0'..=b'9' => d - b'0',
            b'A'..=b'Z' => d - b'A' + 10,
            b'a'..=b'z' => d - b'a' + 10,
            _ => return None,
        };
        Some(n.wrapping_mul(36).wrapping_add(u64::from(value)))
    })
}

#[cfg(test)]
mod tests;
