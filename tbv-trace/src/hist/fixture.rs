//! A report with all that a distribution can be of.

use tbv_core::{
    Report, Span,
    environment::Module,
    latency::Distribution,
    loss::Losses,
    messages::{QueuePair, SpanRow, span_name},
    report::{Call, Completions, FallBacks, Interval, Totals, UNKNOWN_DEVICE, WorkRequests},
};

use crate::golden;

/// A name that wants to be a field of its own, a line of its own, and the terminal.
pub(super) const HOSTILE: &str = "a,b \"\n\u{1b}[2J";
const DEVICE: &str = "usb4_rdma0";
const PROCESSES: [(u32, &str, u32); 2] = [(4242, "ib_send_lat", 17), (4243, HOSTILE, 18)];

/// `n` values around `middle`, the same ones every time, with a long tail.
fn values(middle: u64, n: u64) -> Distribution {
    let mut times = Distribution::default();
    for i in 0..n {
        // A sequence that visits all parts of the range, without a generator of random numbers.
        let part = i * 7_919 % 1_000;
        let tail = if i % 100 == 99 { middle * (1 + i % 13) } else { 0 };
        times.record(middle / 2 + middle * part / 1_000 + tail);
    }
    times
}

fn span(span: Span, process: usize, opcode: Option<&str>, times: &Distribution) -> SpanRow {
    let (pid, comm, qpn) = PROCESSES[process];
    SpanRow {
        span: span_name(span).to_owned(),
        pid,
        comm: comm.to_owned(),
        device: DEVICE.to_owned(),
        qpn,
        queue: if opcode == Some("RECV") { "receive" } else { "send" }.to_owned(),
        opcode: opcode.map(str::to_owned),
        count: times.count,
        sum_ns: times.sum,
        latency_ns: times.summary(),
        latency_buckets: times.filled(),
    }
}

fn call(process: usize, op: &str, entry: &str, times: &Distribution) -> Call {
    let (pid, comm, _) = PROCESSES[process];
    Call {
        pid,
        ns_pid: None,
        comm: comm.to_owned(),
        cgroup: None,
        device: DEVICE.to_owned(),
        entry: entry.to_owned(),
        op: op.to_owned(),
        count: times.count,
        errors: 0,
        errnos: Default::default(),
        latency_sum_ns: Some(times.sum),
        latency_ns: times.summary(),
        latency_buckets: times.filled(),
    }
}

fn queue_pair(process: usize) -> QueuePair {
    let (pid, comm, qpn) = PROCESSES[process];
    let other = process == 1;
    QueuePair {
        pid,
        comm: comm.to_owned(),
        device: DEVICE.to_owned(),
        qpn,
        destroyed: other,
        posted: if other { 1_510 } else { 1_501 },
        unsignalled: if other { 40 } else { 0 },
        completed: 1_500,
        unknown: if other { 0 } else { 3 },
        unsignalled_failed: if other { 2 } else { 0 },
        overflowed: 0,
        forgotten: if other { 10 } else { 0 },
        open: if other { 0 } else { 1 },
        retransmits_timeout: 2,
        retransmits_sequence_error: 5,
        retransmits_rnr: 3,
        rnr: 4,
        credit_stalls: 20,
    }
}

fn completions(process: usize, mapped: bool) -> Completions {
    Completions {
        pid: PROCESSES[process].0,
        device: DEVICE.to_owned(),
        cqn: 30 + process as u32,
        entries: 256,
        mapped,
        destroyed: None,
        produced: 1_503,
        consumed: 1_500,
        consumed_by_ioctl: if mapped { 0 } else { 1_500 },
        consumed_in_user_space: mapped.then_some(1_500),
        purged: 0,
        untimed: Some(if mapped { 0 } else { 3 }),
        failed: 2,
        overflows: 0,
        occupancy_max: 7,
        occupancy_mean: Some(1.5),
        polls_hit: mapped.then_some(1_200),
        polls_empty: mapped.then_some(70_000),
        polls_overflow: mapped.then_some(1),
        // A thread was killed before it told of ten.
        polled: mapped.then_some(1_490),
        before: None,
    }
}

fn spans(scale: u64) -> Vec<SpanRow> {
    let mut all = Vec::new();
    for process in 0..2 {
        let slower = 1 + process as u64;
        for (opcode, middle, n) in
            [("SEND", 16_000, 900), ("SEND_WITH_IMM", 21_000, 100), ("RECV", 250_000, 500)]
        {
            let times = values(middle * slower * scale, n);
            all.push(span(Span::PostToCompletion, process, Some(opcode), &times));
        }
        // The other process's queue is polled in user space.
        let sends = [997, 990][process];
        all.push(span(
            Span::CompletionToConsumed,
            process,
            Some("SEND"),
            &values(1_500 * slower * scale, sends),
        ));
        all.push(span(Span::CompletionToConsumed, process, Some("RECV"), &values(900 * slower * scale, 500)));
        all.push(span(Span::Recovery, process, None, &values(4_000_000 * scale, 7)));
        all.push(span(Span::RnrWait, process, None, &values(10_000_000 * scale, 3)));
        all.push(span(Span::CreditStall, process, None, &values(40_000 * scale, 20)));
    }
    all
}

/// Of the whole time.
pub(super) fn report() -> Report {
    let mut report = golden::report("report.json");
    report.environment.driver_trace_abi = Some(2);
    let srcversion = Some("89ABCDEF".to_owned());
    report.environment.modules.push(Module { name: "thunderbolt_ibverbs".to_owned(), srcversion });
    report.environment.probes = vec!["/usr/lib64/libibverbs/libusb4_rdma-rdmav34.so".to_owned()];
    report.spans = spans(1);
    report.calls = vec![
        call(0, "POLL_CQ", "ioctl", &values(700, 4_000)),
        call(0, "POLL_CQ", "write", &values(800, 10)),
        call(0, "POST_SEND", "ioctl", &values(2_100, 1_000)),
        call(1, "POST_SEND", "ioctl", &values(2_300, 1_000)),
        // Nothing of it was timed.
        Call { count: 2, ..call(1, "CREATE_QP", "ioctl", &Distribution::default()) },
    ];
    report.calls[4].device = UNKNOWN_DEVICE.to_owned();
    report.totals = Some(Totals { count: 6_012, errors: 0 });
    report.queue_pairs = vec![queue_pair(0), queue_pair(1)];
    report.completions = vec![completions(0, false), completions(1, true)];
    report.fall_backs = vec![FallBacks {
        pid: 4242,
        comm: "ib_send_lat".to_owned(),
        reason: "not_mapped".to_owned(),
        queues: 1,
    }];
    report.work_requests = vec![WorkRequests {
        pid: 4242,
        device: DEVICE.to_owned(),
        queue: "send".to_owned(),
        opcode: "SEND".to_owned(),
        posted: 901,
        signalled: 901,
    }];
    report.loss = Losses { backward_span: 1, ..Losses::default() }.summed();
    report
}

/// Three seconds of it, one by one; nothing happened in the last.
pub(super) fn intervals() -> Vec<Report> {
    (1..=3)
        .map(|number| {
            let mut part = report();
            part.spans = if number == 3 { Vec::new() } else { spans(number) };
            part.calls.clear();
            let ns = |seconds: u64| seconds * 1_000_000_000;
            part.set_interval(Interval { number, start_ns: ns(number - 1), end_ns: ns(number) });
            part.loss = Losses::default();
            part
        })
        .collect()
}
