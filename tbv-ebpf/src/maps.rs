//! Every map, in one place. Sizes are upper bounds; `tbv-trace doctor` says what they cost.

use aya_ebpf::{
    Global,
    bindings::BPF_F_NO_PREALLOC,
    macros::map,
    maps::{Array, HashMap, RingBuf},
};
use tbv_common::*;

#[map]
pub static CONFIG: Array<Config> = Array::with_max_entries(1, 0);

#[map]
pub static LOSS: Array<u64> = Array::with_max_entries(Loss::COUNT, 0);

/// Counters by `NEXT_*`.
#[map]
pub static NEXT: Array<u64> = Array::with_max_entries(3, 0);

#[map]
pub static ROWS: HashMap<RowKey, Row> = HashMap::with_max_entries(MAX_ROWS, BPF_F_NO_PREALLOC);

#[map]
pub static HISTOGRAMS: Array<Histogram> = Array::with_max_entries(MAX_HISTOGRAMS, 0);

#[map]
pub static ERRNOS: HashMap<ErrnoKey, u64> = HashMap::with_max_entries(MAX_ERRNOS, BPF_F_NO_PREALLOC);

/// Thread id → the call it is in.
#[map]
pub static THREADS: HashMap<u32, Thread> = HashMap::with_max_entries(MAX_THREADS, BPF_F_NO_PREALLOC);

/// Process id → process number, for processes that live.
#[map]
pub static CURRENT: HashMap<u32, u32> = HashMap::with_max_entries(MAX_PROCESSES, BPF_F_NO_PREALLOC);

/// Process number → what it was.
#[map]
pub static PROCESSES: HashMap<u32, Process> = HashMap::with_max_entries(MAX_PROCESSES, BPF_F_NO_PREALLOC);

/// Process ids that are traced, if [`Config::only_targets`].
#[map]
pub static TARGETS: HashMap<u32, u8> = HashMap::with_max_entries(MAX_TARGETS, BPF_F_NO_PREALLOC);

/// The same in the pid namespace of tbv itself, while [`Config::own_ns`] is set: their ids in the
/// initial namespace are learnt when they are first seen.
#[map]
pub static NS_TARGETS: HashMap<u32, u8> = HashMap::with_max_entries(MAX_TARGETS, BPF_F_NO_PREALLOC);

/// Calls that returned, for who asked for a stream. The loader sets the size.
#[map]
pub static EVENTS: RingBuf = RingBuf::with_byte_size(4096, 0);

/// Completion queues of traced processes, also those that are gone.
#[map]
pub static CQS: HashMap<CqKey, Cq> = HashMap::with_max_entries(MAX_CQS, BPF_F_NO_PREALLOC);

/// Work requests by process, device, queue and opcode.
#[map]
pub static WORK: HashMap<WorkKey, Work> = HashMap::with_max_entries(MAX_WORK, BPF_F_NO_PREALLOC);

/// Signalled work requests that have no completion yet.
#[map]
pub static REQUESTS: HashMap<RequestKey, Request> =
    HashMap::with_max_entries(MAX_REQUESTS, BPF_F_NO_PREALLOC);

/// Completions that nobody took yet, as far as that is seen when it happens: by system call, or by a probe.
#[map]
pub static COMPLETIONS: HashMap<CompletionKey, Completion> =
    HashMap::with_max_entries(MAX_COMPLETIONS, BPF_F_NO_PREALLOC);

/// Queue pairs of traced processes, also those that are gone.
#[map]
pub static QPS: HashMap<QpKey, Qp> = HashMap::with_max_entries(MAX_QPS, BPF_F_NO_PREALLOC);

#[map]
pub static SPAN_ROWS: HashMap<SpanKey, Row> = HashMap::with_max_entries(MAX_SPANS, BPF_F_NO_PREALLOC);

/// What happened to messages, one by one, for who asked for it. The loader sets the size.
#[map]
pub static MOMENTS: RingBuf = RingBuf::with_byte_size(4096, 0);

/// Where the provider's probes have their arguments, by the cookie that each is attached with.
#[map]
pub static PROBE_SITES: Array<Site> = Array::with_max_entries(MAX_SITES, 0);

#[map]
pub static FALL_BACKS: HashMap<FallBackKey, u64> =
    HashMap::with_max_entries(MAX_FALL_BACKS, BPF_F_NO_PREALLOC);

#[map]
pub static WHOAMI: Array<Whoami> = Array::with_max_entries(1, 0);

/// See [`tbv_common::STREAM`]; the loader sets it.
#[unsafe(no_mangle)]
pub static STREAM: Global<u32> = Global::new(0);

/// See [`tbv_common::SPANS`]; the loader sets it.
#[unsafe(no_mangle)]
pub static SPANS: Global<u32> = Global::new(0);

/// See [`tbv_common::PROBED`]; the loader sets it.
#[unsafe(no_mangle)]
pub static PROBED: Global<u32> = Global::new(0);

/// See [`tbv_common::ONLY_CGROUP`]; the loader sets it.
#[unsafe(no_mangle)]
pub static ONLY_CGROUP: Global<u32> = Global::new(0);

/// The configuration, or `None` which the verifier wants to see handled.
#[inline(always)]
pub fn config() -> Option<&'static Config> {
    CONFIG.get(0)
}
