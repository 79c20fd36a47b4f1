//! How much a compaction reads of each input at once.
//!
//! A pure function: thread-safe.

use crate::options::DbOptions;

/// Bytes that a compaction has of all its inputs in memory, and as many are being read: with many
/// inputs it reads less of each.
const READ_AT_ONCE: usize = 2 << 20;
/// But this much: of files in the page cache, where the kernel reads ahead, and of others.
const LEAST_READ: usize = 256 << 10;
const LEAST_DIRECT_READ: usize = 512 << 10;
/// Of a memory budget a compaction has this part at once, and at least so many bytes an input:
/// each database that shares the budget may have compactions.
const BUDGET_PART: usize = 128;
const LEAST_BUDGET_READ: usize = 64 << 10;

/// Bytes to read at once of each of `runs` inputs, 0 for what is needed alone. `budget` is the
/// memory budget of the database, in bytes.
pub(super) fn size(options: &DbOptions, budget: Option<usize>, runs: usize) -> usize {
    if options.compaction_readahead_size == 0 {
        return 0;
    }
    let usual = if options.use_direct_reads {
        LEAST_DIRECT_READ
    } else {
        LEAST_READ
    };
    let (at_once, least) = match budget {
        Some(total) => {
            let at_once = (total / BUDGET_PART).min(READ_AT_ONCE);
            (at_once, (at_once / 8).clamp(LEAST_BUDGET_READ, usual))
        }
        None => (READ_AT_ONCE, usual),
    };
    let most = (at_once / runs.max(1)).max(least);
    let asked = options.compaction_readahead_size;
    asked.clamp(LEAST_READ.min(least), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_inputs_and_small_budgets_read_less_at_once() {
        let mut options = DbOptions::default();
        let sizes =
            |options: &DbOptions, budget| [1, 4, 10].map(|n| size(options, budget, n) >> 10);
        assert_eq!(sizes(&options, None), [2048, 512, 256]);
        assert_eq!(sizes(&options, Some(80 << 20)), [640, 160, 80]);
        assert_eq!(sizes(&options, Some(16 << 20)), [128, 64, 64]);
        assert_eq!(sizes(&options, Some(1 << 30)), [2048, 512, 256]);
        options.use_direct_reads = true;
        assert_eq!(sizes(&options, None), [2048, 512, 512]);
        options.compaction_readahead_size = 1000;
        assert_eq!(sizes(&options, None), [256, 256, 256]);
        options.compaction_readahead_size = 0;
        assert_eq!(sizes(&options, None), [0, 0, 0]);
    }
}
