//! Names of operations and errno values, as the uapi headers (`/usr/include/rdma`) spell
//! them without prefix.
//!
//! * Write commands, through write(2) as well as through INVOKE_WRITE:
//!   `IB_USER_VERBS_CMD_POLL_CQ` → `POLL_CQ`, `IB_USER_VERBS_EX_CMD_CREATE_QP` → `EX_CREATE_QP`.
//! * Methods: `UVERBS_METHOD_CQ_DESTROY` → `CQ_DESTROY`. One exception: `UVERBS_METHOD_REG_DMABUF_MR`
//!   is `MR_REG_DMABUF`, named like every other creating method, object first.
//! * Methods of a driver's own: the driver's prefix without `IB_` and `METHOD_`, so that two drivers
//!   never share a name: `MLX5_IB_METHOD_DEVX_OBJ_CREATE` → `MLX5_DEVX_OBJ_CREATE`,
//!   `BNXT_RE_METHOD_NOTIFY_DRV` → `BNXT_RE_NOTIFY_DRV`.
//! * Ids without a name in hex: `CMD_0x4f`, `EX_CMD_0x4f`, `CQ_METHOD_0x9`, `OBJECT_0x12_METHOD_0x3`,
//!   `MLX5_OBJECT_0x1020_METHOD_0x1000`, `DRIVER_0x0_CQ_METHOD_0x1004`, `IOCTL_0x5401`.
//! * Calls that can't be decoded: `INVOKE_WRITE_UNREADABLE`, `IOCTL_UNREADABLE`, `WRITE_UNREADABLE`.
//!
//! The names `GET_CONTEXT`, `QUERY_PORT`, `QUERY_MR` and `REG_MR` belong to a method and to a write
//! command alike, because the uapi gives them to both: compare [`Op`]s, not names, to tell them apart.
//!
//! Driver id 0 (`RDMA_DRIVER_UNKNOWN`) is shared by every driver outside the kernel tree. The four
//! `DV_*` methods are those of the USB4 driver's Direct Verbs (object 0x1000); another out-of-tree
//! driver that uses the same ids would be given these names too, and nothing in the call says which
//! of the two it was. Other ids of driver 0 stay in hex.

mod errno;
mod table;

use std::borrow::Cow;

pub use errno::errno_name;
use table::{COMMANDS, DRIVERS, METHODS, OBJECTS};
use tbv_common::op::{COMMAND_EXTENDED, COMMAND_INVALID, ID_DRIVER_NS};
use tbv_common::{Entry, Op};

/// The name of an operation; see the module's rules.
///
/// A value that no eBPF program writes is shown as `OP_0x…` with all its bits.
pub fn op_name(op: Op) -> Cow<'static, str> {
    match op.entry() {
        Some(Entry::Method) => method_name(op.driver(), op.object(), op.method_id()),
        Some(Entry::InvokeWrite | Entry::Write) if op.command() == COMMAND_INVALID => {
            format!("CMD_{:#x}", u32::from(op.object()) << 16 | u32::from(op.method_id())).into()
        }
        Some(Entry::InvokeWrite | Entry::Write) => command_name(op.command()),
        Some(Entry::InvokeWriteUnknown) => "INVOKE_WRITE_UNREADABLE".into(),
        Some(Entry::OtherIoctl) => format!("IOCTL_{:#x}", op.ioctl_number()).into(),
        Some(Entry::IoctlUnreadable) => "IOCTL_UNREADABLE".into(),
        Some(Entry::WriteUnreadable) => "WRITE_UNREADABLE".into(),
        None => format!("OP_{:#018x}", op.0).into(),
    }
}

/// Whether [`op_name`] may give this name.
pub fn is_op_name(name: &str) -> bool {
    const UNREADABLE: [&str; 3] = ["INVOKE_WRITE_UNREADABLE", "IOCTL_UNREADABLE", "WRITE_UNREADABLE"];
    UNREADABLE.contains(&name)
        || COMMANDS.iter().any(|row| row.1 == name)
        || METHODS.iter().any(|row| row.3 == name)
        || is_hex_name(name)
}

/// Whether it is a name that stands for a number.
fn is_hex_name(name: &str) -> bool {
    let after = |prefix| name.strip_prefix(prefix);
    if let Some(number) = after("IOCTL_").or_else(|| after("EX_CMD_")).or_else(|| after("CMD_")) {
        return is_hex(number, u32::MAX.into());
    }
    if let Some(number) = after("OP_0x") {
        return number.len() == 16 && number.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    }
    let Some((whose, method)) = name.rsplit_once("METHOD_") else { return false };
    let Some(whose) = whose.strip_suffix('_') else { return false };
    is_hex(method, u16::MAX.into()) && is_object(whose)
}

/// Whether [`object_name`], after [`driver_name`] or alone, may give this, without its last underscore.
fn is_object(name: &str) -> bool {
    let known = |name: &str| OBJECTS.iter().any(|row| row.2 == name);
    let alone = |name: &str| {
        known(name) || name.strip_prefix("OBJECT_").is_some_and(|number| is_hex(number, u16::MAX.into()))
    };
    let of_driver = |name: &str| {
        let numbered = name.strip_prefix("DRIVER_").and_then(|rest| rest.split_once('_'));
        let numbered =
            numbered.filter(|(number, _)| is_hex(number, u32::MAX.into())).map(|(_, object)| object);
        let named = DRIVERS.iter().find_map(|row| name.strip_prefix(row.1)?.strip_prefix('_'));
        numbered.or(named).is_some_and(alone)
    };
    alone(name) || of_driver(name)
}

/// Whether it is a number as `{:#x}` prints it.
fn is_hex(text: &str, most: u64) -> bool {
    let number = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.is_some_and(|number| number <= most && format!("{number:#x}") == text)
}

/// The name of a send work request's opcode: `enum ib_uverbs_wr_opcode` without prefix.
pub fn work_opcode_name(opcode: u32) -> Cow<'static, str> {
    const NAMES: [&str; 7] = [
        "RDMA_WRITE",
        "RDMA_WRITE_WITH_IMM",
        "SEND",
        "SEND_WITH_IMM",
        "RDMA_READ",
        "ATOMIC_CMP_AND_SWP",
        "ATOMIC_FETCH_AND_ADD",
    ];
    match NAMES.get(opcode as usize) {
        Some(name) => (*name).into(),
        None => format!("WR_{opcode:#x}").into(),
    }
}

fn command_name(command: u16) -> Cow<'static, str> {
    match COMMANDS.iter().find(|row| row.0 == command) {
        Some(row) => row.1.into(),
        None if command & COMMAND_EXTENDED != 0 => {
            format!("EX_CMD_{:#x}", command & !COMMAND_EXTENDED).into()
        }
        None => format!("CMD_{command:#x}").into(),
    }
}

fn method_name(driver: u32, object: u16, method: u16) -> Cow<'static, str> {
    match METHODS.iter().find(|row| (row.0, row.1, row.2) == (driver, object, method)) {
        Some(row) => row.3.into(),
        None => {
            let scope = if (object | method) & ID_DRIVER_NS != 0 { driver_name(driver) } else { "".into() };
            format!("{scope}{}METHOD_{method:#x}", object_name(driver, object)).into()
        }
    }
}

/// `MLX5_` or `DRIVER_0x1f_`.
fn driver_name(driver: u32) -> Cow<'static, str> {
    match DRIVERS.iter().find(|row| row.0 == driver) {
        Some(row) => format!("{}_", row.1).into(),
        None => format!("DRIVER_{driver:#x}_").into(),
    }
}

/// `CQ_`, `DEVX_OBJ_` or `OBJECT_0x12_`.
fn object_name(driver: u32, object: u16) -> Cow<'static, str> {
    let driver = if object & ID_DRIVER_NS != 0 { driver } else { 0 };
    match OBJECTS.iter().find(|row| (row.0, row.1) == (driver, object)) {
        Some(row) => format!("{}_", row.2).into(),
        None => format!("OBJECT_{object:#x}_").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tbv_common::op::CMD_EXTENDED;

    #[test]
    fn named_operations() {
        for (op, name) in [
            (Op::invoke_write(21), "POLL_CQ"),
            (Op::write(21), "POLL_CQ"),
            (Op::write(2 | CMD_EXTENDED), "EX_CMD_0x2"),
            (Op::invoke_write(24 | CMD_EXTENDED), "EX_CREATE_QP"),
            (Op::method(1, 3, 1), "CQ_DESTROY"),
            (Op::method(15, 0, 6), "QUERY_GID_ENTRY"),
            (Op::method(0, 7, 4), "MR_REG_DMABUF"),
            (Op::method(1, 0x1001, 0x1000), "MLX5_DEVX_OBJ_CREATE"),
            (Op::method(1, 9, 0x1000), "MLX5_CREATE_FLOW"),
            (Op::method(0, 0x1000, 0x1000), "DV_QUERY_CAPS"),
            (Op::method(0, 0x1000, 0x1003), "DV_KICK"),
        ] {
            assert_eq!(op_name(op), name);
            assert!(is_op_name(name), "{name}");
        }
    }

    #[test]
    fn unnamed_operations_are_hex() {
        for (op, name) in [
            (Op::write(0x4f), "CMD_0x4f"),
            (Op::method(0, 3, 9), "CQ_METHOD_0x9"),
            (Op::method(0, 0x212, 3), "OBJECT_0x212_METHOD_0x3"),
            (Op::method(1, 0x1020, 0x1000), "MLX5_OBJECT_0x1020_METHOD_0x1000"),
            (Op::method(1, 0x1001, 9), "MLX5_DEVX_OBJ_METHOD_0x9"),
            (Op::method(1, 3, 0x1004), "MLX5_CQ_METHOD_0x1004"),
            (Op::method(0, 3, 0x1004), "DRIVER_0x0_CQ_METHOD_0x1004"),
            (Op::method(0xabc, 0x1000, 0x1000), "DRIVER_0xabc_OBJECT_0x1000_METHOD_0x1000"),
            (Op::other_ioctl(0x5401), "IOCTL_0x5401"),
            (Op::undecoded(Entry::InvokeWriteUnknown), "INVOKE_WRITE_UNREADABLE"),
            (Op::undecoded(Entry::IoctlUnreadable), "IOCTL_UNREADABLE"),
            (Op::undecoded(Entry::WriteUnreadable), "WRITE_UNREADABLE"),
            (Op(7), "OP_0x0000000000000007"),
        ] {
            assert_eq!(op_name(op), name);
            assert!(is_op_name(name), "{name}");
        }
    }

    #[test]
    fn what_is_no_name_is_known() {
        let unwritten = [
            "IOCTL_0xZZ",
            "IOCTL_0x",
            "IOCTL_0x05401",
            "IOCTL_0x5A01",
            "IOCTL_0x1bad1bad1",
            "CMD_0x",
            "OP_0x1",
            "POLL_CQ_METHOD_0x1",
            "CQ_METHOD_0x99999",
            "CQ_METHOD_",
            "METHOD_0x1",
            "DRIVER_0xq_CQ_METHOD_0x1001",
            "FOO_UNREADABLE",
        ];
        let others = ["", "*", "POLLCQ", "poll_cq", "IB_USER_VERBS_CMD_POLL_CQ"];
        for name in unwritten.into_iter().chain(others) {
            assert!(!is_op_name(name), "{name}");
        }
    }

    #[test]
    fn only_the_documented_names_are_shared() {
        let mut shared: Vec<_> = METHODS
            .iter()
            .map(|row| row.3)
            .filter(|name| COMMANDS.iter().any(|row| row.1 == *name))
            .collect();
        shared.sort_unstable();
        assert_eq!(shared, ["GET_CONTEXT", "QUERY_MR", "QUERY_PORT", "REG_MR"]);
        let mut names: Vec<_> = METHODS.iter().map(|row| row.3).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METHODS.len(), "two methods with one name");
    }
}
