//! Blocks of zstd.

use super::bounded::{damaged, no_memory};
use super::{Codec, CompressionOptions, Dictionary};
use esker_status::{Error, Result};
use std::cell::RefCell;
use zstd_safe::{CCtx, CParameter, DCtx, zstd_sys};

thread_local! {
    static CONTEXT: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
}

/// A compressor that follows `options`.
pub(super) fn context(
    options: &CompressionOptions,
    dict: Option<&Dictionary>,
) -> Result<CCtx<'static>> {
    let mut context = CCtx::try_create().ok_or_else(no_memory)?;
    let refuse =
        |code| Error::invalid_argument(format!("zstd: {}", zstd_safe::get_error_name(code)));
    context
        .set_parameter(CParameter::CompressionLevel(options.level_or(3)))
        .map_err(refuse)?;
    context
        .set_parameter(CParameter::ChecksumFlag(options.checksum))
        .map_err(refuse)?;
    if let Some(dict) = dict {
        context.load_dictionary(dict.as_bytes()).map_err(refuse)?;
    }
    Ok(context)
}

/// Appends `raw` compressed to at most `room` bytes; `false` when it does not fit.
pub(super) fn compress(
    context: &mut CCtx<'static>,
    raw: &[u8],
    out: &mut Vec<u8>,
    room: usize,
) -> Result<bool> {
    let at = out.len();
    out.resize(at + room, 0);
    match context.compress2(&mut out[at..], raw) {
        Ok(n) => {
            out.truncate(at + n);
            Ok(true)
        }
        Err(code) if is_too_small(code) => Ok(false),
        Err(code) => Err(Error::invalid_argument(format!(
            "zstd: {}",
            zstd_safe::get_error_name(code)
        ))),
    }
}

/// zstd returns its errors as the negated number of the error.
fn is_too_small(code: usize) -> bool {
    code.wrapping_neg() == zstd_sys::ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall as usize
}

/// Replaces the empty `out` by the `size` raw bytes of `body`.
pub(super) fn decompress(
    body: &[u8],
    dict: Option<&Dictionary>,
    size: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.reserve_exact(size);
    let done = CONTEXT.with_borrow_mut(|context| match dict {
        None => Ok(context.decompress(out, body)),
        Some(dict) => dict
            .ddict()
            .map(|ddict| context.decompress_using_ddict(out, body, ddict)),
    })?;
    match done {
        Ok(n) if n == size => Ok(()),
        Ok(_) => Err(damaged(
            Codec::Zstd,
            "the data is of another size than it claims",
        )),
        Err(code) => Err(damaged(Codec::Zstd, zstd_safe::get_error_name(code))),
    }
}
