//! Reads that are timed, so that the family knows what its runs cost them
//! ([`Family::pay_for`]).

use crate::core::ReadCore;
use crate::family::{Family, SAMPLE, View};
use esker_files::table::{ReadFigure, ReadWork};
use esker_lsm::read_demand::SampledReads;

/// The time and the work of sampled point reads, from when they began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GetTimer {
    began_ns: u64,
    before: ReadWork,
}

impl ReadCore {
    /// Sampled point reads begin.
    #[cold]
    pub(crate) fn begin_gets(&self) -> GetTimer {
        GetTimer {
            before: ReadWork::of_thread(),
            began_ns: self.env.clock.now_ns(),
        }
    }

    /// `count` point reads that searched tables of `view` end.
    #[cold]
    pub(crate) fn end_gets(&self, family: &Family, view: &View, timer: GetTimer, count: u64) {
        let work = ReadWork::of_thread().since(&timer.before);
        let reads = SampledReads::Gets {
            count,
            took_ns: self.since(timer.began_ns),
            data_blocks: work.sum(&[ReadFigure::DataBlocksRead, ReadFigure::DataHits]),
        };
        self.end_sample(family, view, reads);
    }

    /// A sampled seek ends that began at this time of the clock.
    #[cold]
    pub(crate) fn end_seek(&self, family: &Family, view: &View, began_ns: u64) {
        let took_ns = self.since(began_ns);
        self.end_sample(family, view, SampledReads::Seek { took_ns });
    }

    fn since(&self, began_ns: u64) -> u64 {
        self.env.clock.now_ns().saturating_sub(began_ns)
    }

    fn end_sample(&self, family: &Family, view: &View, reads: SampledReads) {
        if family.pay_for(view, reads, u64::from(SAMPLE)) {
            self.background_cv.notify();
        }
    }
}
