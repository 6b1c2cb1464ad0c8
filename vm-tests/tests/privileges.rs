//! Who may trace what: nobody, nobody with some capabilities, and roots that are none. The guest is booted with
//! lockdown=integrity, which is no obstacle to any of it.
#![cfg(feature = "vm")]

use anyhow::{Result, ensure};
use vm_tests::command::{self, LIMIT, Output};
use vm_tests::doctor::Doctor;
use vm_tests::without::Setting;
use vm_tests::{calls, exact, nobody, rxe};

const RAW: &str = env!("CARGO_BIN_EXE_uverbs-raw");
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
const BOTH: [&str; 2] = ["bpf", "perfmon"];
const COMMANDS: [&[&str]; 3] = [&["run", "--", "true"], &["attach", "-a"], &["events", "-a"]];

fn borrowed(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// The words that start tbv-trace as nobody with `capabilities`.
fn tracer(capabilities: &[&str]) -> Result<Vec<String>> {
    let mut words = nobody::with(capabilities);
    words.push(nobody::copy("tbv-trace")?);
    Ok(words)
}

/// Fails unless it was one message, nothing else, and status 3.
fn refused(output: &Output) -> Result<()> {
    ensure!(output.code() == 3 && output.stdout.is_empty(), "{output:?}");
    ensure!(output.stderr.starts_with("tbv-trace: no permission: this process lacks "), "{output:?}");
    ensure!(output.stderr.lines().count() == 2, "{output:?}");
    Ok(())
}

#[test]
fn the_capabilities_that_are_missing_are_named_and_no_others() -> Result<()> {
    rxe::set_up()?;
    for held in [&[] as &[&str], &["bpf"], &["perfmon"]] {
        let tracer = tracer(held)?;
        for command in COMMANDS {
            let output = command::run(&[&borrowed(&tracer), command].concat(), LIMIT)?;
            refused(&output)?;
            for (capability, name) in [("bpf", "CAP_BPF"), ("perfmon", "CAP_PERFMON")] {
                let named = output.stderr.contains(name);
                ensure!(named != held.contains(&capability), "{held:?} {command:?}: {}", output.stderr);
            }
            ensure!(output.stderr.contains("sudo") && output.stderr.contains("setcap"), "{output:?}");
        }
    }
    Ok(())
}

#[test]
fn the_remedy_is_one_that_works() -> Result<()> {
    rxe::set_up()?;
    let program = nobody::copy("tbv-trace")?;
    let bound = ["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin"];
    let nobody = nobody::with(&[]);
    let sandbox = [borrowed(&nobody), vec!["--no-new-privs"]].concat();
    let namespace = ["unshare", "--user", "--map-root-user"];
    for (prefix, remedy) in
        [(&bound[..], "bounding set"), (&sandbox[..], "no_new_privs"), (&namespace[..], "user namespace")]
    {
        for command in COMMANDS {
            let output = command::run(&[prefix, &[&program], command].concat(), LIMIT)?;
            refused(&output)?;
            ensure!(output.stderr.contains(remedy) && !output.stderr.contains("setcap"), "{output:?}");
        }
    }
    Ok(())
}

#[test]
fn two_capabilities_count_what_root_counts() -> Result<()> {
    nobody::open_device()?;
    let tracer = tracer(&BOTH)?;
    let tracer = borrowed(&tracer);
    let client = nobody::copy(RAW)?;
    let client = [client.as_str(), "--threads", "2", "--count", "5"];
    let root = exact::run(&["tbv-trace"], &[], &client)?;
    let by_root = calls::of_all_processes(&root.calls);

    let same = |options: &[&str]| {
        let report = exact::run(&tracer, options, &client)?;
        let difference =
            calls::difference(("by root", &by_root), ("by nobody", &calls::of_all_processes(&report.calls)));
        ensure!(difference.is_empty(), "{difference}");
        ensure!(report.json["environment"]["devices_known"] == true, "{}", report.json["environment"]);
        ensure!(report.hook() != "fentry", "without CAP_SYS_ADMIN");
        let why = report.passed_over("fentry");
        ensure!(why.contains("CAP_SYS_ADMIN") || !options.is_empty(), "fentry: {why}");
        Ok(report)
    };

    // As the distribution has it: kprobes are for CAP_SYS_ADMIN.
    let level = std::fs::read_to_string(PARANOID)?;
    ensure!(level.trim() == "3", "perf_event_paranoid is {level}");
    let report = same(&[])?;
    ensure!(report.hook() != "kprobe", "with perf_event_paranoid 3");
    let words = [&tracer[..], &["run", "--hook", "kprobe", "--", "true"]].concat();
    let output = command::run(&words, LIMIT)?;
    ensure!(output.code() == 3 && output.stderr.contains("kernel.perf_event_paranoid is 3"), "{output:?}");
    let doctor = Doctor::ask(&tracer)?;
    ensure!(doctor.code == 0, "nothing works");
    doctor.says("kprobe", "degraded", &["sysctl kernel.perf_event_paranoid=2"])?;

    let _two = Setting::change(PARANOID, "2")?;
    same(&[])?;
    ensure!(same(&["--hook", "kprobe"])?.hook() == "kprobe", "another hook");
    let doctor = Doctor::ask(&tracer)?;
    doctor.says("capabilities", "ok", &["CAP_BPF", "CAP_PERFMON"])?;
    doctor.says("kprobe", "ok", &[])?;
    doctor.says("fentry", "degraded", &["CAP_SYS_ADMIN", "setcap"])
}

#[test]
fn two_capabilities_attach_and_stream() -> Result<()> {
    nobody::open_device()?;
    let tracer = tracer(&BOTH)?;
    for command in [&["attach", "-a", "-d", "0.2"], &["events", "-a", "-d", "0.2"]] {
        let output = command::run(&[&borrowed(&tracer), &command[..]].concat(), LIMIT)?.success()?;
        ensure!(output.stderr.is_empty(), "{output:?}");
    }
    Ok(())
}

#[test]
fn doctor_says_to_nobody_what_is_missing() -> Result<()> {
    rxe::set_up()?;
    let doctor = Doctor::ask(&borrowed(&tracer(&["bpf"])?))?;
    ensure!(doctor.code == 3, "exit {}", doctor.code);
    doctor.says("capabilities", "missing", &["CAP_PERFMON", "setcap"])?;
    doctor.says("hook in use", "missing", &["capabilities"])
}

#[test]
fn lockdown_for_integrity_is_no_obstacle() -> Result<()> {
    let mode = std::fs::read_to_string("/sys/kernel/security/lockdown")?;
    ensure!(mode.contains("[integrity]"), "{mode}");
    let report = exact::run(&["tbv-trace"], &[], &[RAW, "--count", "3"])?;
    ensure!(report.hook() == "fentry", "hook {}: {}", report.hook(), report.passed_over("fentry"));
    let doctor = Doctor::ask(&["tbv-trace"])?;
    ensure!(doctor.code == 0, "nothing works");
    doctor.says("lockdown", "ok", &["integrity"])
}
