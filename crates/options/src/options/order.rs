//! Objects of the application as option values: by name in text, as they are through the typed
//! side.

use super::file_checksum::{FileChecksumCrc32c, FileChecksumGenFactory};
use super::value::OptionValue;
use super::wal_filter::WalFilter;
use esker_format::KeyOrder;
use esker_format::filter::FilterPolicy;
use esker_format::options_text::parse_pairs;
use esker_lsm::compaction_filter::{CompactionFilter, CompactionFilterFactory, RemoveEmptyValues};
use esker_lsm::merge_operator::{self, MergeOperator};
use esker_status::{Error, Result};
use std::sync::Arc;

impl OptionValue for KeyOrder {
    const TYPE: &'static str = "comparator";
    fn print(&self) -> String {
        self.name().to_owned()
    }
    fn parse_into(&mut self, text: &str) -> Result<()> {
        if text == self.name() {
            return Ok(());
        }
        *self = KeyOrder::builtin(text).ok_or_else(|| {
            Error::not_supported(format!("{text:?} is not a built-in comparator"))
        })?;
        Ok(())
    }
}

impl OptionValue for Option<FilterPolicy> {
    const TYPE: &'static str = "filter policy";
    fn print(&self) -> String {
        self.as_ref()
            .map_or_else(|| "nullptr".to_owned(), ToString::to_string)
    }
    fn parse_into(&mut self, text: &str) -> Result<()> {
        *self = match text {
            "nullptr" | "" => None,
            _ => Some(FilterPolicy::parse(&id_of(text)?).ok_or_else(|| {
                Error::not_supported(format!("{text:?} is not a filter policy"))
                    .with_hint("use bloomfilter:BITS:false or ribbonfilter:BITS:LEVEL")
            })?),
        };
        Ok(())
    }
}

/// The name in `name`, `id=name;...` or `{id=name;...}`: the members beside it repeat what it says.
pub(super) fn id_of(text: &str) -> Result<String> {
    if !text.contains("id=") {
        return Ok(text.to_owned());
    }
    let pairs = parse_pairs(text)?;
    let id = pairs.into_iter().find(|(name, _)| name == "id");
    Ok(id.map_or_else(|| text.to_owned(), |(_, id)| id))
}

/// Makes `Option<Arc<dyn Trait>>` an option value: by its `name()`, and by a built-in with that
/// name.
macro_rules! object_option {
    ($object:path, $type_name:literal, $builtin:expr) => {
        impl OptionValue for Option<Arc<dyn $object>> {
            const TYPE: &'static str = $type_name;
            fn print(&self) -> String {
                self.as_ref()
                    .map_or_else(|| "nullptr".to_owned(), |o| o.name().to_owned())
            }
            fn parse_into(&mut self, text: &str) -> Result<()> {
                let name = id_of(text)?;
                if name == self.print() {
                    return Ok(());
                }
                let builtin: fn(&str) -> Option<Arc<dyn $object>> = $builtin;
                *self = match name.as_str() {
                    "nullptr" | "" => None,
                    _ => Some(builtin(&name).ok_or_else(|| {
                        Error::not_supported(format!(
                            concat!("{:?} is not a built-in ", $type_name),
                            name
                        ))
                        .with_hint("give the application's own object through the typed interface")
                    })?),
                };
                Ok(())
            }
        }
    };
}

object_option!(MergeOperator, "merge operator", merge_operator::by_name);
object_option!(CompactionFilter, "compaction filter", |name| {
    (name == RemoveEmptyValues.name())
        .then(|| Arc::new(RemoveEmptyValues) as Arc<dyn CompactionFilter>)
});
object_option!(CompactionFilterFactory, "compaction filter factory", |_| {
    None
});
object_option!(WalFilter, "filter of the log", |_| None);
object_option!(FileChecksumGenFactory, "file checksum factory", |name| {
    (name == FileChecksumCrc32c.name())
        .then(|| Arc::new(FileChecksumCrc32c) as Arc<dyn FileChecksumGenFactory>)
});
