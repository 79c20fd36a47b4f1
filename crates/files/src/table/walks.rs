//! How far the walks of cursors go, level by level.
//!
//! Past the page cache each read waits for the device, and a scan of a few entries often needs the
//! block behind the one that its seek found. So a cursor says how many bytes its walk read beyond
//! that block, and the next seek in the same level reads about as many at once.
//!
//! Thread-safety: shared by all cursors of a family; an update that gets lost does no harm.

use esker_format::Level;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Deeper levels count as the last one.
const LEVELS: usize = 8;
/// A walk changes the mean by one part in this many.
const WEIGHT: u32 = 8;
/// No walk counts for more bytes.
const LONGEST: u32 = 256 << 10;
/// Bytes read beyond the mean, for walks that are longer.
const SLACK: u32 = 8 << 10;

/// The mean length of walks, in bytes beyond the block that a seek found.
#[derive(Debug, Default)]
pub struct WalkLengths([AtomicU32; LEVELS]);

impl WalkLengths {
    fn of(&self, level: Level) -> &AtomicU32 {
        &self.0[level.index().min(LEVELS - 1)]
    }

    /// A walk ended that read `bytes` beyond its first block.
    pub(super) fn note(&self, level: Level, bytes: u64) {
        let bytes = u32::try_from(bytes).unwrap_or(LONGEST).min(LONGEST);
        let mean = self.of(level);
        let before = mean.load(Relaxed);
        mean.store(before - before / WEIGHT + bytes / WEIGHT, Relaxed);
    }

    /// How many bytes a seek should read beyond the block that it finds.
    pub(super) fn ahead(&self, level: Level) -> usize {
        match self.of(level).load(Relaxed) {
            // Most walks end in their first block.
            mean if mean < 512 => 0,
            mean => (mean + mean.min(SLACK)) as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_follows_the_walks_of_its_level() {
        let (walks, level) = (WalkLengths::default(), Level(3));
        assert_eq!(walks.ahead(level), 0);
        (0..50).for_each(|_| walks.note(level, 4_096));
        let ahead = walks.ahead(level);
        assert!((7_800..8_200).contains(&ahead), "{ahead}");
        assert_eq!(walks.ahead(Level(2)), 0);
        (0..50).for_each(|_| walks.note(level, u64::MAX));
        let ahead = walks.ahead(level);
        assert!(ahead <= (LONGEST + SLACK) as usize, "{ahead}");
        (0..80).for_each(|_| walks.note(level, 0));
        assert_eq!(walks.ahead(level), 0);
        walks.note(Level(200), 80_000);
        assert!(walks.ahead(Level(7)) > 0);
    }
}
