//! The estimated height of level 0, which writers go by.
//!
//! Level 0 rises while the levels below have their turn and falls while its own lasts. Writers that
//! went by its height would go faster and slower with every turn. The estimate is the mean of the
//! last turns and twice the mean deviation from it, which is where turns of an even rise and fall
//! end: it stands still as long as they are alike, and follows evenly when they change, up as well
//! as down. Where level 0 is far above it, it does not wait for the mean.
//!
//! Once level 0 asks for no compaction any more its fall is no turn: the estimate goes down with
//! the mean, and writers that come after a pause are free again.
//!
//! Source: the mean and mean deviation are those of Jacobson, "Congestion Avoidance and Control",
//! SIGCOMM 1988. Rejected: *the highest of the last turns, ebbing from then on.* Each turn begins
//! with the rate that its crest allows and ends with a third more. *The highest of the last half
//! minute, held.* Turns that are alike have one rate then, but a single high one holds writers
//! below what compactions could take away for all of that time, and these run dry.

use super::Seen;

/// Seconds of the mean: some turns of all levels, of which each may take ten seconds.
const MEAN_S: f64 = 20.0;
/// This many times the mean deviation lies between the mean and the crest of a turn that rises and
/// falls evenly.
const CREST: f64 = 2.0;

/// The height of level 0 that writers go by, in tables.
#[derive(Debug, Default)]
pub(super) struct L0Estimator {
    height: f64,
    mean: f64,
    deviation: f64,
    /// The time that both were seen for.
    seen: Seen,
}

impl L0Estimator {
    pub(super) fn at(level0: f64) -> L0Estimator {
        L0Estimator {
            height: level0,
            mean: level0,
            ..L0Estimator::default()
        }
    }

    pub(super) fn height(&self) -> f64 {
        self.height
    }

    /// Level 0 is as high as that, which may be `lead` tables above the estimate and not more.
    pub(super) fn rise(&mut self, level0: f64, lead: f64) {
        self.height = self.height.max(level0 - lead);
    }

    /// As [`L0Estimator::rise`], after `seconds`; level 0 `rests` when it is below what asks
    /// for a compaction.
    pub(super) fn turn(&mut self, seconds: f64, level0: f64, lead: f64, rests: bool) {
        let weight = self.seen.weight(seconds, MEAN_S);
        self.mean += (level0 - self.mean) * weight;
        let deviation = if rests {
            0.0
        } else {
            (level0 - self.mean).abs()
        };
        self.deviation += (deviation - self.deviation) * weight;
        self.height = self.mean + CREST * self.deviation;
        self.rise(level0, lead);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_S: f64 = 0.1;
    const LEAD: f64 = 4.0;

    /// The estimate, ten times a second, over turns of `turn_s` in which level 0 rises and falls
    /// between `low` and `high`.
    fn turns(
        estimate: &mut L0Estimator,
        seconds: f64,
        turn_s: f64,
        (low, high): (f64, f64),
    ) -> Vec<f64> {
        let steps = 0..(seconds / STEP_S) as usize;
        let heights = steps.map(|step| {
            let way = (step as f64 * STEP_S / turn_s).fract();
            let level0 = low + (high - low) * (1.0 - (2.0 * way - 1.0).abs());
            estimate.turn(STEP_S, level0, LEAD, false);
            estimate.height()
        });
        heights.collect()
    }

    fn extent(of: &[f64]) -> (f64, f64) {
        let low = of.iter().copied().fold(f64::INFINITY, f64::min);
        (low, of.iter().copied().fold(0.0, f64::max))
    }

    #[test]
    fn it_stands_where_turns_end_and_hardly_moves() {
        for turn_s in [1.0, 5.0, 12.0] {
            let mut estimate = L0Estimator::at(0.0);
            let heights = turns(&mut estimate, 240.0, turn_s, (10.0, 22.0));
            let (low, high) = extent(&heights[1200..]);
            assert!(
                low > 20.5 && high < 23.5,
                "turns of {turn_s} s: {low} to {high}"
            );
        }
    }

    #[test]
    fn one_high_turn_moves_it_a_little() {
        let mut estimate = L0Estimator::at(0.0);
        turns(&mut estimate, 120.0, 5.0, (10.0, 20.0));
        let high = extent(&turns(&mut estimate, 5.0, 5.0, (10.0, 24.0))).1;
        let after = extent(&turns(&mut estimate, 30.0, 5.0, (10.0, 20.0)));
        assert!(high < 22.5, "{high}");
        assert!(after.0 > 19.0 && after.1 < 22.5, "{after:?}");
    }

    #[test]
    fn level_0_is_never_far_above_it() {
        let mut estimate = L0Estimator::at(0.0);
        turns(&mut estimate, 120.0, 5.0, (4.0, 6.0));
        estimate.turn(STEP_S, 30.0, LEAD, false);
        assert!(estimate.height() >= 26.0, "{estimate:?}");
    }

    #[test]
    fn nothing_is_held_once_level_0_rests() {
        let mut estimate = L0Estimator::at(0.0);
        turns(&mut estimate, 120.0, 5.0, (10.0, 22.0));
        let steps = (0..100).map(|_| {
            estimate.turn(STEP_S, 1.0, LEAD, true);
            estimate.height()
        });
        let heights: Vec<f64> = steps.collect();
        assert!(heights.windows(2).all(|w| w[1] < w[0]), "{heights:?}");
        assert!(heights[99] < 15.0, "after ten seconds {}", heights[99]);
        // There was no look for a minute: what is seen then is what there is.
        let mut alone = L0Estimator::at(30.0);
        alone.turn(60.0, 5.0, LEAD, false);
        assert!(alone.height() < 10.0, "{alone:?}");
    }
}
