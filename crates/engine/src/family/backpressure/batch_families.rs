//! Which families a batch touches, in sixteen bytes that are found while its records are checked.
//!
//! A batch for one family, which most are, says which. One for several has a bit for each, by the
//! last six bits of its number: enough to see that none of them is held back. Where one may be,
//! which it is and how many bytes it gets is read off the records.

use super::write_controller::ControllerState;
use crate::family::{Family, FamilySet};
use esker_format::FamilyId;
use esker_format::batch::WriteBatch;
use esker_status::seeded::{Bug, seeded};
use esker_sync::Arc;
use smallvec::SmallVec;

/// The families of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchFamilies {
    bits: u64,
    first: FamilyId,
    are_many: bool,
}

/// Families that are not free to be written to, with the bytes that a batch has for each.
pub(crate) type FamilyBytes = SmallVec<[(Arc<Family>, u64); 4]>;

impl BatchFamilies {
    /// No family.
    pub(crate) const NONE: BatchFamilies = BatchFamilies {
        bits: 0,
        first: FamilyId::DEFAULT,
        are_many: false,
    };

    /// One family.
    #[inline]
    pub(crate) fn one(family: FamilyId) -> BatchFamilies {
        BatchFamilies {
            bits: bit(family),
            first: family,
            are_many: false,
        }
    }

    /// Takes a record's family in.
    #[inline]
    pub(crate) fn add(&mut self, family: FamilyId) {
        if self.bits == 0 {
            *self = BatchFamilies::one(family);
        } else if family != self.first {
            self.bits |= bit(family);
            self.are_many = true;
        }
    }

    /// Returns whether one of the families may be among those of `bits`.
    #[inline]
    pub(crate) fn meets(&self, bits: u64) -> bool {
        self.bits & bits != 0
    }

    /// The families of `batch` whose gate is not free. Those without their bit in `bits` are known
    /// to be.
    pub(crate) fn shares(
        &self,
        batch: &WriteBatch,
        families: &FamilySet,
        bits: u64,
    ) -> FamilyBytes {
        let mut shares = FamilyBytes::new();
        if !self.are_many {
            let family = families.get(self.first);
            let held = family.filter(|f| f.gate.state() != ControllerState::Free);
            shares.extend(held.map(|f| (f, batch.data_size() as u64)));
            return shares;
        }
        let (mut records, mut from) = (batch.records(), 0);
        while let Some(Ok(record)) = records.next() {
            let bytes = (records.position() - from) as u64;
            from = records.position();
            let Some(id) = record.family().filter(|id| bit(*id) & bits != 0) else {
                continue;
            };
            if seeded(Bug::FirstGateAlone) && id != self.first {
                break;
            }
            if let Some((_, all)) = shares.iter_mut().find(|(f, _)| f.id == id) {
                *all += bytes;
            } else if let Some(family) = families.get(id)
                && family.gate.state() != ControllerState::Free
            {
                shares.push((family, bytes));
            }
        }
        shares
    }
}

/// The bit that stands for a family, and for every sixty-fourth after it.
#[inline]
pub(crate) fn bit(family: FamilyId) -> u64 {
    1 << (family.0 % u64::BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_told_apart_unless_they_share_a_bit() {
        let mut touched = BatchFamilies::NONE;
        assert!(!touched.meets(u64::MAX));
        touched.add(FamilyId(3));
        touched.add(FamilyId(3));
        assert_eq!(touched, BatchFamilies::one(FamilyId(3)));
        assert!(touched.meets(bit(FamilyId(67))) && !touched.meets(bit(FamilyId(4))));
        touched.add(FamilyId(67));
        assert!(touched.are_many, "one bit, and two families");
        touched.add(FamilyId(4));
        assert!(touched.meets(bit(FamilyId(4))) && touched.meets(bit(FamilyId(3))));
    }
}
