//! The universal scalability law (Gunther), fitted to throughput by threads.
//!
//! X(N) = gamma N / (1 + alpha (N-1) + beta N (N-1)): gamma is the throughput of one thread, alpha
//! what is serial, beta what threads spend on agreeing with each other. The fit minimises the
//! squares of the differences of throughput (Levenberg and Marquardt). Standard errors come from
//! the curvature at the minimum, intervals from Student's distribution.

use super::table::{Cell, Table};
use crate::{Failure, Result};

/// A fitted law.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedLaw {
    /// alpha, beta, gamma.
    pub estimate: [f64; 3],
    /// Their standard errors; 0 for one that was fixed.
    pub error: [f64; 3],
    /// Half the width of the 95 % interval of each.
    pub half_width: [f64; 3],
    /// Standard deviation of what is left over.
    pub residual: f64,
    /// Points less parameters.
    pub freedom: usize,
}

const NAMES: [&str; 3] = ["alpha", "beta", "gamma"];

fn denominator(p: &[f64; 3], n: f64) -> f64 {
    1.0 + p[0] * (n - 1.0) + p[1] * n * (n - 1.0)
}

fn law(p: &[f64; 3], n: f64) -> f64 {
    p[2] * n / denominator(p, n)
}

/// Derivatives of the law by its parameters.
fn slope(p: &[f64; 3], n: f64) -> [f64; 3] {
    let (d, x) = (denominator(p, n), law(p, n));
    [-x * (n - 1.0) / d, -x * n * (n - 1.0) / d, n / d]
}

fn squares(p: &[f64; 3], points: &[(f64, f64)]) -> f64 {
    points.iter().map(|&(n, x)| (x - law(p, n)).powi(2)).sum()
}

/// Solves `a x = b`, or inverts `a` when `b` is the unit matrix: Gauss and Jordan with pivots.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let size = a.len();
    for i in 0..size {
        let pivot = (i..size).max_by(|&x, &y| a[x][i].abs().total_cmp(&a[y][i].abs()))?;
        if a[pivot][i] == 0.0 || !a[pivot][i].is_finite() {
            return None;
        }
        a.swap(i, pivot);
        b.swap(i, pivot);
        let scale = a[i][i];
        a[i].iter_mut()
            .chain(b[i].iter_mut())
            .for_each(|v| *v /= scale);
        for j in (0..size).filter(|&j| j != i) {
            let factor = a[j][i];
            let (row_a, row_b) = (a[i].clone(), b[i].clone());
            a[j].iter_mut()
                .zip(row_a)
                .for_each(|(v, w)| *v -= factor * w);
            b[j].iter_mut()
                .zip(row_b)
                .for_each(|(v, w)| *v -= factor * w);
        }
    }
    Some(b)
}

/// The curvature of the squares over the free parameters, and the step towards the data.
fn normal(p: &[f64; 3], free: &[usize], points: &[(f64, f64)]) -> (Vec<Vec<f64>>, Vec<Vec<f64>>) {
    let k = free.len();
    let (mut curve, mut pull) = (vec![vec![0.0; k]; k], vec![vec![0.0]; k]);
    for &(n, x) in points {
        let (s, left) = (slope(p, n), x - law(p, n));
        for (i, &a) in free.iter().enumerate() {
            pull[i][0] += s[a] * left;
            for (j, &b) in free.iter().enumerate() {
                curve[i][j] += s[a] * s[b];
            }
        }
    }
    (curve, pull)
}

fn descend(mut p: [f64; 3], free: &[usize], points: &[(f64, f64)]) -> [f64; 3] {
    let (mut damping, mut least) = (1e-3, squares(&p, points));
    for _ in 0..500 {
        let (mut curve, pull) = normal(&p, free, points);
        for (i, row) in curve.iter_mut().enumerate() {
            row[i] *= 1.0 + damping;
        }
        let Some(step) = solve(curve, pull) else {
            break;
        };
        let mut next = p;
        for (i, &a) in free.iter().enumerate() {
            next[a] += step[i][0];
        }
        let now = squares(&next, points);
        if now.is_finite() && now <= least {
            let settled = (least - now) <= 1e-15 * least;
            (p, least) = (next, now);
            damping = (damping / 10.0).max(1e-12);
            if settled {
                break;
            }
        } else if damping > 1e12 {
            break;
        } else {
            damping *= 10.0;
        }
    }
    p
}

/// Fits the law to pairs of threads and throughput. `gamma` fixes the throughput of one thread.
///
/// # Errors
/// Fewer points than parameters and one more, or points that no law passes near.
pub fn fit(points: &[(f64, f64)], gamma: Option<f64>) -> Result<FittedLaw> {
    let free: &[usize] = if gamma.is_some() { &[0, 1] } else { &[0, 1, 2] };
    if points.len() <= free.len() {
        return Err(Failure::new(format!(
            "the law has {} parameters, so it takes {} points at least",
            free.len(),
            free.len() + 1
        )));
    }
    if points
        .iter()
        .any(|&(n, x)| n < 1.0 || x <= 0.0 || !n.is_finite() || !x.is_finite())
    {
        return Err(Failure::new(
            "threads must be 1 or more, and throughput above 0",
        ));
    }
    let guess = points.iter().map(|&(n, x)| x / n).fold(0.0, f64::max);
    let p = descend([0.02, 1e-4, gamma.unwrap_or(guess)], free, points);
    let freedom = points.len() - free.len();
    let variance = squares(&p, points) / freedom as f64;
    let k = free.len();
    let unit = (0..k)
        .map(|i| (0..k).map(|j| f64::from(i == j)).collect())
        .collect();
    let inverse = solve(normal(&p, free, points).0, unit)
        .ok_or_else(|| Failure::new("these points do not determine the law"))?;
    let t = student_quantile(0.975, freedom as f64);
    let (mut error, mut half_width) = ([0.0; 3], [0.0; 3]);
    for (i, &a) in free.iter().enumerate() {
        error[a] = (variance * inverse[i][i]).sqrt();
        half_width[a] = t * error[a];
    }
    Ok(FittedLaw {
        estimate: p,
        error,
        half_width,
        residual: variance.sqrt(),
        freedom,
    })
}

impl FittedLaw {
    /// The throughput that the law predicts at `n` threads.
    pub fn at(&self, n: f64) -> f64 {
        law(&self.estimate, n)
    }

    /// Threads of the highest throughput: sqrt((1-alpha)/beta); `None` when it never falls.
    pub fn peak(&self) -> Option<f64> {
        let [alpha, beta, _] = self.estimate;
        (beta > 0.0 && alpha < 1.0).then(|| ((1.0 - alpha) / beta).sqrt())
    }

    /// Parameters with intervals, then the points beside what the law says.
    pub fn table(&self, points: &[(f64, f64)]) -> Table {
        let formulas = [
            "X(N) = gamma N / (1 + alpha (N-1) + beta N (N-1))",
            "alpha = serial part, beta = cost of agreement, gamma = throughput of one thread",
            "peak at N = sqrt((1-alpha)/beta); least squares; intervals of 95 %",
        ];
        let columns = ["what", "value", "std_error", "low", "high"];
        let mut table = Table::new("Universal scalability law", &formulas, &columns);
        for (i, name) in NAMES.iter().enumerate() {
            let (value, half) = (self.estimate[i], self.half_width[i]);
            table.row(vec![
                (*name).into(),
                Cell::Number(value, 7),
                Cell::Number(self.error[i], 7),
                Cell::Number(value - half, 7),
                Cell::Number(value + half, 7),
            ]);
        }
        let blank = || Cell::from("");
        if let Some(peak) = self.peak() {
            let value = Cell::Number(peak, 1);
            table.row(vec![
                "peak_threads".into(),
                value,
                blank(),
                blank(),
                blank(),
            ]);
            let value = Cell::Number(self.at(peak), 1);
            table.row(vec![
                "peak_throughput".into(),
                value,
                blank(),
                blank(),
                blank(),
            ]);
        }
        for &(n, x) in points {
            table.row(vec![
                format!("X({n}) measured, law").into(),
                Cell::Number(x, 1),
                blank(),
                Cell::Number(self.at(n), 1),
                blank(),
            ]);
        }
        table
    }
}

/// The logarithm of the gamma function (Lanczos).
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.001_208_650_973_866_179,
        -0.000_005_395_239_384_953,
    ];
    let shifted = x + 5.5;
    let scale = shifted - (x + 0.5) * shifted.ln();
    let series = TERMS
        .iter()
        .enumerate()
        .fold(1.000_000_000_190_015, |sum, (i, c)| {
            sum + c / (x + 1.0 + i as f64)
        });
    (2.506_628_274_631_000_5 * series / x).ln() - scale
}

/// The regularised incomplete beta function by its continued fraction.
fn beta_part(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_part(1.0 - x, b, a);
    }
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp() / a;
    let (mut f, mut c, mut d) = (1.0, 1.0, 0.0);
    for i in 0..300 {
        let m = f64::from(i / 2);
        let step = match i {
            0 => 1.0,
            i if i % 2 == 0 => m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            _ => -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        };
        d = 1.0 / (1.0 + step * d);
        c = 1.0 + step / c;
        f *= c * d;
        if (1.0 - c * d).abs() < 1e-12 {
            break;
        }
    }
    front * (f - 1.0)
}

/// Returns the value below which the part `p`, above one half, of Student's distribution lies.
pub fn student_quantile(p: f64, freedom: f64) -> f64 {
    let below = |t: f64| 1.0 - 0.5 * beta_part(freedom / (freedom + t * t), freedom / 2.0, 0.5);
    let (mut low, mut high) = (0.0, 1.0);
    while below(high) < p && high < 1e9 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if below(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}
