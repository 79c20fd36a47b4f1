//! Memory and room for files that databases share: one budget of memory, and the managers of write
//! buffers and of table files. Databases are known to them by what they measure.

mod benefits;
mod budget;
mod buffers;
mod controller;
mod space;

pub use benefits::{BudgetSlopes, WorkDone};
pub use budget::{
    BudgetMember, BudgetSource, BudgetState, MemberReading, MemoryBudget, MemoryBudgetOptions,
};
pub use buffers::WriteBufferManager;
pub use buffers::{FlushDecision, MemtableBytes, Memtables, WriteBufferHandle};
pub use controller::{BudgetDecision, BudgetReason, BudgetSide};
pub use space::SstFileManager;
pub use space::{DeadFiles, LiveFiles};
