//! Several named byte strings as one input: `name length u8, name, length u32, bytes`, again and
//! again.
//!
//! Taking apart never fails: what does not fit is cut short, so that every input means something.
//! Pure functions.

/// Named byte strings, in order.
pub type Parts = Vec<(String, Vec<u8>)>;

/// The input that holds `parts`. Names are at most 255 bytes.
pub fn join<N: AsRef<str>, B: AsRef<[u8]>>(parts: &[(N, B)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in parts {
        let (name, bytes) = (name.as_ref().as_bytes(), bytes.as_ref());
        let name = &name[..name.len().min(255)];
        out.push(name.len() as u8);
        out.extend_from_slice(name);
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
    }
    out
}

/// The parts of an input.
pub fn split(input: &[u8]) -> Parts {
    fn take<'a>(rest: &mut &'a [u8], n: usize) -> &'a [u8] {
        let (head, tail) = rest.split_at(n.min(rest.len()));
        *rest = tail;
        head
    }
    let (mut rest, mut out) = (input, Vec::new());
    while let [n, tail @ ..] = rest {
        rest = tail;
        let name = String::from_utf8_lossy(take(&mut rest, usize::from(*n))).into_owned();
        let len = take(&mut rest, 4).iter().rev();
        let len = len.fold(0usize, |n, b| n << 8 | usize::from(*b));
        out.push((name, take(&mut rest, len).to_vec()));
    }
    out
}

/// The part with this name; nothing when there is none.
pub fn part<'a>(parts: &'a Parts, name: &str) -> &'a [u8] {
    parts
        .iter()
        .find(|(n, _)| n == name)
        .map_or(&[], |(_, bytes)| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_joined_is_split_again() {
        let parts: Parts = vec![
            ("CURRENT".into(), b"MANIFEST-000004\n".to_vec()),
            (String::new(), Vec::new()),
            ("long".into(), vec![7; 70_000]),
        ];
        assert_eq!(split(&join(&parts)), parts);
        for cut in 0..40 {
            let joined = join(&parts);
            assert!(split(&joined[..cut]).len() <= 3);
        }
    }
}
