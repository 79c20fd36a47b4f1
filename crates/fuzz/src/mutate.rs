//! Changes to an input: bits, numbers, lengths, pieces moved, cut, doubled or taken from other
//! inputs.
//!
//! Everything follows from the generator in [`Source`], so an input can be made again from its
//! seed. What the formats need beyond that (checksums, counts, frames) is in [`crate::repair`].

use esker_format::coding::put_varint64;
use esker_sim::Rng;

/// No input grows beyond this.
pub const LONGEST: usize = 1 << 20;

/// Numbers at which arithmetic goes wrong.
const NUMBERS: [u64; 24] = [
    0,
    1,
    2,
    7,
    8,
    127,
    128,
    255,
    256,
    0x7fff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fff0,
    0xffff_ffff,
    0x1_0000_0000,
    (1 << 48) - 1,
    1 << 56,
    (1 << 56) - 1,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 5,
    u64::MAX,
];

/// Words that parsers of text look for.
const WORDS: [&str; 30] = [
    "=",
    ";",
    "{",
    "}",
    ":",
    ",",
    "#",
    "\\",
    "\"",
    "[",
    "]",
    "\n",
    " ",
    "-1",
    "0",
    "nullptr",
    "true",
    "false",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "4294967296",
    "1e308",
    "nan",
    "inf",
    "-0",
    "kZSTD",
    "{}",
    "../",
    "\u{0}",
];

/// The source of changes.
#[derive(Debug)]
pub struct Source<'a> {
    /// The numbers.
    pub rng: Rng,
    /// Other inputs of the target.
    pub others: &'a [Vec<u8>],
}

impl Source<'_> {
    /// A number that is likely to hurt, or any.
    pub fn number(&mut self) -> u64 {
        match self.rng.below(4) {
            0 => self.rng.next_u64() >> self.rng.below(64),
            1 => self.rng.below(64),
            _ => *self.rng.pick(&NUMBERS),
        }
    }

    /// A place in `bytes`, and a length that fits behind it; mostly a short one.
    fn range(&mut self, bytes: &[u8]) -> (usize, usize) {
        let at = self.rng.index(bytes.len() + 1);
        let most = bytes.len() - at;
        let most = if self.rng.one_in(3) {
            most
        } else {
            most.min(16)
        };
        (at, self.rng.index(most + 1))
    }
}

/// Makes one to six changes to any bytes.
pub fn bytes(input: &mut Vec<u8>, source: &mut Source<'_>) {
    let times = 1 + source.rng.below(3) * source.rng.below(4);
    for _ in 0..times {
        once(input, source);
    }
    input.truncate(LONGEST);
}

fn once(input: &mut Vec<u8>, source: &mut Source<'_>) {
    let (at, n) = source.range(input);
    if at == input.len() && !source.rng.one_in(4) {
        return once_at(input, source, at.saturating_sub(1));
    }
    match source.rng.below(10) {
        0 => drop(input.drain(at..at + n)),
        1 => {
            let piece = input[at..at + n].to_vec();
            insert(input, at, &piece);
        }
        2 => {
            let piece = input[at..at + n].to_vec();
            let to = source.rng.index(input.len() + 1);
            overwrite(input, to, &piece);
        }
        3 => {
            let byte = *source.rng.pick(&[0, 0xff, 0x80, 0x7f, b'0']);
            input[at..at + n].fill(byte);
        }
        4 if source.rng.one_in(4) => input.truncate(at),
        5 if !source.others.is_empty() => splice(input, source, at, n),
        6 => {
            let piece: Vec<u8> = (0..n.min(64))
                .map(|_| source.rng.next_u64() as u8)
                .collect();
            insert(input, at, &piece);
        }
        _ => once_at(input, source, at),
    }
}

/// Changes what stands at one place.
fn once_at(input: &mut Vec<u8>, source: &mut Source<'_>, at: usize) {
    let Some(byte) = input.get_mut(at) else {
        return insert(input, at.min(input.len()), &[source.rng.next_u64() as u8]);
    };
    match source.rng.below(6) {
        0 | 1 => *byte ^= 1 << source.rng.below(8),
        2 => *byte = byte.wrapping_add(*source.rng.pick(&[1, 255, 2, 254, 16, 128])),
        3 => {
            let width = *source.rng.pick(&[1, 2, 4, 8]);
            let number = source.number().to_le_bytes();
            overwrite(input, at, &number[..width]);
        }
        4 => varint(input, source, at),
        _ => {
            let width = *source.rng.pick(&[2, 4, 8]);
            let by = source.number();
            add(input, at, width, by);
        }
    }
}

/// Puts another number in place of the varint at `at`, which may make it longer or stretch it with
/// empty groups.
fn varint(input: &mut Vec<u8>, source: &mut Source<'_>, at: usize) {
    let end = input[at..].iter().take(10).position(|b| *b < 0x80);
    let end = end.map_or(input.len(), |n| at + n + 1);
    let mut other = Vec::new();
    put_varint64(&mut other, source.number());
    if source.rng.one_in(4) {
        let last = other.len() - 1;
        other[last] |= 0x80;
        other.extend_from_slice(&[0x80; 9][..source.rng.index(10)]);
        other.push(0);
    }
    input.splice(at..end.min(input.len()), other);
}

fn add(input: &mut [u8], at: usize, width: usize, by: u64) {
    let end = input.len().min(at + width);
    let mut carry = by;
    for byte in &mut input[at..end] {
        let sum = u64::from(*byte) + (carry & 0xff);
        *byte = sum as u8;
        carry = (carry >> 8) + (sum >> 8);
    }
}

fn insert(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    if input.len() + piece.len() <= LONGEST {
        input.splice(at..at, piece.iter().copied());
    }
}

fn overwrite(input: &mut [u8], at: usize, piece: &[u8]) {
    let n = piece.len().min(input.len() - at);
    input[at..at + n].copy_from_slice(&piece[..n]);
}

/// A piece of another input in place of `n` bytes.
fn splice(input: &mut Vec<u8>, source: &mut Source<'_>, at: usize, n: usize) {
    let other = source.rng.index(source.others.len());
    let other = &source.others[other];
    let (from, len) = {
        let from = source.rng.index(other.len() + 1);
        (from, source.rng.index(other.len() - from + 1))
    };
    if input.len() + len <= LONGEST {
        input.splice(at..at + n, other[from..from + len].iter().copied());
    }
}

/// Changes text: words that parsers look for put in, doubled, taken out; and sometimes any bytes.
pub fn text(input: &mut Vec<u8>, source: &mut Source<'_>) {
    for _ in 0..1 + source.rng.below(4) {
        let (at, n) = source.range(input);
        match source.rng.below(6) {
            0..=2 => {
                let word = source.rng.pick(&WORDS).as_bytes();
                let times = if source.rng.one_in(20) {
                    1 + source.rng.index(5000)
                } else {
                    1
                };
                insert(input, at, &word.repeat(times));
            }
            3 => drop(input.drain(at..at + n)),
            4 => {
                let piece = input[at..at + n].to_vec();
                insert(input, at, &piece);
            }
            _ => bytes(input, source),
        }
    }
    input.truncate(LONGEST);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_input() {
        let others = vec![vec![1; 50], b"other words".to_vec()];
        let made = |seed| {
            let rng = Rng::new(seed);
            let mut source = Source {
                rng,
                others: &others,
            };
            let mut input = vec![0; 100];
            bytes(&mut input, &mut source);
            text(&mut input, &mut source);
            input
        };
        for seed in 0..500 {
            assert_eq!(made(seed), made(seed));
        }
        let different: std::collections::BTreeSet<_> = (0..500).map(made).collect();
        assert!(different.len() > 400, "{} of 500", different.len());
    }

    #[test]
    fn nothing_is_a_fine_input() {
        for seed in 0..2000 {
            let rng = Rng::new(seed);
            let mut source = Source { rng, others: &[] };
            let mut input = Vec::new();
            bytes(&mut input, &mut source);
            text(&mut input, &mut source);
        }
    }
}
