//! Models of the hand-overs between writers: loom runs each in every order of a few threads' steps,
//! up to two or three preemptions of a thread, with every value that a load may see. A thread that
//! nobody wakes is a deadlock, which loom reports. `cargo xtask loom`.
#![cfg(loom)]

use esker_sync::Rank;
use esker_sync::handover::{IdleThreads, InOrder, WaitOutcome, WaitQueue, Waiter};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
use std::time::Duration;

/// Runs a model in all its orders and says how many there were.
fn explore(name: &str, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let runs = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&runs);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        model();
    });
    let runs = runs.load(std::sync::atomic::Ordering::Relaxed);
    println!("loom {name}: {runs} runs");
}

/// A lock like that of the log, and what its holder does.
struct Path {
    lock: AtomicBool,
    queue: WaitQueue<Job>,
    order: InOrder<Vec<Arc<Waiter<Job>>>>,
    /// Under the lock.
    allocated: AtomicUsize,
    /// Jobs that the holders of the lock have done, under the lock.
    logged: AtomicUsize,
}

/// A range and those that are to be told when it is visible.
type Group = (u64, u64, Vec<Arc<Waiter<Job>>>);

#[derive(Default)]
struct Job {
    amount: usize,
    last: u64,
}

impl Path {
    fn new() -> Arc<Self> {
        Arc::new(Path {
            lock: AtomicBool::new(false),
            queue: WaitQueue::new(Rank::LEAF),
            order: InOrder::new(0),
            allocated: AtomicUsize::new(0),
            logged: AtomicUsize::new(0),
        })
    }

    fn try_lock(&self) -> Option<()> {
        let free = self
            .lock
            .compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire);
        free.is_ok().then_some(())
    }

    fn unlock(&self, wake: bool) {
        self.lock.store(false, Ordering::Release);
        self.queue.call_front(wake);
    }

    /// Takes all that queues beside `own`, and numbers it: the range and its followers.
    fn log(&self, own: usize) -> Group {
        let followers = self.queue.take_while(|_| true);
        let first = self.allocated.load(Ordering::Relaxed) + 1;
        let all: usize = followers.iter().map(|f| f.with_job(|j| j.amount)).sum();
        let last = first + own + all - 1;
        self.allocated.store(last, Ordering::Relaxed);
        self.logged.store(
            self.logged.load(Ordering::Relaxed) + own + all,
            Ordering::Relaxed,
        );
        for follower in &followers {
            follower.with_job(|j| j.last = last as u64);
        }
        (first as u64, last as u64, followers)
    }

    fn tell(&self, groups: Vec<Vec<Arc<Waiter<Job>>>>) {
        for follower in groups.into_iter().flatten() {
            let last = follower.with_job(|j| j.last);
            assert!(self.order.published() >= last, "told before it is visible");
            follower.finish();
        }
    }

    /// Publishes a group or leaves it: what a leader has to wait for that `waits`.
    fn publish(
        &self,
        (first, last, mut followers): Group,
        waits: bool,
    ) -> Option<Arc<Waiter<Job>>> {
        if last < first {
            return None;
        }
        if self.order.try_publish(first, last) {
            let ready = self.order.take_ready();
            self.tell(ready);
            self.tell(vec![followers]);
            return None;
        }
        let me = waits.then(|| Waiter::taken(Job { amount: 0, last }));
        followers.extend(me.clone());
        let ready = self.order.leave(first, last, followers);
        self.tell(ready);
        me
    }

    /// A leader's group after the log, and those that queue.
    fn complete(&self, group: Group, waits: bool) {
        self.unlock(false);
        let me = self.publish(group, waits);
        if !self.queue.is_empty() && self.try_lock().is_some() {
            let group = self.log(0);
            self.unlock(false);
            self.publish(group, false);
            self.queue.call_front(true);
        }
        if let Some(me) = me {
            assert!(matches!(me.wait(0, || None::<()>), WaitOutcome::Done));
        }
    }

    /// One write, visible on return.
    fn write(&self, amount: usize) {
        if self.try_lock().is_some() {
            let group = self.log(amount);
            let last = group.1;
            self.complete(group, true);
            assert!(self.order.published() >= last);
            return;
        }
        let own = self.queue.push(Job { amount, last: 0 });
        loop {
            match own.wait(0, || self.try_lock()) {
                WaitOutcome::Done => break,
                WaitOutcome::Work => unreachable!("nothing is offered"),
                WaitOutcome::Lead(()) => {
                    let group = self.log(0);
                    self.complete(group, false);
                }
            }
        }
        let last = own.with_job(|j| j.last);
        assert!(last > 0 && self.order.published() >= last);
    }
}

#[test]
fn writers_form_groups_and_none_is_left_behind() {
    explore("two writers", 3, || {
        let path = Path::new();
        let other = Arc::clone(&path);
        let thread = thread::spawn(move || other.write(2));
        path.write(1);
        thread.join().expect("no panic");
        assert_eq!(path.logged.load(Ordering::Relaxed), 3);
        assert_eq!(path.order.published(), 3);
        assert!(path.queue.is_empty());
    });
}

#[test]
fn three_writers_form_groups() {
    explore("three writers", 1, || {
        let path = Path::new();
        let threads: Vec<_> = (1..3)
            .map(|n| {
                let path = Arc::clone(&path);
                thread::spawn(move || path.write(n))
            })
            .collect();
        path.write(3);
        threads
            .into_iter()
            .for_each(|t| t.join().expect("no panic"));
        assert_eq!(path.order.published(), 6);
    });
}

#[test]
fn administration_calls_who_came_meanwhile() {
    explore("administration", 3, || {
        let path = Path::new();
        assert!(path.try_lock().is_some());
        let other = Arc::clone(&path);
        let thread = thread::spawn(move || other.write(1));
        path.unlock(true);
        thread.join().expect("no panic");
        assert_eq!(path.order.published(), 1);
    });
}

#[test]
fn ranges_are_published_in_order_by_whoever_can() {
    explore("ranges", 2, || {
        let order = Arc::new(InOrder::new(0));
        let told = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..3)
            .map(|n| {
                let (order, told) = (Arc::clone(&order), Arc::clone(&told));
                let publish = move || {
                    let (first, last) = (n * 10 + 1, n * 10 + 10);
                    let ready = if order.try_publish(first, last) {
                        told.fetch_add(1, Ordering::Relaxed);
                        order.take_ready()
                    } else {
                        order.leave(first, last, last)
                    };
                    for last in ready {
                        assert!(order.published() >= last);
                        told.fetch_add(1, Ordering::Relaxed);
                    }
                };
                match n {
                    0 => {
                        publish();
                        None
                    }
                    _ => Some(thread::spawn(publish)),
                }
            })
            .collect();
        order.wait_for(30, 0);
        threads
            .into_iter()
            .flatten()
            .for_each(|t| t.join().expect("no panic"));
        assert_eq!(told.load(Ordering::Relaxed), 3, "each is told once");
    });
}

#[test]
fn an_offered_job_is_done_once() {
    explore("offers", 3, || {
        let queue = Arc::new(WaitQueue::new(Rank::LEAF));
        let done = Arc::new(AtomicUsize::new(0));
        let (other, counted) = (Arc::clone(&queue), Arc::clone(&done));
        let owner = thread::spawn(move || {
            let own = other.push(());
            while let WaitOutcome::Work = own.wait(0, || None::<()>) {
                counted.fetch_add(1, Ordering::Relaxed);
                own.finish();
            }
        });
        let follower = loop {
            match queue.take_while(|()| true).pop() {
                Some(follower) => break follower,
                None => thread::yield_now(),
            }
        };
        follower.offer();
        if follower.claim() {
            done.fetch_add(1, Ordering::Relaxed);
            follower.finish();
        }
        owner.join().expect("no panic");
        assert_eq!(done.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_body_that_is_taken_is_carried_out_once() {
    explore("idle threads", 3, || {
        let idle = Arc::new(IdleThreads::new(1));
        let done = Arc::new(AtomicUsize::new(0));
        let (theirs, counted) = (Arc::clone(&idle), Arc::clone(&done));
        let thread = thread::spawn(move || {
            // Its time is up at once: a body comes before or while it leaves, or not at all.
            while let Some(amount) = theirs.wait(Duration::ZERO, || true) {
                counted.fetch_add(amount, Ordering::Relaxed);
            }
        });
        let other = Arc::clone(&idle);
        let offers = thread::spawn(move || usize::from(other.offer(1).is_ok()));
        let mut taken = if idle.offer(2).is_ok() { 2 } else { 0 };
        taken += offers.join().expect("no panic");
        thread.join().expect("no panic");
        assert_eq!(done.load(Ordering::Relaxed), taken);
    });
}

#[test]
fn no_more_threads_wait_than_may() {
    explore("full list of idle threads", 2, || {
        let idle = Arc::new(IdleThreads::<()>::new(0));
        assert!(idle.wait(Duration::ZERO, || false).is_none());
        assert!(idle.offer(()).is_err());
    });
}
