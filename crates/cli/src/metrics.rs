//! `esker metrics`: what a monitor would read of a database, from its directory.

use crate::database::DbArgs;
use crate::failure::Outcome;
use crate::out::Out;
use clap::Args;
use serde_json::json;

/// Arguments of `esker metrics`.
#[derive(Args, Debug)]
pub(crate) struct MetricsArgs {
    #[command(flatten)]
    db: DbArgs,
}

/// Runs `esker metrics`.
pub(crate) fn run(args: &MetricsArgs, out: &mut Out) -> Outcome {
    let open = args.db.read()?;
    let text = open.db.metrics();
    open.close()?;
    if out.is_json() {
        return out.object(|| json!({"type": "metrics", "openmetrics": text}));
    }
    out.bytes(text.as_bytes())
}
