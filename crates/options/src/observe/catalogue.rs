//! The form in which tickers, histograms and perf metrics are declared, once each.

/// Declares an enum of statistics from rows `Variant = number "name"`; the word `counted` behind a
/// name says that the engine counts it.
macro_rules! catalogue_enum {
    ($(#[$meta:meta])* $name:ident {
        $( $variant:ident = $number:literal $text:literal $($counted:ident)?, )+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum $name {
            $( #[doc = concat!("`", $text, "`.")] $variant = $number, )+
        }

        impl $name {
            /// Every one, in the order of their numbers.
            pub const ALL: &[$name] = &[$($name::$variant),+];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// RocksDB's name.
            pub fn name(self) -> &'static str {
                match self {
                    $( $name::$variant => $text, )+
                }
            }

            /// RocksDB's number.
            pub fn number(self) -> u32 {
                self as u32
            }

            /// The one with RocksDB's number.
            pub fn from_number(number: u32) -> Option<Self> {
                Self::ALL.get(number as usize).copied()
            }

            /// The one with RocksDB's name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|s| s.name() == name)
            }
        }
    };
}

/// Which rows have the word `counted`.
macro_rules! counted_rows {
    ($name:ident { $( $variant:ident = $number:literal $text:literal $($counted:ident)?, )+ }) => {
        impl $name {
            /// Those that the engine counts. The others stay 0, and metrics leave them out.
            pub const COUNTED: &[$name] = &[$($(
                $crate::observe::catalogue::counted_rows!(@one $counted $name $variant),
            )?)+];
        }
    };
    (@one counted $name:ident $variant:ident) => { $name::$variant };
}

/// [`catalogue_enum!`] for counters.
macro_rules! ticker_catalogue {
    ($($rows:tt)+) => {
        $crate::observe::catalogue::catalogue_enum! {
            /// A counter, with RocksDB's number as discriminant.
            Ticker { $($rows)+ }
        }
        $crate::observe::catalogue::counted_rows! { Ticker { $($rows)+ } }
    };
}

/// [`catalogue_enum!`] for histograms.
macro_rules! histogram_catalogue {
    ($($rows:tt)+) => {
        $crate::observe::catalogue::catalogue_enum! {
            /// A histogram, with RocksDB's number as discriminant.
            HistogramId { $($rows)+ }
        }
        $crate::observe::catalogue::counted_rows! { HistogramId { $($rows)+ } }
    };
}
pub(crate) use {catalogue_enum, counted_rows, histogram_catalogue, ticker_catalogue};
