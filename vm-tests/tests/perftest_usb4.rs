//! perftest and the pingpong of rdma-core over the virtual cable: exit status, iterations, error counters.
#![cfg(feature = "vm")]

use anyhow::{Context, Result, ensure};
use vm_tests::command::{self, LIMIT, must};
use vm_tests::tier;
use vm_tests::usb4::{self, DEVICES};

/// Runs both sides of a program that takes `-d DEVICE`, and gives their outputs.
fn both(program: &str, options: &[&str], devices: [&str; 2]) -> Result<[String; 2]> {
    must(&["ip", "link", "set", "lo", "up"])?;
    let side = |device| [&[program, "-d", device] as &[&str], options].concat();
    let server = usb4::start(&side(devices[0]))?;
    // State 0A: somebody listens on the port, 18515, that all of them use.
    command::wait_until("the server", LIMIT, || {
        let sockets = std::fs::read_to_string("/proc/net/tcp")? + &std::fs::read_to_string("/proc/net/tcp6")?;
        Ok(sockets.lines().any(|line| line.contains(":4853 ") && line.contains(" 0A ")))
    })?;
    let client = usb4::run(&[&side(devices[1]) as &[&str], &["127.0.0.1"]].concat(), LIMIT)?;
    let server =
        server.finish(LIMIT)?.success().with_context(|| format!("server of {program} {options:?}"))?;
    let client = client.success().with_context(|| format!("client of {program} {options:?}"))?;
    Ok([server.stdout, client.stdout])
}

/// Rows of perftest's table: bytes and iterations. Its times mean nothing in an emulator.
fn rows(output: &str) -> Vec<(u64, u64)> {
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    output.lines().filter_map(row).collect()
}

/// Every counter that tells of an error.
fn errors() -> Result<Vec<String>> {
    let mut errors = Vec::new();
    for device in DEVICES {
        let summary = std::fs::read_to_string(format!("/sys/kernel/debug/tbv/{device}/summary"))?;
        ensure!(summary.contains("error"), "no error counters in {summary}");
        errors.extend(
            summary.lines().filter(|l| l.contains("error") && !l.ends_with(": 0")).map(str::to_owned),
        );
    }
    Ok(errors)
}

/// Runs a perftest pair; each of `sizes` must have had so many iterations.
fn perftest(program: &str, options: &[&str], sizes: &[u64], iterations: u64) -> Result<()> {
    perftest_on(program, options, DEVICES, sizes, iterations)
}

fn perftest_on(
    program: &str,
    options: &[&str],
    devices: [&str; 2],
    sizes: &[u64],
    iterations: u64,
) -> Result<()> {
    usb4::set_up()?;
    let before = errors()?;
    let count = iterations.to_string();
    let [_, client] = both(program, &[&["-F", "-n", &count], options].concat(), devices)?;
    let expected: Vec<(u64, u64)> = sizes.iter().map(|&size| (size, iterations)).collect();
    ensure!(
        rows(&client) == expected,
        "{program} {options:?}: {:?}, expected {expected:?}\n{client}",
        rows(&client)
    );
    ensure!(errors()? == before, "{program} {options:?}: {:?}", errors()?);
    Ok(())
}

/// What `-a` runs through: 2 B to 8 MiB.
fn all_sizes() -> Vec<u64> {
    (1..=23).map(|power| 1 << power).collect()
}

#[test]
fn send_latency_in_all_sizes_and_by_events() -> Result<()> {
    perftest("ib_send_lat", &[], &[2], 1000)?;
    perftest("ib_send_lat", &["-a"], &all_sizes(), 6)?;
    perftest("ib_send_lat", &["-e"], &[2], 100)
}

#[test]
fn send_bandwidth_in_all_sizes_and_by_events() -> Result<()> {
    perftest("ib_send_bw", &["-a"], &all_sizes(), 5)?;
    perftest("ib_send_bw", &["-e"], &[65536], 200)
}

#[test]
fn send_bandwidth_of_one_to_eight_queue_pairs() -> Result<()> {
    for queue_pairs in tier::pick(vec![1_u64, 3, 8], (1..=8).collect()) {
        // perftest counts the iterations of all queue pairs together.
        let pairs = queue_pairs.to_string();
        usb4::set_up()?;
        let [_, client] = both("ib_send_bw", &["-F", "-n", "100", "-q", &pairs], DEVICES)?;
        let total = queue_pairs * 100;
        ensure!(rows(&client) == [(65536, total)], "{pairs} queue pairs: {client}");
    }
    ensure!(errors()?.is_empty(), "{:?}", errors()?);
    Ok(())
}

#[test]
fn a_device_connected_to_itself_by_its_own_lid() -> Result<()> {
    perftest_on("ib_send_lat", &[], [DEVICES[0]; 2], &[2], 100)?;
    perftest_on("ib_send_bw", &["-b"], [DEVICES[1]; 2], &[65536], 100)
}

#[test]
fn pingpong_checks_its_data() -> Result<()> {
    usb4::set_up()?;
    for options in [&["-c"] as &[&str], &["-c", "-e", "-n", "100", "-s", "100000"]] {
        let iterations = if options.contains(&"-n") { "100 iters" } else { "1000 iters" };
        for output in both("ibv_rc_pingpong", options, DEVICES)? {
            ensure!(output.contains(iterations), "{options:?}: {output}");
            ensure!(!output.contains("invalid data"), "{options:?}: {output}");
        }
    }
    Ok(())
}

#[test]
fn devinfo_tells_what_programs_look_for() -> Result<()> {
    let output = usb4::run(&["ibv_devinfo", "-v"], LIMIT)?.success()?.stdout;
    for line in ["0x1d6b", "21570", "PORT_ACTIVE (4)", "InfiniBand", "node_guid:\t\t\t0200:5442:"] {
        ensure!(output.matches(line).count() >= 2, "not twice {line:?}: {output}");
    }
    Ok(())
}
