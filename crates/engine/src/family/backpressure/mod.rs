//! Everything that holds writers back.
//!
//! How near a tree is to slowing its writers down is one figure, for pickers and for the pace: its
//! load ([`esker_lsm::load`]). Here that becomes waits, from the bottom:
//!
//! - *Of one family*: [`load`] says whether its writers have to stop, and hands what is known of
//!   them to their pace ([`esker_lsm::pace`]); [`drain`] counts what jobs have done so far;
//!   [`write_controller`] is the gate, where time is a number.
//! - *Of all families*: [`admission`] sets the gates, and lets a batch pass those of the families
//!   that it touches ([`batch_families`]). It is the only code here that asks for the time or
//!   sleeps, but for [`stall_tracker`], through which every wait gets into the ledger.
//! - *Of the database*: [`stops`], for administration. The limits on the memory of memtables are
//!   shared with other databases ([`crate::memory`]).
//!
//! The write path decides where a writer waits ([`crate::write::path`]): past the gates before it
//! has or waits for the log lock, and at the log for what concerns all writers.

pub(crate) mod admission;
pub(crate) mod batch_families;
pub(crate) mod drain;
pub(crate) mod load;
pub(crate) mod stall_tracker;
pub(crate) mod stops;
pub(crate) mod write_controller;
