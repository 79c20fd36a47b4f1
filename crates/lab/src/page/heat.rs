//! The heat map of tail latencies: steps by engines, and below it second by second.
//!
//! Colours are logarithmic from the lowest p99 of the report to the highest. Each cell has its
//! number, so that colours are a help and not the message.

use std::fmt::Write as _;

use crate::experiment::record::Record;

use super::html::{Cell, Table, details, escape, number, text};

/// Background of each class, from the lowest latency to the highest: `h0` to `h5` of the style.
const COLOURS: [&str; 6] = [
    "#e4eef8", "#c3daf0", "#fff3c4", "#ffdf94", "#ffc27a", "#f79f79",
];
const CLASSES: [&str; 6] = ["n h0", "n h1", "n h2", "n h3", "n h4", "n h5"];
/// Seconds of a strip; a longer step is thinned out to its worst.
const MOST: usize = 120;

/// The logarithmic scale of a report.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(values: impl Iterator<Item = f64>) -> Option<Scale> {
        let scale = values.filter(|us| *us > 0.0 && us.is_finite()).fold(
            Scale {
                low: f64::INFINITY,
                high: 0.0,
            },
            |scale, us| Scale {
                low: scale.low.min(us),
                high: scale.high.max(us),
            },
        );
        (scale.high > 0.0).then_some(scale)
    }

    /// Which of the colours a latency has.
    fn class(&self, us: f64) -> usize {
        let span = (self.high / self.low).ln();
        if span <= 0.0 || us <= self.low {
            return 0;
        }
        let part = (us / self.low).ln() / span;
        ((part * COLOURS.len() as f64) as usize).min(COLOURS.len() - 1)
    }

    /// Where the colours begin, in words.
    fn legend(&self) -> String {
        let mut out = String::from("<ul class=\"legend\">");
        for (at, colour) in COLOURS.iter().enumerate() {
            let from = self.low * (self.high / self.low).powf(at as f64 / COLOURS.len() as f64);
            let _ = write!(
                out,
                "<li><svg width=\"14\" height=\"12\" aria-hidden=\"true\"><rect width=\"14\" \
                 height=\"12\" fill=\"{colour}\" stroke=\"#6b737c\"/></svg> from {} us</li>",
                number(from)
            );
        }
        out + "</ul>\n"
    }
}

/// The p99 of a step on an engine: the median of its runs, from the intended start where the step
/// is paced.
fn p99(record: &Record, step: usize, engine: usize) -> Option<f64> {
    let runs = record.runs(step, engine).filter_map(|run| {
        let kept = run.intended.at(99.0).or_else(|| run.latency.at(99.0));
        kept.or_else(|| run.figure("p99"))
    });
    crate::experiment::record::median(&mut runs.collect::<Vec<f64>>())
}

/// The heat map, or nothing where no latency was measured.
pub(super) fn map(record: &Record) -> String {
    let engines: Vec<usize> = record.present().map(|(at, _)| at).collect();
    let cells = (0..record.steps.len()).flat_map(|step| {
        let engines = engines.iter();
        engines.filter_map(move |engine| p99(record, step, *engine))
    });
    let Some(scale) = Scale::of(cells) else {
        return String::new();
    };
    let mut head = vec!["step"];
    head.extend(engines.iter().map(|at| record.engines[*at].name.as_str()));
    let mut table = Table::new("The 99th percentile of each step, microseconds", &head);
    for (step, info) in record.steps.iter().enumerate() {
        let values: Vec<Option<f64>> = engines.iter().map(|at| p99(record, step, *at)).collect();
        if values.iter().all(Option::is_none) {
            continue;
        }
        let cell = |value: &Option<f64>| match value {
            Some(us) => Cell {
                html: number(*us),
                class: CLASSES[scale.class(*us)],
            },
            None => Cell {
                html: "-".into(),
                class: "n",
            },
        };
        let mut row = vec![text(&info.name)];
        row.extend(values.iter().map(cell));
        table.row(row);
    }
    format!(
        "<h3>Tail latency by step and engine</h3>\n{}{}<p class=\"note\">Medians of the runs; from \
         the intended start where a step is paced. Colours are logarithmic over this \
         report.</p>\n{}",
        scale.legend(),
        table.html(),
        strips(record)
    )
}

/// The worst p99 of each part of a series that is longer than the strip.
fn thinned(seconds: &[f64]) -> Vec<f64> {
    let every = seconds.len().div_ceil(MOST).max(1);
    let worst = |part: &[f64]| part.iter().copied().fold(0.0, f64::max);
    seconds.chunks(every).map(worst).collect()
}

/// The p99 of each second, as a strip for each step and engine.
fn strips(record: &Record) -> String {
    let mut rows: Vec<(usize, usize, Vec<f64>)> = Vec::new();
    for step in 0..record.steps.len() {
        for (engine, _) in record.present() {
            let Some(run) = record.typical(step, engine) else {
                continue;
            };
            let seconds: Vec<f64> = run.series.iter().map(|second| second.p99).collect();
            if seconds.len() > 1 && seconds.iter().any(|us| *us > 0.0) {
                rows.push((step, engine, thinned(&seconds)));
            }
        }
    }
    let all = rows
        .iter()
        .flat_map(|(_, _, seconds)| seconds.iter().copied());
    let Some(scale) = Scale::of(all) else {
        return String::new();
    };
    let (mut out, mut last) = (String::from("<div class=\"strip\">"), None);
    for (step, engine, seconds) in &rows {
        let (name, step_name) = (&record.engines[*engine].name, &record.steps[*step].name);
        if last != Some(step) {
            let _ = write!(out, "<h3>{}</h3>", escape(step_name));
            last = Some(step);
        }
        let worst = seconds.iter().copied().fold(0.0, f64::max);
        let _ = write!(
            out,
            "<span>{}</span>{}<span class=\"n\">{} us at worst</span>",
            escape(name),
            strip(
                &format!("{}-heat-{step}-{engine}", record.experiment),
                &format!(
                    "{name}, {step_name}: p99 of {} spans of time",
                    seconds.len()
                ),
                seconds,
                &scale
            ),
            number(worst)
        );
    }
    out.push_str("</div>\n");
    details(
        "The 99th percentile second by second, of the run in the middle",
        &format!(
            "{}{out}<p class=\"note\">A long step shows the worst second of each span. White: no \
             operation ended.</p>",
            scale.legend()
        ),
    )
}

/// One strip.
fn strip(id: &str, title: &str, seconds: &[f64], scale: &Scale) -> String {
    let mut out = format!(
        "<svg class=\"bar\" viewBox=\"0 0 {} 16\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-labelledby=\"{id}\"><title id=\"{id}\">{}</title>",
        seconds.len(),
        escape(title)
    );
    for (at, us) in seconds.iter().enumerate().filter(|(_, us)| **us > 0.0) {
        let colour = COLOURS[scale.class(*us)];
        let _ = write!(
            out,
            "<rect x=\"{at}\" width=\"1\" height=\"16\" fill=\"{colour}\"/>"
        );
    }
    out + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::sample;

    #[test]
    fn colours_are_logarithmic_and_reach_both_ends() {
        let scale = Scale::of([10.0, 0.0, f64::NAN, 10_000_000.0].into_iter()).expect("a scale");
        assert_eq!((scale.class(10.0), scale.class(1e7)), (0, 5));
        assert_eq!((scale.class(150.0), scale.class(1500.0)), (1, 2));
        let flat = Scale::of([5.0].into_iter()).expect("a scale");
        assert_eq!(flat.class(5.0), 0);
        assert!(Scale::of(std::iter::empty()).is_none());
    }

    #[test]
    fn a_long_step_shows_its_worst_seconds() {
        let mut seconds = vec![1.0; 500];
        seconds[333] = 9.0;
        let thin = thinned(&seconds);
        assert!(thin.len() <= MOST && thin.contains(&9.0));
        assert_eq!(thinned(&[1.0, 2.0]), [1.0, 2.0]);
    }

    #[test]
    fn the_map_has_each_step_and_engine() {
        let record = sample::record();
        let html = map(&record);
        for step in &record.steps {
            assert!(html.contains(&escape(&step.name)), "{}", step.name);
        }
        // The slowest and the fastest cell of the sample.
        assert!(html.contains("class=\"n h5\"") && html.contains("class=\"n h0\""));
        assert_eq!(html.matches("-heat-").count(), 2 * 2 * record.steps.len());
        let mut none = record;
        for run in &mut none.results {
            (run.latency, run.intended) = Default::default();
            run.figures.remove("p99");
        }
        assert_eq!(map(&none), "");
    }
}
