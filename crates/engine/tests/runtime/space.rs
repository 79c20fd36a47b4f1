//! Full disks and failing syncs: reads go on, nothing acknowledged is lost, and the database comes
//! back by itself.

use super::disk::{Faults, faulty};
use super::events::Recorder;
use esker::{Db, HealthState, Options, Result, WriteOptions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Model = BTreeMap<String, String>;

fn set(fault: &std::sync::Mutex<Option<&'static str>>, to: Option<&'static str>) {
    *fault.lock().expect("no panic under the lock") = to;
}

fn options(env: &esker::Env) -> Options {
    Options::new()
        .env(env.clone())
        .create_if_missing(true)
        .set_all("write_buffer_size=65536;bgerror_resume_retry_interval=100000")
        .expect("these options exist")
}

fn put(db: &Db, n: u32, model: &mut Model, sync: bool) -> Result<()> {
    let (key, value) = (format!("key{:05}", n % 3_000), format!("value{n:0200}"));
    let options = if sync {
        WriteOptions::synced()
    } else {
        WriteOptions::default()
    };
    db.put_opt(&db.default_family_handle(), &key, &value, &options)?;
    model.insert(key, value);
    Ok(())
}

/// Everything acknowledged is there. A write that failed may be there or not, so only acknowledged
/// keys are compared.
fn verify(db: &Db, model: &Model, doubtful: &[String]) -> Result<()> {
    for (key, value) in model.iter().filter(|(k, _)| !doubtful.contains(k)) {
        let found = db.get(key)?;
        assert_eq!(found.as_deref(), Some(value.as_bytes()), "{key}");
    }
    Ok(())
}

fn survives_full(part: &'static str) -> Result<()> {
    let (env, faults) = faulty();
    let recorder = Arc::new(Recorder::default());
    let mut with = options(&env).set("enable_blob_files", &(part == ".blob").to_string())?;
    with.db.listeners.push(recorder.clone());
    let db = Db::open("/db", with)?;
    let (mut model, mut doubtful) = (Model::new(), Vec::new());
    for n in 0..2_000 {
        put(&db, n, &mut model, false)?;
    }
    set(&faults.full, Some(part));
    let began = Instant::now();
    let mut n = 2_000;
    // Memory takes some more when only tables cannot be written.
    let error = loop {
        n += 1;
        match put(&db, n, &mut model, false) {
            Err(e) => break e,
            Ok(()) => assert!(
                began.elapsed() < Duration::from_secs(60),
                "no write failed on a full disk"
            ),
        }
    };
    doubtful.push(format!("key{:05}", n % 3_000));
    assert!(error.is_no_space(), "{part}: {error}");
    assert_eq!(db.health(), HealthState::Degraded);
    verify(&db, &model, &doubtful)?;
    std::thread::sleep(Duration::from_millis(350));
    assert!(put(&db, n + 1, &mut model, false).is_err(), "still full");
    doubtful.push(format!("key{:05}", (n + 1) % 3_000));

    set(&faults.full, None);
    let back = Instant::now();
    while db.health() != HealthState::Running {
        assert!(
            back.elapsed() < Duration::from_secs(10),
            "{part}: not resumed: {:?}",
            db.background_error()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    for n in 10_000..12_000 {
        put(&db, n, &mut model, false)?;
    }
    verify(&db, &model, &doubtful)?;
    db.flush()?;
    db.verify_checksums()?;
    db.close()?;
    drop(db);
    let heard = recorder.text();
    assert!(
        heard.contains("error")
            && heard.contains("recovery begins")
            && heard.contains("recovery ends: ok"),
        "{heard}"
    );
    let db = Db::open("/db", options(&env))?;
    verify(&db, &model, &doubtful)
}

#[test]
fn a_disk_that_is_full_for_blob_files() -> Result<()> {
    survives_full(".blob")
}

#[test]
fn a_disk_that_is_full_for_everything() -> Result<()> {
    survives_full("")
}

#[test]
fn a_disk_that_is_full_for_logs() -> Result<()> {
    survives_full(".log")
}

#[test]
fn a_disk_that_is_full_for_tables() -> Result<()> {
    survives_full(".sst")
}

#[test]
fn a_disk_that_is_full_for_the_manifest() -> Result<()> {
    survives_full("MANIFEST")
}

#[test]
fn automatic_resume_ends_after_the_given_number_of_tries() -> Result<()> {
    let (env, faults) = faulty();
    let db = Db::open("/db", options(&env).set("max_bgerror_resume_count", "0")?)?;
    let mut model = Model::new();
    put(&db, 1, &mut model, false)?;
    set(&faults.full, Some(""));
    put(&db, 2, &mut model, false).expect_err("full");
    set(&faults.full, None);
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(db.health(), HealthState::Degraded);
    db.resume()?;
    put(&db, 3, &mut model, false)
}

#[test]
fn a_failed_sync_is_never_acknowledged() -> Result<()> {
    let (env, faults): (_, Arc<Faults>) = faulty();
    let db = Db::open("/db", options(&env))?;
    let mut model = Model::new();
    for n in 0..100 {
        put(&db, n, &mut model, n % 10 == 0)?;
    }
    set(&faults.unsyncable, Some(".log"));
    put(&db, 200, &mut model, true).expect_err("the sync failed");
    assert_eq!(db.health(), HealthState::ReadOnly);
    put(&db, 201, &mut model, false).expect_err("the log's tail is unknown");
    verify(&db, &model, &[])?;
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(
        db.health(),
        HealthState::ReadOnly,
        "only a full disk is resumed from by itself"
    );
    set(&faults.unsyncable, None);
    db.resume()?;
    put(&db, 202, &mut model, true)?;
    verify(&db, &model, &[])?;
    db.close()?;
    drop(db);
    verify(&Db::open("/db", options(&env))?, &model, &[])
}
