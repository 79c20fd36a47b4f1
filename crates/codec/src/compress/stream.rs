//! The zstd frames of a compressed WAL: one frame per logical record, decoded fragment by fragment.
//!
//! The payloads of a record's fragments, joined, are one frame. The writer makes the frame whole
//! and cuts it as it cuts any record; the reader feeds fragments as they come and resets between
//! records. In a build without zstd neither type has a value.

use esker_status::Result;
#[cfg(feature = "zstd")]
use {
    super::bounded::no_memory,
    esker_status::Error,
    zstd_safe::{CCtx, DCtx, InBuffer, OutBuffer, ResetDirective},
};

/// Makes a frame of each record.
pub struct StreamEncoder(
    #[cfg(feature = "zstd")] CCtx<'static>,
    #[cfg(not(feature = "zstd"))] std::convert::Infallible,
);

#[cfg(feature = "zstd")]
impl StreamEncoder {
    /// An encoder at zstd's default level.
    pub fn new() -> Result<StreamEncoder> {
        CCtx::try_create().map(StreamEncoder).ok_or_else(no_memory)
    }

    /// Replaces `out` by the frame of `record`.
    pub fn encode(&mut self, record: &[u8], out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        out.reserve(zstd_safe::compress_bound(record.len()));
        match self.0.compress2(out, record) {
            Ok(_) => Ok(()),
            Err(code) => Err(Error::invalid_argument(format!(
                "zstd: {}",
                zstd_safe::get_error_name(code)
            ))),
        }
    }
}

/// Decodes frames that arrive in fragments.
pub struct StreamDecoder(
    #[cfg(feature = "zstd")] DCtx<'static>,
    #[cfg(not(feature = "zstd"))] std::convert::Infallible,
);

#[cfg(feature = "zstd")]
impl StreamDecoder {
    /// A decoder at the start of a record.
    pub fn new() -> Result<StreamDecoder> {
        DCtx::try_create().map(StreamDecoder).ok_or_else(no_memory)
    }

    /// Forgets a half-decoded record.
    pub fn reset(&mut self) -> Result<()> {
        self.0
            .reset(ResetDirective::SessionOnly)
            .map(drop)
            .map_err(damaged)
    }

    /// Appends what `fragment` decodes to; `true` when the frame is complete.
    ///
    /// `Corruption` for damaged data, for bytes after the end of the frame, and when `out` would
    /// grow beyond `limit` bytes.
    pub fn decode(&mut self, fragment: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<bool> {
        let mut input = InBuffer::around(fragment);
        loop {
            let pos = out.len();
            let room = DCtx::out_size().min(limit.saturating_sub(pos).saturating_add(1));
            out.reserve(room);
            let (consumed, hint) = (input.pos(), {
                let mut output = OutBuffer::around_pos(out, pos);
                self.0
                    .decompress_stream(&mut output, &mut input)
                    .map_err(damaged)?
            });
            if out.len() > limit {
                return Err(Error::corruption(format!(
                    "compressed record is larger than {limit} bytes"
                )));
            }
            if hint == 0 {
                return if input.pos() == fragment.len() {
                    Ok(true)
                } else {
                    Err(Error::corruption(
                        "compressed record has bytes after its end",
                    ))
                };
            }
            let idle = out.len() == pos && input.pos() == consumed;
            if idle || (input.pos() == fragment.len() && out.len() < out.capacity()) {
                return Ok(false);
            }
        }
    }
}

#[cfg(not(feature = "zstd"))]
impl StreamEncoder {
    /// `NotSupported`.
    pub fn new() -> Result<StreamEncoder> {
        Err(super::Codec::Zstd.not_built())
    }

    /// Replaces `out` by the frame of `record`.
    pub fn encode(&mut self, _record: &[u8], _out: &mut Vec<u8>) -> Result<()> {
        match self.0 {}
    }
}

#[cfg(not(feature = "zstd"))]
impl StreamDecoder {
    /// `NotSupported`.
    pub fn new() -> Result<StreamDecoder> {
        Err(super::Codec::Zstd.not_built())
    }

    /// Forgets a half-decoded record.
    pub fn reset(&mut self) -> Result<()> {
        match self.0 {}
    }

    /// Appends what `fragment` decodes to; `true` when the frame is complete.
    pub fn decode(&mut self, _fragment: &[u8], _limit: usize, _out: &mut Vec<u8>) -> Result<bool> {
        match self.0 {}
    }
}

impl std::fmt::Debug for StreamEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamEncoder")
    }
}

impl std::fmt::Debug for StreamDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamDecoder")
    }
}

#[cfg(feature = "zstd")]
#[cold]
fn damaged(code: usize) -> Error {
    Error::corruption(format!(
        "cannot decompress a zstd record: {}",
        zstd_safe::get_error_name(code)
    ))
}
