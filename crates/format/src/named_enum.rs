//! Closed sets of values that have names in OPTIONS text, and numbers.

/// Declares an enum whose variants have RocksDB's names and numbers.
#[macro_export]
macro_rules! named_enum {
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
    };
}
