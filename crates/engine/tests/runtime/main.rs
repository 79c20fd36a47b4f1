//! An open database while it runs: events, limits and options, errors of the disk and recovery from
//! them.

mod disk;
mod events;
mod options;
mod reads;
mod space;
