//! Which slots of a node are in use, and in what order: one word, so that one store adds to a node.
//!
//! Four bits count the slots in use; after them come the numbers of all slots, four bits each:
//! those in use in the order of their keys, then the free ones. (The permutation of Masstree's
//! leaves: Mao, Kohler and Morris, EuroSys 2012.)

/// Slots of a node.
#[cfg(not(loom))]
pub(crate) const WIDTH: usize = 14;
/// Few, so that a model splits.
#[cfg(loom)]
pub(crate) const WIDTH: usize = 3;

const BITS: usize = 4;

/// The slots of a node by rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ranks(pub(crate) u64);

impl Ranks {
    /// The first `count` slots, in the order of their numbers.
    pub(crate) const fn identity(count: usize) -> Self {
        Ranks(0x00DC_BA98_7654_3210 << BITS | count as u64)
    }

    /// Slots in use.
    #[inline(always)]
    pub(crate) fn count(self) -> usize {
        (self.0 & 15) as usize
    }

    /// The slot of a rank below [`WIDTH`].
    #[inline(always)]
    pub(crate) fn slot(self, rank: usize) -> usize {
        (self.0 >> (BITS + BITS * rank) & 15) as usize
    }

    /// With the first free slot in use at `rank`, and which it is.
    #[inline(always)]
    pub(crate) fn insert(self, rank: usize) -> (Self, usize) {
        let count = self.count();
        debug_assert!(rank <= count && count < WIDTH);
        let slots = self.0 >> BITS;
        let slot = self.slot(count);
        let below = (1u64 << (BITS * rank)) - 1;
        let used = (1u64 << (BITS * count)) - 1;
        let moved = (slots & used & !below) << BITS;
        // What is above the slot that is taken stays where it is.
        let above = slots & !((1u64 << (BITS * (count + 1))) - 1);
        let slots = slots & below | (slot as u64) << (BITS * rank) | moved | above;
        (Ranks(slots << BITS | (count as u64 + 1)), slot)
    }

    /// The first `count` ranks alone.
    #[inline(always)]
    pub(crate) fn truncate(self, count: usize) -> Self {
        debug_assert!(count <= self.count());
        Ranks(self.0 & !15 | count as u64)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn slots_are_taken_once_and_keep_their_order() {
        let mut seed = 7u64;
        for _ in 0..200 {
            let (mut ranks, mut model) = (Ranks::identity(0), Vec::new());
            for _ in 0..100 {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(99);
                if model.len() == WIDTH {
                    model.truncate((seed >> 40) as usize % WIDTH);
                    ranks = ranks.truncate(model.len());
                } else {
                    let rank = (seed >> 40) as usize % (model.len() + 1);
                    let (with, slot) = ranks.insert(rank);
                    assert!(!model.contains(&slot) && slot < WIDTH);
                    model.insert(rank, slot);
                    ranks = with;
                }
                let slots: Vec<_> = (0..ranks.count()).map(|r| ranks.slot(r)).collect();
                assert_eq!(slots, model);
                let mut all: Vec<_> = (0..WIDTH).map(|r| ranks.slot(r)).collect();
                all.sort_unstable();
                assert!(all.into_iter().eq(0..WIDTH), "every slot has one rank");
            }
        }
    }
}
