//! Checksums, hashes and compressors: pure functions of bytes, and the only crate that links C.
//!
//! [`checksum`] holds CRC-32C and the block checksums, [`hash`] the two hashes that filters and
//! hash indexes store on disk, [`compress`] RocksDB's block codecs with their framing. Nothing here
//! does I/O. Unsafe code is confined to `compress::ffi`, `compress::zdict` and the one instruction
//! of [`prefetch`].
#![deny(unsafe_code)]

pub mod checksum;
pub mod compress;
pub mod hash;
#[allow(unsafe_code)]
mod prefetch;

pub use checksum::ChecksumType;
pub use compress::{Codec, CompressionOptions, Compressor, Dictionary};
pub use prefetch::prefetch;
