//! Bounds of a walk: where it starts and stops, and prefixes.

use crate::arguments::Bytes;
use crate::errors::of_engine;
use esker::{Error, KeyOrder, ReadOptions};
use pyo3::prelude::*;

/// The arguments that bound a walk.
#[derive(Debug)]
pub(crate) struct Bounds<'a> {
    /// The first key.
    pub(crate) start: Option<Bytes<'a>>,
    /// The key behind the last one.
    pub(crate) stop: Option<Bytes<'a>>,
    /// The first bytes of all keys.
    pub(crate) prefix: Option<Bytes<'a>>,
}

/// The first key behind all that begin with `prefix`; `None` where there is none.
fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

impl Bounds<'_> {
    /// Narrows the bounds of `options`; `false` where no key can be between them.
    pub(crate) fn apply(
        &self,
        py: Python<'_>,
        order: &KeyOrder,
        options: &mut ReadOptions,
    ) -> PyResult<bool> {
        let later = |a: Option<Vec<u8>>, b: Option<Vec<u8>>, is_lower: bool| match (a, b) {
            (Some(a), Some(b)) => {
                let takes_a = order.compare_bare(&a, &b).is_gt() == is_lower;
                Some(if takes_a { a } else { b })
            }
            (a, b) => a.or(b),
        };
        let mut lower = self.start.as_ref().map(Bytes::to_vec);
        let mut upper = self.stop.as_ref().map(Bytes::to_vec);
        if let Some(prefix) = &self.prefix {
            if !order.is_bytewise() {
                let error = Error::not_supported("a prefix in another order than that of bytes")
                    .with_hint("give start and stop");
                return Err(of_engine(py, &error));
            }
            lower = later(lower, Some(prefix.to_vec()), true);
            upper = later(upper, behind(prefix.as_slice()), false);
        }
        options.iterate_lower_bound = later(lower, options.iterate_lower_bound.take(), true);
        options.iterate_upper_bound = later(upper, options.iterate_upper_bound.take(), false);
        let both = options
            .iterate_lower_bound
            .as_ref()
            .zip(options.iterate_upper_bound.as_ref());
        Ok(both.is_none_or(|(lower, upper)| order.compare_bare(lower, upper).is_lt()))
    }
}
