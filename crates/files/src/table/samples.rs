//! Data blocks that wait for a compression dictionary, and the dictionary that is made of them.

use super::options::TableBuilderOptions;
use esker_codec::compress::{Codec, finalize_dictionary, train_dictionary};
use esker_status::Result;

/// Data blocks that wait for the dictionary.
#[derive(Debug, Default)]
pub(super) struct UnsampledBlocks {
    pub(super) bytes: Vec<u8>,
    pub(super) ends: Vec<usize>,
    pub(super) limit: u64,
}

impl UnsampledBlocks {
    /// Samples blocks evenly; trains with zstd where asked, else the samples are the dictionary.
    pub(super) fn dictionary(&self, options: &TableBuilderOptions) -> Result<Option<Vec<u8>>> {
        let o = &options.compression_opts;
        let max = o.max_dict_bytes as usize;
        let train = options.compression == Codec::Zstd && o.zstd_max_train_bytes > 0;
        let wanted = if train {
            o.zstd_max_train_bytes as usize
        } else {
            max
        };
        let step = self.bytes.len().div_ceil(wanted.max(1)).max(1);
        let (mut samples, mut sizes) = (Vec::new(), Vec::new());
        for i in (0..self.ends.len()).step_by(step) {
            let start = if i == 0 { 0 } else { self.ends[i - 1] };
            let room = wanted - samples.len();
            let block = &self.bytes[start..self.ends[i]];
            let taken = &block[..block.len().min(room)];
            if taken.is_empty() {
                break;
            }
            samples.extend_from_slice(taken);
            sizes.push(taken.len());
        }
        if !train {
            return Ok((!samples.is_empty()).then_some(samples));
        }
        if o.use_zstd_dict_trainer {
            train_dictionary(&samples, &sizes, max)
        } else {
            finalize_dictionary(&samples, &sizes, max, o.level)
        }
    }
}
