//! [`Compressor`]: one codec, one set of options, one dictionary, and the state they reuse.

#[cfg(feature = "lz4")]
use super::bounded::no_memory;
use super::bounded::{put_size, worst_case};
use super::{Codec, CompressionOptions, Dictionary};
use esker_status::{Error, Result};

/// Compresses blocks. Used by one thread at a time; allocates only to grow the output.
pub struct Compressor {
    codec: Codec,
    options: CompressionOptions,
    engine: Engine,
}

enum Engine {
    None,
    #[cfg(feature = "snappy")]
    Snappy(Box<snap::raw::Encoder>),
    #[cfg(feature = "zlib")]
    Zlib {
        state: Box<flate2::Compress>,
        dict: Option<Dictionary>,
    },
    #[cfg(feature = "bzip2")]
    Bzip2,
    #[cfg(feature = "lz4")]
    Lz4Plain {
        acceleration: i32,
    },
    #[cfg(feature = "lz4")]
    Lz4(super::ffi::Lz4Stream),
    #[cfg(feature = "zstd")]
    Zstd(zstd_safe::CCtx<'static>),
}

impl Engine {
    fn new(
        codec: Codec,
        options: &CompressionOptions,
        dict: Option<&Dictionary>,
    ) -> Result<Engine> {
        let _ = (options, dict);
        Ok(match codec {
            #[cfg(feature = "snappy")]
            Codec::Snappy => Engine::Snappy(Box::new(snap::raw::Encoder::new())),
            #[cfg(feature = "zlib")]
            Codec::Zlib => Engine::Zlib {
                state: Box::new(super::zlib::state(options)),
                dict: dict.cloned(),
            },
            #[cfg(feature = "bzip2")]
            Codec::Bzip2 => Engine::Bzip2,
            #[cfg(feature = "lz4")]
            Codec::Lz4 => {
                let acceleration = if options.level < 0 {
                    options.level.saturating_neg()
                } else {
                    1
                };
                match dict {
                    None => Engine::Lz4Plain { acceleration },
                    Some(_) => {
                        let stream = super::ffi::Lz4Stream::fast(acceleration, dict);
                        Engine::Lz4(stream.ok_or_else(no_memory)?)
                    }
                }
            }
            #[cfg(feature = "lz4")]
            Codec::Lz4Hc => {
                let stream = super::ffi::Lz4Stream::high(options.level_or(0), dict);
                Engine::Lz4(stream.ok_or_else(no_memory)?)
            }
            #[cfg(feature = "zstd")]
            Codec::Zstd => Engine::Zstd(super::zstd::context(options, dict)?),
            // Others were refused before.
            _ => Engine::None,
        })
    }
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
    /// `InvalidArgument` for options that the codec cannot follow, `NotSupported` for a codec that
    /// this build has not.
    pub fn new(
        codec: Codec,
        options: CompressionOptions,
        dict: Option<&Dictionary>,
    ) -> Result<Compressor> {
        codec.check_supported()?;
        Ok(Compressor {
            codec,
            engine: Engine::new(codec, &options, dict)?,
            options,
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
            #[cfg(feature = "snappy")]
            Engine::Snappy(encoder) => size_of_val(&**encoder),
            #[cfg(feature = "zlib")]
            Engine::Zlib { state, .. } => size_of_val(&**state),
            #[cfg(feature = "zstd")]
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
        if self.compress_within(raw, out, worst_case(raw.len()))? {
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
            Engine::None => {
                let _ = room;
                Ok(false)
            }
            #[cfg(feature = "snappy")]
            Engine::Snappy(encoder) => super::snappy::compress(encoder, raw, out, room),
            #[cfg(feature = "zlib")]
            Engine::Zlib { state, dict } => {
                super::zlib::compress(state, dict.as_ref(), raw, out, room)
            }
            #[cfg(feature = "bzip2")]
            Engine::Bzip2 => super::bzip2::compress(raw, out, room),
            #[cfg(feature = "lz4")]
            Engine::Lz4Plain { acceleration } => {
                Ok(super::ffi::lz4_compress(raw, out, room, *acceleration))
            }
            #[cfg(feature = "lz4")]
            Engine::Lz4(stream) => Ok(stream.compress(raw, out, room)),
            #[cfg(feature = "zstd")]
            Engine::Zstd(context) => super::zstd::compress(context, raw, out, room),
        }
    }
}
