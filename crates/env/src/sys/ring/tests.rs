//! Tests of a ring, with pipes where requests have to stay under way for as long as a test likes.

use super::{Completion, PendingRequest, Request, Ring, SLOTS, Transfer};
use crate::aligned::AlignedBuf;
use crate::pool::IoPool;
use crate::system::ThreadExecutor;
use io_uring::IoUring;
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// A ring, where the system has one; says so when not.
fn ring() -> Option<Arc<Ring>> {
    let made = Ring::new();
    if let Err(e) = &made {
        println!("skipped: no io_uring: {e}");
    }
    made.ok()
}

/// A pipe: what is read from the first waits for bytes in the second.
fn pipe() -> (Arc<OwnedFd>, File) {
    let (from, to) = std::io::pipe().expect("a pipe");
    (Arc::new(from.into()), File::from(OwnedFd::from(to)))
}

fn read_of(file: &Arc<OwnedFd>, buffer: AlignedBuf, offset: u64, len: usize) -> Request {
    Request {
        transfer: Transfer::Read,
        file: Arc::clone(file),
        offset,
        buffer,
        len,
    }
}

fn write_of(file: &Arc<OwnedFd>, text: &[u8], offset: u64) -> Request {
    let mut buffer = AlignedBuf::new(text.len());
    buffer.as_mut_slice()[..text.len()].copy_from_slice(text);
    Request {
        transfer: Transfer::Write,
        ..read_of(file, buffer, offset, text.len())
    }
}

fn begun(ring: &Arc<Ring>, request: Request) -> PendingRequest {
    ring.begin(request).expect("there is room")
}

fn moved(flight: PendingRequest) -> (AlignedBuf, usize) {
    match flight.wait() {
        Some((buffer, Completion::Moved(n))) => (buffer, n),
        other => panic!("{other:?}"),
    }
}

fn opened(options: &mut std::fs::OpenOptions, path: &str) -> Arc<OwnedFd> {
    Arc::new(options.open(path).expect("opens").into())
}

#[test]
fn a_ring_that_is_full_gives_requests_back_and_goes_on() {
    let Some(ring) = ring() else { return };
    let (from, mut to) = pipe();
    for _ in 0..3 {
        let one = |_| begun(&ring, read_of(&from, AlignedBuf::new(1), 0, 1));
        let flights: Vec<_> = (0..SLOTS).map(one).collect();
        let mut marked = AlignedBuf::new(1);
        marked.as_mut_slice()[0] = 77;
        let back = ring.begin(read_of(&from, marked, 0, 1)).expect_err("full");
        assert_eq!(back.buffer.as_slice()[0], 77);
        to.write_all(&[5; SLOTS as usize]).expect("written");
        // The last first: completions of others are kept for them.
        for flight in flights.into_iter().rev() {
            let (buffer, n) = moved(flight);
            assert_eq!((buffer.as_slice()[0], n), (5, 1));
        }
    }
}

#[test]
fn a_flight_that_is_dropped_waits_until_the_kernel_has_done_with_its_memory() {
    let Some(ring) = ring() else { return };
    let pool = IoPool::new(Arc::new(ThreadExecutor::new()));
    let (from, mut to) = pipe();
    let buffer = pool.queue().buffer(1 << 20);
    let place = buffer.as_slice().as_ptr().addr();
    let flight = begun(&ring, read_of(&from, buffer, 0, 4));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            drop(flight);
            is_over.store(true, Ordering::Release);
        });
        std::thread::sleep(Duration::from_millis(30));
        assert!(!is_over.load(Ordering::Acquire));
        let other = pool.queue().buffer(1 << 20);
        assert_ne!(
            other.as_slice().as_ptr().addr(),
            place,
            "it is the kernel's"
        );
        to.write_all(b"done").expect("written");
    });
    // The file is closed, too: its other end notices.
    drop(from);
    assert!(to.write_all(b"nobody").is_err());
    let again: Vec<_> = (0..2).map(|_| pool.queue().buffer(1 << 20)).collect();
    assert!(again.iter().any(|b| b.as_slice().as_ptr().addr() == place));
}

#[test]
fn a_flight_that_is_forgotten_keeps_its_memory_and_its_ring() {
    let Some(ring) = ring() else { return };
    let (from, mut to) = pipe();
    let alive = Arc::downgrade(&ring);
    std::mem::forget(begun(&ring, read_of(&from, AlignedBuf::new(4), 0, 4)));
    to.write_all(b"late").expect("written");
    let (from, mut to) = pipe();
    let flight = begun(&ring, read_of(&from, AlignedBuf::new(4), 0, 4));
    to.write_all(b"more").expect("written");
    assert_eq!(&moved(flight).0.as_slice()[..4], b"more");
    drop(ring);
    assert!(alive.upgrade().is_some());
}

#[test]
fn who_sleeps_in_the_kernel_hands_out_what_others_wait_for() {
    let Some(ring) = ring() else { return };
    const WAITERS: usize = 6;
    let pipes: Vec<_> = (0..WAITERS).map(|_| pipe()).collect();
    let begin = |(from, _): &_| begun(&ring, read_of(from, AlignedBuf::new(8), 0, 8));
    let flights: Vec<_> = pipes.iter().map(begin).collect();
    let (done, order) = mpsc::channel();
    std::thread::scope(|scope| {
        for (i, flight) in flights.into_iter().enumerate() {
            let done = done.clone();
            scope.spawn(move || {
                let (buffer, n) = moved(flight);
                done.send((i, buffer.as_slice()[..n].to_vec()))
                    .expect("heard");
            });
        }
        // Whoever sleeps in the kernel, in whatever order they come.
        for i in [3, 0, 5, 1, 4, 2] {
            (&pipes[i].1).write_all(&[i as u8; 8]).expect("written");
            let heard = order.recv_timeout(Duration::from_secs(20));
            assert_eq!(heard.expect("it woke"), (i, vec![i as u8; 8]));
        }
    });
}

#[test]
fn errors_and_short_transfers_are_those_of_the_file() {
    let Some(ring) = ring() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("x");
    std::fs::write(&path, b"0123456789").expect("written");
    let name = path.to_str().expect("a name");
    let file = opened(File::options().read(true), name);
    let how = |request| begun(&ring, request).wait().expect("it is known").1;
    let some = || AlignedBuf::new(8);
    assert_eq!(how(read_of(&file, some(), 7, 8)), Completion::Moved(3));
    assert_eq!(how(read_of(&file, some(), 70, 8)), Completion::Moved(0));
    assert_eq!(
        how(write_of(&file, b"x", 0)),
        Completion::Failed(Errno::BADF)
    );
    let here = opened(File::options().read(true), "/");
    assert_eq!(
        how(read_of(&here, some(), 0, 8)),
        Completion::Failed(Errno::ISDIR)
    );
    let full = opened(File::options().write(true), "/dev/full");
    assert_eq!(
        how(write_of(&full, b"x", 0)),
        Completion::Failed(Errno::NOSPC)
    );
    let long = Request {
        len: 5000,
        ..read_of(&file, some(), 0, 0)
    };
    assert!(ring.begin(long).is_err(), "longer than its buffer");
}

#[test]
fn what_does_not_tell_about_the_file_is_undone() {
    for e in [Errno::INTR, Errno::AGAIN, Errno::NOMEM, Errno::CANCELED] {
        assert_eq!(
            Completion::from_result(-e.raw_os_error()),
            Completion::Undone
        );
    }
    for e in [Errno::IO, Errno::NOSPC, Errno::FBIG, Errno::INVAL] {
        assert_eq!(
            Completion::from_result(-e.raw_os_error()),
            Completion::Failed(e)
        );
    }
    assert_eq!(Completion::from_result(0), Completion::Moved(0));
    assert_eq!(Completion::from_result(4096), Completion::Moved(4096));
}

#[test]
fn a_request_of_a_thread_that_ended_lands_or_is_undone() {
    let Some(ring) = ring() else { return };
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let expected = std::fs::read(path).expect("read");
    let file = opened(File::options().read(true), path);
    let (from, mut to) = pipe();
    for _ in 0..50 {
        let (ring, file, from) = (&ring, &file, &from);
        let asked = std::thread::scope(|scope| {
            let ask = move || {
                let len = expected_len(file);
                let read = begun(ring, read_of(file, AlignedBuf::new(len), 0, len));
                (read, begun(ring, read_of(from, AlignedBuf::new(2), 0, 2)))
            };
            scope.spawn(ask).join().expect("it asked")
        });
        to.write_all(b"ab").expect("written");
        let (buffer, landed) = asked.0.wait().expect("known");
        match landed {
            Completion::Moved(n) => assert!(buffer.as_slice()[..n] == expected[..n]),
            other => assert_eq!(other, Completion::Undone),
        }
        let (buffer, landed) = asked.1.wait().expect("known");
        match landed {
            Completion::Moved(n) => assert_eq!(&buffer.as_slice()[..n], b"ab"),
            other => {
                assert_eq!(other, Completion::Undone);
                let mut rest = [0; 2];
                rustix::io::read(&**from, &mut rest).expect("still there");
            }
        }
    }
}

fn expected_len(file: &OwnedFd) -> usize {
    rustix::fs::fstat(file).expect("stat").st_size as usize
}

#[test]
fn a_ring_of_another_process_is_left_alone() {
    let Some(mut ring) = ring() else { return };
    let (from, mut to) = pipe();
    to.write_all(b"mine").expect("written");
    let before = begun(&ring, read_of(&from, AlignedBuf::new(4), 0, 4));
    before.wait().expect("it works here");
    Arc::get_mut(&mut ring).expect("alone").process += 1;
    let back = ring.begin(read_of(&from, AlignedBuf::new(4), 0, 4));
    assert!(back.is_err());
    assert!(ring.land(0).is_none(), "completions are the parent's");
}

#[test]
fn a_ring_that_died_keeps_the_memory_it_cannot_know_of() {
    let Some(ring) = ring() else { return };
    let (from, mut to) = pipe();
    let mut flights: Vec<_> = (0..2)
        .map(|_| begun(&ring, read_of(&from, AlignedBuf::new(4), 0, 4)))
        .collect();
    ring.state.lock().is_dead = true;
    ring.refusal.set(Errno::BADF).expect("it worked so far");
    let back = ring.begin(read_of(&from, AlignedBuf::new(4), 0, 4));
    assert!(back.is_err());
    assert!(flights.remove(0).wait().is_none());
    to.write_all(b"live").expect("written");
    // What did complete is still told.
    drop(flights);
    drop(ring);
}

/// A ring that was not enabled refuses everything.
fn disabled() -> Option<Ring> {
    ring()?;
    let made = IoUring::builder().setup_r_disabled().build(SLOTS);
    if let Err(e) = &made {
        println!("skipped: no io_uring that can be disabled: {e}");
    }
    made.ok().map(Ring::over)
}

#[test]
fn what_the_kernel_refuses_comes_back_and_is_never_carried_out() {
    let Some(ring) = disabled() else { return };
    let ring = Arc::new(ring);
    let (from, mut to) = pipe();
    let mut marked = AlignedBuf::new(4);
    marked.as_mut_slice()[0] = 77;
    let back = ring.begin(read_of(&from, marked, 0, 4)).expect_err("no");
    assert_eq!(back.buffer.as_slice()[0], 77);
    assert_eq!(ring.refusal(), Some(Errno::BADFD));
    assert_eq!(ring.state.lock().free.len(), SLOTS as usize);
    // Now it would take what it was offered before.
    ring.uring.submitter().register_enable_rings().expect("on");
    to.write_all(b"mine").expect("written");
    assert!(ring.begin(back).is_err());
    let mut here = [0; 4];
    rustix::io::read(&*from, &mut here).expect("nobody else read it");
    assert_eq!(&here, b"mine");
}

#[test]
fn what_is_refused_at_first_is_offered_again() {
    // A machine that is busy may enable one too late.
    for _ in 0..50 {
        let Some(ring) = disabled().map(Arc::new) else {
            return;
        };
        let (from, mut to) = pipe();
        to.write_all(b"late").expect("written");
        let begun = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(2));
                ring.uring.submitter().register_enable_rings().expect("on");
            });
            ring.begin(read_of(&from, AlignedBuf::new(4), 0, 4))
        });
        if let Ok(flight) = begun {
            assert_eq!(&moved(flight).0.as_slice()[..4], b"late");
            assert_eq!(ring.refusal(), None);
            return;
        }
    }
    panic!("it was offered once");
}

#[test]
fn many_threads_share_a_ring() {
    let Some(ring) = ring() else { return };
    const PIECE: usize = 64 << 10;
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
    std::thread::scope(|scope| {
        for thread in 0..12u8 {
            let (ring, path) = (&ring, dir.path().join(format!("{thread}")));
            scope.spawn(move || {
                let file = File::options()
                    .read(true)
                    .write(true)
                    .create_new(true)
                    .open(path);
                let file: Arc<OwnedFd> = Arc::new(file.expect("created").into());
                let content = |i: u64| vec![thread ^ (i as u8) << 4; PIECE];
                let mut flying = Vec::new();
                for i in 0..24u64 {
                    let request = write_of(&file, &content(i), i * PIECE as u64);
                    match ring.begin(request) {
                        Ok(flight) => flying.push(flight),
                        // Full of what others have under way.
                        Err(request) => {
                            let all = rustix::io::pwrite(
                                &*file,
                                request.buffer.as_slice(),
                                request.offset,
                            );
                            assert_eq!(all, Ok(PIECE));
                        }
                    }
                    if flying.len() == 7 {
                        flying.drain(..).for_each(|f| assert_eq!(moved(f).1, PIECE));
                    }
                }
                flying.drain(..).for_each(|f| assert_eq!(moved(f).1, PIECE));
                for i in (0..24u64).rev() {
                    let read = read_of(&file, AlignedBuf::new(PIECE), i * PIECE as u64, PIECE);
                    if let Ok(flight) = ring.begin(read) {
                        if i % 5 == 0 {
                            drop(flight);
                            continue;
                        }
                        let (buffer, n) = moved(flight);
                        assert!(buffer.as_slice()[..n] == content(i));
                    }
                }
            });
        }
    });
    assert_eq!(ring.state.lock().free.len(), SLOTS as usize);
}
