//! The varint32 size prefix of stored blocks, checked against a limit.

use esker_status::{Error, Result};

/// Appends the raw size.
pub(super) fn put_size(out: &mut Vec<u8>, mut size: u32) {
    while size >= 0x80 {
        out.push(size as u8 | 0x80);
        size >>= 7;
    }
    out.push(size as u8);
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

/// Refuses a raw size above `limit`.
pub(super) fn check_limit(size: usize, limit: usize) -> Result<()> {
    if size <= limit {
        return Ok(());
    }
    Err(Error::corruption(format!(
        "compressed block claims {size} bytes, the limit here is {limit}"
    )))
}
