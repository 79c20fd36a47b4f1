//! The `rocksdb` crate on a library that is installed: the same page as `c/quickstart.c`.
//!
//! ```text
//! export ROCKSDB_LIB_DIR=PREFIX/lib ROCKSDB_INCLUDE_DIR=PREFIX/include
//! export BINDGEN_EXTRA_CLANG_ARGS="-isystem $(cc -print-file-name=include)"
//! LD_LIBRARY_PATH=PREFIX/lib cargo run -- DIRECTORY
//! ```

use rocksdb::backup::{BackupEngine, BackupEngineOptions, RestoreOptions};
use rocksdb::checkpoint::Checkpoint;
use rocksdb::{DB, Direction, Env, Error, IteratorMode, Options, WriteBatch};
use std::path::Path;

/// The pairs of an iterator, as text.
fn pairs(db: &DB, mode: IteratorMode) -> Result<Vec<(String, String)>, Error> {
    let text = |bytes: Box<[u8]>| String::from_utf8_lossy(&bytes).into_owned();
    db.iterator(mode)
        .map(|pair| pair.map(|(key, value)| (text(key), text(value))))
        .collect()
}

fn text(value: Option<Vec<u8>>) -> String {
    value.map_or("nothing".into(), |v| String::from_utf8_lossy(&v).into())
}

fn entries(path: &Path) -> Result<usize, Error> {
    let db = DB::open_for_read_only(&Options::default(), path, false)?;
    Ok(pairs(&db, IteratorMode::Start)?.len())
}

fn run(directory: &Path) -> Result<(), Error> {
    let mut options = Options::default();
    options.create_if_missing(true);
    let path = directory.join("db");
    let db = DB::open(&options, &path)?;

    db.put("colour", "green")?;
    println!("colour = {}", text(db.get("colour")?));
    let found = db.get("missing")?.is_some();
    println!("missing: {}", if found { "found" } else { "not found" });

    // Several writes, all or nothing.
    let mut batch = WriteBatch::default();
    for (key, value) in [("apple", "1"), ("banana", "2"), ("cherry", "3")] {
        batch.put(key, value);
    }
    batch.delete("colour");
    db.write(batch)?;

    let all = pairs(&db, IteratorMode::Start)?;
    print!("{} entries:", all.len());
    for (key, value) in &all {
        print!(" {key}={value}");
    }
    print!("\nbackwards from c:");
    for (key, _) in pairs(&db, IteratorMode::From(b"c", Direction::Reverse))? {
        print!(" {key}");
    }
    println!();

    // A snapshot keeps what was there.
    let snapshot = db.snapshot();
    for (key, value) in [("apple", "10"), ("damson", "4"), ("elder", "5")] {
        db.put(key, value)?;
    }
    let (then, now) = (text(snapshot.get("apple")?), text(db.get("apple")?));
    println!("snapshot sees apple={then}, now apple={now}");
    drop(snapshot);

    // A checkpoint is a database of its own, made of links to the same files.
    let checkpoint = directory.join("checkpoint");
    Checkpoint::new(&db)?.create_checkpoint(&checkpoint)?;
    println!("checkpoint: {} entries", entries(&checkpoint)?);

    // Backups share files with each other, not with the database.
    let place = BackupEngineOptions::new(directory.join("backups"))?;
    let mut backups = BackupEngine::open(&place, &Env::new()?)?;
    backups.create_new_backup(&db)?;
    let restored = directory.join("restored");
    backups.restore_from_latest_backup(&restored, &restored, &RestoreOptions::default())?;
    println!("restored backup: {} entries", entries(&restored)?);

    // An error is text that begins with its kind.
    drop(db);
    options.set_error_if_exists(true);
    if let Err(error) = DB::open(&options, &path) {
        let text = error.to_string();
        println!("refused: {}", text.split(':').next().unwrap_or(""));
    }
    Ok(())
}

fn main() {
    let Some(directory) = std::env::args().nth(1) else {
        eprintln!("usage: quickstart DIRECTORY");
        std::process::exit(2);
    };
    if let Err(error) = run(Path::new(&directory)) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
