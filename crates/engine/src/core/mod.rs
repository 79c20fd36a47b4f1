//! The parts of an open database, put together once by [`crate::db`].
//!
//! A function takes the part that it uses: reads take [`ReadCore`], code that changes trees
//! [`Trees`], jobs [`Background`], writers [`WritePath`], and what only reports [`Services`].
//! [`Core`] is for the facade, and for jobs that need several of them.
//!
//! [`ReadCore`] has its own references and not one to another part: a Get follows one pointer from
//! the handle of the database.

mod admin;
mod background;
mod budget;
pub(crate) mod long_readers;
mod reads;
mod saved_cache;
mod services;
mod trees;

pub(crate) use admin::{Admin, DbStats};
pub(crate) use background::Background;
pub(crate) use budget::BudgetPart;
pub(crate) use reads::{CatchUp, ReadCore};
pub(crate) use saved_cache::{Phase, SavedCacheState, UnloadedNames};
pub(crate) use services::{Identity, Services};
pub(crate) use trees::Trees;

use crate::ttl::Ttls;
use crate::write::path::WritePath;
use esker_sync::Arc;

/// An open database.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) services: Arc<Services>,
    pub(crate) trees: Arc<Trees>,
    pub(crate) reads: Arc<ReadCore>,
    pub(crate) writes: WritePath,
    pub(crate) background: Arc<Background>,
    pub(crate) admin: Admin,
    /// Its part in a memory budget.
    pub(crate) budget: Option<BudgetPart>,
    /// The times to live of the families, when values have the time of their writing behind them.
    pub(crate) ttl: Option<Arc<Ttls>>,
}
