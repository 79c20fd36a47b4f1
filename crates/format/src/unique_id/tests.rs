//! The id of a known file, and the session id's digits.

use super::*;
use proptest::prelude::*;

const DB: &str = "f5a8ca0f-0c3f-4d3b-9c44-a1f4e0e3d2b1";
const SESSION: &str = "ABCDEFGH0123456789XY";

#[test]
fn a_file_of_rocksdb_has_the_id_in_its_manifest() {
    let id = UniqueId::from_identity(
        "80f24f9c-5fcd-4e96-8e09-765f2d746bf6",
        "KU86F8KY8GG2YRV3W7CN",
        15,
    );
    assert_eq!(
        id,
        Some(UniqueId([0x8f72_8b8c_3c8a_dc37, 0xcc75_a6e0_327c_2835]))
    );
}

#[test]
fn identities_need_all_three_parts() {
    let id = UniqueId::from_identity(DB, SESSION, 12).unwrap();
    assert!(!id.is_none());
    assert_eq!(UniqueId::from_bytes(id.to_bytes()), id);
    assert_eq!(id.to_bytes()[..8], id.0[0].to_le_bytes());
    assert_eq!(UniqueId::from_identity_forced(DB, SESSION, 12), id);
    let next = UniqueId::from_identity(DB, SESSION, 13).unwrap();
    assert_eq!((next.0[0], next.0[1] ^ id.0[1]), (id.0[0], 12 ^ 13));
    for (db, session, number) in [
        ("", SESSION, 12),
        (DB, "", 12),
        (DB, SESSION, 0),
        (DB, "short", 1),
        (DB, "ABCDEFGH-123456789XY", 1),
    ] {
        assert_eq!(UniqueId::from_identity(db, session, number), None);
        assert!(!UniqueId::from_identity_forced(db, session, number).is_none());
    }
}

#[test]
fn session_ids_split_at_twelve_digits() {
    assert_eq!(
        decode_session_id("0000000100000000000Z"),
        Some((0, 35 | 1 << 62))
    );
    assert_eq!(
        decode_session_id("0000000500000000000Z"),
        Some((1, 35 | 1 << 62))
    );
    assert_eq!(
        decode_session_id("00000001000000000000")
            .map(|s| encode_session_id(s.0, s.1))
            .as_deref(),
        Some("00000001000000000000")
    );
}

proptest! {
    #[test]
    fn session_ids_round_trip(upper in 0u64..1 << 39, lower: u64) {
        // Twelve base-36 digits hold just over 62 bits, eight just over 41.
        let text = encode_session_id(upper % (1 << 38), lower);
        prop_assert_eq!(text.len(), 20);
        prop_assert_eq!(decode_session_id(&text), Some((upper % (1 << 38), lower)));
    }

    #[test]
    fn any_text_is_safe(session in ".{0,30}") {
        decode_session_id(&session);
    }
}
