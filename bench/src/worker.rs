//! The calls that are traced.

use std::{fs::File, os::fd::AsRawFd as _, time::Instant};

use anyhow::{Context as _, Result, ensure};
use tbv_common::op::{ATTR_CORE_IN, ATTR_WRITE_CMD, RDMA_VERBS_IOCTL};

/// `struct ib_uverbs_attr`.
#[repr(C)]
struct Attr {
    id: u16,
    len: u16,
    flags: u16,
    reserved: u16,
    data: u64,
}

/// A POLL_CQ as libibverbs sends it: INVOKE_WRITE with three attributes.
#[repr(C)]
struct Request {
    /// length, object, method, number of attributes.
    head: [u16; 4],
    reserved: u64,
    driver: [u32; 2],
    attrs: [Attr; 3],
}

/// Makes `calls` of them and prints the nanoseconds that each took.
pub(crate) fn work(calls: u64) -> Result<()> {
    const POLL_CQ: u64 = 21;
    // struct ib_uverbs_poll_cq
    let command = [0u64, 3 | 1 << 32];
    let attr = |id, len, data| Attr { id, len, flags: 1, reserved: 0, data };
    let request = Request {
        head: [size_of::<Request>() as u16, 0, 0, 3],
        reserved: 0,
        driver: [0; 2],
        attrs: [
            attr(ATTR_CORE_IN, 16, command.as_ptr() as u64),
            attr(1, 256, command.as_ptr() as u64),
            attr(ATTR_WRITE_CMD, 4, POLL_CQ),
        ],
    };
    let file = File::open("/dev/null").context("/dev/null")?;
    let begin = Instant::now();
    for _ in 0..calls {
        // SAFETY: the device refuses every ioctl without a look at the address.
        let answer = unsafe { libc::ioctl(file.as_raw_fd(), RDMA_VERBS_IOCTL.into(), &raw const request) };
        ensure!(answer == -1, "/dev/null took an ioctl");
    }
    println!("{}", begin.elapsed().as_nanos() as f64 / calls as f64);
    Ok(())
}
