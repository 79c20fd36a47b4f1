//! Which filter to build: the policy and its text forms.

use super::bloom;
use std::fmt;

/// RocksDB's name for a policy that reads filters and builds none.
const READ_ONLY_NAME: &str = "rocksdb.BuiltinBloomFilter";

/// The filters that a family's new files get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FilterPolicy {
    /// Bloom filters of this many thousandths of a bit per key; 0 builds none.
    Bloom {
        /// Thousandths of a bit per key.
        millibits_per_key: u32,
    },
    /// Ribbon filters with the false positive rate of such a Bloom filter, in some 30 % less space.
    Ribbon {
        /// Thousandths of a bit per key of the Bloom filter that is as accurate.
        millibits_per_key: u32,
        /// Levels below this one get Bloom filters, which are faster to build. A flush counts as
        /// level -1, so 0 means "Bloom for flushes only".
        bloom_before_level: i32,
    },
    /// Filters are read, none is built.
    ReadOnly,
}

/// Where a file is going, as far as the choice of its filter depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildLevel {
    /// A flush.
    Flush,
    /// A compaction into this level.
    Level(u8),
    /// Unknown, or the level says nothing (FIFO, ingestion): taken as the last level.
    Unknown,
}

/// RocksDB's rounding of bits per key: below 0.5 none, then at least 1 and at most 100.
fn millibits(bits_per_key: f64) -> u32 {
    let bits = if bits_per_key < 0.5 {
        0.0
    } else if bits_per_key < 1.0 {
        1.0
    } else if bits_per_key < 100.0 {
        bits_per_key
    } else {
        100.0
    };
    (bits * 1000.0 + 0.500001) as u32
}

impl FilterPolicy {
    /// A Bloom policy; see [`FilterPolicy::parse`] for the range.
    pub fn bloom(bits_per_key: f64) -> FilterPolicy {
        FilterPolicy::Bloom {
            millibits_per_key: millibits(bits_per_key),
        }
    }

    /// A Ribbon policy.
    pub fn ribbon(bloom_equivalent_bits_per_key: f64, bloom_before_level: i32) -> FilterPolicy {
        FilterPolicy::Ribbon {
            millibits_per_key: millibits(bloom_equivalent_bits_per_key),
            bloom_before_level,
        }
    }

    /// Parses an option value: `bloomfilter:10:false`, `rocksdb.BloomFilter:9.5`,
    /// `ribbonfilter:10:0`, `rocksdb.RibbonFilter:10`, `rocksdb.BuiltinBloomFilter`.
    ///
    /// `nullptr` and the empty string mean no policy and are not parsed here. `None` when
    /// malformed. The `:true` of old Bloom policies asked for block-based filters, which are gone:
    /// it builds full ones.
    pub fn parse(text: &str) -> Option<FilterPolicy> {
        if text == READ_ONLY_NAME {
            return Some(FilterPolicy::ReadOnly);
        }
        let mut parts = text.split(':');
        let (name, bits, suffix) = (parts.next()?, parts.next()?, parts.next());
        if parts.next().is_some() {
            return None;
        }
        let bits: f64 = bits.parse().ok().filter(|b: &f64| b.is_finite())?;
        match (name, suffix) {
            ("bloomfilter" | "rocksdb.BloomFilter", None | Some("false" | "true")) => {
                Some(Self::bloom(bits))
            }
            ("ribbonfilter" | "rocksdb.RibbonFilter", None) => Some(Self::ribbon(bits, 0)),
            ("ribbonfilter" | "rocksdb.RibbonFilter", Some(level)) => {
                Some(Self::ribbon(bits, level.parse().ok()?))
            }
            _ => None,
        }
    }

    /// The value of the table property `rocksdb.filter.policy`.
    pub fn property_name(self) -> &'static str {
        match self {
            FilterPolicy::Bloom { .. } => "bloomfilter",
            FilterPolicy::Ribbon { .. } => "ribbonfilter",
            FilterPolicy::ReadOnly => READ_ONLY_NAME,
        }
    }

    /// Thousandths of a bit per key (of the equivalent Bloom filter); 0 when nothing is built.
    pub fn millibits_per_key(self) -> u32 {
        match self {
            FilterPolicy::Bloom { millibits_per_key }
            | FilterPolicy::Ribbon {
                millibits_per_key, ..
            } => millibits_per_key,
            FilterPolicy::ReadOnly => 0,
        }
    }

    /// The false positive rate that filters of format version 5 and above aim at.
    pub fn false_positive_rate(self) -> f64 {
        let millibits = self.millibits_per_key();
        bloom::false_positive_rate(f64::from(millibits) / 1000.0, bloom::probes_for(millibits))
    }
}

/// The option value, as RocksDB prints it.
impl fmt::Display for FilterPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == FilterPolicy::ReadOnly {
            return f.write_str(READ_ONLY_NAME);
        }
        write!(
            f,
            "{}:{}",
            self.property_name(),
            f64::from(self.millibits_per_key()) / 1000.0
        )?;
        match self {
            FilterPolicy::Ribbon {
                bloom_before_level, ..
            } => write!(f, ":{bloom_before_level}"),
            _ => f.write_str(":false"),
        }
    }
}
