//! Fields of one process's calls of one operation.

use super::{Field, Unit, Value, per_second};
use crate::{latency::Latency, report::Call};

fn latency(call: &Call, read: impl Fn(&Latency) -> Option<u64>) -> Value<'static> {
    Value::number(call.latency_ns.as_ref().and_then(read))
}

/// The fields, in the order of columns.
pub const FIELDS: &[Field<Call>] = &[
    Field::<Call>::new("pid", "PID", Unit::Id, "Process id, in the initial pid namespace.", |call, _| {
        Value::Number(call.pid.into())
    })
    .on_demand(),
    Field::<Call>::new("ns_pid", "NSPID", Unit::Id, "Process id in its own pid namespace.", |call, _| {
        Value::number(call.ns_pid.map(u64::from))
    })
    .on_demand(),
    Field::<Call>::new("comm", "COMM", Unit::Word, "The process's name at its first call.", |call, _| {
        Value::text(&call.comm)
    })
    .on_demand(),
    Field::<Call>::new(
        "cgroup",
        "CGROUP",
        Unit::Word,
        "The cgroup (version 2) that it was in at its first call.",
        |call, _| call.cgroup.as_deref().map_or(Value::Absent, Value::text),
    )
    .on_demand(),
    Field::<Call>::new(
        "op",
        "OPERATION",
        Unit::Word,
        "The operation, named as in the uapi headers.",
        |call, _| Value::text(&call.op),
    ),
    Field::<Call>::new("entry", "VIA", Unit::Word, "The system call: `ioctl` or `write`.", |call, _| {
        Value::text(&call.entry)
    }),
    Field::<Call>::new(
        "calls_per_second",
        "CALLS/S",
        Unit::PerSecond,
        "Calls that returned, a second.",
        |call, seconds| per_second(call.count, seconds),
    ),
    Field::<Call>::new("count", "CALLS", Unit::Count, "Calls that returned.", |call, _| {
        Value::Number(call.count)
    }),
    Field::<Call>::new("errors", "ERRORS", Unit::Count, "Calls that returned an error.", |call, _| {
        Value::Number(call.errors)
    }),
    Field::<Call>::new(
        "p50_ns",
        "P50",
        Unit::Nanoseconds,
        "Median of the time inside the call, ±1.6 %.",
        |call, _| latency(call, |l| l.p50),
    ),
    Field::<Call>::new("p90_ns", "P90", Unit::Nanoseconds, "90th percentile of it, ±1.6 %.", |call, _| {
        latency(call, |l| l.p90)
    })
    .on_demand(),
    Field::<Call>::new("p99_ns", "P99", Unit::Nanoseconds, "99th percentile of it, ±1.6 %.", |call, _| {
        latency(call, |l| l.p99)
    }),
    Field::<Call>::new(
        "p99_9_ns",
        "P99.9",
        Unit::Nanoseconds,
        "99.9th percentile of it, ±1.6 %.",
        |call, _| latency(call, |l| l.p99_9),
    )
    .on_demand(),
    Field::<Call>::new("max_ns", "MAX", Unit::Nanoseconds, "Longest time inside the call.", |call, _| {
        latency(call, |l| Some(l.max))
    }),
    Field::<Call>::new("min_ns", "MIN", Unit::Nanoseconds, "Shortest time inside the call.", |call, _| {
        latency(call, |l| Some(l.min))
    })
    .on_demand(),
    Field::<Call>::new("mean_ns", "MEAN", Unit::Nanoseconds, "Mean time inside the call.", |call, _| {
        latency(call, |l| Some(l.mean))
    })
    .on_demand(),
    Field::<Call>::new(
        "device",
        "DEVICE",
        Unit::Word,
        "RDMA device; `unknown` if it could not be told.",
        |call, _| Value::text(&call.device),
    ),
    Field::<Call>::new(
        "errnos",
        "ERRNOS",
        Unit::Word,
        "The errors by name, with how many there were.",
        |call, _| {
            let errnos: Vec<String> = call.errnos.iter().map(|(name, n)| format!("{name}={n}")).collect();
            Value::Text(errnos.join(" ").into())
        },
    )
    .on_demand(),
];
