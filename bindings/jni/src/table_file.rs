//! Table files that belong to no open database, and how files are written.

use crate::boundary::{Outcome, handles};
use crate::call_options::ReadState;
use crate::iterator::{Iter, Walk};
use crate::shared::{ExclusiveValue, SharedValue, give, value};
use crate::{disposals, natives, table_properties};
use esker::env::WriteOptions;
use esker::options::DbOptions;
use esker::{Error, Options, SstFileReader};
use jni_sys::{jlong, jobject};

/// How files are written. Of all this a writer of tables takes what [`FileOptions::writing`] has;
/// the rest is about files that such a writer does not read.
#[derive(Clone)]
pub(crate) struct FileOptions {
    pub(crate) use_mmap_reads: bool,
    pub(crate) use_mmap_writes: bool,
    pub(crate) use_direct_reads: bool,
    pub(crate) use_direct_writes: bool,
    pub(crate) allow_fallocate: bool,
    pub(crate) set_fd_cloexec: bool,
    pub(crate) fallocate_with_keep_size: bool,
    pub(crate) bytes_per_sync: u64,
    pub(crate) compaction_readahead_size: u64,
    pub(crate) random_access_max_buffer_size: u64,
    pub(crate) writable_file_max_buffer_size: u64,
}

impl FileOptions {
    /// As a database with `options` would write files.
    fn of(options: &DbOptions) -> Self {
        FileOptions {
            use_mmap_reads: options.allow_mmap_reads,
            use_mmap_writes: options.allow_mmap_writes,
            use_direct_reads: options.use_direct_reads,
            use_direct_writes: false,
            allow_fallocate: options.allow_fallocate,
            set_fd_cloexec: options.is_fd_close_on_exec,
            fallocate_with_keep_size: true,
            bytes_per_sync: options.bytes_per_sync,
            compaction_readahead_size: options.compaction_readahead_size as u64,
            random_access_max_buffer_size: options.random_access_max_buffer_size as u64,
            writable_file_max_buffer_size: options.writable_file_max_buffer_size as u64,
        }
    }

    /// The options of a writer of tables.
    pub(crate) fn writing(&self) -> WriteOptions {
        WriteOptions {
            direct: self.use_direct_writes,
            bytes_per_sync: self.bytes_per_sync,
            buffer_size: usize::try_from(self.writable_file_max_buffer_size).unwrap_or(usize::MAX),
            ..WriteOptions::default()
        }
    }
}

/// A reader with the options that it opens files by.
struct Reader {
    options: Options,
    open: Option<SstFileReader>,
}

type SharedReader = ExclusiveValue<Reader>;

/// Calls `read` with the file that is open.
fn with_open<R>(reader: jlong, read: impl FnOnce(&SstFileReader) -> Outcome<R>) -> Outcome<R> {
    let reader = handles::hold::<SharedReader>(reader)?;
    let reader = reader.lock();
    let none = || Error::invalid_argument("no file is open");
    read(reader.open.as_ref().ok_or_else(none)?)
}

natives! {
    fn Java_org_rocksdb_EnvOptions_newEnvOptions__(env) -> jlong {
        Ok(give(FileOptions::of(&DbOptions::default())))
    }

    fn Java_org_rocksdb_EnvOptions_newEnvOptions__J(env, options: jlong) -> jlong {
        Ok(give(FileOptions::of(&value::<Options>(options)?.db)))
    }

    fn Java_org_rocksdb_SstFileReader_newSstFileReader(env, options: jlong) -> jlong {
        let options = Options::clone(&*value::<Options>(options)?);
        Ok(handles::give(SharedReader::new(Reader { options, open: None })))
    }

    fn Java_org_rocksdb_SstFileReader_open(env, reader: jlong, path: jobject) {
        let path = env.text(path)?;
        let reader = handles::hold::<SharedReader>(reader)?;
        let mut reader = reader.lock();
        reader.open = Some(SstFileReader::open(&reader.options, path)?);
        Ok(())
    }

    fn Java_org_rocksdb_SstFileReader_newIterator(env, reader: jlong, options: jlong) -> jlong {
        let state = value::<ReadState>(options)?;
        with_open(reader, |file| {
            let walk = file.iter(&state.read, state.snapshot.as_ref())?;
            Ok(handles::give(Iter::new(Walk::Table(Box::new(walk)))))
        })
    }

    fn Java_org_rocksdb_SstFileReader_verifyChecksum(env, reader: jlong) {
        with_open(reader, |file| Ok(file.verify()?))
    }

    fn Java_org_rocksdb_SstFileReader_getTableProperties(env, reader: jlong) -> jobject {
        with_open(reader, |file| table_properties::object(env, file.properties()))
    }
}

disposals! {
    SharedValue<FileOptions>: Java_org_rocksdb_EnvOptions_disposeInternal
        | Java_org_rocksdb_EnvOptions_disposeInternalJni;
    SharedReader: Java_org_rocksdb_SstFileReader_disposeInternal
        | Java_org_rocksdb_SstFileReader_disposeInternalJni;
}
