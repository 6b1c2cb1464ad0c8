//! The calls that can be sent, each with the operation that it must be counted as.

use anyhow::Result;

use crate::memory::{self, KERNEL, UNMAPPED};
pub(crate) use crate::request::RDMA_VERBS_IOCTL;
use crate::request::{self, ATTRIBUTE, Attribute, EXTENDED, HEADER};

/// One call.
pub(crate) struct Case {
    /// What it is called on the command line.
    pub(crate) name: &'static str,
    /// The operation.
    pub(crate) op: &'static str,
    /// How it is sent.
    pub(crate) action: Action,
}

/// A system call on the device file.
pub(crate) enum Action {
    Ioctl {
        number: u64,
        address: usize,
    },
    /// An ioctl whose request lies in memory that only the kernel's own access brings in.
    IoctlInFreshPage {
        number: u64,
        request: Vec<u8>,
    },
    Write {
        address: usize,
        size: usize,
    },
}

const DEVICE: u16 = 0;
const CQ: u16 = 3;
const INVOKE_WRITE: u16 = 0;
const QUERY_PORT: u16 = 2;
const GET_CONTEXT: u16 = 3;
const QUERY_GID_ENTRY: u16 = 6;
const CQ_DESTROY: u16 = 1;
const MLX5: u32 = 1;

const QUERY_DEVICE: u32 = 1;
const POLL_CQ: u32 = 21;
const UNKNOWN: u32 = 0x4f;

/// More than the sizes of the responses used here.
const RESPONSE: u16 = 256;

fn verbs(name: &'static str, op: &'static str, address: usize) -> Case {
    Case { name, op, action: Action::Ioctl { number: RDMA_VERBS_IOCTL, address } }
}

fn write(name: &'static str, op: &'static str, address: usize, size: usize) -> Case {
    Case { name, op, action: Action::Write { address, size } }
}

/// Every process's first call: nearly all others need a context.
pub(crate) fn get_context(driver: u32) -> Case {
    let attributes = [Attribute::response(0, 4), Attribute::response(1, 8)];
    let bytes = request::ioctl(driver, DEVICE, GET_CONTEXT, &attributes);
    verbs("get-context", "GET_CONTEXT", memory::keep(&bytes))
}

/// Calls that the kernel answers before ib_uverbs sees them; none of them is to be counted.
/// `FIFREEZE` and `FITHAW` end with EOPNOTSUPP: devtmpfs cannot be frozen.
pub(crate) fn unseen(driver: u32) -> Vec<Case> {
    let zero = memory::keep(&0u64.to_ne_bytes());
    let numbers = [
        2,
        0x5421,
        0x5450,
        0x5451,
        0x5452,
        0x5460,
        0x4004_9409,
        0x4020_940d,
        0xc018_9436,
        0xc020_660b,
        0xc004_5877,
        0xc004_5878,
        0x8011_1500,
        0x8081_1501,
    ];
    let request = memory::keep(&query_port(driver));
    let mut cases: Vec<Case> = numbers
        .into_iter()
        .flat_map(|number| [zero, UNMAPPED].map(|address| (number, address)))
        .map(|(number, address)| Case { name: "", op: "", action: Action::Ioctl { number, address } })
        .collect();
    cases.push(write("", "", KERNEL, 24));
    cases.push(write("", "", request, usize::MAX));
    cases.push(write("", "", request, 1 << 62));
    cases
}

/// All cases.
pub(crate) fn all(driver: u32) -> Result<Vec<Case>> {
    let mut cases = vec![get_context(driver)];
    cases.extend(methods(driver));
    cases.extend(invoke_write(driver)?);
    cases.extend(malformed(driver)?);
    cases.extend(writes()?);
    Ok(cases)
}

fn query_port(driver: u32) -> Vec<u8> {
    let attributes = [Attribute::value(0, 1), Attribute::response(1, RESPONSE)];
    request::ioctl(driver, DEVICE, QUERY_PORT, &attributes)
}

fn methods(driver: u32) -> Vec<Case> {
    let ioctl = |name, op, driver, object, method, attributes: &[Attribute]| {
        verbs(name, op, memory::keep(&request::ioctl(driver, object, method, attributes)))
    };
    let gid = |index| {
        let response = Attribute::response(3, 32);
        [Attribute::value(0, 1), Attribute::value(1, index), Attribute::value(2, 0), response]
    };
    let number = |name, op, number| Case { name, op, action: Action::Ioctl { number, address: UNMAPPED } };
    vec![
        verbs("query-port", "QUERY_PORT", memory::keep(&query_port(driver))),
        Case {
            name: "query-port-fresh-page",
            op: "QUERY_PORT",
            action: Action::IoctlInFreshPage { number: RDMA_VERBS_IOCTL, request: query_port(driver) },
        },
        ioctl("query-gid", "QUERY_GID_ENTRY", driver, DEVICE, QUERY_GID_ENTRY, &gid(0)),
        ioctl("query-gid-bad-index", "QUERY_GID_ENTRY", driver, DEVICE, QUERY_GID_ENTRY, &gid(99_999)),
        ioctl("unknown-object", "OBJECT_0x212_METHOD_0x3", driver, 0x212, 3, &[]),
        ioctl("unknown-method", "CQ_METHOD_0x9", driver, CQ, 9, &[]),
        ioctl("driver-method", "RXE_CQ_METHOD_0x1009", 14, CQ, 0x1009, &[]),
        ioctl("other-driver", "MLX5_DEVX_OBJ_CREATE", MLX5, 0x1001, 0x1000, &[]),
        number("terminal-ioctl", "IOCTL_0x5401", 0x5401),
        number("rdma-ioctl", "IOCTL_0xc0181b02", RDMA_VERBS_IOCTL + 1),
    ]
}

fn invoke_write(driver: u32) -> Result<Vec<Case>> {
    let invoke = |name, op, attributes: &[Attribute]| {
        verbs(name, op, memory::keep(&request::ioctl(driver, DEVICE, INVOKE_WRITE, attributes)))
    };
    let (input, output) = (Attribute::value(0, 0), Attribute::response(1, RESPONSE));
    let command = Attribute::command(QUERY_DEVICE);
    let at_pointer = Attribute::command_at(memory::keep(&POLL_CQ.to_ne_bytes().repeat(4)) as u64);
    let bad_pointer = Attribute::command_at(UNMAPPED as u64);
    let many: Vec<_> = (0..197).map(|i| Attribute::optional(0x500 + i)).collect();
    let request = request::ioctl(driver, DEVICE, INVOKE_WRITE, &[command, input, output]);
    let cut = |attributes: usize| memory::cut_off(&request, HEADER + ATTRIBUTE * attributes);
    Ok(vec![
        invoke("invoke", "QUERY_DEVICE", &[input, output, command]),
        invoke(
            "invoke-extended",
            "EX_QUERY_DEVICE",
            &[input, output, Attribute::command(QUERY_DEVICE | EXTENDED)],
        ),
        invoke("invoke-unknown", "CMD_0x4f", &[input, output, Attribute::command(UNKNOWN)]),
        invoke(
            "invoke-unknown-extended",
            "EX_CMD_0x4f",
            &[input, output, Attribute::command(UNKNOWN | EXTENDED)],
        ),
        invoke("invoke-invalid", "CMD_0x10001", &[input, output, Attribute::command(0x0001_0001)]),
        invoke("invoke-by-pointer", "POLL_CQ", &[input, output, at_pointer]),
        invoke("invoke-bad-pointer", "INVOKE_WRITE_UNREADABLE", &[input, output, bad_pointer]),
        invoke("invoke-no-command", "INVOKE_WRITE_UNREADABLE", &[input, output]),
        invoke("invoke-no-attributes", "INVOKE_WRITE_UNREADABLE", &[]),
        invoke("invoke-200-attributes", "QUERY_DEVICE", &[&[command, input, output], &many[..]].concat()),
        // A command behind the 16th attribute isn't looked for.
        invoke(
            "invoke-command-last",
            "INVOKE_WRITE_UNREADABLE",
            &[&[input, output], &many[..], &[command]].concat(),
        ),
        verbs("invoke-attributes-unmapped", "INVOKE_WRITE_UNREADABLE", cut(0)?),
        verbs("invoke-input-unmapped", "QUERY_DEVICE", cut(1)?),
    ])
}

fn malformed(driver: u32) -> Result<Vec<Case>> {
    let request = query_port(driver);
    let length = |name, length| {
        let bytes = request::with_length(length, driver, CQ, CQ_DESTROY, &[Attribute::value(0, 1)]);
        verbs(name, "CQ_DESTROY", memory::keep(&bytes))
    };
    let attributes = |name, count| {
        let attributes = vec![Attribute::value(0x77, 0); count];
        let bytes = request::ioctl(driver, CQ, CQ_DESTROY, &attributes);
        verbs(name, "CQ_DESTROY", memory::keep(&bytes))
    };
    Ok(vec![
        length("length-0", 0),
        length("length-short", (HEADER + ATTRIBUTE - 1) as u16),
        length("length-long", (HEADER + ATTRIBUTE + 8) as u16),
        length("length-65535", u16::MAX),
        attributes("no-attributes", 0),
        attributes("unknown-attribute", 1),
        attributes("200-attributes", 200),
        attributes("300-attributes", 300),
        verbs("null-pointer", "IOCTL_UNREADABLE", 0),
        verbs("bad-pointer", "IOCTL_UNREADABLE", UNMAPPED),
        verbs("kernel-pointer", "IOCTL_UNREADABLE", KERNEL),
        verbs("header-cut-off", "IOCTL_UNREADABLE", memory::cut_off(&request, HEADER / 2)?),
        verbs("attributes-cut-off", "QUERY_PORT", memory::cut_off(&request, HEADER + ATTRIBUTE + 8)?),
    ])
}

fn writes() -> Result<Vec<Case>> {
    let send = |name, op, bytes: &[u8]| write(name, op, memory::keep(bytes), bytes.len());
    let response = memory::room(RESPONSE.into()).to_ne_bytes();
    // The device attributes are 176 bytes: 44 words.
    let known = |words| request::write(QUERY_DEVICE, words, 44, &response);
    let plain = |command| request::write(command, 4, 0, &response);
    Ok(vec![
        send("write", "QUERY_DEVICE", &known(4)),
        send("write-bad-size", "QUERY_DEVICE", &known(40)),
        send("write-header-only", "QUERY_DEVICE", &request::write(QUERY_DEVICE, 2, 0, &[])),
        send("write-extended", "EX_QUERY_DEVICE", &plain(QUERY_DEVICE | EXTENDED)),
        send("write-unknown", "CMD_0x4f", &plain(UNKNOWN)),
        send("write-unknown-extended", "EX_CMD_0x4f", &plain(UNKNOWN | EXTENDED)),
        send("write-invalid", "CMD_0xab0103", &plain(0x00ab_0103)),
        send("write-invalid-extended", "CMD_0x80000301", &plain(EXTENDED | 0x301)),
        send("write-4-bytes", "WRITE_UNREADABLE", &QUERY_DEVICE.to_ne_bytes()),
        send("write-empty", "WRITE_UNREADABLE", &[]),
        write("write-bad-pointer", "WRITE_UNREADABLE", UNMAPPED, 24),
        write("write-cut-off", "QUERY_DEVICE", memory::cut_off(&known(4), 4)?, 16),
    ])
}
