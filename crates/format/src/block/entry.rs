//! The three varints in front of every entry.

/// A decoded entry header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) shared: u32,
    pub(super) unshared: u32,
    /// 0 in delta-value blocks, which store no length.
    pub(super) value_len: u32,
    /// Where the key bytes start.
    pub(super) key_at: usize,
}

/// Reads a varint32 at `at`; the value and where it ends. `None` when cut or longer than 32 bits.
#[inline]
pub(super) fn varint32(data: &[u8], at: usize) -> Option<(u32, usize)> {
    let first = *data.get(at)?;
    if first < 0x80 {
        return Some((u32::from(first), at + 1));
    }
    varint32_long(data, at)
}

fn varint32_long(data: &[u8], at: usize) -> Option<(u32, usize)> {
    let (v, end) = varint64(data, at)?;
    Some((u32::try_from(v).ok()?, end))
}

/// Reads a varint64 at `at`; the value and where it ends.
pub(super) fn varint64(data: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut v = 0u64;
    for i in 0..10 {
        let b = *data.get(at + i)?;
        if i == 9 && b > 1 {
            return None;
        }
        v |= u64::from(b & 0x7f) << (7 * i);
        if b < 0x80 {
            return Some((v, at + i + 1));
        }
    }
    None
}

/// Decodes `shared, unshared, value_len` at `at` inside `entries` and checks that the key fits.
#[inline]
pub(super) fn header(entries: &[u8], at: usize) -> Option<Header> {
    let h = quick_header(entries, at).or_else(|| header_long(entries, at))?;
    (h.unshared as usize <= entries.len() - h.key_at).then_some(h)
}

/// The header of an entry whose key is short and whose value is below 16 KB, from one load; what
/// it says is not checked. `None` for others, and near the end.
#[inline(always)]
pub(super) fn quick_header(bytes: &[u8], at: usize) -> Option<Header> {
    let word = u32::from_le_bytes(*bytes.get(at..)?.first_chunk::<4>()?);
    if word & 0x8080 != 0 {
        return None;
    }
    let (shared, unshared) = (word & 0x7f, word >> 8 & 0x7f);
    let low = word >> 16 & 0x7f;
    if word & 0x80_0000 == 0 {
        return Some(Header {
            shared,
            unshared,
            value_len: low,
            key_at: at + 3,
        });
    }
    (word >> 31 == 0).then_some(Header {
        shared,
        unshared,
        value_len: low | word >> 24 << 7,
        key_at: at + 4,
    })
}

#[inline(never)]
fn header_long(entries: &[u8], at: usize) -> Option<Header> {
    let (shared, at) = varint32(entries, at)?;
    let (unshared, at) = varint32(entries, at)?;
    let (value_len, key_at) = varint32(entries, at)?;
    Some(Header {
        shared,
        unshared,
        value_len,
        key_at,
    })
}

/// Decodes `shared, unshared` of a delta-value index entry and checks that the key fits.
pub(super) fn header_without_length(entries: &[u8], at: usize) -> Option<Header> {
    let (shared, at) = varint32(entries, at)?;
    let (unshared, key_at) = varint32(entries, at)?;
    (unshared as usize <= entries.len() - key_at).then_some(Header {
        shared,
        unshared,
        value_len: 0,
        key_at,
    })
}

/// Appends a varint.
#[inline]
pub(super) fn put_varint(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

/// Appends a zigzag varint.
pub(super) fn put_varsigned(out: &mut Vec<u8>, v: i64) {
    put_varint(out, ((v << 1) ^ (v >> 63)) as u64);
}

/// Undoes zigzag.
pub(super) fn unzigzag(v: u64) -> i64 {
    (v >> 1) as i64 ^ -((v & 1) as i64)
}
