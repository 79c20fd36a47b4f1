//! [`decompress`]: stored block bytes to raw ones, with one context per thread.

use super::bounded::{check_limit, check_ratio, take_size};
use super::{Codec, Dictionary, ffi};
use esker_status::{Error, Result};
use flate2::{Decompress, FlushDecompress, Status};
use std::cell::RefCell;
use zstd_safe::DCtx;

thread_local! {
    static ZSTD: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
    static ZLIB: RefCell<Decompress> = RefCell::new(Decompress::new_with_window_bits(false, 15));
}

/// The raw size that stored bytes claim, not compared with anything yet.
pub fn uncompressed_len(codec: Codec, stored: &[u8]) -> Result<usize> {
    match codec {
        Codec::None => Ok(stored.len()),
        Codec::Snappy => {
            snap::raw::decompress_len(stored).map_err(|e| damaged(codec, &e.to_string()))
        }
        _ => take_size(stored).map(|(size, _)| size),
    }
}

/// Replaces `out` by the raw bytes of `stored`.
///
/// `Corruption` when they would be more than `limit` bytes or more than the format can make of so
/// few, which is found out before allocating, or when the bytes do not decode to exactly the size
/// they claim. A dictionary must be the one given to the [`super::Compressor`]; codecs without
/// dictionaries ignore it.
pub fn decompress(
    codec: Codec,
    stored: &[u8],
    dict: Option<&Dictionary>,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.clear();
    let claimed = uncompressed_len(codec, stored)?;
    check_limit(claimed, limit)?;
    check_ratio(codec, stored, claimed)?;
    match codec {
        Codec::None => out.extend_from_slice(stored),
        Codec::Snappy => snappy(stored, out)?,
        Codec::Xpress => {
            return Err(Error::not_supported(
                "Xpress compression exists on Windows only",
            ));
        }
        _ => {
            let (size, body) = take_size(stored)?;
            match codec {
                Codec::Zlib => zlib(body, dict, size, out)?,
                Codec::Bzip2 => bzip2(body, size, out)?,
                Codec::Zstd => zstd(body, dict, size, out)?,
                _ => lz4(codec, body, dict, size, out)?,
            }
        }
    }
    Ok(())
}

#[cold]
fn damaged(codec: Codec, why: &str) -> Error {
    Error::corruption(format!(
        "cannot decompress a {} block: {why}",
        codec.property_name()
    ))
}

fn lz4(
    codec: Codec,
    body: &[u8],
    dict: Option<&Dictionary>,
    size: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    if ffi::lz4_decompress(body, dict.map_or(&[], Dictionary::as_bytes), size, out) {
        return Ok(());
    }
    Err(damaged(codec, "the data is malformed or of another size"))
}

/// Makes the empty `out` so long. New memory comes zeroed from the system where it is much.
fn make_room(out: &mut Vec<u8>, len: usize) {
    if out.capacity() < len {
        *out = vec![0; len];
    } else {
        out.resize(len, 0);
    }
}

fn snappy(stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let refuse = |e: snap::Error| damaged(Codec::Snappy, &e.to_string());
    make_room(out, snap::raw::decompress_len(stored).map_err(refuse)?);
    snap::raw::Decoder::new()
        .decompress(stored, out)
        .map_err(refuse)?;
    Ok(())
}

fn zlib(body: &[u8], dict: Option<&Dictionary>, size: usize, out: &mut Vec<u8>) -> Result<()> {
    make_room(out, size);
    ZLIB.with_borrow_mut(|state| {
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

fn bzip2(body: &[u8], size: usize, out: &mut Vec<u8>) -> Result<()> {
    // A few bytes can stand for many millions, so the size is only believed as it comes true.
    out.resize(size.min(body.len().saturating_mul(64).max(1 << 20)), 0);
    let mut state = bzip2::Decompress::new(false);
    loop {
        let (read, written) = (state.total_in() as usize, state.total_out() as usize);
        if written == out.len() && written < size {
            out.resize(size.min(written * 4), 0);
        }
        let status = state
            .decompress(&body[read..], &mut out[written..])
            .map_err(|e| damaged(Codec::Bzip2, &e.to_string()))?;
        if status == bzip2::Status::StreamEnd {
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

fn zstd(body: &[u8], dict: Option<&Dictionary>, size: usize, out: &mut Vec<u8>) -> Result<()> {
    out.reserve_exact(size);
    let done = ZSTD.with_borrow_mut(|context| match dict {
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
