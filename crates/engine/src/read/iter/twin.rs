//! Iterators that are made for [`crate::Entries`]: a second one over the same view, and one that
//! has failed before it began.

use super::DbIterator;
use crate::core::ReadCore;
use crate::family::Family;
use crate::options::ReadOptions;
use esker_format::KeyOrder;
use esker_status::Error;
use esker_sync::Arc;

impl DbIterator {
    /// Another iterator over the same state of the database, not placed.
    pub(crate) fn twin(&self) -> DbIterator {
        let seq = match &self.failure {
            Some((e, _)) => Err(e.clone()),
            None => Ok(self.seq),
        };
        let mut twin = Self::over(
            Arc::clone(&self.core),
            Arc::clone(&self.family),
            Arc::clone(&self.options),
            self.snapshot.clone(),
            (self.epoch, Arc::clone(&self.view), seq),
        );
        twin.due_us = self.due_us;
        twin
    }

    /// An iterator that has failed.
    pub(crate) fn failed(core: Arc<ReadCore>, family: Arc<Family>, e: Error) -> Self {
        let view = family.view();
        let options = Arc::new(ReadOptions::default());
        Self::over(core, family, options, None, (0, view, Err(e)))
    }

    pub(crate) fn order(&self) -> &KeyOrder {
        &self.family.order
    }

    /// Returns whether it is at one state of the database and shows each key once.
    pub(crate) fn has_two_ends(&self) -> bool {
        !self.follows && self.options.iter_start_ts.is_none()
    }
}
