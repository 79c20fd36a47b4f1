//! The tables that others published, to the digit. Sources: `docs/lab-workloads.md`.

use super::amplification::{BTree, Tree, comparisons, leveled_n_fanouts, leveled_n_table};
use super::outsourced::{self, Spread, costs};
use super::scalability::{fit, student_quantile};

/// "Write vs space amplification for an LSM and index+log", Small Datum, 2019-10-23. The post has
/// 1.24 for the write-amp at 20; its own formula, 100/(100-20), gives 1.25.
#[test]
fn index_and_log_as_published() {
    let published = "90 10 1.11 90 10, 80 5 1.25 80 20, 70 3.33 1.43 70 30, 60 2.5 1.67 60 40, \
                     50 2 2 50 50, 40 1.67 2.5 40 60, 30 1.43 3.33 30 70, 20 1.25 5 20 80, \
                     10 1.11 10 10 90";
    let table = outsourced::log_table();
    let mut seen = Vec::new();
    for row in &table.rows {
        let plain = |i: usize| {
            let text = row[i].text();
            if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.').to_string()
            } else {
                text
            }
        };
        seen.push([0, 2, 3, 4, 5].map(plain).join(" "));
    }
    assert_eq!(seen.join(", "), published);
}

#[test]
fn space_and_writes_share_a_hundred_percent() {
    for g in 1..100 {
        let g = f64::from(g);
        let sum = 100.0 / outsourced::space_amp(g) + 100.0 / outsourced::write_amp(g);
        assert!((sum - 100.0).abs() < 1e-9);
    }
}

/// The formulas of a store that compresses outside the engine, at r = 0.5.
#[test]
fn outsourced_compression() {
    let table = outsourced::table(0.5);
    assert_eq!(
        table.find("10").unwrap().join(" "),
        "10 10.00 1.11 0.56 5.00 2.50"
    );
    assert_eq!(
        table.find("50").unwrap().join(" "),
        "50 2.00 2.00 1.00 1.00 0.50"
    );
    assert_eq!(
        table.find("80").unwrap().join(" "),
        "80 1.25 5.00 2.50 0.62 0.31"
    );
    assert_eq!(
        costs(25.0, 0.4),
        outsourced::Costs {
            s: 0.4 * 100.0 / 75.0,
            w1: 1.6,
            w2: 0.8
        }
    );
}

#[test]
fn a_spread_costs_more_than_its_mean() {
    let fixed = outsourced::spread_table(&Spread::Fixed(30.0), &Spread::Fixed(0.5)).unwrap();
    assert_eq!(
        fixed.find("w1").unwrap()[1..].join(" "),
        "1.667 1.667 1.667 1.667"
    );
    let g = Spread::parse("uniform:10:50").unwrap();
    let wide = outsourced::spread_table(&g, &Spread::Fixed(0.5)).unwrap();
    // The mean of 50/g over 10 to 50 is 50 ln 5 / 40.
    let exact = 50.0 * 5f64.ln() / 40.0;
    assert_eq!(wide.find("w1").unwrap()[1], format!("{exact:.3}"));
    assert!(exact > 50.0 / 30.0);
    let samples = Spread::parse("samples:3:1:2").unwrap();
    assert_eq!(
        [0.0, 0.5, 1.0].map(|p| samples.quantile(p)),
        [1.0, 2.0, 3.0]
    );
    let triangle = Spread::parse("triangle:0:1:4").unwrap();
    assert_eq!(
        [0.0, 0.25, 1.0].map(|p| triangle.quantile(p)),
        [0.0, 1.0, 4.0]
    );
    for bad in ["uniform:2:1", "uniform:1", "what", "", "samples"] {
        assert!(Spread::parse(bad).is_err(), "{bad}");
    }
    assert!(outsourced::spread_table(&Spread::Fixed(0.0), &Spread::Fixed(0.5)).is_err());
    assert!(outsourced::spread_table(&Spread::Fixed(100.0), &Spread::Fixed(0.5)).is_err());
    assert!(outsourced::spread_table(&Spread::Fixed(50.0), &Spread::Fixed(0.0)).is_err());
}

/// "LSM math: how many levels minimizes write amplification?", Small Datum, 2018-12-13: with a
/// total fanout of 1024, ln is 6.93 and 7 levels write least, with a fanout near e.
#[test]
fn seven_levels_for_a_fanout_of_1024() {
    assert_eq!(format!("{:.2}", 1024f64.ln()), "6.93");
    assert_eq!(Tree::best_levels(1024.0), 7);
    let table = Tree::table(1024.0, 1.0, 10);
    let column = |levels: &str| table.find(levels).unwrap()[1..4].join(" ");
    assert_eq!(column("1"), "1024.00 1024.00 1.00");
    assert_eq!(column("2"), "32.00 64.00 1.03");
    assert_eq!(column("5"), "4.00 20.00 1.25");
    assert_eq!(column("6"), "3.17 19.05 1.31");
    assert_eq!(column("7"), "2.69 18.84 1.37");
    assert_eq!(column("10"), "2.00 20.00 1.50");
    let least = (1..=20).min_by(|&a, &b| {
        let at = |levels| {
            Tree {
                total_fanout: 1024.0,
                levels,
                efficiency: 1.0,
            }
            .leveled_write()
        };
        at(a).total_cmp(&at(b))
    });
    assert_eq!(least, Some(7));
    let usual = Tree {
        total_fanout: 1000.0,
        levels: 3,
        efficiency: 0.8,
    };
    assert_eq!(
        format!("{:.1} {:.1}", usual.leveled_write(), usual.leveled_space()),
        "24.0 1.1"
    );
    assert_eq!(
        format!("{:.0} {:.0}", usual.tiered_write(), usual.tiered_runs()),
        "3 30"
    );
}

/// "Minimizing write amplification in an LSM", Small Datum, 2019-05: fanouts for a total of 1000.
#[test]
fn several_runs_a_level_as_published() {
    let text = |runs: &[f64]| {
        let all = leveled_n_fanouts(1000.0, runs);
        all.iter()
            .map(|f| format!("{f:.1}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    assert_eq!(text(&[1.0, 1.0, 1.0]), "10.0, 10.0, 10.0");
    assert_eq!(text(&[1.0, 2.0, 2.0]), "6.3, 12.6, 12.6");
    assert_eq!(
        leveled_n_table(1000.0, &[1.0, 2.0, 2.0])
            .find("all")
            .unwrap()[3],
        "18.90"
    );
}

/// "Read, write & space amplification - B-Tree vs LSM", Small Datum, 2015-11-24: about 20
/// comparisons with a million keys; pages two thirds full; a page for each row at worst.
#[test]
fn b_trees_as_published() {
    assert_eq!(comparisons(1e6), 20);
    let tree = BTree {
        page: 16384.0,
        row: 128.0,
        changes_per_write: 1.0,
        copies: 1.0,
        log: 0.0,
        fill: 2.0 / 3.0,
    };
    assert_eq!((tree.write(), tree.read()), (128.0, 128.0));
    assert_eq!(format!("{:.1}", tree.space()), "1.5");
    let twice = BTree {
        copies: 2.0,
        changes_per_write: 4.0,
        log: 1.0,
        ..tree
    };
    assert_eq!(twice.write(), 65.0);
    assert_eq!(tree.table().find("64").unwrap()[1], "2.00");
}

/// SPEC SDM91 on a SPARCcenter 2000, October 1994, the example of the R package `usl`.
const SDM91: [(f64, f64); 7] = [
    (1.0, 64.9),
    (18.0, 995.9),
    (36.0, 1652.4),
    (72.0, 1853.2),
    (108.0, 1828.9),
    (144.0, 1775.0),
    (216.0, 1702.2),
];

/// The package publishes alpha 0.0277285 (standard error 0.0091217), beta 0.0001044 (0.0000199) and
/// 36.06 as the load up to which it scales (1/alpha).
#[test]
fn scalability_law_as_published() {
    let fitted = fit(&SDM91, None).unwrap();
    let [alpha, beta, gamma] = fitted.estimate;
    assert_eq!(format!("{alpha:.7} {beta:.7}"), "0.0277285 0.0001044");
    assert_eq!(
        format!("{:.7} {:.7}", fitted.error[0], fitted.error[1]),
        "0.0091217 0.0000199"
    );
    assert_eq!(format!("{gamma:.3}"), "89.995");
    assert_eq!(format!("{:.5}", 1.0 / alpha), "36.06401");
    assert_eq!(fitted.freedom, 4);
    assert_eq!(format!("{:.1}", fitted.peak().unwrap()), "96.5");
    // Half widths are 2.776 standard errors with 4 degrees of freedom.
    assert_eq!(
        format!("{:.3}", fitted.half_width[0] / fitted.error[0]),
        "2.776"
    );
    assert!(fit(&SDM91[..3], None).is_err());
    assert!(fit(&[(1.0, 1.0), (2.0, 0.0), (3.0, 1.0), (4.0, 1.0)], None).is_err());
}

#[test]
fn a_law_is_found_again() {
    let law = [0.05, 0.002, 1000.0];
    let points: Vec<(f64, f64)> = (1..=16)
        .map(|n| {
            let n = f64::from(n);
            (
                n,
                1000.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.002 * n * (n - 1.0)),
            )
        })
        .collect();
    let fitted = fit(&points, None).unwrap();
    for (found, wanted) in fitted.estimate.iter().zip(law) {
        assert!(
            (found - wanted).abs() < 1e-6 * wanted,
            "{found} is not {wanted}"
        );
    }
    let fixed = fit(&points, Some(1000.0)).unwrap();
    assert_eq!(fixed.error[2], 0.0);
    assert!((fixed.estimate[0] - 0.05).abs() < 1e-7);
    let lines = fitted.table(&points).rows.len();
    assert_eq!(lines, 3 + 2 + points.len());
}

/// Two-sided 95 % of Student's distribution, as every table has it.
#[test]
fn students_table() {
    for (freedom, wanted) in [
        (1.0, 12.706),
        (2.0, 4.303),
        (4.0, 2.776),
        (10.0, 2.228),
        (30.0, 2.042),
    ] {
        let found = student_quantile(0.975, freedom);
        assert_eq!(format!("{found:.3}"), format!("{wanted:.3}"), "{freedom}");
    }
}
