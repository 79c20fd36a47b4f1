//! The C functions of LZ4 that no safe crate offers, made safe.
//!
//! Every wrapper checks that lengths fit C's `int` and passes exactly the memory that the slice or
//! the vector's reserve owns. Handles are freed on drop.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

// The crate brings the C library into the link; its own declarations lack what is needed here.
use lz4_sys as _;

/// The largest input LZ4 takes.
const LZ4_MAX_INPUT: usize = 0x7E00_0000;

unsafe extern "C" {
    fn LZ4_compress_fast(
        src: *const c_char,
        dst: *mut c_char,
        n: c_int,
        cap: c_int,
        accel: c_int,
    ) -> c_int;
    fn LZ4_decompress_safe_usingDict(
        src: *const c_char,
        dst: *mut c_char,
        n: c_int,
        cap: c_int,
        dict: *const c_char,
        dict_len: c_int,
    ) -> c_int;
    fn LZ4_createStream() -> *mut c_void;
    fn LZ4_freeStream(stream: *mut c_void) -> c_int;
    fn LZ4_resetStream_fast(stream: *mut c_void);
    fn LZ4_loadDict(stream: *mut c_void, dict: *const c_char, n: c_int) -> c_int;
    fn LZ4_attach_dictionary(stream: *mut c_void, dict_stream: *const c_void);
    fn LZ4_compress_fast_continue(
        stream: *mut c_void,
        src: *const c_char,
        dst: *mut c_char,
        n: c_int,
        cap: c_int,
        accel: c_int,
    ) -> c_int;
    fn LZ4_createStreamHC() -> *mut c_void;
    fn LZ4_freeStreamHC(stream: *mut c_void) -> c_int;
    fn LZ4_resetStreamHC_fast(stream: *mut c_void, level: c_int);
    fn LZ4_loadDictHC(stream: *mut c_void, dict: *const c_char, n: c_int) -> c_int;
    fn LZ4_attach_HC_dictionary(stream: *mut c_void, dict_stream: *const c_void);
    fn LZ4_compress_HC_continue(
        stream: *mut c_void,
        src: *const c_char,
        dst: *mut c_char,
        n: c_int,
        cap: c_int,
    ) -> c_int;
}

/// The part of a dictionary that LZ4 can refer to: its last 64 KiB.
fn lz4_window(dict: &[u8]) -> &[u8] {
    &dict[dict.len().saturating_sub(64 << 10)..]
}

fn int(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}

/// Appends what `call(pointer, room)` writes to the reserve of `out`; `false` when it returned 0 or
/// less.
fn append(out: &mut Vec<u8>, room: usize, call: impl FnOnce(*mut c_char, c_int) -> c_int) -> bool {
    let room = room.min(c_int::MAX as usize);
    out.reserve(room);
    let at = out.len();
    let written = call(out.spare_capacity_mut().as_mut_ptr().cast(), int(room));
    match usize::try_from(written) {
        Ok(written) if written > 0 && written <= room => {
            // SAFETY: the call has initialised `written` bytes of the `room` reserved after `at`.
            unsafe { out.set_len(at + written) };
            true
        }
        _ => false,
    }
}

/// Appends `raw` compressed to at most `room` bytes; `false` when it does not fit.
pub(super) fn lz4_compress(raw: &[u8], out: &mut Vec<u8>, room: usize, acceleration: i32) -> bool {
    if raw.len() > LZ4_MAX_INPUT {
        return false;
    }
    append(out, room, |dst, cap| {
        // SAFETY: `raw` is readable for its length and `dst` writable for `cap` bytes.
        unsafe { LZ4_compress_fast(raw.as_ptr().cast(), dst, int(raw.len()), cap, acceleration) }
    })
}

/// Appends the `size` raw bytes of `stored`; `false` when they are not exactly that many or
/// damaged.
pub(super) fn lz4_decompress(stored: &[u8], dict: &[u8], size: usize, out: &mut Vec<u8>) -> bool {
    if stored.len() > c_int::MAX as usize || size > LZ4_MAX_INPUT {
        return false;
    }
    if size == 0 {
        return stored == [0];
    }
    let dict = lz4_window(dict);
    let before = out.len();
    let ok = append(out, size, |dst, cap| {
        // SAFETY: the three buffers are valid for the lengths given and do not overlap.
        unsafe {
            LZ4_decompress_safe_usingDict(
                stored.as_ptr().cast(),
                dst,
                int(stored.len()),
                cap,
                dict.as_ptr().cast(),
                int(dict.len()),
            )
        }
    });
    ok && out.len() - before == size
}

/// Which of LZ4's two compressors a [`Lz4Stream`] drives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Fast,
    High,
}

/// A raw LZ4 state, freed on drop.
struct State {
    kind: Kind,
    at: NonNull<c_void>,
}

// SAFETY: an LZ4 state is plain memory without thread affinity.
unsafe impl Send for State {}

impl State {
    fn new(kind: Kind) -> Option<State> {
        let at = match kind {
            // SAFETY: takes no argument; a null result is handled.
            Kind::Fast => unsafe { LZ4_createStream() },
            // SAFETY: as above.
            Kind::High => unsafe { LZ4_createStreamHC() },
        };
        Some(State {
            kind,
            at: NonNull::new(at)?,
        })
    }
}

impl Drop for State {
    fn drop(&mut self) {
        match self.kind {
            // SAFETY: `at` came from the matching create and is freed once.
            Kind::Fast => unsafe { LZ4_freeStream(self.at.as_ptr()) },
            // SAFETY: as above.
            Kind::High => unsafe { LZ4_freeStreamHC(self.at.as_ptr()) },
        };
    }
}

/// A reusable compressor state, with a dictionary digested once.
pub(super) struct Lz4Stream {
    level: c_int,
    work: State,
    dict: Option<State>,
    /// The bytes that `dict` points into; declared after it so that it is dropped later.
    _dict_bytes: Option<super::Dictionary>,
}

impl Lz4Stream {
    /// The fast compressor with a dictionary; `None` without memory.
    pub(super) fn fast(acceleration: i32, dict: Option<&super::Dictionary>) -> Option<Lz4Stream> {
        Self::new(Kind::Fast, acceleration, dict)
    }

    /// The high-compression one; `None` without memory.
    pub(super) fn high(level: i32, dict: Option<&super::Dictionary>) -> Option<Lz4Stream> {
        Self::new(Kind::High, level, dict)
    }

    fn new(kind: Kind, level: i32, dict: Option<&super::Dictionary>) -> Option<Lz4Stream> {
        let work = State::new(kind)?;
        let digested = match dict {
            Some(d) => Some(Self::digest(kind, level, lz4_window(d.as_bytes()))?),
            None => None,
        };
        Some(Lz4Stream {
            level,
            work,
            dict: digested,
            _dict_bytes: dict.cloned(),
        })
    }

    /// The caller keeps `window` alive and unmoved for as long as the state lives.
    fn digest(kind: Kind, level: c_int, window: &[u8]) -> Option<State> {
        let state = State::new(kind)?;
        let (at, from, n) = (state.at.as_ptr(), window.as_ptr().cast(), int(window.len()));
        match kind {
            // SAFETY: the state is live and `window` readable for its length.
            Kind::Fast => unsafe { LZ4_loadDict(at, from, n) },
            Kind::High => {
                // SAFETY: the state is live.
                unsafe { LZ4_resetStreamHC_fast(at, level) };
                // SAFETY: the state is live and `window` readable for its length.
                unsafe { LZ4_loadDictHC(at, from, n) }
            }
        };
        Some(state)
    }

    /// Appends `raw` compressed to at most `room` bytes; `false` when it does not fit.
    pub(super) fn compress(&mut self, raw: &[u8], out: &mut Vec<u8>, room: usize) -> bool {
        if raw.len() > LZ4_MAX_INPUT {
            return false;
        }
        let work = self.work.at.as_ptr();
        let dict = self
            .dict
            .as_ref()
            .map_or(std::ptr::null(), |d| d.at.as_ptr().cast_const());
        let (src, n, level) = (raw.as_ptr().cast(), int(raw.len()), self.level);
        match self.work.kind {
            Kind::Fast => {
                // SAFETY: the state is live.
                unsafe { LZ4_resetStream_fast(work) };
                // SAFETY: both states are live, and the dictionary's bytes live as long as `self`.
                unsafe { LZ4_attach_dictionary(work, dict) };
                // SAFETY: `raw` is readable for `n` bytes and `dst` writable for `cap`.
                append(out, room, |dst, cap| unsafe {
                    LZ4_compress_fast_continue(work, src, dst, n, cap, level)
                })
            }
            Kind::High => {
                // SAFETY: the state is live.
                unsafe { LZ4_resetStreamHC_fast(work, level) };
                // SAFETY: both states are live, and the dictionary's bytes live as long as `self`.
                unsafe { LZ4_attach_HC_dictionary(work, dict) };
                // SAFETY: `raw` is readable for `n` bytes and `dst` writable for `cap`.
                append(out, room, |dst, cap| unsafe {
                    LZ4_compress_HC_continue(work, src, dst, n, cap)
                })
            }
        }
    }
}
