//! Blocks of raw deflate.

use super::bounded::{damaged, make_room, worst_case};
use super::{Codec, CompressionOptions, Dictionary};
use esker_status::{Error, Result};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::cell::RefCell;

thread_local! {
    static STATE: RefCell<Decompress> = RefCell::new(Decompress::new_with_window_bits(false, 15));
}

/// A compressor that follows `options`. A level or window that zlib has not, or that readers do not
/// expect, is replaced by the nearest one: both may be meant for the codec of another level.
pub(super) fn state(options: &CompressionOptions) -> Compress {
    let level = match options.level_or(-1) {
        ..0 => Compression::default(),
        level => Compression::new(level.min(9) as u32),
    };
    let window = match options.window_bits {
        bits @ -14..0 => bits.unsigned_abs().max(9) as u8,
        _ => 14,
    };
    Compress::new_with_window_bits(level, false, window)
}

/// Appends `raw` compressed to at most `room` bytes; `false` when it does not fit.
///
/// Each stream is completed: what `zlib-rs` holds back of one that is not survives its reset, and
/// after some of them it panics.
pub(super) fn compress(
    state: &mut Compress,
    dict: Option<&Dictionary>,
    raw: &[u8],
    out: &mut Vec<u8>,
    room: usize,
) -> Result<bool> {
    let refuse = |e| Error::invalid_argument(format!("zlib: {e}"));
    state.reset();
    if let Some(dict) = dict {
        state.set_dictionary(dict.as_bytes()).map_err(refuse)?;
    }
    let at = out.len();
    out.resize(at.saturating_add(worst_case(raw.len())), 0);
    let status = state
        .compress(raw, &mut out[at..], FlushCompress::Finish)
        .map_err(refuse)?;
    if status != Status::StreamEnd {
        return Err(Error::invalid_argument("zlib did not end a stream"));
    }
    let size = state.total_out() as usize;
    out.truncate(at + size);
    Ok(size <= room)
}

/// Replaces the empty `out` by the `size` raw bytes of `body`.
pub(super) fn decompress(
    body: &[u8],
    dict: Option<&Dictionary>,
    size: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    make_room(out, size);
    STATE.with_borrow_mut(|state| {
        state.reset(false);
        if let Some(dict) = dict {
            state
                .set_dictionary(dict.as_bytes())
                .map_err(|e| damaged(Codec::Zlib, &e.to_string()))?;
        }
        let status = state
            .decompress(body, out, FlushDecompress::Finish)
            .map_err(|e| damaged(Codec::Zlib, &e.to_string()))?;
        if status != Status::StreamEnd || state.total_out() != size as u64 {
            return Err(damaged(
                Codec::Zlib,
                "the data is of another size than it claims",
            ));
        }
        Ok(())
    })
}
