//! Engines other than RocksDB's for `esker bench`: `--engine=lmdb`, `--engine=fjall`.
//!
//! Each is compiled only with its feature. Benchmarks of puts, deletes, gets and iterators run;
//! what an engine has no counterpart for (levels, statistics, merges, compression, synced writes)
//! is refused and not passed over. Their files are in a directory of their own name below that of
//! the database.

#[cfg(any(feature = "peer-fjall", feature = "peer-lmdb"))]
mod cursor;
#[cfg(feature = "peer-fjall")]
mod fjall;
#[cfg(feature = "peer-lmdb")]
mod lmdb;

#[cfg(feature = "peer-fjall")]
pub(crate) use self::fjall::FjallStore;
#[cfg(feature = "peer-lmdb")]
pub(crate) use self::lmdb::LmdbStore;

use crate::{Failure, Result};

/// An engine that some build drives.
pub(crate) struct Peer {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Its name on a page.
    pub(crate) title: &'static str,
    /// True if this build drives it.
    pub(crate) is_built: bool,
    /// How it runs, for the page.
    pub(crate) note: &'static str,
}

/// The engines that some build drives.
pub(crate) const PEERS: [Peer; 2] = [
    Peer {
        name: "lmdb",
        title: "LMDB",
        is_built: cfg!(feature = "peer-lmdb"),
        note: "MDB_WRITEMAP, MDB_NOSYNC, MDB_NORDAHEAD; no log, no compression, no checksums; its \
               cache is the system's page cache, so that the sizes of cache, blocks and memtables \
               do not apply",
    },
    Peer {
        name: "fjall",
        title: "fjall",
        is_built: cfg!(feature = "peer-fjall"),
        note: "the cache, the blocks and the memtables of the other engines; no compression; its \
               log is always on and not synced",
    },
];

/// The peer of a name.
pub(crate) fn peer(name: &str) -> Option<&'static Peer> {
    PEERS.iter().find(|peer| peer.name == name)
}

impl Peer {
    /// Its version, as far as it tells.
    pub(crate) fn version(&self) -> String {
        match self.name {
            #[cfg(feature = "peer-lmdb")]
            "lmdb" => crate::relational::lmdb::version(),
            "fjall" => "3".into(),
            _ => String::new(),
        }
    }

    /// Checks that it runs, with these options of its own.
    ///
    /// # Errors
    /// This build does not drive it, or there are options, which it would pass over.
    pub(crate) fn check(&self, options: &str) -> Result<()> {
        let name = self.name;
        if !self.is_built {
            return Err(Failure::new(format!(
                "this program was built without {name}: build it with --features peer-{name}"
            )));
        }
        match options {
            "" => Ok(()),
            options => Err(Failure::new(format!(
                "{name}?{options}: {name} takes no options of its own"
            ))),
        }
    }
}

#[cfg(any(feature = "peer-fjall", feature = "peer-lmdb"))]
mod common {
    use std::path::PathBuf;

    use crate::store::{OpenPlan, SessionPlan};
    use crate::{Failure, Result};

    /// Returns the error of a call about something that only RocksDB has.
    pub(super) fn not_of(engine: &str, what: &str) -> Failure {
        Failure::new(format!("{what}: {engine} has no such thing"))
    }

    /// An option of a plan.
    pub(super) fn option<'a>(options: &'a [(String, String)], name: &str) -> Option<&'a str> {
        let found = options.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The directory of an engine below that of the plan.
    ///
    /// # Errors
    /// The plan asks for what the engine would pass over, or the database is to be there and is
    /// not.
    pub(super) fn directory(plan: &OpenPlan, engine: &str, mark: &str) -> Result<PathBuf> {
        if let Some(flag) = plan.beyond_one_family() {
            return Err(not_of(engine, &format!("--{flag}")));
        }
        let codecs = ["compression", "bottommost_compression"];
        let codecs = codecs.iter().filter_map(|name| option(&plan.options, name));
        if codecs.into_iter().any(|codec| codec != "kNoCompression") {
            let text = format!("{engine} is driven without compression: --compression_type=none");
            return Err(Failure::new(text));
        }
        let path = plan.path.join(engine);
        if plan.must_exist && !path.join(mark).exists() {
            return Err(Failure::new(format!("{} is not there", path.display())));
        }
        Ok(path)
    }

    /// Refuses a session that would pass over a part of its plan.
    ///
    /// # Errors
    /// The first flag that it would pass over.
    pub(super) fn check(plan: &SessionPlan, engine: &str) -> Result<()> {
        let asked = [
            (plan.sync, "sync"),
            (plan.tailing, "use_tailing_iterator"),
            (plan.auto_refresh, "auto_refresh_iterator_with_snapshot"),
            (plan.prefix_same_as_start, "prefix_same_as_start"),
        ];
        let asked = asked.iter().find(|(is, _)| *is).map(|(_, flag)| *flag);
        match asked.or(plan.beyond_plain_reads()) {
            Some(flag) => Err(not_of(engine, &format!("--{flag}"))),
            None => Ok(()),
        }
    }

    /// A batch: pairs, without a value for a deletion.
    #[derive(Debug, Default)]
    pub(super) struct Batch(pub(super) Vec<(Vec<u8>, Option<Vec<u8>>)>);

    impl Batch {
        pub(super) fn put(&mut self, key: &[u8], value: &[u8]) {
            self.0.push((key.to_vec(), Some(value.to_vec())));
        }

        pub(super) fn delete(&mut self, key: &[u8]) {
            self.0.push((key.to_vec(), None));
        }
    }
}

#[cfg(all(test, any(feature = "peer-fjall", feature = "peer-lmdb")))]
mod tests;
