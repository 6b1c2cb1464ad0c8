//! System calls that no library offers: some bpf(2) commands, processes by descriptor, the clock.

use std::{
    fs, io,
    os::fd::{AsFd as _, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
};

use aya::Pod;
use aya_obj::generated::{bpf_attr, bpf_cmd, bpf_link_info, bpf_link_type, bpf_prog_info};

/// `enum bpf_perf_event_type` of a kretprobe (`linux/bpf.h`).
const PERF_EVENT_KPROBE: u32 = 3;
const PERF_EVENT_KRETPROBE: u32 = 4;

/// A zeroed argument block: every command takes zero for "not given".
pub(crate) fn attr() -> bpf_attr {
    // SAFETY: a C union of integers and arrays, for which all-zero is valid.
    unsafe { std::mem::zeroed() }
}

pub(crate) fn bpf(cmd: bpf_cmd, attr: &mut bpf_attr) -> io::Result<RawFd> {
    // SAFETY: `attr` is valid for its size; what it points to is kept alive by the caller.
    let r =
        unsafe { libc::syscall(libc::SYS_bpf, cmd as libc::c_int, &raw mut *attr, size_of::<bpf_attr>()) };
    if r < 0 { Err(io::Error::last_os_error()) } else { Ok(r as RawFd) }
}

/// As [`bpf`], for commands that answer with a new file descriptor.
pub(crate) fn bpf_fd(cmd: bpf_cmd, attr: &mut bpf_attr) -> io::Result<OwnedFd> {
    // SAFETY: the command created the descriptor for us alone.
    bpf(cmd, attr).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

fn info<T>(fd: BorrowedFd<'_>) -> io::Result<T> {
    // SAFETY: only used for the C info structs below, for which all-zero is valid.
    let mut info: T = unsafe { std::mem::zeroed() };
    let mut attr = attr();
    attr.info.bpf_fd = fd.as_raw_fd() as u32;
    attr.info.info_len = size_of::<T>() as u32;
    attr.info.info = &raw mut info as u64;
    bpf(bpf_cmd::BPF_OBJ_GET_INFO_BY_FD, &mut attr)?;
    Ok(info)
}

/// A descriptor that becomes readable when the process ends.
pub fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: takes plain numbers and gives a new descriptor.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was made for us alone.
    let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    Ok(fd)
}

/// Whether the process of a [`pidfd`] has ended.
pub(crate) fn has_ended(pidfd: BorrowedFd<'_>) -> bool {
    let mut poll = libc::pollfd { fd: pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor.
    unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
}

/// What the kernel counts of a program's runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Runs {
    /// How often it skipped the program because it was already running on that CPU.
    pub(crate) recursion_misses: u64,
    /// How often it ran, while somebody wants the kernel to count that.
    pub(crate) count: u64,
    /// How long, in nanoseconds, as above.
    pub(crate) ns: u64,
}

pub(crate) fn runs(program: BorrowedFd<'_>) -> io::Result<Runs> {
    let info = info::<bpf_prog_info>(program)?;
    Ok(Runs { recursion_misses: info.recursion_misses, count: info.run_cnt, ns: info.run_time_ns })
}

/// Hits that a kprobe or kretprobe link of this process missed; `None` where the kernel doesn't tell (before 6.7).
pub(crate) fn kprobe_missed(link_id: u32) -> Option<u64> {
    let info: bpf_link_info = info(own_link(link_id)?.as_fd()).ok()?;
    if info.type_ != bpf_link_type::BPF_LINK_TYPE_PERF_EVENT as u32 {
        return None;
    }
    // SAFETY: the type says that this member of the union is the one that was filled.
    unsafe {
        let event = info.__bindgen_anon_1.perf_event;
        matches!(event.type_, PERF_EVENT_KPROBE | PERF_EVENT_KRETPROBE)
            .then_some(event.__bindgen_anon_1.kprobe.missed)
    }
}

/// A descriptor of a link that this process holds: aya keeps its own to itself, and asking the kernel for one by
/// the id takes CAP_SYS_ADMIN.
fn own_link(id: u32) -> Option<OwnedFd> {
    let wanted = format!("link_id:\t{id}");
    let mut held = fs::read_dir("/proc/self/fdinfo").ok()?.flatten().filter(|entry| {
        fs::read_to_string(entry.path()).is_ok_and(|text| text.lines().any(|line| line == wanted))
    });
    let fd: RawFd = held.next()?.file_name().to_str()?.parse().ok()?;
    // SAFETY: the caller's link keeps the descriptor open while it is copied.
    unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned().ok()
}

/// Runs a raw tracepoint program once, here and now, in the calling thread.
pub(crate) fn run_here(program: BorrowedFd<'_>) -> io::Result<()> {
    let mut attr = attr();
    attr.test.prog_fd = program.as_raw_fd() as u32;
    bpf(bpf_cmd::BPF_PROG_TEST_RUN, &mut attr).map(drop)
}

/// Entries of a hash map that one system call is asked for.
const BATCH: u32 = 4096;

/// Every entry of an array, or of a hash map, bucket by bucket: going from key to key would begin anew whenever the key at hand has gone,
/// and never end where they come and go fast.
pub(crate) fn entries<K: Pod, V: Pod>(map: BorrowedFd<'_>) -> io::Result<Vec<(K, V)>> {
    let mut found = Vec::new();
    let (mut room, mut next, mut position) = (BATCH, 0u32, None::<u32>);
    loop {
        let mut keys = Vec::<K>::with_capacity(room as usize);
        let mut values = Vec::<V>::with_capacity(room as usize);
        let mut attr = attr();
        attr.batch.in_batch = position.as_ref().map_or(0, |position| &raw const *position as u64);
        attr.batch.out_batch = &raw mut next as u64;
        attr.batch.keys = keys.as_mut_ptr() as u64;
        attr.batch.values = values.as_mut_ptr() as u64;
        attr.batch.count = room;
        attr.batch.map_fd = map.as_raw_fd() as u32;
        let done = bpf(bpf_cmd::BPF_MAP_LOOKUP_BATCH, &mut attr);
        // SAFETY: the command sets it to what it has written, at most what it was given.
        let count = unsafe { attr.batch.count }.min(room) as usize;
        let last = match done {
            Ok(_) => false,
            Err(e) if e.raw_os_error() == Some(libc::ENOENT) => true,
            // One bucket holds more.
            Err(e) if e.raw_os_error() == Some(libc::ENOSPC) && room < 1 << 24 => {
                room *= 2;
                continue;
            }
            Err(e) => return Err(e),
        };
        // SAFETY: so many were written, and any bytes are valid for both types.
        unsafe {
            keys.set_len(count);
            values.set_len(count);
        }
        found.extend(keys.into_iter().zip(values));
        if last {
            return Ok(found);
        }
        position = Some(next);
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds: what the programs take time by.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a valid timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
