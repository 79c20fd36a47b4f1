//! Blocks of Snappy.

use super::Codec;
use super::bounded::{damaged, make_room};
use esker_status::{Error, Result};

/// The raw size that stored bytes claim.
pub(super) fn claimed(stored: &[u8]) -> Result<usize> {
    snap::raw::decompress_len(stored).map_err(|e| damaged(Codec::Snappy, &e.to_string()))
}

/// Replaces the empty `out` by `raw` compressed; `false` when that is more than `room` bytes.
pub(super) fn compress(
    encoder: &mut snap::raw::Encoder,
    raw: &[u8],
    out: &mut Vec<u8>,
    room: usize,
) -> Result<bool> {
    out.resize(snap::raw::max_compress_len(raw.len()), 0);
    let n = encoder
        .compress(raw, out)
        .map_err(|e| Error::invalid_argument(format!("snappy: {e}")))?;
    out.truncate(n);
    Ok(n <= room)
}

/// Replaces the empty `out` by the raw bytes of `stored`.
pub(super) fn decompress(stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let refuse = |e: snap::Error| damaged(Codec::Snappy, &e.to_string());
    make_room(out, snap::raw::decompress_len(stored).map_err(refuse)?);
    snap::raw::Decoder::new()
        .decompress(stored, out)
        .map_err(refuse)?;
    Ok(())
}
