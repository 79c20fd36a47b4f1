//! Limits that databases share: memory of memtables, and bytes a second of background jobs.

use esker::env::Clock;
use esker::{
    BlockCache, CacheOptions, CachedBlock, Db, Env, ErrorKind, IoPriority, MemoryUsage, Options,
    RateLimiter, RateLimiterMode, RateLimiterOptions, Result, WriteBufferManager, WriteOptions,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn open(name: &str, buffers: &Arc<WriteBufferManager>) -> Result<Db> {
    let mut options = Options::new()
        .create_if_missing(true)
        .env(Env::in_memory())
        .set("compression", "kNoCompression")?;
    options.db.write_buffer_manager = Some(Arc::clone(buffers));
    Db::open(format!("/{name}"), options)
}

fn flushes(db: &Db) -> u64 {
    db.property("rocksdb.num-files-at-level0")
        .expect("a property")
        .parse()
        .expect("a number")
}

fn entries(db: &Db) -> u64 {
    db.property("rocksdb.num-entries-active-mem-table")
        .expect("a property")
        .parse()
        .expect("a number")
}

#[test]
fn an_idle_database_gives_its_memory_to_a_busy_one() -> Result<()> {
    let buffers = WriteBufferManager::new(4 << 20, false);
    assert!(buffers.is_enabled() && !buffers.cost_to_cache());
    assert_eq!(buffers.buffer_size(), 4 << 20);
    let (idle, busy) = (open("idle", &buffers)?, open("busy", &buffers)?);
    for n in 0..2000u32 {
        idle.put(format!("{n}"), vec![b'i'; 1000])?;
    }
    assert!(entries(&idle) == 2000 && flushes(&idle) == 0);
    assert!(buffers.memory_usage() >= 2_000_000);
    assert!(buffers.mutable_memtable_memory_usage() <= buffers.memory_usage());
    for n in 0..2500u32 {
        busy.put(format!("{n}"), vec![b'b'; 1000])?;
    }
    // The idle database has the largest memtable: its own threads flush it.
    for _ in 0..3000 {
        if flushes(&idle) > 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!((entries(&idle), flushes(&idle)), (0, 1));
    idle.close()?;
    drop(idle);
    busy.flush()?;
    assert!(
        buffers.memory_usage() < 2 << 20,
        "{}",
        buffers.memory_usage()
    );
    drop(busy);
    assert_eq!(buffers.memory_usage(), 0);
    Ok(())
}

/// The expected counts are RocksDB's own, from the tables of a run with one writer, keys of 16
/// bytes and no log.
#[test]
fn a_write_buffer_takes_as_many_entries_as_rocksdbs() -> Result<()> {
    let mut unlogged = WriteOptions::default();
    unlogged.disable_wal = true;
    for (buffer, value, expected) in [
        (4 << 20, 3, 83_500),
        (4 << 20, 20, 63_000),
        (4 << 20, 100, 27_800),
        (4 << 20, 1000, 3_940),
        (102_400, 3, 1_930),
        (102_400, 100, 657),
    ] {
        for in_order in [true, false] {
            let options = Options::new()
                .create_if_missing(true)
                .env(Env::in_memory())
                .set("write_buffer_size", &buffer.to_string())?;
            let db = Db::open("/db", options)?;
            let (mut n, mut held) = (0u64, 0);
            loop {
                let scattered = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 12;
                let key = if in_order { n } else { scattered };
                db.put_opt(
                    &db.default_family_handle(),
                    format!("{key:016}"),
                    vec![b'x'; value],
                    &unlogged,
                )?;
                n += 1;
                let now = entries(&db);
                if now < held {
                    break;
                }
                held = now;
            }
            assert!(
                held * 10 > expected * 9 && held * 10 < expected * 11,
                "{buffer} bytes, values of {value}: {held} entries, RocksDB {expected}"
            );
        }
    }
    Ok(())
}

#[test]
fn memtables_are_charged_to_the_cache() -> Result<()> {
    let cache = Arc::new(BlockCache::new(CacheOptions::with_capacity(8 << 20)));
    let buffers = WriteBufferManager::with_cache(4 << 20, Arc::clone(&cache), false);
    assert!(buffers.cost_to_cache());
    let db = open("db", &buffers)?;
    for n in 0..3000u32 {
        db.put(format!("{n}"), vec![b'x'; 1000])?;
    }
    let charged = buffers.dummy_entries_in_cache_usage();
    assert!(
        charged >= 2 << 20 && charged.is_multiple_of(256 << 10),
        "{charged}"
    );
    assert!(cache.usage() >= charged && cache.pinned_usage() >= charged);
    let usage = MemoryUsage::of(&[&db], &[&cache, &cache]);
    let blocks = cache.memory(CachedBlock::memory) + cache.reserved();
    assert_eq!(usage.cache_total, blocks as u64);
    assert!(usage.cache_total >= cache.usage() as u64);
    assert!(usage.mem_table_total >= 2_000_000);
    db.flush()?;
    assert!(buffers.dummy_entries_in_cache_usage() < charged);
    drop(db);
    assert_eq!(
        (buffers.dummy_entries_in_cache_usage(), cache.pinned_usage()),
        (0, 0)
    );
    Ok(())
}

#[test]
fn writers_stall_until_memory_is_free() -> Result<()> {
    let buffers = WriteBufferManager::new(1 << 20, true);
    let db = open("db", &buffers)?;
    db.pause_background_work()?;
    let family = db.default_family_handle();
    let mut impatient = WriteOptions::default();
    impatient.no_slowdown = true;
    let mut refused = None;
    for n in 0..5000u32 {
        if let Err(e) = db.put_opt(&family, format!("{n}"), vec![b'x'; 1000], &impatient) {
            refused = Some((n, e));
            break;
        }
    }
    let (n, error) = refused.expect("the limit holds");
    assert_eq!(error.kind(), ErrorKind::Incomplete);
    assert!((400..2500).contains(&n), "{n}");
    std::thread::scope(|scope| -> Result<()> {
        let writer = scope.spawn(|| db.put("patient", "1"));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!writer.is_finished());
        db.continue_background_work();
        writer.join().expect("no panic")
    })?;
    assert_eq!(db.get("patient")?.as_deref(), Some(&b"1"[..]));
    buffers.set_allow_stall(false);
    buffers.set_buffer_size(64 << 20);
    db.put_opt(&family, "more", "2", &impatient)?;
    Ok(())
}

/// A clock on which sleeping is what makes time pass.
#[derive(Debug, Default)]
struct Virtual(AtomicU64);

impl Clock for Virtual {
    fn now_us(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
    fn now_ns(&self) -> u64 {
        self.now_us() * 1000
    }
    fn unix_us(&self) -> u64 {
        self.now_us()
    }
    fn sleep(&self, duration: Duration) {
        self.0
            .fetch_add(duration.as_micros() as u64, Ordering::SeqCst);
    }
}

#[test]
fn one_rate_limits_several_databases() -> Result<()> {
    let clock = Arc::new(Virtual::default());
    let mut how = RateLimiterOptions::default();
    how.bytes_per_second = 1 << 20;
    how.clock = Some(clock.clone());
    let limiter = RateLimiter::with_options(how);
    assert_eq!(limiter.mode(), RateLimiterMode::WritesOnly);
    assert_eq!(limiter.single_burst_bytes(), (1 << 20) / 10);
    let open = |name: &str| -> Result<Db> {
        let mut options = Options::new()
            .create_if_missing(true)
            .env(Env::in_memory())
            .set("compression", "kNoCompression")?;
        options.db.rate_limiter = Some(Arc::clone(&limiter));
        Db::open(name, options)
    };
    for name in ["/a", "/b"] {
        let db = open(name)?;
        for n in 0..3000u32 {
            db.put(format!("{n:05}"), vec![b'x'; 1000])?;
        }
        db.flush()?;
        db.compact_range(None, None)?;
    }
    let bytes = limiter.total_bytes(None);
    assert!(
        limiter.total_bytes(Some(IoPriority::High)) >= 6_000_000,
        "flushes"
    );
    assert!(limiter.total_requests(None) >= 4);
    let seconds = clock.now_us() as f64 / 1e6;
    let rate = bytes as f64 / seconds.max(1e-9);
    assert!(
        rate < 1.2 * f64::from(1 << 20),
        "{bytes} bytes in {seconds} s"
    );
    limiter.set_bytes_per_second(5 << 20);
    assert_eq!(limiter.bytes_per_second(), 5 << 20);
    Ok(())
}

#[test]
fn compactions_pay_for_what_they_read_where_reads_are_limited() -> Result<()> {
    let mut how = RateLimiterOptions::default();
    how.bytes_per_second = 100 << 20;
    how.mode = RateLimiterMode::ReadsOnly;
    how.clock = Some(Arc::new(Virtual::default()));
    let limiter = RateLimiter::with_options(how);
    let mut options = Options::new().create_if_missing(true).env(Env::in_memory());
    options.db.rate_limiter = Some(Arc::clone(&limiter));
    let db = Db::open("/db", options)?;
    for turn in 0..2u32 {
        for n in 0..500u32 {
            db.put(format!("{n:05}"), vec![turn as u8; 1000])?;
        }
        db.flush()?;
    }
    assert_eq!(limiter.total_bytes(None), 0, "flushes read nothing");
    db.compact_range(None, None)?;
    assert!(limiter.total_bytes(Some(IoPriority::Low)) > 0);
    Ok(())
}

/// A step wrote 1,024 entries between two payments, which may be a gigabyte.
#[test]
fn large_values_pay_the_rate_limiter_as_they_are_written() -> Result<()> {
    let mut how = RateLimiterOptions::default();
    how.bytes_per_second = 1 << 30;
    how.clock = Some(Arc::new(Virtual::default()));
    let limiter = RateLimiter::with_options(how);
    let mut options = Options::new()
        .create_if_missing(true)
        .env(Env::in_memory())
        .set("compression", "kNoCompression")?;
    options.db.rate_limiter = Some(Arc::clone(&limiter));
    let db = Db::open("/db", options)?;
    for n in 0..200u32 {
        db.put(format!("{n:05}"), vec![b'x'; 100_000])?;
    }
    db.flush()?;
    // 20 MB, a megabyte and a quarter at a time.
    let requests = limiter.total_requests(Some(IoPriority::High));
    assert!(requests >= 16, "{requests}");
    Ok(())
}
