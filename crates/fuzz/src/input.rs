//! Input as the decoders want it: a file of bytes in memory, a sink for writers, and pieces cut
//! from the front.
//!
//! Values; a [`Sink`] may be shared with the writer that fills it.

use esker_env::{RandomAccessFile, WritableFile};
use esker_status::Result;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// A file that can be read.
#[derive(Debug)]
pub struct FileOf(pub Vec<u8>);

impl FileOf {
    /// A file of these bytes.
    pub fn of(bytes: &[u8]) -> Arc<dyn RandomAccessFile> {
        Arc::new(FileOf(bytes.to_vec()))
    }
}

impl RandomAccessFile for FileOf {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let from = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.0.len());
        let n = buf.len().min(self.0.len() - from);
        buf[..n].copy_from_slice(&self.0[from..from + n]);
        Ok(n)
    }
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn path(&self) -> &Path {
        Path::new("input")
    }
}

/// A file that can be written, and what was written so far.
#[derive(Clone, Debug, Default)]
pub struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    /// An empty file, and the writer's end of it.
    pub fn new() -> (Sink, Box<dyn WritableFile>) {
        let sink = Sink::default();
        (sink.clone(), Box::new(sink))
    }

    /// The bytes that were written.
    pub fn bytes(&self) -> Vec<u8> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl WritableFile for Sink {
    fn append(&mut self, data: &[u8]) -> Result<()> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend_from_slice(data);
        Ok(())
    }
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
    fn len(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }
    fn close(&mut self) -> Result<()> {
        Ok(())
    }
    fn path(&self) -> &Path {
        Path::new("output")
    }
}

/// Cuts choices from the front of an input.
#[derive(Debug)]
pub struct Cut<'a>(pub &'a [u8]);

impl<'a> Cut<'a> {
    /// The next byte; 0 at the end.
    pub fn byte(&mut self) -> u8 {
        match self.0 {
            [b, rest @ ..] => {
                self.0 = rest;
                *b
            }
            [] => 0,
        }
    }

    /// One of several, by the next byte.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::from(self.byte()) % all.len()]
    }

    /// The next bytes, as many as the next byte says.
    pub fn piece(&mut self) -> &'a [u8] {
        let n = usize::from(self.byte()).min(self.0.len());
        let (head, rest) = self.0.split_at(n);
        self.0 = rest;
        head
    }
}
