//! Made-up reports, the same ones every time: for tests, and to measure how long a screen takes.

use std::collections::BTreeMap;

use tbv_core::{
    Report,
    devices::Device,
    environment::Environment,
    latency::Distribution,
    loss::Losses,
    messages::QueuePair,
    report::{Call, Completions, Interval, SCHEMA_VERSION, Totals, TotalsBefore, WorkRequests},
    system::{Cost, Link, System},
};

/// The first process.
pub const PID: u32 = 4242;
/// Its name.
pub const COMM: &str = "ib_send_lat";
/// A name that wants the terminal, with an emoji that is cut off.
pub const HOSTILE: &str = "\u{1b}[2J\u{7}a\u{202e}😀\u{fffd}";
/// The device.
pub const DEVICE: &str = "usb4_rdma0";
const SECOND: u64 = 1_000_000_000;

fn comm(process: u32) -> String {
    match process {
        0 => COMM.to_owned(),
        1 => HOSTILE.to_owned(),
        n => format!("worker-{n}"),
    }
}

fn call(process: u32, op: &str, calls: u64, middle: u64) -> Call {
    let mut times = Distribution::default();
    (0..calls).for_each(|i| times.record(middle / 2 + middle * (i * 7_919 % 1_000) / 500));
    let errors = if op == "POLL_CQ" && process == 0 { 2 } else { 0 };
    let errnos = if errors > 0 { BTreeMap::from([("EINVAL".to_owned(), errors)]) } else { BTreeMap::new() };
    Call {
        pid: PID + process,
        ns_pid: Some(17 + process),
        comm: comm(process),
        cgroup: Some("/job.slice".to_owned()),
        device: DEVICE.to_owned(),
        entry: "ioctl".to_owned(),
        op: op.to_owned(),
        count: calls,
        errors,
        errnos,
        latency_ns: times.summary(),
        latency_sum_ns: Some(times.sum),
        latency_buckets: times.filled(),
    }
}

fn queue(process: u32, number: u32, interval: u64, a_second: u64) -> Completions {
    let mapped = number % 2 == 1;
    let produced = interval * a_second;
    let left = if number == 0 { 3 } else { 0 };
    let old = produced.saturating_sub(a_second);
    let before = TotalsBefore { produced: old, consumed: old.saturating_sub(left) };
    Completions {
        pid: PID + process,
        device: DEVICE.to_owned(),
        cqn: process * 8 + number,
        entries: 256,
        mapped,
        destroyed: Some(false),
        produced,
        consumed: produced.saturating_sub(left),
        consumed_by_ioctl: if mapped { 0 } else { a_second },
        consumed_in_user_space: None,
        purged: 0,
        untimed: Some(0),
        failed: 0,
        overflows: u64::from(process == 1 && number == 0),
        occupancy_max: 7,
        occupancy_mean: Some(1.5),
        polls_hit: None,
        polls_empty: None,
        polls_overflow: None,
        polled: None,
        before: (interval > 1).then_some(before),
    }
}

fn queue_pair(process: u32, a_second: u64) -> QueuePair {
    QueuePair {
        pid: PID + process,
        comm: comm(process),
        device: DEVICE.to_owned(),
        qpn: 17 + process,
        destroyed: false,
        posted: a_second,
        unsignalled: 0,
        completed: a_second,
        unknown: 0,
        unsignalled_failed: 0,
        overflowed: 0,
        forgotten: 0,
        open: 1,
        retransmits_timeout: 0,
        retransmits_sequence_error: 1,
        retransmits_rnr: 0,
        rnr: 0,
        credit_stalls: 4,
    }
}

/// The second of this number, from 1, with so many processes; each has four operations, four completion queues and a
/// queue pair.
pub fn interval(number: u64, processes: u32) -> Report {
    // A slow wave, so that history has a form.
    let a_second = 20 + 15 * (number % 8);
    let of = |process: u32| a_second + u64::from(process % 7);
    let mut calls = Vec::new();
    for process in 0..processes {
        calls.push(call(process, "POLL_CQ", 4 * of(process), 900));
        calls.push(call(process, "POST_SEND", of(process), 2_600));
        calls.push(call(process, "POST_RECV", of(process), 1_700));
        calls.push(call(process, "QUERY_PORT", 1, 52_000));
    }
    let all = (0..processes).flat_map(|process| (0..4).map(move |queue| (process, queue)));
    let work = (0..processes).map(|process| WorkRequests {
        pid: PID + process,
        device: DEVICE.to_owned(),
        queue: "send".to_owned(),
        opcode: "SEND".to_owned(),
        posted: of(process),
        signalled: of(process),
    });
    let (count, errors) = calls.iter().fold((0, 0), |(n, e), call| (n + call.count, e + call.errors));
    Report {
        schema_version: SCHEMA_VERSION,
        environment: environment(),
        command: Vec::new(),
        duration_ns: SECOND,
        filters: Vec::new(),
        interval: Some(Interval { number, start_ns: (number - 1) * SECOND, end_ns: number * SECOND }),
        added_up: false,
        calls,
        totals: Some(Totals { count, errors }),
        completions: all.map(|(process, cq)| queue(process, cq, number, 30)).collect(),
        work_requests: work.collect(),
        spans: Vec::new(),
        queue_pairs: (0..processes).map(|process| queue_pair(process, of(process))).collect(),
        fall_backs: Vec::new(),
        loss: Losses::default(),
        ran_at_begin: 0,
        system: Some(System {
            ended: Vec::new(),
            devices: vec![DEVICE.to_owned()],
            links: vec![Link {
                device: DEVICE.to_owned(),
                port: 1,
                state: "ACTIVE".to_owned(),
                physical_state: "LinkUp".to_owned(),
                rate: "40 Gb/sec (4X QDR)".to_owned(),
                sent_bytes: Some(number * 65_536 * 30),
                received_bytes: Some(number * 1_024),
                retransmits: Some(1),
            }],
            cost: Some(Cost { run_ns: 1_250_000, runs: 2_500 }),
        }),
        exit_status: None,
    }
}

fn environment() -> Environment {
    Environment {
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: "6.12.57-amd64".to_owned(),
        machine: "x86_64".to_owned(),
        cpu: "QEMU TCG CPU version 2.5+".to_owned(),
        cpus: 2,
        hook: "fentry".to_owned(),
        hook_limits: None,
        hooks_passed_over: Vec::new(),
        devices_known: true,
        driver_trace_abi: Some(1),
        existing_left_out: None,
        probes: Vec::new(),
        modules: Vec::new(),
        devices: ["usb4_rdma0", "usb4_rdma1"]
            .iter()
            .enumerate()
            .map(|(number, name)| Device {
                name: (*name).to_owned(),
                uverbs: format!("uverbs{number}"),
                node_guid: format!("0200:5442:0000:000{number}"),
                abi_version: 1,
                identity: 0,
            })
            .collect(),
        mode: "ioctl".to_owned(),
    }
}
