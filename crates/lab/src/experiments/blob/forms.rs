//! The forms of an engine: values inline, in blob files, and, where the engine is Esker, medium
//! ones in sorted groups of blob files.

use crate::experiment::plan::EngineSpec;

/// The flag of `esker bench` that makes the difference, as an option of one engine.
const FLAG: &str = "lab.enable_blob_files=";
/// The form, and the value of the flag.
const FORMS: [(&str, bool); 2] = [("inline", false), ("blobs", true)];

/// Options of Esker that keep medium values in groups: those of less than 8 KB, as DiffKV has it.
const TIERS: &str = "min_medium_blob_size=256;min_large_blob_size=8192";
const TIERS_WORD: &str = "tiers";

/// All forms of an engine, or the one that its options name.
pub(super) fn of(spec: EngineSpec) -> Vec<EngineSpec> {
    if value(&spec).is_some() {
        return vec![by_flag(spec)];
    }
    let sign = if spec.text.contains('?') { ';' } else { '?' };
    let form = |(word, is_on): (&str, bool)| EngineSpec {
        text: format!("{}{sign}{FLAG}{is_on}", spec.text),
        label: match spec.label.as_str() {
            "" => String::new(),
            label => format!("{label} {word}"),
        },
    };
    let mut all: Vec<_> = FORMS.map(form).into();
    if spec.kind() == "esker" {
        let mut tiers = form((TIERS_WORD, true));
        tiers.text = format!("{};{TIERS}", tiers.text);
        all.push(tiers);
    }
    all
}

/// The form as a flag, on which the codec of blob files depends, and not as an option.
fn by_flag(spec: EngineSpec) -> EngineSpec {
    let plain = FLAG.trim_start_matches("lab.");
    let part = |part: &str| match part.trim().strip_prefix(plain) {
        Some(value) => format!("{FLAG}{value}"),
        None => part.to_string(),
    };
    let parts: Vec<String> = spec.options().split(';').map(part).collect();
    let name = spec.text.split('?').next().unwrap_or_default();
    EngineSpec {
        text: format!("{name}?{}", parts.join(";")),
        label: spec.label,
    }
}

/// The value of the option `enable_blob_files` of an engine.
fn value(spec: &EngineSpec) -> Option<&str> {
    let parts = spec.options().split(';').rev();
    let mut named = parts.filter_map(|part| {
        let (name, value) = part.split_once('=')?;
        let own = name.trim().trim_start_matches("lab.");
        (own == "enable_blob_files").then_some(value.trim())
    });
    named.next()
}

/// Tells whether an engine writes blob files.
pub(super) fn has_blobs(spec: &EngineSpec) -> bool {
    matches!(value(spec), Some("true" | "1"))
}

/// Tells whether medium values of an engine are in groups.
pub(super) fn has_tiers(spec: &EngineSpec) -> bool {
    has_blobs(spec) && spec.options().contains("min_medium_blob_size=")
}

/// The name with the form behind it.
pub(super) fn named(name: &str, spec: &EngineSpec) -> String {
    let word = if has_tiers(spec) {
        TIERS_WORD
    } else {
        FORMS[usize::from(has_blobs(spec))].0
    };
    if name.ends_with(word) {
        return name.to_string();
    }
    format!("{name} {word}")
}

/// Tells whether an engine is a library with blob files: the other side of the gates.
pub(super) fn is_blob_library(spec: &EngineSpec) -> bool {
    spec.kind() == "lib" && has_blobs(spec)
}

/// The engine that the others are divided by: the first library with blob files, else the first
/// that is not the embedded one, else the first.
pub(super) fn base(engines: &[EngineSpec]) -> usize {
    let library = engines.iter().position(is_blob_library);
    let other = || engines.iter().position(|spec| spec.kind() != "esker");
    library.or_else(other).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(texts: &[&str]) -> Vec<EngineSpec> {
        let all = texts.iter().map(|text| EngineSpec::parse(text));
        all.flat_map(of).collect()
    }

    #[test]
    fn every_engine_has_all_forms_unless_it_names_one() {
        let all = forms(&[
            "esker",
            "stock=lib:/a.so?a=b",
            "bin:/e?c=d;enable_blob_files=true",
        ]);
        let texts: Vec<&str> = all.iter().map(|spec| spec.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "esker?lab.enable_blob_files=false",
                "esker?lab.enable_blob_files=true",
                "esker?lab.enable_blob_files=true;min_medium_blob_size=256;\
                 min_large_blob_size=8192",
                "lib:/a.so?a=b;lab.enable_blob_files=false",
                "lib:/a.so?a=b;lab.enable_blob_files=true",
                "bin:/e?c=d;lab.enable_blob_files=true",
            ]
        );
        let labels: Vec<&str> = all.iter().map(|spec| spec.label.as_str()).collect();
        assert_eq!(labels, ["", "", "", "stock inline", "stock blobs", ""]);
        let again: Vec<EngineSpec> = all.iter().cloned().flat_map(of).collect();
        assert_eq!(again, all, "forms have no forms");
        let blobs: Vec<bool> = all.iter().map(has_blobs).collect();
        assert_eq!(blobs, [false, true, true, false, true, true]);
    }

    #[test]
    fn names_have_the_form_once_and_the_library_with_blobs_is_the_base() {
        let all = forms(&["esker", "lib:/a.so"]);
        assert_eq!(named("Esker", &all[0]), "Esker inline");
        assert_eq!(named("Esker", &all[2]), "Esker tiers");
        assert_eq!(named("RocksDB blobs", &all[4]), "RocksDB blobs");
        assert_eq!(base(&all), 4);
        assert_eq!(base(&all[..2]), 0);
        assert_eq!(base(&all[..4]), 3, "inline, where there is no other");
    }
}
