//! Recognising our devices, by node GUID: udev renames devices, and the driver has no number of its own.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};

use tbv_proto::is_usb4_rdma_guid;

use crate::abi::{
    VERBS_MATCH_SENTINEL, VSYSFS_READ_NODE_GUID, verbs_device, verbs_device_ops, verbs_match_ent,
    verbs_sysfs_dev,
};
use crate::{context, memory, version};

/// libibverbs walks this table without checking whether there is one, so there is one that matches nothing.
static MATCH_NOTHING: MatchTable = MatchTable([verbs_match_ent {
    driver_data: null_mut(),
    u: 0,
    vendor: 0,
    device: 0,
    kind: VERBS_MATCH_SENTINEL,
}]);

struct MatchTable([verbs_match_ent; 1]);

// SAFETY: immutable, and its pointers are null.
unsafe impl Sync for MatchTable {}

/// What the constructor registers.
pub(crate) static OPS: verbs_device_ops = verbs_device_ops {
    name: c"usb4_rdma".as_ptr(),
    match_min_abi_version: version::LISTED,
    match_max_abi_version: version::LISTED,
    match_table: &raw const MATCH_NOTHING.0[0],
    static_providers: null(),
    match_device: Some(match_device),
    alloc_context: Some(context::alloc_context),
    import_context: None,
    alloc_device: Some(alloc_device),
    uninit_device: Some(uninit_device),
};

unsafe extern "C" fn match_device(device: *mut verbs_sysfs_dev) -> bool {
    // SAFETY: libibverbs asks about a device that it has just found.
    let device = unsafe { &*device };
    let guid = if device.flags & VSYSFS_READ_NODE_GUID != 0 {
        Some(device.node_guid)
    } else {
        // SAFETY: libibverbs terminates the path.
        let path = unsafe { CStr::from_ptr(device.ibdev_path.as_ptr()) };
        read_node_guid(Path::new(OsStr::from_bytes(path.to_bytes())))
    };
    guid.is_some_and(is_usb4_rdma_guid)
}

/// Node GUID from a device's folder in sysfs.
fn read_node_guid(device: &Path) -> Option<u64> {
    parse_guid(&std::fs::read_to_string(device.join("node_guid")).ok()?)
}

/// A GUID as sysfs prints it: four groups of four hexadecimal digits, `0200:5442:0000:0001`.
fn parse_guid(text: &str) -> Option<u64> {
    let mut guid = 0;
    let mut groups = 0;
    for group in text.trim_end().split(':') {
        if group.len() != 4 || !group.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        guid = guid << 16 | u64::from_str_radix(group, 16).ok()?;
        groups += 1;
    }
    (groups == 4).then_some(guid)
}

unsafe extern "C" fn alloc_device(_: *mut verbs_sysfs_dev) -> *mut verbs_device {
    // SAFETY: numbers and nullable pointers; libibverbs fills it.
    unsafe { memory::zeroed() }
}

unsafe extern "C" fn uninit_device(device: *mut verbs_device) {
    // SAFETY: from alloc_device, and libibverbs has dropped its last reference.
    unsafe { memory::free(device) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysfs_device() -> verbs_sysfs_dev {
        // SAFETY: numbers and nullable pointers.
        unsafe { std::mem::zeroed() }
    }

    fn matches(device: &mut verbs_sysfs_dev) -> bool {
        // SAFETY: a live device.
        unsafe { match_device(device) }
    }

    #[test]
    fn the_name_is_the_drivers() {
        // SAFETY: a literal.
        let name = unsafe { CStr::from_ptr(OPS.name) };
        assert_eq!(name.to_str(), Ok(tbv_proto::DRIVER_NAME));
    }

    #[test]
    fn a_guid_from_netlink_decides() {
        let mut device = sysfs_device();
        device.flags = VSYSFS_READ_NODE_GUID;
        device.node_guid = 0x0200_5442_1234_5678;
        assert!(matches(&mut device));
        device.node_guid = 0x0200_5443_1234_5678;
        assert!(!matches(&mut device));
    }

    #[test]
    fn without_netlink_sysfs_decides_whatever_the_name() {
        let folder = std::env::temp_dir().join(format!("usb4_rdma-match-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut device = sysfs_device();
        let path = folder.as_os_str().as_bytes();
        for (to, from) in device.ibdev_path.iter_mut().zip(path) {
            *to = *from as _;
        }
        // Ours by name only, and stale data that isn't flagged as read.
        device.ibdev_name[..4].copy_from_slice(&[b'u', b's', b'b', b'4'].map(|b| b as _));
        device.node_guid = 0x0200_5442_0000_0001;
        assert!(!matches(&mut device));
        std::fs::write(folder.join("node_guid"), "5054:0002:0000:0001\n").unwrap();
        assert!(!matches(&mut device));
        std::fs::write(folder.join("node_guid"), "0200:5442:0000:0001\n").unwrap();
        assert!(matches(&mut device));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn guids_are_parsed_strictly() {
        assert_eq!(parse_guid("0200:5442:89ab:CDEF\n"), Some(0x0200_5442_89ab_cdef));
        for bad in
            ["", "0200:5442:0000", "0200:5442:0000:0000:0000", "0200:5442:00000:000", "0200:5442:+000:0000"]
        {
            assert_eq!(parse_guid(bad), None, "{bad}");
        }
    }
}
