//! The assessment of a family's newest tree, computed once for a version and its options.

use super::Family;
use crate::options::FamilyOptions;
use esker_lsm::assessment::Assessment;
use esker_lsm::pick::Policy;
use esker_lsm::version::Version;
use esker_sync::atomic::{AtomicU64, Ordering};
use esker_sync::{Arc, ArcSwapOption, Weak};

/// A tree's assessment, with the picker's view of the options that it was made by. It does not keep
/// the version alive: files that the version alone lists may go.
#[derive(Debug)]
pub(crate) struct TreeAssessment {
    version: Weak<Version>,
    options: Weak<FamilyOptions>,
    pub(crate) policy: Policy,
    pub(crate) tree: Assessment,
}

/// The last assessment, and how many there were.
#[derive(Debug, Default)]
pub(super) struct LastAssessment {
    last: ArcSwapOption<TreeAssessment>,
    count: AtomicU64,
}

impl Family {
    /// The assessment of the newest tree that was assessed.
    pub(crate) fn newest_assessment(&self) -> Option<Arc<TreeAssessment>> {
        self.last_assessment.last.load_full()
    }

    /// The last assessment, if it is of this tree under the options that the family has now.
    pub(crate) fn last_assessed(&self, version: &Arc<Version>) -> Option<Arc<TreeAssessment>> {
        let options = self.options.load();
        let is_of = |a: &Arc<TreeAssessment>| {
            a.version.as_ptr() == Arc::as_ptr(version)
                && a.options.as_ptr() == Arc::as_ptr(&options)
        };
        self.last_assessment.last.load_full().filter(is_of)
    }

    /// The assessment of one of the family's trees under its options.
    pub(crate) fn assessed(&self, version: &Arc<Version>) -> Arc<TreeAssessment> {
        if let Some(known) = self.last_assessed(version) {
            return known;
        }
        let options = self.options.load();
        esker_sync::check_may_take_long("an assessment of a tree");
        let policy = options.to_policy();
        let made = Arc::new(TreeAssessment {
            version: Arc::downgrade(version),
            options: Arc::downgrade(&options),
            tree: Assessment::of(version, &policy),
            policy,
        });
        self.last_assessment.count.fetch_add(1, Ordering::Relaxed);
        // A thread with an old tree does not replace the newest one.
        if Arc::ptr_eq(version, &self.view_guard().version) {
            self.last_assessment.last.store(Some(Arc::clone(&made)));
        }
        made
    }

    /// How many assessments were computed.
    #[cfg(test)]
    pub(crate) fn assessments(&self) -> u64 {
        self.last_assessment.count.load(Ordering::Relaxed)
    }
}
