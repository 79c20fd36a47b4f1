//! The write path: from a batch to the log, the memtables and visibility.
//!
//! One thread at a time is the *leader*: it holds the log lock, takes every batch that waits in the
//! queue, gives them sequence numbers, appends them to the log as one record and syncs if one of
//! them asked for it ([`path`]). Then it lets go of the log, inserts the group into the memtables,
//! publishes it and wakes each *follower* once ([`complete`]). The next group is logged meanwhile.
//!
//! No thread has to be woken for writes to go on: a thread that comes along takes a free log lock
//! with all that queues, and a leader that is done serves those that sleep in the queue
//! ([`serve`]). A group that is done before the one in front of it is left to that one's publisher
//! ([`sequence`]). `docs/decisions/0001-write-path.md` has the reasons and the rejected designs.
//!
//! Invariants: a batch is in the log before it is in a memtable; memtables are switched only by the
//! holder of the log lock and only while no group is in flight ([`sequence::Sequence::quiesce`]);
//! what is published is a prefix of what was allocated; a write returns when it is visible.

mod append;
pub(crate) mod apply;
mod check;
mod complete;
pub(crate) mod counters;
mod crowd;
mod full_families;
pub(crate) mod group;
pub(crate) mod log_state;
pub(crate) mod path;
pub(crate) mod perf_timing;
pub(crate) mod prepared;
pub(crate) mod sequence;
mod serve;
pub(crate) mod spare_log;
mod stop_writers;
mod switch;
mod two_phase;
