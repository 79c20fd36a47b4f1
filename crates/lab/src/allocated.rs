//! Figures of allocators.

/// Figures of an allocator, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocatorBytes {
    /// Given out, or in caches of threads.
    pub(crate) given: u64,
    /// Of that in caches of threads.
    pub(crate) cached: u64,
    /// Pages of which something was given out.
    pub(crate) active: u64,
    /// Its own tables.
    pub(crate) metadata: u64,
    /// All pages but those that it gave back.
    pub(crate) resident: u64,
}

/// Where an engine's memory comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineAllocator {
    /// The allocator of the program.
    Program,
    /// Another one, with what it says of itself if it does.
    Own(Option<AllocatorBytes>),
}

impl AllocatorBytes {
    /// Of an allocator that knows no more than what was given out of which heaps.
    pub(crate) fn in_heaps(given: u64, system: u64) -> AllocatorBytes {
        AllocatorBytes {
            given,
            cached: 0,
            active: system,
            metadata: 0,
            resident: system,
        }
    }

    /// Returns whether this is more than what an allocator has that is loaded and not used.
    pub(crate) fn is_used(&self) -> bool {
        self.given > 1 << 20
    }

    /// Of the statistics that `read` gives by jemalloc's names.
    pub(crate) fn read(read: impl Fn(&str) -> Option<u64>) -> Option<AllocatorBytes> {
        Some(AllocatorBytes {
            given: read("stats.allocated\0")?,
            cached: read(CACHED)?,
            active: read("stats.active\0")?,
            metadata: read("stats.metadata\0")?,
            resident: read("stats.resident\0")?,
        })
    }

    /// Of this program, where its allocator tells.
    #[cfg(feature = "jemalloc")]
    pub(crate) fn own() -> Option<AllocatorBytes> {
        use tikv_jemalloc_ctl::{Access, AsName, epoch};
        epoch::advance().ok()?;
        let read = |name: &str| {
            let bytes: usize = name.name().read().ok()?;
            Some(bytes as u64)
        };
        // A program that has another allocator links this one and does not use it.
        Self::read(read).filter(Self::is_used)
    }

    /// Of this program, where its allocator tells.
    #[cfg(not(feature = "jemalloc"))]
    pub(crate) fn own() -> Option<AllocatorBytes> {
        None
    }

    /// The sum of both.
    pub(crate) fn with(self, other: AllocatorBytes) -> AllocatorBytes {
        AllocatorBytes {
            given: self.given + other.given,
            cached: self.cached + other.cached,
            active: self.active + other.active,
            metadata: self.metadata + other.metadata,
            resident: self.resident + other.resident,
        }
    }
}

/// The caches of the threads of all arenas.
const CACHED: &str = "stats.arenas.4096.tcache_bytes\0";
