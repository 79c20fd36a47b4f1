//! The codecs by number and by each of the names that RocksDB gives them.

use esker_status::{Error, Result};

/// How a block's bytes are compressed. The discriminants are the type bytes on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Codec {
    /// Raw bytes.
    #[default]
    None = 0x00,
    /// Snappy.
    Snappy = 0x01,
    /// Raw deflate.
    Zlib = 0x02,
    /// bzip2.
    Bzip2 = 0x03,
    /// LZ4.
    Lz4 = 0x04,
    /// LZ4 made by its slower, denser compressor.
    Lz4Hc = 0x05,
    /// Windows only: known by name, refused when used.
    Xpress = 0x06,
    /// Zstandard.
    Zstd = 0x07,
}

struct Names {
    codec: Codec,
    option: &'static str,
    tool: &'static str,
    property: &'static str,
}

const fn names(
    codec: Codec,
    option: &'static str,
    tool: &'static str,
    property: &'static str,
) -> Names {
    Names {
        codec,
        option,
        tool,
        property,
    }
}

const NAMES: [Names; 8] = [
    names(Codec::None, "kNoCompression", "none", "NoCompression"),
    names(Codec::Snappy, "kSnappyCompression", "snappy", "Snappy"),
    names(Codec::Zlib, "kZlibCompression", "zlib", "Zlib"),
    names(Codec::Bzip2, "kBZip2Compression", "bzip2", "BZip2"),
    names(Codec::Lz4, "kLZ4Compression", "lz4", "LZ4"),
    names(Codec::Lz4Hc, "kLZ4HCCompression", "lz4hc", "LZ4HC"),
    names(Codec::Xpress, "kXpressCompression", "xpress", "Xpress"),
    names(Codec::Zstd, "kZSTD", "zstd", "ZSTD"),
];

impl Codec {
    /// Every codec that has a number, in ascending order.
    pub const ALL: [Codec; 8] = [
        Codec::None,
        Codec::Snappy,
        Codec::Zlib,
        Codec::Bzip2,
        Codec::Lz4,
        Codec::Lz4Hc,
        Codec::Xpress,
        Codec::Zstd,
    ];

    /// The codec with this type byte.
    #[inline]
    pub fn from_u8(v: u8) -> Option<Codec> {
        Codec::ALL.get(usize::from(v)).copied()
    }

    /// The option's value in OPTIONS files: `kSnappyCompression`, `kZSTD`, ...
    pub fn option_name(self) -> &'static str {
        NAMES[self as usize].option
    }

    /// The codec with this option value. `kDisableCompressionOption` is no codec.
    pub fn from_option_name(name: &str) -> Option<Codec> {
        NAMES.iter().find(|n| n.option == name).map(|n| n.codec)
    }

    /// The name on the command line of `db_bench`: `none`, `snappy`, `zstd`, ...
    pub fn tool_name(self) -> &'static str {
        NAMES[self as usize].tool
    }

    /// The codec with this `db_bench` name, in any case.
    pub fn from_tool_name(name: &str) -> Option<Codec> {
        NAMES
            .iter()
            .find(|n| n.tool.eq_ignore_ascii_case(name))
            .map(|n| n.codec)
    }

    /// The value of the table property `rocksdb.compression` for format versions 2 to 6.
    pub fn property_name(self) -> &'static str {
        NAMES[self as usize].property
    }

    /// The codec with this property value.
    pub fn from_property_name(name: &str) -> Option<Codec> {
        NAMES.iter().find(|n| n.property == name).map(|n| n.codec)
    }

    /// Returns whether this build can compress and decompress with it.
    pub fn is_supported(self) -> bool {
        match self {
            Codec::None => true,
            Codec::Snappy => cfg!(feature = "snappy"),
            Codec::Zlib => cfg!(feature = "zlib"),
            Codec::Bzip2 => cfg!(feature = "bzip2"),
            Codec::Lz4 | Codec::Lz4Hc => cfg!(feature = "lz4"),
            Codec::Xpress => false,
            Codec::Zstd => cfg!(feature = "zstd"),
        }
    }

    /// The feature of `esker` that builds it in; `None` for what needs none, or has none.
    pub fn feature(self) -> Option<&'static str> {
        match self {
            Codec::None | Codec::Xpress => None,
            Codec::Lz4Hc => Some(Codec::Lz4.tool_name()),
            _ => Some(self.tool_name()),
        }
    }

    /// `NotSupported`, with the feature to enable, for a codec that this build has not.
    #[inline]
    pub fn check_supported(self) -> Result<()> {
        if self.is_supported() {
            return Ok(());
        }
        Err(self.not_built())
    }

    #[cold]
    pub(super) fn not_built(self) -> Error {
        let Some(feature) = self.feature() else {
            return Error::not_supported("Xpress compression exists on Windows only");
        };
        let name = self.property_name();
        Error::not_supported(format!("{name} compression is not in this build")).with_hint(format!(
            "build the crate esker with its feature `{feature}`"
        ))
    }

    /// Returns whether a dictionary makes a difference to it.
    pub fn uses_dictionary(self) -> bool {
        matches!(self, Codec::Zlib | Codec::Lz4 | Codec::Lz4Hc | Codec::Zstd)
    }

    /// Returns whether stored bytes start with the raw size as varint32.
    pub(crate) fn has_size_prefix(self) -> bool {
        !matches!(self, Codec::None | Codec::Snappy)
    }
}

/// The value of `rocksdb.compression` for format version 7: the manager and the codecs that blocks
/// may use, for example `BuiltinV2;07;`. With nothing but [`Codec::None`] it is `;;`.
pub fn property_v7(used: impl IntoIterator<Item = Codec>) -> String {
    let mut numbers: Vec<u8> = used
        .into_iter()
        .filter(|c| *c != Codec::None)
        .map(|c| c as u8)
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.is_empty() {
        return ";;".to_owned();
    }
    let hex: String = numbers.iter().map(|n| format!("{n:02X}")).collect();
    format!("BuiltinV2;{hex};")
}

/// The codecs that a `rocksdb.compression` value of either form names; `None` when it is malformed
/// or names something that this build does not know.
pub fn codecs_of_property(value: &str) -> Option<Vec<Codec>> {
    if value.is_empty() {
        return Some(Codec::ALL.to_vec());
    }
    let Some((manager, rest)) = value.split_once(';') else {
        return Codec::from_property_name(value).map(|c| vec![c]);
    };
    let (hex, _) = rest.split_once(';')?;
    if !matches!(manager, "" | "BuiltinV2") || hex.len() % 2 != 0 || !hex.is_ascii() {
        return None;
    }
    (0..hex.len())
        .step_by(2)
        .map(|i| {
            u8::from_str_radix(&hex[i..i + 2], 16)
                .ok()
                .and_then(Codec::from_u8)
        })
        .collect()
}
