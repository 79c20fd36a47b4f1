//! RocksDB's block codecs with the framing of format version 2 and above.
//!
//! [`Compressor`] and [`decompress`] turn raw block bytes into stored ones and back; the stored
//! form of every codec but Snappy starts with the raw size as varint32. Contexts are reused: a
//! compressor owns its own, decompression keeps one per thread. Sizes found in stored bytes are
//! compared with a limit before anything is allocated. [`StreamEncoder`] and [`StreamDecoder`] are
//! the zstd frames of the WAL.
//!
//! Each codec is a feature of this crate. Whatever needs one that is left out gets `NotSupported`
//! with its name ([`Codec::check_supported`]).
//!
//! Thread-safety: a `Compressor` belongs to one thread at a time, a [`Dictionary`] may be shared.

mod bounded;
#[cfg(feature = "bzip2")]
mod bzip2;
mod codec;
mod compressor;
mod decompressor;
mod dictionary;
#[cfg(feature = "lz4")]
#[allow(unsafe_code)]
mod ffi;
mod options;
#[cfg(feature = "snappy")]
mod snappy;
mod stream;
#[cfg(feature = "zstd")]
#[allow(unsafe_code)]
mod zdict;
#[cfg(feature = "zlib")]
mod zlib;
#[cfg(feature = "zstd")]
mod zstd;

pub use codec::{Codec, codecs_of_property, property_v7};
pub use compressor::Compressor;
pub use decompressor::{decompress, uncompressed_len};
pub use dictionary::{Dictionary, finalize_dictionary, train_dictionary};
pub use options::{CompressionOptions, DEFAULT_LEVEL};
pub use stream::{StreamDecoder, StreamEncoder};

// They go through all codecs.
#[cfg(all(
    test,
    feature = "bzip2",
    feature = "lz4",
    feature = "snappy",
    feature = "zlib",
    feature = "zstd"
))]
mod tests;
