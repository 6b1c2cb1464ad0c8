//! Layouts of the eBPF maps. Every struct is `repr(C)` without padding, so that both sides
//! see the same bytes and no uninitialised byte becomes part of a key.

use crate::{histogram::BUCKETS, op::Op};

/// Entries of the row map: process × device × operation.
pub const MAX_ROWS: u32 = 65_536;
/// Histogram slots, handed out to rows as they appear; later rows have none.
pub const MAX_HISTOGRAMS: u32 = 4_096;
/// Threads whose calls can be followed at the same time.
pub const MAX_THREADS: u32 = 65_536;
/// Processes seen in one run.
pub const MAX_PROCESSES: u32 = 65_536;
/// Processes that a filter names or that descend from those.
pub const MAX_TARGETS: u32 = 65_536;
/// Row × errno pairs.
pub const MAX_ERRNOS: u32 = 16_384;
/// Completion queues of our own driver seen in one run.
pub const MAX_CQS: u32 = 16_384;
/// Process × device × queue × opcode of work requests.
pub const MAX_WORK: u32 = 16_384;
/// Work requests of our own driver that have no completion yet.
pub const MAX_REQUESTS: u32 = 262_144;
/// Completions that nobody took yet.
pub const MAX_COMPLETIONS: u32 = 262_144;
/// Queue pairs of our own driver seen in one run.
pub const MAX_QPS: u32 = 65_536;
/// Spans × process × queue pair × opcode.
pub const MAX_SPANS: u32 = 16_384;
/// Index into the map of counters: the next process number.
pub const NEXT_PROCESS: u32 = 0;
/// The same: the next histogram slot.
pub const NEXT_SLOT: u32 = 1;
/// The same: how often begins of spans were left behind whose end will not come.
pub const NEXT_TIDY: u32 = 2;
/// [`Row::slot`] of a row that got no histogram.
pub const NO_SLOT: u32 = u32::MAX;
/// Longest array of attributes that is searched for INVOKE_WRITE's command.
pub const MAX_ATTRS: usize = 16;
/// Bytes of `task_struct` that the probe program searches in one run.
pub const SEARCHED_AT_ONCE: u32 = 256;
/// Devices that a filter can name.
pub const MAX_DEVICES: usize = 8;
/// Bytes of a task's name, the last one a NUL (`TASK_COMM_LEN`).
pub const COMM_LEN: usize = 16;

/// What the loader tells the programs; the only element of the config map.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// Whether only processes in the target map count (else every process).
    pub only_targets: u32,
    /// Whether descendants of targets become targets.
    pub follow: u32,
    /// Byte offset of `task_struct.pid`, with `tgid` right behind it.
    pub task_pid: u32,
    /// Byte offset of `task_struct.signal`; 0 if unknown.
    pub task_signal: u32,
    /// Byte offset of `signal_struct.live`, the number of threads that have not exited.
    pub signal_live: u32,
    /// Byte offset of `task_struct.files`.
    pub task_files: u32,
    /// Byte offset of `files_struct.fdt`.
    pub files_fdt: u32,
    /// Byte offset of `fdtable.max_fds`.
    pub fdtable_max_fds: u32,
    /// Byte offset of `fdtable.fd`.
    pub fdtable_fd: u32,
    /// Byte offset of `file.f_inode`.
    pub file_inode: u32,
    /// Byte offset of `inode.i_rdev`.
    pub inode_rdev: u32,
    /// Whether the file offsets above are known; without them a device is 0 (unknown).
    pub files_known: u32,
    /// Major numbers of `infiniband_verbs` device files; 0 for none.
    pub majors: [u32; 2],
    /// A [`State`]: so that all programs begin and end at one moment, however long it takes
    /// to attach them.
    pub state: u32,
    /// Byte offset of `file.f_mode`.
    pub file_mode: u32,
    /// First address behind user memory.
    pub user_end: u64,
    /// Byte offset of `task_struct.group_leader`.
    pub task_group_leader: u32,
    /// Byte offset of `task_struct.comm`.
    pub task_comm: u32,
    /// Byte offset of `task_struct.thread_pid`.
    pub task_thread_pid: u32,
    /// Byte offset of `pid.level`.
    pub pid_level: u32,
    /// Byte offset of `pid.numbers`.
    pub pid_numbers: u32,
    /// Whether the five offsets above are known.
    pub ids_known: u32,
    /// Level of the pid namespace whose ids the targets are given in.
    pub own_level: u32,
    /// Always zero.
    pub reserved: u32,
    /// Address of that pid namespace; 0 if the ids of targets are the initial namespace's.
    pub own_ns: u64,
    /// Id of the cgroup (version 2) in or below which calls count, while [`ONLY_CGROUP`] is set.
    pub cgroup: u64,
    /// How many elements of [`Config::devices`] count; 0 for calls on any device.
    pub only_devices: u32,
    /// `dev_t` of the devices whose calls count.
    pub devices: [u32; MAX_DEVICES],
    /// Name of the processes that count, NUL-padded; empty for any.
    pub comm: [u8; COMM_LEN],
    /// Byte offset of `thread_info.status` in `task_struct`; 0 if unknown.
    pub task_status: u32,
}

/// Constant of the programs: a [`Stream`]. A constant, so that the verifier leaves out what is not used.
pub const STREAM: &str = "STREAM";
/// Constant of the programs: whether calls count in one cgroup only.
pub const ONLY_CGROUP: &str = "ONLY_CGROUP";

/// Constant of the programs: a [`Spans`].
pub const SPANS: &str = "SPANS";

/// What is done with the spans of messages.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spans {
    /// Nothing.
    #[default]
    Off = 0,
    /// They are counted in histograms.
    Counted = 1,
    /// And each goes into a ring buffer.
    Streamed = 2,
}

/// Which calls are put into the ring buffer.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stream {
    /// None.
    #[default]
    Off = 0,
    /// All.
    All = 1,
    /// Those that return an error.
    Failed = 2,
}

/// Phase of a run, [`Config::state`].
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing counts yet.
    Idle = 0,
    /// Calls that enter are followed.
    Running = 1,
    /// Only calls that entered before are still completed.
    Stopping = 2,
}

/// What one counter stands for.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowKey {
    /// The process, as a number in the process map: pids are used again, these are not.
    pub process: u32,
    /// The kernel's `dev_t` of the device file, major << 20 | minor; 0 if unknown.
    pub device: u32,
    /// The operation.
    pub op: Op,
}

/// Exact totals of one row. All times in nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Calls that returned.
    pub count: u64,
    /// Those of them that returned an error.
    pub errors: u64,
    /// Calls whose latency is not known: the clock went backwards.
    pub untimed: u64,
    /// Sum of the known latencies.
    pub sum: u64,
    /// Smallest latency; `u64::MAX` while none is known.
    pub min: u64,
    /// Largest latency.
    pub max: u64,
    /// Histogram slot, or [`NO_SLOT`].
    pub slot: u32,
    /// Always zero.
    pub reserved: u32,
}

impl Row {
    /// A row without calls that fills histogram `slot`.
    pub const fn new(slot: u32) -> Self {
        Row { count: 0, errors: 0, untimed: 0, sum: 0, min: u64::MAX, max: 0, slot, reserved: 0 }
    }
}

/// One histogram: a count per bucket.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Histogram {
    /// Calls per bucket, see [`crate::histogram`].
    pub buckets: [u64; BUCKETS],
}

/// Key of the errno map: how often a row failed in which way.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrnoKey {
    /// The row.
    pub row: RowKey,
    /// The positive errno.
    pub errno: u32,
    /// Always zero.
    pub reserved: u32,
}

/// A process, as it was at its first call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// Process id in the initial pid namespace.
    pub pid: u32,
    /// Process id in its own pid namespace; 0 if unknown.
    pub ns_pid: u32,
    /// Cgroup v2 id of the process.
    pub cgroup: u64,
    /// Its name, NUL-padded; the calling thread's if the process's is unknown.
    pub comm: [u8; COMM_LEN],
}

/// The call that a thread is in. Kept in place from call to call.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    /// `CLOCK_MONOTONIC` at entry, nanoseconds; 0 while the thread is in no call.
    pub start: u64,
    /// The operation as decoded at entry.
    pub op: Op,
    /// User address of the request, read again on return if it could not be read at entry.
    pub address: u64,
    /// The process number, for [`RowKey::process`].
    pub process: u32,
    /// `dev_t` of the device file.
    pub device: u32,
    /// The queue that the request names.
    pub handle: Handle,
}

/// A queue that a request names: `kind:32 | uverbs handle:32`. Zero for none.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handle(pub u64);

/// What a [`Handle`] is of.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleKind {
    /// A completion queue.
    Cq = 1,
    /// A queue pair.
    Qp = 2,
    /// A shared receive queue.
    Srq = 3,
}

impl Handle {
    /// Of a queue of this kind.
    pub const fn new(kind: HandleKind, handle: u32) -> Self {
        Handle((kind as u64) << 32 | handle as u64)
    }

    /// The kind and the handle, if there is one.
    pub const fn get(self) -> Option<(HandleKind, u32)> {
        let kind = match self.0 >> 32 {
            1 => HandleKind::Cq,
            2 => HandleKind::Qp,
            3 => HandleKind::Srq,
            _ => return None,
        };
        Some((kind, self.0 as u32))
    }
}

/// One call that returned, as the ring buffer carries it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// `CLOCK_MONOTONIC` at entry, nanoseconds.
    pub time: u64,
    /// Nanoseconds inside the call; [`u64::MAX`] if the clock went backwards.
    pub latency: u64,
    /// The operation.
    pub op: u64,
    /// The queue that the request names.
    pub handle: Handle,
    /// The process number.
    pub process: u32,
    /// Thread id, in the initial pid namespace.
    pub tid: u32,
    /// `dev_t` of the device file.
    pub device: u32,
    /// The positive errno; 0 for success.
    pub errno: u32,
}

/// A queue of a queue pair.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// The send queue.
    Send = 0,
    /// The receive queue.
    Receive = 1,
}

/// A completion queue of our own driver.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CqKey {
    /// The driver's index of the device.
    pub device: u32,
    /// The driver's number of the completion queue.
    pub cqn: u32,
}

/// What happened on a completion queue. Totals are the driver's own.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cq {
    /// Process that created it.
    pub pid: u32,
    /// Its capacity in completions.
    pub entries: u32,
    /// 1 if it was published to user space.
    pub mapped: u32,
    /// 1 once it is gone.
    pub destroyed: u32,
    /// Completions put in while traced.
    pub pushed: u64,
    /// Those of them that report an error.
    pub failed: u64,
    /// Completions put in over its life.
    pub produced: u64,
    /// Completions taken out over its life.
    pub consumed: u64,
    /// Completions taken out by a system call while traced.
    pub consumed_by_ioctl: u64,
    /// Completions that found it full while traced.
    pub overflows: u64,
    /// Most completions in it right after one was put in.
    pub occupancy_max: u64,
    /// Sum over [`Cq::pushed`] of what was in it right after.
    pub occupancy_sum: u64,
    /// Completions of queue pairs that were reset or destroyed first, while traced.
    pub purged: u64,
    /// Completions below this number have moved in the queue: when they were put in is not known any more.
    pub moved_below: u64,
    /// Completions of which was seen that they were taken out, but is not known when they were put in.
    pub untimed: u64,
    /// What the ring's numbers are ahead of totals, while [`crate::PROBED`]; else 0.
    pub ring_first: u64,
    /// Polls in user space that took completions.
    pub polls_hit: u64,
    /// Polls in user space that found nothing.
    pub polls_empty: u64,
    /// Polls in user space that told of lost completions.
    pub polls_overflow: u64,
    /// Completions that polls in user space took, as they told.
    pub polled: u64,
    /// A [`Before`].
    pub before: u32,
    /// 1 once a probe of the provider has told of it.
    pub told: u32,
    /// Of a queue from before: completions put in before its first event while traced.
    pub produced_before: u64,
    /// The same of completions taken out.
    pub consumed_before: u64,
}

/// Whether a completion queue existed when tracing began.
#[repr(u32)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Before {
    /// No: its totals began with zero.
    #[default]
    No = 0,
    /// Yes, and nothing has happened on it yet: its totals are those that the driver told then.
    Untouched = 1,
    /// Yes, and its totals at its first event are known.
    Touched = 2,
}

/// A kind of work request.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkKey {
    /// Process that posted it.
    pub pid: u32,
    /// The driver's index of the device.
    pub device: u32,
    /// A [`Queue`].
    pub queue: u32,
    /// `enum ib_uverbs_wr_opcode` for sends, `enum ib_uverbs_wc_opcode` for receives.
    pub opcode: u32,
}

/// How many of a kind.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Posted and accepted.
    pub posted: u64,
    /// Those of them whose success makes a completion.
    pub signalled: u64,
}

/// What the probe program tells about its caller; the only element of its map.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Whoami {
    /// `bpf_get_current_pid_tgid()`: process id << 32 | thread id, in the initial namespace.
    pub pid_tgid: u64,
    /// Address of our pid namespace; 0 if unknown.
    pub pid_ns: u64,
    /// Offset of `task_struct.pid` found by looking for that pair in [`SEARCHED_AT_ONCE`] bytes; 0 if not found.
    pub task_pid: u32,
    /// Level of our pid namespace.
    pub ns_level: u32,
    /// 1 once the program ran.
    pub ran: u32,
    /// Where the search begins, told by the loader.
    pub search: u32,
}

#[cfg(feature = "user")]
mod pod {
    // SAFETY: each is `repr(C)`, has no padding (asserted below) and is valid for any bytes.
    unsafe impl aya::Pod for super::Config {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::RowKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::Row {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::Histogram {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::ErrnoKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::Process {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::Thread {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::Whoami {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::CqKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::Cq {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::WorkKey {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::Work {}
    // SAFETY: as above.
    unsafe impl aya::Pod for super::Event {}
}

const _: () = {
    assert!(size_of::<Config>() == 176);
    assert!(size_of::<RowKey>() == 16);
    assert!(size_of::<Row>() == 56);
    assert!(size_of::<ErrnoKey>() == 24);
    assert!(size_of::<Process>() == 32);
    assert!(size_of::<Thread>() == 40);
    assert!(size_of::<Whoami>() == 32);
    assert!(size_of::<CqKey>() == 8);
    assert!(size_of::<Cq>() == 168);
    assert!(size_of::<WorkKey>() == 16);
    assert!(size_of::<Work>() == 16);
    assert!(size_of::<Event>() == 48);
};
