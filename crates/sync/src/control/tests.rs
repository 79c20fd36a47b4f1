//! Tests of threads under control.

use super::{Schedule, sleep, thread};
use crate::{Condvar, Mutex, Rank, RwLock};
use std::sync::Arc;
use std::time::Duration;

const A: Rank = Rank::new(1, "a");
const B: Rank = Rank::new(2, "b");

/// Three threads write their names into a list under two locks; the list, and the run's
/// fingerprint.
fn race(seed: u64) -> (Vec<u32>, u64) {
    let schedule = Schedule::new(seed);
    let list = schedule.run(|| {
        let list = Arc::new((Mutex::new(A, Vec::new()), RwLock::new(B, 0u32)));
        let threads: Vec<_> = (0..3u32)
            .map(|name| {
                let list = Arc::clone(&list);
                let work = move || {
                    for _ in 0..10 {
                        let mut names = list.0.lock();
                        let before = *list.1.read();
                        thread::yield_now();
                        *list.1.write() = before + 1;
                        names.push(name);
                    }
                };
                schedule.spawn("racer", work).expect("a thread starts")
            })
            .collect();
        threads.into_iter().for_each(super::MemberHandle::join);
        assert_eq!(*list.1.read(), 30, "the outer lock keeps the others out");
        let names = list.0.lock();
        names.clone()
    });
    (list, schedule.fingerprint())
}

#[test]
fn a_seed_decides_everything() {
    let mut orders = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let (first, again) = (race(seed), race(seed));
        assert_eq!(first, again, "seed {seed}");
        orders.insert(first.0);
    }
    assert!(orders.len() > 15, "seeds give {} orders", orders.len());
}

#[test]
fn conditions_and_limits_follow_the_clock_of_the_run() {
    for seed in 0..50 {
        let schedule = Schedule::new(seed);
        schedule.run(|| {
            let shared = Arc::new((Mutex::new(A, 0u32), Condvar::new()));
            let begin = schedule.now_ns();
            let mut value = shared.0.lock();
            assert!(shared.1.wait_for(&mut value, Duration::from_secs(3600)));
            assert!(schedule.now_ns() - begin >= 3_600_000_000_000);
            drop(value);

            let other = Arc::clone(&shared);
            let waker = schedule
                .spawn("waker", move || {
                    assert!(sleep(Duration::from_secs(5)));
                    *other.0.lock() = 7;
                    other.1.notify_one();
                })
                .expect("a thread starts");
            let mut value = shared.0.lock();
            while *value == 0 {
                shared.1.wait(&mut value);
            }
            assert_eq!(*value, 7);
            drop(value);
            waker.join();
        });
    }
}

#[test]
fn parked_threads_are_woken_and_wake_in_time() {
    for seed in 0..50 {
        let schedule = Schedule::new(seed);
        schedule.run(|| {
            let main = thread::current();
            let waker = schedule.spawn("waker", move || main.unpark());
            let begin = schedule.now_ns();
            thread::park_timeout(Duration::from_secs(100));
            assert!(schedule.now_ns() - begin < 1_000_000_000, "it was woken");
            waker.expect("a thread starts").join();
            thread::park_timeout(Duration::from_secs(100));
            assert!(
                schedule.now_ns() - begin >= 100_000_000_000,
                "nobody wakes it"
            );
        });
    }
}

#[test]
fn threads_without_a_schedule_are_left_alone() {
    assert!(!sleep(Duration::from_secs(3600)));
    let lock = Mutex::new(A, 1);
    assert_eq!(*lock.lock(), 1);
}

#[test]
fn a_panic_of_a_thread_reaches_who_waits_for_it() {
    let schedule = Schedule::new(1);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        schedule.run(|| {
            let broken = schedule.spawn("broken", || panic!("as it should"));
            broken.expect("a thread starts").join();
        });
    }));
    assert!(caught.is_err());
}

/// A thread waits for a word that never comes, while another one wakes up every second: that is no
/// deadlock, and it went on for ever.
#[test]
fn a_run_without_progress_ends_and_says_who_waits() {
    const NAME: &str = "ESKER_TEST_STUCK";
    if std::env::var_os(NAME).is_some() {
        super::on_stuck(|picture| {
            println!("{picture}");
            std::process::exit(7);
        });
        let schedule = Schedule::new(3).limited(Duration::from_secs(60), 1_000_000);
        return schedule.run(|| {
            let clock = || while sleep(Duration::from_secs(1)) {};
            let _clock = schedule.spawn("clock", clock);
            let (lock, word) = (Mutex::new(A, ()), Condvar::new());
            word.wait(&mut lock.lock());
        });
    }
    let this = "control::tests::a_run_without_progress_ends_and_says_who_waits";
    let program = std::env::current_exe().expect("this program");
    let mut child = std::process::Command::new(program);
    let out = child.args(["--exact", this, "--nocapture"]).env(NAME, "1");
    let out = out.output().expect("it runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(7), "{text}");
    assert!(text.contains("no progress after"), "{text}");
    assert!(text.contains("main: Waiting"), "{text}");
}
