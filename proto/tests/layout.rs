//! Compiles the C headers and holds them against the Rust mirror.
//!
//! Needs a C compiler: `cc`, or the one named by the environment variable CC.

#![cfg(test)]

use std::collections::BTreeMap;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tbv_proto::{AllocUcontextResp, CreateCqResp};

const PROTO: &str = env!("CARGO_MANIFEST_DIR");

/// The C compiler, set up to see the contract's headers and to tolerate nothing.
fn compiler() -> Command {
    let mut command = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()));
    command.args(["-std=gnu11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", PROTO]);
    command
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|e| panic!("cannot start {command:?}: {e}; install gcc or set CC"))
}

/// What C says: `name value` lines, where value is a number or a string.
fn c_side() -> BTreeMap<String, String> {
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("proto-layout");
    let compiled = run(compiler().arg(Path::new(PROTO).join("tests/layout.c")).arg("-o").arg(&program));
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));

    let printed = run(&mut Command::new(&program));
    assert!(printed.status.success());
    let text = String::from_utf8(printed.stdout).unwrap();
    text.lines().map(|line| line.split_once(' ').unwrap()).map(|(n, v)| (n.into(), v.into())).collect()
}

macro_rules! layout {
    ($rust:ident = $c:literal { $($field:ident),+ $(,)? }) => {
        [
            ($c.to_string(), size_of::<$rust>().to_string()),
            $((concat!($c, ".", stringify!($field)).to_string(), offset_of!($rust, $field).to_string()),)+
        ]
    };
}

fn rust_side() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    all.extend(layout!(
        AllocUcontextResp = "usb4_rdma_alloc_ucontext_resp" { uverbs_abi_version, device_index }
    ));
    all.extend(layout!(CreateCqResp = "usb4_rdma_create_cq_resp" {
        ring_offset, cqe, shm_abi, ring_len, reserved, consumer_offset,
    }));
    all.extend(
        [
            ("USB4_RDMA_UVERBS_ABI_VERSION", tbv_proto::UVERBS_ABI_VERSION.to_string()),
            ("USB4_RDMA_DRIVER_NAME", tbv_proto::DRIVER_NAME.to_string()),
            ("USB4_RDMA_DEVICE_NAME_FORMAT", format!("{}%d", tbv_proto::DEVICE_NAME_PREFIX)),
            ("USB4_RDMA_VENDOR_ID", tbv_proto::VENDOR_ID.to_string()),
            ("USB4_RDMA_VENDOR_PART_ID", tbv_proto::VENDOR_PART_ID.to_string()),
            ("USB4_RDMA_GUID_PREFIX", tbv_proto::GUID_PREFIX.to_string()),
            ("USB4_RDMA_GUID_PREFIX_SHIFT", tbv_proto::GUID_PREFIX_SHIFT.to_string()),
        ]
        .map(|(name, value)| (name.to_string(), value)),
    );
    all
}

#[test]
fn c_and_rust_agree() {
    assert_eq!(c_side(), rust_side());
}

/// The header's own assertions are not inert: a member that moves stops every build that includes it.
#[test]
fn a_moved_member_is_a_compile_error() {
    let header = Path::new(PROTO).join("usb4_rdma_abi.h");
    let check = |define: &str| run(compiler().args(["-fsyntax-only", "-x", "c", define]).arg(&header));

    assert!(check("-Dunrelated=1").status.success());
    let moved = check("-Dreserved=reserved[2]");
    assert!(!moved.status.success());
    assert!(String::from_utf8_lossy(&moved.stderr).contains("consumer_offset has moved"));
}
