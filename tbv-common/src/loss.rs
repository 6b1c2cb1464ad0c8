//! Every way to lose or misjudge a call that the eBPF programs can see, each with a counter.

/// Index into the loss map. User space adds what the kernel itself counts (recursion and
/// kretprobe misses) and what is still in flight.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A call whose process/operation row could not be created: the row map is full.
    RowsFull = 0,
    /// A call counted in its row but in no histogram: no histogram slot was free.
    HistogramsFull = 1,
    /// A call that could not be followed: the thread map is full. Its return is unmatched, too.
    ThreadsFull = 2,
    /// A call of a process that could not be described: the process map is full. Its return is
    /// unmatched, too.
    ProcessesFull = 3,
    /// An entry whose return was never seen, found when its thread entered again or ended.
    UnmatchedEntry = 4,
    /// A return whose entry was not seen, of a thread that had entered calls before.
    UnmatchedReturn = 5,
    /// A call that seemed to end before it began. It is counted; its latency is not.
    BackwardClock = 6,
    /// A failed call whose errno could not be recorded: the errno map is full.
    ErrnosFull = 7,
    /// A new process that could not be followed: the target map is full, or its ids are unreadable.
    TargetsFull = 8,
    /// min or max may be off: too many CPUs raced for them.
    ExtremesRaced = 9,
    /// A call on a device file that could not be looked at, and so may have been missed.
    FileUnreadable = 10,
    /// An event for the stream that did not fit the ring buffer.
    RingFull = 11,
    /// A completion queue that is not in the result: the map is full.
    CqsFull = 12,
    /// A work request that is not in the result: the map is full.
    WorkFull = 13,
    /// A work request whose begin could not be kept: the map is full.
    RequestsFull = 14,
    /// A completion whose begin could not be kept: the map is full.
    CompletionsFull = 15,
    /// A queue pair that is not in the result: the map is full.
    QpsFull = 16,
    /// A span that is not in the result: the map is full.
    SpansFull = 17,
    /// A span that seemed to end before it began.
    BackwardSpan = 18,
    /// A probe of the provider's whose arguments could not be read, or cannot be true.
    ProbesUnreadable = 19,
    /// A queue that fell back to system calls and is not in the result: the map is full.
    FallBacksFull = 20,
    /// No loss, though counted here: the return of a thread that has entered no call since counting began. It ran then.
    RanAtBegin = 21,
}

impl Loss {
    /// Number of counters.
    pub const COUNT: u32 = 22;
}
