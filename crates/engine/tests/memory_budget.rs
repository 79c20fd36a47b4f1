//! One budget of memory: it follows the load from phase to phase, and its number holds.

use esker::{
    BlockCache, CacheOptions, Db, Env, FlushOptions, MemoryBudget, MemoryBudgetOptions, Options,
    Result,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MB: usize = 1 << 20;
const KEYS: u64 = 50_000;
const VALUE: usize = 1_000;
/// Longest time for a phase to show.
const LONGEST: Duration = Duration::from_secs(100);

fn options(change: &[(&str, &str)]) -> Result<Options> {
    let mut options = Options::new()
        .create_if_missing(true)
        .env(Env::in_memory())
        .set("compression", "kNoCompression")?
        .set("filter_policy", "bloomfilter:10:false")?
        .set("info_log_level", "INFO_LEVEL")?;
    for (name, value) in change {
        options = options.set(name, value)?;
    }
    Ok(options)
}

fn number(db: &Db, name: &str) -> usize {
    let sum = db.aggregated_int_property(name).expect("a property");
    usize::try_from(sum).expect("a size")
}

/// Returns the bytes counted for a database, with the cache of its budget.
fn counted(db: &Db, budget: &MemoryBudget) -> usize {
    let cache = budget.cache();
    cache.usage()
        + cache.overhead()
        + number(db, "rocksdb.size-all-mem-tables")
        + number(db, "rocksdb.estimate-table-readers-mem")
}

/// Numbers in no order, from a seed.
struct Random(u64);

impl Random {
    fn key(&mut self) -> [u8; 8] {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % KEYS).to_be_bytes()
    }
}

/// Does `step` until `done`, with a look at the memory now and then.
fn phase(
    db: &Db,
    budget: &MemoryBudget,
    mut step: impl FnMut() -> Result<()>,
    done: impl Fn(&MemoryBudget) -> bool,
) -> Result<()> {
    let begun = Instant::now();
    while !done(budget) {
        for _ in 0..500 {
            step()?;
        }
        budget.balance_if_due();
        // A thirty-second of the memtables' share is written between two looks at it, and arenas
        // grow by a megabyte.
        let most = budget.total() + 2 * MB;
        let counted = counted(db, budget);
        assert!(
            counted <= most,
            "{counted} of {most}\n{}",
            budget.describe()
        );
        assert!(begun.elapsed() < LONGEST, "{}", budget.describe());
    }
    Ok(())
}

#[test]
fn memory_follows_writes_then_reads_then_writes() -> Result<()> {
    let db = Db::open("/db", options(&[("memory_budget", "32m")])?)?;
    let budget = Arc::clone(db.memory_budget().expect("it was set"));
    assert_eq!(budget.total(), 32 * MB);
    budget.set_interval(Duration::from_millis(50));
    let (mut keys, value) = (Random(1), vec![b'v'; VALUE]);
    let mut writes = || {
        let write = || db.put(keys.key(), &value);
        phase(&db, &budget, write, |b| b.state().memtables > 22 * MB)
    };
    writes()?;
    assert!(budget.state().cache < 10 * MB, "{}", budget.describe());
    let mut sought = Random(2);
    let read = || db.get(sought.key()).map(|_| ());
    phase(&db, &budget, read, |b| b.state().cache > 22 * MB)?;
    assert!(budget.state().memtables < 10 * MB, "{}", budget.describe());
    assert!(budget.cache().usage() > 10 * MB, "{}", budget.describe());
    writes()?;
    // Families follow the share of the memtables, in steps of a sixteenth.
    let family = db.default_family_handle();
    let begun = Instant::now();
    loop {
        let wanted = budget.memtable_bytes();
        let has = family.options().write_buffer_size;
        if has.abs_diff(wanted) <= wanted / 8 {
            break;
        }
        assert!(begun.elapsed() < LONGEST, "{has} of {wanted}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let shown = db.property("rocksdb.esker.memory-budget").expect("text");
    for part in [
        "total: 32.0 MB",
        "block caches: ",
        "memtables: ",
        "others: ",
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    assert!(shown.contains("to the memtables: it saves more"), "{shown}");
    Ok(())
}

#[test]
fn databases_share_a_budget() -> Result<()> {
    let budget = MemoryBudget::new(MemoryBudgetOptions::with_total(16 * MB));
    let open = |name: &str| {
        let mut options = options(&[])?;
        options.db.shared_memory_budget = Some(Arc::clone(&budget));
        Db::open(format!("/{name}"), options)
    };
    let (first, second) = (open("first")?, open("second")?);
    for n in 0..20_000u64 {
        first.put(n.to_be_bytes(), vec![b'f'; VALUE])?;
        second.put(n.to_be_bytes(), vec![b's'; VALUE])?;
    }
    // Their memtables count together: neither could hold all of its own.
    assert!(budget.buffers().memory_usage() <= 16 * MB);
    // So one of them is flushed, by a job of its own.
    let begun = Instant::now();
    let tables = |db: &Db| number(db, "rocksdb.live-sst-files-size");
    while tables(&first) + tables(&second) == 0 {
        assert!(begun.elapsed() < LONGEST, "{}", budget.describe());
        std::thread::sleep(Duration::from_millis(1));
    }
    first.flush()?;
    second.flush()?;
    for n in 0..20_000u64 {
        assert!(first.get(n.to_be_bytes())?.is_some());
        assert!(second.get(n.to_be_bytes())?.is_some());
    }
    let both = number(&first, "rocksdb.estimate-table-readers-mem")
        + number(&second, "rocksdb.estimate-table-readers-mem");
    budget.balance();
    assert_eq!(budget.state().readers, both);
    let counted = counted(&first, &budget) + number(&second, "rocksdb.size-all-mem-tables");
    assert!(counted <= 16 * MB, "{}", budget.describe());
    drop(second);
    budget.balance();
    let left = number(&first, "rocksdb.estimate-table-readers-mem");
    assert_eq!(budget.state().readers, left);
    Ok(())
}

#[test]
fn a_fixed_split_stays_as_it_is() -> Result<()> {
    let mut split = MemoryBudgetOptions::with_total(16 * MB);
    split.cache_percent = 25;
    split.is_fixed = true;
    // The options of these names have no effect.
    let mut options = options(&[
        ("memory_budget_cache_percent", "75"),
        ("memory_budget_fixed", "false"),
    ])?;
    options.db.shared_memory_budget = Some(MemoryBudget::new(split));
    let db = Db::open("/db", options)?;
    let budget = db.memory_budget().expect("it was set");
    budget.set_interval(Duration::from_millis(1));
    for n in 0..20_000u64 {
        db.put(n.to_be_bytes(), vec![b'f'; VALUE])?;
        budget.balance_if_due();
    }
    let state = budget.state();
    assert_eq!(state.memtables, 12 * MB, "{state}");
    assert!(state.cache <= 4 * MB, "{state}");
    assert!(state.moves.is_empty() && state.looks > 2, "{state}");
    Ok(())
}

#[test]
fn a_cache_of_the_application_stays_its_own_and_is_bounded() -> Result<()> {
    let own = Arc::new(BlockCache::new(CacheOptions::lru(4 * MB)));
    let mut options = options(&[("memory_budget", "16m")])?;
    options.family.table.block_cache = esker::options::BlockCacheSource::Shared(Arc::clone(&own));
    let db = Db::open("/db", options)?;
    for n in 0..3_000u64 {
        db.put(n.to_be_bytes(), vec![b'f'; VALUE])?;
    }
    db.flush()?;
    for n in 0..3_000u64 {
        db.get(n.to_be_bytes())?;
    }
    assert!(own.usage() > 2 * MB);
    let budget = db.memory_budget().expect("it was set");
    assert_eq!(budget.cache().usage(), 0);
    budget.balance();
    let state = budget.state();
    assert_eq!(state.given, 4 * MB, "{state}");
    assert!(state.cache + state.memtables + state.others <= 16 * MB);
    // It gives way with a smaller budget, and reports what it was given.
    budget.set_total(4 * MB);
    assert!(own.usage() <= budget.state().given, "{}", budget.state());
    assert!(budget.state().given < 3 * MB);
    assert_eq!(own.capacity(), 4 * MB);
    // What left the cache is read again.
    for n in 0..3_000u64 {
        assert!(db.get(n.to_be_bytes())?.is_some());
    }
    assert!(own.usage() <= budget.state().given, "{}", budget.state());
    Ok(())
}

#[test]
fn the_cache_of_a_later_family_is_bounded_at_once() -> Result<()> {
    let db = Db::open("/db", options(&[("memory_budget", "16m")])?)?;
    let budget = db.memory_budget().expect("it was set");
    budget.set_interval(std::time::Duration::from_secs(3600));
    budget.balance_if_due();
    let own = Arc::new(BlockCache::new(CacheOptions::lru(64 * MB)));
    let mut with_cache = options(&[])?.family;
    with_cache.table.block_cache = esker::options::BlockCacheSource::Shared(Arc::clone(&own));
    let looks = budget.state().looks;
    let family = db.create_family("later", with_cache)?;
    let given = budget.state().given;
    assert!(0 < given && given < 16 * MB, "{}", budget.state());
    for n in 0..20_000u64 {
        db.put_cf(&family, n.to_be_bytes(), vec![b'f'; VALUE])?;
    }
    db.flush_cf(&family, &FlushOptions::default())?;
    for n in 0..20_000u64 {
        db.get_cf(&family, n.to_be_bytes())?;
    }
    assert!(own.usage() <= given, "{} of {given}", own.usage());
    assert_eq!(budget.state().looks, looks);
    Ok(())
}

#[test]
fn without_the_option_there_is_no_budget() -> Result<()> {
    let db = Db::open("/db", options(&[])?)?;
    assert!(db.memory_budget().is_none());
    let shown = db.property("rocksdb.esker.memory-budget");
    assert_eq!(shown.as_deref(), Some(""));
    assert_eq!(
        db.default_family_handle().options().write_buffer_size,
        64 * MB
    );
    let wrong = options(&[("memory_budget", "1000")])?;
    assert!(Db::open("/other", wrong).is_err());
    Ok(())
}

#[test]
fn families_to_come_and_reopened_databases_are_within_the_budget() -> Result<()> {
    let dir = tempfile::tempdir().expect("a directory");
    let options = || -> Result<Options> {
        let options = Options::new().create_if_missing(true);
        options.set("memory_budget", "16m")
    };
    let db = Db::open(dir.path(), options()?)?;
    let family = db.create_family("more", esker::FamilyOptions::default())?;
    assert_eq!(family.options().write_buffer_size, 4 * MB);
    db.put_cf(&family, "key", "value")?;
    assert!(db.memory_budget().expect("set").buffers().memory_usage() > 0);
    drop((family, db));
    let loaded = esker::load_latest_options(dir.path(), &Env::posix(), Default::default())?;
    assert_eq!(loaded.db.memory_budget, 16 * MB);
    let read = Db::open_read_only(dir.path(), options()?)?;
    assert!(read.memory_budget().is_none());
    assert_eq!(read.get("none")?, None);
    Ok(())
}
