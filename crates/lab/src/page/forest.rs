//! The chart of ratios: a row for each step, a point with its interval for each engine.

use std::fmt::Write as _;

use super::html::escape;
use super::svg::colour;

const WIDTH: f64 = 340.0;
const LEFT: f64 = 14.0;
const RIGHT: f64 = 326.0;
/// The text of a row, and what each engine adds.
const TEXT: f64 = 15.0;
const EACH: f64 = 9.0;
const FOOT: f64 = 18.0;
/// Characters of a row's text at most.
const MOST: usize = 54;
/// Where the axis may have a number.
const TICKS: [f64; 13] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0,
];

/// The ratio of an engine, with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mark {
    /// Which colour.
    pub(super) style: usize,
    pub(super) at: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The drawing, with the names of engines as a legend; nothing without a ratio. The axis is
/// logarithmic, so that twice and half are alike.
pub(super) fn ratio_chart(
    id: &str,
    title: &str,
    engines: &[&str],
    rows: &[(String, Vec<Mark>)],
) -> String {
    let rows: Vec<_> = rows.iter().filter(|(_, marks)| !marks.is_empty()).collect();
    let marks = || rows.iter().flat_map(|(_, marks)| marks);
    if marks().count() == 0 {
        return String::new();
    }
    let low = marks().map(|mark| mark.low).fold(0.9, f64::min);
    let high = marks().map(|mark| mark.high).fold(1.1, f64::max);
    let x = |value: f64| LEFT + (value / low).ln() / (high / low).ln() * (RIGHT - LEFT);
    let body: f64 = rows
        .iter()
        .map(|(_, marks)| TEXT + EACH * marks.len() as f64)
        .sum();
    let mut out = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" \
         aria-labelledby=\"{id}-t\"><title id=\"{id}-t\">{}</title>",
        body + FOOT,
        escape(title)
    );
    for tick in TICKS.iter().filter(|tick| (low..=high).contains(*tick)) {
        let (at, strong) = (x(*tick), *tick == 1.0);
        let style = if strong {
            " stroke=\"#4a525b\""
        } else {
            " class=\"grid\""
        };
        let _ = write!(
            out,
            "<line{style} x1=\"{at:.1}\" y1=\"0\" x2=\"{at:.1}\" y2=\"{body:.1}\"/><text \
             x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{tick}</text>",
            body + 13.0
        );
    }
    let mut y = 0.0;
    for (name, marks) in rows {
        let _ = write!(
            out,
            "<text x=\"{LEFT}\" y=\"{:.1}\">{}</text>",
            y + 11.0,
            escape(&short(name))
        );
        y += TEXT;
        for mark in marks {
            let (colour, middle) = (colour(mark.style), y + EACH / 2.0);
            let _ = write!(
                out,
                "<line stroke=\"{colour}\" stroke-width=\"2\" x1=\"{:.1}\" y1=\"{middle:.1}\" \
                 x2=\"{:.1}\" y2=\"{middle:.1}\"/><circle cx=\"{:.1}\" cy=\"{middle:.1}\" \
                 r=\"3.2\" fill=\"{colour}\"/>",
                x(mark.low),
                x(mark.high),
                x(mark.at)
            );
            y += EACH;
        }
    }
    out.push_str("</svg>\n<ul class=\"legend\">");
    for (style, name) in engines.iter().enumerate() {
        let _ = write!(
            out,
            "<li><svg width=\"10\" height=\"10\" aria-hidden=\"true\"><circle cx=\"5\" cy=\"5\" \
             r=\"4\" fill=\"{}\"/></svg> {}</li>",
            colour(style),
            escape(name)
        );
    }
    out + "</ul>\n"
}

fn short(name: &str) -> String {
    if name.chars().count() <= MOST {
        return name.to_string();
    }
    let start: String = name.chars().take(MOST - 1).collect();
    format!("{start}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_lie_on_both_sides_of_one_and_twice_is_as_far_as_half() {
        let mark = |at: f64| Mark {
            style: 0,
            at,
            low: at,
            high: at,
        };
        let rows = [
            ("half".to_string(), vec![mark(0.5)]),
            ("twice".into(), vec![mark(2.0)]),
            ("nothing".into(), Vec::new()),
        ];
        let html = ratio_chart("r", "Ratios", &["Esker"], &rows);
        let circles = html.split("cx=\"").skip(1).take(2);
        let at: Vec<f64> = circles
            .filter_map(|rest| rest.split('"').next()?.parse().ok())
            .collect();
        assert_eq!(at, [LEFT, RIGHT]);
        assert!(html.contains(">1</text>") && !html.contains("nothing"));
        assert_eq!(ratio_chart("r", "Ratios", &[], &rows[2..]), "");
        assert_eq!(short(&"x".repeat(80)).chars().count(), MOST);
    }
}
