//! Python's iterator over a part of a family, which `keys`, `values` and `items` give.
//!
//! Entries are read ahead, a few at first and more as the scan goes on, so that Python's lock is
//! given up once for many of them. That changes no answer: a scan sees the state of its beginning.

use crate::calls::{lock, released, try_lock};
use crate::database::Database;
use crate::errors::Failure;
use crate::forks::HeldValue;
use crate::walk::Walk;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex};

/// Entries read ahead at first.
const FIRST: usize = 8;
/// Entries read ahead at most.
const MOST: usize = 512;
/// Bytes read ahead, about.
const AHEAD: usize = 256 << 10;

/// Parts of entries that a scan gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryPart {
    Key,
    Value,
    Both,
}

/// Entries that were read ahead.
#[derive(Debug, Default)]
struct ReadAhead {
    bytes: Vec<u8>,
    /// Where the key and the value of each entry end.
    ends: Vec<(usize, usize)>,
    next: usize,
}

impl ReadAhead {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.next = 0;
    }

    fn push(&mut self, part: EntryPart, key: &[u8], value: &[u8]) {
        if part != EntryPart::Value {
            self.bytes.extend_from_slice(key);
        }
        let key_end = self.bytes.len();
        if part != EntryPart::Key {
            self.bytes.extend_from_slice(value);
        }
        self.ends.push((key_end, self.bytes.len()));
    }

    /// The next entry.
    #[inline]
    fn take(&mut self) -> Option<(&[u8], &[u8])> {
        let (key_end, end) = *self.ends.get(self.next)?;
        let begin = match self.next {
            0 => 0,
            next => self.ends[next - 1].1,
        };
        self.next += 1;
        Some((&self.bytes[begin..key_end], &self.bytes[key_end..end]))
    }
}

#[derive(Debug)]
struct ScanState {
    /// `None` at the end.
    walk: Option<HeldValue<Walk>>,
    is_placed: bool,
    most: usize,
    ahead: ReadAhead,
}

impl ScanState {
    /// Reads ahead.
    fn fill(&mut self, part: EntryPart, is_reverse: bool) -> Result<(), Failure> {
        let ScanState { walk, ahead, .. } = self;
        ahead.clear();
        let Some(walk) = walk.as_mut().map(HeldValue::get_mut) else {
            return Ok(());
        };
        if !self.is_placed {
            self.is_placed = true;
            if is_reverse {
                walk.seek_to_last();
            } else {
                walk.seek_to_first();
            }
            if let Some((key, value)) = walk.entry() {
                ahead.push(part, key, value);
            }
        }
        while ahead.ends.len() < self.most && ahead.bytes.len() < AHEAD {
            let most = self.most - ahead.ends.len();
            let shown = walk.batch(is_reverse, most, |key, value| ahead.push(part, key, value));
            if shown == 0 {
                break;
            }
        }
        if ahead.ends.is_empty() {
            let status = walk.status();
            self.walk = None;
            return Ok(status?);
        }
        let usual = ahead.bytes.len() / ahead.ends.len();
        self.most = (AHEAD / usual.max(1)).clamp(1, MOST.min(self.most * 4));
        Ok(())
    }
}

/// An iterator over keys, values or pairs.
#[pyclass(module = "esker", frozen)]
pub(crate) struct Scan {
    state: Mutex<ScanState>,
    database: Arc<Database>,
    part: EntryPart,
    is_reverse: bool,
}

impl Scan {
    pub(crate) fn new(
        walk: Option<HeldValue<Walk>>,
        database: Arc<Database>,
        part: EntryPart,
        is_reverse: bool,
    ) -> Self {
        Scan {
            state: Mutex::new(ScanState {
                walk,
                is_placed: false,
                most: FIRST,
                ahead: ReadAhead::default(),
            }),
            database,
            part,
            is_reverse,
        }
    }

    fn shown<'py>(&self, py: Python<'py>, key: &[u8], value: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self.part {
            EntryPart::Key => PyBytes::new(py, key).into_any(),
            EntryPart::Value => PyBytes::new(py, value).into_any(),
            EntryPart::Both => (PyBytes::new(py, key), PyBytes::new(py, value))
                .into_pyobject(py)?
                .into_any(),
        })
    }
}

#[pymethods]
impl Scan {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let _open = self.database.open()?;
        if let Some(mut state) = try_lock(&self.state)
            && let Some((key, value)) = state.ahead.take()
        {
            return self.shown(py, key, value).map(Some);
        }
        let entry = released(py, || {
            let mut state = lock(&self.state)?;
            if state.ahead.next == state.ahead.ends.len() {
                state.fill(self.part, self.is_reverse)?;
            }
            let entry = state.ahead.take();
            Ok(entry.map(|(key, value)| (key.to_vec(), value.to_vec())))
        })?;
        let shown = entry.map(|(key, value)| self.shown(py, &key, &value));
        shown.transpose()
    }
}
