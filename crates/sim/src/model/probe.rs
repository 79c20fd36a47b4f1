//! Looking at an open database in other ways than by a scan: point reads, seeks in both directions,
//! prefixes, and snapshots that are held for a while. All are compared with the model.
//!
//! Used by one thread, which is the one that writes.

use super::drive::Session;
use super::judge::{Violation, ViolationKind, violation};
use super::state::State;
use crate::rng::Rng;
use esker::{Db, DbIterator, FamilyHandle, ReadOptions, Snapshot};
use esker_format::FileNo;
use esker_format::blob_refs::{BlobRefs, PROPERTY};
use esker_status::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Entries of a family.
type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Snapshots that are held, with what they see, and which opening of the database they are of.
#[derive(Default)]
pub struct HeldSnapshots(Vec<(Snapshot, State, usize)>);

/// Iterators that are held, each with its family and what it is to show: files that the tree needs
/// no more stay for them.
pub struct HeldIterators {
    held: Vec<(DbIterator, Arc<str>, Map)>,
    /// The opening of the database that they are of.
    opens: usize,
    rng: Rng,
}

impl HeldIterators {
    /// None yet; `seed` decides how long they are held.
    pub fn new(seed: u64) -> Self {
        HeldIterators {
            held: Vec::new(),
            opens: 0,
            rng: Rng::new(seed ^ 0x0069_7465_7273),
        }
    }

    /// Makes some and walks along others; only where there are blob files, which are opened when
    /// they are first read.
    pub fn look(&mut self, session: &mut Session) -> Result<(), Violation> {
        if !session.history.settings.has_blobs() {
            return Ok(());
        }
        if self.opens != session.opens {
            self.held.clear();
            self.opens = session.opens;
        }
        if self.held.len() < 3 && self.rng.one_in(2) {
            let families: Vec<_> = session.handles().clone().into_iter().collect();
            let (name, handle) = self.rng.pick(&families).clone();
            let map = session.state().entries(&name).clone();
            let db = session.db().map_err(|e| broken("iterator", &e))?;
            let mut options = ReadOptions::default();
            options.total_order_seek = true;
            options.allow_unprepared_value = self.rng.one_in(2);
            let it = db.iter_opt(&handle, options, None);
            self.held.push((it, name, map));
        } else if !self.held.is_empty() && self.rng.one_in(4) {
            let (mut it, name, map) = self.held.swap_remove(0);
            let is_right = walk(&mut it, &map).map_err(|e| broken("held iterator", &e))?;
            if !is_right {
                return Err(wrong("walk of a held iterator", &name, b""));
            }
        }
        Ok(())
    }
}

/// Walks over all entries.
fn walk(it: &mut DbIterator, map: &Map) -> Result<bool> {
    it.seek_to_first();
    for (k, v) in map {
        it.prepare_value();
        if it.entry() != Some((k.as_slice(), v.as_slice())) {
            return it.status().map(|()| false);
        }
        it.next();
    }
    let ends = it.entry().is_none();
    it.status().map(|()| ends)
}

fn broken(doing: &str, e: &Error) -> Violation {
    violation(ViolationKind::Broken, format!("{doing}: {e}"))
}

fn wrong(doing: &str, family: &str, key: &[u8]) -> Violation {
    let key = key.escape_ascii();
    violation(
        ViolationKind::Broken,
        format!("{doing} of {key} in {family} is wrong"),
    )
}

fn under(snapshot: Option<&Snapshot>) -> &'static str {
    snapshot.map_or("", |_| " under a snapshot")
}

/// Looks once.
pub fn look(
    session: &mut Session,
    held: &mut HeldSnapshots,
    rng: &mut Rng,
) -> Result<(), Violation> {
    let opens = session.opens;
    held.0.retain(|(_, _, of)| *of == opens);
    if rng.one_in(6) {
        held.0.clear();
    }
    if held.0.len() < 2 && rng.one_in(3) {
        let db = session.db().map_err(|e| broken("snapshot", &e))?;
        held.0.push((db.snapshot(), session.state().clone(), opens));
    }
    let state = session.state().clone();
    reads(session, &state, None, rng)?;
    memory(session)?;
    if session.history.settings.has_blobs() {
        blob_files(session)?;
    }
    for (snapshot, state, _) in &held.0 {
        reads(session, state, Some(snapshot), rng)?;
    }
    Ok(())
}

/// What tables refer to is what blob files hold beside their garbage, and groups are of levels that
/// the tree has. Looked at again where a job ended meanwhile.
fn blob_files(session: &mut Session) -> Result<(), Violation> {
    let families: Vec<_> = session.handles().clone().into_iter().collect();
    let db = session.db().map_err(|e| broken("blob files", &e))?.clone();
    for (name, handle) in &families {
        for _ in 0..4 {
            let before = db.family_metadata(handle).blob_files;
            let refs = blob_refs(&db, handle).map_err(|e| broken("table properties", &e))?;
            let meta = db.family_metadata(handle);
            if before != meta.blob_files {
                continue;
            }
            let levels = meta.levels.len();
            for b in &before {
                let live = refs.of(FileNo(b.number));
                let left = (
                    b.total_count - b.garbage_count,
                    b.total_bytes - b.garbage_bytes,
                );
                let exists = b.group_level.is_none_or(|l| usize::from(l) < levels);
                if left != (live.count, live.bytes) || !exists {
                    let text = format!("blob file {b:?} of {name}, with {live:?} in use");
                    return Err(violation(ViolationKind::Broken, text));
                }
            }
            break;
        }
    }
    Ok(())
}

/// The references of all tables of a family.
fn blob_refs(db: &Db, family: &FamilyHandle) -> Result<BlobRefs> {
    let mut all = BlobRefs::default();
    for table in db.properties_of_all_tables(family)?.values() {
        if let Some(refs) = table.user_collected.get(PROPERTY.as_bytes()) {
            all.add_all(&BlobRefs::decode(refs)?);
        }
    }
    Ok(all)
}

/// A memory budget looks, and what all parts may take is within its number. Where nothing changed
/// meanwhile it is all of it: nothing is counted twice.
fn memory(session: &mut Session) -> Result<(), Violation> {
    let db = session.db().map_err(|e| broken("memory", &e))?;
    let Some(budget) = db.memory_budget() else {
        return Ok(());
    };
    let others = || {
        let readers = db.aggregated_int_property("rocksdb.estimate-table-readers-mem");
        let readers = usize::try_from(readers.unwrap_or(0)).unwrap_or(usize::MAX);
        readers.saturating_add(budget.cache().overhead())
    };
    // Jobs open and close tables meanwhile: what is there before and after counts, and a part that
    // changed in between is not there again and again.
    let mut parts = None;
    for _ in 0..4 {
        let before = others();
        budget.balance();
        let after = others();
        let state = budget.state();
        // The tables of a cache of the application are not to be seen from here.
        let others = match state.given {
            0 => after.min(before),
            _ => state.others.max(after.min(before)),
        };
        let cache = budget.cache().capacity().saturating_add(state.given);
        let memtables = budget.buffers().buffer_size();
        let sum = cache.saturating_add(memtables).saturating_add(others);
        let is_still = before == after && state.memtables_used <= memtables;
        if sum == budget.total() || (sum < budget.total() && !is_still) {
            return Ok(());
        }
        parts = Some(format!("{cache} + {memtables} + {others}"));
    }
    let (parts, number) = (parts.unwrap_or_default(), budget.total());
    Err(violation(
        ViolationKind::Broken,
        format!("the parts of the memory budget are {parts}, which is not {number}"),
    ))
}

fn reads(
    session: &mut Session,
    state: &State,
    snapshot: Option<&Snapshot>,
    rng: &mut Rng,
) -> Result<(), Violation> {
    let prefixes = session.history.settings.has_prefixes();
    let families: Vec<_> = session.handles().clone().into_iter().collect();
    let db = session.db().map_err(|e| broken("read", &e))?.clone();
    for (name, handle) in &families {
        if snapshot.is_some() && !state.families.contains_key(name) {
            continue;
        }
        let map = state.entries(name);
        let keys: Vec<_> = map.keys().cloned().chain([session.key_beside()]).collect();
        for key in keys {
            let found = db.get_opt(handle, &key, &ReadOptions::default(), snapshot);
            let found = found.map_err(|e| broken("get", &e))?;
            if found.as_deref() != map.get(&key).map(Vec::as_slice) {
                let told = |v: &[u8]| v.escape_ascii().to_string();
                let text = format!(
                    "get of {} in {name} gives {:?} and not {:?}{}",
                    told(&key),
                    found.as_deref().map(told),
                    map.get(&key).map(|v| told(v)),
                    under(snapshot)
                );
                return Err(violation(ViolationKind::Broken, text));
            }
        }
        several_keys(&db, handle, map, session.key_beside(), snapshot, rng)
            .map_err(|e| broken("multi_get", &e))?
            .map_or(Ok(()), |key| {
                Err(wrong(&format!("multi_get{}", under(snapshot)), name, &key))
            })?;
        let key = session.key_beside();
        let mut options = ReadOptions::default();
        options.prefix_same_as_start = prefixes && rng.one_in(2);
        options.total_order_seek = !options.prefix_same_as_start;
        options.async_io = rng.one_in(2);
        if session.history.settings.has_blobs() {
            options.allow_unprepared_value = rng.one_in(2);
            options.readahead_size = *rng.pick(&[0, 0, 50, 1000]);
            options.fill_cache = rng.one_in(2);
        }
        let by_prefix = options.prefix_same_as_start;
        let mut it = db.iter_opt(handle, options, snapshot);
        if !forward(&mut it, map, &key, by_prefix).map_err(|e| broken("seek", &e))? {
            let how = if by_prefix { " by prefix" } else { "" };
            let doing = format!("seek{how}{}", under(snapshot));
            return Err(wrong(&doing, name, &key));
        }
        if !by_prefix && !turn(&mut it, map).map_err(|e| broken("turn", &e))? {
            return Err(wrong("step back", name, &key));
        }
        if !by_prefix && !backward(&mut it, map, &key).map_err(|e| broken("seek", &e))? {
            return Err(wrong("seek back", name, &key));
        }
    }
    Ok(())
}

/// Reads many keys at once; the first for which that gives something else than `map`.
fn several_keys(
    db: &Db,
    handle: &FamilyHandle,
    map: &Map,
    beside: Vec<u8>,
    snapshot: Option<&Snapshot>,
    rng: &mut Rng,
) -> Result<Option<Vec<u8>>> {
    let mut options = ReadOptions::default();
    options.async_io = rng.one_in(2);
    options.fill_cache = rng.one_in(2);
    let keys: Vec<_> = map.keys().cloned().chain([beside]).collect();
    let found = db.multi_get_opt(handle, &keys, &options, snapshot);
    for (key, found) in keys.into_iter().zip(found) {
        if found?.as_deref() != map.get(&key).map(Vec::as_slice) {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// How many entries a seek looks at.
const FAR: usize = 12;

fn forward(it: &mut DbIterator, map: &Map, key: &[u8], by_prefix: bool) -> Result<bool> {
    let inside = |k: &[u8]| !by_prefix || k.get(..3) == key.get(..3);
    it.seek(key);
    for (k, v) in map.range(key.to_vec()..).take(FAR) {
        if !inside(k) {
            break;
        }
        it.prepare_value();
        if it.entry() != Some((k.as_slice(), v.as_slice())) {
            return it.status().map(|()| false);
        }
        it.next();
    }
    let more = it.entry().is_none_or(|(k, _)| {
        inside(k)
            && map
                .range(key.to_vec()..)
                .nth(FAR)
                .is_some_and(|(w, _)| w == k)
    });
    it.status().map(|()| more)
}

/// A step back from where the iterator stands.
fn turn(it: &mut DbIterator, map: &Map) -> Result<bool> {
    let Some(at) = it.entry().map(|(key, _)| key.to_vec()) else {
        return Ok(true);
    };
    it.prev();
    it.prepare_value();
    let before = map.range(..at).next_back();
    let is_right = it.entry() == before.map(|(k, v)| (k.as_slice(), v.as_slice()));
    it.status().map(|()| is_right)
}

fn backward(it: &mut DbIterator, map: &Map, key: &[u8]) -> Result<bool> {
    it.seek_for_prev(key);
    for (k, v) in map.range(..=key.to_vec()).rev().take(FAR) {
        it.prepare_value();
        if it.entry() != Some((k.as_slice(), v.as_slice())) {
            return it.status().map(|()| false);
        }
        it.prev();
    }
    it.status().map(|()| true)
}
