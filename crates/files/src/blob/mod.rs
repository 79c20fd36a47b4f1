//! Blob files: values kept outside the tables.

mod ahead;
mod builder;
mod cache;
mod reader;

pub use ahead::BlobReadAhead;
pub use builder::BlobFileBuilder;
pub use cache::{BlobCache, CachedBlob};
pub use reader::{BlobFileReader, BlobRequest};

#[cfg(test)]
mod tests;
