//! Listeners that use the database they are told of: a job waits for its listener, so the listener
//! must not wait for the job.

use esker::observe::{EventListener, FlushInfo, TableFileCreation};
use esker::{Db, ErrorKind, FlushOptions, Options};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Outcomes of the puts that a listener made.
#[derive(Default)]
struct Puts {
    done: AtomicUsize,
    refused: AtomicUsize,
    others: Mutex<Vec<String>>,
}

impl Puts {
    fn put(&self, db: &Db, key: &str) {
        match db.put(key, vec![b'x'; 100]) {
            Ok(()) => self.done.fetch_add(1, Ordering::Relaxed),
            Err(e) if e.kind() == ErrorKind::Incomplete && e.to_string().contains("listener") => {
                self.refused.fetch_add(1, Ordering::Relaxed)
            }
            Err(e) => {
                self.others.lock().expect("whole").push(e.to_string());
                0
            }
        };
    }

    fn counts(&self) -> (usize, usize) {
        assert_eq!(*self.others.lock().expect("whole"), Vec::<String>::new());
        (
            self.done.load(Ordering::Relaxed),
            self.refused.load(Ordering::Relaxed),
        )
    }
}

/// Writes when a flush begins and when its table is made.
#[derive(Default)]
struct Writer {
    puts: Puts,
    database: Mutex<Option<esker::DbRef>>,
}

impl EventListener for Writer {
    fn on_flush_begin(&self, info: &FlushInfo) {
        if let Some(db) = Db::of(&info.database) {
            self.puts.put(&db, &format!("flush {}", info.job));
        }
        *self.database.lock().expect("whole") = Some(info.database.clone());
    }

    fn on_table_file_created(&self, info: &TableFileCreation) {
        let database = self.database.lock().expect("whole").clone();
        if let Some(db) = database.and_then(|db| Db::of(&db)) {
            self.puts.put(&db, &format!("table {}", info.job));
        }
    }
}

#[test]
fn a_put_when_a_flush_begins_does_not_hang() {
    let mut written = 0;
    for round in 0..4 {
        let home = tempfile::tempdir().expect("a directory");
        let listener = Arc::new(Writer::default());
        let mut options = Options::new().create_if_missing(true);
        options.family.write_buffer_size = 64 << 10;
        options.family.max_write_buffer_number = 2;
        options.db.listeners.push(listener.clone());
        let db = Db::open(home.path(), options).expect("opens");
        for n in 0..20_000 {
            db.put(format!("{n:08}"), [b'v'; 200]).expect("writes");
        }
        let (done, refused) = listener.puts.counts();
        println!("round {round}: {done} puts from listeners, {refused} refused");
        assert!(done + refused >= 60, "{done} {refused}");
        written += done;
        db.close().expect("closes");
    }
    assert!(written > 0, "some need not wait");
}

/// Writes when nobody may, and asks for what only the flush that calls could give.
#[derive(Default)]
struct Late {
    puts: Puts,
    wants: AtomicBool,
    flush: Mutex<Option<esker::Result<()>>>,
    pause: Mutex<Option<esker::Result<()>>>,
}

impl EventListener for Late {
    fn on_flush_begin(&self, info: &FlushInfo) {
        let Some(db) = Db::of(&info.database) else {
            return;
        };
        if !self.wants.swap(false, Ordering::Relaxed) {
            return;
        }
        // Nobody else can flush: there is room for so much and no more.
        for n in 0..100_000 {
            self.puts.put(&db, &format!("late {n}"));
            if self.puts.refused.load(Ordering::Relaxed) > 0 {
                break;
            }
        }
        let family = db.default_family_handle();
        let mut how = FlushOptions::default();
        how.allow_write_stall = true;
        *self.flush.lock().expect("whole") = Some(db.flush_cf(&family, &how));
        *self.pause.lock().expect("whole") = Some(db.pause_background_work());
    }
}

#[test]
fn what_only_the_calling_flush_could_give_is_refused() {
    let home = tempfile::tempdir().expect("a directory");
    let listener = Arc::new(Late::default());
    listener.wants.store(true, Ordering::Relaxed);
    let mut options = Options::new().create_if_missing(true);
    options.family.write_buffer_size = 64 << 10;
    options.family.max_write_buffer_number = 2;
    options.db.listeners.push(listener.clone());
    let db = Db::open(home.path(), options).expect("opens");
    for n in 0..2_000 {
        db.put(format!("{n:08}"), [b'v'; 200]).expect("writes");
    }
    let (done, refused) = listener.puts.counts();
    println!("{done} puts before one was refused");
    assert_eq!(refused, 1);
    for (what, told) in [("flush", &listener.flush), ("pause", &listener.pause)] {
        let told = told.lock().expect("whole").take().expect("was asked for");
        let error = told.expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Incomplete, "{what}: {error}");
    }
    // Nothing is left of it.
    db.flush().expect("flushes");
    db.put("after", "1").expect("writes");
    db.close().expect("closes");
}
