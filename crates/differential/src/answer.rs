//! Answers of a library, and bytes as text.

/// An answer of a library: text that has to agree, and sizes that have to be alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CallResult {
    pub(super) text: String,
    pub(super) sizes: Vec<u64>,
}

impl std::fmt::Display for CallResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)?;
        if self.sizes.is_empty() {
            Ok(())
        } else {
            write!(f, ", sizes {:?}", self.sizes)
        }
    }
}

impl From<String> for CallResult {
    fn from(text: String) -> CallResult {
        CallResult {
            text,
            sizes: Vec::new(),
        }
    }
}

/// Bytes for a person, exactly when short.
pub(super) fn show(bytes: &[u8]) -> String {
    if bytes.len() <= 48 {
        return format!("\"{}\"", bytes.escape_ascii());
    }
    let hash = hash(0, bytes);
    let head = bytes[..16].escape_ascii();
    format!("\"{head}\"...({} bytes, {hash:016x})", bytes.len())
}

/// FNV-1a, going on from `seed`.
pub(super) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let begin = seed ^ 0xcbf2_9ce4_8422_2325;
    bytes.iter().fold(begin, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}
