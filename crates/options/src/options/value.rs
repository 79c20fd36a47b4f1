//! How values of options are printed and parsed: RocksDB's text forms.
//!
//! Invariant: `parse_into(print(v))` gives `v` back for every value that a type can print.

use crate::enums::{
    AccessHint, BackgroundIoKind, BlockSearchType, CacheTier, ChecksumKind, CompactionPri,
    CompactionStopStyle, CompactionStyle, CompressionType, DataBlockIndexType, IndexShortening,
    IndexType, InfoLogLevel, MemtableKind, PinningTier, PrepopulateBlobCache,
    PrepopulateBlockCache, TableFormat, Temperature, WalRecoveryMode,
};
use esker_format::options_text::{escape, split_list, unescape};
use esker_status::{Error, Result};

/// A type that an option can have.
pub trait OptionValue {
    /// The type's name in listings.
    const TYPE: &'static str;
    /// The value as RocksDB prints it.
    fn print(&self) -> String;
    /// The value as an OPTIONS file holds it: without members that RocksDB 7.8 does not know,
    /// escaped.
    fn print_for_file(&self) -> String {
        self.print()
    }
    /// Replaces the value by the one that an OPTIONS file holds.
    fn parse_from_file(&mut self, text: &str) -> Result<()> {
        self.parse_into(text)
    }
    /// Replaces the value by the one that the text means; on an error the value is unspecified.
    fn parse_into(&mut self, text: &str) -> Result<()>;
}

#[cold]
fn bad(kind: &str, text: &str) -> Error {
    Error::invalid_argument(format!("{text:?} is not {kind}"))
}

impl OptionValue for bool {
    const TYPE: &'static str = "bool";
    fn print(&self) -> String {
        self.to_string()
    }
    fn parse_into(&mut self, text: &str) -> Result<()> {
        *self = match text {
            "true" | "1" => true,
            "false" | "0" => false,
            _ => return Err(bad("true or false", text)),
        };
        Ok(())
    }
}

/// Splits a trailing binary unit (`k`, `m`, `g`, `t`) from digits.
fn with_unit(text: &str) -> (&str, i128) {
    let unit = match text.bytes().last().map(|b| b.to_ascii_lowercase()) {
        Some(b'k') => 10,
        Some(b'm') => 20,
        Some(b'g') => 30,
        Some(b't') => 40,
        _ => return (text, 1),
    };
    (&text[..text.len() - 1], 1 << unit)
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl OptionValue for $t {
            const TYPE: &'static str = stringify!($t);
            fn print(&self) -> String {
                self.to_string()
            }
            fn parse_into(&mut self, text: &str) -> Result<()> {
                let (digits, unit) = with_unit(text);
                let value = digits
                    .parse::<i128>()
                    .ok()
                    .and_then(|v| v.checked_mul(unit))
                    .and_then(|v| <$t>::try_from(v).ok());
                *self = value.ok_or_else(|| {
                    bad(concat!("a number that fits ", stringify!($t), ", with or without k, m, g, t"), text)
                })?;
                Ok(())
            }
        }
    )*};
}
integers!(i32, u32, i64, u64, usize, u8);

impl OptionValue for f64 {
    const TYPE: &'static str = "f64";
    fn print(&self) -> String {
        format!("{self:.6}")
    }
    fn parse_into(&mut self, text: &str) -> Result<()> {
        *self = text
            .parse()
            .ok()
            .filter(|v: &f64| v.is_finite())
            .ok_or_else(|| bad("a finite number", text))?;
        Ok(())
    }
}

impl OptionValue for String {
    const TYPE: &'static str = "string";
    fn print(&self) -> String {
        self.clone()
    }
    fn parse_into(&mut self, text: &str) -> Result<()> {
        *self = text.to_owned();
        Ok(())
    }
    fn print_for_file(&self) -> String {
        escape(self)
    }
    fn parse_from_file(&mut self, text: &str) -> Result<()> {
        *self = unescape(text);
        Ok(())
    }
}

impl<T: OptionValue + Default> OptionValue for Vec<T> {
    const TYPE: &'static str = "list";
    fn print(&self) -> String {
        self.iter()
            .map(OptionValue::print)
            .collect::<Vec<_>>()
            .join(":")
    }
    fn parse_into(&mut self, text: &str) -> Result<()> {
        self.clear();
        if text.is_empty() {
            return Ok(());
        }
        // RocksDB 6.16 to 6.20 put braces around every item but the first.
        for item in split_list(text, ':')? {
            let mut value = T::default();
            value.parse_into(&item)?;
            self.push(value);
        }
        Ok(())
    }
}

/// Gives enums with names the form of an option's value.
macro_rules! enum_values {
    ($($name:ident),+ $(,)?) => {
        $(impl OptionValue for $name {
            const TYPE: &'static str = stringify!($name);
            fn print(&self) -> String {
                self.name().to_owned()
            }
            fn parse_into(&mut self, text: &str) -> Result<()> {
                *self = parse_name(text, Self::from_name, Self::ALL.iter().map(|v| v.name()))?;
                Ok(())
            }
        })+
    };
}

/// RocksDB puts a size behind some of the names, as in `vector:1024`; no memtable here has one.
impl OptionValue for MemtableKind {
    const TYPE: &'static str = "MemtableKind";
    fn print(&self) -> String {
        self.name().to_owned()
    }
    fn parse_into(&mut self, text: &str) -> Result<()> {
        let name = match text.rsplit_once(':') {
            Some((name, size)) if size.parse::<u64>().is_ok() => name,
            _ => text,
        };
        *self = parse_name(name, Self::from_name, Self::ALL.iter().map(|v| v.name()))?;
        Ok(())
    }
}

fn parse_name<E>(
    text: &str,
    from_name: fn(&str) -> Option<E>,
    names: impl Iterator<Item = &'static str>,
) -> Result<E> {
    from_name(text).ok_or_else(|| {
        let names: Vec<_> = names.collect();
        Error::invalid_argument(format!("{text:?} is none of {}", names.join(", ")))
    })
}

enum_values! {
    CompressionType, CompactionStyle, CompactionPri, CompactionStopStyle, WalRecoveryMode, InfoLogLevel, CacheTier, Temperature, AccessHint, BackgroundIoKind, PrepopulateBlobCache, PrepopulateBlockCache, ChecksumKind, IndexType, BlockSearchType, DataBlockIndexType, IndexShortening, PinningTier, TableFormat,
}
