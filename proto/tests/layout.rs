//! Holds the C headers against the Rust mirror, and the headers against themselves.

#![cfg(test)]

use std::path::{Path, PathBuf};
use std::process::Command;

use layout_check::{Check, layout};
use tbv_proto::{AllocUcontextResp, CqConsumer, CqShm, CreateCqResp};

const PROTO: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn c_and_rust_agree() {
    Check::new("\"usb4_rdma_abi.h\"")
        .argument("-Wextra")
        .argument("-Wpedantic")
        .argument(format!("-I{PROTO}"))
        .all(layout!(
            AllocUcontextResp as "struct usb4_rdma_alloc_ucontext_resp" { uverbs_abi_version, device_index }
        ))
        .all(layout!(CreateCqResp as "struct usb4_rdma_create_cq_resp" {
            ring_offset, cqe, shm_abi, ring_len, reserved, consumer_offset,
        }))
        .include("\"tbv_cq_shm.h\"")
        .all(layout!(CqShm as "struct tbv_cq_shm" {
            abi, cqe, entry_size, device_index, cqn, reserved, produced, ovf_seq, dead, reserved_line,
        }))
        .all(layout!(CqConsumer as "struct tbv_cq_consumer" { consumed }))
        .number("TBV_CQ_SHM_ABI", tbv_proto::CQ_SHM_ABI)
        .number("TBV_CQ_SHM_ENTRY_SIZE", tbv_proto::CQ_SHM_ENTRY_SIZE as u32)
        .include("<rdma/ib_user_verbs.h>")
        .number("sizeof(struct ib_uverbs_wc)", tbv_proto::CQ_SHM_ENTRY_SIZE as u32)
        .number("USB4_RDMA_UVERBS_ABI_VERSION", tbv_proto::UVERBS_ABI_VERSION)
        .text("USB4_RDMA_DRIVER_NAME", tbv_proto::DRIVER_NAME)
        .text("USB4_RDMA_DEVICE_NAME_FORMAT", &format!("{}%d", tbv_proto::DEVICE_NAME_PREFIX))
        .number("USB4_RDMA_VENDOR_ID", tbv_proto::VENDOR_ID)
        .number("USB4_RDMA_VENDOR_PART_ID", tbv_proto::VENDOR_PART_ID)
        .number("USB4_RDMA_GUID_PREFIX", tbv_proto::GUID_PREFIX)
        .number("USB4_RDMA_GUID_PREFIX_SHIFT", tbv_proto::GUID_PREFIX_SHIFT)
        .run(&PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("proto-layout"))
        .unwrap();
}

/// The header's own assertions are not inert: a member that moves stops every build that includes it.
#[test]
fn a_moved_member_is_a_compile_error() {
    let compile = |define: &str| {
        Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()))
            .args(["-std=gnu11", "-fsyntax-only", "-x", "c", define])
            .arg(Path::new(PROTO).join("usb4_rdma_abi.h"))
            .output()
            .expect("cannot start the C compiler: install gcc or set CC")
    };
    assert!(compile("-Dunrelated=1").status.success());
    let moved = compile("-Dreserved=reserved[2]");
    assert!(!moved.status.success());
    assert!(String::from_utf8_lossy(&moved.stderr).contains("consumer_offset has moved"));
}
