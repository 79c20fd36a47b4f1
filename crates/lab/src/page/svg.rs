//! Charts as inline SVG: lines over time, ledgers below them, stacked bars.
//!
//! A chart is 340 units wide, so that its text has its own size on a phone. Lines differ by dashes
//! as well as by colour. A chart without points is not drawn.

use std::fmt::Write as _;

use super::html::{escape, short};

/// Colours of engines; each has a contrast of 4.5 or more on white.
pub(super) const COLOURS: [&str; 6] = [
    "#0b5fa5", "#b04a00", "#2c6e2f", "#7a3c9e", "#9a1b4b", "#4a4a4a",
];
/// Dashes of their lines.
const DASHES: [&str; 6] = ["", "6 3", "2 2", "8 3 2 3", "1 3", "10 4"];
const WIDTH: f64 = 340.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 10.0;
const PLOT: f64 = 110.0;
/// The axis of a chart and its label.
const FOOT: f64 = 32.0;
/// A ledger of one engine: its label, then its bars.
const LEDGER: f64 = 44.0;
const BARS: f64 = 26.0;

/// The words of the ledger with their colours, the worst below.
const WORDS: [(&str, &str); 3] = [
    ("stopped", "#a11212"),
    ("delayed", "#c77700"),
    ("paced", "#8a8f98"),
];

/// A line of a chart.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    pub(super) name: String,
    /// Which colour and dashes.
    pub(super) style: usize,
    pub(super) points: Vec<(f64, f64)>,
}

/// How writers of one engine were held back, as parts of each second: stopped, delayed, paced.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    pub(super) name: String,
    pub(super) seconds: Vec<[f64; 3]>,
}

/// A chart of lines, with ledgers on the same axis below.
#[derive(Debug, Clone, Default)]
pub(super) struct Chart {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) x: String,
    pub(super) y: String,
    pub(super) log_x: bool,
    /// Labels along the axis in the place of numbers, from 1 on.
    pub(super) ticks: Vec<String>,
    pub(super) lines: Vec<Line>,
    pub(super) ledgers: Vec<Ledger>,
}

/// The colour of an engine.
pub(super) fn colour(style: usize) -> &'static str {
    COLOURS[style % COLOURS.len()]
}

/// A round number not below `value`, for the end of an axis.
fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let step = steps.iter().find(|step| *step * power >= value * 0.9999);
    step.unwrap_or(&10.0) * power
}

/// Where data lies on the paper.
struct Scale {
    x: (f64, f64),
    y: f64,
    log_x: bool,
}

impl Scale {
    fn of(chart: &Chart) -> Option<Scale> {
        let points = || chart.lines.iter().flat_map(|line| &line.points);
        let finite = |(x, y): &&(f64, f64)| x.is_finite() && y.is_finite();
        let count = points().filter(finite).count();
        if count == 0 {
            return None;
        }
        let least = points().map(|p| p.0).fold(f64::INFINITY, f64::min);
        let most = points().map(|p| p.0).fold(0.0, f64::max);
        let top = points().map(|p| p.1).fold(0.0, f64::max);
        let log_x = chart.log_x && least > 0.0;
        let from = if log_x || !chart.ticks.is_empty() {
            least
        } else {
            0.0
        };
        Some(Scale {
            x: (from, if most > from { most } else { from + 1.0 }),
            y: round_up(top),
            log_x,
        })
    }

    fn x(&self, value: f64) -> f64 {
        let (from, to) = self.x;
        let part = if self.log_x {
            (value / from).ln() / (to / from).ln()
        } else {
            (value - from) / (to - from)
        };
        LEFT + part * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        TOP + PLOT * (1.0 - value / self.y)
    }
}

impl Chart {
    /// The drawing with its legend; nothing without a point.
    pub(super) fn html(&self) -> String {
        let Some(scale) = Scale::of(self) else {
            return String::new();
        };
        let height = TOP + PLOT + FOOT + LEDGER * self.ledgers.len() as f64;
        let title = escape(&self.title);
        let mut out = format!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-labelledby=\"{0}-t\"><title id=\"{0}-t\">{title}: {1}</title>",
            self.id,
            escape(&self.spoken())
        );
        self.grid(&scale, &mut out);
        for line in &self.lines {
            draw(line, &scale, &mut out);
        }
        for (at, ledger) in self.ledgers.iter().enumerate() {
            let top = TOP + PLOT + FOOT + LEDGER * at as f64;
            bars(ledger, top, &scale, &mut out);
        }
        out.push_str("</svg>\n");
        out + &self.legend()
    }

    /// The lines in words, for those who do not see them.
    fn spoken(&self) -> String {
        let parts = self.lines.iter().map(|line| {
            let values = line.points.iter().map(|p| p.1);
            let least = values.clone().fold(f64::INFINITY, f64::min);
            let most = values.fold(0.0, f64::max);
            format!(
                "{} between {} and {} {}",
                line.name,
                short(least),
                short(most),
                self.y
            )
        });
        parts.collect::<Vec<_>>().join("; ")
    }

    fn grid(&self, scale: &Scale, out: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, TOP + PLOT);
        for part in [0.0, 0.5, 1.0] {
            let y = TOP + PLOT * (1.0 - part);
            let label = short(scale.y * part);
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 5.0,
                y + 4.0
            );
        }
        let baseline = bottom + 13.0;
        for (at, label, anchor) in self.marks(scale) {
            let _ = write!(
                out,
                "<text x=\"{at:.1}\" y=\"{baseline}\" text-anchor=\"{anchor}\">{}</text>",
                escape(&label)
            );
        }
        let middle = (LEFT + right) / 2.0;
        let _ = write!(
            out,
            "<text class=\"axis\" x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            bottom + 27.0,
            escape(&format!("{}, over {}", self.y, self.x))
        );
    }

    /// Labels along the axis: the ends, and one between where there is room.
    fn marks(&self, scale: &Scale) -> Vec<(f64, String, &'static str)> {
        let (from, to) = scale.x;
        let label = |value: f64| {
            let tick = self.ticks.get((value - 1.0).max(0.0) as usize);
            tick.cloned().unwrap_or_else(|| short(value))
        };
        let mut marks = vec![(scale.x(from), label(from), "start")];
        let points = self.lines.iter().map(|line| line.points.len()).max();
        if points.unwrap_or(0) > 1 {
            marks.push((scale.x(to), label(to), "end"));
        }
        let middle = ((from + to) / 2.0).round();
        if self.ticks.is_empty() && !scale.log_x && middle > from && middle < to {
            marks.insert(1, (scale.x(middle), label(middle), "middle"));
        }
        marks
    }

    fn legend(&self) -> String {
        let mut out = String::from("<ul class=\"legend\">");
        for line in &self.lines {
            let (colour, dash) = (colour(line.style), DASHES[line.style % DASHES.len()]);
            let _ = write!(
                out,
                "<li><svg width=\"26\" height=\"10\" aria-hidden=\"true\"><line x1=\"0\" y1=\"5\" \
                 x2=\"26\" y2=\"5\" stroke=\"{colour}\" stroke-width=\"2.5\" \
                 stroke-dasharray=\"{dash}\"/></svg> {}</li>",
                escape(&line.name)
            );
        }
        if !self.ledgers.is_empty() {
            for (word, colour) in WORDS {
                let _ = write!(
                    out,
                    "<li><svg width=\"10\" height=\"10\" aria-hidden=\"true\"><rect width=\"10\" \
                     height=\"10\" fill=\"{colour}\"/></svg> {word}</li>"
                );
            }
        }
        out + "</ul>\n"
    }
}

fn draw(line: &Line, scale: &Scale, out: &mut String) {
    let (colour, dash) = (colour(line.style), DASHES[line.style % DASHES.len()]);
    let points: Vec<(f64, f64)> = line
        .points
        .iter()
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .map(|(x, y)| (scale.x(*x), scale.y(*y)))
        .collect();
    let path: Vec<String> = points
        .iter()
        .map(|(x, y)| format!("{x:.1},{y:.1}"))
        .collect();
    let _ = write!(
        out,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
         stroke-dasharray=\"{dash}\"/>",
        path.join(" ")
    );
    if points.len() <= 20 {
        for (x, y) in points {
            let _ = write!(
                out,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{colour}\"/>"
            );
        }
    }
}

/// Bars of a ledger: a bar for each second, as high as the part in which writers were held back.
fn bars(ledger: &Ledger, top: f64, scale: &Scale, out: &mut String) {
    let (label, base) = (top + 10.0, top + LEDGER - 4.0);
    let held: f64 = ledger.seconds.iter().flatten().sum();
    let part = 100.0 * held / ledger.seconds.len().max(1) as f64;
    let _ = write!(
        out,
        "<text x=\"{LEFT}\" y=\"{label}\">{}: writers held back {part:.0} %</text>\
         <line class=\"grid\" x1=\"{LEFT}\" y1=\"{base}\" x2=\"{:.1}\" y2=\"{base}\"/>",
        escape(&ledger.name),
        WIDTH - RIGHT
    );
    for (at, parts) in ledger.seconds.iter().enumerate() {
        let (from, to) = (scale.x(at as f64), scale.x(at as f64 + 1.0));
        let mut y = base;
        for (part, (_, colour)) in parts.iter().zip(WORDS) {
            let height = part.clamp(0.0, 1.0) * BARS;
            if height < 0.05 {
                continue;
            }
            y -= height;
            let _ = write!(
                out,
                "<rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\" \
                 fill=\"{colour}\"/>",
                from + 0.5,
                (to - from - 1.0).max(0.6)
            );
        }
    }
}

/// A bar in parts: a name, a size and a text for each, all bars of one scale.
pub(super) fn bar(id: &str, title: &str, parts: &[(String, f64)], whole: f64) -> String {
    const HEIGHT: f64 = 16.0;
    const SHADES: [&str; 8] = [
        "#0b3d66", "#0b5fa5", "#3f86c0", "#7fb0d8", "#b9d4ea", "#8a8f98", "#b6bac1", "#d9dce0",
    ];
    let sum: f64 = parts.iter().map(|(_, size)| size).sum();
    if sum <= 0.0 || whole <= 0.0 {
        return String::new();
    }
    let spoken: Vec<String> = parts.iter().map(|(name, _)| name.clone()).collect();
    let mut out = format!(
        "<svg class=\"bar\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" \
         role=\"img\" aria-labelledby=\"{id}-t\"><title id=\"{id}-t\">{}: {}</title>",
        escape(title),
        escape(&spoken.join(", "))
    );
    let mut x = 0.0;
    for (at, (name, size)) in parts.iter().enumerate() {
        let width = size / whole * WIDTH;
        let _ = write!(
            out,
            "<rect x=\"{x:.1}\" y=\"0\" width=\"{:.1}\" height=\"{HEIGHT}\" fill=\"{}\">\
             <title>{}</title></rect>",
            (width - 0.6).max(0.4),
            SHADES[at % SHADES.len()],
            escape(name)
        );
        x += width;
    }
    out + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64)]) -> Chart {
        Chart {
            id: "c".into(),
            title: "readrandom".into(),
            x: "seconds".into(),
            y: "ops/s".into(),
            lines: vec![Line {
                name: "Esker".into(),
                style: 0,
                points: points.to_vec(),
            }],
            ..Chart::default()
        }
    }

    #[test]
    fn a_chart_without_points_is_not_drawn() {
        assert_eq!(chart(&[]).html(), "");
        assert_eq!(chart(&[(1.0, f64::NAN)]).html(), "");
        assert_eq!(bar("b", "x", &[], 1.0), "");
    }

    #[test]
    fn points_lie_on_the_paper_and_are_told_in_words() {
        let html = chart(&[(1.0, 500.0), (2.0, 900.0)]).html();
        assert!(html.contains("Esker between 500 and 900 ops/s"), "{html}");
        let path = html
            .split("points=\"")
            .nth(1)
            .and_then(|s| s.split('"').next());
        for point in path.expect("a line").split(' ') {
            let (x, y) = point.split_once(',').expect("a point");
            let (x, y): (f64, f64) = (x.parse().expect("x"), y.parse().expect("y"));
            assert!(
                (LEFT..=WIDTH).contains(&x) && (TOP..=TOP + PLOT).contains(&y),
                "{point}"
            );
        }
    }

    #[test]
    fn a_ledger_is_as_high_as_the_part_of_the_second() {
        let mut chart = chart(&[(1.0, 5.0), (2.0, 5.0)]);
        chart.ledgers = vec![Ledger {
            name: "Esker".into(),
            seconds: vec![[0.0, 0.0, 0.0], [0.5, 0.25, 0.0]],
        }];
        let html = chart.html();
        assert!(html.contains("writers held back 38 %"), "{html}");
        assert!(html.contains(&format!("height=\"{:.1}\"", 0.5 * BARS)));
        assert_eq!(
            html.matches("fill=\"#a11212\"").count(),
            2,
            "a bar and the legend"
        );
    }

    #[test]
    fn axes_end_at_round_numbers() {
        let cases = [
            (0.0, 1.0),
            (7.0, 8.0),
            (101.0, 150.0),
            (1e6, 1e6),
            (0.3, 0.3),
        ];
        for (value, expected) in cases {
            assert!((round_up(value) - expected).abs() < 1e-9, "{value}");
        }
    }
}
