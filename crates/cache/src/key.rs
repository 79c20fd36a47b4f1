//! The key of a cached value.

/// A sixteen-byte name: by convention `hi` identifies the file and `lo` the place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheKey {
    /// The file (or whatever owns the value).
    pub hi: u64,
    /// The place in the file.
    pub lo: u64,
}

impl CacheKey {
    /// The key made of these halves.
    #[inline]
    pub const fn new(hi: u64, lo: u64) -> Self {
        CacheKey { hi, lo }
    }

    /// Sixty-four mixed bits: a folded multiplication, so that neighbouring offsets spread.
    #[inline]
    pub fn hash(self) -> u64 {
        let a = self.hi ^ 0x9E37_79B9_7F4A_7C15;
        let b = self.lo.wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ 0xE703_7ED1_A0B4_28DB;
        let folded = u128::from(a) * u128::from(b);
        let x = (folded as u64) ^ ((folded >> 64) as u64);
        // A zero factor would swallow the other half; adding the rotated parts keeps it.
        (x.wrapping_add(a.rotate_left(32)).wrapping_add(b))
            .wrapping_mul(0xA076_1D64_78BD_642F)
            .rotate_left(29)
    }
}
