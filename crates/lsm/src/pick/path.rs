//! Which path the files of a plan are written to.
//!
//! A family's paths are ordered, fastest first, each with the bytes that it should hold. A leveled
//! tree fills them level by level, going by what the levels may hold, not by what they do; a
//! universal one by the size that the result will have. What fits nowhere goes to the last. Pure
//! functions.

use super::Policy;
use crate::file::FileMeta;
use esker_format::Level;

impl Policy {
    /// Returns whether tables may lie in more than one path.
    #[inline]
    pub fn has_paths(&self) -> bool {
        self.path_targets.len() > 1
    }

    /// The path in which the file is: numbers beyond the last stand for the last.
    #[inline]
    pub fn path_of(&self, file: &FileMeta) -> u32 {
        self.path_id(file.path_id as usize)
    }

    /// The paths before the last, by number, with their targets.
    fn paths_before_last(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let targets = self.path_targets.split_last().map_or(&[][..], |(_, t)| t);
        targets.iter().copied().enumerate()
    }

    /// A number of a path, at most that of the last.
    fn path_id(&self, path: usize) -> u32 {
        let last = self.path_targets.len().saturating_sub(1);
        u32::try_from(path.min(last)).unwrap_or(0)
    }

    /// The first path such that the levels down to `level` fit into it and those before it.
    pub(super) fn path_of_level(&self, level: Level) -> u32 {
        // Level 0 is taken to be as large as level 1.
        let mut size = self.max_bytes_for_level_base;
        let mut at = 0;
        for (path, mut left) in self.paths_before_last() {
            while size <= left {
                if at == level.index() {
                    return self.path_id(path);
                }
                left -= size;
                if at > 0 {
                    size = self.next_level_size(size, at);
                }
                at += 1;
            }
        }
        self.path_id(usize::MAX)
    }

    /// The bytes that the level below level `at` may hold, when that one may hold `size`.
    fn next_level_size(&self, size: u64, at: usize) -> u64 {
        let additional = &self.max_bytes_for_level_multiplier_additional;
        let additional = additional.get(at).copied().unwrap_or(1);
        (size as f64 * self.max_bytes_for_level_multiplier * f64::from(additional)) as u64
    }

    /// The first path that takes a run of `bytes` and leaves room for what comes until that is
    /// merged again.
    pub(super) fn path_of_run(&self, bytes: u64) -> u32 {
        let ratio = self.compaction_options_universal.size_ratio;
        let share = u128::from(100u32.saturating_sub(ratio));
        let future = u128::from(bytes) * share / 100;
        let mut before = 0u128;
        for (path, target) in self.paths_before_last() {
            let room = target.checked_sub(bytes).filter(|room| *room > 0);
            if room.is_some_and(|room| before + u128::from(room) > future) {
                return self.path_id(path);
            }
            before += u128::from(target);
        }
        self.path_id(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(targets: &[u64]) -> Policy {
        Policy {
            path_targets: targets.to_vec(),
            max_bytes_for_level_base: 100,
            ..Policy::default()
        }
    }

    #[test]
    fn levels_fill_the_paths_in_order() {
        let paths = |targets: &[u64]| {
            let policy = with(targets);
            (0..5)
                .map(|l| policy.path_of_level(Level(l)))
                .collect::<Vec<_>>()
        };
        assert_eq!(paths(&[]), [0; 5]);
        assert_eq!(paths(&[1]), [0; 5]);
        assert_eq!(paths(&[200, 1]), [0, 0, 1, 1, 1]);
        assert_eq!(paths(&[150, 100, 1]), [0, 1, 2, 2, 2]);
        assert_eq!(paths(&[1200, 10_000, 0]), [0, 0, 0, 1, 2]);
        assert_eq!(paths(&[0, 0]), [1; 5]);
    }

    #[test]
    fn additional_multipliers_count() {
        let mut policy = with(&[1100, 1]);
        assert_eq!(policy.path_of_level(Level(2)), 1);
        policy.max_bytes_for_level_multiplier_additional = vec![1, 0];
        assert_eq!(policy.path_of_level(Level(2)), 0);
    }

    #[test]
    fn a_run_goes_where_the_next_one_fits_beside_it() {
        let policy = with(&[300, 1000, 1]);
        assert_eq!(policy.path_of_run(100), 0);
        assert_eq!(
            policy.path_of_run(200),
            1,
            "198 more would not fit beside it"
        );
        assert_eq!(policy.path_of_run(600), 1);
        assert_eq!(policy.path_of_run(900), 2);
        assert_eq!(with(&[]).path_of_run(1 << 40), 0);
    }

    #[test]
    fn numbers_beyond_the_last_path_are_the_last() {
        let file = FileMeta {
            path_id: 3,
            ..FileMeta::default()
        };
        assert_eq!(with(&[]).path_of(&file), 0);
        assert_eq!(with(&[1, 1]).path_of(&file), 1);
        assert_eq!(with(&[1, 1, 1, 1]).path_of(&file), 3);
    }
}
