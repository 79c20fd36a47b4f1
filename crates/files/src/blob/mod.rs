//! Blob files: values kept outside the tables.

mod builder;
mod reader;

pub use builder::BlobFileBuilder;
pub use reader::BlobFileReader;

#[cfg(test)]
mod tests;
