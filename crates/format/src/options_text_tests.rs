//! Tests of the OPTIONS grammar.

use super::*;
use proptest::prelude::*;

const FILE: &str = "# comment\n[Version]\n  rocksdb_version=7.8.3 # trailing\n\n[DBOptions]\n\
    wal_dir=/a\\#b\n[CFOptions \"a\\:b\"]\n  compression_opts={level=1;dict={bytes=2;x=;};}\n";

#[test]
fn sections_statements_and_comments() {
    let text = OptionsText::parse(FILE).expect("well formed");
    assert_eq!(text.sections.len(), 3);
    assert_eq!(text.sections[0].get("rocksdb_version"), Some("7.8.3"));
    assert_eq!(text.sections[1].get("wal_dir"), Some("/a\\#b"));
    let family = text.section("CFOptions", Some("a:b")).expect("the family");
    assert_eq!(family.line, 7);
    let pairs = parse_pairs(family.get("compression_opts").expect("set")).expect("nested");
    assert_eq!(pairs[0], ("level".to_owned(), "1".to_owned()));
    assert_eq!(
        parse_pairs(&pairs[1].1).expect("nested")[1],
        ("x".to_owned(), String::new())
    );
    let again = OptionsText::parse(&text.to_string()).expect("own text");
    for (a, b) in text.sections.iter().zip(&again.sections) {
        assert_eq!(
            (&a.title, &a.argument, &a.statements),
            (&b.title, &b.argument, &b.statements)
        );
    }
}

#[test]
fn errors_name_the_line() {
    for (text, line) in [
        ("a=1", 1),
        ("[A]\n\nb", 3),
        ("[A]\n=1", 2),
        ("[A", 1),
        ("[A \"x]", 1),
        ("[]", 1),
    ] {
        let e = OptionsText::parse(text).expect_err(text);
        assert!(e.message().contains(&format!("at line {line})")), "{e}");
    }
}

#[test]
fn nested_values() {
    let pair = |n: &str, v: &str| (n.to_owned(), v.to_owned());
    assert_eq!(
        parse_pairs("{{a=1; b = {c=2} ;}}").expect("ok"),
        [pair("a", "1"), pair("b", "c=2")]
    );
    assert_eq!(parse_pairs("").expect("ok"), []);
    assert_eq!(
        parse_pairs("a=;b=x").expect("ok"),
        [pair("a", ""), pair("b", "x")]
    );
    assert_eq!(parse_pairs("a=b=c").expect("ok"), [pair("a", "b=c")]);
    for bad in ["a", "a={b", "=1", "a={b}c;d=1", "{a}=1", "a;b=1", "a=1;b"] {
        assert!(parse_pairs(bad).is_err(), "{bad}");
    }
    assert!(parse_pairs(&format!("a={}", "{".repeat(100_000))).is_err());
    assert_eq!(
        split_list("a:{b:c}: d", ':').expect("ok"),
        ["a", "b:c", "d"]
    );
    assert_eq!(
        print_pairs(&[("a", "1"), ("b", "{c=2;}")]),
        "{a=1;b={c=2;};}"
    );
    assert_eq!(strip_braces("{a}:{b}"), "{a}:{b}");
}

proptest! {
    #[test]
    fn escapes_round_trip(s in "[ -~\\n\\r]{0,40}") {
        let escaped = escape(&s);
        prop_assert!(!escaped.contains(['\n', '\r']));
        prop_assert_eq!(unescape(&escaped), s);
    }

    #[test]
    fn hostile_text_never_panics(s in any::<String>(), t in "[\\[\\]{}=;\"#\\\\a\\n é]{0,60}") {
        for text in [&s, &t] {
            let _ = OptionsText::parse(text);
            let _ = parse_pairs(text);
            let _ = split_list(text, ':');
            let _ = unescape(text);
        }
    }
}
