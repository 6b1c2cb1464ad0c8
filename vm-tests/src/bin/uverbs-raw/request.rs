//! The bytes of requests (`rdma/rdma_user_ioctl_cmds.h`, `rdma/ib_user_verbs.h`).

use crate::memory;

/// `RDMA_VERBS_IOCTL`.
pub(crate) const RDMA_VERBS_IOCTL: u64 = 0xc018_1b01;
/// Size of `struct ib_uverbs_ioctl_hdr`.
pub(crate) const HEADER: usize = 24;
/// Size of `struct ib_uverbs_attr`.
pub(crate) const ATTRIBUTE: usize = 16;
/// `UVERBS_ATTR_F_MANDATORY`.
const MANDATORY: u16 = 1;
/// `IB_USER_VERBS_CMD_FLAG_EXTENDED`.
pub(crate) const EXTENDED: u32 = 0x8000_0000;
/// `UVERBS_ATTR_WRITE_CMD`.
const WRITE_CMD: u16 = 2;

/// `struct ib_uverbs_attr`.
#[derive(Clone, Copy)]
pub(crate) struct Attribute {
    id: u16,
    length: u16,
    flags: u16,
    data: u64,
}

impl Attribute {
    /// A value that stands in the attribute itself.
    pub(crate) fn value(id: u16, data: u64) -> Self {
        Attribute { id, length: 8, flags: MANDATORY, data }
    }

    /// `length` bytes at `address`; the kernel takes up to 8 bytes as a value if it reads them.
    pub(crate) fn pointer(id: u16, length: u16, address: u64) -> Self {
        Attribute { id, length, flags: MANDATORY, data: address }
    }

    /// Room for `length` bytes of response.
    pub(crate) fn response(id: u16, length: u16) -> Self {
        Self::pointer(id, length, memory::room(length.into()))
    }

    /// One that a kernel which doesn't know it ignores.
    pub(crate) fn optional(id: u16) -> Self {
        Attribute { id, length: 0, flags: 0, data: 0 }
    }

    /// INVOKE_WRITE's command.
    pub(crate) fn command(command: u32) -> Self {
        Self::value(WRITE_CMD, command.into())
    }

    /// INVOKE_WRITE's command behind a pointer.
    pub(crate) fn command_at(address: u64) -> Self {
        Self::pointer(WRITE_CMD, 16, address)
    }
}

/// An ioctl request with the right length.
pub(crate) fn ioctl(driver: u32, object: u16, method: u16, attributes: &[Attribute]) -> Vec<u8> {
    let length = HEADER + ATTRIBUTE * attributes.len();
    with_length(length as u16, driver, object, method, attributes)
}

/// An ioctl request that claims to have `length` bytes.
pub(crate) fn with_length(
    length: u16,
    driver: u32,
    object: u16,
    method: u16,
    attributes: &[Attribute],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in [length, object, method, attributes.len() as u16] {
        bytes.extend(field.to_ne_bytes());
    }
    bytes.extend([0; 8]);
    bytes.extend(driver.to_ne_bytes());
    bytes.extend([0; 4]);
    for attribute in attributes {
        for field in [attribute.id, attribute.length, attribute.flags, 0] {
            bytes.extend(field.to_ne_bytes());
        }
        bytes.extend(attribute.data.to_ne_bytes());
    }
    bytes
}

/// A write request: `struct ib_uverbs_cmd_hdr` with sizes in 4-byte words, and what follows it.
pub(crate) fn write(command: u32, in_words: u16, out_words: u16, rest: &[u8]) -> Vec<u8> {
    let mut bytes = command.to_ne_bytes().to_vec();
    bytes.extend(in_words.to_ne_bytes());
    bytes.extend(out_words.to_ne_bytes());
    bytes.extend(rest);
    bytes
}
