//! Recency lists threaded through a slab: links are slot numbers, so there is nothing to dangle.
//!
//! Invariant: a slot is on at most one list; `head` is the most recent, `tail` the first to go.

/// No slot.
pub(crate) const NIL: u32 = u32::MAX;

/// The links of one slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    pub(crate) newer: u32,
    pub(crate) older: u32,
}

impl Default for Links {
    fn default() -> Self {
        Links {
            newer: NIL,
            older: NIL,
        }
    }
}

/// Slots that a list is threaded through.
pub(crate) trait Slots {
    fn links(&mut self, slot: u32) -> &mut Links;
}

/// The ends of one list and the bytes charged to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) head: u32,
    pub(crate) tail: u32,
    pub(crate) len: usize,
    pub(crate) charge: usize,
}

impl Default for List {
    fn default() -> Self {
        List {
            head: NIL,
            tail: NIL,
            len: 0,
            charge: 0,
        }
    }
}

impl List {
    /// Puts `slot` at the recent end.
    #[inline]
    pub(crate) fn push(&mut self, slots: &mut impl Slots, slot: u32, charge: usize) {
        *slots.links(slot) = Links {
            newer: NIL,
            older: self.head,
        };
        match self.head {
            NIL => self.tail = slot,
            head => slots.links(head).newer = slot,
        }
        self.head = slot;
        self.len += 1;
        self.charge += charge;
    }

    /// Takes `slot`, which is on this list, off it.
    #[inline]
    pub(crate) fn remove(&mut self, slots: &mut impl Slots, slot: u32, charge: usize) {
        let Links { newer, older } = std::mem::take(slots.links(slot));
        match newer {
            NIL => self.head = older,
            n => slots.links(n).older = older,
        }
        match older {
            NIL => self.tail = newer,
            o => slots.links(o).newer = newer,
        }
        self.len -= 1;
        self.charge -= charge;
    }
}
