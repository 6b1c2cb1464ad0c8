//! The gate on ioctl counts, with both arms, and with providers and runs that it must not let pass.
#![cfg(feature = "vm")]

use std::fs;

use anyhow::{Result, ensure};
use serde_json::Value;
use vm_tests::command::{self, LIMIT, Output};
use vm_tests::{tier, usb4};

const GATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ci/gate.sh");
const BUDGET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ci/mapped.toml");

/// Iterations of runs that must not pass.
fn fewer() -> &'static str {
    tier::pick("200", "1000")
}

fn gate(environment: &str, arguments: &[&str]) -> Result<Output> {
    usb4::run(&[&["env", environment, "sh", GATE], arguments].concat(), LIMIT)
}

#[test]
fn both_arms_pass_their_budgets() -> Result<()> {
    for arm in ["mapped", "ioctl"] {
        let output = gate("LC_ALL=C", &[arm])?.success()?;
        print!("{}", output.stdout);
    }
    Ok(())
}

#[test]
fn a_provider_that_polls_by_ioctl_fails_the_gate() -> Result<()> {
    usb4::set_up()?;
    let junit = "/tmp/gate.xml";
    let output =
        gate(&usb4::double("double-regressed")?, &["mapped", fewer(), "--junit", junit, "--github"])?;
    ensure!(output.code() == 1, "exit {}: {}{}", output.code(), output.stdout, output.stderr);
    ensure!(output.stdout.contains("POLL_CQ") && output.stdout.contains("::error"), "{}", output.stdout);
    let xml = fs::read_to_string(junit)?;
    ensure!(xml.contains("<failure") && xml.contains("POLL_CQ"), "{xml}");
    Ok(())
}

#[test]
fn runs_that_prove_no_work_are_not_judged() -> Result<()> {
    usb4::set_up()?;
    let report = "/tmp/gate-report.json";
    let both = concat!(env!("CARGO_MANIFEST_DIR"), "/../xtask/src/demo/both-sides.sh");
    let run = |words: &[&str]| {
        usb4::run(&[&["tbv-trace", "run", "-f", "json", "-o", report, "--"], words].concat(), LIMIT)
    };
    let check = |iterations: &str, file: &str| {
        let words = ["tbv-trace", "check", file, "--strict", "--budget", BUDGET, "--iterations", iterations];
        command::run(&words, LIMIT)
    };
    run(&["sh", both, "usb4_rdma0", "usb4_rdma1", "127.0.0.1", "1000"])?.success()?;
    let told = |output: Output, code: i32, what: &str| {
        let all = format!("{}{}", output.stdout, output.stderr);
        ensure!(
            output.code() == code && all.contains(what),
            "exit {}, not {code} with {what:?}: {all}",
            output.code()
        );
        Ok(())
    };
    told(check("1000", report)?, 0, "")?;
    told(check("1002", report)?, 3, "post_send")?;
    told(check("0", report)?, 2, "--iterations")?;
    let text = fs::read_to_string(report)?;
    fs::write("/tmp/cut.json", &text[..text.len() / 2])?;
    told(check("1000", "/tmp/cut.json")?, 2, "cut off")?;
    let mut value: Value = serde_json::from_str(&text)?;
    value["schema_version"] = 99.into();
    fs::write("/tmp/newer.json", value.to_string())?;
    told(check("1000", "/tmp/newer.json")?, 2, "schema version 99")?;
    value["schema_version"] = 1.into();
    value["loss"]["rows_full"] = 3.into();
    value["loss"]["total"] = 3.into();
    fs::write("/tmp/lossy.json", value.to_string())?;
    told(check("1000", "/tmp/lossy.json")?, 4, "3")?;
    // The other arm, which polls by system call, does not pass as this one.
    let ioctl = ["env", "USB4_RDMA_CQ=ioctl", "sh", both, "usb4_rdma0", "usb4_rdma1", "127.0.0.1", fewer()];
    run(&ioctl)?.success()?;
    told(check(fewer(), report)?, 3, "mapped")?;
    // Nobody listens: the client gives up after few calls.
    let failed = run(&["ib_send_lat", "-F", "-d", "usb4_rdma1", "-n", "1000", "127.0.0.1"])?;
    ensure!(failed.code() != 0, "it should have failed");
    told(check("1000", report)?, 3, "exit")?;
    Ok(())
}
