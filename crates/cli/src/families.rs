//! `esker families`: the column families of a database, listed, made and dropped.

use crate::database::DbArgs;
use crate::failure::{Failure, Outcome};
use crate::out::Out;
use clap::{Args, Subcommand};
use esker::{Db, Options};
use esker_status::Error;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `esker families`.
#[derive(Args, Debug)]
pub(crate) struct FamiliesArgs {
    #[command(subcommand)]
    command: FamiliesCommand,
}

#[derive(Subcommand, Debug)]
enum FamiliesCommand {
    /// Show the names
    #[command(after_help = "Example:\n  esker families list --db=DB")]
    List {
        /// The database's directory
        #[arg(long, value_name = "DB")]
        db: PathBuf,
    },
    /// Make a family, with the options of the default one
    #[command(after_help = "\
Example:
  esker families create --db=DB users --set compression=kZSTD")]
    Create {
        #[command(flatten)]
        db: DbArgs,
        /// Its name
        name: String,
    },
    /// Drop a family, and with it all of its entries
    #[command(after_help = "Example:\n  esker families drop --db=DB users --yes")]
    Drop {
        #[command(flatten)]
        db: DbArgs,
        /// Its name
        name: String,
        /// Do it; without this, nothing is changed
        #[arg(long)]
        yes: bool,
    },
}

/// Runs `esker families`.
pub(crate) fn run(args: &FamiliesArgs, out: &mut Out) -> Outcome {
    match &args.command {
        FamiliesCommand::List { db } => {
            for name in Db::list_families(db, &Options::new())? {
                out.line(&name)?;
                out.object(|| json!({"type": "family", "name": name}))?;
            }
            Ok(())
        }
        FamiliesCommand::Create { db, name } => create(db, name, out),
        FamiliesCommand::Drop { db, name, yes } => drop_family(db, name, *yes, out),
    }
}

fn create(args: &DbArgs, name: &str, out: &mut Out) -> Outcome {
    let open = args.write(false)?;
    if open.db.family(name).is_some() {
        let text = format!("there is a column family {name:?} already");
        return Err(Error::invalid_argument(text).into());
    }
    open.db.create_family(name, open.default_options)?;
    drop(open.family);
    open.db.close()?;
    out.line("OK")?;
    out.object(|| json!({"type": "created", "name": name}))
}

fn drop_family(args: &DbArgs, name: &str, yes: bool, out: &mut Out) -> Outcome {
    if !yes {
        return Err(Failure::Usage(format!(
            "this drops the column family {name:?} with all of its entries; add --yes to do it"
        )));
    }
    let open = args.write(false)?;
    let Some(family) = open.db.family(name) else {
        let text = format!("there is no column family {name:?}");
        return Err(Error::invalid_argument(text).into());
    };
    open.db.drop_family(&family)?;
    drop(family);
    open.close()?;
    out.line("OK")?;
    out.object(|| json!({"type": "dropped", "name": name}))
}
