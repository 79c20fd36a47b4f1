//! A table with its formulas: as text for people, as TSV and JSON for programs.

use serde_json::{Value, json};

/// One field of a [`Table`].
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A number and how many decimals people are shown. TSV and JSON have all of it.
    Number(f64, usize),
}

impl Cell {
    /// The field as people read it.
    pub fn text(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Number(number, decimals) => format!("{number:.decimals$}"),
        }
    }

    fn exact(&self) -> String {
        match self {
            Cell::Text(text) => text.replace(['\t', '\n'], " "),
            Cell::Number(number, _) => number.to_string(),
        }
    }

    fn value(&self) -> Value {
        match self {
            Cell::Text(text) => json!(text),
            Cell::Number(number, _) => json!(number),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

/// A table with its formulas above it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// Its title.
    pub title: String,
    /// The formulas and what their letters mean, a line each.
    pub formulas: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows, as long as the columns.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table.
    pub fn new(title: &str, formulas: &[&str], columns: &[&str]) -> Table {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        Table {
            title: title.into(),
            formulas: owned(formulas),
            columns: owned(columns),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<Cell>) {
        debug_assert_eq!(cells.len(), self.columns.len(), "one field a column");
        self.rows.push(cells);
    }

    /// The fields of the row whose first field reads `first`, as people read them.
    pub fn find(&self, first: &str) -> Option<Vec<String>> {
        let row = self.rows.iter().find(|row| row[0].text() == first)?;
        Some(row.iter().map(Cell::text).collect())
    }

    /// For people: the title, the formulas, aligned columns.
    pub fn to_text(&self) -> String {
        let mut lines: Vec<Vec<String>> = vec![self.columns.clone()];
        lines.extend(
            self.rows
                .iter()
                .map(|row| row.iter().map(Cell::text).collect()),
        );
        let width = |i: usize| lines.iter().map(|l| l[i].chars().count()).max();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|i| width(i).unwrap_or(0))
            .collect();
        let mut out = format!("{}\n", self.title);
        for formula in &self.formulas {
            out += &format!("  {formula}\n");
        }
        for line in &lines {
            let fields: Vec<String> = line
                .iter()
                .zip(&widths)
                .map(|(field, width)| format!("{field:>width$}"))
                .collect();
            out += &format!("{}\n", fields.join("  "));
        }
        out
    }

    /// For programs: the names of the columns, then the rows.
    pub fn to_tsv(&self) -> String {
        let mut out = self.columns.join("\t") + "\n";
        for row in &self.rows {
            let fields: Vec<String> = row.iter().map(Cell::exact).collect();
            out += &(fields.join("\t") + "\n");
        }
        out
    }

    /// For programs: one object a row.
    pub fn to_json(&self) -> Value {
        let row = |cells: &Vec<Cell>| -> Value {
            let pairs = self.columns.iter().zip(cells);
            Value::Object(pairs.map(|(k, v)| (k.clone(), v.value())).collect())
        };
        json!({
            "title": self.title,
            "formulas": self.formulas,
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }

    /// For pages: a Markdown table with the formulas in a list above it.
    pub fn to_markdown(&self) -> String {
        let mut out = String::new();
        for formula in &self.formulas {
            out += &format!("- `{formula}`\n");
        }
        if !self.formulas.is_empty() {
            out.push('\n');
        }
        out += &format!("| {} |\n", self.columns.join(" | "));
        out += &format!("|{}\n", "---|".repeat(self.columns.len()));
        for row in &self.rows {
            let fields: Vec<String> = row.iter().map(|c| c.text().replace('|', "/")).collect();
            out += &format!("| {} |\n", fields.join(" | "));
        }
        out
    }
}
