//! How a transaction touches a key, and the snapshot that it looks for conflicts from.

use esker::{Db, FamilyHandle, Snapshot};
use std::sync::Arc;

/// How a key is touched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) is_read: bool,
    pub(crate) exclusive: bool,
    pub(crate) validate: bool,
    pub(crate) assume_tracked: bool,
}

impl Access {
    pub(crate) const WRITE: Access = Access {
        is_read: false,
        exclusive: true,
        validate: true,
        assume_tracked: false,
    };
    pub(crate) const UNTRACKED: Access = Access {
        validate: false,
        ..Access::WRITE
    };
    pub(crate) const ASSUMED: Access = Access {
        assume_tracked: true,
        ..Access::UNTRACKED
    };

    /// That of a read for update.
    pub(crate) fn of_read(exclusive: bool, validate: bool) -> Access {
        Access {
            is_read: true,
            exclusive,
            validate,
            assume_tracked: false,
        }
    }
}

/// A key that is touched.
#[derive(Clone, Copy)]
pub(crate) struct AccessedKey<'k> {
    pub(crate) family: &'k FamilyHandle,
    pub(crate) key: &'k [u8],
}

/// The callback of `SetSnapshotOnNextOperation`.
pub(crate) type Notifier = Arc<dyn Fn(&Snapshot) + Send + Sync>;

/// A snapshot, or that one is to be taken.
#[derive(Clone, Default)]
pub(crate) struct SnapshotState {
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) wanted: bool,
    pub(crate) notifier: Option<Notifier>,
}

/// The snapshot that conflicts are looked for from.
#[derive(Default)]
pub(crate) struct SnapshotFields(pub(crate) SnapshotState);

impl SnapshotFields {
    pub(crate) fn sequence(&self) -> Option<u64> {
        self.0.snapshot.as_ref().map(Snapshot::sequence)
    }

    /// Takes the snapshot that the next operation was to take.
    pub(crate) fn take_if_wanted(&mut self, db: &Db) {
        if self.0.wanted {
            let notifier = self.0.notifier.take();
            self.0 = SnapshotState {
                snapshot: Some(db.snapshot()),
                ..SnapshotState::default()
            };
            if let (Some(notify), Some(snapshot)) = (notifier, &self.0.snapshot) {
                notify(snapshot);
            }
        }
    }
}
