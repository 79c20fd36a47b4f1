//! Repeats one call, for a count of its instructions.
//!
//! Run it under callgrind with two numbers of calls: the difference of the totals, divided by the
//! difference of the numbers, is what one call takes, for opening and loading cancel out.
//!
//! ```sh
//! cargo build --release -p esker --example count
//! for n in 20000 40000; do
//!   valgrind --tool=callgrind --callgrind-out-file=/dev/null target/release/examples/count get $n
//! done
//! ```

use esker::{Db, Options, Result};
use std::hint::black_box;

/// Keys of the database before the calls: they lie in one table, which the block cache holds.
const KEYS: u64 = 50_000;

const USAGE: &str = "usage: count put|get|seek|cursor|iterator|await CALLS";

fn key(number: u64) -> [u8; 16] {
    let mut key = *b"key-000000000000";
    let mut rest = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// Numbers below [`KEYS`] in an order that repeats from run to run.
fn numbers(calls: u64) -> impl Iterator<Item = u64> {
    (0..calls).scan(88_172_645_463_325_252_u64, |state, _| {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        Some(*state % KEYS)
    })
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let call = arguments.next().expect(USAGE);
    let calls: u64 = arguments.next().expect(USAGE).parse().expect(USAGE);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::open(dir.path(), Options::new().create_if_missing(true))?;
    let value = [b'v'; 100];
    for number in 0..KEYS {
        db.put(key(number), value)?;
    }
    db.flush()?;
    for number in 0..KEYS {
        black_box(db.get(key(number))?);
    }
    match call.as_str() {
        "put" => numbers(calls).try_for_each(|number| db.put(key(number), value))?,
        "get" => {
            for number in numbers(calls) {
                black_box(db.get(key(number))?);
            }
        }
        "seek" => {
            let mut it = db.iter();
            for number in numbers(calls) {
                it.seek(key(number));
                black_box((it.key(), it.value()));
            }
        }
        "cursor" => {
            let mut it = db.iter();
            let mut left = calls;
            while left > 0 {
                it.seek_to_first();
                while it.valid() && left > 0 {
                    black_box((it.key(), it.value()));
                    it.next();
                    left -= 1;
                }
                it.status()?;
            }
        }
        _ => newer_calls(db, &call, calls)?,
    }
    Ok(())
}

fn newer_calls(db: Db, call: &str, calls: u64) -> Result<()> {
    match call {
        "iterator" => {
            let mut left = calls as usize;
            while left > 0 {
                for entry in db.range(..).take(left) {
                    black_box(&entry?);
                    left -= 1;
                }
            }
        }
        "await" => {
            let db = esker::futures::AsyncDb::new(db);
            pollster::block_on(async {
                for number in numbers(calls) {
                    black_box(db.get(key(number)).await?);
                }
                Ok::<_, esker::Error>(())
            })?;
        }
        _ => panic!("{USAGE}"),
    }
    Ok(())
}
