//! The operands that a merge has collected, and the entries made of them.

use esker_format::{Seq, ValueType};
use smallvec::SmallVec;
use std::ops::Range;

/// One entry that a merge puts out.
#[derive(Clone, Debug)]
pub(super) struct Output {
    pub(super) seq: Seq,
    pub(super) kind: ValueType,
    pub(super) value: Range<usize>,
}

/// The operands at hand and the entries made of them; the bytes are kept in one buffer.
#[derive(Debug, Default)]
pub(super) struct MergeState {
    pub(super) bytes: Vec<u8>,
    /// Entries to hand out, newest first.
    pub(super) outputs: Vec<Output>,
    pub(super) at: usize,
    pub(super) result: Vec<u8>,
    pub(super) base: Vec<u8>,
    /// The last merge ended with operands only.
    pub(super) in_progress: bool,
}

impl MergeState {
    /// Forgets the last merge.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.outputs.clear();
        self.at = 0;
        self.in_progress = false;
    }

    pub(super) fn push(&mut self, seq: Seq, value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.outputs.push(Output {
            seq,
            kind: ValueType::Merge,
            value: start..self.bytes.len(),
        });
    }

    /// Replaces all operands by `result`, under the newest one's sequence.
    pub(super) fn collapse(&mut self, kind: ValueType) {
        self.outputs.truncate(1);
        self.bytes.clear();
        self.bytes.extend_from_slice(&self.result);
        if let Some(newest) = self.outputs.first_mut() {
            newest.kind = kind;
            newest.value = 0..self.bytes.len();
        }
    }

    /// To the next entry to hand out.
    #[inline]
    pub(super) fn advance(&mut self) -> bool {
        self.at += 1;
        self.at < self.outputs.len()
    }

    /// Returns whether the current entry of the stream comes from here.
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        !self.outputs.is_empty()
    }

    #[inline]
    pub(super) fn current_value(&self) -> Option<&[u8]> {
        self.outputs
            .get(self.at)
            .map(|o| &self.bytes[o.value.clone()])
    }

    pub(super) fn oldest_first(&self) -> SmallVec<[&[u8]; 8]> {
        self.outputs
            .iter()
            .rev()
            .map(|o| &self.bytes[o.value.clone()])
            .collect()
    }
}
