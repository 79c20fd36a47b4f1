//! How the kernel shares processors between the threads of this process (`sched_setattr(2)`).
//!
//! A thread that wakes up while another one has its turn waits for the end of that turn, or, since
//! Linux 6.12, interrupts it where its own turns are the shorter ones. So threads that work for
//! others in the background ask for turns that are longer than what a thread has which asks for
//! nothing: a writer of the application that wakes up goes on at once, but for system calls that
//! the kernel does not leave. They do not use such turns up: their jobs let others go on far more
//! often ([`crate::SCHED_SLICE`]). Earlier kernels have turns of one length and take no notice.
//!
//! They are of the batch kind, too (`SCHED_BATCH`): else one that wakes up interrupts whoever runs
//! there, which is mostly the thread that gave it work, for as long as its turn is.
//!
//! Rejected: turns of 0.1 ms, the shortest there are. A writer's are longer then, so it interrupts
//! nobody, and the kernel sees the end of a short turn when a timer ticks.

use std::io;
use std::mem::size_of;
use std::time::Duration;

/// Asks for turns of this length for the calling thread, and that its waking up interrupts nobody.
/// A thread of another kind than the usual one, which has been given a priority of its own, stays
/// as it is.
pub(crate) fn take(turn: Duration) -> io::Result<()> {
    let mut attributes = own()?;
    if ![libc::SCHED_OTHER, libc::SCHED_BATCH]
        .map(|p| p as u32)
        .contains(&attributes.sched_policy)
    {
        return Ok(());
    }
    attributes.sched_policy = libc::SCHED_BATCH as u32;
    attributes.sched_runtime = u64::try_from(turn.as_nanos()).unwrap_or(u64::MAX);
    attributes.size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: the kernel reads `attributes`, which lives through the call, and no more of it than
    // its `size`.
    done(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) })
}

/// The attributes of the calling thread (`sched_getattr(2)`).
fn own() -> io::Result<libc::sched_attr> {
    // SAFETY: a structure of integers, for which all zeros are values.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the kernel writes `size` bytes at most into `attributes`, which has them.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    done(got).map(|()| attributes)
}

fn done(returned: libc::c_long) -> io::Result<()> {
    match returned {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_a_thread(body: impl FnOnce() + Send + 'static) {
        std::thread::spawn(body).join().unwrap();
    }

    #[test]
    fn turns_are_as_short_as_asked_for_and_interrupt_nobody() {
        on_a_thread(|| {
            let before = own().unwrap();
            take(Duration::from_micros(300)).unwrap();
            let after = own().unwrap();
            assert_eq!(after.sched_policy, libc::SCHED_BATCH as u32);
            assert_eq!(after.sched_nice, before.sched_nice);
            // 0 where the kernel has no such thing.
            assert!(
                [0, 300_000].contains(&after.sched_runtime),
                "{}",
                after.sched_runtime
            );
        });
    }

    #[test]
    fn a_thread_of_another_kind_stays_so() {
        on_a_thread(|| {
            let none = libc::sched_param { sched_priority: 0 };
            // SAFETY: the kernel reads `none`, which lives through the call.
            let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none) };
            assert_eq!(set, 0);
            take(Duration::from_micros(300)).unwrap();
            assert_eq!(own().unwrap().sched_policy, libc::SCHED_IDLE as u32);
        });
    }
}
