//! What the provider's probes tell: every completion that is taken in user space, once, and of which it is known when it
//! was put in. What cannot be paired is counted as such.
#![cfg(feature = "vm")]

mod command_line;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tbv_core::{Filter, Names, Options, Report, Span, Spans, Tracer, usdt};
use tbv_probes::pair::Devices;
use tbv_probes::queue::Lane;
use tbv_probes::verbs::Cq;
use vm_tests::command;
use vm_tests::command::LIMIT;
use vm_tests::schema::{self, Schema};
use vm_tests::usb4::{self, DEVICES};

const CABLE: [&str; 4] = ["-d", DEVICES[0], "-p", DEVICES[1]];

/// Traces this process and what it starts, with the probes of `libraries`.
fn start(libraries: Vec<PathBuf>) -> Result<Tracer> {
    let filter = Filter { descendants: true, ..Filter::default() };
    Ok(Tracer::start(&Options { filter, spans: Spans::Counted, usdt: libraries, ..Options::default() })?)
}

/// The end of tracing, as a report says it.
fn stop(mut tracer: Tracer) -> Result<Told> {
    let names = Names::now();
    let environment = tracer.environment(&names.devices);
    let report = Report::new(&tracer.stop()?, environment, &names);
    schema::check(Schema::Report, &serde_json::to_value(&report)?)?;
    ensure!(report.loss.total == 0, "{:?}", report.loss);
    let taken = report.completions.iter().map(|cq| cq.consumed - cq.purged).sum();
    let untimed = report.completions.iter().filter_map(|cq| cq.untimed).sum();
    let name = tbv_core::messages::span_name(Span::CompletionToConsumed);
    let timed = report.spans.iter().filter(|span| span.span == name).map(|span| span.count).sum();
    Ok(Told { report, taken, timed, untimed })
}

struct Told {
    report: Report,
    /// Completions that consumers took, as the driver tells.
    taken: u64,
    timed: u64,
    untimed: u64,
}

impl Told {
    /// Everything was seen; and each completion is known from its begin to its end, or counted as not.
    fn is_whole(&self) -> Result<()> {
        for cq in &self.report.completions {
            let in_user_space =
                if cq.mapped { Some(cq.consumed - cq.consumed_by_ioctl - cq.purged) } else { None };
            ensure!(cq.consumed_in_user_space == in_user_space, "{cq:?}");
            // Of a queue that nobody polled there, no probe told.
            ensure!(cq.polled.unwrap_or(0) == in_user_space.unwrap_or(0), "{cq:?}");
            ensure!(cq.polls_hit <= cq.polled && (cq.mapped || cq.polled.is_none()), "{cq:?}");
        }
        let Told { taken, timed, untimed, .. } = self;
        ensure!(*taken > 0, "nothing was taken: {:?}", self.report.completions);
        ensure!(taken == &(timed + untimed), "{taken} taken, {timed} timed, {untimed} untimed");
        println!(
            "{taken} taken, {timed} timed, {untimed} untimed, {} empty polls",
            self.sum(|cq| cq.polls_empty)
        );
        Ok(())
    }

    fn sum(&self, of: impl Fn(&tbv_core::report::Completions) -> Option<u64>) -> u64 {
        self.report.completions.iter().filter_map(of).sum()
    }
}

/// Runs cq-verify traced, with the provider that `way` makes it use.
fn traced(way: &str, arguments: &[&str]) -> Result<Told> {
    usb4::set_up()?;
    let tracer = start(usdt::find(&[])?)?;
    let words = [&["env", way, "cq-verify"], &arguments[..1], &CABLE, &arguments[1..]].concat();
    let output = usb4::run(&words, LIMIT)?.success()?;
    print!("{arguments:?} {}", output.stdout);
    stop(tracer)
}

fn first_total(total: u64) -> Result<()> {
    usb4::set_up()?;
    DEVICES.iter().try_for_each(|device| {
        let file = format!("/sys/kernel/debug/tbv/{device}/cq_first");
        fs::write(&file, total.to_string()).with_context(|| file.clone())
    })
}

/// Queue pairs that share a queue, and messages on each.
const LANES: u64 = 4;
const COUNT: u64 = 150;

#[test]
fn eight_threads_tell_of_every_completion_at_any_capacity_and_total() -> Result<()> {
    for (first, cqe) in [(0, "1"), (u64::MAX - 4, "7"), (0, "256")] {
        first_total(first)?;
        let (lanes, count) = (LANES.to_string(), COUNT.to_string());
        let arguments = ["threads", "--cqe", cqe, "--lanes", &lanes, "--count", &count];
        let told = traced("USB4_RDMA_DEBUG=1", &arguments);
        first_total(0)?;
        let told = told.with_context(|| format!("capacity {cqe} from {first}"))?;
        told.is_whole()?;
        // Receives are polled by more at once than are followed.
        let polled =
            told.report.completions.iter().find(|cq| cq.produced == LANES * COUNT).context("no queue")?;
        // A thread may be held up for long between taking and telling.
        let untimed = polled.untimed.unwrap_or(u64::MAX);
        ensure!(untimed < polled.produced / 10 && polled.polls_empty > Some(0), "{polled:?}");
        ensure!(told.report.fall_backs.is_empty(), "{:?}", told.report.fall_backs);
        let longest = told.report.spans.iter().filter_map(|span| Some(span.latency_ns.as_ref()?.max)).max();
        ensure!(longest.is_some_and(|ns| ns < LIMIT.as_nanos() as u64), "{longest:?}");
    }
    Ok(())
}

#[test]
fn losses_are_told() -> Result<()> {
    let told = traced("USB4_RDMA_DEBUG=1", &["overflow", "--cqe", "7"])?;
    told.is_whole()?;
    let overflows: u64 = told.report.completions.iter().map(|cq| cq.overflows).sum();
    ensure!(overflows > 0 && told.sum(|cq| cq.polls_overflow) > 0, "{:?}", told.report.completions);
    Ok(())
}

#[test]
fn queues_that_are_destroyed_with_completions_in_them_leave_no_wrong_pair() -> Result<()> {
    let told = traced("USB4_RDMA_DEBUG=1", &["load", "--destroy-for", "3000"])?;
    told.is_whole()?;
    ensure!(told.report.completions.iter().any(|cq| cq.purged > 0), "{:?}", told.report.completions);
    Ok(())
}

/// Polled by system call the queue is not in user space, and nothing changes.
#[test]
fn polling_by_system_call_is_as_without_probes() -> Result<()> {
    let told = traced("USB4_RDMA_CQ=ioctl", &["threads", "--cqe", "7", "--count", "100"])?;
    told.is_whole()?;
    ensure!(told.untimed == 0 && told.timed > 0 && told.sum(|cq| cq.polls_hit) == 0, "{}", told.untimed);
    Ok(())
}

/// When a queue pair goes, the completions of others move in the ring: they are told, and not timed.
#[test]
fn what_a_purge_has_moved_is_untimed() -> Result<()> {
    const GOES: u64 = 5;
    const STAYS: u64 = 7;
    const ENTRIES: i32 = 61;
    usb4::set_up()?;
    let tracer = start(usdt::find(&[])?)?;
    {
        let [device, peer] = DEVICES.map(|name| Some(name.to_owned()));
        let ports = Devices { device, peer, port: 1, gid_index: None }.open()?;
        let queue = Cq::new(&ports.contexts[0], ENTRIES)?;
        let lane =
            || -> Result<Lane> { Ok(Lane::new(&ports, 16, &queue, &Cq::new(&ports.contexts[1], 16)?)?) };
        let (mut goes, mut stays) = (lane()?, lane()?);
        for _ in 0..GOES {
            goes.send()?;
        }
        for _ in 0..STAYS {
            stays.send()?;
        }
        command::wait_until("completions", LIMIT, || {
            let cqs = tracer.snapshot()?.cqs;
            Ok(cqs.values().any(|cq| cq.entries == ENTRIES as u32 && cq.produced == GOES + STAYS))
        })?;
        drop(goes);
        ensure!(queue.poll(4)?.len() == 4);
        // What comes after is known again.
        stays.send()?;
        let mut left = STAYS + 1 - 4;
        command::wait_until("the rest", LIMIT, || {
            left -= queue.poll(16)?.len() as u64;
            Ok(left == 0)
        })?;
        stays.receive_all()?;
    }
    let told = stop(tracer)?;
    told.is_whole()?;
    let cq = told.report.completions.iter().find(|cq| cq.entries == ENTRIES as u32).context("no queue")?;
    ensure!(cq.purged == GOES && cq.polled == Some(STAYS + 1) && cq.untimed == Some(STAYS), "{cq:?}");
    Ok(())
}

#[test]
fn falling_back_is_told_with_its_reason() -> Result<()> {
    usb4::set_up()?;
    let tracer = start(usdt::find(&[])?)?;
    let gone = usb4::start(&[&["cq-verify", "gone", "--cqe", "20"], &CABLE as &[&str]].concat())?;
    command::wait_until("receives", LIMIT, || Ok(gone.stdout()?.contains("running")))?;
    let cables = Path::new("/sys/kernel/debug/tbv/cables");
    fs::write(cables, "0").context("unplugging")?;
    let ended = gone.finish(LIMIT);
    fs::write(cables, "1").context("plugging in")?;
    usb4::devices_are_there()?;
    ended?.success()?;
    let told = stop(tracer)?;
    ensure!(fell_back(&told, "device_gone") == 1, "{:?}", told.report.fall_backs);
    // Test doubles of the module (kmod/double.h) whose offers are none.
    command::must(&["rmmod", "thunderbolt_ibverbs"])?;
    let doubles = [(1, "not_offered"), (3, "bad_offer"), (6, "not_mapped"), (0, "")];
    let result = doubles.iter().try_for_each(|(double, reason)| {
        usb4::load_double(&format!("double={double}"))?;
        let told = traced("USB4_RDMA_DEBUG=1", &["threads", "--cqe", "7", "--count", "50"])?;
        command::must(&["rmmod", "thunderbolt_ibverbs"])?;
        told.is_whole()?;
        let queues = if *double == 0 { 0 } else { told.report.completions.len() as u64 };
        ensure!(fell_back(&told, reason) == queues, "double {double}: {:?}", told.report.fall_backs);
        Ok(())
    });
    usb4::reload()?;
    result
}

/// Queues that fell back for this reason; for another none may have.
fn fell_back(told: &Told, reason: &str) -> u64 {
    match &told.report.fall_backs[..] {
        [fall_back] if fall_back.reason == reason => fall_back.queues,
        [] => 0,
        _ => u64::MAX,
    }
}

#[test]
fn a_process_that_has_it_mapped_leads_to_the_library() -> Result<()> {
    usb4::set_up()?;
    let load = usb4::start(&[&["cq-verify", "load"], &CABLE as &[&str]].concat())?;
    command::wait_until("traffic", LIMIT, || Ok(load.stdout()?.contains("running")))?;
    let found = usdt::find(&[load.pid()])?;
    let (installed, anywhere) = (usdt::find(&[])?, usdt::find_anywhere()?);
    // While it runs: by its root it is found.
    let real = |paths: &[PathBuf]| paths.iter().map(fs::read).collect::<Result<Vec<_>, _>>();
    let [of_process, of_system, of_any] = [real(&found)?, real(&installed)?, real(&anywhere)?];
    load.signal_group(libc::SIGKILL)?;
    ensure!(found.len() == 1 && of_process == of_system, "{found:?}, {installed:?}");
    // One file, though installed and mapped.
    ensure!(of_any == of_process, "{anywhere:?}");
    ensure!(usdt::find(&[1]).is_err_and(|e| e.to_string().contains("name a process")));
    // Something else.
    let other = start(vec!["/bin/sh".into()]).err().map(|e| e.to_string()).unwrap_or_default();
    ensure!(other.contains("it has no probe usb4_rdma:poll_hit"), "{other}");
    // Without probes nothing is said of them.
    let report = stop(start(Vec::new())?)?.report;
    let json: Value = serde_json::to_value(&report)?;
    ensure!(json["fall_backs"].as_array().is_some_and(Vec::is_empty), "{json}");
    Ok(())
}
