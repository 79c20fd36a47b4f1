//! Keys of logs whose family was opened without its timestamps.

use super::*;

fn put(key: &[u8]) -> Record<'_> {
    Record::Put {
        family: FamilyId(3),
        key,
        value: b"v",
    }
}

#[test]
fn timestamps_are_taken_off_every_key_of_a_record() -> Result<()> {
    let family = FamilyId(3);
    assert_eq!(without_timestamps(put(b"k12345678"), 8)?, put(b"k"));
    assert_eq!(without_timestamps(put(b"12345678"), 8)?, put(b""));
    let range = Record::DeleteRange {
        family,
        begin: b"a12345678",
        end: b"b12345678",
    };
    let bare = Record::DeleteRange {
        family,
        begin: b"a",
        end: b"b",
    };
    assert_eq!(without_timestamps(range, 8)?, bare);
    Ok(())
}

#[test]
fn a_key_shorter_than_its_timestamp_is_corruption() {
    let error = without_timestamps(put(b"1234567"), 8).expect_err("seven bytes");
    assert_eq!(error.kind(), esker_status::ErrorKind::Corruption);
}
