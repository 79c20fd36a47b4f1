//! `esker get`, `put`, `delete` and `batchput`: single keys through the engine.

use crate::database::{CreateArgs, DbArgs, HexArgs};
use crate::failure::{Failure, Outcome};
use crate::out::Out;
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
