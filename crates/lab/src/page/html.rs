//! Pieces of HTML: escaped text, numbers, tables.

use std::fmt::Write as _;

/// Text that is safe between tags and in quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A name for an `id`.
pub(super) fn slug(text: &str) -> String {
    let chars = text.chars().map(|c| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    });
    chars.collect()
}

/// A number with three digits or more that mean something, and commas in large ones.
pub(crate) fn number(value: f64) -> String {
    // A zero has no sign.
    let value = if value == 0.0 { 0.0 } else { value };
    let size = value.abs();
    if !value.is_finite() {
        return "-".into();
    }
    if size >= 1000.0 {
        return commas(value);
    }
    match size {
        _ if size >= 100.0 => format!("{value:.0}"),
        _ if size >= 10.0 => format!("{value:.1}"),
        _ if size >= 1.0 || value == 0.0 => trimmed(format!("{value:.2}")),
        _ if size >= 0.0995 => format!("{value:.2}"),
        _ if size >= 0.00995 => format!("{value:.3}"),
        _ if size >= 0.000_995 => format!("{value:.4}"),
        _ => format!("{value:.1e}"),
    }
}

/// `0.00` is nothing but 0.
fn trimmed(text: String) -> String {
    match text.strip_suffix(".00") {
        Some("0") => "0".into(),
        _ => text,
    }
}

fn commas(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if value < 0.0 { format!("-{out}") } else { out }
}

/// A short form for axes: `1.2M`, `350k`.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    let part = |by: f64, unit: &str| {
        let text = format!("{:.1}", value / by);
        format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
    };
    match size {
        _ if size >= 1e9 => part(1e9, "G"),
        _ if size >= 1e6 => part(1e6, "M"),
        _ if size >= 1e3 => part(1e3, "k"),
        _ if size >= 10.0 || size == 0.0 => format!("{value:.0}"),
        _ => part(1.0, ""),
    }
}

/// A number with its unit; bytes become megabytes.
pub(super) fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "" => number(value),
        "B" => format!("{} MB", number(value / 1_048_576.0)),
        "%" => format!("{} %", number(value)),
        unit => format!("{} {unit}", number(value)),
    }
}

/// A cell of a table.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    pub(super) html: String,
    pub(super) class: &'static str,
}

/// A cell of text.
pub(super) fn text(text: &str) -> Cell {
    Cell {
        html: escape(text),
        class: "",
    }
}

/// A cell of a number, or a dash.
pub(super) fn maybe(value: Option<f64>) -> Cell {
    Cell {
        html: value.map_or_else(|| "-".into(), number),
        class: "n",
    }
}

/// A table with a caption in a region that scrolls sideways by itself.
pub(super) struct Table {
    caption: String,
    head: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(super) fn new(caption: &str, head: &[&str]) -> Table {
        Table {
            caption: caption.to_string(),
            head: head.iter().map(|h| (*h).to_string()).collect(),
            rows: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.head.len(), "{}", self.caption);
        self.rows.push(cells);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table; the first cell of each row is its head.
    pub(super) fn html(&self) -> String {
        let mut out = format!(
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\"><table>\
             <caption>{0}</caption><thead><tr>",
            escape(&self.caption)
        );
        for (at, head) in self.head.iter().enumerate() {
            // A head stands as the cells below it do.
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            let is_number = cells.take(1).any(|cell| cell.class.starts_with('n'));
            let class = if is_number { " class=\"n\"" } else { "" };
            let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escape(head));
        }
        out.push_str("</tr></thead><tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (at, cell) in row.iter().enumerate() {
                let class = match cell.class {
                    "" => String::new(),
                    class => format!(" class=\"{class}\""),
                };
                let _ = match at {
                    0 => write!(out, "<th scope=\"row\"{class}>{}</th>", cell.html),
                    _ => write!(out, "<td{class}>{}</td>", cell.html),
                };
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        out
    }
}

/// Makes a part that opens when it is clicked.
pub(super) fn details(summary: &str, inner: &str) -> String {
    format!(
        "<details><summary>{}</summary>{inner}</details>\n",
        escape(summary)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(escape("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
        let mut table = Table::new("<x>", &["a"]);
        assert!(table.is_empty());
        table.row(vec![text("<script>")]);
        assert!(!table.html().contains("<script>") && !table.html().contains("<x>"));
    }

    #[test]
    fn numbers_have_the_digits_that_mean_something() {
        let cases = [
            (1_234_567.8, "1,234,568"),
            (999.6, "1000"),
            (123.4, "123"),
            (12.34, "12.3"),
            (1.0, "1.00"),
            (0.0, "0"),
            (-0.0, "0"),
            (0.123, "0.12"),
            (0.0123, "0.012"),
            (0.0012, "0.0012"),
            (-4321.0, "-4,321"),
            (0.00012, "1.2e-4"),
        ];
        for (value, expected) in cases {
            assert_eq!(number(value), expected);
        }
        assert_eq!(number(f64::NAN), "-");
        assert_eq!(
            (short(1_250_000.0), short(500.0)),
            ("1.2M".into(), "500".into())
        );
        assert_eq!(with_unit(3.0 * 1_048_576.0, "B"), "3.00 MB");
    }
}
