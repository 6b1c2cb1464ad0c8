//! A guest that is booted with lockdown=confidentiality.
#![cfg(feature = "vm")]

use anyhow::{Result, ensure};
use vm_tests::command::LIMIT;
use vm_tests::doctor::Doctor;
use vm_tests::{command, nobody, rxe, without};

const SECURITYFS: &str = "/sys/kernel/security";

fn booted_so() -> Result<()> {
    rxe::set_up()?;
    let mode = std::fs::read_to_string("/sys/kernel/security/lockdown")?;
    ensure!(mode.contains("[confidentiality]"), "{mode}");
    Ok(())
}

#[test]
fn every_command_says_lockdown_and_what_to_do() -> Result<()> {
    booted_so()?;
    let program = nobody::copy("tbv-trace")?;
    let root = vec![program.clone()];
    let capable = [nobody::with(&["bpf", "perfmon"]), vec![program.clone()]].concat();
    // Where the mode can't be read, it is seen from what the kernel refuses.
    let unseen = [without::folders(&[SECURITYFS]), vec![program]].concat();
    for tracer in [root, capable, unseen] {
        for command in [&["run", "--", "true"] as &[&str], &["attach", "-a"], &["events", "-a"]] {
            let words: Vec<&str> = tracer.iter().map(String::as_str).chain(command.iter().copied()).collect();
            let output = command::run(&words, LIMIT)?;
            ensure!(output.code() == 3 && output.stdout.is_empty(), "{output:?}");
            ensure!(output.stderr.contains("lockdown=confidentiality"), "{output:?}");
            ensure!(output.stderr.contains("boot with lockdown=integrity"), "{output:?}");
            ensure!(!output.stderr.contains("helper"), "{output:?}");
        }
    }
    Ok(())
}

#[test]
fn doctor_says_so_too() -> Result<()> {
    booted_so()?;
    let doctor = Doctor::ask(&["tbv-trace"])?;
    ensure!(doctor.code == 3, "exit {}", doctor.code);
    doctor.says("lockdown", "missing", &["confidentiality", "boot with lockdown=integrity"])?;
    doctor.says("kprobes", "degraded", &["lockdown"])?;
    doctor.says("hook in use", "missing", &["lockdown"])
}
