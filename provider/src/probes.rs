//! Markers for tracers (`tbv_proto::PROBES`): a `nop` each, and arguments in registers, while nobody is attached.

use probe::probe;
use tbv_cq_ring::Taken;
use tbv_proto::FallBack;

/// A queue as the driver's tracepoints name it.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    pub(crate) device: u32,
    pub(crate) cqn: u32,
}

#[inline(always)]
pub(crate) fn poll_hit(queue: Name, taken: Taken) {
    probe!(usb4_rdma, poll_hit, queue.device, queue.cqn, taken.first, taken.count);
}

#[inline(always)]
pub(crate) fn poll_empty(queue: Name) {
    probe!(usb4_rdma, poll_empty, queue.device, queue.cqn);
}

#[inline(always)]
pub(crate) fn overflow(queue: Name) {
    probe!(usb4_rdma, overflow, queue.device, queue.cqn);
}

#[inline(always)]
pub(crate) fn fall_back(reason: FallBack) {
    probe!(usb4_rdma, fall_back, reason as u32);
}
