//! The knobs of a codec, with RocksDB's names and defaults.

use std::fmt;

/// The level that means "the codec's own default".
pub const DEFAULT_LEVEL: i32 = 32767;

/// RocksDB's `CompressionOptions`, as far as they shape bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressionOptions {
    /// Zlib: minus the base-2 logarithm of the window, -9 to -14; others mean the nearest of these.
    pub window_bits: i32,
    /// The codec's level. For LZ4 a negative level is the acceleration.
    pub level: i32,
    /// Zlib's strategy, a hint without effect: any block is read alike.
    pub strategy: i32,
    /// The largest dictionary in bytes; 0 for none.
    pub max_dict_bytes: u32,
    /// zstd: bytes of samples to train a dictionary from; 0 uses samples as the dictionary.
    pub zstd_max_train_bytes: u32,
    /// Bottommost level: whether these options replace the family's.
    pub enabled: bool,
    /// Bytes of blocks to buffer while sampling for a dictionary; 0 for no limit.
    pub max_dict_buffer_bytes: u64,
    /// zstd: train (true) or only finalize (false) the dictionary.
    pub use_zstd_dict_trainer: bool,
    /// A block is kept compressed only when each KiB of it shrinks to this many bytes or fewer.
    pub max_compressed_bytes_per_kb: i32,
    /// zstd: add a checksum to every frame.
    pub checksum: bool,
}

impl Default for CompressionOptions {
    fn default() -> Self {
        CompressionOptions {
            window_bits: -14,
            level: DEFAULT_LEVEL,
            strategy: 0,
            max_dict_bytes: 0,
            zstd_max_train_bytes: 0,
            enabled: false,
            max_dict_buffer_bytes: 0,
            use_zstd_dict_trainer: true,
            max_compressed_bytes_per_kb: 896,
            checksum: false,
        }
    }
}

impl CompressionOptions {
    /// The default options at `level`.
    pub fn at_level(level: i32) -> Self {
        CompressionOptions {
            level,
            ..Self::default()
        }
    }

    /// The largest compressed size (framing included) worth keeping for `raw_len` bytes.
    pub fn max_kept(&self, raw_len: usize) -> usize {
        let per_kb = self.max_compressed_bytes_per_kb.clamp(0, 1024) as u128;
        ((raw_len as u128 * per_kb) >> 10) as usize
    }

    /// The level, or `default` when none is set.
    pub fn level_or(&self, default: i32) -> i32 {
        if self.level == DEFAULT_LEVEL {
            default
        } else {
            self.level
        }
    }
}

/// The value of the table property `rocksdb.compression_options`.
impl fmt::Display for CompressionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "window_bits={}; level={}; strategy={}; ",
            self.window_bits, self.level, self.strategy
        )?;
        write!(f, "max_dict_bytes={}; ", self.max_dict_bytes)?;
        write!(
            f,
            "zstd_max_train_bytes={}; enabled={}; ",
            self.zstd_max_train_bytes,
            i32::from(self.enabled)
        )?;
        write!(f, "max_dict_buffer_bytes={}; ", self.max_dict_buffer_bytes)?;
        write!(
            f,
            "use_zstd_dict_trainer={}; ",
            i32::from(self.use_zstd_dict_trainer)
        )?;
        write!(
            f,
            "max_compressed_bytes_per_kb={}; ",
            self.max_compressed_bytes_per_kb
        )?;
        write!(f, "checksum={}; ", i32::from(self.checksum))
    }
}
