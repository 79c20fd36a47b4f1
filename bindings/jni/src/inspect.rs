//! The parts of a database, and what was written to it: sizes, files, families, the log.

use crate::batch::{Batch, Plain};
use crate::boundary::{Env, Outcome, handles};
use crate::cache::Cache;
use crate::database::Database;
use crate::options::SharedEnv;
use crate::shared::ExclusiveValue;
use crate::slice::Slice;
use crate::{disposals, natives};
use esker::{Error, LevelMeta, LiveFileMeta, SizeOptions, TransactionLog, WalKind};
use esker_sync::Arc;
use jni_sys::{jbyte, jint, jlong, jobject, jvalue};

/// The iterator over the log.
type Updates = ExclusiveValue<TransactionLog>;

/// A file as an object of `class`, whose constructor takes `first` before what all such classes
/// have.
pub(crate) fn described(
    env: Env<'_>,
    file: &LiveFileMeta,
    class: &str,
    (first, first_types): (&[jvalue], &str),
) -> Outcome<jobject> {
    let objects = [
        env.string(&format!("/{}", file.name.trim_start_matches('/')))?,
        env.string(&file.directory.to_string_lossy())?,
        env.new_array(&file.smallest_key)?,
        env.new_array(&file.largest_key)?,
        env.new_array(&file.file_checksum)?,
    ];
    let numbers = [
        file.size,
        file.smallest_seq,
        file.largest_seq,
        file.num_entries,
        file.num_deletions,
    ];
    let [size, first_seq, last_seq, entries, deletions] = numbers.map(|n| jvalue { j: n as jlong });
    let [name, directory, smallest, largest, checksum] = objects.map(|l| jvalue { l });
    let sampled_reads = jvalue { j: 0 };
    let is_compacted = jvalue {
        z: file.being_compacted,
    };
    let mut arguments = first.to_vec();
    arguments.extend([
        name,
        directory,
        size,
        first_seq,
        last_seq,
        smallest,
        largest,
        sampled_reads,
        is_compacted,
        entries,
        deletions,
        checksum,
    ]);
    let descriptor = format!("({first_types}Ljava/lang/String;Ljava/lang/String;JJJ[B[BJZJJ[B)V");
    let made = env.construct(class, &descriptor, &arguments)?;
    objects.into_iter().for_each(|o| env.forget(o));
    Ok(made)
}

fn level(env: Env<'_>, level: &LevelMeta) -> Outcome<jobject> {
    let class = "org/rocksdb/SstFileMetaData";
    let files = env.objects(class, level.files.len(), |at| {
        described(env, &level.files[at], class, (&[], ""))
    })?;
    let arguments = [
        jvalue {
            i: jint::from(level.level),
        },
        jvalue {
            j: level.size as jlong,
        },
        jvalue { l: files },
    ];
    let descriptor = "(IJ[Lorg/rocksdb/SstFileMetaData;)V";
    let made = env.construct("org/rocksdb/LevelMetaData", descriptor, &arguments)?;
    env.forget(files);
    Ok(made)
}

/// The names of the files that are needed, below the directory, and the size of the MANIFEST.
fn live(db: &esker::Db) -> Outcome<(Vec<String>, u64)> {
    let mut names = Vec::new();
    let mut manifest = 0;
    for file in db.live_files()? {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("MANIFEST-") {
            manifest = file.bytes;
        }
        if !name.ends_with(".log") {
            names.push(format!("/{name}"));
        }
    }
    if !names.iter().any(|n| n == "/CURRENT") {
        names.push("/CURRENT".to_owned());
    }
    Ok((names, manifest))
}

natives! {
    /// The flags are 1 for memtables and 2 for files; the slices are the beginnings and ends.
    fn Java_org_rocksdb_RocksDB_getApproximateSizes(
        env, db: jlong, family: jlong, edges: jobject, flags: jbyte
    ) -> jobject {
        let mut bounds = Vec::new();
        for edge in env.longs(edges)? {
            bounds.push(handles::hold::<Slice>(edge)?.bytes().to_vec());
        }
        let ranges = bounds.chunks_exact(2).map(|r| (r[0].clone(), r[1].clone()));
        let ranges: Vec<_> = ranges.collect();
        let mut options = SizeOptions::default();
        options.include_memtables = flags & 1 != 0;
        options.include_files = flags & 2 != 0;
        let database = handles::hold::<Database>(db)?;
        let sizes = database.with_family(family, |db, family| {
            Ok(db.approximate_sizes_opt(family, &ranges, &options)?)
        })?;
        let sizes: Vec<jlong> = sizes.into_iter().map(|s| s as jlong).collect();
        env.new_longs(&sizes)
    }

    fn Java_org_rocksdb_RocksDB_getColumnFamilyMetaData(
        env, db: jlong, family: jlong
    ) -> jobject {
        let database = handles::hold::<Database>(db)?;
        let meta = database.with_family(family, |db, family| Ok(db.family_metadata(family)))?;
        let class = "org/rocksdb/LevelMetaData";
        let levels = env.objects(class, meta.levels.len(), |at| level(env, &meta.levels[at]))?;
        let arguments = [
            jvalue { j: meta.size as jlong },
            jvalue { j: meta.file_count as jlong },
            jvalue { l: env.new_array(meta.name.as_bytes())? },
            jvalue { l: levels },
        ];
        let descriptor = "(JJ[B[Lorg/rocksdb/LevelMetaData;)V";
        env.construct("org/rocksdb/ColumnFamilyMetaData", descriptor, &arguments)
    }

    /// The last element is the size of the MANIFEST.
    fn Java_org_rocksdb_RocksDB_getLiveFiles(env, db: jlong, flush: bool) -> jobject {
        let database = handles::hold::<Database>(db)?;
        let db = database.open()?;
        if flush {
            db.flush_cf(&database.default, &esker::FlushOptions::default())?;
        }
        let (mut names, manifest) = live(db)?;
        names.push(manifest.to_string());
        env.strings(&names)
    }

    fn Java_org_rocksdb_RocksDB_getSortedWalFiles(env, db: jlong) -> jobject {
        let files = handles::hold::<Database>(db)?.open()?.sorted_wal_files()?;
        env.objects("org/rocksdb/LogFile", files.len(), |at| {
            let file = &files[at];
            let arguments = [
                jvalue { l: env.string(&file.path_name())? },
                jvalue { j: file.number as jlong },
                jvalue { b: jbyte::from(matches!(file.kind, WalKind::Alive)) },
                jvalue { j: file.start_sequence as jlong },
                jvalue { j: file.bytes as jlong },
            ];
            env.construct("org/rocksdb/LogFile", "(Ljava/lang/String;JBJJ)V", &arguments)
        })
    }

    fn Java_org_rocksdb_RocksDB_getUpdatesSince(env, db: jlong, sequence: jlong) -> jlong {
        let log = handles::hold::<Database>(db)?.open()?.updates_since(sequence as u64)?;
        Ok(handles::give_owned(Updates::new(log), db))
    }

    fn Java_org_rocksdb_TransactionLogIterator_isValid(env, log: jlong) -> bool {
        Ok(handles::hold::<Updates>(log)?.lock().valid())
    }

    fn Java_org_rocksdb_TransactionLogIterator_next(env, log: jlong) {
        handles::hold::<Updates>(log)?.lock().next();
        Ok(())
    }

    fn Java_org_rocksdb_TransactionLogIterator_status(env, log: jlong) {
        Ok(handles::hold::<Updates>(log)?.lock().status()?)
    }

    fn Java_org_rocksdb_TransactionLogIterator_getBatch(env, log: jlong) -> jobject {
        let held = handles::hold::<Updates>(log)?;
        let log = held.lock();
        if !log.valid() {
            return Err(Error::invalid_argument("the iterator stands on no batch").into());
        }
        let sequence = log.sequence() as jlong;
        let batch = handles::give(Batch::new(Plain { batch: log.batch().clone() }));
        let arguments = [jvalue { j: sequence }, jvalue { j: batch }];
        let class = "org/rocksdb/TransactionLogIterator$BatchResult";
        env.construct(class, "(JJ)V", &arguments)
    }

    fn Java_org_rocksdb_RocksDB_getEnv(env, db: jlong) -> jlong {
        let world = handles::hold::<Database>(db)?.open()?.env().clone();
        Ok(handles::give_owned(SharedEnv(Some(world)), db))
    }

    /// By Java's numbers: memtables, memtables not flushed, readers of tables, caches.
    fn Java_org_rocksdb_MemoryUtil_getApproximateMemoryUsageByType(
        env, dbs: jobject, caches: jobject
    ) -> jobject {
        let mut sums = [0u64; 4];
        for db in env.longs(dbs)? {
            let database = handles::hold::<Database>(db)?;
            let names = [
                "rocksdb.size-all-mem-tables",
                "rocksdb.cur-size-all-mem-tables",
                "rocksdb.estimate-table-readers-mem",
            ];
            for (sum, name) in sums.iter_mut().zip(names) {
                *sum += database.open()?.aggregated_int_property(name).unwrap_or(0);
            }
        }
        let mut seen: Vec<Arc<esker::BlockCache>> = Vec::new();
        for cache in env.longs(caches)? {
            let cache = Arc::clone(&handles::hold::<Cache>(cache)?.0);
            if !seen.iter().any(|s| Arc::ptr_eq(s, &cache)) {
                sums[3] += cache.usage() as u64;
                seen.push(cache);
            }
        }
        let mut entries = Vec::new();
        for (number, sum) in sums.iter().enumerate() {
            let number = [jvalue { b: number as jbyte }];
            entries.push((
                env.construct("java/lang/Byte", "(B)V", &number)?,
                env.long(*sum)?,
            ));
        }
        env.map(&entries)
    }
}

disposals! {
    Updates: Java_org_rocksdb_TransactionLogIterator_disposeInternal
        | Java_org_rocksdb_TransactionLogIterator_disposeInternalJni;
}
