//! Errors of the system as errors of the database, and back.

use crate::{Error, ErrorKind};
use std::io;

/// A copy of an error.
pub(crate) fn copy_of(source: &io::Error) -> io::Error {
    match source.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(source.kind(), source.to_string()),
    }
}

impl From<io::Error> for Error {
    /// An error of the kind [`ErrorKind::Io`], or the one that was made an [`io::Error`] before.
    ///
    /// ```
    /// fn length(path: &str) -> esker::Result<u64> {
    ///     Ok(std::fs::metadata(path)?.len())
    /// }
    /// let e = length("/no/such/file").expect_err("it is not there");
    /// assert_eq!(e.kind(), esker::ErrorKind::Io);
    /// assert!(e.is_not_found());
    /// ```
    #[cold]
    fn from(source: io::Error) -> Error {
        match source.downcast::<Error>() {
            Ok(own) => own,
            Err(source) => Error::new(ErrorKind::Io, source.to_string()).caused_by(source),
        }
    }
}

impl From<Error> for io::Error {
    /// An error of the nearest kind, which holds this one.
    ///
    /// ```
    /// fn count(db: &esker::Db) -> std::io::Result<usize> {
    ///     let mut seen = 0;
    ///     for entry in db.iter() {
    ///         let (_key, _value) = entry?;
    ///         seen += 1;
    ///     }
    ///     Ok(seen)
    /// }
    /// ```
    #[cold]
    fn from(e: Error) -> io::Error {
        let kind = match e.kind() {
            _ if e.os_error().is_some() || e.kind() == ErrorKind::Io => {
                e.0.source
                    .as_ref()
                    .map_or(io::ErrorKind::Other, |s| s.kind())
            }
            ErrorKind::NotFound | ErrorKind::ColumnFamilyDropped => io::ErrorKind::NotFound,
            ErrorKind::Corruption => io::ErrorKind::InvalidData,
            ErrorKind::NotSupported => io::ErrorKind::Unsupported,
            ErrorKind::InvalidArgument => io::ErrorKind::InvalidInput,
            ErrorKind::Incomplete | ErrorKind::TryAgain => io::ErrorKind::WouldBlock,
            ErrorKind::TimedOut | ErrorKind::Expired => io::ErrorKind::TimedOut,
            ErrorKind::Busy => io::ErrorKind::ResourceBusy,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn an_error_of_the_system_keeps_its_number_and_is_the_source() {
        let e = Error::from(io::Error::from_raw_os_error(28));
        assert!(e.is_no_space());
        let source = e.source().and_then(|s| s.downcast_ref::<io::Error>());
        assert_eq!(source.and_then(io::Error::raw_os_error), Some(28));
        let named = Error::io("read", "x".as_ref(), &io::Error::from_raw_os_error(5));
        let source = named.source().and_then(|s| s.downcast_ref::<io::Error>());
        assert_eq!(source.and_then(io::Error::raw_os_error), Some(5));
        assert!(Error::busy("").source().is_none());
    }

    #[test]
    fn there_and_back_is_the_same_error() {
        for e in [
            Error::corruption("bad").with_file("f").with_offset(7),
            Error::io("read", "x".as_ref(), &io::Error::from_raw_os_error(2)),
            Error::busy("it is there"),
        ] {
            let there = io::Error::from(e.clone());
            assert!(there.to_string().contains(e.message()));
            let back = Error::from(there);
            assert_eq!((back.kind(), back.to_string()), (e.kind(), e.to_string()));
        }
        let kinds = [
            (Error::not_found(""), io::ErrorKind::NotFound),
            (Error::corruption(""), io::ErrorKind::InvalidData),
            (Error::busy(""), io::ErrorKind::ResourceBusy),
            (
                Error::io("w", "x".as_ref(), &io::Error::from_raw_os_error(28)),
                io::ErrorKind::StorageFull,
            ),
        ];
        for (e, kind) in kinds {
            assert_eq!(io::Error::from(e).kind(), kind);
        }
    }
}
