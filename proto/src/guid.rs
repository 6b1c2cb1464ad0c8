//! Recognising a device by its node GUID.

/// First four bytes of every node GUID, 02:00:54:42, as a big-endian number (`USB4_RDMA_GUID_PREFIX`).
pub const GUID_PREFIX: u32 = 0x0200_5442;

/// Where the prefix lies in a GUID read as a number (`USB4_RDMA_GUID_PREFIX_SHIFT`).
pub const GUID_PREFIX_SHIFT: u32 = 32;

/// Whether a node GUID, in host byte order (first byte most significant), belongs to this driver.
pub const fn is_usb4_rdma_guid(guid: u64) -> bool {
    (guid >> GUID_PREFIX_SHIFT) as u32 == GUID_PREFIX
}

#[cfg(test)]
mod tests {
    use super::is_usb4_rdma_guid;

    #[test]
    fn only_the_first_four_bytes_decide() {
        assert!(is_usb4_rdma_guid(0x0200_5442_0000_0000));
        assert!(is_usb4_rdma_guid(0x0200_5442_ffff_ffff));
        assert!(!is_usb4_rdma_guid(0x0200_5443_0000_0001));
        assert!(!is_usb4_rdma_guid(0x1234_5678_0200_5442));
        assert!(!is_usb4_rdma_guid(0));
        // The same bytes read in the wrong order.
        assert!(!is_usb4_rdma_guid(0x0200_5442_0000_0001_u64.swap_bytes()));
    }
}
