//! Engines other than RocksDB's for `esker bench`: `--engine=lmdb`, `--engine=fjall`.
//!
//! Each is compiled only with its feature. What they have no counterpart for (levels, statistics,
//! merges) says that it is not driven; benchmarks of puts, deletes, gets and iterators run. Their
//! files are in a directory of their own name below that of the database.

#[cfg(feature = "peer-fjall")]
mod fjall;
#[cfg(feature = "peer-lmdb")]
mod lmdb;

#[cfg(feature = "peer-fjall")]
pub(crate) use self::fjall::FjallStore;
#[cfg(feature = "peer-lmdb")]
pub(crate) use self::lmdb::LmdbStore;

/// The engines that some build drives, and whether this one does.
pub(crate) const PEERS: [(&str, bool); 2] = [
    ("lmdb", cfg!(feature = "peer-lmdb")),
    ("fjall", cfg!(feature = "peer-fjall")),
];

/// Why a peer of this name does not run; none where it does, or for another name.
pub(crate) fn missing(name: &str) -> Option<String> {
    let (name, _) = PEERS.iter().find(|(peer, is)| *peer == name && !is)?;
    Some(format!(
        "this program was built without {name}: build it with --features peer-{name}"
    ))
}

/// What a call about something that only RocksDB has gives.
#[cfg(any(feature = "peer-fjall", feature = "peer-lmdb"))]
fn not_of(engine: &str, what: &str) -> crate::Failure {
    crate::Failure::new(format!("{what}: {engine} has no such thing"))
}

/// Whether a key lies beyond the bounds of an iterator.
#[cfg(any(feature = "peer-fjall", feature = "peer-lmdb"))]
#[derive(Debug, Default)]
struct Bounds {
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
}

#[cfg(any(feature = "peer-fjall", feature = "peer-lmdb"))]
impl Bounds {
    fn new(lower: Option<&[u8]>, upper: Option<&[u8]>) -> Bounds {
        Bounds {
            lower: lower.map(<[u8]>::to_vec),
            upper: upper.map(<[u8]>::to_vec),
        }
    }

    #[inline]
    fn holds(&self, key: &[u8]) -> bool {
        self.lower.as_deref().is_none_or(|lower| lower <= key)
            && self.upper.as_deref().is_none_or(|upper| key < upper)
    }
}

#[cfg(all(test, any(feature = "peer-fjall", feature = "peer-lmdb")))]
mod tests;
