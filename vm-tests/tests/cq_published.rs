//! Completion queues that our driver publishes to user space: correct for any capacity and total, whoever polls; and
//! harmless, whatever happens to them. The runner fails the whole guest on any WARN, BUG or Oops.
#![cfg(feature = "vm")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use vm_tests::command::{self, LIMIT, Output, Running, must};
use vm_tests::tier;
use vm_tests::usb4::{self, DEVICES};

const CABLE: [&str; 4] = ["-d", DEVICES[0], "-p", DEVICES[1]];

/// Random moments at which each end is tried.
fn moments() -> u64 {
    tier::pick(4, 10)
}

/// Starts cq-verify on both ends of the cable.
fn start(environment: &str, check: &str, arguments: &[&str]) -> Result<Running> {
    usb4::start(&[&["env", environment, "cq-verify", check], &CABLE as &[&str], arguments].concat())
}

fn verify_with(environment: &str, check: &str, arguments: &[&str]) -> Result<Output> {
    let output = start(environment, check, arguments)?.finish(LIMIT)?;
    let output = output.success().with_context(|| format!("{environment} {check} {arguments:?}"))?;
    print!("{check} {arguments:?} {}", output.stdout);
    Ok(output)
}

/// On published queues; a provider that doesn't map says why, which fails here.
fn verify(check: &str, arguments: &[&str]) -> Result<Output> {
    let output = verify_with("USB4_RDMA_DEBUG=1", check, arguments)?;
    ensure!(output.stderr.is_empty(), "{}", output.stderr);
    Ok(output)
}

/// The number after `name=`.
fn number(output: &Output, name: &str) -> Result<u64> {
    let value = output.stdout.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.with_context(|| format!("no {name} in {}", output.stdout))?.parse().context("no number")
}

fn first_total(total: u64) -> Result<()> {
    usb4::set_up()?;
    DEVICES.iter().try_for_each(|device| {
        let file = format!("/sys/kernel/debug/tbv/{device}/cq_first");
        fs::write(&file, total.to_string()).with_context(|| file.clone())
    })
}

/// Nothing is left of what ran, and what comes next works.
fn unharmed() -> Result<()> {
    let mut left = 0;
    command::wait_until("the objects' end", LIMIT, || {
        left = usb4::live()?;
        Ok(left == 0)
    })
    .with_context(|| format!("{left} objects left"))?;
    verify("threads", &["--count", "20"]).map(drop)
}

/// Milliseconds that differ from round to round and from run to run.
fn random_ms(round: u64) -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (u64::from(now.subsec_nanos()) / 1000 + round * 7919) % 700
}

#[test]
fn eight_threads_get_every_completion_once_and_in_order_at_any_capacity_and_total() -> Result<()> {
    // From zero they begin in every other test.
    for first in [(1 << 32) - 5, u64::MAX - 4] {
        first_total(first)?;
        let done = ["1", "2", "3", "7", "4096"].iter().try_for_each(|cqe| {
            verify("threads", &["--cqe", cqe, "--count", "150"]).with_context(|| format!("from {first}"))?;
            verify("overflow", &["--cqe", if *cqe == "4096" { "300" } else { cqe }]).map(drop)
        });
        first_total(0)?;
        done?;
    }
    Ok(())
}

#[test]
fn extended_queues_work_mapped_and_by_ioctl() -> Result<()> {
    usb4::set_up()?;
    let own = ["cq-verify", "extended", "-d", DEVICES[0], "--count", "500"];
    for way in ["USB4_RDMA_CQ=ioctl", "USB4_RDMA_CQ=mapped"] {
        let output = usb4::run(&[&["env", way] as &[&str], &own].concat(), LIMIT)?.success()?;
        ensure!(number(&output, "completions")? >= 1000, "{}", output.stdout);
    }
    Ok(())
}

/// A poll loop that ignores errors must end on the ioctl path, too; and the kernel is one more consumer of a mapped
/// queue for a provider that polls by system call.
#[test]
fn other_ways_to_poll_see_the_same() -> Result<()> {
    usb4::set_up()?;
    let regressed = usb4::double("double-regressed")?;
    for way in ["USB4_RDMA_CQ=ioctl", &regressed] {
        verify_with(way, "threads", &["--cqe", "7", "--count", "300"])?;
        verify_with(way, "overflow", &["--cqe", "1"])?;
    }
    // Its polls find the page scribbled over.
    verify_with(&regressed, "hostile", &["--cqe", "4096", "--count", "300"])?;
    unharmed()
}

#[test]
fn what_is_not_allowed_is_refused() -> Result<()> {
    for cqe in ["1", "84", "85", "4096"] {
        let output = verify("access", &["--cqe", cqe])?;
        ensure!(number(&output, "tries")? > 10, "{}", output.stdout);
    }
    let output = start("USB4_RDMA_DEBUG=1", "write-ring", &[])?.finish(LIMIT)?;
    ensure!(output.stdout.contains("writing"), "{}{}", output.stdout, output.stderr);
    ensure!(output.code() == 128 + libc::SIGSEGV, "exit {}", output.code());
    unharmed()
}

#[test]
fn a_hostile_process_harms_nobody() -> Result<()> {
    for cqe in ["1", "4096"] {
        let output = verify("hostile", &["--cqe", cqe, "--count", "500"])?;
        ensure!(number(&output, "scribbles")? >= 100_000 && number(&output, "messages")? >= 500);
    }
    let hostile = start("USB4_RDMA_DEBUG=1", "hostile", &["--count", "100000000"])?;
    command::wait_until("the hostile process", LIMIT, || Ok(usb4::live()? > 8))?;
    let rc_verify = ["rc-verify", "-d", DEVICES[0], "-p", DEVICES[1], "--max-size", "4K", "--count", "300"];
    let bystander = usb4::run(&rc_verify, LIMIT)?.success()?;
    ensure!(bystander.stderr.is_empty(), "{}", bystander.stderr);
    hostile.signal_group(libc::SIGKILL)?;
    // Unless it had ended before, by itself.
    let ended = hostile.finish(LIMIT)?;
    ensure!(ended.code() == 128 + libc::SIGKILL, "{}: {}{}", ended.code(), ended.stdout, ended.stderr);
    unharmed()
}

#[test]
fn a_forked_child_gets_errors_and_takes_nothing() -> Result<()> {
    for _ in 0..moments() {
        ensure!(number(&verify("fork", &[])?, "completions")? == 16);
    }
    unharmed()
}

/// Starts traffic that two threads poll, and waits for some random time of it.
fn polled(round: u64) -> Result<Running> {
    let running = start("USB4_RDMA_DEBUG=1", "load", &[])?;
    command::wait_until("traffic", LIMIT, || Ok(running.stdout()?.contains("running")))?;
    std::thread::sleep(Duration::from_millis(random_ms(round)));
    Ok(running)
}

#[test]
fn queues_are_destroyed_with_completions_in_them_and_files_closed_while_they_are_polled() -> Result<()> {
    let output = verify("load", &["--destroy-for", "5000"])?;
    ensure!(number(&output, "queues")? >= moments(), "{}", output.stdout);
    unharmed()?;
    for round in 0..moments() {
        verify("load", &["--close-after", &random_ms(round).to_string()])?;
    }
    ensure!(number(&verify("left", &[])?, "mappings")? == 2);
    unharmed()
}

#[test]
fn processes_are_killed_while_they_poll() -> Result<()> {
    for round in 0..moments() {
        let running = polled(round)?;
        running.signal_group(libc::SIGKILL)?;
        let ended = running.finish(LIMIT)?;
        ensure!(ended.code() == 128 + libc::SIGKILL, "{}: {}{}", ended.code(), ended.stdout, ended.stderr);
    }
    unharmed()
}

/// The devices go, by rmmod or as if their host were unplugged, and come back.
fn unplugged(by_rmmod: bool, meanwhile: impl FnOnce() -> Result<()>) -> Result<()> {
    let cables = Path::new("/sys/kernel/debug/tbv/cables");
    if by_rmmod {
        must(&["rmmod", "thunderbolt_ibverbs"])?;
    } else {
        fs::write(cables, "0").context("unplugging")?;
    }
    ensure!(!Path::new("/sys/class/infiniband").join(DEVICES[0]).exists(), "still there");
    let result = meanwhile();
    if by_rmmod {
        usb4::reload()?;
    } else {
        fs::write(cables, "1").context("plugging in")?;
        usb4::devices_are_there()?;
    }
    result
}

#[test]
fn devices_go_while_they_are_polled() -> Result<()> {
    for round in 0..2 * moments() {
        let running = polled(round)?;
        unplugged(round % 2 == 0, || {
            let output = running.finish(LIMIT)?.success().with_context(|| format!("round {round}"))?;
            ensure!(output.stderr.is_empty(), "{}", output.stderr);
            ensure!(number(&output, "good")? > 0 && number(&output, "errors")? >= 1, "{}", output.stdout);
            Ok(())
        })?;
    }
    unharmed()
}

#[test]
fn what_is_posted_is_flushed_into_the_mapped_queue_when_the_device_goes() -> Result<()> {
    for by_rmmod in [true, false] {
        let running = start("USB4_RDMA_DEBUG=1", "gone", &["--cqe", "20"])?;
        command::wait_until("receives", LIMIT, || Ok(running.stdout()?.contains("running")))?;
        unplugged(by_rmmod, || {
            let output = running.finish(LIMIT)?.success()?;
            ensure!(number(&output, "flushed")? == 20, "{}", output.stdout);
            Ok(())
        })?;
    }
    unharmed()
}

#[test]
fn a_wait_for_an_event_never_sleeps_on_a_completion_that_is_there() -> Result<()> {
    let rounds = tier::pick("20000", "1000000");
    let running = start("USB4_RDMA_DEBUG=1", "events", &["--rounds", rounds])?;
    let output = running.finish(Duration::from_secs(3000))?.success()?;
    print!("{}", output.stdout);
    ensure!(number(&output, "slept")? > 1000, "it hardly ever slept: {}", output.stdout);
    ensure!(output.stderr.is_empty(), "{}", output.stderr);
    Ok(())
}

#[test]
fn a_module_that_forgets_events_is_found_out() -> Result<()> {
    usb4::set_up()?;
    must(&["rmmod", "thunderbolt_ibverbs"])?;
    let found = || {
        usb4::load_double("double=8")?;
        let output = start("USB4_RDMA_DEBUG=1", "events", &["--limit", "2000"])?.finish(LIMIT)?;
        must(&["rmmod", "thunderbolt_ibverbs"])?;
        ensure!(
            output.code() == 1 && output.stderr.contains("no event"),
            "{}{}",
            output.stdout,
            output.stderr
        );
        Ok(())
    };
    let result = found();
    usb4::reload()?;
    result
}

/// Old and new, right and wrong: whatever doesn't fit is polled by system call, and works.
#[test]
fn providers_and_modules_of_other_ages_fall_back() -> Result<()> {
    usb4::set_up()?;
    let work = |environment: &str| verify_with(environment, "threads", &["--cqe", "7", "--count", "50"]);
    let old = work(&usb4::double("double-old")?)?;
    ensure!(old.stderr.is_empty(), "{}", old.stderr);
    // What the module's test doubles do (kmod/double.h), and what the provider says to it.
    let doubles = [
        (1, "does not offer"),
        (2, "layout 2, not 1"),
        (3, "capacity 28, not 7"),
        (4, "length 8192, not 4096"),
        (5, "reserved 1, not 0"),
        (6, "cannot map the ring"),
        (7, "cannot map the consumer page"),
        (0, ""),
    ];
    must(&["rmmod", "thunderbolt_ibverbs"])?;
    let result = doubles.iter().try_for_each(|(which, reason)| {
        usb4::load_double(&format!("double={which}"))?;
        let output = work("USB4_RDMA_DEBUG=1")?;
        let ok = if reason.is_empty() { output.stderr.is_empty() } else { output.stderr.contains(reason) };
        must(&["rmmod", "thunderbolt_ibverbs"])?;
        ensure!(ok, "double {which}: {:?}", output.stderr);
        Ok(())
    });
    usb4::reload()?;
    result?;
    unharmed()
}
