//! Our own driver's tracepoints: whether they are there, and in a form that we know.

use std::{fs, path::Path};

/// The tracepoint ABI that the eBPF programs read (docs/tracepoints.md).
pub const TRACE_ABI: u32 = 1;
/// Node GUIDs of the driver's devices begin with these 16-bit groups; the last byte is the
/// index that its tracepoints carry.
const GUID_PREFIX: &str = "0200:5442:";

/// The programs, which are named like their tracepoints.
pub(crate) const PROGRAMS: [&str; 7] =
    ["cq_overflow", "cq_push", "cq_poll", "cq_destroy", "cq_create", "post_send", "post_recv"];

/// Programs that only spans need.
pub(crate) const SPAN_PROGRAMS: [&str; 6] =
    ["qp_state", "retransmit", "rnr", "ack", "credit_stall", "tx_frame"];

/// As [`PROGRAMS`], for a tracepoint that a driver of this ABI may lack: it came later.
pub(crate) const LATER_PROGRAM: &str = "cq_purge";

/// The loaded driver's tracepoint ABI; `None` if it is not loaded or doesn't say.
pub fn trace_abi(root: &Path) -> Option<u32> {
    let file = root.join("sys/module/thunderbolt_ibverbs/parameters/trace_abi");
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The driver's index of a device, from its node GUID as sysfs prints it.
pub fn device_index(node_guid: &str) -> Option<u32> {
    let rest = node_guid.strip_prefix(GUID_PREFIX)?;
    u32::from_str_radix(rest.get(rest.len().checked_sub(2)?..)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_the_last_byte_of_our_own_guids() {
        assert_eq!(device_index("0200:5442:1234:5601"), Some(1));
        assert_eq!(device_index("0200:5442:1234:56ff"), Some(255));
        assert_eq!(device_index("5054:00ff:fe12:3456"), None);
        assert_eq!(device_index("0200:5442:"), None);
    }
}
