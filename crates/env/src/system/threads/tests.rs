//! Threads that run one body after the other.

use super::*;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::channel;
use std::thread::ThreadId;

fn threads() -> Arc<ProcessThreads> {
    Arc::new(ProcessThreads::new(std::process::id()))
}

/// Runs `body` to its end on one of the threads.
fn run<T: Send + 'static>(
    threads: &Arc<ProcessThreads>,
    is_patient: bool,
    body: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (told, hears) = channel();
    let body = Box::new(move || told.send(body()).expect("is waited for"));
    let started = threads.spawn("esker-test", is_patient, body);
    started.expect("a thread starts").join();
    hears.recv().expect("was sent")
}

/// Waits until `count` threads of a kind wait.
fn until_idle(threads: &Arc<ProcessThreads>, is_patient: bool, count: usize) {
    for _ in 0..10_000 {
        if threads.idle(is_patient).len() == count {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{count} threads do not become idle");
}

fn own_id() -> ThreadId {
    std::thread::current().id()
}

#[test]
fn a_thread_runs_one_body_after_the_other() {
    let threads = threads();
    let first = run(&threads, false, own_id);
    assert_ne!(first, own_id());
    for _ in 0..5 {
        until_idle(&threads, false, 1);
        assert_eq!(run(&threads, false, own_id), first);
    }
    // A patient thread is another one.
    assert_ne!(run(&threads, true, own_id), first);
    until_idle(&threads, true, 1);
    until_idle(&threads, false, 1);
}

#[test]
fn bodies_at_once_have_threads_of_their_own() {
    let threads = threads();
    let (go_on, goes_on) = channel();
    let waits = Box::new(move || goes_on.recv().expect("is sent"));
    let first = threads.spawn("waits", false, waits).expect("starts");
    run(&threads, false, move || go_on.send(()).expect("is heard"));
    first.join();
    until_idle(&threads, false, 2);
}

#[test]
fn a_panic_is_told_to_the_caller_and_the_thread_lives_on() {
    let threads = threads();
    let first = run(&threads, false, own_id);
    until_idle(&threads, false, 1);
    let panics = threads.spawn("panics", false, Box::new(|| panic!("as ordered")));
    let panics = panics.expect("starts");
    assert!(catch_unwind(AssertUnwindSafe(|| panics.join())).is_err());
    until_idle(&threads, false, 1);
    assert_eq!(run(&threads, false, own_id), first);
}

#[cfg(target_os = "linux")]
#[test]
fn a_body_gives_its_thread_name_and_niceness() {
    use rustix::process::{getpid, getpriority_process};
    let threads = threads();
    let process = getpriority_process(Some(getpid())).expect("known");
    for is_patient in [false, true, false] {
        let (name, nice) = run(&threads, is_patient, || {
            let nice = getpriority_process(None).expect("known");
            (rustix::thread::name().expect("known"), nice)
        });
        assert_eq!(name.to_str(), Ok("esker-test"));
        let nicer = if is_patient { PATIENCE } else { SERVICE };
        assert_eq!(nice, (process + nicer).min(19));
    }
}

#[test]
fn another_process_begins_with_threads_of_its_own() {
    let known = ArcSwapOption::const_empty();
    let own = ProcessThreads::of(&known, 1);
    assert!(Arc::ptr_eq(&own, &ProcessThreads::of(&known, 1)));
    run(&own, false, own_id);
    until_idle(&own, false, 1);
    let child = ProcessThreads::of(&known, 2);
    assert_eq!((child.process, child.service.len()), (2, 0));
    assert!(Arc::ptr_eq(&child, &ProcessThreads::of(&known, 2)));
}

#[test]
fn one_thread_ticks_for_all_until_they_are_dropped() {
    let threads = threads();
    let (ticked, ticks) = channel();
    let ticking: Vec<_> = (0..3)
        .map(|n| {
            let (ticked, own) = (ticked.clone(), Arc::clone(&threads));
            let tick = move || {
                // Those that go have no receiver.
                let _gone = ticked.send((n, own_id()));
                assert_ne!(n, 0, "as ordered");
            };
            let id = threads.add_tick(Arc::new(tick)).expect("ticks");
            TimerTicking { threads: own, id }
        })
        .collect();
    let heard: Vec<_> = (0..6).map(|_| ticks.recv().expect("ticks")).collect();
    assert!(heard.iter().all(|(_, id)| *id == heard[0].1));
    for n in 0..3 {
        assert_eq!(heard.iter().filter(|(m, _)| *m == n).count(), 2);
    }
    drop((ticking, ticked));
    // The thread has another body at last.
    until_idle(&threads, false, 1);
    assert!(!threads.timer.lock().is_running);
    assert!(ticks.recv().is_err());
}

#[test]
fn bodies_take_slots() {
    let threads = threads();
    let (at_once, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (told, hears) = channel();
    for _ in 0..100 {
        let (at_once, most, told) = (Arc::clone(&at_once), Arc::clone(&most), told.clone());
        let body = move |_slot: ThreadSlot| {
            let now = at_once.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(2));
            at_once.fetch_sub(1, Ordering::SeqCst);
            told.send(()).expect("is waited for");
        };
        threads
            .spawn_in_slot("esker-test", Box::new(body))
            .expect("starts");
    }
    (0..100).for_each(|_| hears.recv().expect("all run"));
    assert_eq!(most.load(Ordering::SeqCst), slots());
    let is_over = || threads.soon.lock().running == 0;
    (0..1_000)
        .take_while(|_| !is_over())
        .for_each(|_| std::thread::sleep(Duration::from_millis(1)));
    assert!(is_over());
    assert!(threads.service.len() <= slots());
}

#[test]
fn a_body_without_its_slot_keeps_nobody_waiting() {
    let threads = threads();
    let (told, hears) = channel();
    let (go_on, goes_on) = channel::<()>();
    let goes_on = Arc::new(Mutex::new(Rank::LEAF, goes_on));
    for _ in 0..slots() {
        let (told, goes_on) = (told.clone(), Arc::clone(&goes_on));
        let body = move |slot: ThreadSlot| {
            slot.release();
            let _ended = goes_on.lock().recv();
            told.send(1).expect("is waited for");
        };
        threads
            .spawn_in_slot("esker-test", Box::new(body))
            .expect("starts");
    }
    let last = told.clone();
    let body = move |_slot: ThreadSlot| last.send(2).expect("is waited for");
    threads
        .spawn_in_slot("esker-test", Box::new(body))
        .expect("starts");
    assert_eq!(hears.recv(), Ok(2));
    drop(go_on);
    (0..slots()).for_each(|_| assert_eq!(hears.recv(), Ok(1)));
}

#[test]
fn bodies_that_wait_for_a_later_one_end() {
    let threads = threads();
    let (told, hears) = channel();
    let (go_on, goes_on) = channel::<()>();
    let goes_on = Arc::new(Mutex::new(Rank::LEAF, goes_on));
    for _ in 0..slots() {
        let (told, goes_on) = (told.clone(), Arc::clone(&goes_on));
        let body = move |_slot: ThreadSlot| {
            let _ended = goes_on.lock().recv();
            told.send(()).expect("is waited for");
        };
        threads
            .spawn_in_slot("esker-test", Box::new(body))
            .expect("starts");
    }
    let body = move |_slot: ThreadSlot| drop(go_on);
    threads
        .spawn_in_slot("esker-test", Box::new(body))
        .expect("waits");
    let _ticks = threads.add_tick(Arc::new(|| ())).expect("ticks");
    (0..slots()).for_each(|_| hears.recv().expect("ends"));
}

#[test]
fn a_panic_gives_a_slot_back() {
    let threads = threads();
    let (told, hears) = channel();
    for _ in 0..3 * slots() {
        let told = told.clone();
        let body = move |_slot: ThreadSlot| {
            told.send(()).expect("is waited for");
            resume_unwind(Box::new("on purpose"));
        };
        threads
            .spawn_in_slot("esker-test", Box::new(body))
            .expect("starts");
    }
    (0..3 * slots()).for_each(|_| hears.recv().expect("all run"));
}
