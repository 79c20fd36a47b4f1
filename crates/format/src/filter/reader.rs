//! [`FilterReader`]: what a filter block's last bytes say, and the query.

use super::ribbon::{self, Layout};
use super::{KeyHash, METADATA_LEN, bloom, legacy};
use esker_codec::hash::{LEGACY_BLOOM_SEED, hash32};

/// A parsed filter block: kind and parameters, a few words, no borrow.
///
/// It goes with the bytes it was parsed from: every query is given them again. Copy it freely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterReader {
    kind: FilterKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilterKind {
    AlwaysTrue,
    AlwaysFalse,
    Bloom {
        len: u32,
        probes: u32,
    },
    Legacy {
        lines: u32,
        log2_line: u32,
        probes: u32,
    },
    Ribbon {
        layout: Layout,
        seed: u32,
    },
}

impl FilterReader {
    /// The filter that matches everything.
    pub const ALWAYS_TRUE: FilterReader = FilterReader {
        kind: FilterKind::AlwaysTrue,
    };

    /// Recognises a filter block. It cannot fail: an empty block means "no filter", one to five
    /// bytes match nothing, and what is not known or makes no sense matches everything.
    pub fn parse(block: &[u8]) -> FilterReader {
        let kind = match block.len() {
            0 => FilterKind::AlwaysTrue,
            1..=METADATA_LEN => FilterKind::AlwaysFalse,
            _ => Self::parse_metadata(block).unwrap_or(FilterKind::AlwaysTrue),
        };
        FilterReader { kind }
    }

    fn parse_metadata(block: &[u8]) -> Option<FilterKind> {
        let (data, meta) = block.split_last_chunk::<METADATA_LEN>()?;
        match meta[0] {
            0xff => {
                let (len, probes) = (u32::try_from(data.len()).ok()?, u32::from(meta[2]));
                // A size class above the top of `probes`, or reserved bytes in use, are unknown
                // kinds.
                let known = meta[1] == 0 && (1..=30).contains(&probes) && meta[3..] == [0, 0];
                (known && data.len() % bloom::LINE == 0)
                    .then_some(FilterKind::Bloom { len, probes })
            }
            0xfe => {
                let blocks = u32::from_le_bytes([meta[2], meta[3], meta[4], 0]);
                let layout = Layout::new(blocks, data.len())?;
                Some(FilterKind::Ribbon {
                    layout,
                    seed: ribbon::seed_of_ordinal(meta[1]),
                })
            }
            probes @ 1..=0x7f => {
                let lines = u32::from_le_bytes([meta[1], meta[2], meta[3], meta[4]]);
                let len = u32::try_from(data.len()).ok()?;
                let line = len
                    .checked_div(lines)
                    .filter(|line| line.is_power_of_two())?;
                (lines.checked_mul(line) == Some(len)).then_some(FilterKind::Legacy {
                    lines,
                    log2_line: line.ilog2(),
                    probes: u32::from(probes),
                })
            }
            _ => None,
        }
    }

    /// Returns whether the answer is always "maybe": there is no point in asking.
    pub fn is_always_true(&self) -> bool {
        self.kind == FilterKind::AlwaysTrue
    }

    /// Returns whether `key` may have been added to the filter. `block` must be the bytes given to
    /// [`FilterReader::parse`], `hash` must be [`KeyHash::of`] the same `key`. Only the legacy kind
    /// looks at the key itself.
    #[inline]
    pub fn may_match(&self, block: &[u8], key: &[u8], hash: KeyHash) -> bool {
        match self.kind {
            FilterKind::Bloom { len, probes } => {
                let at = bloom::line_offset(hash.0, len);
                match block.get(at..).and_then(|b| b.first_chunk()) {
                    Some(line) => bloom::line_matches(line, hash.0, probes),
                    None => true,
                }
            }
            FilterKind::Ribbon { layout, seed } => {
                let data = &block[..block.len().saturating_sub(METADATA_LEN)];
                ribbon::matches(data, &layout, seed, hash.0)
            }
            FilterKind::Legacy {
                lines,
                log2_line,
                probes,
            } => legacy::matches(
                block,
                lines,
                log2_line,
                probes,
                hash32(key, LEGACY_BLOOM_SEED),
            ),
            FilterKind::AlwaysTrue => true,
            FilterKind::AlwaysFalse => false,
        }
    }

    /// Starts loading what [`FilterReader::may_match`] will read. Worth it when other work, such as
    /// the prefetches of other files' filters, comes in between.
    #[inline]
    pub fn prefetch(&self, block: &[u8], hash: KeyHash) {
        match self.kind {
            FilterKind::Bloom { len, .. } => {
                esker_codec::prefetch(block, bloom::line_offset(hash.0, len))
            }
            FilterKind::Ribbon { layout, seed } => {
                esker_codec::prefetch(block, ribbon::first_byte(&layout, seed, hash.0));
            }
            _ => {}
        }
    }
}
