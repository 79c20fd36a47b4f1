//! The rules that need a picture each: filters, single deletions, preferred sequences, timestamps,
//! bounds, cuts.

mod support;

use esker_format::{InternalKey, KeyOrder, ParsedKey, RawTombstone, Seq, ValueType};
use esker_lsm::compaction_filter::{CompactionFilter, Decision, FilterValue};
use esker_lsm::compaction_stream::{CompactionStream, StreamCounters, StreamOptions};
use esker_lsm::tombstone::{
    ClippedTombstones, CompactionTombstones, DropRules, FilePoints, FragmentedTombstones,
    ReadTombstones,
};
use esker_lsm::visible::{VisibleCursor, VisibleOptions};
use esker_status::Result;
use std::sync::Arc;
use support::VecCursor;

const ORDER: KeyOrder = KeyOrder::Bytewise;

fn cursor(order: &KeyOrder, rows: &[(&str, u64, ValueType, &str)]) -> VecCursor {
    let mut entries: Vec<_> = rows
        .iter()
        .map(|(k, s, t, v)| {
            (
                InternalKey::new(k.as_bytes(), Seq(*s), *t)
                    .as_bytes()
                    .to_vec(),
                v.as_bytes().to_vec(),
            )
        })
        .collect();
    entries.sort_by(|a, b| order.compare_internal(&a.0, &b.0));
    VecCursor::new(order, Arc::new(entries))
}

fn options(snapshots: &[u64], bottommost: bool) -> StreamOptions<'static> {
    let mut o = StreamOptions::new(ORDER);
    o.snapshots = snapshots.iter().map(|s| Seq(*s)).collect();
    o.bottommost = bottommost;
    o.key_not_exists_beyond = Some(Box::new(move |_| bottommost));
    o
}

fn run(
    rows: &[(&str, u64, ValueType, &str)],
    o: StreamOptions<'static>,
) -> Result<(Vec<String>, StreamCounters)> {
    let tombstones = CompactionTombstones::new(&[], &ORDER, &o.snapshots)?;
    let mut s = CompactionStream::new(cursor(&ORDER, rows), tombstones, o)?;
    let mut out = Vec::new();
    s.seek_to_first();
    while s.valid() {
        let key = ParsedKey::parse(s.key())?;
        out.push(format!("{key:?}={}", s.value().escape_ascii()));
        s.next();
    }
    s.status()?;
    Ok((out, *s.counters()))
}

struct ByValue;

impl CompactionFilter for ByValue {
    fn name(&self) -> &str {
        "ByValue"
    }
    fn filter(
        &self,
        _level: u8,
        _key: &[u8],
        value: FilterValue<'_>,
        out: &mut Vec<u8>,
    ) -> Decision {
        match value {
            FilterValue::Value(b"remove") => Decision::Remove,
            FilterValue::Value(b"purge") => Decision::Purge,
            FilterValue::Value(b"change") => {
                out.extend_from_slice(b"changed");
                Decision::ChangeValue
            }
            FilterValue::Value(b"skip") => {
                out.extend_from_slice(b"y");
                Decision::RemoveAndSkipUntil
            }
            _ => Decision::Keep,
        }
    }
}

#[test]
fn filter_decisions() {
    use ValueType::Value;
    let rows = [
        ("a", 9, Value, "keep"),
        ("b", 8, Value, "change"),
        ("c", 7, Value, "remove"),
        ("d", 6, Value, "purge"),
        ("u", 5, Value, "skip"),
        ("v", 4, Value, "passed over"),
        ("y", 3, Value, "last"),
    ];
    let mut o = options(&[], false);
    o.filter = Some(Arc::new(ByValue));
    let (out, counters) = run(&rows, o).expect("runs");
    assert_eq!(
        out,
        [
            "a@9:Value=keep",
            "b@8:Value=changed",
            "c@7:Deletion=",
            "d@6:SingleDeletion=",
            "y@3:Value=last"
        ]
    );
    assert_eq!((counters.num_itered, counters.num_record_drop_user), (7, 2));
    let mut o = options(&[], true);
    o.filter = Some(Arc::new(ByValue));
    let (out, _) = run(&rows, o).expect("runs");
    assert_eq!(
        out,
        ["a@0:Value=keep", "b@0:Value=changed", "y@0:Value=last"]
    );
}

#[test]
fn single_deletions() {
    use ValueType::{Deletion, SingleDeletion, Value};
    let pair = [("a", 9, SingleDeletion, ""), ("a", 5, Value, "v")];
    assert_eq!(run(&pair, options(&[], false)).expect("runs").0, [""; 0]);
    // A snapshot between them keeps both.
    let kept = ["a@9:SingleDeletion=", "a@5:Value=v"];
    assert_eq!(run(&pair, options(&[7], false)).expect("runs").0, kept);
    // A conflict check may ask for the deletion: the value goes, the record stays.
    let mut o = options(&[3], false);
    o.earliest_write_conflict_snapshot = Seq(3);
    assert_eq!(
        run(&pair, o).expect("runs").0,
        ["a@9:SingleDeletion=", "a@5:Value="]
    );
    let mixed = [("a", 9, SingleDeletion, ""), ("a", 5, Deletion, "")];
    assert!(
        run(&mixed, options(&[], false))
            .expect_err("contract")
            .is_corruption()
    );
    let mut o = options(&[], false);
    o.enforce_single_del_contracts = false;
    let (out, counters) = run(&mixed, o).expect("runs");
    assert_eq!(
        (out, counters.num_single_del_mismatch),
        (vec!["a@5:Deletion=".to_string()], 1)
    );
}

#[test]
fn preferred_sequence_settles() {
    let packed = "v\u{3}\0\0\0\0\0\0\0";
    let rows = [("a", 9, ValueType::ValuePreferredSeqno, packed)];
    let mut o = options(&[], false);
    o.key_not_exists_beyond = Some(Box::new(|_| true));
    assert_eq!(run(&rows, o).expect("runs").0, ["a@3:Value=v"]);
    assert!(
        run(&rows, options(&[4], false)).expect("runs").0[0].starts_with("a@9:ValuePreferredSeqno")
    );
}

#[test]
fn operands_without_an_operator_are_an_error() {
    assert!(run(&[("a", 9, ValueType::Merge, "x")], options(&[], true)).is_err());
}

#[test]
fn a_cut_through_a_tombstone_ends_at_the_next_key() {
    let raw = [RawTombstone {
        start: b"b".to_vec(),
        end: b"x".to_vec(),
        seq: Seq(50),
    }];
    let whole = ClippedTombstones::whole(FragmentedTombstones::new(&raw, &ORDER).expect("plain"));
    let mut t = CompactionTombstones::new(&[whole], &ORDER, &[]).expect("plain");
    let key = |k: &[u8], s| InternalKey::new(k, Seq(s), ValueType::Value);
    let points = |a, b| FilePoints {
        smallest: a,
        largest: b,
        smallest_seq: Seq(60),
        largest_seq: Seq(61),
    };
    let mut rules = DropRules {
        bottommost: false,
        range_not_exists_beyond: None,
    };
    let next = key(b"k", 62);
    let first = points(key(b"c", 60), key(b"f", 61));
    let bounds = t
        .finish_file(
            Some(&first),
            Some(next.as_bytes()),
            &mut rules,
            |s, e, q| {
                assert_eq!((s, e, q), (&b"b"[..], &b"k"[..], Seq(50)));
                Ok(())
            },
        )
        .expect("sound")
        .expect("not empty");
    assert_eq!(
        bounds.smallest,
        InternalKey::new(b"b", Seq(50), ValueType::RangeDeletion)
    );
    assert_eq!(bounds.largest, InternalKey::range_end_sentinel(b"k"));
    let bounds = t
        .finish_file(None, None, &mut rules, |_, _, _| Ok(()))
        .expect("sound")
        .expect("the rest");
    assert_eq!(
        bounds.smallest,
        InternalKey::new(b"k", Seq(50), ValueType::RangeDeletion)
    );
    assert_eq!(bounds.largest, InternalKey::range_end_sentinel(b"x"));
}

#[test]
fn bounds_and_prefix_limit_a_walk() {
    use ValueType::Value;
    let rows = [
        ("aa", 1, Value, "1"),
        ("ab", 2, Value, "2"),
        ("ba", 3, Value, "3"),
        ("bb", 4, Value, "4"),
    ];
    let make = |change: &dyn Fn(&mut VisibleOptions)| {
        let mut o = VisibleOptions::new(ORDER, Seq(9));
        change(&mut o);
        let none = ReadTombstones::new(ORDER, Seq(9));
        VisibleCursor::new(cursor(&ORDER, &rows), none, o).expect("sound")
    };
    let mut c = make(&|o| (o.lower, o.upper) = (Some(b"ab".to_vec()), Some(b"bb".to_vec())));
    c.seek(b"a");
    assert_eq!(c.key(), b"ab");
    c.seek_for_prev(b"z");
    assert_eq!(c.key(), b"ba");
    c.next();
    assert!(!c.valid());
    let mut c = make(&|o| {
        o.prefix_same_as_start = true;
        o.prefix = Some(Arc::new(|k: &[u8]| (!k.is_empty()).then_some(1)));
    });
    c.seek(b"ab");
    assert_eq!(c.value(), b"2");
    c.next();
    assert!(!c.valid());
    c.status().expect("an end, not a failure");
}

#[test]
fn timestamps_show_the_newest_at_or_before() {
    let order = KeyOrder::BytewiseU64Ts;
    let row = |k: &str, ts: u8| {
        format!(
            "{k}{}",
            String::from_utf8(vec![ts, 0, 0, 0, 0, 0, 0, 0]).expect("ascii")
        )
    };
    let (a9, a4, b9) = (row("a", 9), row("a", 4), row("b", 9));
    let rows = [
        (a9.as_str(), 9, ValueType::Value, "new"),
        (a4.as_str(), 4, ValueType::Value, "old"),
        (b9.as_str(), 10, ValueType::Value, "b"),
    ];
    let seen = |ts: u64, backward: bool| {
        let mut o = VisibleOptions::new(order.clone(), Seq(20));
        o.read_timestamp = Some(ts.to_le_bytes().to_vec());
        let none = ReadTombstones::new(order.clone(), Seq(20));
        let mut c = VisibleCursor::new(cursor(&order, &rows), none, o).expect("sound");
        if backward {
            c.seek_to_last()
        } else {
            c.seek_to_first()
        }
        let mut out = Vec::new();
        while c.valid() {
            out.push(String::from_utf8([c.key(), b"=", c.value()].concat()).expect("text"));
            if backward { c.prev() } else { c.next() }
        }
        c.status().expect("no errors");
        out
    };
    assert_eq!(seen(9, false), ["a=new", "b=b"]);
    assert_eq!(seen(9, true), ["b=b", "a=new"]);
    assert_eq!(
        (seen(5, false), seen(5, true)),
        (vec!["a=old".to_string()], vec!["a=old".to_string()])
    );
    assert!(seen(3, false).is_empty() && seen(3, true).is_empty());
}
