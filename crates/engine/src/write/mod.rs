//! The write path: from a batch to the log, the memtables and visibility.
//!
//! One thread at a time is the *leader*: it holds the log lock, takes every batch that waits in the
//! queue, gives them sequence numbers, appends them to the log as one record and syncs if one of them
//! asked for it. Then it lets go, and each writer, leader and followers alike, inserts its own batch into
//! the memtables concurrently and publishes in sequence order. So the log append of the next group runs
//! beside the memtable inserts of this one, and a lone writer pays two uncontended atomics.
//!
//! Invariants: a batch is in the log before it is in a memtable; memtables are switched only by the
//! holder of the log lock and only while no insert is in flight ([`sequence::Sequence::quiesce`]); what
//! is published is a prefix of what was allocated.
//!
//! Alternatives that lost: a queue whose leader inserts for everybody (followers idle while one core
//! works); a plain mutex around the log without combining (each sync write pays its own fsync); a
//! separate memtable stage with its own leader (RocksDB's pipelined writes: a second hand-off per group).

pub(crate) mod admission;
mod append;
pub(crate) mod apply;
mod check;
pub(crate) mod continuity;
pub(crate) mod gate;
pub(crate) mod group;
pub(crate) mod holdup;
pub(crate) mod log_state;
pub(crate) mod pace;
pub(crate) mod path;
pub(crate) mod prepared;
pub(crate) mod queue;
pub(crate) mod sequence;
pub(crate) mod spare_log;
pub(crate) mod stages;
mod stops;
mod switch;
pub(crate) mod tally;
pub(crate) mod touched;
mod two_phase;
