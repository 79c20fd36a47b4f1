//! What it means: four boxes for four readers, made of the figures.

use std::fmt::Write as _;

use crate::experiment::ratio::{self, geometric_mean};
use crate::experiment::record::{Aim, Record};

use super::html::{escape, number};
use super::verdict::{compared, judged, losses};

/// The four boxes.
pub(super) fn boxes(record: &Record) -> String {
    let boxes = [
        ("Developers", developers(record)),
        ("Users", users(record)),
        ("Management", management(record)),
        ("Operations", operations(record)),
    ];
    let mut out = String::from("<div class=\"boxes\">");
    for (title, sentences) in boxes {
        let _ = write!(out, "<div class=\"box\"><h3>{title}</h3>");
        for sentence in sentences {
            let _ = write!(out, "<p>{}</p>", escape(&sentence));
        }
        out.push_str("</div>\n");
    }
    out + "</div>\n"
}

/// The geometric mean of a figure, as the engine's part of the base's.
fn part(record: &Record, engine: usize, figure: &str) -> Option<f64> {
    let ratios = judged(record).filter_map(|step| {
        let found = ratio::of_figure(record, step, engine, figure, Aim::Less)?;
        Some(1.0 / found.median)
    });
    geometric_mean(ratios)
}

fn name(record: &Record, engine: usize) -> &str {
    &record.engines[engine].name
}

/// Where to look: the worst step, and where the time of an operation goes.
fn developers(record: &Record) -> Vec<String> {
    let mut out = Vec::new();
    for engine in compared(record) {
        let worst = judged(record)
            .filter_map(|step| Some((step, ratio::of(record, step, engine)?.median)))
            .min_by(|a, b| a.1.total_cmp(&b.1));
        let Some((step, ratio)) = worst else { continue };
        let (ours, base) = (name(record, engine), name(record, record.base));
        out.push(format!(
            "The step to look at first is {}: {ours} does {ratio:.2} of the rate of {base} there.",
            record.steps[step].name
        ));
        let cpu = record.median(step, engine, "cpu_us_op");
        let own = record.median(step, engine, "cpu_client_us_op");
        if let (Some(cpu), Some(own)) = (cpu, own) {
            out.push(format!(
                "An operation of it takes {} us of processor time, {} of them on the thread of \
                 the caller and the rest in jobs.",
                number(cpu),
                number(own)
            ));
        }
    }
    if out.is_empty() {
        out.push("Name a second engine to see where there is something to gain.".into());
    }
    out
}

/// What a caller sees: rates, and how long the slow operations take.
fn users(record: &Record) -> Vec<String> {
    let mut out = Vec::new();
    for (engine, info) in record.present() {
        let worst = judged(record)
            .filter_map(|step| Some((step, record.median(step, engine, "p99.9")?)))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((step, us)) = worst {
            out.push(format!(
                "With {}, one operation in a thousand takes {} us or more at worst, in {}.",
                info.name,
                number(us),
                record.steps[step].name
            ));
        }
    }
    if out.is_empty() {
        out.push("Latencies were not measured here.".into());
    }
    out
}

/// What it costs: processors, writes to the device, space.
fn management(record: &Record) -> Vec<String> {
    let mut out = Vec::new();
    for engine in compared(record) {
        let parts = [
            ("processor time", "cpu_us_op"),
            ("bytes written to the device", "w_amp_device"),
            ("disk space at most", "peak_sz"),
            ("memory", "rss"),
        ];
        let found = parts.iter().filter_map(|(what, figure)| {
            let part = part(record, engine, figure)?;
            Some(format!("{part:.2} of the {what}"))
        });
        let found: Vec<String> = found.collect();
        if !found.is_empty() {
            out.push(format!(
                "For the same work {} takes {}, where {} takes 1.",
                name(record, engine),
                found.join(", "),
                name(record, record.base)
            ));
        }
    }
    out.push(if record.quick {
        "This is the quick size: it shows directions. Decide with the full size, on your \
                 own machine."
            .to_string()
    } else {
        "The figures are of this machine: run the command below on your own before \
                  you decide."
            .to_string()
    });
    out
}

/// What to watch: stalls, steadiness, debt.
fn operations(record: &Record) -> Vec<String> {
    let mut out = Vec::new();
    for (engine, info) in record.present() {
        let least_steady = judged(record)
            .filter_map(|step| Some((step, record.median(step, engine, "qps_cv")?)))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((step, cv)) = least_steady {
            out.push(format!(
                "{} is least steady in {}: the rate of a second varies by {:.0} %.",
                info.name,
                record.steps[step].name,
                100.0 * cv
            ));
        }
        let held = judged(record)
            .filter_map(|step| {
                let words = ["stopped%", "delayed%", "paced%"];
                let parts = words.map(|word| record.median(step, engine, word));
                parts[0].map(|_| (step, parts.into_iter().flatten().sum::<f64>()))
            })
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .filter(|(_, percent)| *percent >= 1.0);
        if let Some((step, percent)) = held {
            out.push(format!(
                "Its writers were held back for {percent:.0} % of their time in {}.",
                record.steps[step].name
            ));
        }
    }
    for engine in compared(record) {
        let count = losses(record, engine)
            .iter()
            .filter(|loss| loss.what != "rate")
            .count();
        if count > 0 {
            out.push(format!(
                "{count} costs of {} are above those of {}: see the list at the top.",
                name(record, engine),
                name(record, record.base)
            ));
        }
    }
    if out.is_empty() {
        out.push("Nothing was measured by second.".into());
    }
    out
}
