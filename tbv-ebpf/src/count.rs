//! The two halves of counting: a call enters, a call returns.

use aya_ebpf::maps::HashMap;
use aya_ebpf::{
    bindings::{BPF_ANY, BPF_NOEXIST, BPF_RB_NO_WAKEUP},
    helpers::{bpf_get_current_cgroup_id, bpf_get_current_pid_tgid, bpf_ktime_get_ns},
};
use aya_log_ebpf::debug;
use tbv_common::*;

use crate::{atomic, atomic::lost, decode, maps, maps::*, target};

/// Errors are the last 4095 values (`MAX_ERRNO`).
const MAX_ERRNO: i64 = 4095;

/// A call of the current thread begins.
#[inline(always)]
pub fn enter(config: &Config, device: u32, op: Op, address: u64) {
    if config.state != State::Running as u32
        || !target::device_wanted(config, device)
        || !target::cgroup_wanted(config)
    {
        return;
    }
    let id = bpf_get_current_pid_tgid();
    let (tgid, tid) = ((id >> 32) as u32, id as u32);
    let Some(thread) = thread(config, tgid, tid) else { return };
    // SAFETY: a live map value that only this thread writes.
    let thread = unsafe { &mut *thread };
    if thread.start != 0 {
        lost(Loss::UnmatchedEntry);
    }
    thread.op = op;
    thread.address = address;
    thread.device = device;
    if maps::STREAM.load() != Stream::Off as u32 {
        thread.handle = decode::handle(op, address);
    }
    // SAFETY: takes no arguments. Last, so that our own work is not in the latency.
    thread.start = unsafe { bpf_ktime_get_ns() };
}

#[inline(always)]
fn thread(config: &Config, tgid: u32, tid: u32) -> Option<*mut Thread> {
    if let Some(thread) = THREADS.get_ptr_mut(tid) {
        return Some(thread);
    }
    if !target::process_wanted(config, tgid) {
        return None;
    }
    let process = process(config, tgid)?;
    let new = Thread { start: 0, op: Op(0), address: 0, process, device: 0, handle: Handle(0) };
    if THREADS.insert(tid, new, BPF_ANY as u64).is_err() {
        lost(Loss::ThreadsFull);
    }
    THREADS.get_ptr_mut(tid)
}

/// The number of process `tgid`, which gets one if it has none.
#[inline(always)]
fn process(config: &Config, tgid: u32) -> Option<u32> {
    if let Some(number) = CURRENT.get_ptr(tgid) {
        // SAFETY: a live map value.
        return Some(unsafe { *number });
    }
    let number = next(NEXT_PROCESS)? as u32;
    let process = Process {
        pid: tgid,
        ns_pid: target::ns_pid(config),
        // SAFETY: takes no arguments.
        cgroup: unsafe { bpf_get_current_cgroup_id() },
        comm: target::comm(config),
    };
    if PROCESSES.insert(number, process, BPF_ANY as u64).is_err() {
        lost(Loss::ProcessesFull);
        return None;
    }
    if CURRENT.insert(tgid, number, BPF_NOEXIST as u64).is_ok() {
        debug!((), "process {} makes its first call and is number {}", tgid, number);
        return Some(number);
    }
    // Another thread of the process was faster, or the map is full.
    let _ = PROCESSES.remove(number);
    match CURRENT.get_ptr(tgid) {
        // SAFETY: a live map value.
        Some(number) => Some(unsafe { *number }),
        None => {
            lost(Loss::ProcessesFull);
            None
        }
    }
}

#[inline(always)]
fn next(what: u32) -> Option<u64> {
    let counter = NEXT.get_ptr_mut(what)?;
    // SAFETY: a live map value.
    Some(unsafe { atomic::take_next(counter) })
}

/// The current thread's call returns `ret`; `again` reads the request once more, for one
/// whose memory was not there at entry.
#[inline(always)]
pub fn leave(config: &Config, ret: i64, again: impl Fn(&Thread) -> Op) {
    if !leave_if_entered(config, ret, again) {
        unmatched(config);
    }
}

/// The same where others' calls return too: whether one was seen to begin.
#[inline(always)]
pub fn leave_if_entered(config: &Config, ret: i64, again: impl Fn(&Thread) -> Op) -> bool {
    // SAFETY: takes no arguments. First, so that our own work is not in the latency.
    let now = unsafe { bpf_ktime_get_ns() };
    let tid = bpf_get_current_pid_tgid() as u32;
    let Some(thread) = THREADS.get_ptr_mut(tid) else { return false };
    // SAFETY: a live map value that only this thread writes.
    let thread = unsafe { &mut *thread };
    let start = thread.start;
    if start == 0 {
        return false;
    }
    thread.start = 0;
    returned(config, thread, Interval { tid, start, now }, ret, again);
    true
}

/// A call of thread `tid`, by the clock.
struct Interval {
    tid: u32,
    start: u64,
    now: u64,
}

#[inline(always)]
fn returned(config: &Config, thread: &Thread, when: Interval, ret: i64, again: impl Fn(&Thread) -> Op) {
    let Interval { tid, start, now } = when;
    let faulted = decode::unreadable(thread.op);
    let op = if faulted { again(thread) } else { thread.op };
    let errno = if (-MAX_ERRNO..0).contains(&ret) { -ret as u32 } else { 0 };
    let key = RowKey { process: thread.process, device: thread.device, op };
    let Some(row) = row(&ROWS, &key) else {
        lost(Loss::RowsFull);
        return;
    };
    // Behind the row: a call that is not counted has no line either, so that the sums agree.
    let wanted = maps::STREAM.load();
    if wanted == Stream::All as u32 || (wanted == Stream::Failed as u32 && errno != 0) {
        let latency = if now < start { u64::MAX } else { now - start };
        let handle = if faulted { decode::handle(op, thread.address) } else { thread.handle };
        let (process, device) = (thread.process, thread.device);
        stream(Event { time: start, latency, op: op.0, handle, process, tid, device, errno });
    }
    // SAFETY: `row` is a live map value.
    unsafe {
        atomic::add(&raw mut (*row).count, 1);
        if errno != 0 {
            atomic::add(&raw mut (*row).errors, 1);
            count_errno(key, errno);
        }
        if now < start {
            atomic::add(&raw mut (*row).untimed, 1);
            lost(Loss::BackwardClock);
            return;
        }
        time(row, now - start);
    }
}

/// Nobody is woken for it: user space looks at the ring by the clock.
#[inline(always)]
fn stream(event: Event) {
    match EVENTS.reserve::<Event>(0) {
        Some(mut entry) => {
            entry.write(event);
            entry.submit(BPF_RB_NO_WAKEUP as u64);
        }
        None => lost(Loss::RingFull),
    }
}

/// Its device is not known any more: with a filter by device it may not have been one of ours.
#[inline(always)]
fn unmatched(config: &Config) {
    let id = bpf_get_current_pid_tgid();
    let (tgid, tid) = ((id >> 32) as u32, id as u32);
    if config.state == State::Running as u32
        && config.only_devices == 0
        && target::cgroup_wanted(config)
        && target::process_wanted(config, tgid)
    {
        // Who entered a call before is known, unless there was no room: a loss by itself.
        let known = THREADS.get_ptr(tid).is_some();
        lost(if known { Loss::UnmatchedReturn } else { Loss::RanAtBegin });
    }
}

/// # Safety
/// `row` points to a live map value.
#[inline(always)]
pub unsafe fn time(row: *mut Row, ns: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        atomic::add(&raw mut (*row).sum, ns);
        atomic::extreme(&raw mut (*row).min, ns, |new, old| new < old);
        atomic::extreme(&raw mut (*row).max, ns, |new, old| new > old);
        match HISTOGRAMS.get_ptr_mut((*row).slot) {
            Some(histogram) => {
                // The index is below BUCKETS for every value. The verifier wants to see that, but
                // the compiler knows it too and would drop the comparison.
                let index = core::hint::black_box(histogram::index(ns));
                if index < histogram::BUCKETS {
                    atomic::add((&raw mut (*histogram).buckets).cast::<u64>().add(index), 1);
                }
            }
            None => lost(Loss::HistogramsFull),
        }
    }
}

/// The row of `key`, a new one with a histogram if there is none.
#[inline(always)]
pub fn row<K>(rows: &HashMap<K, Row>, key: &K) -> Option<*mut Row> {
    if let Some(row) = rows.get_ptr_mut(key) {
        return Some(row);
    }
    let slot = next(NEXT_SLOT).unwrap_or(u64::MAX);
    let slot = if slot < MAX_HISTOGRAMS as u64 { slot as u32 } else { NO_SLOT };
    // Another CPU may insert first: then this slot stays unused.
    let _ = rows.insert(key, Row::new(slot), BPF_NOEXIST as u64);
    rows.get_ptr_mut(key)
}

#[inline(always)]
fn count_errno(row: RowKey, errno: u32) {
    let key = ErrnoKey { row, errno, reserved: 0 };
    if ERRNOS.get_ptr(key).is_none() {
        let _ = ERRNOS.insert(key, 0, BPF_NOEXIST as u64);
    }
    match ERRNOS.get_ptr_mut(key) {
        Some(counter) => {
            // SAFETY: a live map value.
            unsafe { atomic::add(counter, 1) };
        }
        None => lost(Loss::ErrnosFull),
    }
}
