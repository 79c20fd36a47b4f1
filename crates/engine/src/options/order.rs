//! Objects of the application as option values: by name in text, as they are through the typed side.

use super::value::OptionValue;
use esker_format::KeyOrder;
use esker_status::{Error, Result};

impl OptionValue for KeyOrder {
    const TYPE: &'static str = "comparator";
    fn print(&self) -> String {
        self.name().to_owned()
    }
    fn parse_into(&mut self, text: &str) -> Result<()> {
        if text == self.name() {
            return Ok(());
        }
        *self = KeyOrder::builtin(text)
            .ok_or_else(|| Error::not_supported(format!("{text:?} is no built-in comparator")))?;
        Ok(())
    }
}
