//! Writing a MANIFEST. The caller publishes nothing before [`ManifestWriter::sync`] returned `Ok`;
//! after an error the tail is unknown and the caller must write a new MANIFEST. One thread at a
//! time.

use crate::log::{LogWriter, LogWriterOptions};
use esker_env::{FileSystem, WritableFile, WriteOptions};
use esker_format::FileNo;
use esker_format::edit::VersionEdit;
use esker_format::file_name::manifest_name;
use esker_status::{Error, Result};
use std::path::Path;

/// Appends version edits to a MANIFEST.
#[derive(Debug)]
pub struct ManifestWriter {
    log: LogWriter,
    number: FileNo,
    encoded: Vec<u8>,
}

impl ManifestWriter {
    /// Creates `MANIFEST-number` in `dir` with `snapshot` in it, and begins to sync it. It is not
    /// durable before [`ManifestWriter::sync`]; `CURRENT` is not touched.
    pub fn create(
        fs: &dyn FileSystem,
        dir: &Path,
        number: FileNo,
        options: WriteOptions,
        snapshot: &[VersionEdit],
    ) -> Result<ManifestWriter> {
        let file = fs.create(&dir.join(manifest_name(number)), options)?;
        let mut writer = Self::over(file, number)?;
        writer.append(snapshot)?;
        writer.log.begin_sync()?;
        Ok(writer)
    }

    /// Goes on at the end of an existing file, which must end in a whole record.
    pub fn over(file: Box<dyn WritableFile>, number: FileNo) -> Result<ManifestWriter> {
        let log = LogWriter::new(file, LogWriterOptions::default())?;
        Ok(ManifestWriter {
            log,
            number,
            encoded: Vec::new(),
        })
    }

    /// Adds edits, each taking effect on its own. Not durable before [`ManifestWriter::sync`].
    pub fn append(&mut self, edits: &[VersionEdit]) -> Result<()> {
        edits.iter().try_for_each(|edit| self.add(edit))
    }

    /// Adds edits that take effect together. Their group fields are set here.
    pub fn append_group(&mut self, edits: &mut [VersionEdit]) -> Result<()> {
        if edits.iter().any(VersionEdit::is_family_manipulation) {
            let message = "an atomic group may not add or drop column families";
            return Err(Error::invalid_argument(message));
        }
        let total = u32::try_from(edits.len())
            .map_err(|_| Error::invalid_argument("an atomic group is too large"))?;
        for (edit, remaining) in edits.iter_mut().zip((0..total).rev()) {
            edit.remaining_in_group = Some(remaining);
            self.add(edit)?;
        }
        Ok(())
    }

    /// Makes everything added survive power loss.
    pub fn sync(&mut self) -> Result<()> {
        self.log.sync()
    }

    /// Flushes and closes; does not sync.
    pub fn close(&mut self) -> Result<()> {
        self.log.close()
    }

    /// The number in the file's name.
    pub fn number(&self) -> FileNo {
        self.number
    }

    /// Bytes written.
    pub fn len(&self) -> u64 {
        self.log.len()
    }

    /// Returns whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.log.is_empty()
    }

    fn add(&mut self, edit: &VersionEdit) -> Result<()> {
        // RocksDB drops files of such an edit without a word; never write one.
        if edit.family_add.is_some() && !edit.new_files.is_empty() {
            let message = "an edit that adds a column family cannot add files";
            return Err(Error::invalid_argument(message));
        }
        self.encoded.clear();
        edit.encode_into(&mut self.encoded);
        self.log.add_record(&self.encoded)
    }
}
