//! Golden values of the two on-disk hashes.

use super::*;

#[test]
fn hash64_matches_its_golden_values() {
    let x = |n: usize| vec![b'x'; n];
    let cases: &[(&[u8], u64)] = &[
        (b"", 0x5342_c301_0fe1_dd04),
        (b"a", 0x88d8_68bf_6076_81c7),
        (b"abc", 0xd39e_eb71_bb53_42e8),
        (b"abcd", 0x97a5_ba1d_02e8_378c),
        (b"key000123", 0xbd44_e562_1c0b_5c7b),
        (b"0123456789abcdef", 0x402c_83c1_955d_056d),
        (&x(17), 0x61c6_37ab_957e_33d1),
        (&x(129), 0x47a8_8963_4586_ea83),
        (&x(241), 0x9f0e_6f7c_bbce_9b3d),
        (&x(1025), 0x0aa1_daba_f7cb_9d81),
    ];
    for (data, want) in cases {
        assert_eq!(hash64(data), *want, "length {}", data.len());
    }
}

#[test]
fn hash32_sign_extends_its_tail() {
    assert_eq!(hash32(b"", LEGACY_BLOOM_SEED), 0xbc9f_1d34);
    assert_eq!(hash32(b"abc", LEGACY_BLOOM_SEED), 0x855d_012f);
    assert_eq!(
        hash32(&[0xff, 0xfe, 0xfd], DATA_BLOCK_HASH_SEED),
        0xfc8b_11b5
    );
}

#[test]
fn every_length_hashes_and_differs_from_its_neighbours() {
    let data: Vec<u8> = (0..2100u32)
        .map(|i| (i.wrapping_mul(0x9E37_79B1) >> 24) as u8)
        .collect();
    let hashes: std::collections::HashSet<u64> =
        (0..=data.len()).map(|n| hash64(&data[..n])).collect();
    assert_eq!(hashes.len(), data.len() + 1);
}
