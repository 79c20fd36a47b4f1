//! Partitioners: rules of the application's about keys that must not share a table.
//!
//! Asked while a compaction writes below level 0; flushes and level 0 are not partitioned.

use super::order::id_of;
use super::value::OptionValue;
use esker_format::options_text::parse_pairs;
use esker_status::{Error, Result};
use std::sync::Arc;

/// The job of a partitioner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionContext {
    /// True if the job was asked for.
    pub is_manual_compaction: bool,
    /// The level that the job writes to.
    pub output_level: u8,
}

/// Decides where tables end, within one job.
pub trait SstPartitioner: Send {
    /// Returns whether `key`, the successor of `previous` in the order, begins another table.
    /// `file_size` is what the present one has.
    fn should_partition(&mut self, previous: &[u8], key: &[u8], file_size: u64) -> bool;
    /// Returns whether a table with these bounds may go to the next level as it is.
    fn can_move(&mut self, smallest: &[u8], largest: &[u8]) -> bool;
}

/// Makes a partitioner for each job.
pub trait SstPartitionerFactory: Send + Sync {
    /// The factory's name, for OPTIONS files.
    fn name(&self) -> &str;
    /// How OPTIONS files store it: by its name, unless it has settings.
    fn text(&self) -> String {
        self.name().to_owned()
    }
    /// The partitioner of one job; `None` for none.
    fn create(&self, context: &PartitionContext) -> Option<Box<dyn SstPartitioner>>;
}

/// Keys with different prefixes of a fixed length do not share a table (RocksDB's
/// `SstPartitionerFixedPrefixFactory`).
///
/// ```
/// use esker::options::FixedPrefixPartitions;
/// use std::sync::Arc;
///
/// let mut options = esker::Options::new();
/// options.family.sst_partitioner_factory = Some(Arc::new(FixedPrefixPartitions(4)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FixedPrefixPartitions(pub usize);

impl FixedPrefixPartitions {
    fn differs(self, a: &[u8], b: &[u8]) -> bool {
        a[..a.len().min(self.0)] != b[..b.len().min(self.0)]
    }
}

impl SstPartitionerFactory for FixedPrefixPartitions {
    fn name(&self) -> &str {
        "SstPartitionerFixedPrefixFactory"
    }

    fn text(&self) -> String {
        format!("{{id={};length={};}}", self.name(), self.0)
    }

    fn create(&self, _context: &PartitionContext) -> Option<Box<dyn SstPartitioner>> {
        Some(Box::new(*self))
    }
}

impl SstPartitioner for FixedPrefixPartitions {
    fn should_partition(&mut self, previous: &[u8], key: &[u8], _file_size: u64) -> bool {
        self.differs(previous, key)
    }

    fn can_move(&mut self, smallest: &[u8], largest: &[u8]) -> bool {
        !self.differs(smallest, largest)
    }
}

impl std::fmt::Debug for dyn SstPartitionerFactory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The partitioner of a job that writes to `output_level`.
pub fn partitioner(
    factory: Option<&Arc<dyn SstPartitionerFactory>>,
    context: PartitionContext,
) -> Option<Box<dyn SstPartitioner>> {
    factory
        .filter(|_| context.output_level > 0)
        .and_then(|f| f.create(&context))
}

impl OptionValue for Option<Arc<dyn SstPartitionerFactory>> {
    const TYPE: &'static str = "partitioner factory";
    fn print(&self) -> String {
        self.as_ref()
            .map_or_else(|| "nullptr".to_owned(), |f| f.text())
    }
    fn parse_into(&mut self, text: &str) -> Result<()> {
        if text == self.print() {
            return Ok(());
        }
        let unknown =
            || Error::not_supported(format!("{text:?} is not a built-in partitioner factory"));
        let name = id_of(text)?;
        *self = match name.as_str() {
            "nullptr" | "" => None,
            "SstPartitionerFixedPrefixFactory" => {
                let pairs = parse_pairs(text)?;
                let length = pairs.iter().find(|(key, _)| key == "length");
                let length = length.and_then(|(_, n)| n.parse().ok());
                Some(Arc::new(FixedPrefixPartitions(length.ok_or_else(unknown)?)))
            }
            _ => return Err(unknown()),
        };
        Ok(())
    }
}
