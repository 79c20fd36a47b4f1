//! Published directions: what other measurements found, and whether this run finds it too.

use crate::experiment::record::{Record, Table};
use crate::experiment::validity;

/// A direction, with the ratio that it says is above 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Direction {
    /// The engine's number.
    pub(super) engine: usize,
    /// Where it was measured: a tree, a number of threads.
    pub(super) place: String,
    /// The published result, as a clause.
    pub(super) what: &'static str,
    /// The ratio that was measured here.
    pub(super) ratio: f64,
}

/// A ratio between this and its inverse says nothing.
const LEAST: f64 = 1.03;

impl Direction {
    /// One whose two figures were measured.
    pub(super) fn of(
        engine: usize,
        place: &str,
        what: &'static str,
        above: Option<f64>,
        below: Option<f64>,
    ) -> Option<Direction> {
        let (above, below) = above.zip(below)?;
        Some(Direction {
            engine,
            place: place.to_string(),
            what,
            ratio: above / below.max(1e-9),
        })
    }

    fn word(&self) -> &'static str {
        match self.ratio {
            ratio if ratio > LEAST => "confirmed",
            ratio if ratio < 1.0 / LEAST => "contradicted",
            _ => "not seen",
        }
    }
}

/// Adds the table of directions, and a sentence for each engine.
pub(super) fn tell(record: &mut Record, found: &[Direction]) {
    let engines: Vec<(usize, String)> = record
        .present()
        .map(|(at, engine)| (at, engine.name.clone()))
        .collect();
    let doubts = validity::doubts(record);
    let mut rows = Vec::new();
    for (at, name) in &engines {
        let own: Vec<&Direction> = found.iter().filter(|d| d.engine == *at).collect();
        if own.is_empty() {
            continue;
        }
        rows.extend(own.iter().map(|d| {
            vec![
                d.what.to_string(),
                d.place.clone(),
                name.clone(),
                format!("{:.2}", d.ratio),
                if doubts.is_empty() { d.word() } else { "open" }.to_string(),
            ]
        }));
        record.sentences.push(sentence(name, &own, &doubts));
    }
    record.tables.push(Table {
        title: "Published directions".into(),
        about: "Each is a ratio that is above 1 where other measurements are right; within 3 % of \
                1 it is not seen."
            .into(),
        columns: ["direction", "where", "engine", "ratio", "here"]
            .map(String::from)
            .to_vec(),
        rows,
        chart: None,
    });
}

/// How many of the directions are seen on an engine, and which are not.
fn sentence(name: &str, own: &[&Direction], doubts: &[String]) -> String {
    if !doubts.is_empty() {
        return format!(
            "Published directions are neither confirmed nor contradicted by {name} here ({}).",
            doubts.join(", ")
        );
    }
    let of = |word: &str| -> Vec<String> {
        let those = own.iter().filter(|d| d.word() == word);
        those
            .map(|d| format!("that {} ({}, {:.2})", d.what, d.place, d.ratio))
            .collect()
    };
    let confirmed = own.iter().filter(|d| d.word() == "confirmed").count();
    let mut text = format!(
        "{name} confirms {confirmed} of {} published directions",
        own.len()
    );
    for (word, those) in [
        ("contradicted is", of("contradicted")),
        ("not seen is", of("not seen")),
    ] {
        if !those.is_empty() {
            text.push_str(&format!("; {word} {}", those.join(", ")));
        }
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::record::Engine;

    #[test]
    fn a_direction_is_confirmed_contradicted_or_not_seen() {
        let mut record = Record {
            complete: true,
            pairs: 3,
            engines: vec![Engine {
                name: "Esker".into(),
                ..Engine::default()
            }],
            ..Record::default()
        };
        let direction = |what, above: f64| Direction::of(0, "f8", what, Some(above), Some(2.0));
        let found: Vec<Direction> = [
            direction("fewer runs are faster", 6.0),
            direction("filters help", 1.0),
            direction("zstd takes less", 2.02),
            Direction::of(0, "f8", "nothing was measured", Some(1.0), None),
        ]
        .into_iter()
        .flatten()
        .collect();
        tell(&mut record, &found);
        assert_eq!(
            record.sentences,
            [
                "Esker confirms 1 of 3 published directions; contradicted is that filters help \
                 (f8, 0.50); not seen is that zstd takes less (f8, 1.01)."
            ]
        );
        let words: Vec<&str> = record.tables[0]
            .rows
            .iter()
            .map(|r| r[4].as_str())
            .collect();
        assert_eq!(words, ["confirmed", "contradicted", "not seen"]);
        // One pair on a busy machine contradicts nothing.
        (record.pairs, record.host.processors, record.host.loads) = (1, 2, vec![13.6]);
        record.sentences.clear();
        tell(&mut record, &found);
        assert_eq!(
            record.sentences,
            [
                "Published directions are neither confirmed nor contradicted by Esker here (1 \
                 pair, load 13.6 on 2 processors before the first run)."
            ]
        );
        assert!(record.tables[1].rows.iter().all(|row| row[4] == "open"));
    }
}
