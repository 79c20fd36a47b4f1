//! Where the blocks of an index lie in their file.
//!
//! Writers put data blocks one behind the other, so a place is where the next one begins: four
//! bytes for each block, and not the twelve of an offset and a size. Blocks with something between
//! them (`block_align`, partitions of an index), and those of a file of 4 GiB or more, have both.

use super::BlockHandle;
use crate::footer;

/// Bytes of type and checksum after every block.
pub(super) const BLOCK_TRAILER_LEN: u64 = footer::BLOCK_TRAILER_LEN as u64;

/// The handles of an index, in file order.
#[derive(Debug)]
pub(super) enum Places {
    /// Where each block begins, and where one behind the last would.
    Adjacent(Vec<u32>),
    /// Offset and size of each.
    Apart(Vec<(u64, u32)>),
}

impl Default for Places {
    fn default() -> Self {
        Places::Adjacent(Vec::new())
    }
}

impl Places {
    /// Adds the next block, whose size is below 4 GiB.
    pub(super) fn push(&mut self, handle: BlockHandle) {
        if let Places::Adjacent(starts) = self {
            let here = u32::try_from(handle.offset).ok();
            let behind = u32::try_from(handle.offset + handle.size + BLOCK_TRAILER_LEN).ok();
            if let (Some(here), Some(behind)) = (here, behind) {
                if starts.is_empty() {
                    starts.push(here);
                }
                if starts.last() == Some(&here) {
                    starts.push(behind);
                    return;
                }
            }
            *self = Places::Apart((0..self.len()).map(|i| self.pair(i)).collect());
        }
        if let Places::Apart(all) = self {
            all.push((handle.offset, handle.size as u32));
        }
    }

    #[inline]
    fn pair(&self, i: usize) -> (u64, u32) {
        match self {
            Places::Adjacent(starts) => {
                let size = starts[i + 1] - starts[i] - BLOCK_TRAILER_LEN as u32;
                (u64::from(starts[i]), size)
            }
            Places::Apart(all) => all[i],
        }
    }

    /// Handle of block `i`.
    #[inline]
    pub(super) fn get(&self, i: usize) -> BlockHandle {
        let (offset, size) = self.pair(i);
        BlockHandle {
            offset,
            size: u64::from(size),
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Places::Adjacent(starts) => starts.len().saturating_sub(1),
            Places::Apart(all) => all.len(),
        }
    }

    /// Gives back what has grown beyond the need.
    pub(super) fn shrink(&mut self) {
        match self {
            Places::Adjacent(starts) => starts.shrink_to_fit(),
            Places::Apart(all) => all.shrink_to_fit(),
        }
    }

    /// Bytes of its allocation.
    pub(super) fn memory(&self) -> usize {
        match self {
            Places::Adjacent(starts) => size_of::<u32>() * starts.capacity(),
            Places::Apart(all) => size_of::<(u64, u32)>() * all.capacity(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes and decodes `handles`; returns whether four bytes a block were enough.
    fn kept(handles: &[(u64, u64)]) -> bool {
        let mut places = Places::default();
        let handle = |&(offset, size): &(u64, u64)| BlockHandle { offset, size };
        for (i, h) in handles.iter().enumerate() {
            assert_eq!(places.len(), i);
            places.push(handle(h));
        }
        let back: Vec<_> = (0..places.len()).map(|i| places.get(i)).collect();
        assert_eq!(back, handles.iter().map(handle).collect::<Vec<_>>());
        matches!(places, Places::Adjacent(_))
    }

    #[test]
    fn adjacent_blocks_take_four_bytes_each() {
        assert!(kept(&[]));
        assert!(kept(&[(0, 0)]));
        assert!(kept(&[(7, 100), (112, 3), (120, 4096)]));
    }

    #[test]
    fn blocks_apart_come_back_as_they_were() {
        assert!(!kept(&[(0, 100), (105, 50), (4096, 60), (4161, 1)]));
    }

    #[test]
    fn blocks_beyond_four_gibibytes_come_back_as_they_were() {
        let edge = u64::from(u32::MAX);
        assert!(kept(&[(edge - 105, 100)]));
        assert!(!kept(&[(edge - 104, 100)]));
        assert!(!kept(&[
            (edge - 300, 100),
            (edge - 195, 500),
            (edge + 310, 7)
        ]));
        assert!(!kept(&[(1 << 40, 8)]));
    }
}
