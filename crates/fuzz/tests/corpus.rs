//! Every input of the corpus, and the seeds as our writers make them today; a few more inputs of
//! each target.

use esker_fuzz::drive::{self, Plan};
use esker_fuzz::targets;
use std::time::Duration;

#[test]
fn the_corpus_gets_answers() {
    let (mut inputs, mut bytes) = (0, 0);
    let all = targets::all();
    for target in &all {
        let corpus = drive::corpus(&drive::corpus_dir(), target);
        let mut corpus = corpus.unwrap_or_else(|e| panic!("corpus of {}: {e}", target.name));
        bytes += corpus.iter().map(|(_, b)| b.len()).sum::<usize>();
        let now = (target.seeds)().into_iter();
        corpus.extend(now.map(|(name, seed)| (format!("{name} as made now"), seed)));
        let plan = Plan {
            seed: 1,
            iterations: 20,
            time: Duration::MAX,
        };
        let outcome = drive::run(target, &corpus, plan, |_| ());
        inputs += outcome.inputs;
        if let Some((input, why)) = outcome.failure {
            panic!(
                "{}: {why}\n{} bytes: {:?}",
                target.name,
                input.len(),
                &input[..input.len().min(200)]
            );
        }
    }
    assert!(bytes < 1 << 20, "the corpus has {bytes} bytes");
    println!("fuzz targets: {}, inputs: {inputs}, failures: 0", all.len());
}

#[test]
fn names_are_different() {
    let all = targets::all();
    let names: std::collections::BTreeSet<_> = all.iter().map(|t| t.name).collect();
    assert_eq!(names.len(), all.len());
    for entry in std::fs::read_dir(drive::corpus_dir()).expect("the corpus") {
        let name = entry.expect("an entry").file_name();
        let name = name.to_string_lossy();
        assert!(names.contains(&*name), "corpus/{name} belongs to no target");
    }
}
