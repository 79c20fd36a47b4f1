//! The conclusion, in three sentences for each engine: use it if, not if, not known.

use std::fmt::Write as _;

use crate::experiment::record::Record;
use crate::experiment::validity;

use super::finding::{Certainty, FigureKind, Finding};
use super::html::escape;
use super::verdict::{compared, list, losses, losses_to_others};

/// Gains and losses that are named.
const NAMED: usize = 4;

/// The three sentences of each engine that is compared.
pub(super) fn boxes(record: &Record) -> String {
    let engines = compared(record);
    if engines.is_empty() {
        return "<p>Name a second engine to see where there is something to gain.</p>\n".into();
    }
    let mut out = String::from("<div class=\"boxes\">");
    for engine in engines {
        let name = &record.engines[engine].name;
        let _ = write!(out, "<div class=\"box\"><h3>{}</h3>", escape(name));
        for sentence in sentences(record, engine) {
            let _ = write!(out, "<p>{}</p>", escape(&sentence));
        }
        out.push_str("</div>\n");
    }
    out + "</div>\n"
}

fn sentences(record: &Record, engine: usize) -> Vec<String> {
    let (name, base) = (
        &record.engines[engine].name,
        &record.engines[record.base].name,
    );
    let words = |all: Vec<Finding>| -> Vec<String> {
        let all = all
            .into_iter()
            .filter(|found| found.doubt < Certainty::Noise);
        let all = all.take(NAMED);
        all.map(|found| format!("{} ({})", found.place(record), found.words(record)))
            .collect()
    };
    let mut gains = Finding::all(record, [engine, record.base]);
    gains.retain(|found| !found.is_loss() && found.kind == FigureKind::Step && found.is_rate());
    let (gains, others) = (words(gains), losses_to_others(record, engine));
    let mut worse = words(losses(record, engine));
    worse.extend(words(others).into_iter().take(1));
    let is_sure = validity::doubts(record).is_empty();
    let verb = if is_sure { "Use" } else { "Try" };
    let mut unknown = validity::doubts(record);
    unknown.push(if record.quick {
        "this is the quick size, which shows directions".into()
    } else {
        "the figures are of one machine".to_string()
    });
    vec![
        match gains.as_slice() {
            [] => format!("Nothing here speaks for {name}."),
            gains => format!("{verb} {name} if what you do is {}.", list(gains)),
        },
        match worse.as_slice() {
            [] => format!("Nothing here speaks for {base}."),
            worse => format!("Not if it is {}.", list(worse)),
        },
        format!(
            "Not known is what your machine and your data say: {}. The command below repeats it.",
            list(&unknown)
        ),
    ]
}
