//! How a field of an options object is set from a C value and read as one.

use esker::options as opt;
use std::ffi::{c_char, c_int, c_uchar, c_uint};
use std::time::Duration;

/// A C value that a field of type `T` can be set from and read as.
pub(crate) trait CValue<T> {
    /// The field's new value; `None` leaves it as it is.
    fn to_field(self) -> Option<T>;
    /// The field's value in C.
    fn from_field(field: &T) -> Self;
}

macro_rules! numbers {
    ($($c:ty => $($field:ty),+;)*) => {$($(
        impl CValue<$field> for $c {
            #[allow(clippy::unnecessary_cast, clippy::cast_lossless, trivial_numeric_casts)]
            fn to_field(self) -> Option<$field> {
                Some(self as $field)
            }
            #[allow(clippy::unnecessary_cast, clippy::cast_lossless, trivial_numeric_casts)]
            fn from_field(field: &$field) -> $c {
                *field as $c
            }
        }
    )+)*};
}

numbers! {
    c_int => i32, u32, i64, u64, usize, u8;
    c_uint => i32, u32, u64, usize;
    u64 => i32, u32, i64, u64, usize;
    i64 => i32, u32, i64, u64, usize;
    usize => i32, u32, u64, usize;
    u8 => u8, u32;
    f64 => f64;
}

macro_rules! flags {
    ($($c:ty),*) => {$(
        impl CValue<bool> for $c {
            fn to_field(self) -> Option<bool> {
                Some(self != 0)
            }
            fn from_field(field: &bool) -> $c {
                <$c>::from(*field)
            }
        }
    )*};
}

flags!(c_int, c_uchar, u64);

impl CValue<bool> for bool {
    fn to_field(self) -> Option<bool> {
        Some(self)
    }
    fn from_field(field: &bool) -> bool {
        *field
    }
}

macro_rules! enums {
    ($($name:ident),*) => {$(
        impl CValue<opt::$name> for c_int {
            fn to_field(self) -> Option<opt::$name> {
                u8::try_from(self).ok().and_then(opt::$name::from_number)
            }
            fn from_field(field: &opt::$name) -> c_int {
                c_int::from(field.number())
            }
        }
        impl CValue<opt::$name> for c_uchar {
            fn to_field(self) -> Option<opt::$name> {
                opt::$name::from_number(self)
            }
            fn from_field(field: &opt::$name) -> c_uchar {
                field.number()
            }
        }
        impl CValue<opt::$name> for c_char {
            fn to_field(self) -> Option<opt::$name> {
                u8::try_from(self).ok().and_then(opt::$name::from_number)
            }
            fn from_field(field: &opt::$name) -> c_char {
                c_char::try_from(field.number()).unwrap_or(0)
            }
        }
        impl CValue<opt::$name> for c_uint {
            fn to_field(self) -> Option<opt::$name> {
                u8::try_from(self).ok().and_then(opt::$name::from_number)
            }
            fn from_field(field: &opt::$name) -> c_uint {
                c_uint::from(field.number())
            }
        }
    )*};
}

enums!(
    BlockSearchType,
    CacheTier,
    ChecksumKind,
    CompactionPri,
    CompactionStopStyle,
    CompactionStyle,
    CompressionType,
    DataBlockIndexType,
    IndexShortening,
    IndexType,
    InfoLogLevel,
    PinningTier,
    PrepopulateBlobCache,
    PrepopulateBlockCache,
    Temperature,
    WalRecoveryMode
);

impl CValue<opt::ReadTier> for c_int {
    fn to_field(self) -> Option<opt::ReadTier> {
        opt::ReadTier::from_number(u8::try_from(self).ok()?)
    }
    fn from_field(field: &opt::ReadTier) -> c_int {
        c_int::from(field.number())
    }
}

impl CValue<opt::BottommostLevelCompaction> for c_uchar {
    fn to_field(self) -> Option<opt::BottommostLevelCompaction> {
        opt::BottommostLevelCompaction::from_number(self)
    }
    fn from_field(field: &opt::BottommostLevelCompaction) -> c_uchar {
        field.number()
    }
}

/// A time in microseconds; 0 is none.
impl CValue<Option<u64>> for u64 {
    fn to_field(self) -> Option<Option<u64>> {
        Some((self != 0).then_some(self))
    }
    fn from_field(field: &Option<u64>) -> u64 {
        field.unwrap_or(0)
    }
}

impl CValue<Option<Duration>> for u64 {
    fn to_field(self) -> Option<Option<Duration>> {
        Some((self != 0).then(|| Duration::from_micros(self)))
    }
    fn from_field(field: &Option<Duration>) -> u64 {
        field.map_or(0, |d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
    }
}

impl CValue<String> for *const c_char {
    fn to_field(self) -> Option<String> {
        crate::boundary::text(self).ok().map(str::to_owned)
    }
    fn from_field(_field: &String) -> Self {
        std::ptr::null()
    }
}

/// Exports a setter.
macro_rules! set {
    ($name:ident, $handle:ty, $value:ty, $($path:ident).+) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(handle: $handle, value: $value) {
            $crate::boundary::attempt((), || {
                if let Some(value) = $crate::access::CValue::to_field(value) {
                    $crate::boundary::exclusive(handle)?.$($path).+ = value;
                }
                Ok(())
            });
        }
    };
}

/// Exports a getter.
macro_rules! get {
    ($name:ident, $handle:ty, $value:ty, $($path:ident).+) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $name(handle: $handle) -> $value {
            $crate::boundary::attempt(Default::default(), || {
                let handle = $crate::boundary::shared(handle.cast_const())?;
                Ok($crate::access::CValue::from_field(&handle.$($path).+))
            })
        }
    };
}

pub(crate) use {get, set};
