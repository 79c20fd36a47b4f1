//! Reading ahead in blob files for walks that meet their values in the order of the keys.
//!
//! Each file that a walk comes through has a window: bytes that one read brought, out of which the
//! next values are taken. Files written by different jobs are walked side by side. A window opens
//! at the third value in a row that lies a little behind the one before, and doubles with each
//! read; with a size that the caller fixed it opens at once. Files of one sorted group lie one
//! behind the other in a walk, and share a window. One owner at a time.

use super::reader::{BlobFileReader, BlobRequest};
use esker_format::FileNo;
use esker_status::Result;
use esker_status::seeded::{Bug, seeded};

/// Files with windows at the same time; the one that was used longest ago gives up its own.
const WINDOWS: usize = 8;

/// Bytes of the first window.
const FIRST: usize = 16 << 10;

/// Bytes of the largest, unless the caller fixed another size.
const LARGEST: usize = 256 << 10;

/// Most bytes of a window whose size the caller fixed.
const FIXED_MAX: usize = 16 << 20;

/// A value of more than this part of the largest window is read by itself, where the size is not
/// fixed: the copy costs more than the read.
const LARGE_PART: usize = 4;

/// Values in a row before a window opens.
const ROW: u32 = 2;

/// The state of the walk through one file.
#[derive(Debug)]
struct BlobWindow {
    file: FileNo,
    /// The sorted group of the file.
    group: Option<FileNo>,
    /// Where the bytes begin.
    start: u64,
    bytes: Vec<u8>,
    /// Bytes of the next read.
    size: usize,
    /// Where the value before ended.
    end: u64,
    /// Values in a row up to that one.
    row: u32,
    /// When it was used last, in values of the walk.
    used: u64,
}

impl BlobWindow {
    fn range(&self, start: u64, len: usize) -> Option<std::ops::Range<usize>> {
        let from = usize::try_from(start.checked_sub(self.start)?).ok()?;
        let to = from.checked_add(len)?;
        (to <= self.bytes.len()).then_some(from..to)
    }
}

/// The windows of one walk.
#[derive(Debug)]
pub struct BlobReadAhead {
    /// The size of windows; 0 for one that follows the walk.
    fixed: usize,
    windows: Vec<BlobWindow>,
    values: u64,
}

impl BlobReadAhead {
    /// Windows of `fixed` bytes, up to 16 MB, or, where that is 0, of a size that follows the walk.
    pub fn new(fixed: usize) -> Self {
        BlobReadAhead {
            fixed: fixed.min(FIXED_MAX),
            windows: Vec::new(),
            values: 0,
        }
    }

    /// Gives the memory of the windows back and forgets the walk.
    pub fn clear(&mut self) {
        self.windows = Vec::new();
    }

    /// Replaces `out` by the value that is asked for, out of what was read ahead or is now. Returns
    /// the bytes read from the file. `group` tells the sorted group of a file that has no window.
    pub fn read(
        &mut self,
        reader: &BlobFileReader,
        group: impl FnOnce() -> Option<FileNo>,
        request: &BlobRequest<'_>,
        out: &mut Vec<u8>,
    ) -> Result<usize> {
        let place = reader.place(request)?;
        match self.bytes(reader, group, place.start, place.len()) {
            Some((record, read)) => {
                reader.extract(request, &place, record, out)?;
                Ok(read)
            }
            None => reader.read(request, out),
        }
    }

    /// The bytes `start..start + len` of the file, and how many were read for them; `None` where
    /// they are better read alone, or could not be read ahead.
    fn bytes(
        &mut self,
        reader: &BlobFileReader,
        group: impl FnOnce() -> Option<FileNo>,
        start: u64,
        len: usize,
    ) -> Option<(&[u8], usize)> {
        let fixed = self.fixed;
        let is_small = len <= fixed || (fixed == 0 && len <= LARGEST / LARGE_PART);
        let window = self.window_of(reader.number(), group, fixed);
        let gap = start.checked_sub(window.end);
        let is_near = gap.is_some_and(|gap| gap <= window.size as u64);
        window.row = if is_near { window.row + 1 } else { 0 };
        if !is_near && fixed == 0 {
            window.size = FIRST;
        }
        window.end = start + len as u64;
        let mut read = 0;
        if window.range(start, len).is_none() {
            if !is_small || (fixed == 0 && window.row < ROW) {
                return None;
            }
            window.bytes = reader.stretch(start, window.size.max(len)).ok()?;
            window.start = start;
            read = window.bytes.len();
            if fixed == 0 {
                window.size = (window.size * 2).min(LARGEST);
            }
        }
        let range = window.range(start, len)?;
        Some((&window.bytes[range], read))
    }

    /// The window of a file: an empty one where there is none.
    fn window_of(
        &mut self,
        file: FileNo,
        group: impl FnOnce() -> Option<FileNo>,
        fixed: usize,
    ) -> &mut BlobWindow {
        self.values += 1;
        let used = self.values;
        let is_its = |w: &BlobWindow| w.file == file || seeded(Bug::BlobWindowOfAnyFile);
        let at = match self.windows.iter().position(is_its) {
            Some(at) => at,
            None => self.new_window(file, group(), fixed),
        };
        let window = &mut self.windows[at];
        window.used = used;
        window
    }

    /// Makes a window for a file; it goes on with that of the file before in its group.
    fn new_window(&mut self, file: FileNo, group: Option<FileNo>, fixed: usize) -> usize {
        let mut window = BlobWindow {
            file,
            group,
            start: 0,
            bytes: Vec::new(),
            size: if fixed > 0 { fixed } else { FIRST },
            // No value is behind that.
            end: u64::MAX,
            row: 0,
            used: 0,
        };
        let is_of_group = |w: &BlobWindow| group.is_some() && w.group == group;
        if let Some(at) = self.windows.iter().position(is_of_group) {
            let before = &self.windows[at];
            // The walk goes on at the beginning of the file.
            (window.size, window.row, window.end) = (before.size, before.row, 0);
            self.windows[at] = window;
            return at;
        }
        let oldest = (0..self.windows.len()).min_by_key(|at| self.windows[*at].used);
        match oldest.filter(|_| self.windows.len() >= WINDOWS) {
            Some(at) => {
                self.windows[at] = window;
                at
            }
            None => {
                self.windows.push(window);
                self.windows.len() - 1
            }
        }
    }
}
