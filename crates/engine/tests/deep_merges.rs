//! Merges of disjoint ranges between two deep levels run at once, as many as there are slots.

mod common;

use common::until;
use esker::env::Env;
use esker::{CompactionFilter, Db, Decision, FilterValue, Options, Result};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};

/// Holds merges into level 3 at their first entries, and counts them.
#[derive(Default)]
struct Hold {
    /// True while it is on, and how many are held.
    state: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Hold {
    fn set(&self, is_on: bool) {
        self.state.lock().expect("nobody panics").0 = is_on;
        self.changed.notify_all();
    }

    fn held(&self) -> usize {
        self.state.lock().expect("nobody panics").1
    }
}

impl CompactionFilter for Hold {
    fn name(&self) -> &str {
        "Hold"
    }
    fn filter(&self, level: u8, _: &[u8], _: FilterValue<'_>, _: &mut Vec<u8>) -> Decision {
        let mut state = self.state.lock().expect("nobody panics");
        if level == 3 && state.0 {
            state.1 += 1;
            while state.0 {
                state = self.changed.wait(state).expect("nobody panics");
            }
            state.1 -= 1;
        }
        Decision::Keep
    }
}

#[test]
fn each_slot_takes_a_range_of_a_level_that_holds_too_much() -> Result<()> {
    for (jobs, most) in [("2", 1), ("4", 3), ("8", 4)] {
        let hold = Arc::new(Hold::default());
        let mut options = Options::new()
            .create_if_missing(true)
            .env(Env::in_memory())
            .set_all(
                "disable_auto_compactions=true;compression=kNoCompression;num_levels=4;\
                 level_compaction_dynamic_level_bytes=false;max_bytes_for_level_base=100000;\
                 max_bytes_for_level_multiplier=1;target_file_size_base=1000000",
            )?
            .set("max_background_jobs", jobs)?;
        options.family.compaction_filter = Some(Arc::clone(&hold) as Arc<dyn CompactionFilter>);
        let db = Db::open("/db", options)?;
        let family = db.default_family_handle();
        for level in [3, 2] {
            for range in 0..4 {
                for n in 0..100 {
                    db.put(format!("{range}.{n:03}"), vec![level; 4096])?;
                }
                db.flush()?;
                let files = db.live_files_metadata().into_iter();
                let upper = files.filter(|f| f.level == 0);
                let upper: Vec<PathBuf> = upper.map(|f| PathBuf::from(f.name)).collect();
                db.compact_files(&family, &upper, level)?;
            }
        }
        hold.set(true);
        db.set_options(&family, &[("disable_auto_compactions", "false")])?;
        until("all begin", || hold.held() == most);
        assert_eq!(
            db.property("rocksdb.num-running-compactions"),
            Some(most.to_string())
        );
        hold.set(false);
        db.wait_for_compaction()?;
        for range in 0..4 {
            let value = db.get(format!("{range}.050"))?.expect("it was put");
            assert!(value == vec![2; 4096]);
        }
    }
    Ok(())
}
