//! Blocks of bzip2.

use super::Codec;
use super::bounded::damaged;
use ::bzip2::{Action, Compress, Compression, Decompress, Status};
use esker_status::{Error, Result};

/// Appends `raw` compressed to at most `room` bytes; `false` when it does not fit.
pub(super) fn compress(raw: &[u8], out: &mut Vec<u8>, room: usize) -> Result<bool> {
    // One hundred kilobytes of block and a work factor of 30, as RocksDB has it.
    let mut state = Compress::new(Compression::new(1), 30);
    let at = out.len();
    out.resize(at + room, 0);
    loop {
        let (read, written) = (state.total_in() as usize, state.total_out() as usize);
        let status = state
            .compress(&raw[read..], &mut out[at + written..], Action::Finish)
            .map_err(|e| Error::invalid_argument(format!("bzip2: {e}")))?;
        if status == Status::StreamEnd {
            out.truncate(at + state.total_out() as usize);
            return Ok(true);
        }
        if state.total_out() as usize == room || state.total_out() as usize == written {
            return Ok(false);
        }
    }
}

/// Replaces the empty `out` by the `size` raw bytes of `body`.
pub(super) fn decompress(body: &[u8], size: usize, out: &mut Vec<u8>) -> Result<()> {
    // A few bytes can stand for many millions, so the size is only believed as it comes true.
    out.resize(size.min(body.len().saturating_mul(64).max(1 << 20)), 0);
    let mut state = Decompress::new(false);
    loop {
        let (read, written) = (state.total_in() as usize, state.total_out() as usize);
        if written == out.len() && written < size {
            out.resize(size.min(written * 4), 0);
        }
        let status = state
            .decompress(&body[read..], &mut out[written..])
            .map_err(|e| damaged(Codec::Bzip2, &e.to_string()))?;
        if status == Status::StreamEnd {
            break;
        }
        if (state.total_in() as usize, state.total_out() as usize) == (read, written) {
            return Err(damaged(
                Codec::Bzip2,
                "the data ends early or is larger than it claims",
            ));
        }
    }
    if state.total_out() != size as u64 {
        return Err(damaged(Codec::Bzip2, "the data is smaller than it claims"));
    }
    Ok(())
}
