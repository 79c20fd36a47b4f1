//! Memory and room for files that databases share: the managers of write buffers and of table
//! files. Databases are known to them by what they measure.

mod buffers;
mod space;

pub use buffers::WriteBufferManager;
pub use buffers::{FlushDecision, MemtableBytes, Memtables, WriteBufferHandle};
pub use space::SstFileManager;
pub use space::{DeadFiles, LiveFiles};
