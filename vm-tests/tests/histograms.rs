//! Where the time of messages goes, against programs that know what they sent and a cable whose faults are known.
#![cfg(feature = "vm")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use vm_tests::command::{self, Running};
use vm_tests::fault::Fault;
use vm_tests::hist::{self, Hist, number};
use vm_tests::usb4::{self, DEVICES};
use vm_tests::{report, scale, tier};

const LIMIT: Duration = Duration::from_secs(400);
const JSON: &str = "/tmp/hist.json";
const SAMPLES: &str = "/tmp/hist.csv";
const CABLE: [&str; 4] = ["-d", DEVICES[0], "-p", DEVICES[1]];

/// `tbv-trace hist` with these options on message-times; its result, and what the program said.
fn measured(way: &str, options: &[&str], what: &[&str]) -> Result<(Hist, String)> {
    let polling = format!("USB4_RDMA_CQ={way}");
    let tbv = ["env", &polling, "tbv-trace", "hist", "--strict", "-f", "json", "-o", JSON];
    let words = [&tbv, options, &["--", "message-times"], what, &CABLE].concat();
    let output = usb4::run(&words, LIMIT)?.success()?;
    let hist = Hist::read(JSON)?;
    ensure!(hist.0["loss"]["total"] == 0, "{}", hist.0["loss"]);
    hist.adds_up()?;
    Ok((hist, output.stdout))
}

/// The number after `name=` in what message-times said.
fn said(output: &str, name: &str) -> Result<u64> {
    let value = output.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.with_context(|| format!("no {name} in {output:?}"))?.parse().with_context(|| output.to_owned())
}

#[test]
fn every_request_is_paired_or_counted_as_what_became_of_it() -> Result<()> {
    for way in ["ioctl", "mapped"] {
        let (hist, said_all) = measured(way, &["--samples", SAMPLES], &["mixed", "--rounds", "600"])?;
        let said = |name: &str| said(&said_all, name);
        let of = |field: &str| hist.sum("queue_pairs", field, &[]);
        let (signalled, receives) = (said("send")? + said("send_with_imm")?, said("recv")?);
        ensure!(hist.rows("queue_pairs")?.len() as u64 == said("queue_pairs")?, "queue pairs");
        ensure!(hist.rows("queue_pairs")?.iter().all(|qp| qp["destroyed"] == true), "not all are gone");
        for (field, expected) in [
            ("posted", signalled + receives),
            ("unsignalled", said("unsignalled")?),
            ("completed", said("completed")?),
            ("unsignalled_failed", said("unsignalled_failed")?),
            ("forgotten", said("forgotten")?),
            ("unknown", 0),
            ("open", 0),
            ("overflowed", 0),
        ] {
            ensure!(of(field)? == expected, "{field}: {} and not {expected}: {said_all}", of(field)?);
        }
        ensure!(said("forgotten")? > 0 && said("flushed")? > 0 && said("unsignalled_failed")? > 0);
        for (opcode, expected) in [
            ("SEND", said("send")?),
            ("SEND_WITH_IMM", said("send_with_imm")?),
            ("RECV", receives - said("forgotten")?),
        ] {
            let spans = [("span", "post_to_completion"), ("opcode", opcode)];
            let counted = hist.sum("spans", "count", &spans)?;
            ensure!(counted == expected, "{opcode}: {counted} and not {expected}");
        }
        let consumed = hist.sum("spans", "count", &[("span", "completion_to_consumed")])?;
        let untimed = hist.rows("completions")?.iter().filter_map(|cq| cq["untimed"].as_u64()).sum::<u64>();
        let by_ioctl = hist.sum("completions", "consumed_by_ioctl", &[])?;
        ensure!(consumed + untimed == by_ioctl, "{consumed} and {untimed} of {by_ioctl}");
        ensure!((consumed > 0) == (way == "ioctl"), "{way}: {consumed}");
        ensure!(
            hist.sum("completions", "produced", &[])? == of("completed")? + of("unsignalled_failed")?,
            "not every completion is accounted for"
        );
        // The histogram in the kernel and the stream of the same run.
        let (counted, streamed) = (hist.buckets()?, hist::samples(SAMPLES)?);
        ensure!(counted == streamed, "{way}: the buckets of histogram and samples differ");
    }
    Ok(())
}

#[test]
fn a_delay_on_the_cable_shifts_the_median_by_as_much() -> Result<()> {
    const DELAY_NS: u64 = 1_000_000_000;
    let latency = ["latency", "--count", "7"];
    let (before, _) = measured("mapped", &[], &latency)?;
    let (after, _) = {
        let _delay = Fault::set(DEVICES[0], "delay_ns", DELAY_NS)?;
        measured("mapped", &[], &latency)?
    };
    let median = |hist: &Hist| hist.median("post_to_completion", "send");
    let (before, after) = (median(&before)?, median(&after)?);
    // Each median is known to 1/64; a timer is never early, and somewhat late.
    let shift = after.saturating_sub(before);
    let error = (after + before) / 64;
    ensure!(shift.abs_diff(DELAY_NS) <= error, "{before} ns became {after} ns: ±{error} of {DELAY_NS}");
    Ok(())
}

#[test]
fn a_client_that_times_itself_agrees_within_the_cost_of_its_calls() -> Result<()> {
    let own = "/tmp/own-times";
    let (hist, _) = measured("mapped", &[], &["latency", "--count", "300", "--samples", own])?;
    let mut times: Vec<u64> =
        fs::read_to_string(own)?.lines().map(str::parse).collect::<Result<_, _>>().context("own times")?;
    times.sort_unstable();
    let client = times[times.len() / 2];
    let ours = hist.median("post_to_completion", "send")?;
    let calls = hist.rows("calls")?.iter().filter(|call| call["op"] == "POST_SEND");
    let post = calls.map(|call| number(&call["latency_ns"], "p50")).sum::<Result<u64>>()?;
    // The client also sees the whole of the call that posts, and the poll that finds the completion.
    ensure!(times.len() == 300 && ours <= client + client / 64, "{ours} ns, the client says {client} ns");
    ensure!(
        client - ours.min(client) <= 2 * post,
        "{ours} ns, the client says {client} ns, a call is {post} ns"
    );
    Ok(())
}

#[test]
fn retransmissions_are_as_many_as_lost_frames() -> Result<()> {
    usb4::set_up()?;
    let dropped = || -> Result<u64> {
        let file = format!("/sys/kernel/debug/tbv/{}/fault/dropped", DEVICES[0]);
        Ok(fs::read_to_string(file)?.trim().parse()?)
    };
    let before = dropped()?;
    let (hist, _) = {
        let _fault = Fault::set(DEVICES[0], "drop_every", 100)?;
        measured("ioctl", &[], &["one-way", "--count", "5000"])?
    };
    let lost = dropped()? - before;
    let of = |field: &str| hist.sum("queue_pairs", field, &[("device", DEVICES[0])]);
    let again = of("retransmits_timeout")? + of("retransmits_sequence_error")?;
    ensure!(lost >= 50 && again == lost, "{again} retransmissions for {lost} frames");
    let recovered = hist.sum("spans", "count", &[("span", "recovery")])?;
    ensure!(recovered > 0 && recovered <= again, "{recovered} recoveries of {again} retransmissions");
    Ok(())
}

#[test]
fn waits_for_a_receive_and_for_credit_are_timed() -> Result<()> {
    let (hist, _) = measured("mapped", &[], &["rnr", "--count", "10", "--late", "20"])?;
    let of = |field: &str| hist.sum("queue_pairs", field, &[]);
    let waits = hist.sum("spans", "count", &[("span", "rnr_wait")])?;
    let (refused, again) = (of("rnr")?, of("retransmits_rnr")?);
    ensure!(
        refused >= 10 && waits == refused && again == refused,
        "{waits} waits, {refused} RNRs, {again} again"
    );
    // Frames that take long to arrive leave no room for more.
    let _delay = Fault::set(DEVICES[0], "delay_ns", 5_000_000)?;
    let (hist, _) = measured("mapped", &[], &["one-way", "--count", "200", "--bytes", "65536"])?;
    let stalls = hist.sum("queue_pairs", "credit_stalls", &[])?;
    let timed = hist.sum("spans", "count", &[("span", "credit_stall")])?;
    ensure!(timed > 0 && timed <= stalls, "{timed} of {stalls} stalls");
    Ok(())
}

/// Traffic that outlasts a test.
fn load() -> Result<Running> {
    let load = usb4::start(&[&["cq-verify", "load"], &CABLE[..]].concat())?;
    command::wait_until("traffic", LIMIT, || Ok(load.stdout()?.contains("running")))?;
    Ok(load)
}

#[test]
fn requests_in_flight_at_attach_and_at_the_end_are_counted_as_such() -> Result<()> {
    // So that there is always something under way.
    usb4::set_up()?;
    let _delay = Fault::set(DEVICES[0], "delay_ns", 20_000_000)?;
    let _load = load()?;
    let words = ["tbv-trace", "hist", "--comm", "cq-verify", "-d", "2", "-f", "json", "-o", JSON];
    let (mut unknown, mut open) = (0, 0);
    // At any one moment there may be none.
    for _ in 0..5 {
        usb4::run(&words, LIMIT)?.success()?;
        let hist = Hist::read(JSON)?;
        hist.adds_up()?;
        unknown += hist.sum("queue_pairs", "unknown", &[])?;
        open += hist.sum("queue_pairs", "open", &[])?;
        ensure!(hist.sum("queue_pairs", "completed", &[])? > 0, "{}", hist.0["queue_pairs"]);
        if unknown > 0 && open > 0 {
            return Ok(());
        }
    }
    anyhow::bail!("{unknown} unknown, {open} open")
}

/// Numbers of a table's rows, added up by whose they are.
fn totals(hist: &Hist) -> Result<BTreeMap<String, u64>> {
    let mut all = BTreeMap::new();
    for (key, buckets) in hist.buckets()? {
        for (bucket, n) in buckets {
            *all.entry(format!("{key:?} {bucket:?}")).or_default() += n;
        }
    }
    for call in hist.rows("calls")? {
        *all.entry(format!("{} {} {}", call["pid"], call["op"], call["entry"])).or_default() +=
            number(call, "count")?;
    }
    let fields =
        ["posted", "completed", "unsignalled", "unknown", "unsignalled_failed", "forgotten", "overflowed"];
    for field in fields.into_iter().chain([
        "retransmits_timeout",
        "retransmits_sequence_error",
        "credit_stalls",
        "rnr",
    ]) {
        *all.entry(field.to_owned()).or_default() += hist.sum("queue_pairs", field, &[])?;
    }
    all.retain(|_, n| *n > 0);
    Ok(all)
}

#[test]
fn a_recording_s_intervals_sum_to_its_total() -> Result<()> {
    let (file, seconds) = ("/tmp/recording.jsonl", tier::pick("8", "60"));
    let _load = load()?;
    let words = ["tbv-trace", "record", "-o", file, "--comm", "cq-verify", "-d", seconds];
    usb4::run(&words, LIMIT)?.success()?;
    let text = fs::read_to_string(file)?;
    let reports = text.lines().map(Hist::parse).collect::<Result<Vec<_>>>()?;
    let (total, intervals) = reports.split_last().context("an empty recording")?;
    report::without_gap(intervals.iter().map(|interval| &interval.0), &total.0)?;
    ensure!(intervals.len() >= 3, "{} intervals", intervals.len());
    ensure!(number(&total.0, "duration_ns")? >= seconds.parse::<u64>()? * 1_000_000_000);
    let mut sum = BTreeMap::new();
    for interval in intervals {
        for (key, n) in totals(interval)? {
            *sum.entry(key).or_default() += n;
        }
    }
    let whole = totals(total)?;
    ensure!(whole.get("completed").is_some_and(|n| *n > 0), "nothing was recorded");
    ensure!(whole == sum, "the intervals do not add up to the total");
    // What is read back is what was recorded.
    for form in ["json", "text", "csv", "openmetrics", "hdr"] {
        let shown = command::must(&["tbv-trace", "hist", "--from", file, "-f", form])?.stdout;
        ensure!(!shown.is_empty(), "{form}");
        if form == "json" {
            ensure!(totals(&Hist::parse(&shown)?)? == whole, "the total differs");
        }
    }
    let heat = command::must(&["tbv-trace", "hist", "--from", file, "--heatmap"])?.stdout;
    ensure!(heat.lines().count() >= intervals.len(), "{heat}");
    command::must(&["tbv-trace", "report", file])?;
    Ok(())
}

fn http(request: &str) -> Result<String> {
    let mut stream = TcpStream::connect("127.0.0.1:9477")?;
    write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn metrics_are_served_on_loopback() -> Result<()> {
    let export = usb4::start(&["tbv-trace", "export", "-a", "--strict"])?;
    command::wait_until("the server", LIMIT, || Ok(export.stderr()?.contains("serving")))?;
    usb4::run(&[&["message-times", "latency", "--count", "100"], &CABLE[..]].concat(), LIMIT)?.success()?;
    let answer = http("GET /metrics")?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
    ensure!(head.starts_with("HTTP/1.1 200") && head.contains("application/openmetrics-text"), "{head}");
    ensure!(body.ends_with("# EOF\n"), "{body}");
    let counted: f64 = body
        .lines()
        .filter(|line| line.starts_with("tbv_post_to_completion_seconds_count"))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum();
    ensure!(counted == 200.0, "{counted} spans: {body}");
    ensure!(http("GET /")?.starts_with("HTTP/1.1 404") && http("POST /metrics")?.starts_with("HTTP/1.1 405"));
    ensure!(TcpStream::connect("127.0.0.2:9477").is_err(), "it listens elsewhere, too");
    // Whoever breaks off does no harm.
    drop(TcpStream::connect("127.0.0.1:9477")?);
    let second = usb4::run(&["tbv-trace", "export", "-a"], LIMIT)?;
    ensure!(second.code() == 2 && second.stderr.contains("cannot listen"), "{}", second.stderr);
    export.signal(libc::SIGINT)?;
    export.finish(LIMIT)?.success().map(drop)
}

/// Bytes that a process and the maps of its programs take.
fn memory(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok((line.trim().trim_end_matches(" kB").parse::<u64>()? << 10) + scale::map_memory(pid)?)
}

#[test]
fn memory_stays_as_it_is_however_long_it_runs() -> Result<()> {
    // Half an hour at the full rate, in the full tier.
    let seconds = tier::pick(10, 1800);
    let _traffic = usb4::traffic("ioctl")?;
    let file = "/tmp/long.jsonl";
    let _ = fs::remove_file(file);
    let duration = seconds.to_string();
    let words = ["tbv-trace", "record", "-o", file, "--comm", "ib_send_bw", "-d", &duration];
    let record = command::start(&words)?;
    // Seconds of tracing begin with the first line's.
    command::wait_until("the first interval", LIMIT, || {
        Ok(fs::metadata(file).is_ok_and(|file| file.len() > 0))
    })?;
    std::thread::sleep(Duration::from_secs(seconds / 3));
    let early = memory(record.pid())?;
    std::thread::sleep(Duration::from_secs(seconds - seconds / 3 - 4));
    let late = memory(record.pid())?;
    record.finish(LIMIT)?.success()?;
    ensure!(late < early + (4 << 20), "{early} bytes became {late}");
    let text = fs::read_to_string(file)?;
    let total = Hist::parse(text.lines().last().context("an empty recording")?)?;
    total.adds_up()?;
    ensure!(total.sum("queue_pairs", "completed", &[])? > 0, "{}", total.0["queue_pairs"]);
    ensure!(total.sum("queue_pairs", "open", &[])? < 10_000, "requests pile up");
    Ok(())
}

/// Packets of a trace file; an error unless it is whole.
fn packets(path: &str) -> Result<usize> {
    let bytes = fs::read(path)?;
    let (mut rest, mut count) = (bytes.as_slice(), 0);
    while let [tag, after @ ..] = rest {
        // Field 1, and its length in groups of seven bits.
        ensure!(*tag == 0x0a, "byte {} is no packet", bytes.len() - rest.len());
        let size = after.iter().position(|byte| byte & 0x80 == 0).context("it is cut off")? + 1;
        let length = after[..size].iter().rev().fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f));
        rest = after.get(size + length..).context("it is cut off")?;
        count += 1;
    }
    Ok(count)
}

#[test]
fn a_timeline_is_whole_however_it_ends_and_says_what_it_lacks() -> Result<()> {
    let file = "/tmp/timeline.pftrace";
    let workload = [&["message-times", "mixed", "--rounds", "100"], &CABLE[..]].concat();
    let of = |options: &[&str]| {
        let words = [&["tbv-trace", "timeline", "-o", file], options, &["--"], &workload].concat();
        usb4::run(&words, LIMIT)
    };
    let whole = of(&["--strict"])?.success()?;
    ensure!(whole.stderr.is_empty() && packets(file)? > 1000, "{} {}", packets(file)?, whole.stderr);
    let tiny = of(&["--strict", "--ringbuf-size", "4K"])?;
    ensure!(tiny.code() == 4 && tiny.stderr.contains("lost") && packets(file)? > 0, "{}", tiny.stderr);
    let _load = load()?;
    fs::remove_file(file)?;
    let attached = command::start(&["tbv-trace", "timeline", "-o", file, "--comm", "cq-verify"])?;
    command::wait_until("packets", LIMIT, || Ok(fs::metadata(file).is_ok_and(|file| file.len() > 100_000)))?;
    attached.signal(libc::SIGINT)?;
    attached.finish(LIMIT)?.success()?;
    ensure!(packets(file)? > 1000);
    let nowhere = command::run(&["tbv-trace", "timeline", "-o", "/nowhere/x", "-a"], LIMIT)?;
    ensure!(nowhere.code() == 2 && nowhere.stderr.contains("cannot write /nowhere/x"), "{}", nowhere.stderr);
    Ok(())
}
