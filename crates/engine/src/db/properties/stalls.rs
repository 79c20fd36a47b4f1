//! The stall ledgers as a property: the database's, and each family's.

use super::PropertyMap;
use crate::core::Core;
use crate::family::Family;
use crate::observe::{StallKind, StallLedger, StallRow};

/// The end of the lines of the database's own ledger; no family has that name.
const DATABASE: &str = "(database)";

/// One line for each cause and kind that held a writer back: first the database's, which holds all
/// of it, then what each family caused. Empty when writers were never held back.
pub(super) fn text(core: &Core) -> String {
    core.writes.admission.stall_tracker.settle();
    let mut lines = lines(&core.services.stalls, DATABASE);
    for family in core.trees.families.all() {
        lines.extend(self::lines(&family.stalls, &family.name));
    }
    if lines.is_empty() {
        return String::new();
    }
    lines.insert(0, StallRow::header());
    lines.join("\n") + "\n"
}

fn lines(ledger: &StallLedger, of: &str) -> Vec<String> {
    let rows = ledger.rows().filter(|r| r.times > 0);
    rows.map(|r| r.line(of)).collect()
}

/// Every figure by name, `db.CAUSE-KIND.WHAT` and `cf.CAUSE-KIND.WHAT`, those without a wait
/// included.
pub(super) fn map(core: &Core, family: &Family) -> PropertyMap {
    core.writes.admission.stall_tracker.settle();
    let mut out = PropertyMap::new();
    for (of, ledger) in [("db", &*core.services.stalls), ("cf", &family.stalls)] {
        for kind in StallKind::ALL {
            let us = ledger.writers_us(kind);
            out.insert(
                format!("{of}.{}.writers-micros", kind.word()),
                us.to_string(),
            );
        }
        for row in ledger.rows() {
            for (what, n) in [
                ("times", row.times),
                ("micros", row.stall_us),
                ("writers-micros", row.writers_us),
                ("max-micros", row.stall_us_max),
            ] {
                let name = format!("{of}.{}-{}.{what}", row.cause.name(), row.kind.name());
                out.insert(name, n.to_string());
            }
        }
    }
    out
}
