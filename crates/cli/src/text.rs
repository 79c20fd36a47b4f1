//! Bytes and numbers as text, and keys back from text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use esker_status::{Error, Result};
use serde_json::{Map, Value};
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

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

/// `bytes` as a terminal may get them: UTF-8 as it is, control characters and other bytes escaped.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                let mut buffer = [0; 4];
                let _ = write!(
                    out,
                    "{}",
                    c.encode_utf8(&mut buffer).as_bytes().escape_ascii()
                );
            } else {
                out.push(c);
            }
        }
        let _ = write!(out, "{}", chunk.invalid().escape_ascii());
    }
    out
}

/// Puts `bytes` into an object: UTF-8 as `name`, other bytes in base64 as `name_base64`. With
/// `hex` it is `name`, in hexadecimal.
pub(crate) fn put_bytes(object: &mut Map<String, Value>, name: &str, bytes: &[u8], is_hex: bool) {
    if is_hex {
        object.insert(name.to_owned(), hex(bytes).into());
        return;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.to_owned(), text.into()),
        Err(_) => object.insert(format!("{name}_base64"), BASE64.encode(bytes).into()),
    };
}

/// The bytes that [`put_bytes`] put into an object; `None` when neither name is there.
pub(crate) fn take_bytes(object: &Value, name: &str, is_hex: bool) -> Result<Option<Vec<u8>>> {
    if let Some(text) = object.get(name) {
        let wrong = || Error::invalid_argument(format!("{name:?} is not a text"));
        let text = text.as_str().ok_or_else(wrong)?;
        return if is_hex {
            unhex(text.as_bytes()).map(Some)
        } else {
            Ok(Some(text.as_bytes().to_vec()))
        };
    }
    let name = format!("{name}_base64");
    let Some(text) = object.get(&name) else {
        return Ok(None);
    };
    let bytes = text.as_str().and_then(|t| BASE64.decode(t).ok());
    let wrong = || Error::invalid_argument(format!("{name:?} is not base64"));
    bytes.map(Some).ok_or_else(wrong)
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

/// The bytes that an argument means, in hexadecimal if `is_hex`.
pub(crate) fn argument(text: &OsStr, is_hex: bool) -> Result<Vec<u8>> {
    if is_hex {
        unhex(text.as_bytes())
    } else {
        Ok(text.as_bytes().to_vec())
    }
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
    fn a_terminal_gets_no_control_bytes() {
        assert_eq!(printable("n\u{e4}me \\".as_bytes()), "n\u{e4}me \\");
        assert_eq!(printable(b"a\x00\x1b[2J\n\xff"), "a\\x00\\x1b[2J\\n\\xff");
        assert_eq!(printable("\u{9b}".as_bytes()), "\\xc2\\x9b");
    }

    #[test]
    fn bytes_come_back_from_json() {
        for bytes in [
            &b""[..],
            "n\u{e4}me".as_bytes(),
            b"a\xffb",
            b"\x00\n",
            b"0x61",
        ] {
            for is_hex in [false, true] {
                let mut object = Map::new();
                put_bytes(&mut object, "key", bytes, is_hex);
                let object = Value::Object(object);
                let back = take_bytes(&object, "key", is_hex).expect("read");
                assert_eq!(back.as_deref(), Some(bytes), "{object}");
            }
        }
        let bad = serde_json::json!({"key_base64": "*"});
        assert!(take_bytes(&bad, "key", false).is_err());
        assert_eq!(take_bytes(&bad, "value", false).expect("none"), None);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(u64::MAX), "16384.0 PiB");
    }
}
