//! Bytes and numbers as text, and keys back from text.

use esker_status::{Error, Result};
use std::fmt::Write;

/// How keys or values are written and read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextFormat {
    /// `0x` and upper-case hexadecimal digits instead of escaped text.
    pub(crate) hex: bool,
    /// Cut after this many bytes; 0 for never.
    pub(crate) limit: usize,
}

impl TextFormat {
    /// Whole keys and values.
    pub(crate) fn whole(hex: bool) -> TextFormat {
        TextFormat { hex, limit: 0 }
    }

    /// `bytes` as printable ASCII. Without `limit` nothing is lost: what is not printable is
    /// escaped as in Rust byte strings (`\x00`, `\n`, `\\`).
    pub(crate) fn show(self, bytes: &[u8]) -> String {
        let shown = match self.limit {
            0 => bytes,
            limit => &bytes[..bytes.len().min(limit)],
        };
        let mut out = if self.hex {
            hex(shown)
        } else {
            shown.escape_ascii().to_string()
        };
        if shown.len() < bytes.len() {
            let _ = write!(out, "... ({} bytes)", bytes.len());
        }
        out
    }
}

/// `0x` and two upper-case digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = String::with_capacity(2 + bytes.len() * 2);
    out.push_str("0x");
    for b in bytes {
        out.push(char::from(DIGITS[usize::from(b >> 4)]));
        out.push(char::from(DIGITS[usize::from(b & 15)]));
    }
    out
}

/// The bytes of `0x...`.
pub(crate) fn unhex(text: &[u8]) -> Result<Vec<u8>> {
    let wrong = |why: &str| {
        Error::invalid_argument(format!(
            "bad hex {:?}: {why}",
            text.escape_ascii().to_string()
        ))
    };
    let digits = text
        .strip_prefix(b"0x")
        .or_else(|| text.strip_prefix(b"0X"))
        .ok_or_else(|| wrong("it must start with 0x"))?;
    if digits.len() % 2 != 0 {
        return Err(wrong("the number of digits is odd"));
    }
    digits
        .chunks_exact(2)
        .map(|pair| {
            let digit = |b: u8| char::from(b).to_digit(16);
            match (digit(pair[0]), digit(pair[1])) {
                (Some(high), Some(low)) => Ok((high * 16 + low) as u8),
                _ => Err(wrong("there is something else than digits 0-9 and a-f")),
            }
        })
        .collect()
}

/// The text on one line.
pub(crate) fn one_line(text: &str) -> String {
    text.replace('\r', "\\r").replace('\n', "\\n")
}

/// Bytes with a binary unit, for people: `1.5 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// `1 file`, `2 files`, `2 entries`, `2 batches`.
pub(crate) fn plural(n: u64, one: &str) -> String {
    match one.strip_suffix('y') {
        _ if n == 1 => format!("{n} {one}"),
        Some(stem) => format!("{n} {stem}ies"),
        None if one.ends_with("ch") => format!("{n} {one}es"),
        None => format!("{n} {one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_round_trips_and_refuses() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(unhex(hex(&all).as_bytes()).expect("hex"), all);
        assert_eq!(hex(b"az"), "0x617A");
        for bad in ["", "61", "0x6", "0x6g", "x61"] {
            assert!(unhex(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn long_values_are_cut_and_say_so() {
        let form = TextFormat {
            hex: false,
            limit: 3,
        };
        assert_eq!(form.show(b"abc"), "abc");
        assert_eq!(form.show(b"a\n\x00d"), "a\\n\\x00... (4 bytes)");
        assert_eq!(
            TextFormat {
                hex: true,
                limit: 1
            }
            .show(b"ab"),
            "0x61... (2 bytes)"
        );
    }

    #[test]
    fn numbers_agree_with_their_nouns() {
        let said =
            [(1, "entry"), (0, "entry"), (2, "batch"), (3, "table")].map(|(n, w)| plural(n, w));
        assert_eq!(said, ["1 entry", "0 entries", "2 batches", "3 tables"]);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(u64::MAX), "16384.0 PiB");
    }
}
