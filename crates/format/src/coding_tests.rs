//! Round trips and hostile bytes for the primitive encodings.

use super::*;
use proptest::prelude::*;

#[test]
fn boundary_values_have_the_expected_bytes() {
    let cases: &[(u64, &[u8])] = &[
        (0, &[0]),
        (127, &[0x7f]),
        (128, &[0x80, 1]),
        (300, &[0xac, 2]),
        (u64::from(u32::MAX), &[0xff, 0xff, 0xff, 0xff, 0x0f]),
        (
            u64::MAX,
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        ),
    ];
    for (v, bytes) in cases {
        let mut out = Vec::new();
        put_varint64(&mut out, *v);
        assert_eq!(out, *bytes);
        assert_eq!(varint_len(*v), bytes.len());
        assert_eq!(Reader::new(bytes).varint64().expect("well formed"), *v);
    }
}

#[test]
fn overlong_and_truncated_varints_are_refused() {
    assert!(
        Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x1f])
            .varint32()
            .is_err()
    );
    assert!(
        Reader::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 1])
            .varint32()
            .is_err()
    );
    assert!(Reader::new(&[0x80]).varint32().is_err());
    assert!(Reader::new(&[]).varint64().is_err());
    assert!(Reader::new(&[0xff; 11]).varint64().is_err());
}

#[test]
fn a_length_past_the_end_is_refused() {
    let e = Reader::new(&[5, b'a']).lpstr().expect_err("too short");
    assert!(e.is_corruption());
    assert!(
        Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0])
            .lpstr()
            .is_err()
    );
}

proptest! {
    #[test]
    fn integers_round_trip(a: u16, b: u32, c: u64, d: i64) {
        let mut out = Vec::new();
        put_fixed16(&mut out, a);
        put_fixed32(&mut out, b);
        put_fixed64(&mut out, c);
        put_varint32(&mut out, b);
        put_varint64(&mut out, c);
        put_varsigned64(&mut out, d);
        let mut r = Reader::new(&out);
        prop_assert_eq!(r.fixed16().expect("16"), a);
        prop_assert_eq!(r.fixed32().expect("32"), b);
        prop_assert_eq!(r.fixed64().expect("64"), c);
        prop_assert_eq!(r.varint32().expect("v32"), b);
        prop_assert_eq!(r.varint64().expect("v64"), c);
        prop_assert_eq!(r.varsigned64().expect("vs64"), d);
        prop_assert!(r.finish("the integers").is_ok());
    }

    #[test]
    fn strings_round_trip_and_any_prefix_fails(s: Vec<u8>) {
        let mut out = Vec::new();
        put_lpstr(&mut out, &s);
        prop_assert_eq!(Reader::new(&out).lpstr().expect("whole"), &s[..]);
        prop_assert!(Reader::new(&out[..out.len() - 1]).lpstr().is_err());
    }

    #[test]
    fn hostile_bytes_never_panic(bytes: Vec<u8>) {
        let mut r = Reader::new(&bytes);
        while r.varint64().is_ok() {}
        let mut r = Reader::new(&bytes);
        while r.lpstr().is_ok() {}
        let mut r = Reader::new(&bytes);
        while r.varint32().is_ok() {}
    }
}
