//! Resident memory by owner.
//!
//! An owner is a counter: of the engine, of the client, of the allocator or of the kernel. What is
//! left has none, and is called so. With the figures of the allocators the parts add up to the
//! resident memory, whose own parts are these:
//!
//! ```text
//! resident = anonymous + mapped files + stacks                                        (kernel)
//! anonymous = given out + fragmentation + metadata + free pages - not touched      (allocator)
//! given out = caches of threads + owners + without an owner                 (engine and client)
//! ```

use crate::allocated::{AllocatorBytes, EngineAllocator};
use crate::process::{Resident, Usage};
use crate::shape::number;
use crate::store::Store;

/// The name for resident bytes without an owner.
pub const UNNAMED: &str = "without an owner";
/// The name for bytes that have an owner and are not resident: pages that nobody has written to.
/// They are negative.
pub const NOT_TOUCHED: &str = "not touched yet";

/// Names here of the owners in the engine's property `rocksdb.esker.memory`.
const ENGINE: [(&str, &str); 7] = [
    ("block-cache.entries", "block cache"),
    ("block-cache.tables", "tables of the block cache"),
    ("memtables", "memtables"),
    ("table-readers", "table readers"),
    ("table-builders", "table builders"),
    ("file-buffers", "file buffers"),
    ("statistics", "statistics"),
];

/// Names of the owners in an engine that only has RocksDB's properties.
const ROCKSDB: [(&str, &str); 3] = [
    ("rocksdb.block-cache-usage", "block cache"),
    ("rocksdb.size-all-mem-tables", "memtables"),
    ("rocksdb.estimate-table-readers-mem", "table readers"),
];

/// Reads the engine's counters.
fn of_engine<S: Store>(store: &S) -> Vec<(&'static str, u64)> {
    if let Some(text) = store.property("rocksdb.esker.memory") {
        return parse(&text);
    }
    let owners = ROCKSDB.iter();
    let owners = owners.map(|(property, name)| (*name, number(store, property).unwrap_or(0)));
    owners.collect()
}

fn parse(text: &str) -> Vec<(&'static str, u64)> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let owner = words.next()?;
        let (_, name) = ENGINE.iter().find(|(known, _)| *known == owner)?;
        Some((*name, words.next()?.parse().ok()?))
    });
    lines.collect()
}

/// Resident bytes by owner, in which `client` bytes are the laboratory's own. The last are those
/// without one.
pub fn memory<S: Store>(store: &S, client: u64) -> Vec<(&'static str, i64)> {
    let mut owners = of_engine(store);
    owners.push(("client", client));
    let allocated = match store.allocator() {
        EngineAllocator::Program => AllocatorBytes::own(),
        // It counts beside the program's.
        EngineAllocator::Own(theirs) => {
            theirs.map(|theirs| AllocatorBytes::own().map_or(theirs, |own| own.with(theirs)))
        }
    };
    let resident = Resident::now();
    of_parts(owners, allocated, resident, Usage::now().rss_bytes)
}

/// Names the counters that were read.
fn of_parts(
    owners: Vec<(&'static str, u64)>,
    allocated: Option<AllocatorBytes>,
    resident: Resident,
    rss: u64,
) -> Vec<(&'static str, i64)> {
    let asked: u64 = owners.iter().map(|(_, bytes)| bytes).sum();
    let signed = |(name, bytes): (&'static str, u64)| (name, bytes as i64);
    let mut all: Vec<(&'static str, i64)> = owners.into_iter().map(signed).collect();
    if let Some(own) = allocated {
        let free = own.resident.saturating_sub(own.active + own.metadata);
        all.extend(
            [
                ("allocator: caches of threads", own.cached),
                (
                    "allocator: fragmentation",
                    own.active.saturating_sub(own.given),
                ),
                ("allocator: tables", own.metadata),
                ("allocator: free pages", free),
            ]
            .map(signed),
        );
        let untouched = own.resident.saturating_sub(resident.anonymous);
        all.push((NOT_TOUCHED, -(untouched as i64)));
    }
    all.push(signed(("program and mapped files", resident.files)));
    all.push(signed(("stacks", resident.stacks)));
    let unnamed = match allocated {
        // What owners claim twice does not make up for what nobody claims elsewhere.
        Some(own) => {
            own.given.saturating_sub(own.cached + asked)
                + resident.anonymous.saturating_sub(own.resident)
        }
        None => {
            let known: i64 = all.iter().map(|(_, bytes)| bytes).sum();
            rss.saturating_sub(known as u64)
        }
    };
    all.push(signed((UNNAMED, unnamed)));
    all
}

/// The percentage of `rss` bytes that has an owner; more than 100 where owners claim more than
/// there is.
pub fn named_percent(owners: &[(&'static str, i64)], rss: u64) -> f64 {
    let named = owners.iter().filter(|(name, _)| *name != UNNAMED);
    let named: i64 = named.map(|(_, bytes)| bytes).sum();
    100.0 * named as f64 / rss.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESIDENT: Resident = Resident {
        files: 12,
        stacks: 3,
        anonymous: 100,
    };
    const ALLOCATED: AllocatorBytes = AllocatorBytes {
        given: 80,
        cached: 5,
        active: 90,
        metadata: 6,
        resident: 104,
    };

    fn of(owners: &[(&'static str, i64)], name: &str) -> i64 {
        let found = owners.iter().find(|(known, _)| *known == name);
        found.expect("it is there").1
    }

    #[test]
    fn parts_add_up_to_what_is_resident() {
        let asked = vec![("block cache", 60), ("client", 10)];
        let owners = of_parts(asked, Some(ALLOCATED), RESIDENT, 115);
        assert_eq!(owners.iter().map(|(_, bytes)| bytes).sum::<i64>(), 115);
        assert_eq!(of(&owners, "allocator: fragmentation"), 10);
        assert_eq!(of(&owners, "allocator: free pages"), 8);
        assert_eq!(of(&owners, NOT_TOUCHED), -4);
        // Given out and in no cache of a thread, but not asked for by anybody who counts.
        assert_eq!(of(&owners, UNNAMED), 5);
        assert_eq!(named_percent(&owners, 115).round(), 96.0);
    }

    #[test]
    fn memory_that_no_allocator_knows_has_no_owner() {
        let more = Resident {
            anonymous: 124,
            ..RESIDENT
        };
        let owners = of_parts(vec![("block cache", 75)], Some(ALLOCATED), more, 139);
        assert_eq!((of(&owners, UNNAMED), of(&owners, NOT_TOUCHED)), (20, 0));
        // Without figures of an allocator, neither has what is not counted.
        let owners = of_parts(vec![("block cache", 75)], None, RESIDENT, 115);
        assert_eq!(of(&owners, UNNAMED), 25);
    }

    #[test]
    fn what_is_claimed_twice_shows() {
        let owners = of_parts(vec![("block cache", 95)], Some(ALLOCATED), RESIDENT, 115);
        assert_eq!(of(&owners, UNNAMED), 0);
        assert!(named_percent(&owners, 115) > 115.0);
    }

    #[test]
    fn owners_of_the_engine_are_read_by_name() {
        let text = "block-cache.entries     1234\nfuture-owner 5\nfile-buffers 7\n";
        let expected = [("block cache", 1234), ("file buffers", 7)];
        assert_eq!(parse(text), expected);
    }

    /// The sizes that the engine believes an allocation to have are those of this allocator.
    #[cfg(feature = "jemalloc")]
    #[test]
    fn sizes_of_pieces_are_those_of_jemalloc() {
        use tikv_jemalloc_ctl::{Access, AsName};
        let number = |name: &str| -> usize { name.name().read().expect("a number") };
        let bins: u32 = "arenas.nbins\0".name().read().expect("a number");
        let mut below = 0;
        for bin in 0..bins {
            let size = number(&format!("arenas.bin.{bin}.size\0"));
            for asked in [below + 1, size] {
                let expected = esker::Allocator::Jemalloc.usable_size(asked);
                assert_eq!(expected, size, "{asked}");
            }
            below = size;
        }
        assert!(bins > 20);
    }
}
