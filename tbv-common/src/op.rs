//! The identity of one call into `ib_uverbs`.
//!
//! An operation is not an ioctl number: libibverbs sends every verb through one ioctl
//! (`RDMA_VERBS_IOCTL`) whose header names an object and a method, and wraps the legacy
//! commands of write(2) in object DEVICE, method INVOKE_WRITE.

use crate::maps::HandleKind;

/// `RDMA_VERBS_IOCTL`, `_IOWR(0x1b, 1, struct ib_uverbs_ioctl_hdr)` (`rdma/rdma_user_ioctl_cmds.h`).
pub const RDMA_VERBS_IOCTL: u32 = 0xc018_1b01;
/// `UVERBS_OBJECT_DEVICE` and `UVERBS_METHOD_INVOKE_WRITE`: both zero (`rdma/ib_user_ioctl_cmds.h`).
pub const OBJECT_DEVICE: u16 = 0;
/// See [`OBJECT_DEVICE`].
pub const METHOD_INVOKE_WRITE: u16 = 0;
/// `UVERBS_ATTR_WRITE_CMD`: the attribute of INVOKE_WRITE that carries the write command.
pub const ATTR_WRITE_CMD: u16 = 2;
/// `UVERBS_ATTR_CORE_IN`: the attribute of INVOKE_WRITE that carries the command's own structure.
pub const ATTR_CORE_IN: u16 = 0;
/// Bit of object and method ids that says "driver's own" (`UVERBS_ID_NS_SHIFT` is 12).
pub const ID_DRIVER_NS: u16 = 0x1000;
/// `IB_USER_VERBS_CMD_FLAG_EXTENDED`: bit 31 of a write command.
pub const CMD_EXTENDED: u32 = 0x8000_0000;
/// `IB_USER_VERBS_CMD_COMMAND_MASK`: the bits of a write command that number it.
pub const CMD_MASK: u32 = 0xff;
/// Set in [`Op::command`] when the write command had bits that no command has; the kernel refuses such. The whole
/// command is in place of object and method.
pub const COMMAND_INVALID: u16 = 0x200;
/// Set in [`Op::command`] when the write command was an extended one.
pub const COMMAND_EXTENDED: u16 = 0x100;

/// How a call came in and how far it could be decoded.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Entry {
    /// ioctl, object and method.
    Method = 1,
    /// ioctl, INVOKE_WRITE with a write command.
    InvokeWrite = 2,
    /// ioctl, INVOKE_WRITE whose command attribute is missing or unreadable.
    InvokeWriteUnknown = 3,
    /// ioctl with another number than `RDMA_VERBS_IOCTL`.
    OtherIoctl = 4,
    /// ioctl whose header can't be read.
    IoctlUnreadable = 5,
    /// write(2) with a command.
    Write = 6,
    /// write(2) too short for a command header, or unreadable.
    WriteUnreadable = 7,
}

/// One operation, packed as `kind:4 | driver id:12 | object:16 | method:16 | command:16`.
/// For [`Entry::OtherIoctl`] the low 32 bits are the ioctl number.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Op(pub u64);

impl Op {
    const fn new(entry: Entry, driver: u32, object: u16, method: u16, command: u16) -> Self {
        Op((entry as u64) << 60
            | ((driver as u64) & 0xfff) << 48
            | (object as u64) << 32
            | (method as u64) << 16
            | command as u64)
    }

    /// An object/method call. The driver id is kept only where it gives the ids their
    /// meaning, so that one operation has one identity on every device.
    #[inline(always)]
    pub const fn method(driver: u32, object: u16, method: u16) -> Self {
        let driver = if (object | method) & ID_DRIVER_NS != 0 { driver } else { 0 };
        Self::new(Entry::Method, driver, object, method, 0)
    }

    /// A write command inside INVOKE_WRITE.
    #[inline(always)]
    pub const fn invoke_write(command: u32) -> Self {
        Self::of_command(Entry::InvokeWrite, command)
    }

    /// A write command through write(2).
    #[inline(always)]
    pub const fn write(command: u32) -> Self {
        Self::of_command(Entry::Write, command)
    }

    #[inline(always)]
    const fn of_command(entry: Entry, command: u32) -> Self {
        if command & !(CMD_EXTENDED | CMD_MASK) != 0 {
            return Self::new(entry, 0, (command >> 16) as u16, command as u16, COMMAND_INVALID);
        }
        let extended = if command & CMD_EXTENDED != 0 { COMMAND_EXTENDED } else { 0 };
        Self::new(entry, 0, OBJECT_DEVICE, METHOD_INVOKE_WRITE, (command & CMD_MASK) as u16 | extended)
    }

    /// An ioctl of another number.
    #[inline(always)]
    pub const fn other_ioctl(cmd: u32) -> Self {
        Op((Entry::OtherIoctl as u64) << 60 | cmd as u64)
    }

    /// A call that could not be decoded further than its kind.
    #[inline(always)]
    pub const fn undecoded(entry: Entry) -> Self {
        Self::new(entry, 0, 0, 0, 0)
    }

    /// How the call came in; `None` for a value that no program writes.
    pub const fn entry(self) -> Option<Entry> {
        Some(match self.0 >> 60 {
            1 => Entry::Method,
            2 => Entry::InvokeWrite,
            3 => Entry::InvokeWriteUnknown,
            4 => Entry::OtherIoctl,
            5 => Entry::IoctlUnreadable,
            6 => Entry::Write,
            7 => Entry::WriteUnreadable,
            _ => return None,
        })
    }

    /// `enum rdma_driver_id`; 0 unless the object or the method is a driver's own.
    pub const fn driver(self) -> u32 {
        (self.0 >> 48 & 0xfff) as u32
    }

    /// Object id (`enum uverbs_default_objects` or a driver's).
    pub const fn object(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// Method id of the object.
    pub const fn method_id(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Write command (`enum ib_uverbs_write_cmds`), with [`COMMAND_EXTENDED`] if extended.
    pub const fn command(self) -> u16 {
        self.0 as u16
    }

    /// The number of an [`Entry::OtherIoctl`].
    pub const fn ioctl_number(self) -> u32 {
        self.0 as u32
    }
}

/// Where the structure of a write command names the queue it is about (`rdma/ib_user_verbs.h`): the kind of queue
/// and the byte offset of its handle. `None` for commands that name none.
#[inline(always)]
pub const fn queue_of_command(command: u16) -> Option<(HandleKind, u64)> {
    // struct ib_uverbs_modify_qp begins with two addresses of 32 bytes.
    const ADDRESSES: u64 = 64;
    const GID: u64 = 16;
    const RESPONSE: u64 = 8;
    Some(match command & !COMMAND_EXTENDED {
        // RESIZE_CQ, DESTROY_CQ, POLL_CQ
        19..=21 => (HandleKind::Cq, RESPONSE),
        // REQ_NOTIFY_CQ
        23 => (HandleKind::Cq, 0),
        // MODIFY_QP
        26 => (HandleKind::Qp, ADDRESSES),
        // QUERY_QP, DESTROY_QP, POST_SEND, POST_RECV
        25 | 27..=29 => (HandleKind::Qp, RESPONSE),
        // ATTACH_MCAST, DETACH_MCAST
        30 | 31 => (HandleKind::Qp, GID),
        // MODIFY_SRQ
        33 => (HandleKind::Srq, 0),
        // QUERY_SRQ, DESTROY_SRQ, POST_SRQ_RECV
        34..=36 => (HandleKind::Srq, RESPONSE),
        _ => return None,
    })
}

/// The kind of queue that methods of this object are about (`enum uverbs_default_objects`).
#[inline(always)]
pub const fn queue_of_object(object: u16) -> Option<HandleKind> {
    Some(match object {
        3 => HandleKind::Cq,
        4 => HandleKind::Qp,
        5 => HandleKind::Srq,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_id_counts_only_in_the_driver_namespace() {
        assert_eq!(Op::method(1, 3, 1), Op::method(7, 3, 1));
        assert_ne!(Op::method(1, 3, 0x1001), Op::method(7, 3, 0x1001));
        assert_eq!(Op::method(7, 0x1000, 2).driver(), 7);
    }

    #[test]
    fn commands_keep_mode_and_extension_apart() {
        let plain = Op::invoke_write(12);
        assert_eq!((plain.entry(), plain.command()), (Some(Entry::InvokeWrite), 12));
        assert_eq!(Op::write(12 | CMD_EXTENDED).command(), 12 | COMMAND_EXTENDED);
        assert_ne!(Op::write(12), Op::invoke_write(12));
        let invalid = Op::write(0x00ab_0103);
        assert_eq!((invalid.entry(), invalid.command()), (Some(Entry::Write), COMMAND_INVALID));
        assert_eq!((invalid.object(), invalid.method_id()), (0x00ab, 0x0103));
        assert_eq!(Op::other_ioctl(0x5401).ioctl_number(), 0x5401);
        assert_eq!(Op(0).entry(), None);
    }
}
