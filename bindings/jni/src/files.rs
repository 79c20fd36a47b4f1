//! Files of a database by name: listed, ingested, exported and imported, compacted, deleted by
//! range.

use crate::boundary::{Env, Outcome, handles};
use crate::checkpoint::Checkpoint;
use crate::database::{Database, Family};
use crate::inspect::described;
use crate::job_info::JobInfo;
use crate::shared::{ExclusiveValue, value};
use crate::table_file::FileOptions;
use crate::{disposals, natives};
use esker::options::{BottommostLevelCompaction, ReadTier};
use esker::{
    CompactFilesOptions, CompactRangeOptions, Db, Error, ExportedFiles, FamilyHandle, FlushOptions,
    ImportOptions, IngestOptions, LiveFileMeta, Options, ReadOptions, SstFileWriter,
};
use jni_sys::{jint, jlong, jobject, jvalue};
use std::ptr;

/// The files of a family that was exported.
pub(crate) struct ExportHandle(ExportedFiles);

type Writer = ExclusiveValue<SstFileWriter>;

/// A file with its family and its level.
fn with_family(env: Env<'_>, file: &LiveFileMeta) -> Outcome<jobject> {
    let family = env.new_array(file.family.as_bytes())?;
    let level = jint::from(file.level);
    let first = [jvalue { l: family }, jvalue { i: level }];
    let made = described(env, file, "org/rocksdb/LiveFileMetaData", (&first, "[BI"))?;
    env.forget(family);
    Ok(made)
}

/// Removes what is before `begin`, and what is at `end` or beyond it, from a family: whole tables
/// first. A failure leaves a part of it there.
fn clip(db: &Db, family: &FamilyHandle, begin: &[u8], end: &[u8]) -> esker::Result<()> {
    db.flush_cf(family, &FlushOptions::default())?;
    db.delete_files_in_ranges(family, &[(None, Some(begin)), (Some(end), None)], false)?;
    let order = family.order();
    let found = db.family_metadata(family);
    let tables = || found.levels.iter().flat_map(|level| &level.files);
    let smallest = tables().map(|f| &f.smallest_key);
    let largest = tables().map(|f| &f.largest_key);
    let smallest = smallest.min_by(|a, b| order.compare(a, b));
    let largest = largest.max_by(|a, b| order.compare(a, b));
    let (Some(smallest), Some(largest)) = (smallest, largest) else {
        return Ok(());
    };
    if order.compare(smallest, begin).is_lt() {
        db.delete_range_cf(family, smallest, begin)?;
    }
    if order.compare(end, largest).is_le() {
        db.delete_range_cf(family, end, largest)?;
        db.delete_cf(family, largest)?;
    }
    let mut options = CompactRangeOptions::default();
    options.exclusive_manual_compaction = true;
    options.bottommost_level_compaction = BottommostLevelCompaction::ForceOptimized;
    db.compact_range_opt(family, None, None, &options)
}

natives! {
    fn Java_org_rocksdb_RocksDB_getLiveFilesMetaData(env, db: jlong) -> jobject {
        let files = handles::hold::<Database>(db)?.open()?.live_files_metadata();
        env.objects("org/rocksdb/LiveFileMetaData", files.len(), |at| with_family(env, &files[at]))
    }

    /// A null at the beginning or the end of a range stands for no bound.
    fn Java_org_rocksdb_RocksDB_deleteFilesInRanges(
        env, db: jlong, family: jlong, edges: jobject, includes_end: bool
    ) {
        let edges = env.each(edges, |edge| {
            if edge.is_null() {
                return Ok(None);
            }
            env.array(edge).map(Some)
        })?;
        let ranges: Vec<_> = edges
            .chunks_exact(2)
            .map(|pair| (pair[0].as_deref(), pair[1].as_deref()))
            .collect();
        let database = handles::hold::<Database>(db)?;
        database.with_family(family, |db, family| {
            Ok(db.delete_files_in_ranges(family, &ranges, includes_end)?)
        })
    }

    fn Java_org_rocksdb_RocksDB_clipColumnFamily(
        env, db: jlong, family: jlong, begin: jobject, at: jint, n: jint, end: jobject, from: jint,
        m: jint
    ) {
        let (begin, end) = (env.region(begin, at, n)?, env.region(end, from, m)?);
        let database = handles::hold::<Database>(db)?;
        database.with_family(family, |db, family| Ok(clip(db, family, &begin, &end)?))
    }

    fn Java_org_rocksdb_RocksDB_ingestExternalFile(
        env, db: jlong, family: jlong, files: jobject, _count: jint, options: jlong
    ) {
        let files = env.each(files, |f| env.text(f))?;
        let options = value::<IngestOptions>(options)?;
        let database = handles::hold::<Database>(db)?;
        database.with_family(family, |db, family| Ok(db.ingest(family, &files, &options)?))
    }

    fn Java_org_rocksdb_Checkpoint_exportColumnFamily(
        env, checkpoint: jlong, family: jlong, path: jobject
    ) -> jlong {
        let path = env.text(path)?;
        let checkpoint = handles::hold::<Checkpoint>(checkpoint)?;
        let family = handles::hold::<Family>(family)?;
        if !checkpoint.db().owns(&family.0) {
            return Err(crate::database::other_database(&family.0));
        }
        Ok(handles::give(ExportHandle(checkpoint.db().export_family(&family.0, path)?)))
    }

    fn Java_org_rocksdb_RocksDB_createColumnFamilyWithImport(
        env, db: jlong, name: jobject, length: jint, options: jlong, import: jlong, files: jobject
    ) -> jlong {
        let name = env.region(name, 0, length)?;
        let options = value::<Options>(options)?.family.clone();
        let import = value::<ImportOptions>(import)?;
        let mut exported = Vec::new();
        for files in env.longs(files)? {
            exported.push(handles::hold::<ExportHandle>(files)?.0.clone());
        }
        let database = handles::hold::<Database>(db)?;
        let name = String::from_utf8_lossy(&name);
        let made = database.open()?.import_family(&name, options, &import, &exported)?;
        Ok(handles::give_owned(Family::new(made), db))
    }

    fn Java_org_rocksdb_RocksDB_compactFiles(
        env, db: jlong, options: jlong, family: jlong, files: jobject, level: jint, path: jint,
        info: jlong
    ) -> jobject {
        let info = handles::hold_if::<JobInfo>(info)?;
        let files = env.each(files, |f| env.text(f))?;
        let mut options = CompactFilesOptions::clone(&*value::<CompactFilesOptions>(options)?);
        options.output_path_id = u32::try_from(path).unwrap_or(0);
        let level = u8::try_from(level).map_err(|_| {
            Error::invalid_argument("Output level for column family is out of range")
        })?;
        let database = handles::hold::<Database>(db)?;
        let done = database.with_family(family, |db, family| {
            Ok(db.compact_files_opt(family, &files, level, &options)?)
        })?;
        if let Some(info) = info {
            info.fill(done.clone());
        }
        let made: Vec<_> = done.output_files.iter().filter_map(|f| done.paths.get(f)).collect();
        let made: Vec<_> = made.iter().map(|path| path.to_string_lossy()).collect();
        env.strings(&made)
    }

    fn Java_org_rocksdb_SstFileWriter_newSstFileWriter__JJ(
        env, files: jlong, options: jlong
    ) -> jlong {
        let writer = SstFileWriter::new(&*value::<Options>(options)?)?;
        let how = value::<FileOptions>(files)?.writing();
        Ok(handles::give(Writer::new(writer.with_file_options(how))))
    }

    fn Java_org_rocksdb_SstFileWriter_open(env, writer: jlong, path: jobject) {
        let path = env.text(path)?;
        Ok(handles::hold::<Writer>(writer)?.lock().open(path)?)
    }

    fn Java_org_rocksdb_SstFileWriter_put__J_3B_3B(
        env, writer: jlong, key: jobject, value: jobject
    ) {
        let (key, value) = (env.array(key)?, env.array(value)?);
        Ok(handles::hold::<Writer>(writer)?.lock().put(&key, &value)?)
    }

    fn Java_org_rocksdb_SstFileWriter_merge__J_3B_3B(
        env, writer: jlong, key: jobject, value: jobject
    ) {
        let (key, value) = (env.array(key)?, env.array(value)?);
        Ok(handles::hold::<Writer>(writer)?.lock().merge(&key, &value)?)
    }

    fn Java_org_rocksdb_SstFileWriter_delete__J_3B(env, writer: jlong, key: jobject) {
        let key = env.array(key)?;
        Ok(handles::hold::<Writer>(writer)?.lock().delete(&key)?)
    }

    fn Java_org_rocksdb_SstFileWriter_put__JJJ(env, writer: jlong, key: jlong, value: jlong) {
        let key = handles::hold::<crate::slice::Slice>(key)?;
        let value = handles::hold::<crate::slice::Slice>(value)?;
        Ok(handles::hold::<Writer>(writer)?.lock().put(&**key.bytes(), &**value.bytes())?)
    }

    fn Java_org_rocksdb_SstFileWriter_merge__JJJ(env, writer: jlong, key: jlong, value: jlong) {
        let key = handles::hold::<crate::slice::Slice>(key)?;
        let value = handles::hold::<crate::slice::Slice>(value)?;
        Ok(handles::hold::<Writer>(writer)?.lock().merge(&**key.bytes(), &**value.bytes())?)
    }

    fn Java_org_rocksdb_SstFileWriter_delete__JJ(env, writer: jlong, key: jlong) {
        let key = handles::hold::<crate::slice::Slice>(key)?;
        Ok(handles::hold::<Writer>(writer)?.lock().delete(&**key.bytes())?)
    }

    fn Java_org_rocksdb_SstFileWriter_putDirect(
        env, writer: jlong, key: jobject, at: jint, n: jint, value: jobject, from: jint, m: jint
    ) {
        let (key, value) = (env.direct(key, at, n)?, env.direct(value, from, m)?);
        Ok(handles::hold::<Writer>(writer)?.lock().put(key, value)?)
    }

    fn Java_org_rocksdb_SstFileWriter_finish(env, writer: jlong) {
        handles::hold::<Writer>(writer)?.lock().finish()?;
        Ok(())
    }

    fn Java_org_rocksdb_SstFileWriter_fileSize(env, writer: jlong) -> jlong {
        Ok(handles::hold::<Writer>(writer)?.lock().file_size() as jlong)
    }

    /// The value, where it is known without reading a file.
    fn Java_org_rocksdb_RocksDB_keyMayExistFoundValue(
        env, db: jlong, family: jlong, _options: jlong, key: jobject, offset: jint, length: jint
    ) -> jobject {
        let key = env.region(key, offset, length)?;
        let database = handles::hold::<Database>(db)?;
        let may = database.with_family(family, |db, family| Ok(db.key_may_exist(family, &key)))?;
        let mut flag = u8::from(may);
        let mut known = None;
        if may {
            let mut options = ReadOptions::default();
            options.read_tier = ReadTier::BlockCache;
            known = database.with_family(family, |db, family| {
                Ok(db.get_opt(family, &key, &options, None).ok().flatten())
            })?;
            flag += u8::from(known.is_some());
        }
        // First 0 for no, 1 for maybe, 2 for yes, and then the value.
        env.objects("[B", 2, |at| match (at, &known) {
            (0, _) => env.new_array(&[flag]),
            (_, Some(value)) => env.new_array(value),
            (_, None) => Ok(ptr::null_mut()),
        })
    }
}

disposals! {
    ExportHandle: Java_org_rocksdb_ExportImportFilesMetaData_disposeInternal;
    Writer: Java_org_rocksdb_SstFileWriter_disposeInternal
        | Java_org_rocksdb_SstFileWriter_disposeInternalJni;
}
