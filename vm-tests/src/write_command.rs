//! The write commands that the tests meet, named without help from what is tested.

use anyhow::{Context, Result};

/// `IB_USER_VERBS_CMD_FLAG_EXTENDED`.
const EXTENDED: u32 = 0x8000_0000;
/// `struct ib_uverbs_cmd_hdr`.
const HEADER: usize = 8;

/// `enum ib_uverbs_write_cmds` (`rdma/ib_user_verbs.h`).
const COMMANDS: [(u32, &str); 14] = [
    (0, "GET_CONTEXT"),
    (1, "QUERY_DEVICE"),
    (2, "QUERY_PORT"),
    (3, "ALLOC_PD"),
    (4, "DEALLOC_PD"),
    (5, "CREATE_AH"),
    (9, "REG_MR"),
    (17, "CREATE_COMP_CHANNEL"),
    (21, "POLL_CQ"),
    (23, "REQ_NOTIFY_CQ"),
    (28, "POST_SEND"),
    (29, "POST_RECV"),
    (36, "POST_SRQ_RECV"),
    (EXTENDED | 1, "EX_QUERY_DEVICE"),
];

/// The name of the command in a write of `size` bytes that begins with `data`.
pub(crate) fn name(data: Option<&[u8]>, size: usize) -> Result<String> {
    let first = data.and_then(|data| data.first_chunk::<4>());
    let Some(command) = first.filter(|_| size >= HEADER).map(|bytes| u32::from_ne_bytes(*bytes)) else {
        return Ok("WRITE_UNREADABLE".into());
    };
    if command & !(EXTENDED | 0xff) != 0 {
        return Ok(format!("CMD_{command:#x}"));
    }
    if (command & 0xff) >= 0x40 {
        let prefix = if command & EXTENDED != 0 { "EX_" } else { "" };
        return Ok(format!("{prefix}CMD_{:#x}", command & 0xff));
    }
    let row = COMMANDS.iter().find(|row| row.0 == command & (EXTENDED | 0xff));
    Ok(row.with_context(|| format!("command {command:#x} has no name in the tests"))?.1.into())
}
