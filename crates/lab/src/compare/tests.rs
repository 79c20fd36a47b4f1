//! The statistics of paired ratios.

use super::*;

#[test]
fn the_median_and_its_interval() {
    let ratio = Ratio::of(&[1.9, 2.0, 2.1, 2.0, 1.95, 2.05, 2.0, 1.98, 2.02, 2.0]).expect("ratios");
    assert_eq!((ratio.median, ratio.min, ratio.max), (2.0, 1.9, 2.1));
    assert!(ratio.low >= 1.9 && ratio.low <= 2.0 && ratio.high >= 2.0 && ratio.high <= 2.1);
    assert_eq!(ratio.verdict(), "win");
    assert!(Ratio::of(&[]).is_none());
}

#[test]
fn noise_is_neither_win_nor_loss() {
    assert_eq!(
        Ratio::of(&[0.8, 1.3, 1.2, 0.9]).expect("ratios").verdict(),
        "even"
    );
    assert_eq!(
        Ratio::of(&[1.01, 1.02, 1.02]).expect("ratios").verdict(),
        "even"
    );
    assert_eq!(
        Ratio::of(&[0.5, 0.52, 0.51]).expect("ratios").verdict(),
        "loss"
    );
}
