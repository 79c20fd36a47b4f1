//! Stretches of keys that point deletions hide, met on the way to the key that is shown: each may
//! be written once more as one range deletion, which later reads skip at once.
//!
//! Off where [`super::VisibleOptions::min_deleted_run`] is 0: nothing is noted then.

/// Every key in it that the reader sees is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedRange {
    /// The first key that is deleted.
    pub begin: Vec<u8>,
    /// The key that ends it; it is not part of it.
    pub end: Vec<u8>,
}

/// The deletions that one move of a cursor met.
#[derive(Debug, Default)]
pub(super) struct DeletedRun {
    /// Fewer deletions are left alone. 0: all are.
    least: u32,
    count: u32,
    /// The smallest and the largest deleted key.
    begin: Vec<u8>,
    last: Vec<u8>,
    /// Going backward: the key that was shown before.
    end: Vec<u8>,
    has_end: bool,
    found: Option<DeletedRange>,
}

impl DeletedRun {
    pub(super) fn new(least: u32) -> Self {
        DeletedRun {
            least,
            ..DeletedRun::default()
        }
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.least > 0
    }

    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.count > 0
    }

    /// Forgets what was met, and what was shown before.
    pub(super) fn reset(&mut self) {
        self.count = 0;
        self.has_end = false;
        self.found = None;
    }

    /// Going backward from `key`, which is shown.
    pub(super) fn begin_before(&mut self, key: &[u8]) {
        self.end.clear();
        self.end.extend_from_slice(key);
        self.has_end = true;
    }

    /// The next deleted key going forward.
    pub(super) fn push(&mut self, key: &[u8]) {
        if self.count == 0 {
            self.begin.clear();
            self.begin.extend_from_slice(key);
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        self.count += 1;
    }

    /// The next deleted key going backward.
    pub(super) fn push_before(&mut self, key: &[u8]) {
        if self.count == 0 {
            self.last.clear();
            self.last.extend_from_slice(key);
        }
        self.begin.clear();
        self.begin.extend_from_slice(key);
        self.count += 1;
    }

    /// Ends the run before `end`, a key that is shown. Where none is known the last deleted key
    /// ends it: it stays deleted by itself.
    pub(super) fn close(&mut self, end: Option<&[u8]>) {
        let count = std::mem::take(&mut self.count);
        let end = end.or(self.has_end.then_some(&self.end));
        let covered = count - u32::from(end.is_none());
        if covered > 0 && covered >= self.least {
            self.found = Some(DeletedRange {
                begin: self.begin.clone(),
                end: end.unwrap_or(&self.last).to_vec(),
            });
        }
        self.has_end = false;
    }

    /// Ends the run without a result.
    pub(super) fn abandon(&mut self) {
        self.count = 0;
        self.has_end = false;
    }

    pub(super) fn take(&mut self) -> Option<DeletedRange> {
        self.found.take()
    }
}
