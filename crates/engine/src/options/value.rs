//! How values of options are printed and parsed: RocksDB's text forms.
//!
//! Invariant: `parse_into(print(v))` gives `v` back for every value that a type can print.

use super::catalogue::OptionSet;
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

fn push_member(out: &mut String, name: &str, value: &str) {
    [name, "=", value, ";"].iter().for_each(|s| out.push_str(s));
}

/// Prints the members that RocksDB 7.8 knows, for OPTIONS files.
pub(crate) fn print_nested_for_file<S: OptionSet>(options: &S) -> String {
    let mut out = String::with_capacity(256);
    out.push('{');
    for entry in S::entries() {
        if matches!(entry.info.known, super::Known::Both) {
            push_member(&mut out, entry.info.name, &(entry.get)(options));
        }
    }
    out.push('}');
    out
}

/// Prints every member of a nested struct as `{a=1;b=2;}`.
pub(crate) fn print_nested<S: OptionSet>(options: &S) -> String {
    let mut out = String::with_capacity(256);
    out.push('{');
    for entry in S::entries() {
        push_member(&mut out, entry.info.name, &(entry.get)(options));
    }
    out.push('}');
    out
}

/// Makes option sets usable as the value of an option.
macro_rules! nested_option {
    ($($t:ty),*) => {$(
        impl $crate::options::value::OptionValue for $t {
            const TYPE: &'static str = "struct";
            fn print(&self) -> String {
                $crate::options::value::print_nested(self)
            }
            fn parse_into(&mut self, text: &str) -> esker_status::Result<()> {
                $crate::options::OptionSet::set_list(self, text)
            }
            fn print_for_file(&self) -> String {
                $crate::options::value::print_nested_for_file(self)
            }
            fn parse_from_file(&mut self, text: &str) -> esker_status::Result<()> {
                $crate::options::text::load_nested(self, text)
            }
        }
    )*};
}
pub(crate) use nested_option;

/// Declares an enum whose variants have RocksDB's names and numbers.
macro_rules! option_enum {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $( $(#[$vmeta:meta])* $variant:ident = $number:literal $text:literal $(| $other:literal)*, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        $vis enum $name {
            $( $(#[$vmeta])* $variant = $number, )+
        }

        impl $name {
            /// Every value.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// RocksDB's name.
            pub fn name(self) -> &'static str {
                match self {
                    $( $name::$variant => $text, )+
                }
            }

            /// RocksDB's number.
            pub fn number(self) -> u8 {
                self as u8
            }

            /// The value with RocksDB's number.
            pub fn from_number(number: u8) -> Option<Self> {
                Self::ALL.iter().copied().find(|v| v.number() == number)
            }

            /// The value with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $( $text $(| $other)* => Some($name::$variant), )+
                    _ => None,
                }
            }
        }

        impl $crate::options::value::OptionValue for $name {
            const TYPE: &'static str = stringify!($name);
            fn print(&self) -> String {
                self.name().to_owned()
            }
            fn parse_into(&mut self, text: &str) -> esker_status::Result<()> {
                *self = Self::from_name(text).ok_or_else(|| {
                    let names: Vec<_> = Self::ALL.iter().map(|v| v.name()).collect();
                    esker_status::Error::invalid_argument(format!("{text:?} is not one of {}", names.join(", ")))
                })?;
                Ok(())
            }
        }
    };
}
pub(crate) use option_enum;
