//! `esker-differential model`: the model mode of the driver as a command. `esker diff` is the other
//! mode.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((mode, rest)) if mode == "model" => esker_differential::model::main(rest),
        _ => {
            eprintln!("usage: esker-differential model --lib PATH [--seed N] [--seconds S]");
            ExitCode::from(2)
        }
    }
}
