//! Futures of `esker::futures`: ready at once where memory is enough, whole writes, no missed
//! entries, wherever they are dropped.
#![cfg(feature = "async")]

use esker::futures::AsyncDb;
use esker::{Db, Options, Result, WriteBatch};
use pollster::block_on;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn opened(dir: &TempDir) -> Result<AsyncDb> {
    let options = Options::new().create_if_missing(true);
    Ok(AsyncDb::new(Db::open(dir.path(), options)?))
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A database whose key `cold` is in a table that no cache has.
fn with_cold_key(dir: &TempDir) -> Result<AsyncDb> {
    let db = opened(dir)?;
    block_on(db.put("cold", "value"))?;
    block_on(db.flush())?;
    drop(db);
    opened(dir)
}

/// Waits until `is_so`.
fn until(mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_read_from_memory_is_ready_at_once() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let db = opened(&dir)?;
    block_on(db.put("key", "value"))?;
    let Poll::Ready(found) = poll(pin!(db.get("key"))) else {
        panic!("it waits");
    };
    assert_eq!(found?.as_deref(), Some(&b"value"[..]));
    let Poll::Ready(found) = poll(pin!(db.get("none"))) else {
        panic!("it waits");
    };
    assert_eq!(found?, None);
    Ok(())
}

#[test]
fn a_read_from_the_device_wakes_its_task() -> Result<()> {
    struct Counting(AtomicUsize);
    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dir = tempfile::tempdir()?;
    let db = with_cold_key(&dir)?;
    let wakes = Arc::new(Counting(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&wakes));
    let mut read = pin!(db.get("cold"));
    let first = read.as_mut().poll(&mut Context::from_waker(&waker));
    let found = match first {
        Poll::Ready(found) => found,
        Poll::Pending => {
            until(|| wakes.0.load(Ordering::SeqCst) == 1);
            block_on(read)
        }
    };
    assert_eq!(found?.as_deref(), Some(&b"value"[..]));
    // Now it is in memory.
    assert!(poll(pin!(db.get("cold"))).is_ready());
    Ok(())
}

#[test]
fn a_write_that_was_polled_takes_place_whole() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let db = opened(&dir)?;
    for polls in 0..4 {
        let (one, two) = (format!("one {polls}"), format!("two {polls}"));
        let mut batch = WriteBatch::new();
        batch.put(&one, "1")?;
        batch.put(&two, "2")?;
        {
            let mut write = pin!(db.write(batch));
            for _ in 0..polls {
                if poll(write.as_mut()).is_ready() {
                    break;
                }
            }
        }
        if polls == 0 {
            // A future that nobody polled has done nothing.
            block_on(db.put("after", "it"))?;
            assert_eq!(db.db().get(&one)?, None);
        } else {
            until(|| db.db().get(&one).expect("reads").is_some());
        }
        assert_eq!(db.db().get(&two)?.is_some(), polls > 0);
    }
    Ok(())
}

#[test]
fn the_database_stays_open_until_writes_are_done() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let db = opened(&dir)?;
    for n in 0..100 {
        let mut write = Box::pin(db.put(format!("{n}"), "value"));
        let _nobody_waits = poll(write.as_mut());
    }
    drop(db);
    let mut db = None;
    until(|| {
        db = opened(&dir).ok();
        db.is_some()
    });
    let db = db.expect("opened");
    for n in 0..100 {
        assert!(db.db().get(format!("{n}"))?.is_some(), "{n}");
    }
    Ok(())
}

#[test]
fn many_calls_at_once_are_done_by_few_threads() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let db = opened(&dir)?;
    let most = Arc::new(AtomicUsize::new(0));
    let now = Arc::new(AtomicUsize::new(0));
    let calls = (0..500).map(|n| {
        let (db, most, now) = (db.clone(), Arc::clone(&most), Arc::clone(&now));
        let mut call = Box::pin(async move {
            db.run(move |db| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                db.put(format!("{n:03}"), "value")?;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(n)
            })
            .await
        });
        let first = poll(call.as_mut());
        (call, first)
    });
    for (n, (call, first)) in calls.collect::<Vec<_>>().into_iter().enumerate() {
        let done = match first {
            Poll::Ready(done) => done,
            Poll::Pending => block_on(call),
        };
        assert_eq!(done?, n);
    }
    assert!((1..=8).contains(&most.load(Ordering::SeqCst)));
    assert_eq!(db.db().range(..).count(), 500);
    Ok(())
}

#[test]
fn readers_do_not_wait_for_writers() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let db = with_cold_key(&dir)?;
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(std::sync::Mutex::new(released));
    let mut blocked: Vec<_> = (0..20)
        .map(|_| {
            let released = Arc::clone(&released);
            Box::pin(db.run(move |_| {
                let _until_it_hangs_up = released.lock().expect("nobody panics").recv();
                Ok(())
            }))
        })
        .collect();
    for call in &mut blocked {
        assert!(poll(call.as_mut()).is_pending());
    }
    assert!(block_on(db.get("cold"))?.is_some());
    let found = block_on(db.multi_get(&db.db().default_family_handle(), ["cold", "none"]))?;
    assert_eq!(found.len(), 2);
    drop(release);
    for call in blocked {
        block_on(call)?;
    }
    Ok(())
}

#[test]
fn a_panic_is_the_callers_and_harms_nobody_else() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let db = opened(&dir)?;
    let call = db.run(|_| -> Result<()> { panic!("of the caller") });
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| block_on(call)));
    assert!(caught.is_err());
    // Nobody waits for this one.
    let mut call = Box::pin(db.run(|_| -> Result<()> { panic!("of nobody") }));
    let _dropped = poll(call.as_mut());
    drop(call);
    for n in 0..50 {
        block_on(db.put(format!("{n}"), "value"))?;
    }
    assert_eq!(db.db().range(..).count(), 50);
    Ok(())
}

#[test]
fn no_entry_is_missed_wherever_a_future_is_dropped() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let db = opened(&dir)?;
    for n in 0..200 {
        db.db().put(format!("{n:03}"), "value")?;
    }
    let mut entries = db.entries(db.db().iter());
    let mut seen = Vec::new();
    for round in 0.. {
        {
            let mut next = pin!(entries.next(7));
            for _ in 0..round % 3 {
                if let Poll::Ready(some) = poll(next.as_mut()) {
                    seen.extend(some?);
                    break;
                }
            }
        }
        let some = block_on(entries.next(5))?;
        if some.is_empty() {
            break;
        }
        seen.extend(some);
    }
    let seen: Vec<_> = seen.into_iter().map(|(key, _)| key).collect();
    let all: Vec<_> = (0..200).map(|n| format!("{n:03}").into_bytes()).collect();
    assert_eq!(seen, all);
    Ok(())
}

#[test]
fn closed_databases_answer_with_an_error() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let db = opened(&dir)?;
    db.db().clone().close()?;
    assert!(block_on(db.put("key", "value")).is_err());
    assert!(block_on(db.flush()).is_err());
    Ok(())
}

#[test]
fn futures_move_between_threads() -> Result<()> {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let dir = tempfile::tempdir()?;
    let db = opened(&dir)?;
    block_on(is_send(db.put("key", "value")))?;
    assert!(block_on(is_send(db.get("key")))?.is_some());
    let mut entries = is_send(db.entries(db.db().iter()));
    assert_eq!(block_on(is_send(entries.next(3)))?.len(), 1);
    block_on(is_send(db.flush()))
}
