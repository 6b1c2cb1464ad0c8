//! From the bytes of a request to its operation. The bytes are the caller's and may change
//! or be absent: nothing here is trusted beyond naming the call.

use aya_ebpf::helpers::bpf_probe_read_user;
use tbv_common::{
    Entry, Handle, MAX_ATTRS, Op,
    op::{
        ATTR_CORE_IN, ATTR_WRITE_CMD, COMMAND_EXTENDED, METHOD_INVOKE_WRITE, OBJECT_DEVICE, RDMA_VERBS_IOCTL,
        queue_of_command, queue_of_object,
    },
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

/// Attributes that are read with the header.
const FIRST_ATTRS: usize = 4;

/// The beginning of a request.
#[repr(C)]
struct Begin {
    header: Header,
    attrs: [Attr; FIRST_ATTRS],
}

const HEADER: u64 = size_of::<Header>() as u64;

/// `struct ib_uverbs_cmd_hdr`.
pub const WRITE_HEADER: u64 = 8;
/// The same with `struct ib_uverbs_ex_cmd_hdr` behind it.
const WRITE_HEADER_EXTENDED: u64 = WRITE_HEADER + 16;
/// The attribute of a method that names its object.
const ATTR_OBJECT: u16 = 0;
/// The creating method of completion queues, queue pairs and shared receive queues.
const METHOD_CREATE: u16 = 0;

/// The operation of `ioctl(fd, number, address)`.
#[inline(always)]
pub fn ioctl(number: u32, address: u64) -> Op {
    if number != RDMA_VERBS_IOCTL {
        return Op::other_ioctl(number);
    }
    // What libibverbs sends is mostly this short. A request that ends with its page may not be readable so far.
    // SAFETY: the helper checks the address.
    let Ok(begin) = (unsafe { bpf_probe_read_user(address as *const Begin) }) else {
        return one_by_one(address);
    };
    let header = &begin.header;
    if header.object != OBJECT_DEVICE || header.method != METHOD_INVOKE_WRITE {
        return Op::method(header.driver, header.object, header.method);
    }
    for (i, attr) in begin.attrs.iter().enumerate() {
        if i < header.num_attrs as usize && attr.id == ATTR_WRITE_CMD {
            return command(attr);
        }
    }
    if header.num_attrs as usize <= FIRST_ATTRS {
        return Op::undecoded(Entry::InvokeWriteUnknown);
    }
    one_by_one(address)
}

/// The operation of a request that is long or partly unreadable.
#[inline(always)]
fn one_by_one(address: u64) -> Op {
    // SAFETY: the helper checks the address.
    let Ok(header) = (unsafe { bpf_probe_read_user(address as *const Header) }) else {
        return Op::undecoded(Entry::IoctlUnreadable);
    };
    if header.object != OBJECT_DEVICE || header.method != METHOD_INVOKE_WRITE {
        return Op::method(header.driver, header.object, header.method);
    }
    match attribute_of(address, &header, ATTR_WRITE_CMD) {
        Some(attr) => command(&attr),
        None => Op::undecoded(Entry::InvokeWriteUnknown),
    }
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

/// The queue that the request of a decoded operation names, if any; `address` is that of
/// [`ioctl`] or [`write`].
#[inline(always)]
pub fn handle(op: Op, address: u64) -> Handle {
    let kind = op.0 >> 60;
    if kind == Entry::Write as u64 {
        let extended = op.command() & COMMAND_EXTENDED != 0;
        let header = if extended { WRITE_HEADER_EXTENDED } else { WRITE_HEADER };
        return of_command(op, |offset| word(address + header + offset));
    }
    if kind == Entry::InvokeWrite as u64 {
        return of_command(op, |offset| match attribute(address, ATTR_CORE_IN) {
            Some(attr) if attr.len > 8 => word(attr.data + offset),
            Some(attr) if offset == 0 => Some(attr.data as u32),
            _ => None,
        });
    }
    if kind != Entry::Method as u64 {
        return Handle(0);
    }
    // Attribute 0 of a method is the object that it is about. A handle is inline; one that the kernel is still to
    // make is not there yet.
    let Some(kind) = queue_of_object(op.object()) else { return Handle(0) };
    match attribute(address, ATTR_OBJECT) {
        Some(attr) if attr.len == 0 && op.method_id() != METHOD_CREATE => Handle::new(kind, attr.data as u32),
        _ => Handle(0),
    }
}

#[inline(always)]
fn of_command(op: Op, read: impl Fn(u64) -> Option<u32>) -> Handle {
    let Some((kind, offset)) = queue_of_command(op.command()) else { return Handle(0) };
    read(offset).map_or(Handle(0), |handle| Handle::new(kind, handle))
}

#[inline(always)]
fn word(address: u64) -> Option<u32> {
    // SAFETY: the helper checks the address.
    unsafe { bpf_probe_read_user(address as *const u32) }.ok()
}

/// The request's attribute of this id.
#[inline(always)]
fn attribute(address: u64, id: u16) -> Option<Attr> {
    // SAFETY: the helper checks the address.
    let header = unsafe { bpf_probe_read_user(address as *const Header) }.ok()?;
    attribute_of(address, &header, id)
}

#[inline(always)]
fn attribute_of(address: u64, header: &Header, id: u16) -> Option<Attr> {
    for i in 0..MAX_ATTRS {
        if i >= header.num_attrs as usize {
            break;
        }
        // SAFETY: the helper checks the address.
        let attr =
            unsafe { bpf_probe_read_user(((address + HEADER) as *const Attr).wrapping_add(i)) }.ok()?;
        if attr.id == id {
            return Some(attr);
        }
    }
    None
}

/// Whether the request's memory could not be read: the kernel may have brought it in since.
#[inline(always)]
pub fn unreadable(op: Op) -> bool {
    let kind = op.0 >> 60;
    kind == Entry::IoctlUnreadable as u64
        || kind == Entry::InvokeWriteUnknown as u64
        || kind == Entry::WriteUnreadable as u64
}
