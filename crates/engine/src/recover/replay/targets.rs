//! Where the records of a replayed batch go: the families that take part, and their memtables.

use crate::family::Family;
use crate::memtable::MemTable;
use crate::write::apply::Memtables;
use crate::write::prepared::Sections;
use esker_format::batch::Record;
use esker_format::file_name::log_name;
use esker_format::{FamilyId, FileNo};
use esker_status::seeded::{Bug, seeded};
use esker_status::{Error, Result};
use esker_sync::Arc;
use std::collections::BTreeMap;

/// One family that takes part.
pub(super) struct Target {
    /// Where records go; `None` when logs are only looked at.
    pub(super) family: Option<Arc<Family>>,
    pub(super) name: String,
    /// Logs below this number hold nothing of it that is not in tables.
    pub(super) log_number: FileNo,
    pub(super) has_tables: bool,
}

impl Target {
    /// The family can take operands from log `log`, or takes nothing from there.
    fn check_merge(&self, log: FileNo) -> Result<()> {
        match &self.family {
            Some(f) if f.merge_operator.is_none() && self.log_number <= log => {
                Err(Error::invalid_argument(format!(
                    "{} merges into column family {}, which has no merge operator",
                    log_name(log),
                    self.name
                ))
                .with_hint("set merge_operator in the family's options; nothing was changed"))
            }
            _ => Ok(()),
        }
    }
}

pub(super) struct ReplayTargets<'a> {
    pub(super) families: &'a BTreeMap<FamilyId, Target>,
    pub(super) timestamp_sizes: &'a BTreeMap<FamilyId, usize>,
    pub(super) needs_operators: bool,
    /// Keys that have timestamps in the log have them in the family, or that is an error.
    pub(super) keeps_timestamps: bool,
    pub(super) log: FileNo,
    pub(super) full: Vec<Arc<Family>>,
    pub(super) sections: &'a mut Sections,
    /// Records of families that do not take part.
    pub(super) left_out: &'a mut BTreeMap<FamilyId, u64>,
    /// The newest family that the MANIFEST knows, when it knows all.
    pub(super) max_family: Option<FamilyId>,
    /// A family that is newer.
    pub(super) unknown: Option<FamilyId>,
}

impl Memtables for ReplayTargets<'_> {
    fn with(&mut self, family: FamilyId, f: impl FnOnce(&MemTable) -> Result<()>) -> Result<bool> {
        let target = self.families.get(&family);
        if target.is_none() {
            *self.left_out.entry(family).or_default() += 1;
        }
        let Some(target) = target
            .filter(|t| t.log_number <= self.log)
            .filter(|t| t.log_number < self.log || !seeded(Bug::ReplaySkipsFirstLog))
        else {
            self.unknown = self.unknown.or_else(|| {
                self.max_family
                    .filter(|max| family > *max)
                    .and(Some(family))
            });
            return Ok(false);
        };
        let Some(to) = &target.family else {
            return Ok(false);
        };
        let view = to.view_guard();
        f(&view.mem)?;
        if view.mem.is_full() && !self.full.iter().any(|x| x.id == family) {
            self.full.push(Arc::clone(to));
        }
        Ok(true)
    }

    fn timestamp_size(&self, family: FamilyId) -> Option<usize> {
        let target = self.families.get(&family)?.family.as_ref()?;
        Some(target.order.timestamp_size())
    }

    fn sections(&mut self) -> Option<&mut Sections> {
        Some(self.sections)
    }

    /// Takes timestamps off keys of a family that was opened without them; tables hold none of them
    /// then.
    fn adjust<'r>(&self, record: Record<'r>) -> Result<Record<'r>> {
        let family = record.family().unwrap_or(FamilyId::DEFAULT);
        let logged = self.timestamp_sizes.get(&family).copied().unwrap_or(0);
        let target = self.families.get(&family);
        if let (true, Record::Merge { .. }, Some(target)) = (self.needs_operators, &record, target)
        {
            target.check_merge(self.log)?;
        }
        let wanted = match target.and_then(|t| t.family.as_ref()) {
            Some(family) => family.order.timestamp_size(),
            None => logged,
        };
        if logged == wanted {
            return Ok(record);
        }
        if wanted > 0 || self.keeps_timestamps {
            return Err(Error::invalid_argument(format!(
                "keys of column family {family} have timestamps of {logged} bytes in the log, \
                 and its comparator has timestamps of {wanted} bytes"
            )));
        }
        without_timestamps(record, logged)
    }
}

/// The record with the last `size` bytes of its keys taken off.
fn without_timestamps(mut record: Record<'_>, size: usize) -> Result<Record<'_>> {
    let strip = |key: &mut &[u8]| {
        let kept = key.len().checked_sub(size).and_then(|n| key.get(..n));
        let kept = kept.ok_or_else(|| Error::corruption("a key is shorter than its timestamp"))?;
        *key = kept;
        Ok::<_, Error>(())
    };
    match &mut record {
        Record::Put { key, .. }
        | Record::Delete { key, .. }
        | Record::SingleDelete { key, .. }
        | Record::Merge { key, .. }
        | Record::BlobIndex { key, .. }
        | Record::PutEntity { key, .. }
        | Record::TimedPut { key, .. } => strip(key)?,
        Record::DeleteRange { begin, end, .. } => {
            strip(begin)?;
            strip(end)?;
        }
        _ => {}
    }
    Ok(record)
}

#[cfg(test)]
mod tests;
