//! Values as reads return them: without a copy where the bytes can be kept in place.

use crate::core::ReadCore;
use crate::memtable::{MemCursor, MemTable};
use crate::tree::blobs::BlobValue;
use crate::ttl;
use esker_files::blob::CachedBlob;
use esker_files::table::PinnedBlockValue;
use esker_format::Cursor;
use esker_lsm::point::Payload;
use esker_status::Result;
use esker_sync::Arc;
use std::fmt;
use std::ops::Deref;

/// A value that a read found. It dereferences to its bytes; a value inside a cached block keeps the
/// block in memory for as long as it lives, and a large one inside a memtable the memtable.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let db = esker::Db::open(dir.path(), esker::Options::new().create_if_missing(true))?;
/// db.put("key", "value")?;
/// let value = db.get_pinned("key")?.expect("was put");
/// assert_eq!((&*value, value.len()), (&b"value"[..], 5));
/// assert_eq!(value.into_vec(), b"value");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PinnedValue(pub(crate) PinnedBytes);

#[derive(Clone)]
pub(crate) enum PinnedBytes {
    Owned(Vec<u8>),
    Block(PinnedBlockValue),
    Memtable(MemValue),
    Blob(CachedBlob),
}

/// A smaller value of a memtable is copied: that costs less than to find it again, and does not
/// keep the memtable.
const PIN_FROM: usize = 32 << 10;

/// A value where it lies in a memtable.
#[derive(Clone)]
pub(crate) struct MemValue {
    at: Arc<MemCursor>,
    len: usize,
}

impl MemValue {
    #[inline]
    fn as_slice(&self) -> &[u8] {
        &self.at.value()[..self.len]
    }
}

impl PinnedValue {
    /// The value as the application wrote it: without the time of its writing where families have
    /// a time to live.
    #[inline]
    pub(crate) fn without_time(core: &ReadCore, value: Option<Self>) -> Result<Option<Self>> {
        match value {
            Some(stamped) if core.ttl.is_some() => stamped.cut_time().map(Some),
            plain => Ok(plain),
        }
    }

    /// The value without the time behind it.
    pub(crate) fn cut_time(mut self) -> Result<Self> {
        ttl::check(&self)?;
        let len = self.len() - ttl::TIME_LEN;
        self.truncate(len);
        Ok(self)
    }

    pub(crate) fn owned(bytes: Vec<u8>) -> Self {
        PinnedValue(PinnedBytes::Owned(bytes))
    }

    /// A value of a blob file, where it lies when it is cached.
    pub(crate) fn of_blob(blob: BlobValue) -> Self {
        match blob {
            BlobValue::Owned(value) => PinnedValue::owned(value),
            BlobValue::Cached(value) => PinnedValue(PinnedBytes::Blob(value)),
        }
    }

    /// The value of the entry `key` of a memtable, where it lies when it is large.
    #[inline]
    pub(crate) fn of_memtable(mem: &MemTable, key: &[u8], value: &[u8]) -> Self {
        if value.len() < PIN_FROM {
            return PinnedValue::owned(value.to_vec());
        }
        let mut at = mem.cursor();
        at.seek(key);
        PinnedValue(PinnedBytes::Memtable(MemValue {
            at: Arc::new(at),
            len: value.len(),
        }))
    }

    /// The bytes, copied only when they are inside a block, a memtable or a cached blob.
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            PinnedBytes::Owned(v) => v,
            PinnedBytes::Block(b) => b.as_slice().to_vec(),
            PinnedBytes::Memtable(m) => m.as_slice().to_vec(),
            PinnedBytes::Blob(b) => b.as_slice().to_vec(),
        }
    }
}

impl Deref for PinnedValue {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            PinnedBytes::Owned(v) => v,
            PinnedBytes::Block(b) => b.as_slice(),
            PinnedBytes::Memtable(m) => m.as_slice(),
            PinnedBytes::Blob(b) => b.as_slice(),
        }
    }
}

impl AsRef<[u8]> for PinnedValue {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Payload for PinnedValue {
    fn truncate(&mut self, len: usize) {
        match &mut self.0 {
            PinnedBytes::Owned(v) => v.truncate(len),
            PinnedBytes::Block(b) => b.truncate(u32::try_from(len).unwrap_or(u32::MAX)),
            PinnedBytes::Memtable(m) => m.len = m.len.min(len),
            PinnedBytes::Blob(b) => b.truncate(len),
        }
    }
}

impl fmt::Debug for PinnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 20;
        match self.get(..SHOWN) {
            Some(begin) if self.len() > SHOWN => {
                let (begin, bytes) = (begin.escape_ascii(), self.len());
                write!(f, "\"{begin}\".. ({bytes} bytes)")
            }
            _ => write!(f, "\"{}\"", self.escape_ascii()),
        }
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for PinnedValue {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl From<Vec<u8>> for PinnedValue {
    fn from(v: Vec<u8>) -> PinnedValue {
        PinnedValue::owned(v)
    }
}

impl From<PinnedValue> for Vec<u8> {
    fn from(v: PinnedValue) -> Vec<u8> {
        v.into_vec()
    }
}
