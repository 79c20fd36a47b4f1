//! The budget with members that measure what the tests say.

use super::*;
use crate::memory::buffers::{MemtableBytes, Memtables};
use crate::runtime::BackgroundCv;
use esker_cache::{CacheKey, Priority};
use esker_files::table::CachedBlock;

const MB: usize = 1 << 20;

#[derive(Debug, Default)]
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now_us(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
    fn now_ns(&self) -> u64 {
        self.now_us() * 1000
    }
    fn unix_us(&self) -> u64 {
        self.now_us()
    }
    fn sleep(&self, _duration: Duration) {}
}

#[derive(Debug, Default)]
struct Member {
    readers: AtomicUsize,
    /// Microseconds of compactions a look.
    compacts: AtomicU64,
    compacted: AtomicU64,
    beside: std::sync::Mutex<Vec<Arc<BlockCache>>>,
}

impl BudgetMember for Member {
    fn measure(&self) -> MemberReading {
        let more = self.compacts.load(Ordering::Relaxed);
        let compaction_us = self.compacted.fetch_add(more, Ordering::Relaxed);
        MemberReading {
            work: WorkDone {
                compaction_us,
                ..WorkDone::default()
            },
            table_bytes: 1 << 33,
            readers: self.readers.load(Ordering::Relaxed),
            caches: self.beside.lock().expect("no panic").clone(),
        }
    }
}

struct Rig {
    budget: Arc<MemoryBudget>,
    member: Arc<Member>,
    clock: Arc<Hand>,
}

fn rig(change: impl FnOnce(&mut MemoryBudgetOptions)) -> Rig {
    let mut options = MemoryBudgetOptions::with_total(64 * MB);
    change(&mut options);
    let budget = MemoryBudget::new(options);
    let (member, clock) = (Arc::new(Member::default()), Arc::new(Hand::default()));
    let as_clock: Arc<dyn Clock> = clock.clone();
    budget.join(Arc::downgrade(&member) as _, &as_clock);
    budget.balance();
    Rig {
        budget,
        member,
        clock,
    }
}

impl Rig {
    /// Looks `times` times, a second each, with `reads` of sampled keys out of `keys` before each.
    fn looks(&self, times: usize, keys: u64, reads: u64) {
        let mut n = 7u64;
        for _ in 0..times {
            for _ in 0..reads {
                n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let key = CacheKey::new(3, (n >> 33) % keys);
                if self.budget.cache.is_watched(key) && self.budget.cache.lookup(key).is_none() {
                    let flight = self.budget.cache.begin_read(key);
                    self.clock.0.fetch_add(100, Ordering::Relaxed);
                    let block = CachedBlock::Data(esker_format::block::Block::empty());
                    let kept = self.budget.cache.insert(key, block, 4096, Priority::Low);
                    drop((flight, kept));
                }
            }
            self.clock.0.fetch_add(1_000_000, Ordering::Relaxed);
            self.budget.balance();
            self.check();
        }
    }

    /// All parts together are within the number.
    fn check(&self) {
        let state = self.budget.state();
        let readers = self.member.readers.load(Ordering::Relaxed);
        let cache = self.budget.cache.capacity();
        let all = cache + state.memtables + readers + self.budget.cache.overhead();
        // The ghosts may have grown since the look began.
        assert!(all <= state.total + 512 * 1024, "{state}");
        assert_eq!(cache, state.cache);
        assert_eq!(self.budget.buffers().buffer_size(), state.memtables);
    }
}

#[test]
fn the_number_holds_whatever_open_tables_take() {
    let rig = rig(|_| {});
    for readers in [0, 10, 20, 5, 25, 0] {
        rig.member.readers.store(readers * MB, Ordering::Relaxed);
        rig.looks(2, 1, 0);
        let state = rig.budget.state();
        assert_eq!(state.readers, readers * MB);
        let rest = state.total - state.memtables - readers * MB;
        assert!(state.cache <= rest, "{state}");
        assert!(state.cache + 2 * MB > rest, "{state}");
    }
    // Nothing was read or written: the memtables' share is what it was.
    assert_eq!(rig.budget.state().memtables, 32 * MB);
}

#[test]
fn memtables_beyond_their_share_take_from_the_cache_until_they_are_flushed() {
    let rig = rig(|_| {});
    let before = rig.budget.cache.capacity();
    rig.budget.memtables_take(42 * MB + 1);
    let taken = 10 * MB + STEP;
    assert_eq!(rig.budget.cache.capacity(), before - taken);
    rig.budget.memtables_take(70 * MB);
    assert_eq!(rig.budget.cache.capacity(), 0);
    // The split itself is not changed by that.
    rig.looks(1, 1, 0);
    assert_eq!(rig.budget.state().last.map(|d| d.bytes), Some(0));
    rig.budget.memtables_take(3 * MB);
    assert!(rig.budget.cache.capacity().abs_diff(before) < MB / 2);
}

#[test]
fn memtables_within_their_share_take_nothing_from_the_cache() {
    let rig = rig(|options| options.total += 200 * 1024);
    let (before, share) = (rig.budget.cache.capacity(), rig.budget.state().memtables);
    assert_ne!(
        share % STEP,
        0,
        "a share that is rounded up is above itself"
    );
    rig.budget.memtables_take(share);
    assert_eq!(rig.budget.cache.capacity(), before);
    rig.budget.memtables_take(share + 1);
    assert!(rig.budget.cache.capacity() < before);
}

/// Memtables of so many bytes, which a flush can give back or not.
#[derive(Debug, Default)]
struct FakeMemtables {
    total: AtomicUsize,
    reclaimable: AtomicUsize,
}

impl Memtables for FakeMemtables {
    fn bytes(&self) -> MemtableBytes {
        MemtableBytes {
            total: self.total.load(Ordering::Relaxed),
            reclaimable: self.reclaimable.load(Ordering::Relaxed),
            ..MemtableBytes::default()
        }
    }
    fn largest_data(&self) -> u64 {
        0
    }
}

#[test]
fn writers_of_a_process_wait_where_the_caches_have_nothing_left() {
    for is_of_process in [false, true] {
        let rig = rig(|options| options.is_of_process = is_of_process);
        let memtables = Arc::new(FakeMemtables::default());
        let cv = Arc::new(BackgroundCv::default());
        let buffers = rig.budget.buffers();
        let part = WriteBufferManager::join(buffers, Arc::downgrade(&memtables) as _, &cv);
        let holds = |total: usize, reclaimable: usize| {
            memtables.total.store(total * MB, Ordering::Relaxed);
            memtables
                .reclaimable
                .store(reclaimable * MB, Ordering::Relaxed);
            part.freed();
            part.must_stall()
        };
        assert!(!holds(0, 0));
        assert!(!holds(50, 50), "the caches have what is missing");
        assert_eq!(holds(62, 62), is_of_process);
        assert!(!holds(62, 20), "no flush can change it");
        rig.member.readers.store(20 * MB, Ordering::Relaxed);
        rig.looks(1, 1, 0);
        assert_eq!(holds(45, 45), is_of_process, "others have the rest");
        assert!(!holds(30, 30));
    }
}

#[test]
fn memory_follows_the_load() {
    let rig = rig(|_| {});
    // 14,000 blocks of 4 KB do not fit into 32 MB.
    rig.looks(12, 14_000, 100_000);
    let reading = rig.budget.state();
    assert!(reading.cache > 50 * MB, "{reading}");
    assert!(reading.miss_us >= 100.0, "{reading}");
    rig.member.compacts.store(500_000, Ordering::Relaxed);
    rig.looks(40, 1, 0);
    let writing = rig.budget.state();
    assert!(writing.memtables > 50 * MB, "{writing}");
    assert_eq!(writing.moves.len(), MOVES_KEPT);
    assert!(
        rig.budget.describe().contains("to the memtables"),
        "{writing}"
    );
    // At rest nothing moves.
    rig.member.compacts.store(0, Ordering::Relaxed);
    rig.looks(40, 1, 0);
    let rested = rig.budget.state();
    rig.looks(10, 1, 0);
    assert_eq!(rig.budget.state().memtables, rested.memtables);
}

#[test]
fn a_fixed_split_stays() {
    let rig = rig(|o| {
        o.is_fixed = true;
        o.cache_percent = 25;
    });
    rig.member.compacts.store(500_000, Ordering::Relaxed);
    rig.looks(10, 12_000, 50_000);
    let state = rig.budget.state();
    assert_eq!(state.memtables, 48 * MB);
    assert_eq!(state.last.map(|d| d.reason), Some(BudgetReason::Fixed));
    // What others take comes out of the cache.
    rig.member.readers.store(6 * MB, Ordering::Relaxed);
    rig.looks(1, 1, 0);
    assert!(rig.budget.state().cache < 10 * MB);
}

#[test]
fn minimums_are_kept_and_those_that_exceed_half_are_cut() {
    let rig = rig(|o| {
        o.memtables_min = 20 * MB;
        o.cache_min = 1 << 40;
    });
    rig.looks(20, 12_000, 100_000);
    // Reads would take more.
    assert_eq!(rig.budget.state().memtables, 20 * MB);
    let minimums = rig.budget.options.minimums(64 * MB);
    assert_eq!(minimums, (32 * MB, 20 * MB));
}

fn cache_of(megabytes: usize, is_strict: bool) -> Arc<BlockCache> {
    Arc::new(BlockCache::new(CacheOptions {
        strict_capacity_limit: is_strict,
        ..CacheOptions::with_capacity(megabytes * MB)
    }))
}

impl Rig {
    /// Looks once with these caches in use.
    fn look_with(&self, caches: &[&Arc<BlockCache>]) -> BudgetState {
        *self.member.beside.lock().expect("no panic") =
            caches.iter().map(|c| Arc::clone(c)).collect();
        self.clock.0.fetch_add(1_000_000, Ordering::Relaxed);
        self.budget.balance();
        self.budget.state()
    }
}

#[test]
fn caches_of_the_application_share_what_is_there_and_report_what_they_were_given() {
    let rig = rig(|o| o.is_fixed = true);
    let (small, large) = (cache_of(4, false), cache_of(1000, false));
    let own = Arc::clone(rig.budget.cache());
    let state = rig.look_with(&[&small, &large, &own, &small]);
    // 32 MB less what the caches take themselves; the small one takes 4 of them.
    assert_eq!(small.bound(), 4 * MB);
    let rest = state.cache - 4 * MB;
    assert_eq!(large.bound(), rest / 2);
    assert_eq!(own.capacity(), rest - rest / 2);
    assert_eq!(state.given, 4 * MB + rest / 2);
    assert_eq!((small.capacity(), large.capacity()), (4 * MB, 1000 * MB));
    // Without a family that uses it the budget's own has what the others leave.
    let state = rig.look_with(&[&small, &large]);
    assert_eq!(large.bound(), state.cache - 4 * MB);
    assert_eq!(own.capacity(), 0);
    // Memtables beyond their share take from all of them.
    rig.budget.memtables_take(42 * MB);
    assert_eq!(large.bound(), state.cache - 14 * MB);
    // A cache that nobody uses any more has its capacity again.
    rig.look_with(&[&small]);
    assert_eq!(large.bound(), usize::MAX);
    drop(own);
    drop(rig);
    assert_eq!(small.bound(), usize::MAX);
}

#[test]
fn a_bounded_cache_holds_no_more_than_its_part() {
    let rig = rig(|o| o.is_fixed = true);
    let large = cache_of(1000, false);
    rig.look_with(&[&large]);
    for n in 0..1000 {
        let block = CachedBlock::Data(esker_format::block::Block::empty());
        let kept = large.insert(CacheKey::new(1, n), block, 100 << 10, Priority::Low);
        assert!(kept.is_ok());
    }
    assert!(large.usage() <= large.bound() && large.bound() <= 32 * MB);
    assert!(large.usage() > 20 * MB);
}

#[test]
fn a_cache_with_a_strict_limit_keeps_it_and_counts_once() {
    let rig = rig(|_| {});
    let strict = cache_of(8, true);
    let block = CachedBlock::Data(esker_format::block::Block::empty());
    let kept = strict.insert(CacheKey::new(1, 1), block, MB, Priority::Low);
    assert!(kept.is_ok());
    let state = rig.look_with(&[&strict, &strict]);
    assert!((MB..3 * MB).contains(&state.others), "{state}");
    assert_eq!((strict.bound(), state.given), (usize::MAX, 0));
}

#[test]
fn reads_of_a_cache_of_the_application_price_it() {
    let rig = rig(|_| {});
    let given = cache_of(1000, false);
    rig.look_with(&[&given]);
    let mut n = 7u64;
    for _ in 0..12 {
        for _ in 0..100_000 {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = CacheKey::new(3, (n >> 33) % 14_000);
            if given.is_watched(key) && given.lookup(key).is_none() {
                let flight = given.begin_read(key);
                rig.clock.0.fetch_add(100, Ordering::Relaxed);
                let block = CachedBlock::Data(esker_format::block::Block::empty());
                let kept = given.insert(key, block, 4096, Priority::Low);
                drop((flight, kept));
            }
        }
        rig.look_with(&[&given]);
    }
    let state = rig.budget.state();
    assert!(state.given > 50 * MB, "{state}");
}

#[derive(Debug)]
struct Outside(AtomicUsize);

impl BudgetSource for Outside {
    fn total(&self) -> Option<usize> {
        Some(self.0.load(Ordering::Relaxed)).filter(|total| *total > 0)
    }
}

#[test]
fn the_total_follows_its_source_once_a_minute() {
    let outside = Arc::new(Outside(AtomicUsize::new(32 * MB)));
    let source = Arc::clone(&outside);
    let rig = rig(|o| o.source = Some(source));
    let look_at = |second: u64| {
        rig.clock.0.store(second * 1_000_000, Ordering::Relaxed);
        rig.budget.balance_if_due();
        rig.check();
        let state = rig.budget.state();
        assert_eq!(state.total, rig.budget.total());
        (state.total / MB, state.memtables / MB)
    };
    assert_eq!(look_at(59), (64, 32));
    assert_eq!(look_at(61), (32, 16));
    outside.0.store(128 * MB, Ordering::Relaxed);
    assert_eq!(look_at(90), (32, 16));
    assert_eq!(look_at(122), (128, 64));
    // A source that cannot be read changes nothing.
    outside.0.store(0, Ordering::Relaxed);
    assert_eq!(look_at(200), (128, 64));
}

#[test]
fn one_thread_looks_when_it_is_time_to() {
    let rig = rig(|_| {});
    rig.budget.set_interval(Duration::from_millis(100));
    let looked = |at_ms: u64| {
        rig.clock.0.store(at_ms * 1000, Ordering::Relaxed);
        let before = rig.budget.state().looks;
        rig.budget.balance_if_due();
        rig.budget.state().looks > before
    };
    assert!(looked(1000));
    assert!(!looked(1050));
    assert!(looked(1101));
    assert!(!looked(1180));
    rig.budget.members.lock().clear();
    assert!(looked(1300), "without members, too");
    rig.budget.set_interval(Duration::from_secs(100));
    assert!(looked(1400));
    assert!(!looked(1402));
    rig.budget.set_interval(Duration::from_millis(1));
    assert!(looked(1404), "a shorter interval counts at once");
}
