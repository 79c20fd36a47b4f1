//! Targets for text: OPTIONS files, option strings, names of files, and the small files CURRENT and
//! IDENTITY.

use super::{SMALL, Seed, Target, same_again};
use crate::mutate;
use esker::options::{LoadRules, OptionSet, TableSettings, load_options_text, print_options_text};
use esker::{DbOptions, FamilyOptions, Options};
use esker_env::{FileSystem, WriteOptions};
use esker_files::{current, identity};
use esker_format::file_name::{self, FileKind, parse_file_name};
use esker_format::filter::FilterPolicy;
use esker_format::options_text::{
    OptionsText, escape, parse_pairs, print_pairs, split_list, strip_braces, unescape,
};
use esker_format::{FileNo, KeyOrder, PrefixExtractor};
use esker_sim::disk::SimFs;
use std::path::Path;

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "options-file",
        about: "OPTIONS files: parsed, loaded under both rules, printed and loaded again",
        run: options_file,
        seeds: option_files,
        change: mutate::text,
        memory: SMALL,
    },
    Target {
        name: "option-string",
        about: "strings of options, nested, and every option by name",
        run: option_string,
        seeds: option_strings,
        change: mutate::text,
        memory: SMALL,
    },
    Target {
        name: "file-name",
        about: "names of files, and of comparators, extractors, filters, merge operators",
        run: names,
        seeds: some_names,
        change: mutate::text,
        memory: SMALL,
    },
    Target {
        name: "small-files",
        about: "CURRENT and IDENTITY",
        run: small_files,
        seeds: some_small_files,
        change: mutate::text,
        memory: SMALL,
    },
];

fn printed() -> String {
    let db = DbOptions::default();
    let family = FamilyOptions::default();
    print_options_text(&db, [("default", &family), ("other \"\\#", &family)])
}

fn option_files() -> Vec<Seed> {
    let short = "[Version]\n  rocksdb_version=7.8.3\n  options_file_version=1.1\n\n[DBOptions]\n  max_open_files=-1\n\n\
                 [CFOptions \"default\"]\n  compression=kZSTD\n  compression_opts={level=3;window_bits=-14;}\n\n\
                 [TableOptions/BlockBasedTable \"default\"]\n  block_size=4096\n  filter_policy=bloomfilter:10:false\n";
    vec![
        ("all", printed().into_bytes()),
        ("short", short.as_bytes().to_vec()),
    ]
}

fn options_file(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(parsed) = OptionsText::parse(&text) {
        let _ = parsed.section("CFOptions", Some("default"));
    }
    for rules in [
        LoadRules::default(),
        LoadRules {
            ignore_unknown: true,
            ..LoadRules::default()
        },
    ] {
        let Ok(loaded) = load_options_text(&text, rules) else {
            continue;
        };
        let again = print_options_text(
            &loaded.db,
            loaded.families.iter().map(|(n, f)| (n.as_str(), f)),
        );
        match load_options_text(&again, LoadRules::default()) {
            Ok(twice) => {
                let names = loaded.families.iter().map(|(n, f)| (n.as_str(), f));
                let twice_names = twice.families.iter().map(|(n, f)| (n.as_str(), f));
                assert_eq!(
                    print_options_text(&loaded.db, names),
                    print_options_text(&twice.db, twice_names),
                    "printed and loaded they are others"
                );
            }
            Err(e) => panic!("what was printed cannot be loaded: {e}"),
        }
    }
}

fn option_strings() -> Vec<Seed> {
    let list = |text: &str| text.as_bytes().to_vec();
    vec![
        (
            "flat",
            list("write_buffer_size=1024;max_write_buffer_number=2;compression=kLZ4Compression"),
        ),
        (
            "nested",
            list(
                "block_based_table_factory={block_size=4k;filter_policy=ribbonfilter:10:0;block_cache=1M};\
                 compression_opts={level=4;max_dict_bytes=100;};compression_per_level=kNoCompression:kZSTD;\
                 compaction_options_universal={size_ratio=1;stop_style=kCompactionStopStyleTotalSize;};\
                 prefix_extractor=rocksdb.FixedPrefix.6;max_bytes_for_level_multiplier_additional=1:2:3",
            ),
        ),
        (
            "odd",
            list("{a={b={c=d}}};e=\\#f;;g=;comparator=rocksdb.ReverseBytewiseComparator"),
        ),
    ]
}

/// Sets `name` to `text`; a value that was taken must be taken again as it is printed.
fn set<S: OptionSet>(name: &str, text: &str) {
    let mut options = S::default();
    if options.set(name, text).is_ok()
        && let Some(printed) = options.get(name)
    {
        let mut again = S::default();
        if again.set(name, &printed).is_ok() {
            assert_eq!(
                again.get(name).as_deref(),
                Some(printed.as_str()),
                "{name}={text}"
            );
        }
    }
}

fn option_string(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    assert_eq!(unescape(&escape(&text)), text, "escaped and back");
    let _ = strip_braces(&text);
    for delimiter in [':', ',', ';'] {
        let _ = split_list(&text, delimiter);
    }
    let Ok(pairs) = parse_pairs(&text) else {
        assert!(Options::new().set_all(&text).is_err());
        return;
    };
    let _ = print_pairs(&pairs);
    let _ = Options::new().set_all(&text);
    // The first names have the values of the input; the others have one each.
    for (name, value) in pairs.iter().take(40) {
        set::<DbOptions>(name, value);
        set::<FamilyOptions>(name, value);
        set::<TableSettings>(name, value);
    }
    let Some((_, value)) = pairs.first() else {
        return;
    };
    let n = input.iter().fold(0usize, |n, b| {
        n.wrapping_mul(31).wrapping_add(usize::from(*b))
    });
    for i in 0..4 {
        let pick = |len: usize| (n + i) % len;
        set::<DbOptions>(
            DbOptions::entries()[pick(DbOptions::entries().len())]
                .info
                .name,
            value,
        );
        set::<FamilyOptions>(
            FamilyOptions::entries()[pick(FamilyOptions::entries().len())]
                .info
                .name,
            value,
        );
        set::<TableSettings>(
            TableSettings::entries()[pick(TableSettings::entries().len())]
                .info
                .name,
            value,
        );
    }
}

fn some_names() -> Vec<Seed> {
    let all = [
        "000012.sst",
        "000012.log",
        "9.blob",
        "MANIFEST-000004",
        "OPTIONS-000005",
        "OPTIONS-000005.dbtmp",
        "LOG.old.1700",
        "18446744073709551615.sst",
        "18446744073709551616.sst",
        "rocksdb.FixedPrefix.18446744073709551615",
        "bloomfilter:1e300:false",
        "ribbonfilter:10:-2147483648",
        "leveldb.BytewiseComparator",
        "stringappend",
    ];
    vec![("names", all.join("\n").into_bytes())]
}

fn names(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for name in text.lines().take(64) {
        if let Some((kind, number)) = parse_file_name(name) {
            let again = match kind {
                FileKind::Wal => Some(file_name::log_name(number)),
                FileKind::Table => Some(file_name::table_name(number)),
                FileKind::Blob => Some(file_name::blob_name(number)),
                FileKind::Manifest => Some(file_name::manifest_name(number)),
                FileKind::Options => Some(file_name::options_name(number)),
                FileKind::Temp => Some(file_name::temp_name(number)),
                _ => None,
            };
            if let Some(again) = again {
                assert_eq!(parse_file_name(&again), Some((kind, number)), "{name}");
            }
            assert!(!name.contains('/'), "{name} leads out of the directory");
        }
        if let Some(extractor) = PrefixExtractor::builtin(name) {
            let _ = extractor.prefix(b"a key");
            assert!(PrefixExtractor::builtin(&extractor.name()).is_some());
        }
        let _ = KeyOrder::builtin(name).map(|o| o.name().to_owned());
        let _ = FilterPolicy::parse(name).map(|p| p.to_string());
        let _ = esker::merge_operator::by_name(name);
    }
}

fn some_small_files() -> Vec<Seed> {
    vec![
        ("current", b"MANIFEST-000004\n".to_vec()),
        (
            "identity",
            b"0a1b2c3d-0000-4000-8000-0123456789ab\n".to_vec(),
        ),
        ("long", vec![b'9'; 5000]),
    ]
}

fn small_files(input: &[u8]) {
    let fs = SimFs::new().without_log();
    let dir = Path::new("/db");
    fs.create_dir_all(dir).expect("an empty disk");
    for name in [file_name::CURRENT, file_name::IDENTITY] {
        let mut file = fs
            .create(&dir.join(name), WriteOptions::default())
            .expect("created");
        file.append(input)
            .and_then(|()| file.close())
            .expect("written");
    }
    if let Ok(number) = current::read(&fs, dir) {
        current::install(&fs, dir, number).expect("installed");
        same_again(&number, current::read(&fs, dir));
    }
    let _ = current::install(&fs, dir, FileNo(u64::MAX));
    if let Ok(id) = identity::read(&fs, dir) {
        identity::write(&fs, dir, &id).expect("written");
        let again = identity::read(&fs, dir).expect("read again");
        assert_eq!(again, id.strip_suffix('\n').unwrap_or(&id));
    }
}
