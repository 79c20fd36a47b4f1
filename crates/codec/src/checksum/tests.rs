//! Golden values and the rules that differ between the kinds.

use super::*;

#[test]
fn crc_and_mask_match_their_golden_values() {
    assert_eq!(crc32c(b"foo"), 0xcfc4_ae1d);
    assert_eq!(mask(crc32c(b"foo")), 0xfebe_8a61);
    assert_eq!(unmask(0xfebe_8a61), 0xcfc4_ae1d);
    assert_eq!(crc32c_extend(crc32c(b"f"), b"oo"), crc32c(b"foo"));
    assert_eq!(
        crc32c_combine(crc32c(b"f"), crc32c(b"oo"), 2),
        crc32c(b"foo")
    );
}

#[test]
fn streamed_kinds_equal_the_checksum_of_the_joined_bytes() {
    let block = b"some block bytes of no special length";
    let joined = [block.as_slice(), &[7]].concat();
    assert_eq!(
        ChecksumType::Crc32c.compute(block, 7),
        mask(crc32c(&joined))
    );
    assert_eq!(
        ChecksumType::XxHash.compute(block, 7),
        XxHash32::oneshot(0, &joined)
    );
    assert_eq!(
        ChecksumType::XxHash64.compute(block, 7),
        XxHash64::oneshot(0, &joined) as u32
    );
    assert_eq!(ChecksumType::None.compute(block, 7), 0);
}

#[test]
fn xxh3_keeps_the_type_byte_apart() {
    let block = b"block";
    assert_eq!(ChecksumType::Xxh3.compute(block, 0), xxh3_64(block) as u32);
    assert_eq!(
        ChecksumType::Xxh3.compute(block, 7),
        xxh3_64(block) as u32 ^ 7u32.wrapping_mul(LAST_BYTE_FACTOR)
    );
    for kind in (0..5).filter_map(ChecksumType::from_u8) {
        assert_eq!(
            kind.compute_whole(b"block\x07"),
            kind.compute(block, 7),
            "{kind:?}"
        );
        assert_eq!(
            ChecksumType::from_option_name(kind.option_name()),
            Some(kind)
        );
    }
}

#[test]
fn context_depends_on_both_halves_of_the_offset() {
    let kind = ChecksumType::Crc32c;
    let plain = kind.compute(b"b", 0);
    assert_eq!(kind.compute_with_context(b"b", 0, 0, 1 << 40), plain);
    let at = |o| {
        kind.compute_with_context(b"b", 0, 0x1234_5678, o)
            .wrapping_sub(plain)
    };
    assert_eq!(at(0), 0x1234_5678);
    assert_eq!(at(5), 0x1234_5678 ^ 5);
    assert_eq!(at((3 << 32) + 5), 0x1234_5678 ^ 8);
}

#[test]
fn xxh3_128_of_nothing_is_the_released_value() {
    assert_eq!(
        xxh3_128_seeded(b"", 0),
        0x99aa_06d3_0147_98d8_6001_c324_468d_497f
    );
}
