//! Checksums of whole table files, kept in the MANIFEST: made while a file is written, compared
//! when the application asks (`Db::verify_file_checksums`) and by tools that copy files.

use esker_codec::checksum::crc32c_extend;
use esker_env::WritableFile;
use esker_status::Result;
use esker_sync::{Mutex, Rank};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Computes the checksum of one file.
pub trait FileChecksumGenerator: Send {
    /// The function's name; the MANIFEST keeps it with each checksum.
    fn name(&self) -> &str;
    /// The next bytes of the file.
    fn update(&mut self, data: &[u8]);
    /// The checksum of what was seen.
    fn finish(&self) -> Vec<u8>;
}

/// Makes a generator for each file.
///
/// ```
/// # fn main() -> esker::Result<()> {
/// # let dir = tempfile::tempdir().expect("a directory");
/// use esker::options::FileChecksumCrc32c;
/// use std::sync::Arc;
///
/// let mut options = esker::Options::new().create_if_missing(true);
/// options.db.file_checksum_gen_factory = Some(Arc::new(FileChecksumCrc32c));
/// let db = esker::Db::open(dir.path(), options)?;
/// db.put("key", "value")?;
/// db.flush()?;
/// db.verify_file_checksums()?;
/// # Ok(())
/// # }
/// ```
pub trait FileChecksumGenFactory: Send + Sync {
    /// The factory's name, for OPTIONS files.
    fn name(&self) -> &str;
    /// A generator for the function `wanted`, or for the factory's own choice when that is empty;
    /// `None` for a function that it does not know.
    fn create(&self, wanted: &str) -> Option<Box<dyn FileChecksumGenerator>>;
}

/// CRC-32C, as RocksDB's `FileChecksumGenCrc32cFactory` makes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileChecksumCrc32c;

const CRC32C: &str = "FileChecksumCrc32c";

impl FileChecksumGenFactory for FileChecksumCrc32c {
    fn name(&self) -> &str {
        "FileChecksumGenCrc32cFactory"
    }

    fn create(&self, wanted: &str) -> Option<Box<dyn FileChecksumGenerator>> {
        (wanted.is_empty() || wanted == CRC32C).then(|| Box::new(Crc32c(0)) as _)
    }
}

struct Crc32c(u32);

impl FileChecksumGenerator for Crc32c {
    fn name(&self) -> &str {
        CRC32C
    }

    fn update(&mut self, data: &[u8]) {
        self.0 = crc32c_extend(self.0, data);
    }

    fn finish(&self) -> Vec<u8> {
        self.0.to_be_bytes().to_vec()
    }
}

/// The generator of a file that is being written.
pub type FileSum = Arc<Mutex<Box<dyn FileChecksumGenerator>>>;

/// A file whose bytes go through a generator as they are appended.
struct SummedFile {
    file: Box<dyn WritableFile>,
    sum: FileSum,
}

impl fmt::Debug for SummedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl WritableFile for SummedFile {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        self.file.append(data)?;
        self.sum.lock().update(data);
        Ok(())
    }
    fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }
    fn sync(&mut self) -> Result<()> {
        self.file.sync()
    }
    fn begin_sync(&mut self) -> Result<()> {
        self.file.begin_sync()
    }
    fn len(&self) -> u64 {
        self.file.len()
    }
    fn close(&mut self) -> Result<()> {
        self.file.close()
    }
    fn path(&self) -> &Path {
        self.file.path()
    }
    fn background_cpu_ns(&self) -> u64 {
        self.file.background_cpu_ns()
    }
}

/// `file`, summed up when there is a factory.
pub fn summed(
    factory: Option<&Arc<dyn FileChecksumGenFactory>>,
    file: Box<dyn WritableFile>,
) -> (Box<dyn WritableFile>, Option<FileSum>) {
    match factory.and_then(|f| f.create("")) {
        None => (file, None),
        Some(generator) => {
            let sum: FileSum = Arc::new(Mutex::new(Rank::LEAF, generator));
            let file = SummedFile {
                file,
                sum: Arc::clone(&sum),
            };
            (Box::new(file), Some(sum))
        }
    }
}
