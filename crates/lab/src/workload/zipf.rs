//! Zipfian distributions (Gray and others, SIGMOD 1994).

use crate::generate::Rng;

/// A Zipfian distribution over the numbers below a bound, the hottest first.
#[derive(Debug, Clone)]
pub struct Zipf {
    num: u64,
    theta: f64,
    alpha: f64,
    zeta: f64,
    eta: f64,
}

/// From here on the sum of the series is taken as an integral, with an error below one in a
/// million.
const EXACT_TERMS: u64 = 1_000_000;

fn zeta(num: u64, theta: f64) -> f64 {
    let exact = num.min(EXACT_TERMS);
    let sum: f64 = (1..=exact).map(|i| (i as f64).powf(-theta)).sum();
    let integral = |x: f64| x.powf(1.0 - theta) / (1.0 - theta);
    sum + integral(num as f64 + 0.5) - integral(exact as f64 + 0.5)
}

impl Zipf {
    /// Over `num` numbers, with the skew `theta` between 0 and 1.
    pub fn new(num: u64, theta: f64) -> Zipf {
        let zeta_all = zeta(num, theta);
        let part = (2.0 / num as f64).powf(1.0 - theta);
        Zipf {
            num,
            theta,
            alpha: 1.0 / (1.0 - theta),
            zeta: zeta_all,
            eta: (1.0 - part) / (1.0 - zeta(2.min(num), theta) / zeta_all),
        }
    }

    /// A number, 0 most often.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let u = rng.unit();
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5f64.powf(self.theta) {
            return 1.min(self.num - 1);
        }
        let drawn = self.num as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (drawn as u64).min(self.num - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_keys_are_as_hot_as_the_law_says() {
        let (num, theta) = (10_000, 0.99);
        let zipf = Zipf::new(num, theta);
        let mut rng = Rng::new(7);
        let mut counts = vec![0u64; num as usize];
        const DRAWS: u64 = 400_000;
        for _ in 0..DRAWS {
            counts[zipf.draw(&mut rng) as usize] += 1;
        }
        let expected = DRAWS as f64 / zeta(num, theta);
        let near = |count: u64, share: f64| (count as f64 / share - 1.0).abs() < 0.05;
        assert!(near(counts[0], expected), "{} and {expected}", counts[0]);
        assert!(
            near(counts[1], expected * 0.5f64.powf(theta)),
            "{}",
            counts[1]
        );
        let tail: u64 = counts[5000..].iter().sum();
        assert!(tail > DRAWS / 25, "the tail got {tail} of {DRAWS}");
    }

    #[test]
    fn the_long_sum_is_near_the_exact_one() {
        let exact: f64 = (1..=3_000_000u64).map(|i| (i as f64).powf(-0.99)).sum();
        assert!((zeta(3_000_000, 0.99) / exact - 1.0).abs() < 1e-9);
    }
}
