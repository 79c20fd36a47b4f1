//! The generators against `db_bench`'s layout and against their own promises.

use super::*;

#[test]
fn keys_are_eight_bytes_big_endian_then_zeros() {
    let mut maker = KeyFormatter::new(20);
    let mut expected = vec![0, 0, 0, 0, 0, 1, 0xe2, 0x40];
    expected.extend_from_slice(&[b'0'; 12]);
    assert_eq!(maker.key(123_456), expected.as_slice());
    assert_eq!(&maker.key(0)[..9], b"\0\0\0\0\0\0\0\x000");
}

#[test]
fn short_keys_keep_the_low_bytes() {
    assert_eq!(KeyFormatter::new(4).key(0x0102_0304_0506), [3, 4, 5, 6]);
}

#[test]
fn prefix_comes_first() {
    let mut maker = KeyFormatter::with_prefix(20, 10, 10, 100);
    // 10 prefixes: 57 % 10 = 7, padded with '0' to 10 bytes, then the number.
    let mut expected = vec![0, 0, 0, 0, 0, 0, 0, 7, b'0', b'0'];
    expected.extend_from_slice(&57u64.to_be_bytes());
    expected.extend_from_slice(b"00");
    assert_eq!(maker.key(57), expected.as_slice());
}

#[test]
fn values_repeat_fragments_of_the_given_ratio() {
    let maker = ValueSource::new(ValueSizes::Fixed(100), 0.5);
    assert!(maker.data.len() >= VALUE_BUFFER);
    for fragment in maker.data.chunks_exact(100) {
        assert_eq!(fragment[..50], fragment[50..]);
    }
    let third = ValueSource::new(ValueSizes::Fixed(100), 0.3);
    assert_eq!(third.data[..30], third.data[30..60]);
    assert_eq!(third.data[..10], third.data[90..100]);
    assert_ne!(third.data[..30], third.data[100..130]);
}

#[test]
fn values_are_cut_one_after_the_other_and_wrap() {
    let mut maker = ValueSource::new(ValueSizes::Fixed(400), 0.5);
    let data = maker.data.clone();
    for i in 0..data.len() / 400 {
        assert_eq!(maker.value(), &data[i * 400..(i + 1) * 400]);
    }
    assert_eq!(maker.value(), &data[..400]);
}

#[test]
fn large_values_grow_the_buffer() {
    let mut maker = ValueSource::new(ValueSizes::Fixed(3 << 20), 1.0);
    assert_eq!(maker.value().len(), 3 << 20);
    assert_eq!(maker.value().len(), 3 << 20);
}

#[test]
fn drawn_sizes_stay_within_bounds() {
    for sizes in [ValueSizes::Uniform(10, 50), ValueSizes::Normal(10, 50)] {
        let mut maker = ValueSource::new(sizes, 0.5);
        let seen: Vec<usize> = (0..10_000).map(|_| maker.value().len()).collect();
        assert!(seen.iter().all(|n| (10..=50).contains(n)));
        let mean = seen.iter().sum::<usize>() as f64 / seen.len() as f64;
        assert!((28.0..32.0).contains(&mean), "{mean}");
    }
}

#[test]
fn a_permutation_visits_everything_once() {
    for num in [1, 2, 3, 1000, 4097] {
        let order = Permutation::new(num, 7);
        let mut seen: Vec<u64> = (0..num).map(|i| order.at(i)).collect();
        if num >= 1000 {
            assert!(seen.windows(2).filter(|w| w[1] == w[0] + 1).count() < 20);
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..num).collect::<Vec<_>>());
    }
}

#[test]
fn a_budget_counts_operations_or_time() {
    let mut budget = Budget::new(Duration::ZERO, 10, 1000);
    assert_eq!((0..100).take_while(|_| budget.more(1)).count(), 10);
    let start = Instant::now();
    let mut timed = Budget::new(Duration::from_millis(20), 1, 10);
    let mut ops = 0u64;
    while timed.more(1) {
        ops += 1;
    }
    assert!(ops > 1 && start.elapsed() >= Duration::from_millis(20));
}

#[test]
fn a_pacer_keeps_the_rate() {
    let start = Instant::now();
    let mut pacer = Pacer::new(1_000_000.0).expect("a rate was given");
    for _ in 0..100 {
        pacer.spend(500);
    }
    // 50,000 units at a million a second; at most one millisecond of credit is left unslept.
    assert!(
        start.elapsed() >= Duration::from_millis(48),
        "{:?}",
        start.elapsed()
    );
    assert!(Pacer::new(0.0).is_none());
}

#[test]
fn a_pacer_of_bursts_rests_between_them() {
    let ms = Duration::from_millis;
    let start = Instant::now();
    let mut pacer = Pacer::bursts(ms(30), ms(50));
    assert!(pacer.late().is_none());
    let mut rests = Vec::new();
    while rests.len() < 2 {
        let before = Instant::now();
        if pacer.spend(1) {
            rests.push(before.elapsed());
            // A turn begins where the last one ended, however long an operation took.
            std::thread::sleep(ms(10));
        }
    }
    assert!(start.elapsed() >= ms(160), "two turns");
    assert!(rests.iter().all(|rest| *rest >= ms(25)), "{rests:?}");
}

#[test]
fn a_late_timer_is_not_the_operations() {
    let mut pacer = RatePacer::new(1_000.0, None);
    assert!(pacer.spend(5), "five milliseconds ahead");
    assert!(pacer.overslept > 0.0);
    let late = pacer.late().as_nanos() as f64;
    let whole = pacer.start.elapsed().as_nanos() as f64 - pacer.owed;
    assert!(late <= whole - pacer.overslept, "{late} of {whole}");
    // The operation takes long: what comes after it is late.
    std::thread::sleep(Duration::from_millis(20));
    assert!(pacer.late() >= Duration::from_millis(20));
}

#[test]
fn random_numbers_follow_from_the_seed_and_cover_the_range() {
    let (mut a, mut b) = (Rng::new(5), Rng::new(5));
    assert!((0..100).all(|_| a.next_u64() == b.next_u64()));
    let mut hits = [0u32; 10];
    for _ in 0..10_000 {
        hits[a.below(10) as usize] += 1;
    }
    assert!(hits.iter().all(|&n| (850..1150).contains(&n)), "{hits:?}");
}
