//! Room under a bound on space that obsolete files take: noted for pickers and writers, and used
//! once they are deleted.
//!
//! What a job has read takes space until it is deleted: whoever deletes has the trees looked at
//! again. Thread-safety: free functions; jobs call them on their own threads.

use crate::core::Core;
use crate::family::Family;
use esker_sync::Arc;

/// Notes what the family's obsolete files take.
pub(super) fn note_obsolete(core: &Core, family: &Family) {
    let bytes = core.trees.obsolete_files.unread_bytes(family.id);
    family.drain.set_obsolete(bytes);
}

/// Deletes obsolete files after jobs of families with a bound on their space, and lets writers and
/// plans have the room. What the jobs have `counted` counts until the files are gone.
pub(super) fn delete_after(core: &Core, families: &[Arc<Family>], counted: impl Sized) {
    if !families.is_empty() {
        core.trees.delete_obsolete_files();
        drop(counted);
        use_room(core, families);
    }
}

/// Lets writers and plans have the room that obsolete files of these families took.
fn use_room(core: &Core, families: &[Arc<Family>]) {
    for family in families {
        note_obsolete(core, family);
        core.background.jobs.lock().queue.look_again(family.id);
        core.writes.admission.refresh(family);
    }
    core.background.cv.notify();
}

/// Lets writers and plans have the room after a deletion that no job has asked for.
pub(super) fn use_room_of_all(core: &Core) {
    if core.trees.families.inbox.is_space_bounded() {
        let mut families = core.trees.families.all();
        families.retain(|family| family.is_space_bounded());
        use_room(core, &families);
    }
}
