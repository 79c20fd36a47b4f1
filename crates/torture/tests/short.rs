//! The commands of `esker-torture` in the length that a test run affords. Each prints its figures.

use std::process::Command;

/// Runs a command, whose promises must all be kept.
fn kept(args: &[&str]) {
    let out = Command::new(env!("CARGO_BIN_EXE_esker-torture"))
        .args(args)
        .output()
        .expect("the program starts");
    let text =
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    println!("esker-torture {}\n{text}", args.join(" "));
    assert!(
        out.status.success(),
        "esker-torture {}: {text}",
        args.join(" ")
    );
}

#[test]
fn nothing_acknowledged_is_lost_by_400_kills() {
    kept(&["kill", "--kills", "400"]);
}

#[test]
fn writes_resume_after_limits_are_lifted() {
    kept(&["starve", "--trials", "12", "--seconds", "4"]);
}

#[test]
fn memory_files_and_threads_stay_flat() {
    kept(&["soak", "--seconds", "20"]);
}

#[test]
fn nothing_synced_is_lost_by_power_cuts() {
    kept(&["power-cut", "--cycles", "8"]);
}
