//! The contents of the block cache over a restart.
//!
//! The names of cached data blocks are saved: tables, and places in them. After the next opening a
//! patient thread reads these blocks again, table by table and by place, as far as the cache has
//! room: nothing leaves for them. It delays nobody: opening does not wait for it, closing waits for
//! the read under way at most, and the rate limiter takes it for a compaction. Failures are told in
//! the LOG and have no other consequence.
//!
//! Callers: [`super::workers`], the facade.

use crate::core::{Core, Phase, UnloadedNames};
use crate::family::Family;
use crate::runtime::IoPriority;
use esker_files::saved_cache;
use esker_files::table::{BlockCache, CachedBlock, LoadedBlocks};
use esker_format::saved_cache::{SavedCache, SavedCacheWriter, SavedTable};
use esker_format::{FamilyId, FileNo};
use esker_status::{Error, ErrorKind, Result};
use esker_sync::Arc;
use std::collections::{BTreeMap, HashMap};

/// Where cached blocks begin, by table.
type Names = BTreeMap<FileNo, Vec<u64>>;

/// Most bytes of a varint.
const VARINT_MAX: usize = 10;

/// Writes the names of what is in the block cache, and of what is still to be loaded into it;
/// returns how many. Once the database closes only the closing thread may.
pub(crate) fn save(core: &Core, is_closing: bool) -> Result<u64> {
    let (services, state) = (&core.services, &core.background.saved_cache);
    let begun = services.env.clock.now_us();
    let _turn = state.lock();
    if core.background.cv.is_closing() && !is_closing {
        return Err(Error::shutdown());
    }
    let live = live_tables(core);
    let mut names = Names::new();
    let bytes = add_cached(&mut names, core, &live);
    add_left(&mut names, core, &live);
    let (content, blocks) = encode(names);
    // A number of its own for the temporary file is not needed: no other is written now.
    saved_cache::write(&*services.env.fs, &services.dir, FileNo(0), &content)?;
    services.info_log.info(format_args!(
        "block cache: saved the names of {blocks} blocks, with {bytes} bytes in the cache, in {} us",
        services.env.clock.now_us().saturating_sub(begun)
    ));
    Ok(blocks)
}

/// [`save`] for a database that closes: nothing is lost when that fails.
pub(crate) fn save_at_close(core: &Core) {
    if core.services.options.load().save_block_cache
        && let Err(e) = save(core, true)
    {
        let log = &core.services.info_log;
        log.warn(format_args!("block cache: its contents are not saved: {e}"));
    }
}

/// The tables of all families, by what their blocks are called in the cache.
fn live_tables(core: &Core) -> HashMap<u64, FileNo> {
    let mut live = HashMap::new();
    for family in core.trees.families.all() {
        for (_, file) in family.view_guard().version.files() {
            live.insert(core.trees.tables.cache_name(file.number), file.number);
        }
    }
    live
}

/// Adds the data blocks of live tables that are cached; returns the bytes that are charged for
/// them.
fn add_cached(names: &mut Names, core: &Core, live: &HashMap<u64, FileNo>) -> usize {
    let mut bytes = 0;
    for cache in caches(core) {
        cache.for_each(|entry| {
            if let CachedBlock::Data(_) = entry.value
                && let Some(number) = live.get(&entry.key.hi)
            {
                names.entry(*number).or_default().push(entry.key.lo);
                bytes += entry.charge;
            }
        });
    }
    bytes
}

/// The block caches of the families, each once.
fn caches(core: &Core) -> Vec<Arc<BlockCache>> {
    let mut found: Vec<Arc<BlockCache>> = Vec::new();
    for family in core.trees.families.all() {
        if let Some(cache) = family.reading.cache()
            && !found.iter().any(|other| Arc::ptr_eq(other, &cache))
        {
            found.push(cache);
        }
    }
    found
}

/// Adds the blocks of live tables that an earlier opening saved and that were not loaded yet.
fn add_left(names: &mut Names, core: &Core, live: &HashMap<u64, FileNo>) {
    let state = &core.background.saved_cache;
    let left = match state.progress().phase {
        // Damage is told by the thread that loads.
        Phase::Waits => read(core).ok().map(|saved| (Arc::new(saved), FileNo(0))),
        _ => state.left(),
    };
    let Some((saved, from)) = left else {
        return;
    };
    let is_left = |table: &SavedTable<'_>| {
        table.number >= from && live.contains_key(&core.trees.tables.cache_name(table.number))
    };
    for table in saved.tables().filter(is_left) {
        let offsets = names.entry(table.number).or_default();
        offsets.extend(table.offsets());
    }
}

/// The contents of the file, and how many blocks it names.
fn encode(names: Names) -> (Vec<u8>, u64) {
    let (mut writer, mut blocks) = (SavedCacheWriter::default(), 0);
    for (number, mut offsets) in names {
        offsets.sort_unstable();
        offsets.dedup();
        let most = VARINT_MAX.saturating_mul(offsets.len() + 3);
        if writer.size().saturating_add(most) <= saved_cache::SIZE_MAX {
            writer.add(number, &offsets);
            blocks += offsets.len() as u64;
        }
    }
    (writer.finish(), blocks)
}

fn read(core: &Core) -> Result<SavedCache> {
    saved_cache::read(&*core.services.env.fs, &core.services.dir)
}

/// Loads what an earlier opening saved, until all is done or the database closes.
pub(crate) fn load(core: &Core) {
    let clock = &core.services.env.clock;
    let begun = clock.now_us();
    let Some((saved, _)) = begin(core) else {
        return;
    };
    let end = load_tables(core, &saved);
    let micros = clock.now_us().saturating_sub(begun);
    let state = &core.background.saved_cache;
    state.note(|p| (p.phase, p.micros) = (end, micros));
    if end == Phase::Loaded {
        state.set_left(None);
    }
    tell(core, end);
}

/// Reads the file; `None` when there is nothing to load.
fn begin(core: &Core) -> Option<UnloadedNames> {
    let (log, state) = (&core.services.info_log, &core.background.saved_cache);
    let _turn = state.lock();
    if core.background.cv.is_closing() {
        return None;
    }
    match read(core) {
        Ok(saved) => {
            let named = saved.blocks();
            let left = (Arc::new(saved), FileNo(0));
            state.set_left(Some(left.clone()));
            state.note(|p| (p.phase, p.named) = (Phase::Loads, named));
            Some(left)
        }
        Err(e) if e.is_not_found() => {
            state.note(|p| p.phase = Phase::Nothing);
            None
        }
        Err(e) => {
            log.warn(format_args!(
                "block cache: its saved contents are left out: {e}"
            ));
            state.note(|p| (p.phase, p.error) = (Phase::Unreadable, Some(e)));
            None
        }
    }
}

/// Loads table after table.
fn load_tables(core: &Core, saved: &Arc<SavedCache>) -> Phase {
    let state = &core.background.saved_cache;
    let families = families_of_tables(core);
    let mut loaded = LoadedBlocks::default();
    for table in saved.tables() {
        if core.background.cv.is_closing() {
            return Phase::Stopped;
        }
        state.set_left(Some((Arc::clone(saved), table.number)));
        let family = families.get(&table.number).copied();
        let outcome = match family.and_then(|id| core.trees.families.get(id)) {
            Some(family) => load_table(core, &family, &table, &mut loaded),
            None => Ok(false),
        };
        state.note(|p| {
            p.loaded = loaded;
            p.tables_gone += u64::from(matches!(outcome, Ok(false)));
        });
        match outcome {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::ShutdownInProgress => return Phase::Stopped,
            Err(e) => state.note(|p| {
                p.tables_failed += 1;
                p.error.get_or_insert(e);
            }),
        }
    }
    Phase::Loaded
}

/// The family of each table. Families may be dropped meanwhile.
fn families_of_tables(core: &Core) -> HashMap<FileNo, FamilyId> {
    let mut found = HashMap::new();
    for family in core.trees.families.all() {
        for (_, file) in family.view_guard().version.files() {
            found.insert(file.number, family.id);
        }
    }
    found
}

/// Loads blocks of one table; false when it is no longer there.
fn load_table(
    core: &Core,
    family: &Family,
    saved: &SavedTable<'_>,
    loaded: &mut LoadedBlocks,
) -> Result<bool> {
    let background = &core.background;
    let found = (family.view_guard().version.find_file(saved.number))
        .map(|(level, file)| (level, Arc::clone(file)));
    let Some((level, file)) = found else {
        return Ok(false);
    };
    let cv = &background.cv;
    let mut patience = |bytes| {
        if cv.is_closing() {
            return Err(Error::shutdown());
        }
        background.limiter.read(bytes, IoPriority::Low, cv)
    };
    let table = core.trees.tables.get(&file, level, &family.reading)?;
    let outcome = (table.reader).load_blocks(saved.offsets(), &mut patience, loaded);
    drop(table);
    // A compaction may have retired it meanwhile.
    drop(file);
    if core.trees.obsolete_files.is_waiting() {
        cv.notify();
    }
    outcome.map(|()| true)
}

/// Writes into the LOG what was done.
fn tell(core: &Core, end: Phase) {
    let p = core.background.saved_cache.progress();
    let log = &core.services.info_log;
    let how = if end == Phase::Stopped {
        ", until the database was closed"
    } else {
        ""
    };
    log.info(format_args!(
        "block cache: loaded {} of {} saved blocks ({} bytes) in {} us{how}; {} had no room or were \
         there, {} are no blocks, {} tables are gone",
        p.loaded.blocks,
        p.named,
        p.loaded.bytes,
        p.micros,
        p.loaded.left_out,
        p.loaded.unknown,
        p.tables_gone,
    ));
    if let Some(e) = &p.error {
        let tables = p.tables_failed;
        log.warn(format_args!(
            "block cache: {tables} tables were left out from a block on; the first: {e}"
        ));
    }
}
