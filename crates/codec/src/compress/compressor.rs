//! [`Compressor`]: one codec, one set of options, one dictionary, and the state they reuse.

use super::bounded::put_size;
use super::ffi::{self, Lz4Stream};
use super::{Codec, CompressionOptions, Dictionary};
use esker_status::{Error, ErrorKind, Result};
use flate2::{Compress, Compression, FlushCompress, Status};
use zstd_safe::{CCtx, CParameter, zstd_sys};

/// Compresses blocks. Used by one thread at a time; allocates only to grow the output.
pub struct Compressor {
    codec: Codec,
    options: CompressionOptions,
    engine: Engine,
}

enum Engine {
    None,
    Snappy(Box<snap::raw::Encoder>),
    Zlib {
        state: Box<Compress>,
        dict: Option<Dictionary>,
    },
    Bzip2,
    Lz4Plain {
        acceleration: i32,
    },
    Lz4(Lz4Stream),
    Zstd(CCtx<'static>),
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Compressor({:?}, level {})",
            self.codec, self.options.level
        )
    }
}

impl Compressor {
    /// A compressor for `codec`. A dictionary is ignored by codecs that have none.
    ///
    /// `InvalidArgument` for options that the codec cannot follow.
    pub fn new(
        codec: Codec,
        options: CompressionOptions,
        dict: Option<&Dictionary>,
    ) -> Result<Compressor> {
        let engine = match codec {
            Codec::None => Engine::None,
            Codec::Snappy => Engine::Snappy(Box::new(snap::raw::Encoder::new())),
            Codec::Zlib => Engine::Zlib {
                state: Box::new(zlib_state(&options)?),
                dict: dict.cloned(),
            },
            Codec::Bzip2 => Engine::Bzip2,
            Codec::Lz4 => {
                let acceleration = if options.level < 0 {
                    options.level.saturating_neg()
                } else {
                    1
                };
                match dict {
                    None => Engine::Lz4Plain { acceleration },
                    Some(_) => {
                        Engine::Lz4(Lz4Stream::fast(acceleration, dict).ok_or_else(no_memory)?)
                    }
                }
            }
            Codec::Lz4Hc => {
                Engine::Lz4(Lz4Stream::high(options.level_or(0), dict).ok_or_else(no_memory)?)
            }
            Codec::Zstd => Engine::Zstd(zstd_context(&options, dict)?),
            Codec::Xpress => {
                return Err(Error::not_supported(
                    "Xpress compression exists on Windows only",
                ));
            }
        };
        Ok(Compressor {
            codec,
            options,
            engine,
        })
    }

    /// The codec whose number goes into the block's trailer when [`Compressor::compress`] says
    /// `true`.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// The options it was made with.
    pub fn options(&self) -> &CompressionOptions {
        &self.options
    }

    /// Bytes of memory that it holds, as far as the codec says.
    pub fn memory(&self) -> usize {
        match &self.engine {
            Engine::Snappy(encoder) => size_of_val(&**encoder),
            Engine::Zlib { state, .. } => size_of_val(&**state),
            Engine::Zstd(context) => context.sizeof(),
            _ => 0,
        }
    }

    /// Replaces `out` by the stored form of `raw`.
    ///
    /// `false` when it would be larger than [`CompressionOptions::max_kept`]: store `raw` itself,
    /// as
    /// [`Codec::None`]; `out` is then of no use.
    pub fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let room = self.options.max_kept(raw.len());
        self.compress_within(raw, out, room)
    }

    /// Replaces `out` by the stored form of `raw`, however large it is (blob values).
    pub fn compress_always(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let room = raw
            .len()
            .saturating_add(raw.len() / 64)
            .saturating_add(1024);
        if self.compress_within(raw, out, room)? {
            Ok(())
        } else {
            Err(Error::invalid_argument(format!(
                "cannot compress {} bytes at once",
                raw.len()
            )))
        }
    }

    fn compress_within(&mut self, raw: &[u8], out: &mut Vec<u8>, room: usize) -> Result<bool> {
        out.clear();
        let Ok(size) = u32::try_from(raw.len()) else {
            return Ok(false);
        };
        if self.codec.has_size_prefix() {
            put_size(out, size);
        }
        let Some(room) = room.checked_sub(out.len()).filter(|r| *r > 0) else {
            return Ok(false);
        };
        match &mut self.engine {
            Engine::None => Ok(false),
            Engine::Snappy(encoder) => snappy(encoder, raw, out, room),
            Engine::Zlib { state, dict } => zlib(state, dict.as_ref(), raw, out, room),
            Engine::Bzip2 => bzip2(raw, out, room),
            Engine::Lz4Plain { acceleration } => {
                Ok(ffi::lz4_compress(raw, out, room, *acceleration))
            }
            Engine::Lz4(stream) => Ok(stream.compress(raw, out, room)),
            Engine::Zstd(context) => zstd(context, raw, out, room),
        }
    }
}

#[cold]
fn no_memory() -> Error {
    Error::new(ErrorKind::Aborted, "no memory for a compression context")
}

fn zlib_state(options: &CompressionOptions) -> Result<Compress> {
    let level = match options.level_or(-1) {
        -1 => Compression::default(),
        level @ 0..=9 => Compression::new(level as u32),
        level => {
            return Err(Error::invalid_argument(format!(
                "zlib has levels 0 to 9, not {level}"
            )));
        }
    };
    if !(-14..=-9).contains(&options.window_bits) {
        let message = format!(
            "zlib window_bits {} cannot be read back",
            options.window_bits
        );
        return Err(
            Error::invalid_argument(message).with_hint("set window_bits between -14 and -9")
        );
    }
    if options.strategy != 0 {
        let message = format!("zlib strategy {} is not supported", options.strategy);
        return Err(Error::not_supported(message).with_hint("set strategy to 0"));
    }
    Ok(Compress::new_with_window_bits(
        level,
        false,
        (-options.window_bits) as u8,
    ))
}

fn zstd_context(options: &CompressionOptions, dict: Option<&Dictionary>) -> Result<CCtx<'static>> {
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

fn snappy(
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

fn zlib(
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
    out.resize(at + room, 0);
    let status = state
        .compress(raw, &mut out[at..], FlushCompress::Finish)
        .map_err(refuse)?;
    out.truncate(at + state.total_out() as usize);
    Ok(status == Status::StreamEnd)
}

fn bzip2(raw: &[u8], out: &mut Vec<u8>, room: usize) -> Result<bool> {
    // One hundred kilobytes of block and a work factor of 30, as RocksDB has it.
    let mut state = bzip2::Compress::new(bzip2::Compression::new(1), 30);
    let at = out.len();
    out.resize(at + room, 0);
    loop {
        let (read, written) = (state.total_in() as usize, state.total_out() as usize);
        let status = state
            .compress(
                &raw[read..],
                &mut out[at + written..],
                bzip2::Action::Finish,
            )
            .map_err(|e| Error::invalid_argument(format!("bzip2: {e}")))?;
        if status == bzip2::Status::StreamEnd {
            out.truncate(at + state.total_out() as usize);
            return Ok(true);
        }
        if state.total_out() as usize == room || state.total_out() as usize == written {
            return Ok(false);
        }
    }
}

fn zstd(context: &mut CCtx<'static>, raw: &[u8], out: &mut Vec<u8>, room: usize) -> Result<bool> {
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
