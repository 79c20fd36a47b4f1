//! The call into zstd that finishes a dictionary.

use std::ffi::c_uint;
use zstd_safe::zstd_sys;

/// Fills `dict` (up to its capacity) with a finalized zstd dictionary; `false` when zstd declines.
///
/// The caller has checked that `sizes` add up to the length of `samples`.
pub(super) fn finalize(
    dict: &mut Vec<u8>,
    content: &[u8],
    samples: &[u8],
    sizes: &[usize],
    level: i32,
) -> bool {
    dict.clear();
    let params = zstd_sys::ZDICT_params_t {
        compressionLevel: level,
        notificationLevel: 0,
        dictID: 0,
    };
    // SAFETY: all buffers are valid for the lengths given, and the sizes sum to the samples'
    // length.
    let written = unsafe {
        zstd_sys::ZDICT_finalizeDictionary(
            dict.as_mut_ptr().cast(),
            dict.capacity(),
            content.as_ptr().cast(),
            content.len(),
            samples.as_ptr().cast(),
            sizes.as_ptr(),
            sizes.len() as c_uint,
            params,
        )
    };
    // SAFETY: a pure function of a number.
    let failed = unsafe { zstd_sys::ZDICT_isError(written) } != 0;
    if failed || written > dict.capacity() {
        return false;
    }
    // SAFETY: zstd has initialised `written` bytes, no more than the capacity.
    unsafe { dict.set_len(written) };
    true
}
