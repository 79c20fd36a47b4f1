//! `ldb query`: commands from standard input, a line each.

use super::call::{LdbCall, LdbOutcome, failed};
use super::entries::key_of;
use crate::out::Out;
use esker_status::{Error, ErrorKind};
use std::io::BufRead;

/// Runs `query`.
pub(super) fn query(call: &LdbCall, out: &mut Out) -> LdbOutcome {
    let open = super::jobs::writing(call)?;
    let hex = call.hex()?;
    let mut is_whole = true;
    for line in std::io::stdin().lock().lines() {
        let failed = |e| Error::new(ErrorKind::Io, format!("read a line: {e}"));
        let line = line.map_err(failed)?;
        let words: Vec<&str> = line.split(' ').filter(|w| !w.is_empty()).collect();
        match words.as_slice() {
            [] => {}
            ["help", ..] => out.line("get <key>\nput <key> <value>\ndelete <key>")?,
            ["get", key] => match open.db.get_cf(&open.family, key_of(call, key)?) {
                Ok(Some(value)) => {
                    out.bytes(format!("{key} ==> ").as_bytes())?;
                    out.stored(&hex.show_value(&value))?;
                    out.bytes(b"\n")?;
                }
                Ok(None) => {
                    is_whole = false;
                    out.line(format!("Not found {key}"))?;
                }
                Err(e) => {
                    is_whole = false;
                    out.line(format!("Error: {e}"))?;
                }
            },
            ["put", key, value] => {
                let stored = hex.value(value.as_ref())?;
                open.db.put_cf(&open.family, key_of(call, key)?, stored)?;
                out.line(format!("Successfully put {key} {value}"))?;
            }
            ["delete", key] => {
                open.db.delete_cf(&open.family, key_of(call, key)?)?;
                out.line(format!("Successfully deleted {key}"))?;
            }
            _ => out.line(format!("Unknown command {line}"))?,
        }
        // Somebody waits for the answer.
        out.flush()?;
    }
    open.close()?;
    if is_whole { Ok(()) } else { failed("") }
}
