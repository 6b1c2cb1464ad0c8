//! The memory that the maps take.

use tbv_common::{
    Completion, CompletionKey, Cq, CqKey, ErrnoKey, FallBackKey, Histogram, MAX_COMPLETIONS, MAX_CQS,
    MAX_ERRNOS, MAX_FALL_BACKS, MAX_HISTOGRAMS, MAX_PROCESSES, MAX_QPS, MAX_REQUESTS, MAX_ROWS, MAX_SITES,
    MAX_SPANS, MAX_TARGETS, MAX_THREADS, MAX_WORK, Process, Qp, QpKey, Request, RequestKey, Row, RowKey,
    Site, SpanKey, Thread, Work, WorkKey,
};

use super::Check;
use crate::events::RING_DEFAULT;

/// Bytes that the kernel adds to an entry of a hash map: a head of 48, a bucket of 16, and rounding.
const HASH_OVERHEAD: usize = 72;
/// The log of the programs, whether `-v` is given or not.
const LOG: usize = 128 << 10;

/// Most that the maps can take. Histograms are taken at once, the rest as it is used.
pub(super) fn check() -> Check {
    let hash = |entries: u32, key: usize, value: usize| entries as usize * (key + value + HASH_OVERHEAD);
    let histograms = MAX_HISTOGRAMS as usize * size_of::<Histogram>();
    let rest = hash(MAX_ROWS, size_of::<RowKey>(), size_of::<Row>())
        + hash(MAX_ERRNOS, size_of::<ErrnoKey>(), 8)
        + hash(MAX_THREADS, 4, size_of::<Thread>())
        + hash(MAX_PROCESSES, 4, size_of::<Process>())
        + hash(MAX_PROCESSES, 4, 4)
        + 2 * hash(MAX_TARGETS, 4, 1)
        + hash(MAX_CQS, size_of::<CqKey>(), size_of::<Cq>())
        + hash(MAX_WORK, size_of::<WorkKey>(), size_of::<Work>())
        + hash(MAX_FALL_BACKS, size_of::<FallBackKey>(), 8)
        + MAX_SITES as usize * size_of::<Site>()
        + LOG;
    let spans = hash(MAX_REQUESTS, size_of::<RequestKey>(), size_of::<Request>())
        + hash(MAX_COMPLETIONS, size_of::<CompletionKey>(), size_of::<Completion>())
        + hash(MAX_QPS, size_of::<QpKey>(), size_of::<Qp>())
        + hash(MAX_SPANS, size_of::<SpanKey>(), size_of::<Row>());
    let mib = |bytes: usize| bytes.div_ceil(1 << 20);
    let found = format!(
        "{} MiB at once, at most {} MiB; `hist`, `record`, `export` and `timeline` {} MiB more; a stream has its \
         ring buffer besides, {} MiB unless told otherwise",
        mib(histograms),
        mib(histograms + rest),
        mib(spans),
        mib(RING_DEFAULT as usize)
    );
    Check::ok("memory", found)
}
