//! The readable part of damaged tables, and the losses.
//!
//! Changes nothing.

use super::Repair;
use super::extent::Extent;
use super::found::{DamagedTable, ListedTable, ReadableTable};
use super::report::{LostRange, SalvagedTable};
use super::scan::family_of;
use esker_env::ReadOptions as FileReadOptions;
use esker_files::table::{DamagedRange, Salvage, SalvageCounts, SalvageOptions, read_properties};
use esker_format::FileNo;
use esker_format::properties::TableProperties;
use esker_status::{Error, Result};
use std::path::Path;
use std::sync::Arc;

impl Repair<'_> {
    /// Finds the readable part of a damaged table; `None` when there is none, or its family is
    /// unknown.
    pub(super) fn rest_of(
        &self,
        path: &Path,
        number: FileNo,
        listed: Option<&ListedTable>,
        why: &Error,
    ) -> Result<Option<DamagedTable>> {
        match self.try_rest_of(path, number, listed, why) {
            Err(e) if self.is_lost(&e) => Ok(None),
            done => done,
        }
    }

    fn try_rest_of(
        &self,
        path: &Path,
        number: FileNo,
        listed: Option<&ListedTable>,
        why: &Error,
    ) -> Result<Option<DamagedTable>> {
        let file = self.env.fs.open_read(path, FileReadOptions::default())?;
        let properties = match read_properties(Arc::clone(&file)) {
            Ok(p) => Some(p),
            Err(e) if self.is_lost(&e) => None,
            Err(e) => return Err(e),
        };
        if is_another(listed, properties.as_ref()) {
            return Ok(None);
        }
        let (family, name, stored) = match (listed, &properties) {
            (Some(l), _) => (l.family_id, l.family.clone(), l.comparator.clone()),
            (None, Some(p)) if !p.comparator_name.is_empty() => {
                let comparator = Some(p.comparator_name.clone());
                (family_of(p)?, p.column_family_name.clone(), comparator)
            }
            // Nothing says whose keys these are, and in which order.
            (None, _) => return Ok(None),
        };
        let stored = stored.filter(|c| !c.is_empty());
        let order = self.order_of(&name, stored.as_deref())?;
        let options = SalvageOptions {
            order: order.clone(),
            bounds: listed.map(|l| l.bounds.clone()),
            seqs: listed.map(|l| (l.smallest_seq, l.largest_seq)),
            size: listed.map(|l| l.size),
            skip_unreadable: self.asked.give_up_unreadable,
        };
        let salvage = Salvage::open(file, options.clone())?;
        let mut extent = Extent::default();
        let walked = salvage.walk(|key, value| extent.add(key, value))?;
        if walked.entries == 0 && salvage.range_tombstones().is_empty() {
            return Ok(None);
        }
        let entries = walked.entries + salvage.range_tombstones().len() as u64;
        let told = told(path, &salvage, walked, listed, (&name, why));
        let (meta, refs) = extent.meta(salvage.range_tombstones(), &order)?;
        let found = ReadableTable {
            path: path.to_owned(),
            family,
            family_name: name,
            comparator: order.name().to_owned(),
            meta,
            refs,
            entries,
            is_ageless: false,
            made_of: Some(number),
        };
        Ok(Some(DamagedTable {
            path: path.to_owned(),
            number,
            options,
            found,
            told,
        }))
    }
}

/// Returns whether the file is not the one that the MANIFEST means, or one whose keys cannot be
/// taken as they are.
fn is_another(listed: Option<&ListedTable>, properties: Option<&TableProperties>) -> bool {
    let Some(p) = properties else {
        return false;
    };
    let named = listed.and_then(|l| l.unique_id).filter(|id| *id != [0, 0]);
    let is_other = named.is_some_and(|named| p.unique_id().is_some_and(|own| own.0 != named));
    is_other || !p.user_defined_timestamps_persisted
}

fn told(
    path: &Path,
    salvage: &Salvage,
    walked: SalvageCounts,
    listed: Option<&ListedTable>,
    (family, why): (&str, &Error),
) -> SalvagedTable {
    let kept = walked.entries + salvage.range_tombstones().len() as u64;
    let said = salvage.properties().map(|p| p.num_entries);
    let is_whole = walked.damages.is_empty() && salvage.is_end_known();
    let lost = match said {
        Some(said) if said > 0 => Some(said.saturating_sub(kept)),
        _ => is_whole.then_some(0),
    };
    let bounds = listed.map(|l| (l.bounds.0.user().to_vec(), l.bounds.1.user().to_vec()));
    let (low, high) = bounds.unzip();
    let range = |d: DamagedRange| LostRange {
        offset: d.offset,
        bytes: d.bytes,
        first: d.after.or_else(|| low.clone()),
        last: d.before.or_else(|| high.clone()),
        reason: d.why,
    };
    let mut ranges: Vec<_> = walked.damages.into_iter().map(range).collect();
    if ranges.is_empty() && lost != Some(0) && !salvage.has_lost_tombstones() {
        // The file ends early, or its own count is wrong.
        ranges.push(LostRange {
            offset: salvage.data_end(),
            bytes: 0,
            first: walked.last.or(low),
            last: high,
            reason: "the data ends early".to_owned(),
        });
    }
    let notes = salvage.notes().join("; ");
    SalvagedTable {
        path: path.to_owned(),
        family: match family {
            "" => "default".to_owned(),
            name => name.to_owned(),
        },
        level: listed.map(|l| l.level.0),
        table: None,
        kept,
        lost,
        lost_range_deletions: salvage.has_lost_tombstones(),
        ranges,
        reason: if notes.is_empty() {
            why.message().to_owned()
        } else {
            notes
        },
    }
}
