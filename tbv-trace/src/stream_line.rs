//! The lines of `events -f jsonl`.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tbv_core::{environment::Environment, loss::Losses};

/// One line. `begin` is the first, `end` the last; a line that is not `end` at the end of the file means that the
/// stream was cut off.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Line<'a> {
    /// Tracing began.
    Begin(Begin),
    /// A call returned.
    #[serde(borrow)]
    Call(Call<'a>),
    /// Calls that are missing here: they did not fit the ring buffer.
    Lost(Lost),
    /// Tracing ended.
    End(End),
}

/// What the times are relative to, and where it is.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Begin {
    /// Version of this form.
    pub(crate) schema_version: u32,
    /// `CLOCK_MONOTONIC` when tracing began, nanoseconds.
    pub(crate) monotonic_ns: u64,
    /// `CLOCK_REALTIME` at that moment, nanoseconds since 1970 UTC.
    pub(crate) realtime_ns: u64,
    /// Whose calls are shown, in the words of the command line.
    pub(crate) filters: Vec<String>,
    /// Where it is measured.
    pub(crate) environment: Environment,
}

/// One call.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Call<'a> {
    /// `CLOCK_MONOTONIC` at entry, nanoseconds.
    pub(crate) time_ns: u64,
    /// Process id, in the initial pid namespace.
    pub(crate) pid: u32,
    /// Process id in its own pid namespace; absent if it could not be told.
    pub(crate) ns_pid: Option<u32>,
    /// Thread id, in the initial pid namespace.
    pub(crate) tid: u32,
    /// The process's name at its first call.
    pub(crate) comm: Cow<'a, str>,
    /// RDMA device; `unknown` if it could not be told.
    pub(crate) device: Cow<'a, str>,
    /// `ioctl` or `write`.
    pub(crate) entry: Cow<'a, str>,
    /// The operation, named as in the uapi headers.
    pub(crate) op: Cow<'a, str>,
    /// The error by name; absent if there was none.
    pub(crate) errno: Option<Cow<'a, str>>,
    /// Time inside the call, nanoseconds; absent if the clock went backwards.
    pub(crate) latency_ns: Option<u64>,
    /// The uverbs handle of the completion queue that the request names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cq_handle: Option<u32>,
    /// The uverbs handle of the queue pair that the request names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) qp_handle: Option<u32>,
    /// The uverbs handle of the shared receive queue that the request names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) srq_handle: Option<u32>,
}

/// A gap in the stream, known when it was read: between the lines before and after it, or shortly before.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Lost {
    /// How many calls are missing.
    pub(crate) count: u64,
}

/// The sums: delivered + lost = calls.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct End {
    /// Calls that returned, as counted beside the stream.
    pub(crate) calls: u64,
    /// Calls that have a line.
    pub(crate) delivered: u64,
    /// Calls that did not fit the ring buffer.
    pub(crate) lost: u64,
    /// Everything that was lost or misjudged.
    pub(crate) loss: Losses,
}

/// The JSON schema of a line.
pub(crate) fn json_schema() -> schemars::Schema {
    schemars::schema_for!(Line<'_>)
}
