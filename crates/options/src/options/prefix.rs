//! Prefix extractors as option values: by name in text.

use super::order::id_of;
use super::value::OptionValue;
use esker_format::prefix::PrefixExtractor;
use esker_status::{Error, Result};

impl OptionValue for Option<PrefixExtractor> {
    const TYPE: &'static str = "prefix extractor";
    fn print(&self) -> String {
        self.as_ref()
            .map_or_else(|| "nullptr".to_owned(), PrefixExtractor::name)
    }
    fn parse_into(&mut self, text: &str) -> Result<()> {
        if *text == *self.print() {
            return Ok(());
        }
        let name = id_of(text)?;
        *self = match name.as_str() {
            "nullptr" | "" => None,
            _ => Some(PrefixExtractor::builtin(&name).ok_or_else(|| {
                Error::not_supported(format!("{name:?} is not a built-in prefix extractor"))
            })?),
        };
        Ok(())
    }
}
