//! Which benchmarks there are, what each is made of, and why some of `db_bench`'s are not offered.

use std::sync::Arc;

use crate::benchmarks::{BENCHMARKS, CODEC_BENCHMARKS, NOT_OFFERED};
use crate::flags::{Flags, distance};
use crate::generate::ValueSizes;
use crate::options::session_plan;
use crate::store::SessionPlan;
use crate::workload::{Background, Settings, Task, Ycsb, Zipf};
use crate::{Failure, Result};

/// One measured benchmark.
pub(super) struct Job {
    pub(super) name: String,
    pub(super) task: Task,
    pub(super) background: Option<Background>,
    /// Starts from an empty database.
    pub(super) fresh: bool,
    pub(super) settings: Settings,
    pub(super) session: SessionPlan,
    /// How often it is run and not counted, and how often it is.
    pub(super) runs: (u64, u64),
}

/// Keys of the database, where benchmarks take those.
pub(super) type Existing = Option<Arc<Vec<Vec<u8>>>>;

/// A name without what stands in brackets behind it, and what that says: `[W2-X3]` warms up twice
/// and runs three times.
fn repeated(text: &str) -> Result<(&str, (u64, u64))> {
    let Some((name, rest)) = text.split_once('[') else {
        return Ok((text, (0, 1)));
    };
    let wrong = || {
        Failure::new(format!(
            "`{text}`: a benchmark may be followed by [Xn], [Wn] or [Xn-Wn]"
        ))
    };
    let rest = rest.strip_suffix(']').ok_or_else(wrong)?;
    let mut runs = (0, 1);
    for part in rest.split('-').filter(|part| !part.is_empty()) {
        let (letter, count) = part.split_at(1);
        let count = count.parse().map_err(|_| wrong())?;
        match letter {
            "X" if count > 0 => runs.1 = count,
            "W" => runs.0 = count,
            _ => return Err(wrong()),
        }
    }
    Ok((name, runs))
}

fn task(name: &str) -> Option<Task> {
    Some(match name {
        "fillseq" | "fillbatch" => Task::FillSeq,
        "filluniquerandom" | "ycsbload" => Task::FillUnique,
        "fillrandom" | "fillsync" | "fill100K" | "overwrite" => Task::FillRandom,
        "fillseekseq" => Task::FillSeekSeq,
        "updaterandom" => Task::Update,
        "xorupdaterandom" => Task::Xor,
        "appendrandom" => Task::Append,
        "readrandom" | "readrandomsmall" | "readmissing" | "readwhilewriting"
        | "readwhilemerging" | "readwhilescanning" => Task::Read,
        "readrandomfast" => Task::ReadFast,
        "readrandomoperands" => Task::Operands,
        "readseq" | "readtocache" => Task::ReadSeq,
        "readreverse" => Task::ReadReverse,
        "multireadrandom" | "multireadwhilewriting" => Task::MultiRead,
        "multiscan" => Task::MultiScan,
        "multiscanrandom" => Task::MultiScanRandom,
        "seekrandom"
        | "seekrandomwhilewriting"
        | "seekrandomwhilemerging"
        | "fwdrangewhilewriting"
        | "revrangewhilewriting" => Task::Seek,
        "newiterator" | "newiteratorwhilewriting" => Task::NewIterator,
        "readrandomwriterandom" => Task::ReadWrite,
        "readrandommergerandom" => Task::ReadMerge,
        "randomwithverify" => Task::InThrees,
        "randomreplacekeys" => Task::Replace,
        "mergerandom" => Task::Merge,
        "deleteseq" => Task::DeleteSeq,
        "deleterandom" => Task::DeleteRandom,
        "mixgraph" => Task::Mix,
        "timeseries" => Task::TimeSeries,
        "randomtransaction" => Task::Transaction,
        "approximatesizerandom" => Task::ApproximateSize,
        "approximatememtablestats" => Task::MemtableStats,
        _ => Task::Ycsb(Ycsb::of(name)?),
    })
}

/// The measured benchmark that `text` names; `None` for the others.
pub(super) fn job(text: &str, flags: &Flags, existing: &Existing) -> Result<Option<Job>> {
    let (name, runs) = repeated(text)?;
    let Some(task) = task(name) else {
        return Ok(None);
    };
    let mut s = Settings::from_flags(flags)?;
    let mut session = session_plan(flags);
    // A library without it has all other benchmarks.
    session.batched_multi_get &= matches!(task, Task::MultiRead);
    if let Some(keys) = existing {
        (s.num, s.existing) = (keys.len() as u64, Some(Arc::clone(keys)));
    }
    let behind = [
        ("whilewriting", Background::Write),
        ("whilemerging", Background::Merge),
        ("whilescanning", Background::Scan),
    ];
    let background = behind.iter().find(|(end, _)| name.ends_with(end));
    match name {
        "fillbatch" => s.batch = 1000,
        "fillsync" => {
            session.sync = true;
            s.num = (s.num / 1000).max(1);
            s.writes = s.num;
        }
        "fill100K" => {
            s.num = (s.num / 1000).max(1);
            s.writes = s.num;
            s.values = ValueSizes::Fixed(100_000);
        }
        "fillseekseq" => s.writes = s.num,
        "readmissing" => s.key_size += 1,
        "readrandomsmall" => s.reads = (s.reads / 1000).max(1),
        "readtocache" => (s.threads, s.reads, s.repeat_walks) = (1, s.num, false),
        "mergerandom" | "readrandommergerandom" if flags.text("merge_operator").is_empty() => {
            let text = format!("{name} needs a --merge_operator, such as put or uint64add");
            return Err(Failure::new(text));
        }
        "fwdrangewhilewriting" | "revrangewhilewriting" => {
            s.reverse = name.starts_with("rev");
            if s.seek_nexts == 0 {
                s.seek_nexts = 10;
            }
        }
        _ => {}
    }
    if matches!(task, Task::Ycsb(_)) {
        let theta = flags.number("ycsb_theta");
        if !(theta > 0.0 && theta < 1.0) {
            return Err(Failure::new("ycsb_theta is between 0 and 1"));
        }
        s.zipf = Some(Arc::new(Zipf::new(s.num, theta)));
    }
    Ok(Some(Job {
        name: name.to_string(),
        task,
        background: background.map(|(_, kind)| *kind),
        fresh: (name.starts_with("fill") && name != "fillseekseq")
            || matches!(name, "ycsbload" | "timeseries" | "randomreplacekeys"),
        settings: s,
        session,
        runs,
    }))
}

/// Returns the most operations of all threads of a benchmark, for a progress bar.
pub(super) fn wanted(job: &Job) -> u64 {
    let s = &job.settings;
    let per_thread = match job.task {
        Task::FillSeq | Task::FillRandom | Task::FillUnique | Task::TimeSeries => s.writes,
        Task::Update
        | Task::ReadWrite
        | Task::Merge
        | Task::ReadMerge
        | Task::Xor
        | Task::Append
        | Task::InThrees
        | Task::Transaction
        | Task::Ycsb(_) => s.read_writes,
        Task::DeleteSeq | Task::DeleteRandom => s.deletes,
        Task::Replace | Task::FillSeekSeq => s.num,
        _ => s.reads,
    };
    per_thread * s.threads as u64
}

/// Returns the name of one operation of a histogram.
pub(super) fn unit(task: Task) -> &'static str {
    match task {
        Task::FillSeq | Task::FillRandom | Task::FillUnique => "write",
        Task::Update | Task::Xor | Task::Append => "update",
        Task::Read
        | Task::ReadFast
        | Task::Operands
        | Task::MultiRead
        | Task::ReadSeq
        | Task::ReadReverse
        | Task::TimeSeries => "read",
        Task::Seek | Task::NewIterator | Task::FillSeekSeq => "seek",
        Task::MultiScan | Task::MultiScanRandom => "multiscan",
        Task::Merge => "merge",
        Task::DeleteSeq | Task::DeleteRandom => "delete",
        Task::ReadWrite
        | Task::ReadMerge
        | Task::InThrees
        | Task::Replace
        | Task::ApproximateSize
        | Task::MemtableStats
        | Task::Mix
        | Task::Transaction
        | Task::Ycsb(_) => "op",
    }
}

/// A name that is none, with the nearest that is one.
fn unknown(name: &str) -> String {
    let known = BENCHMARKS.iter().chain(CODEC_BENCHMARKS);
    let near = known
        .map(|(known, _)| (distance(name, known), *known))
        .min();
    let hint = match near {
        Some((far, best)) if far <= 3 => format!("; did you mean {best}?"),
        _ => String::new(),
    };
    format!("unknown benchmark `{name}`{hint} --benchmarks=list prints all")
}

/// Refuses names that are not benchmarks, before anything has run: all of them at once.
pub(super) fn check_names(names: &[&str]) -> Result<()> {
    let mut wrong = Vec::new();
    for text in names {
        let name = match repeated(text) {
            Ok((name, _)) => name,
            Err(failure) => {
                wrong.push(failure.to_string());
                continue;
            }
        };
        if let Some((_, why)) = NOT_OFFERED.iter().find(|(n, _)| *n == name) {
            wrong.push(format!("benchmark `{name}` is not offered: {why}"));
            continue;
        }
        let mut known = BENCHMARKS.iter().chain(CODEC_BENCHMARKS);
        if !known.any(|(n, _)| *n == name) {
            wrong.push(unknown(name));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(wrong.join("\n  ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_benchmark_is_known_once() {
        let mut names: Vec<&str> = BENCHMARKS
            .iter()
            .chain(NOT_OFFERED)
            .chain(CODEC_BENCHMARKS)
            .map(|(name, _)| *name)
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn repetitions_stand_in_brackets() {
        let runs = |text| repeated(text).map(|(_, runs)| runs);
        assert_eq!(runs("fillseq"), Ok((0, 1)));
        assert_eq!(runs("readrandom[X3]"), Ok((0, 3)));
        assert_eq!(runs("readrandom[X3-W2]"), Ok((2, 3)));
        assert!(runs("readrandom[Y]").is_err() && runs("readrandom[X3").is_err());
        assert!(runs("readrandom[X0]").is_err());
        let wrong = check_names(&["fillseq[X2]", "fillsec", "replay"]).expect_err("two are wrong");
        let said = wrong.to_string();
        assert!(
            said.contains("unknown benchmark `fillsec`; did you mean fillseq?")
                && said.contains("replay"),
            "{said}"
        );
    }
}
