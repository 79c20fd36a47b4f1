//! How long new tables are expected to stay, for the system that places their bytes on a device.
//!
//! The deeper a table lies, the later it is merged away. The steps are RocksDB's
//! (`CalculateSSTWriteHint`), so that devices see from both engines what they have been tuned for.

use super::output::Placement;
use crate::options::{CompactionStyle, DbOptions};
use esker_env::Lifetime;
use esker_format::Level;

/// The lifetime of tables of a family of this `style` that are written to `placement`.
pub(super) fn expected(db: &DbOptions, style: CompactionStyle, placement: Placement) -> Lifetime {
    if !db.calculate_sst_write_lifetime_hint_set.contains(&style) {
        return Lifetime::Unknown;
    }
    let Placement { level, base, .. } = placement;
    match style {
        CompactionStyle::Level if level == Level::L0 => Lifetime::Medium,
        CompactionStyle::Level => match level.0.saturating_sub(base.0) {
            0 => Lifetime::Medium,
            1 => Lifetime::Long,
            _ => Lifetime::Extreme,
        },
        CompactionStyle::Universal => match level.0 {
            0 => Lifetime::Short,
            1 => Lifetime::Medium,
            _ => Lifetime::Long,
        },
        CompactionStyle::Fifo | CompactionStyle::None => Lifetime::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifetimes(style: CompactionStyle, base: u8) -> Vec<Lifetime> {
        let mut db = DbOptions::default();
        db.calculate_sst_write_lifetime_hint_set = vec![style];
        let at = |level| Placement {
            level: Level(level),
            base: Level(base),
            bottommost: false,
            uncompressed: false,
        };
        (0..7)
            .map(|level| expected(&db, style, at(level)))
            .collect()
    }

    #[test]
    fn deeper_levels_are_expected_to_stay_longer() {
        use Lifetime::{Extreme, Long, Medium, Short, Unknown};
        assert_eq!(
            lifetimes(CompactionStyle::Level, 3),
            [Medium, Medium, Medium, Medium, Long, Extreme, Extreme]
        );
        assert_eq!(
            lifetimes(CompactionStyle::Universal, 0),
            [Short, Medium, Long, Long, Long, Long, Long]
        );
        assert_eq!(lifetimes(CompactionStyle::Fifo, 0), [Unknown; 7]);
    }

    #[test]
    fn a_style_that_is_not_named_has_no_hints() {
        let flushed = Placement {
            level: Level::L0,
            base: Level::L0,
            bottommost: false,
            uncompressed: false,
        };
        let db = DbOptions::default();
        let universal = expected(&db, CompactionStyle::Universal, flushed);
        assert_eq!(universal, Lifetime::Unknown);
        assert_eq!(
            expected(&db, CompactionStyle::Level, flushed),
            Lifetime::Medium
        );
    }
}
