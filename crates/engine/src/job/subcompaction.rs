//! One key range of a flush or a compaction, as a machine of small steps.
//!
//! A step writes at most a thousand entries and returns; between steps the job notices that the
//! database closes, pays the rate limiter, and, where one thread runs everything, others get their
//! turn. Nothing is listed anywhere until the owner of the part installs its files.

use super::output::{Outputs, discard, paths_of};
use super::{Step, blobs};
use crate::core::Background;
use crate::family::Family;
use crate::family::backpressure::drain::Progress;
use crate::runtime::IoPriority;
use esker_files::table::StageTimes;
use esker_format::Cursor;
use esker_format::blob_refs::BlobRefs;
use esker_lsm::compaction_stream::{CompactionStream, StreamCounters};
use esker_lsm::file::FileMeta;
use esker_lsm::plan::LowerLevels;
use esker_lsm::tombstone::DropRules;
use esker_lsm::version::BlobFile;
use esker_status::{Error, ErrorKind, Result, Subcode};
use esker_sync::Arc;
use esker_sync::atomic::{AtomicBool, Ordering};
use std::path::PathBuf;

/// The error of a compaction whose caller gave it up.
pub(crate) fn check_canceled(flag: Option<&Arc<AtomicBool>>) -> Result<()> {
    if flag.is_some_and(|c| c.load(Ordering::Acquire)) {
        return Err(
            Error::new(ErrorKind::Incomplete, "the compaction was canceled")
                .with_subcode(Subcode::ManualCompactionPaused),
        );
    }
    Ok(())
}

/// Bytes between two payments to the rate limiter.
const LIMITER_BYTES: u64 = 1 << 20;

/// A range being written.
pub(crate) struct Part<C> {
    background: Arc<Background>,
    stream: CompactionStream<'static, C>,
    outputs: Outputs,
    bottommost: bool,
    /// Levels below the output; `None` for flushes.
    below: Option<LowerLevels>,
    paid: u64,
    /// Bytes of entries read that were paid for.
    paid_reads: u64,
    /// Bytes of entries that were told as done.
    passed: u64,
    /// Told how far it is.
    progress: Arc<Progress>,
    /// Set to make it give up.
    canceled: Option<Arc<AtomicBool>>,
}

impl PartOutput {
    /// Where its files are.
    pub(crate) fn paths(&self, family: &Family) -> Vec<PathBuf> {
        let mut paths = paths_of(family, &self.files);
        paths.extend(blobs::paths_of(family, &self.blobs));
        paths
    }
}

/// Output of a part.
#[derive(Default)]
pub(crate) struct PartOutput {
    pub(crate) files: Vec<Arc<FileMeta>>,
    pub(crate) blobs: Vec<BlobFile>,
    /// Values in blob files that it read references to and wrote none.
    pub(crate) garbage: BlobRefs,
    pub(crate) counters: StreamCounters,
    /// Time by stage, up to the last step.
    pub(crate) stages: StageTimes,
    /// Processor time of other threads than the job's: those that read and wrote in the background,
    /// and the part's own where it had one.
    pub(crate) cpu_ns: u64,
}

impl<C: Cursor> Part<C> {
    /// A part over a stream that has been placed at its start.
    pub(crate) fn new(
        background: Arc<Background>,
        stream: CompactionStream<'static, C>,
        outputs: Outputs,
        progress: Arc<Progress>,
    ) -> Self {
        Part {
            background,
            stream,
            outputs,
            bottommost: false,
            below: None,
            paid: 0,
            paid_reads: 0,
            progress,
            passed: 0,
            canceled: None,
        }
    }

    /// Lets tombstones go that nothing below the output needs.
    pub(crate) fn dropping(mut self, bottommost: bool, below: LowerLevels) -> Self {
        self.bottommost = bottommost;
        self.below = Some(below);
        self
    }

    /// Gives up when the flag is set.
    pub(crate) fn canceled_by(mut self, flag: Option<Arc<AtomicBool>>) -> Self {
        self.canceled = flag;
        self
    }

    /// Writes a little more. After the last step everything is synced.
    pub(crate) fn step(&mut self) -> Result<Step> {
        let step = self.write_step()?;
        if step == Step::Done {
            self.seal()?;
        }
        Ok(step)
    }

    /// Writes a little more. After the last step the last file is being synced, which
    /// [`Part::seal`] waits for.
    pub(crate) fn write_step(&mut self) -> Result<Step> {
        if self.background.cv.is_closing() {
            return Err(Error::shutdown());
        }
        if self.below.is_some() {
            self.background.compaction_abort.check()?;
        }
        check_canceled(self.canceled.as_ref())?;
        let stages = Arc::clone(self.outputs.stages());
        stages.resume();
        let stepped = self.write();
        stages.pause();
        let step = stepped?;
        let counters = self.stream.counters();
        let read = counters.total_input_raw_key_bytes + counters.total_input_raw_value_bytes;
        self.progress.advance(read - self.passed);
        self.passed = read;
        self.pay(step == Step::Done)?;
        Ok(step)
    }

    /// Waits until everything that was written is synced.
    pub(crate) fn seal(&mut self) -> Result<()> {
        let stages = Arc::clone(self.outputs.stages());
        stages.resume();
        let sealed = self.outputs.seal_last();
        stages.pause();
        sealed
    }

    /// A step's worth of entries.
    fn write(&mut self) -> Result<Step> {
        match &mut self.below {
            Some(below) => {
                let mut clear =
                    |a: &[u8], b: &[u8]| below.range_not_exists_beyond_output_level(a, b);
                let mut rules = DropRules {
                    bottommost: self.bottommost,
                    range_not_exists_beyond: Some(&mut clear),
                };
                self.outputs.step(&mut self.stream, &mut rules)
            }
            None => {
                let mut rules = DropRules {
                    bottommost: self.bottommost,
                    range_not_exists_beyond: None,
                };
                self.outputs.step(&mut self.stream, &mut rules)
            }
        }
    }

    /// Pays the rate limiter, a megabyte at a time and the rest at the end.
    fn pay(&mut self, is_end: bool) -> Result<()> {
        let Background { limiter, cv, .. } = &*self.background;
        let is_due = |new: u64| new >= LIMITER_BYTES || is_end;
        let written = self.outputs.bytes();
        // A little less than before where blocks shrank more than was foreseen.
        let unpaid = written.saturating_sub(self.paid);
        if is_due(unpaid) {
            let priority = match self.below {
                None => IoPriority::High,
                Some(_) => IoPriority::Low,
            };
            limiter.write(unpaid, priority, cv)?;
            self.paid += unpaid;
        }
        if self.below.is_some() && is_due(self.passed - self.paid_reads) {
            limiter.read(self.passed - self.paid_reads, IoPriority::Low, cv)?;
            self.paid_reads = self.passed;
        }
        Ok(())
    }

    /// Runs to the end.
    pub(crate) fn run(mut self) -> Result<PartOutput> {
        loop {
            match self.step() {
                Ok(Step::More) => {}
                Ok(Step::Done) => return self.finish(),
                Err(e) => {
                    self.abandon();
                    return Err(e);
                }
            }
        }
    }

    /// Entries that the stream took in so far, and the like.
    pub(crate) fn counters(&self) -> &StreamCounters {
        self.stream.counters()
    }

    /// The finished files, after the last step. After an error none is left.
    pub(crate) fn finish(mut self) -> Result<PartOutput> {
        let garbage = match self
            .outputs
            .finish()
            .and_then(|()| self.stream.blob_garbage())
        {
            Ok(garbage) => garbage,
            Err(e) => {
                self.abandon();
                return Err(e);
            }
        };
        let counters = *self.stream.counters();
        let clock = self.outputs.stages();
        let (stages, elsewhere) = (clock.times(), clock.elsewhere_ns());
        let (files, blobs) = self.outputs.into_files();
        Ok(PartOutput {
            files,
            blobs,
            garbage,
            counters,
            stages,
            cpu_ns: elsewhere,
        })
    }

    /// Removes what was written; no MANIFEST can name it.
    pub(crate) fn abandon(self) {
        discard(&self.background.services, &self.outputs.abandon());
    }
}
