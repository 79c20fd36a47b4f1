//! The page of a made-up record, looked at as text; `cargo xtask page` looks at it in a browser.

use super::*;

/// The tags of a page in order, without attributes.
fn tags(html: &str) -> Vec<&str> {
    let parts = html.split('<').skip(1);
    let names = parts.map(|part| {
        let end = part.find([' ', '>', '\n', '/']).filter(|end| *end > 0);
        let end = end.unwrap_or_else(|| part[1..].find([' ', '>']).map_or(part.len(), |e| e + 1));
        &part[..end]
    });
    names.filter(|name| !name.starts_with('!')).collect()
}

fn sample_page() -> String {
    page(&[&sample::record()], &["runs.tsv".to_string()])
}

#[test]
fn every_tag_that_opens_closes_in_order() {
    const EMPTY: [&str; 3] = ["meta", "link", "br"];
    let html = sample_page();
    let style = html
        .find("<style>")
        .zip(html.find("</style>"))
        .expect("a style");
    let html = format!("{}{}", &html[..style.0], &html[style.1 + 8..]);
    let mut open: Vec<&str> = Vec::new();
    for part in html.split('<').skip(2) {
        let tag = part.split('>').next().unwrap_or_default();
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "near <{part}");
        } else {
            let name = tag.split([' ', '\n']).next().unwrap_or_default();
            let is_empty = tag.ends_with('/') || EMPTY.contains(&name.trim_end_matches('/'));
            if !is_empty {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    assert!(tags(&html).contains(&"table"));
}

#[test]
fn the_page_needs_no_network_and_no_script() {
    let html = sample_page();
    for word in ["http://", "https://", "<script", "@import", "url(", "src="] {
        assert!(!html.contains(word), "{word}");
    }
    assert!(html.len() < 300_000, "{} bytes", html.len());
}

#[test]
fn losses_come_before_everything_but_the_title() {
    let html = sample_page();
    let at = |text: &str| {
        html.find(text)
            .unwrap_or_else(|| panic!("{text} is not there"))
    };
    let order = [
        "<h1>",
        "Worse: overwrite 0.50 times the rate, 500 ops/s against 1,000 ops/s;",
        "Where Esker is worse than RocksDB 11.8.1",
        "<nav aria-label=\"Sections of sample\">",
        ">Ratios</h2>",
        ">Setup</h2>",
        ">Amplification</h2>",
        ">Efficiency</h2>",
        ">Quality of service</h2>",
        ">Shape of the trees</h2>",
        ">Device and memory</h2>",
        ">All figures by step</h2>",
        ">What it means</h2>",
        "how to repeat it</h2>",
    ];
    for pair in order.windows(2) {
        assert!(at(pair[0]) < at(pair[1]), "{} after {}", pair[0], pair[1]);
    }
}

#[test]
fn cells_have_their_colours() {
    let record = sample::record();
    let html = setup::ratios(&record);
    let row = |step: &str| {
        let rows = html.split("<tr>");
        let mut rows = rows.filter(|row| row.starts_with(&format!("<th scope=\"row\">{step}")));
        rows.next().expect("a row").to_string()
    };
    assert!(
        row("readrandom").contains("class=\"n up\""),
        "{}",
        row("readrandom")
    );
    assert!(
        row("overwrite").contains("class=\"n down\""),
        "{}",
        row("overwrite")
    );
    assert!(row("readwhilewriting").contains("class=\"n grey\""));
    let shown = row("a step with a long name");
    assert!(
        !shown.contains("n up") && !shown.contains("n down"),
        "{shown}"
    );
    assert!(shown.contains("not in the mean: it was made up"), "{shown}");
}

/// The row of `overwrite`, a step at half the rate, after a change.
fn overwrite(change: impl Fn(&mut record::Record)) -> String {
    let mut record = sample::record();
    change(&mut record);
    let html = setup::ratios(&record);
    let mut rows = html.split("<tr>");
    let found = rows.find(|row| row.starts_with("<th scope=\"row\">overwrite"));
    found.expect("a row").to_string()
}

#[test]
fn a_cell_is_coloured_or_says_why_not() {
    // A loss of two outside the mean was a white cell.
    let outside = overwrite(|record| record.steps[2].counts = false);
    assert!(
        outside.contains("n down") && outside.contains("not in the mean"),
        "{outside}"
    );
    let few = overwrite(|record| record.results.retain(|run| run.pair == 0));
    assert!(
        few.contains("n down pale") && few.contains("0.50..0.50 seen"),
        "{few}"
    );
    // A range that reaches over 1 has no colour: one of the two runs was faster.
    let crosses = overwrite(|record| {
        record.results.retain(|run| run.pair == 0);
        let run = record
            .results
            .iter_mut()
            .find(|run| run.step == 2 && run.engine == 0);
        run.expect("a run").put("ops_sec", 1100.0, "ops/s");
    });
    assert!(
        !crosses.contains("down") && !crosses.contains("up"),
        "{crosses}"
    );
    let unequal = overwrite(|record| {
        for run in record.results.iter_mut().filter(|run| run.step == 2) {
            run.put("rows_op", if run.engine == 0 { 2.6 } else { 29.0 }, "");
        }
    });
    assert!(unequal.contains("not judged: unequal work"), "{unequal}");
    let missing = overwrite(|record| {
        for run in record
            .results
            .iter_mut()
            .filter(|run| run.step == 2 && run.engine == 1)
        {
            run.figures.clear();
            run.missing = Some("this library has no batched multi-get".into());
        }
    });
    assert!(
        missing.contains("not run: this library has no batched"),
        "{missing}"
    );
}

#[test]
fn names_and_versions_do_not_repeat_each_other() {
    let cases = [
        ("Esker", "esker 0.1.0", "esker 0.1.0"),
        (
            "InnoDB",
            "InnoDB in MariaDB 10.11",
            "InnoDB in MariaDB 10.11",
        ),
        ("RocksDB", "lib:./librocksdb.so 11.8.1", "RocksDB 11.8.1"),
        ("RocksDB 11.8.1", "11.8.1", "RocksDB 11.8.1"),
        ("Esker", "0.1.0", "Esker 0.1.0"),
    ];
    for (name, version, expected) in cases {
        assert_eq!(with_version(name, version), expected);
    }
}

#[test]
fn every_chart_has_words_and_a_table_and_identifiers_are_unique() {
    let html = sample_page();
    let charts = html.matches("<svg class=\"chart\"").count();
    // Four steps, the ratios, and the chart of the table.
    assert_eq!(charts, 6);
    let named = html.matches("role=\"img\" aria-labelledby=").count();
    let bars = html.matches("<svg class=\"bar\"").count();
    assert_eq!(named, charts + bars);
    assert_eq!(html.matches("As a table").count(), 4);
    let ids = html.split(" id=\"").skip(1);
    let mut ids: Vec<&str> = ids.filter_map(|rest| rest.split('"').next()).collect();
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count);
    for reference in html.split("href=\"#").skip(1) {
        let id = reference.split('"').next().unwrap_or_default();
        assert!(ids.contains(&id), "{id} is not there");
    }
}

#[test]
fn options_that_differ_stand_side_by_side_and_alike_ones_do_not() {
    let html = setup::card(&sample::record());
    assert!(
        html.contains("max_background_jobs") && !html.contains("num_levels"),
        "{html}"
    );
    assert!(html.contains("The linter on the options of Esker: 1"));
    assert!(html.contains("lib:librocksdb.so"));
}

#[test]
fn nothing_of_a_record_becomes_markup() {
    let mut record = sample::record();
    record.title = "<b>bold</b>".into();
    record.steps[0].name = "<i>".into();
    record.engines[0].name = "\"><u>".into();
    let html = page(&[&record], &["<a>".to_string()]);
    for word in ["<b>", "<i>", "<u>", "<a>"] {
        assert!(!html.contains(word), "{word}");
    }
}

#[test]
fn several_records_make_one_page_and_an_empty_one_makes_a_page_too() {
    let (one, empty) = (sample::record(), Record::default());
    let html = page(&[&one, &empty], &[]);
    assert!(html.contains("Reports of the laboratory"));
    assert!(html.contains("id=\"sample-0-verdict\""));
    assert!(html.contains("No engine ran."));
    let directory = tempfile::tempdir().expect("a directory");
    write(&[&one, &one], directory.path()).expect("writes");
    let runs = std::fs::read_to_string(directory.path().join("runs.tsv")).expect("a table");
    assert_eq!(
        runs.matches("experiment\tstep").count(),
        1,
        "one head for both"
    );
    assert!(directory.path().join("report.json").exists());
}

#[test]
fn a_history_has_a_point_for_each_run_and_is_of_one_experiment() {
    let (mut old, new) = (sample::record(), sample::record());
    old.began -= 86_400;
    old.engines[1].version = "10.0".into();
    old.engines[1].name = "RocksDB 10.0".into();
    let html = history::page(&[&new, &old]).expect("a page");
    assert!(html.contains("RocksDB 10.0") && html.contains("readrandom over time"));
    let line = html
        .split("points=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    assert_eq!(line.map(|points| points.split(' ').count()), Some(2));
    let other = Record {
        experiment: "other".into(),
        ..sample::record()
    };
    assert!(history::page(&[&old, &other]).is_err());
}

/// The text of the heads of a table, and the number of cells of its first row.
fn heads_and_cells<'a>(html: &'a str, caption: &str) -> (Vec<&'a str>, usize) {
    let (_, table) = html.split_once(caption).expect("the table");
    let (head, body) = table.split_once("<tbody>").expect("a body");
    let heads = head.split("<th ").skip(1);
    let heads = heads.map(|cell| {
        let (_, text) = cell.split_once('>').expect("a tag");
        text.split("</th>").next().unwrap_or_default()
    });
    let row = body.split("</tr>").next().unwrap_or_default();
    (
        heads.collect(),
        row.matches("<td").count() + row.matches("<th").count(),
    )
}

#[test]
fn the_parts_of_writes_have_their_own_heads_and_each_engine_all_of_its_parts() {
    let mut record = sample::record();
    record.results[0].write_amp = vec![
        ("log".into(), 1.0),
        ("transaction states".into(), 0.25),
        ("device".into(), 1.25),
    ];
    let html = figures::amplification(&record);
    let (heads, cells) = heads_and_cells(&html, "Bytes written for each byte of the user");
    let expected = [
        "step",
        "engine",
        "log",
        "flush",
        "compaction",
        "transaction states",
        "sum",
        "device",
        "space-amp",
        "size, MB",
        "most, MB",
    ];
    assert_eq!(heads, expected);
    assert_eq!(cells, heads.len());
}
