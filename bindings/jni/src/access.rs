//! How a field of an options object is set from a Java value and read as one.

use esker::options as opt;
use std::time::Duration;

/// A Java value that a field of type `T` can be set from and read as.
pub(crate) trait JavaValue<T> {
    /// The field's new value; `None` leaves it as it is.
    fn to_field(self) -> Option<T>;
    /// The field's value in Java.
    fn from_field(field: &T) -> Self;
}

macro_rules! numbers {
    ($($java:ty => $($field:ty),+;)*) => {$($(
        impl JavaValue<$field> for $java {
            #[allow(clippy::unnecessary_cast, clippy::cast_lossless, trivial_numeric_casts)]
            fn to_field(self) -> Option<$field> {
                Some(self as $field)
            }
            #[allow(clippy::unnecessary_cast, clippy::cast_lossless, trivial_numeric_casts)]
            fn from_field(field: &$field) -> $java {
                *field as $java
            }
        }
    )+)*};
}

// As RocksDB's Java library: the bits are taken as they are, so -1 is the largest number.
numbers! {
    i32 => i32, u32, i64, u64, usize, u8;
    i64 => i32, u32, i64, u64, usize;
    i8 => u8, i32, u32;
    f64 => f64;
}

impl JavaValue<bool> for bool {
    fn to_field(self) -> Option<bool> {
        Some(self)
    }
    fn from_field(field: &bool) -> bool {
        *field
    }
}

macro_rules! enums {
    ($($name:ident),*) => {$(
        impl JavaValue<opt::$name> for i8 {
            fn to_field(self) -> Option<opt::$name> {
                opt::$name::from_number(self as u8)
            }
            fn from_field(field: &opt::$name) -> i8 {
                field.number() as i8
            }
        }
    )*};
}

enums!(
    AccessHint,
    BlockSearchType,
    ChecksumKind,
    CompactionPri,
    CompactionStopStyle,
    CompactionStyle,
    DataBlockIndexType,
    IndexShortening,
    IndexType,
    InfoLogLevel,
    PrepopulateBlobCache,
    ReadTier,
    Temperature,
    WalRecoveryMode
);

/// Java's `DISABLE_COMPRESSION_OPTION` is 0x7F.
impl JavaValue<opt::CompressionType> for i8 {
    fn to_field(self) -> Option<opt::CompressionType> {
        match self {
            0x7F => Some(opt::CompressionType::Disable),
            n => opt::CompressionType::from_number(n as u8),
        }
    }
    fn from_field(field: &opt::CompressionType) -> i8 {
        match field {
            opt::CompressionType::Disable => 0x7F,
            other => other.number() as i8,
        }
    }
}

/// A time in microseconds; 0 is none.
impl JavaValue<Option<u64>> for i64 {
    fn to_field(self) -> Option<Option<u64>> {
        Some((self != 0).then_some(self as u64))
    }
    fn from_field(field: &Option<u64>) -> i64 {
        field.unwrap_or(0) as i64
    }
}

/// A time in microseconds; 0 is none.
impl JavaValue<Option<Duration>> for i64 {
    fn to_field(self) -> Option<Option<Duration>> {
        Some((self != 0).then(|| Duration::from_micros(self as u64)))
    }
    fn from_field(field: &Option<Duration>) -> i64 {
        field.map_or(0, |d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX))
    }
}

/// Exports a setter.
macro_rules! set {
    ($name:ident, $kind:ty, $value:ty, $($path:ident).+) => {
        $crate::natives! {
            fn $name(env, handle: jni_sys::jlong, value: $value) {
                if let Some(value) = $crate::access::JavaValue::to_field(value) {
                    $crate::shared::change::<$kind>(handle, |o| o.$($path).+ = value)?;
                }
                Ok(())
            }
        }
    };
}

/// Exports a getter.
macro_rules! get {
    ($name:ident, $kind:ty, $value:ty, $($path:ident).+) => {
        $crate::natives! {
            fn $name(env, handle: jni_sys::jlong) -> $value {
                let options = $crate::shared::value::<$kind>(handle)?;
                Ok($crate::access::JavaValue::from_field(&options.$($path).+))
            }
        }
    };
}

pub(crate) use {get, set};
