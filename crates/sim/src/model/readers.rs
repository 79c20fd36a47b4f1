//! Checks that a read-only opening after a crash or damage finds: the same as an opening for
//! writing, or the same refusal.
//!
//! They come first, on an image of their own, which they must leave as it is. Functions of an
//! image, used from any thread.

use super::settings::DIR;
use super::state::entry_print;
use crate::disk::SimFs;
use esker::{Db, FamilyHandle, Options};
use esker_env::FileSystem;
use esker_format::file_name::CURRENT;
use esker_status::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Where a secondary instance keeps its LOG.
const SECOND: &str = "/second";

/// The print of each family.
pub type Prints = BTreeMap<Arc<str>, u64>;

/// The print of each family of an open database.
pub fn prints(db: &Db, handles: &BTreeMap<Arc<str>, FamilyHandle>) -> Result<Prints> {
    let mut out = BTreeMap::new();
    for (name, handle) in handles {
        let mut it = db.iter_cf(handle);
        let mut print = 0;
        it.seek_to_first();
        while let Some((key, value)) = it.entry() {
            print ^= entry_print(key, value);
            it.next();
        }
        it.status()?;
        out.insert(Arc::clone(name), print);
    }
    Ok(out)
}

/// How a reader opens the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// For reading only.
    ReadOnly,
    /// As a secondary instance.
    Secondary,
}

/// Contents of the database for a reader.
#[derive(Debug)]
pub enum ReaderView {
    /// There is no database: an opening for writing makes one.
    Nothing,
    /// It does not open.
    Refused(Error),
    /// It opens, and shows this, or cannot be read.
    Shown(Result<Prints>),
}

impl Reader {
    /// Opens the database on `disk` with `options`, whose filesystem that is, and reads it. The
    /// error says which file changed.
    pub fn look(self, options: Options, disk: &SimFs) -> Result<ReaderView> {
        if !disk.exists(&Path::new(DIR).join(CURRENT))? {
            return Ok(ReaderView::Nothing);
        }
        let before = disk.image().list();
        let opened = match self {
            Reader::ReadOnly => Db::open_read_only(DIR, options),
            Reader::Secondary => Db::open_secondary(DIR, SECOND, options),
        };
        let found = match opened {
            Err(e) => ReaderView::Refused(e),
            Ok(db) => {
                let handles = db.families().into_iter();
                let handles = handles.map(|f| (Arc::from(f.name()), f)).collect();
                ReaderView::Shown(prints(&db, &handles))
            }
        };
        let mut after = disk.image().list();
        after.retain(|path, _| !path.starts_with(SECOND));
        if before != after {
            let text = format!("{self:?} changed the directory");
            return Err(Error::new(ErrorKind::Aborted, text));
        }
        Ok(found)
    }
}

impl ReaderView {
    /// Checks that a writer who was `opened`, and then read what it shows, agrees. The error says
    /// how not.
    pub fn agrees(&self, opened: Result<&Result<Prints>, &Error>) -> Result<(), String> {
        match (self, opened) {
            (ReaderView::Shown(Ok(seen)), Ok(Ok(shown))) if seen != shown => {
                Err(format!("a reader sees {seen:?}, a writer {shown:?}"))
            }
            (ReaderView::Shown(_), Err(e)) => Err(format!("a reader opens it, a writer says {e}")),
            (ReaderView::Refused(e), Ok(_)) => Err(format!("a writer opens it, a reader says {e}")),
            _ => Ok(()),
        }
    }
}
