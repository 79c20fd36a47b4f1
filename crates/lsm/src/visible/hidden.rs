//! Hidden entries of the newest run, counted by move and by walk: where there are many, the run is
//! better off as a table.
//!
//! Off where [`super::VisibleOptions::hidden_limits`] has no limit: nothing is counted then. Moves
//! backward are not counted, as in RocksDB.

/// From how many hidden entries of the newest run on an owner is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HiddenLimits {
    /// In one seek or step forward; 0 for any number.
    pub in_move: u32,
    /// On average over a seek and the steps that follow it, where they pass `in_move` together; 0
    /// for any number.
    pub on_average: u32,
}

impl HiddenLimits {
    /// Returns whether there is a limit.
    pub(super) fn is_any(self) -> bool {
        self.in_move > 0
    }
}

/// Counts of what the moves of one use of a cursor passed over.
#[derive(Debug)]
pub(super) struct HiddenCount {
    limits: HiddenLimits,
    in_move: u64,
    in_walk: u64,
    /// The seek and the steps forward since then.
    moves: u64,
    /// There were too many, and the owner does not know yet.
    is_due: bool,
    /// There were too many: nothing is counted any more.
    is_over: bool,
}

impl HiddenCount {
    pub(super) fn new(limits: HiddenLimits) -> Self {
        HiddenCount {
            limits,
            in_move: 0,
            in_walk: 0,
            moves: 1,
            is_due: false,
            is_over: false,
        }
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.limits.is_any() && !self.is_over
    }

    /// Passes over an entry of the newest run.
    pub(super) fn add(&mut self) {
        if !self.is_on() {
            return;
        }
        self.in_move += 1;
        self.in_walk += 1;
        if self.in_move >= u64::from(self.limits.in_move) {
            self.tell();
        }
    }

    /// A move is over, `is_step` for one to the next key. True once, when there were too many.
    pub(super) fn end_move(&mut self, is_step: bool) -> bool {
        self.in_move = 0;
        self.moves += u64::from(is_step);
        std::mem::take(&mut self.is_due)
    }

    /// The moves since the last seek are over.
    pub(super) fn end_walk(&mut self) {
        let average = u64::from(self.limits.on_average);
        if self.is_on()
            && average > 0
            && self.in_walk >= u64::from(self.limits.in_move)
            && self.in_walk >= self.moves.saturating_mul(average)
        {
            self.tell();
        }
        self.in_move = 0;
        self.in_walk = 0;
        self.moves = 1;
    }

    fn tell(&mut self) {
        self.is_due = true;
        self.is_over = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(in_move: u32, on_average: u32) -> HiddenCount {
        HiddenCount::new(HiddenLimits {
            in_move,
            on_average,
        })
    }

    /// Passes over as many entries as each step says; how many steps told of too many.
    fn walk(count: &mut HiddenCount, steps: &[u32]) -> usize {
        let mut told = 0;
        for (i, n) in steps.iter().enumerate() {
            (0..*n).for_each(|_| count.add());
            told += usize::from(count.end_move(i > 0));
        }
        count.end_walk();
        told + usize::from(count.end_move(false))
    }

    #[test]
    fn one_move_over_the_limit_tells_once() {
        assert_eq!(walk(&mut count(3, 0), &[2, 2, 2, 0, 2]), 0);
        assert_eq!(walk(&mut count(3, 0), &[0, 3]), 1);
        let mut told = count(3, 0);
        assert_eq!(walk(&mut told, &[7, 7, 0]), 1);
        assert_eq!(walk(&mut told, &[7]), 0);
    }

    #[test]
    fn the_average_counts_a_seek_and_its_steps() {
        // Eight in four moves.
        assert_eq!(walk(&mut count(8, 2), &[0, 4, 4, 0]), 1);
        assert_eq!(walk(&mut count(8, 2), &[0, 4, 4, 0, 0]), 0);
        // Too few for an average.
        assert_eq!(walk(&mut count(9, 2), &[0, 4, 4, 0]), 0);
        let mut walks = count(8, 2);
        assert_eq!(walk(&mut walks, &[4, 0]), 0);
        assert_eq!(walk(&mut walks, &[4, 0]), 0, "each walk is for itself");
    }

    #[test]
    fn without_the_first_limit_nothing_is_counted() {
        assert_eq!(walk(&mut count(0, 1), &[5, 5, 5]), 0);
    }
}
