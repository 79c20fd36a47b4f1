//! Reads that are timed, so that the family knows what its runs cost them
//! ([`Family::pay_for`]).

use crate::core::ReadCore;
use crate::family::{Family, SAMPLE, View};
use esker_files::table::{ReadFigure, ReadWork};
use esker_lsm::read_demand::SampledReads;

/// The time and the work of a sampled read, from when it began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadTimer {
    began_ns: u64,
    before: ReadWork,
}

impl ReadCore {
    /// A sampled read begins.
    #[cold]
    pub(crate) fn begin_sample(&self) -> ReadTimer {
        ReadTimer {
            before: ReadWork::of_thread(),
            began_ns: self.env.clock.now_ns(),
        }
    }

    /// `count` point reads that searched tables of `view` end.
    #[cold]
    pub(crate) fn end_gets(&self, family: &Family, view: &View, timer: ReadTimer, count: u64) {
        let work = ReadWork::of_thread().since(&timer.before);
        let reads = SampledReads::Gets {
            count,
            took_ns: self.since(timer),
            data_blocks: work.sum(&[ReadFigure::DataBlocksRead, ReadFigure::DataHits]),
        };
        self.end_sample(family, view, reads);
    }

    /// A seek ends.
    #[cold]
    pub(crate) fn end_seek(&self, family: &Family, view: &View, timer: ReadTimer) {
        let took_ns = self.since(timer);
        self.end_sample(family, view, SampledReads::Seek { took_ns });
    }

    fn since(&self, timer: ReadTimer) -> u64 {
        self.env.clock.now_ns().saturating_sub(timer.began_ns)
    }

    fn end_sample(&self, family: &Family, view: &View, reads: SampledReads) {
        if family.pay_for(view, reads, u64::from(SAMPLE)) {
            self.background_cv.notify();
        }
    }
}
