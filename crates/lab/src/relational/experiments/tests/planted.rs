//! LinkBench on a store that loses some of its writes: the run is refused.

use super::*;
use crate::relational::embedded::{self, EskerRows};
use crate::relational::encode::space;
use crate::relational::engine::{Access, Outcome as Done};
use crate::relational::kv::{Pairs, PairsBody, PairsEngine, PairsSession, VisitPair};
use crate::relational::linkbench::{COUNTS, LINKS};

/// A store that loses a write of one key in fifty below a prefix.
struct Forgetful {
    store: EskerRows,
    prefix: [u8; 2],
}

impl PairsEngine for Forgetful {
    fn session(&self) -> Result<Box<dyn PairsSession>> {
        Ok(Box::new(ForgetfulSession {
            session: self.store.session()?,
            prefix: self.prefix,
        }))
    }

    fn settle(&self) -> Result<()> {
        self.store.settle()
    }
}

struct ForgetfulSession {
    session: Box<dyn PairsSession>,
    prefix: [u8; 2],
}

impl PairsSession for ForgetfulSession {
    fn transact(&mut self, access: Access, body: &mut PairsBody<'_>) -> Done<()> {
        let prefix = self.prefix;
        self.session.transact(access, &mut |pairs| {
            body(&mut ForgetfulPairs { pairs, prefix })
        })
    }
}

struct ForgetfulPairs<'a> {
    pairs: &'a mut dyn Pairs,
    prefix: [u8; 2],
}

impl Pairs for ForgetfulPairs<'_> {
    fn get(&mut self, key: &[u8], lock: bool) -> Done<Option<Vec<u8>>> {
        self.pairs.get(key, lock)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Done<()> {
        let sum: u32 = key.iter().map(|byte| u32::from(*byte)).sum();
        if key.starts_with(&self.prefix) && sum.is_multiple_of(50) {
            return Ok(());
        }
        self.pairs.put(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Done<()> {
        self.pairs.delete(key)
    }

    fn scan(
        &mut self,
        low: &[u8],
        high: &[u8],
        descending: bool,
        visit: &mut VisitPair<'_>,
    ) -> Done<()> {
        self.pairs.scan(low, high, descending, visit)
    }
}

/// LinkBench on a store that loses what lies below a prefix; nothing is lost without one.
struct Planted(Option<[u8; 2]>);

impl Experiment for Planted {
    fn name(&self) -> &'static str {
        LINKBENCH.name()
    }

    fn title(&self) -> &'static str {
        LINKBENCH.title()
    }

    fn help(&self) -> &'static str {
        LINKBENCH.help()
    }

    fn about(&self) -> &'static str {
        LINKBENCH.about()
    }

    fn settings(&self) -> &'static [Setting] {
        LINKBENCH.settings()
    }

    fn supports(&self, _: &EngineSpec) -> Result<()> {
        Ok(())
    }

    fn plan(&self, request: &Request) -> Result<Steps> {
        LINKBENCH.plan(request)
    }

    fn describe(&self, _: &Request, engine: &EngineSpec) -> Result<record::Engine> {
        Ok(record::Engine {
            name: engine.text.clone(),
            ..record::Engine::default()
        })
    }

    fn run(&self, request: &Request, run: &mut Run<'_>) -> Result<()> {
        let plan = EnginePlan {
            directory: run.directory.to_path_buf(),
            durability: Durability::Process,
            cache: 16 << 20,
            memtable: 1 << 20,
            sessions: 2,
            schema: (LINKBENCH.schema)(),
        };
        std::fs::create_dir_all(&plan.directory)?;
        let sound = embedded::open(&plan)?;
        let keeper = &mut StepWriter { run, at: 0 };
        match self.0.filter(|_| keeper.run.engine.text == "forgetful") {
            None => (LINKBENCH.run)(request, &sound, keeper),
            Some(prefix) => {
                let engine = sound.over(|store| Forgetful { store, prefix });
                (LINKBENCH.run)(request, &engine, keeper)
            }
        }
    }
}

#[test]
fn a_run_whose_counts_or_index_do_not_fit_is_refused() {
    let planted = [
        (space(LINKS, Some(0)), "index id1_type: "),
        (space(COUNTS, None), "no count, links "),
    ];
    for (prefix, what) in planted {
        let out = tempfile::tempdir().expect("a directory");
        let mut request = tiny(&LINKBENCH, &["sound", "forgetful"]);
        request.scratch = out.path().join("scratch");
        let state = State::open(&out.path().join("out"), &request).expect("a state");
        let record =
            driver::run(&Planted(Some(prefix)), &request, &state, "").expect("one is sound");
        let why = record.engines[1].missing.as_deref().unwrap_or_default();
        assert!(
            why.contains("mismatches, so its figures do not count"),
            "{why}"
        );
        assert!(why.contains(what), "{why}");
        assert!(
            record.results.iter().all(|run| run.engine == 0),
            "no figure is left"
        );
        assert!(record.flags.iter().any(|flag| flag.kind == "failed"));
        assert_eq!(record.engines[0].missing, None);
        // Alone it is an error of the command.
        let request = Request {
            engines: vec![EngineSpec::parse("forgetful")],
            ..request
        };
        let state = State::open(&out.path().join("alone"), &request).expect("a state");
        let refused = driver::run(&Planted(Some(prefix)), &request, &state, "");
        let refused = refused.expect_err("is refused").to_string();
        assert!(
            refused.starts_with("no engine ran: the check at the end found"),
            "{refused}"
        );
    }
}
