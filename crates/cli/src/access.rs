//! `esker get`, `multi-get`, `put`, `merge`, `delete`, `singledelete`, `deleterange` and
//! `batchput`: single keys, and ranges of them, through the engine.

use crate::database::{CreateArgs, DbArgs, HexArgs};
use crate::failure::{Failure, Outcome};
use crate::out::Out;
use crate::scan::ARROW;
use clap::Args;
use esker::{ReadOptions, WriteBatch, WriteOptions};
use esker_format::FamilyId;
use esker_status::Error;
use serde_json::json;
use std::ffi::OsString;

/// Arguments of `esker get`.
#[derive(Args, Debug)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    db: DbArgs,
    #[command(flatten)]
    hex: HexArgs,
    /// The key
    key: OsString,
}

/// How durable writes are.
#[derive(Args, Debug)]
pub(crate) struct SyncArgs {
    /// Return only when the write survives power loss
    #[arg(long)]
    sync: bool,
}

impl SyncArgs {
    fn options(&self) -> WriteOptions {
        if self.sync {
            WriteOptions::synced()
        } else {
            WriteOptions::default()
        }
    }
}

/// Arguments of `esker put`.
#[derive(Args, Debug)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    db: DbArgs,
    #[command(flatten)]
    create: CreateArgs,
    #[command(flatten)]
    hex: HexArgs,
    #[command(flatten)]
    sync: SyncArgs,
    /// The key
    key: OsString,
    /// The value
    value: OsString,
}

/// Arguments of `esker delete`.
#[derive(Args, Debug)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    db: DbArgs,
    #[command(flatten)]
    hex: HexArgs,
    #[command(flatten)]
    sync: SyncArgs,
    /// The key
    key: OsString,
}

/// Arguments of `esker batchput`.
#[derive(Args, Debug)]
pub(crate) struct BatchPutArgs {
    #[command(flatten)]
    db: DbArgs,
    #[command(flatten)]
    create: CreateArgs,
    #[command(flatten)]
    hex: HexArgs,
    #[command(flatten)]
    sync: SyncArgs,
    /// Keys and values in turn
    #[arg(value_name = "KEY VALUE", required = true)]
    pairs: Vec<OsString>,
}

/// Runs `esker get`.
pub(crate) fn get(args: &GetArgs, out: &mut Out) -> Outcome {
    let key = args.hex.key(&args.key)?;
    let open = args.db.read()?;
    let value = open
        .db
        .get_opt(&open.family, &key, &ReadOptions::default(), None)?;
    let Some(value) = value else {
        return Err(Error::not_found(format!("key {:?}", args.key)).into());
    };
    if !out.is_json() {
        out.stored(&args.hex.show_value(&value))?;
        return out.bytes(b"\n");
    }
    out.object(|| args.hex.entry("entry", &key, Some(&value)))
}

fn done(out: &mut Out, written: u32) -> Outcome {
    out.line("OK")?;
    out.object(|| json!({"type": "written", "records": written}))
}

/// Runs `esker put`.
pub(crate) fn put(args: &PutArgs, out: &mut Out) -> Outcome {
    let (key, value) = (args.hex.key(&args.key)?, args.hex.value(&args.value)?);
    let open = args.db.write(args.create.create_if_missing)?;
    open.db
        .put_opt(&open.family, key, value, &args.sync.options())?;
    open.close()?;
    done(out, 1)
}

/// Runs `esker delete`.
pub(crate) fn delete(args: &DeleteArgs, out: &mut Out) -> Outcome {
    let key = args.hex.key(&args.key)?;
    let open = args.db.write(false)?;
    open.db
        .delete_opt(&open.family, key, &args.sync.options())?;
    open.close()?;
    done(out, 1)
}

/// Runs `esker batchput`.
pub(crate) fn batchput(args: &BatchPutArgs, out: &mut Out) -> Outcome {
    if !args.pairs.len().is_multiple_of(2) {
        return Err(Failure::Usage("the last key has no value".to_owned()));
    }
    let mut pairs = Vec::new();
    for pair in args.pairs.chunks_exact(2) {
        pairs.push((args.hex.key(&pair[0])?, args.hex.value(&pair[1])?));
    }
    let open = args.db.write(args.create.create_if_missing)?;
    let mut batch = WriteBatch::new();
    for (key, value) in &pairs {
        batch.put_cf(FamilyId(open.family.id()), key, value)?;
    }
    let written = batch.count();
    open.db.write_opt(&mut batch, &args.sync.options())?;
    open.close()?;
    done(out, written)
}

/// Arguments of `esker multi-get`.
#[derive(Args, Debug)]
pub(crate) struct MultiGetArgs {
    #[command(flatten)]
    db: DbArgs,
    #[command(flatten)]
    hex: HexArgs,
    /// The keys
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<OsString>,
}

/// Arguments of `esker merge`.
#[derive(Args, Debug)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    db: DbArgs,
    #[command(flatten)]
    create: CreateArgs,
    #[command(flatten)]
    hex: HexArgs,
    #[command(flatten)]
    sync: SyncArgs,
    /// The key
    key: OsString,
    /// The operand
    operand: OsString,
}

/// Arguments of `esker deleterange`.
#[derive(Args, Debug)]
pub(crate) struct DeleteRangeArgs {
    #[command(flatten)]
    db: DbArgs,
    #[command(flatten)]
    hex: HexArgs,
    #[command(flatten)]
    sync: SyncArgs,
    /// The first key that goes
    begin: OsString,
    /// The first key that stays
    end: OsString,
}

/// Runs `esker multi-get`.
pub(crate) fn multi_get(args: &MultiGetArgs, out: &mut Out) -> Outcome {
    let keys = args.keys.iter().map(|k| args.hex.key(k));
    let keys = keys.collect::<Outcome<Vec<_>>>()?;
    let open = args.db.read()?;
    let found = open
        .db
        .multi_get_opt(&open.family, &keys, &ReadOptions::default(), None);
    let mut missing = 0;
    for (key, value) in keys.iter().zip(found) {
        let value = value?;
        missing += u64::from(value.is_none());
        if out.is_json() {
            let kind = if value.is_some() { "entry" } else { "missing" };
            out.object(|| args.hex.entry(kind, key, value.as_deref()))?;
            continue;
        }
        out.stored(&args.hex.show_key(key))?;
        match value {
            Some(value) => {
                out.bytes(ARROW)?;
                out.stored(&args.hex.show_value(&value))?;
            }
            None => out.bytes(b" is not there")?,
        }
        out.bytes(b"\n")?;
    }
    out.flush()?;
    if missing == 0 {
        Ok(())
    } else {
        Err(Failure::Said)
    }
}

/// Runs `esker merge`.
pub(crate) fn merge(args: &MergeArgs, out: &mut Out) -> Outcome {
    let (key, operand) = (args.hex.key(&args.key)?, args.hex.value(&args.operand)?);
    let open = args.db.write(args.create.create_if_missing)?;
    let options = args.sync.options();
    open.db.merge_opt(&open.family, key, operand, &options)?;
    open.close()?;
    done(out, 1)
}

/// Runs `esker singledelete`.
pub(crate) fn single_delete(args: &DeleteArgs, out: &mut Out) -> Outcome {
    let key = args.hex.key(&args.key)?;
    let open = args.db.write(false)?;
    let options = args.sync.options();
    open.db.single_delete_opt(&open.family, key, &options)?;
    open.close()?;
    done(out, 1)
}

/// Runs `esker deleterange`.
pub(crate) fn delete_range(args: &DeleteRangeArgs, out: &mut Out) -> Outcome {
    let (begin, end) = (args.hex.key(&args.begin)?, args.hex.key(&args.end)?);
    let open = args.db.write(false)?;
    let options = args.sync.options();
    open.db
        .delete_range_opt(&open.family, begin, end, &options)?;
    open.close()?;
    done(out, 1)
}
