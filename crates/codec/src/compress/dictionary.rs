//! Compression dictionaries: shared bytes, digested for zstd on first use, and how to make them.

#[cfg(not(feature = "zstd"))]
use super::Codec;
use esker_status::{Error, Result};
use std::fmt;
use std::sync::Arc;
#[cfg(feature = "zstd")]
use {super::zdict, esker_status::ErrorKind, std::sync::OnceLock, zstd_safe::DDict};

/// A dictionary of raw bytes or of zstd's own format. Cheap to clone, shared by threads.
#[derive(Clone)]
pub struct Dictionary(Arc<Inner>);

struct Inner {
    raw: Box<[u8]>,
    #[cfg(feature = "zstd")]
    digested: OnceLock<Option<DDict<'static>>>,
}

impl Dictionary {
    /// A dictionary of these bytes, which must not be empty.
    pub fn new(raw: impl Into<Box<[u8]>>) -> Result<Dictionary> {
        let raw = raw.into();
        if raw.is_empty() {
            return Err(Error::corruption("compression dictionary is empty"));
        }
        Ok(Dictionary(Arc::new(Inner {
            raw,
            #[cfg(feature = "zstd")]
            digested: OnceLock::new(),
        })))
    }

    /// The bytes to store.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0.raw
    }

    /// Memory held, digested form included.
    pub fn memory_usage(&self) -> usize {
        #[cfg(feature = "zstd")]
        let digested = self.0.digested.get();
        #[cfg(feature = "zstd")]
        let digested = digested.and_then(Option::as_ref).map_or(0, DDict::sizeof);
        #[cfg(not(feature = "zstd"))]
        let digested = 0;
        size_of::<Inner>() + self.0.raw.len() + digested
    }

    /// The form that zstd decompresses with.
    #[cfg(feature = "zstd")]
    pub(super) fn ddict(&self) -> Result<&DDict<'static>> {
        let digested = self
            .0
            .digested
            .get_or_init(|| DDict::try_create(&self.0.raw));
        digested
            .as_ref()
            .ok_or_else(|| Error::corruption("zstd refuses the compression dictionary"))
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dictionary({} bytes)", self.0.raw.len())
    }
}

fn check_samples(samples: &[u8], sizes: &[usize]) -> Result<()> {
    let total = sizes.iter().try_fold(0usize, |sum, n| sum.checked_add(*n));
    if total == Some(samples.len()) && u32::try_from(sizes.len()).is_ok() {
        return Ok(());
    }
    Err(Error::invalid_argument(
        "the sizes of the dictionary samples do not add up to the samples",
    ))
}

/// Trains a zstd dictionary of at most `max` bytes. `samples` are concatenated, `sizes` their
/// lengths.
///
/// `None` when zstd cannot make one, usually for want of samples; a file is then written without.
pub fn train_dictionary(samples: &[u8], sizes: &[usize], max: usize) -> Result<Option<Vec<u8>>> {
    check_samples(samples, sizes)?;
    if sizes.is_empty() || max == 0 {
        return Ok(None);
    }
    #[cfg(feature = "zstd")]
    {
        let mut dict = reserved(max)?;
        let made = zstd_safe::train_from_buffer(&mut dict, samples, sizes);
        Ok(made.is_ok().then_some(dict).filter(|d| !d.is_empty()))
    }
    #[cfg(not(feature = "zstd"))]
    Codec::Zstd.check_supported().map(|()| None)
}

/// Turns the start of the samples into a zstd dictionary with statistics for `level`: cheaper than
/// training.
pub fn finalize_dictionary(
    samples: &[u8],
    sizes: &[usize],
    max: usize,
    level: i32,
) -> Result<Option<Vec<u8>>> {
    check_samples(samples, sizes)?;
    if sizes.is_empty() || max == 0 {
        return Ok(None);
    }
    #[cfg(feature = "zstd")]
    {
        let mut dict = reserved(max)?;
        let content = &samples[..samples.len().min(max)];
        let made = zdict::finalize(&mut dict, content, samples, sizes, level);
        Ok(made.then_some(dict).filter(|d| !d.is_empty()))
    }
    #[cfg(not(feature = "zstd"))]
    {
        let _ = level;
        Codec::Zstd.check_supported().map(|()| None)
    }
}

#[cfg(feature = "zstd")]
fn reserved(max: usize) -> Result<Vec<u8>> {
    let mut v = Vec::new();
    v.try_reserve_exact(max).map_err(|_| {
        Error::new(
            ErrorKind::Aborted,
            format!("no memory for a dictionary of {max} bytes"),
        )
    })?;
    Ok(v)
}
