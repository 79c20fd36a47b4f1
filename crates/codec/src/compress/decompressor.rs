//! [`decompress`]: stored block bytes to raw ones, with one context per thread.

#[cfg(feature = "lz4")]
use super::bounded::damaged;
use super::bounded::{check_limit, check_ratio, take_size};
use super::{Codec, Dictionary};
use esker_status::Result;

/// The raw size that stored bytes claim, not compared with anything yet.
pub fn uncompressed_len(codec: Codec, stored: &[u8]) -> Result<usize> {
    codec.check_supported()?;
    match codec {
        Codec::None => Ok(stored.len()),
        #[cfg(feature = "snappy")]
        Codec::Snappy => super::snappy::claimed(stored),
        _ => take_size(stored).map(|(size, _)| size),
    }
}

/// Replaces `out` by the raw bytes of `stored`.
///
/// `Corruption` when they would be more than `limit` bytes or more than the format can make of so
/// few, which is found out before allocating, or when the bytes do not decode to exactly the size
/// they claim; `NotSupported` for a codec that this build has not. A dictionary must be the one
/// given to the [`super::Compressor`]; codecs without dictionaries ignore it.
pub fn decompress(
    codec: Codec,
    stored: &[u8],
    dict: Option<&Dictionary>,
    limit: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.clear();
    codec.check_supported()?;
    let claimed = uncompressed_len(codec, stored)?;
    check_limit(claimed, limit)?;
    check_ratio(codec, stored, claimed)?;
    if codec == Codec::None {
        out.extend_from_slice(stored);
        return Ok(());
    }
    #[cfg(feature = "snappy")]
    if codec == Codec::Snappy {
        return super::snappy::decompress(stored, out);
    }
    let (size, body) = take_size(stored)?;
    let _ = (size, body, dict);
    match codec {
        #[cfg(feature = "zlib")]
        Codec::Zlib => super::zlib::decompress(body, dict, size, out),
        #[cfg(feature = "bzip2")]
        Codec::Bzip2 => super::bzip2::decompress(body, size, out),
        #[cfg(feature = "zstd")]
        Codec::Zstd => super::zstd::decompress(body, dict, size, out),
        #[cfg(feature = "lz4")]
        Codec::Lz4 | Codec::Lz4Hc => lz4(codec, body, dict, size, out),
        _ => codec.check_supported(),
    }
}

#[cfg(feature = "lz4")]
fn lz4(
    codec: Codec,
    body: &[u8],
    dict: Option<&Dictionary>,
    size: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    if super::ffi::lz4_decompress(body, dict.map_or(&[], Dictionary::as_bytes), size, out) {
        return Ok(());
    }
    Err(damaged(codec, "the data is malformed or of another size"))
}
