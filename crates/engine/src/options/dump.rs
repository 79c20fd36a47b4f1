//! Options as lines of the LOG, in the form in which RocksDB prints them at open: tools look for
//! `Options.write_buffer_size: 67108864`.

use super::catalogue::{Entry, OptionSet};
use super::{DbOptions, FamilyOptions};
use esker_format::options_text::parse_pairs;

/// Flags are digits in the LOG, and enums lose their decoration where RocksDB has a plain name.
fn plain(entry_type: &str, value: &str) -> String {
    match value {
        "true" if entry_type == "bool" => "1".to_owned(),
        "false" if entry_type == "bool" => "0".to_owned(),
        "kNoCompression" => "NoCompression".to_owned(),
        "kDisableCompressionOption" => "Disabled".to_owned(),
        _ => value
            .strip_prefix('k')
            .and_then(|v| v.strip_suffix("Compression"))
            .map_or_else(|| value.to_owned(), str::to_owned),
    }
}

fn line(out: &mut Vec<String>, name: &str, value: &str) {
    out.push(format!("{:>48}: {value}", format!("Options.{name}")));
}

fn entry<S>(out: &mut Vec<String>, options: &S, entry: &Entry<S>) {
    let (name, value) = (entry.info.name, (entry.get)(options));
    if value.starts_with('{')
        && let Ok(members) = parse_pairs(&value)
        && !members.is_empty()
    {
        for (member, value) in members {
            let kind = if value == "true" || value == "false" {
                "bool"
            } else {
                ""
            };
            line(out, &format!("{name}.{member}"), &plain(kind, &value));
        }
        return;
    }
    let value = if value.is_empty() { "" } else { &value };
    line(out, name, &plain(entry.info.value_type, value));
}

/// The database's options, one line each.
pub(crate) fn db_lines(options: &DbOptions) -> Vec<String> {
    let mut out = Vec::new();
    for e in DbOptions::entries() {
        entry(&mut out, options, e);
    }
    out
}

/// A family's options, one line each, with a title before them.
pub(crate) fn family_lines(name: &str, options: &FamilyOptions) -> Vec<String> {
    let mut out = vec![format!(
        "--------------- Options for column family [{name}]:"
    )];
    for e in FamilyOptions::entries() {
        entry(&mut out, options, e);
    }
    out.push("           table_factory options: ".to_owned());
    for e in super::TableSettings::entries() {
        out.push(format!(
            "  {}: {}",
            e.info.name,
            plain(e.info.value_type, &(e.get)(&options.table))
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_ones_that_tools_look_for() {
        let db = db_lines(&DbOptions::default());
        let family = family_lines("default", &FamilyOptions::default());
        let has = |lines: &[String], text: &str| lines.iter().any(|l| l.trim_start() == text);
        assert!(has(&db, "Options.create_if_missing: 0"), "{db:#?}");
        assert!(has(&db, "Options.max_open_files: -1"), "{db:#?}");
        assert!(
            has(&family, "Options.write_buffer_size: 67108864"),
            "{family:#?}"
        );
        assert!(has(&family, "Options.num_levels: 7"), "{family:#?}");
        assert!(has(&family, "block_size: 4096"), "{family:#?}");
        assert!(
            family
                .iter()
                .any(|l| l.contains("Options.compression_opts.window_bits: -14")),
            "{family:#?}"
        );
        assert_eq!(db.len(), {
            let mut names: Vec<_> = db.iter().collect();
            names.sort();
            names.dedup();
            names.len()
        });
        assert!(family[0].contains("[default]"));
    }

    #[test]
    fn values_are_plain() {
        assert_eq!(plain("bool", "true"), "1");
        assert_eq!(plain("String", "true"), "true");
        assert_eq!(plain("", "kLZ4Compression"), "LZ4");
        assert_eq!(plain("", "kSnappyCompression"), "Snappy");
        assert_eq!(plain("", "kNoCompression"), "NoCompression");
        assert_eq!(plain("", "kCompactionStyleLevel"), "kCompactionStyleLevel");
    }
}
