//! `tbv-trace --usdt`: what it shows with the provider's probes, and what it does not make up without them.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tbv_core::usdt;
use vm_tests::command;
use vm_tests::hist::{self, Hist, number};
use vm_tests::usb4;

use super::{CABLE, LIMIT};

const JSON: &str = "/tmp/usdt.json";
const SAMPLES: &str = "/tmp/usdt.csv";
const SPAN: [(&str, &str); 1] = [("span", "completion_to_consumed")];
const THREADS: [&str; 5] = ["cq-verify", "threads", "--count", "100", "--cqe"];

/// `tbv-trace` with these options on a command; its report, and what it said.
fn traced(words: &[&str], command: &[&str]) -> Result<(Hist, String)> {
    let words = [&["tbv-trace"], words, &["-f", "json", "-o", JSON, "--"], command].concat();
    let output = usb4::run(&words, LIMIT)?.success()?;
    Ok((Hist::read(JSON)?, output.stderr))
}

/// The text that the last report makes.
fn text() -> Result<String> {
    Ok(command::must(&["tbv-trace", "hist", "--from", JSON])?.stdout)
}

/// Completions whose taking was seen, and those of which the time is known or said not to be.
fn seen_and_told(hist: &Hist) -> Result<(u64, u64)> {
    let rows = hist.rows("completions")?;
    let sum = |field: &str| rows.iter().filter_map(|row| row[field].as_u64()).sum::<u64>();
    Ok((sum("polled") + sum("consumed_by_ioctl"), hist.sum("spans", "count", &SPAN)? + sum("untimed")))
}

#[test]
fn with_probes_every_completion_is_timed_or_counted_and_without_none_is_made_up() -> Result<()> {
    let mixed = [&["message-times", "mixed", "--rounds", "200"], &CABLE[..]].concat();
    let (hist, _) = traced(&["hist", "--strict", "--usdt", "--samples", SAMPLES], &mixed)?;
    hist.adds_up()?;
    for row in hist.rows("completions")? {
        ensure!(row["mapped"] == true, "{row}");
        ensure!(row["polled"].as_u64().unwrap_or(0) == number(row, "consumed_in_user_space")?, "{row}");
    }
    let (seen, told) = seen_and_told(&hist)?;
    ensure!(seen == told && hist.sum("spans", "count", &SPAN)? > 0, "{seen} seen, {told} told");
    ensure!(hist.buckets()? == hist::samples(SAMPLES)?, "the buckets of histogram and samples differ");
    let files = hist.0["environment"]["probes"].as_array().context("no probes")?;
    let found: Vec<String> = usdt::find(&[])?.iter().map(|path| path.display().to_string()).collect();
    ensure!(*files == found && found.len() == 1, "{files:?} and {found:?}");
    let shown = text()?;
    let file = &found[0];
    ensure!(shown.contains(&format!("probes   {file}")), "{shown}");
    ensure!(
        shown.contains("POLLS THAT TOOK SOME") && shown.contains("completion_to_consumed  pid"),
        "{shown}"
    );
    ensure!(!shown.contains("--usdt tells") && !shown.contains("no probe told"), "{shown}");

    let (hist, _) = traced(&["hist", "--strict"], &mixed)?;
    hist.adds_up()?;
    let absent = |row: &Value| {
        ["polls_hit", "polls_empty", "polls_overflow", "polled"].iter().all(|n| row[n].is_null())
    };
    ensure!(hist.rows("completions")?.iter().all(absent), "{}", hist.0["completions"]);
    ensure!(
        hist.sum("spans", "count", &SPAN)? == 0 && hist.0["environment"]["probes"] == Value::Array(vec![])
    );
    let shown = text()?;
    ensure!(shown.contains("completion_to_consumed n/a: polled in user space; --usdt tells"), "{shown}");
    ensure!(
        !shown.contains("POLLS THAT TOOK SOME") && !shown.contains("completion_to_consumed  pid"),
        "{shown}"
    );
    Ok(())
}

#[test]
fn polls_are_counted_without_spans() -> Result<()> {
    let (hist, _) = traced(&["run", "--strict", "--usdt"], &[&THREADS[..], &["7"], &CABLE].concat())?;
    let rows = hist.rows("completions")?;
    ensure!(rows.iter().any(|row| row["polls_empty"].as_u64() > Some(0)), "{rows:?}");
    for row in rows {
        ensure!(row["polled"].as_u64().unwrap_or(0) == number(row, "consumed_in_user_space")?, "{row}");
        ensure!(row["untimed"].is_null(), "{row}");
    }
    ensure!(hist.rows("spans")?.is_empty(), "{}", hist.0["spans"]);
    let shown = command::must(&["tbv-trace", "report", JSON])?.stdout;
    ensure!(shown.contains("POLLS EMPTY") && shown.contains("TOLD OF LOSS"), "{shown}");
    Ok(())
}

/// Its queues are known by the inventory, and of what was in them only that it was taken.
#[test]
fn a_process_that_runs_already_is_seen_from_the_moment_of_attaching() -> Result<()> {
    let load = usb4::start(&[&["cq-verify", "load"], &CABLE[..]].concat())?;
    command::wait_until("traffic", LIMIT, || Ok(load.stdout()?.contains("running")))?;
    let pid = load.pid();
    let words = ["tbv-trace", "hist", "--usdt", "-p", &pid.to_string(), "-d", "3", "-f", "json", "-o", JSON];
    command::run(&words, LIMIT)?.success()?;
    let hist = Hist::read(JSON)?;
    let loss = &hist.0["loss"];
    // But for a call that ran when tracing began or ended.
    let lost = number(loss, "total")? - number(loss, "unmatched_return")? - number(loss, "in_flight")?;
    ensure!(lost == 0, "{loss}");
    let polled: Vec<&Value> =
        hist.rows("completions")?.iter().filter(|row| !row["polled"].is_null()).collect();
    ensure!(!polled.is_empty(), "{}", hist.0["completions"]);
    for row in polled {
        ensure!(row["before"].is_object() && row["pid"] == pid && number(row, "entries")? > 0, "{row}");
    }
    let (seen, told) = seen_and_told(&hist)?;
    ensure!(seen == told && hist.sum("spans", "count", &SPAN)? > 0, "{seen} seen, {told} told");

    let export = usb4::start(&["tbv-trace", "export", "--usdt", "-p", &pid.to_string()])?;
    command::wait_until("the server", LIMIT, || Ok(export.stderr()?.contains("serving")))?;
    let mut metrics = String::new();
    command::wait_until("polls", LIMIT, || {
        let mut server = TcpStream::connect("127.0.0.1:9477")?;
        server.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        metrics.clear();
        server.read_to_string(&mut metrics)?;
        Ok(metrics.lines().any(|line| line.starts_with("tbv_cq_polled_total") && !line.ends_with(" 0")))
    })?;
    ensure!(
        metrics.contains("kind=\"empty\"") && metrics.contains("tbv_completion_to_consumed_seconds"),
        "{metrics}"
    );
    load.signal_group(libc::SIGKILL)
}

/// The same library under another name, in another folder: nothing is known of its polls unless it is named.
#[test]
fn a_library_without_programs_on_it_is_not_taken_for_an_idle_one() -> Result<()> {
    usb4::set_up()?;
    let folder = Path::new("/tmp/another");
    fs::create_dir_all(folder)?;
    let found = usdt::find(&[])?;
    let original: &PathBuf = found.first().context("no provider")?;
    let copy = folder.join(original.file_name().context("no name")?);
    fs::copy(original, &copy)?;
    let drivers = format!("IBV_DRIVERS={}", folder.join("libusb4_rdma").display());
    let command = [&["env", &drivers], &THREADS[..], &["7"], &CABLE].concat();
    let (hist, _) = traced(&["hist", "--usdt"], &command)?;
    ensure!(hist.rows("completions")?.iter().all(|row| row["mapped"] == true && row["polled"].is_null()));
    let shown = text()?;
    ensure!(shown.contains("n/a: polled in user space, and no probe told of it"), "{shown}");
    let named = format!("--usdt={}", copy.display());
    let (hist, _) = traced(&["hist", &named], &command)?;
    let (seen, told) = seen_and_told(&hist)?;
    ensure!(seen == told && hist.sum("spans", "count", &SPAN)? > 0, "{seen} seen, {told} told");
    Ok(())
}

#[test]
fn what_cannot_be_attached_to_ends_before_anything_is_started() -> Result<()> {
    usb4::set_up()?;
    let refused = |usdt: &str, why: &str| -> Result<()> {
        let started = "/tmp/usdt-started";
        let output = usb4::run(&["tbv-trace", "run", usdt, "--", "touch", started], LIMIT)?;
        ensure!(output.code() == 3 && output.stderr.contains(why), "{usdt}: {output:?}");
        ensure!(!Path::new(started).exists(), "{usdt}: the command was started");
        Ok(())
    };
    refused("--usdt=/bin/sh", "/bin/sh: it has no probe usb4_rdma:poll_hit")?;
    refused("--usdt=/nowhere", "/nowhere: No such file")?;
    let nobody = command::run(&["tbv-trace", "attach", "--usdt", "-p", "1", "-d", "1"], LIMIT)?;
    ensure!(nobody.code() == 3 && nobody.stderr.contains("name a process"), "{nobody:?}");
    command::must(&["rmmod", "thunderbolt_ibverbs"])?;
    let words = ["tbv-trace", "run", "--usdt", "--", "true"];
    let without = command::run(&words, LIMIT);
    usb4::reload()?;
    let without = without?;
    ensure!(
        without.code() == 3 && without.stderr.contains("thunderbolt_ibverbs is not loaded"),
        "{without:?}"
    );
    Ok(())
}
