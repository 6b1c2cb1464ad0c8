//! From the bytes of a request to its operation. The bytes are the caller's and may change
//! or be absent: nothing here is trusted beyond naming the call.

use aya_ebpf::helpers::bpf_probe_read_user;
use tbv_common::{
    Entry, MAX_ATTRS, Op,
    op::{ATTR_WRITE_CMD, METHOD_INVOKE_WRITE, OBJECT_DEVICE, RDMA_VERBS_IOCTL},
};

/// `struct ib_uverbs_ioctl_hdr` without its attributes.
#[repr(C)]
struct Header {
    length: u16,
    object: u16,
    method: u16,
    num_attrs: u16,
    reserved1: u64,
    driver: u32,
    reserved2: u32,
}

/// `struct ib_uverbs_attr`.
#[repr(C)]
struct Attr {
    id: u16,
    len: u16,
    flags: u16,
    data_id: u16,
    data: u64,
}

/// `struct ib_uverbs_cmd_hdr` up to the command.
pub const WRITE_HEADER: u64 = 8;

/// The operation of `ioctl(fd, number, address)`.
#[inline(always)]
pub fn ioctl(number: u32, address: u64) -> Op {
    if number != RDMA_VERBS_IOCTL {
        return Op::other_ioctl(number);
    }
    // SAFETY: the helper checks the address.
    let Ok(header) = (unsafe { bpf_probe_read_user(address as *const Header) }) else {
        return Op::undecoded(Entry::IoctlUnreadable);
    };
    if header.object != OBJECT_DEVICE || header.method != METHOD_INVOKE_WRITE {
        return Op::method(header.driver, header.object, header.method);
    }
    let attrs = address + size_of::<Header>() as u64;
    for i in 0..MAX_ATTRS {
        if i >= header.num_attrs as usize {
            break;
        }
        // SAFETY: the helper checks the address.
        let attr = unsafe { bpf_probe_read_user((attrs as *const Attr).wrapping_add(i)) };
        let Ok(attr) = attr else { break };
        if attr.id == ATTR_WRITE_CMD {
            return command(&attr);
        }
    }
    Op::undecoded(Entry::InvokeWriteUnknown)
}

/// Up to eight bytes stand in the attribute itself, more behind its pointer.
#[inline(always)]
fn command(attr: &Attr) -> Op {
    if attr.len <= 8 {
        return Op::invoke_write(attr.data as u32);
    }
    // SAFETY: the helper checks the address.
    match unsafe { bpf_probe_read_user(attr.data as *const u32) } {
        Ok(command) => Op::invoke_write(command),
        Err(_) => Op::undecoded(Entry::InvokeWriteUnknown),
    }
}

/// The address to keep of a write: 0 if it is too short to hold a command.
#[inline(always)]
pub fn write_address(address: u64, count: u64) -> u64 {
    if count < WRITE_HEADER { 0 } else { address }
}

/// The operation of `write(fd, address, count)`.
#[inline(always)]
pub fn write(address: u64, count: u64) -> Op {
    if count < WRITE_HEADER {
        return Op::undecoded(Entry::WriteUnreadable);
    }
    // SAFETY: the helper checks the address.
    match unsafe { bpf_probe_read_user(address as *const u32) } {
        Ok(command) => Op::write(command),
        Err(_) => Op::undecoded(Entry::WriteUnreadable),
    }
}

/// Whether the request's memory could not be read: the kernel may have brought it in since.
#[inline(always)]
pub fn unreadable(op: Op) -> bool {
    let kind = op.0 >> 60;
    kind == Entry::IoctlUnreadable as u64
        || kind == Entry::InvokeWriteUnknown as u64
        || kind == Entry::WriteUnreadable as u64
}
