//! The programs of tbv-probes on software devices: our driver on a virtual cable, and rdma_rxe as another opinion.
#![cfg(feature = "vm")]

use anyhow::{Context, Result, ensure};
use vm_tests::command::{self, LIMIT, must};
use vm_tests::usb4::{self, DEVICES};
use vm_tests::{rxe, strace, tier};

const CABLE: [&str; 4] = ["-d", DEVICES[0], "-p", DEVICES[1]];

/// The number after `name=` in the output's last line.
fn number(output: &str, name: &str) -> Result<u64> {
    let last = output.lines().last().context("no output")?;
    let value = last.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.with_context(|| format!("no {name} in {last:?}"))?.parse().with_context(|| last.to_owned())
}

/// Runs rc-verify on our devices; the messages it verified.
fn verified(arguments: &[&str]) -> Result<u64> {
    let output = usb4::run(&[&["rc-verify"], arguments].concat(), LIMIT)?.success()?;
    ensure!(output.stderr.is_empty(), "{}", output.stderr);
    print!("{}", output.stdout);
    number(&output.stdout, "messages")
}

#[test]
fn every_byte_arrives_up_to_8_mib_and_in_thousands_of_random_messages() -> Result<()> {
    let random: u64 = tier::pick(3_000, 10_000);
    let messages = verified(&[&CABLE as &[&str], &["--count", &random.to_string()]].concat())?;
    ensure!(messages > random + 1_000, "{messages}");
    Ok(())
}

#[test]
fn a_device_connected_to_itself_works() -> Result<()> {
    verified(&["-d", DEVICES[0], "--max-size", "64K", "--count", "500"]).map(drop)
}

#[test]
fn peers_can_be_addressed_by_gid() -> Result<()> {
    verified(&[&CABLE as &[&str], &["-g", "0", "--max-size", "8K", "--count", "100"]].concat()).map(drop)
}

/// Lists and polls that don't fit one command, whichever way completions are polled.
#[test]
fn queues_of_thousands_work() -> Result<()> {
    for way in ["USB4_RDMA_CQ=ioctl", "USB4_RDMA_CQ=mapped"] {
        let sizes = ["--max-size", "16", "--random-size", "64", "--sges", "4", "--depth", "4000"];
        let words = [&["env", way, "rc-verify"], &CABLE as &[&str], &sizes, &["--count", "10000"]].concat();
        print!("{}", usb4::run(&words, LIMIT)?.success()?.stdout);
    }
    Ok(())
}

#[test]
fn lost_duplicated_reordered_and_corrupted_frames_are_recovered() -> Result<()> {
    usb4::set_up()?;
    for kind in ["drop", "duplicate", "reorder", "corrupt"] {
        let set = |every: &str| {
            DEVICES.iter().try_for_each(|device| {
                let file = format!("/sys/kernel/debug/tbv/{device}/fault/{kind}_every");
                std::fs::write(&file, every).with_context(|| file.clone())
            })
        };
        set("101")?;
        let result = verified(&[&CABLE as &[&str], &["--max-size", "32K", "--count", "300"]].concat());
        set("0")?;
        result.with_context(|| format!("{kind} every 101 frames"))?;
    }
    Ok(())
}

#[test]
fn mistakes_get_the_errors_that_infiniband_demands() -> Result<()> {
    for devices in [&CABLE as &[&str], &["-d", DEVICES[1]]] {
        let output = usb4::run(&[&["verbs-errors", "--strict"], devices].concat(), LIMIT)?.success()?;
        ensure!(
            number(&output.stdout, "wrong")? == 0 && number(&output.stdout, "right")? > 30,
            "{}",
            output.stdout
        );
    }
    Ok(())
}

#[test]
fn a_renamed_device_still_gets_its_provider() -> Result<()> {
    usb4::set_up()?;
    let rename = |from, to| must(&["rdma", "dev", "set", from, "name", to]);
    // rxe's devices are matched by name: ours must not become one by bearing it.
    rename(DEVICES[0], "rxe7")?;
    let result = verified(&["-d", "rxe7", "--max-size", "4K", "--count", "50"]);
    rename("rxe7", DEVICES[0])?;
    result.map(drop)
}

#[test]
fn every_command_is_an_ioctl() -> Result<()> {
    let file = "/tmp/probes.strace";
    let probe = ["rc-verify", "-d", DEVICES[0], "--max-size", "64", "--count", "10"];
    let traced = [&["env", "USB4_RDMA_CQ=ioctl"], strace::COMMAND, &["-o", file], &probe].concat();
    usb4::run(&traced, LIMIT)?.success()?;
    let calls = strace::parse(&std::fs::read_to_string(file)?)?.finished;
    let by = |entry: &str| {
        calls.iter().filter(|(call, _)| call.entry == entry).map(|(_, count)| count).sum::<u64>()
    };
    ensure!(by("ioctl") > 500 && by("write") == 0, "{} by ioctl, {} by write", by("ioctl"), by("write"));
    Ok(())
}

/// The probes judge any device alike, and can say no.
#[test]
fn on_rxe_the_probes_pass_and_strictness_fails() -> Result<()> {
    rxe::set_up()?;
    let run = |words: &[&str]| command::run(words, LIMIT);
    let verify = ["rc-verify", "-d", rxe::DEVICE, "--max-size", "1M", "--count", "500"];
    print!("{}", run(&verify)?.success()?.stdout);
    let tolerant = run(&["verbs-errors", "-d", rxe::DEVICE])?.success()?;
    ensure!(number(&tolerant.stdout, "wrong")? == 0, "{}", tolerant.stdout);
    let strict = run(&["verbs-errors", "-d", rxe::DEVICE, "--strict"])?;
    ensure!(strict.code() == 1 && number(&strict.stdout, "wrong")? > 0, "{}", strict.stdout);
    Ok(())
}

#[test]
fn exit_status_tells_wrong_usage_from_a_missing_device() -> Result<()> {
    for program in ["rc-verify", "verbs-errors", "cq-verify"] {
        let code = |words: &[&str]| anyhow::Ok(command::run(&[&[program], words].concat(), LIMIT)?.code());
        ensure!(code(&["--help"])? == 0);
        ensure!(code(&["--no-such-option"])? == 2);
        let check: &[&str] = if program == "cq-verify" { &["overflow"] } else { &[] };
        ensure!(code(&[check, &["-d", "nothing0"]].concat())? == 3);
    }
    Ok(())
}
