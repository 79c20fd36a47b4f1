//! The events of the LOG: each line of JSON that a database writes is as
//! `docs/log-events.schema.json` says, and each event that the code has is described there.

use esker::{CompactRangeOptions, Db, IngestOptions, Options, SstFileWriter};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema() -> Value {
    let text = fs::read_to_string(root().join("docs/log-events.schema.json"));
    serde_json::from_str(&text.expect("the schema")).expect("JSON")
}

/// The description of an event in the schema.
fn described<'s>(schema: &'s Value, event: &Value) -> Option<&'s Value> {
    let all = schema["oneOf"].as_array().expect("a list");
    all.iter()
        .find(|d| d["properties"]["event"]["const"] == event["event"])
}

/// Tells why a value is not what a schema of the kinds that the file uses says.
fn mismatch(schema: &Value, value: &Value) -> Option<String> {
    if let Some(only) = schema.get("const") {
        return (only != value).then(|| format!("{value} is not {only}"));
    }
    if let Some(of) = schema.get("enum") {
        let has = of.as_array().expect("a list").contains(value);
        return (!has).then(|| format!("{value} is none of {of}"));
    }
    let is_it = match schema["type"].as_str().expect("a type") {
        "integer" => value.as_u64().is_some(),
        "string" => value.is_string(),
        "array" => {
            let items = value.as_array()?;
            return items
                .iter()
                .find_map(|item| mismatch(&schema["items"], item));
        }
        "object" => return mismatch_of_object(schema, value),
        other => panic!("the test knows no type {other}"),
    };
    (!is_it).then(|| format!("{value} is no {}", schema["type"]))
}

fn mismatch_of_object(schema: &Value, value: &Value) -> Option<String> {
    let members = value.as_object()?;
    for name in schema["required"].as_array().expect("a list") {
        let name = name.as_str().expect("a name");
        if !members.contains_key(name) {
            return Some(format!("{name} is missing"));
        }
    }
    for (name, member) in members {
        let by_level = name
            .strip_prefix("files_L")
            .is_some_and(|l| l.parse::<u8>().is_ok());
        let patterns = &schema["patternProperties"];
        let kind = match schema["properties"].get(name) {
            Some(kind) => kind,
            None if by_level && patterns.is_object() => &patterns["^files_L[0-9]+$"],
            None if schema["additionalProperties"].is_object() => &schema["additionalProperties"],
            None => return Some(format!("{name} is not described")),
        };
        if let Some(why) = mismatch(kind, member) {
            return Some(format!("{name}: {why}"));
        }
    }
    None
}

/// The events of every LOG in `dir`, checked. Their names.
fn checked(dir: &Path) -> BTreeSet<String> {
    let schema = schema();
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if name != "LOG" && !name.starts_with("LOG.old") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("UTF-8");
        for json in text.lines().filter_map(|l| l.split("EVENT_LOG_v1 ").nth(1)) {
            let event: Value = serde_json::from_str(json).expect("JSON");
            let kind =
                described(&schema, &event).unwrap_or_else(|| panic!("not described: {json}"));
            assert_eq!(mismatch(kind, &event), None, "{json}");
            names.insert(event["event"].as_str().expect("a name").to_owned());
        }
    }
    names
}

#[test]
fn the_events_of_a_database_are_as_described() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let options = || {
        let options = Options::new().create_if_missing(true);
        options.set("enable_blob_files", "true").expect("exists")
    };
    let db = Db::open(&path, options()).expect("opens");
    let hostile = "a \"family\"\\\n\u{1}\u{1f980}";
    let family = db
        .create_family(hostile, options().family)
        .expect("creates");
    for round in 0..3 {
        for n in 0..200u32 {
            db.put(format!("key{n}"), format!("{round}"))
                .expect("writes");
            db.put_cf(&family, format!("key{n}"), "value")
                .expect("writes");
        }
        db.flush().expect("flushes");
    }
    let whole = CompactRangeOptions::default();
    db.compact_range(None, None).expect("compacts");
    db.compact_range_opt(&family, None, None, &whole)
        .expect("compacts");
    let file = dir.path().join("outside.sst");
    let mut writer = SstFileWriter::new(&options()).expect("creates");
    writer.open(&file).expect("creates");
    writer.put(b"outside", b"value").expect("writes");
    writer.finish().expect("finishes");
    db.ingest(
        &db.default_family_handle(),
        &[file],
        &IngestOptions::default(),
    )
    .expect("ingests");
    let sampling = db.sample_operations(Some(Duration::ZERO));
    db.put("late", "value").expect("writes");
    db.get("late").expect("reads");
    drop(sampling);
    drop(family);
    db.close().expect("closes");
    drop(db);
    // The log is replayed.
    Db::open(&path, options())
        .expect("opens")
        .close()
        .expect("closes");

    let names = checked(&path);
    let schema = schema();
    let described = schema["oneOf"].as_array().expect("a list").iter();
    let described = described.map(|d| d["properties"]["event"]["const"].as_str().expect("a name"));
    let described: BTreeSet<String> = described.map(str::to_owned).collect();
    assert_eq!(names, described, "each event was seen");
}

#[test]
fn what_is_not_described_is_found() {
    let schema = schema();
    let wrong = |json: &str| {
        let event: Value = serde_json::from_str(json).expect("JSON");
        mismatch(described(&schema, &event).expect("an event"), &event).expect("wrong")
    };
    let deletion = |rest: &str| {
        wrong(&format!(
            "{{\"time_micros\":1,\"job\":0,\"event\":\"table_file_deletion\"{rest}}}"
        ))
    };
    assert!(deletion("").contains("missing"));
    assert!(deletion(",\"file_number\":-1").contains("file_number"));
    assert!(deletion(",\"file_number\":\"7\"").contains("file_number"));
    assert!(deletion(",\"file_number\":7,\"more\":1").contains("not described"));
}

#[test]
fn each_metric_of_the_dashboard_exists() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = Options::new().create_if_missing(true);
    options.db.statistics = Some(esker::observe::Statistics::new());
    let text = Db::open(dir.path(), options).expect("opens").metrics();
    let names: BTreeSet<&str> = text
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| l.split(['{', ' ']).next().expect("a name"))
        .collect();
    let dashboard = fs::read_to_string(root().join("docs/grafana-dashboard.json"));
    let dashboard: Value = serde_json::from_str(&dashboard.expect("the file")).expect("JSON");
    let mut asked = 0;
    for panel in dashboard["panels"].as_array().expect("a list") {
        for target in panel["targets"].as_array().expect("a list") {
            let expression = target["expr"].as_str().expect("an expression");
            let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            for word in words.filter(|w| w.starts_with("rocksdb_")) {
                assert!(names.contains(word), "{word} in {}", panel["title"]);
                asked += 1;
            }
        }
    }
    assert!(asked > 20);
}
