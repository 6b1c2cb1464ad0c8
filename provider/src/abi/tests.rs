//! Holds `src/abi` against rdma-core's private headers.
//!
//! No distribution packages them. The source of the crate `ibverbs-sys` carries a copy: it is in Cargo.lock for that
//! alone and never built. One of the headers is made by a script of rdma-core (needs python3).

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use layout_check::{Check, Error, layout};
use tbv_verbs_sys::{ibv_cq, ibv_mr, ibv_pd, ibv_recv_wr, ibv_send_wr};

use super::*;
use crate::batch::WorkRequest;
use crate::qp::Qp;

/// Scratch folder of a test.
fn scratch(name: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("usb4_rdma-abi-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Where cargo keeps rdma-core's source.
fn rdma_core() -> PathBuf {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut metadata = Command::new(cargo);
    metadata.args(["metadata", "--format-version=1", "--locked", "--manifest-path"]);
    let output = metadata.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).output().unwrap();
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package =
        packages.iter().find(|p| p["name"] == "ibverbs-sys").expect("ibverbs-sys is not in Cargo.lock");
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    manifest.parent().unwrap().join("vendor/rdma-core")
}

/// An include folder arranged as rdma-core's own build arranges it.
fn include_folder(scratch: &Path) -> PathBuf {
    let core = rdma_core();
    let include = scratch.join("include");
    fs::create_dir_all(include.join("kernel-abi")).unwrap();
    for (name, folder) in
        [("infiniband", "libibverbs"), ("ccan", "ccan"), ("util", "util"), ("rdma", "kernel-headers/rdma")]
    {
        symlink(core.join(folder), include.join(name)).unwrap();
    }
    fs::write(include.join("config.h"), "").unwrap();
    let status = Command::new("python3")
        .arg(core.join("buildlib/make_abi_structs.py"))
        .arg(core.join("kernel-headers/rdma/ib_user_verbs.h"))
        .arg(include.join("kernel-abi/ib_user_verbs.h"))
        .status()
        .expect("cannot start python3: install it");
    assert!(status.success());
    include
}

fn check(scratch: &Path, check: Check) -> Result<(), Error> {
    check.argument("-I").argument(include_folder(scratch)).run(scratch)
}

fn passes(name: &str, checks: Check) {
    let scratch = scratch(name);
    let result = check(&scratch, checks);
    fs::remove_dir_all(&scratch).unwrap();
    result.unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn structures() {
    let structures = Check::new("<infiniband/driver.h>")
        .all(layout!(verbs_match_ent as "struct verbs_match_ent" { driver_data, u, vendor, device, kind }))
        .all(layout!(verbs_sysfs_dev as "struct verbs_sysfs_dev" {
            entry, provider_data, match_ = "match", flags, sysfs_name, sysfs_cdev, ibdev_name, ibdev_path, modalias,
            node_guid, driver_id, node_type, ibdev_idx, num_ports, abi_ver, time_created,
        }))
        .all(layout!(verbs_device_ops as "struct verbs_device_ops" {
            name, match_min_abi_version, match_max_abi_version, match_table, static_providers, match_device,
            alloc_context, import_context, alloc_device, uninit_device,
        }))
        .all(layout!(verbs_device as "struct verbs_device" { device, ops, refcount, entry, sysfs, core_support }))
        .all(layout!(verbs_context as "struct verbs_context" { sz, context }))
        .all(layout!(verbs_mr as "struct verbs_mr" { ibv_mr, mr_type, access }))
        .all(layout!(ibv_mr as "struct ibv_mr" { lkey, rkey }))
        .all(layout!(ibv_pd as "struct ibv_pd" { context, handle }))
        .all(layout!(ibv_cq as "struct ibv_cq" { context, handle, cqe, mutex, cond, async_events_completed }))
        .all(layout!(tbv_verbs_sys::ibv_qp as "struct ibv_qp" { context, handle, mutex, events_completed }))
        .number("offsetof(struct verbs_qp, qp)", 0)
        .number(&format!("sizeof(struct verbs_qp) <= {}", size_of::<Qp>()), 1)
        .number("VERBS_MATCH_SENTINEL", VERBS_MATCH_SENTINEL)
        .number("VSYSFS_READ_NODE_GUID", VSYSFS_READ_NODE_GUID)
        .include("<rdma/ib_user_ioctl_verbs.h>")
        .number("RDMA_DRIVER_UNKNOWN", RDMA_DRIVER_UNKNOWN);
    passes("structures", structures);
}

#[test]
fn verbs() {
    let verbs = layout!(verbs_context_ops as "struct verbs_context_ops" {
        advise_mr, alloc_dm, alloc_mw, alloc_null_mr, alloc_parent_domain, alloc_pd, alloc_td, async_event,
        attach_counters_point_flow, attach_mcast, bind_mw, close_xrcd, cq_event, create_ah, create_counters,
        create_cq, create_cq_ex, create_flow, create_flow_action_esp, create_qp, create_qp_ex, create_rwq_ind_table,
        create_srq, create_srq_ex, create_wq, dealloc_mw, dealloc_pd, dealloc_td, dereg_mr, destroy_ah,
        destroy_counters, destroy_cq, destroy_flow, destroy_flow_action, destroy_qp, destroy_rwq_ind_table,
        destroy_srq, destroy_wq, detach_mcast, free_context, free_dm, get_srq_num, import_dm, import_mr, import_pd,
        modify_cq, modify_flow_action_esp, modify_qp, modify_qp_rate_limit, modify_srq, modify_wq, open_qp,
        open_xrcd, poll_cq, post_recv, post_send, post_srq_ops, post_srq_recv, query_device_ex, query_ece,
        query_port, query_qp, query_qp_data_in_order, query_rt_values, query_srq, read_counters, reg_dm_mr,
        reg_dmabuf_mr, reg_mr, req_notify_cq, rereg_mr, resize_cq, set_ece, unimport_dm, unimport_mr, unimport_pd,
    });
    passes("verbs", Check::new("<infiniband/driver.h>").all(verbs));
}

#[test]
fn commands() {
    macro_rules! sizes {
        ($($name:ident),* $(,)?) => {
            Check::new("<infiniband/driver.h>")$(.all(layout!($name as (concat!("struct ", stringify!($name))) {})))*
        };
    }
    let sizes = sizes!(
        ib_uverbs_alloc_pd_resp,
        ib_uverbs_create_cq_resp,
        ib_uverbs_create_qp_resp,
        ib_uverbs_get_context_resp,
        ib_uverbs_reg_mr_resp,
        ibv_alloc_pd,
        ibv_create_cq,
        ibv_create_qp,
        ibv_get_context,
        ibv_modify_qp,
        ibv_query_port,
        ibv_query_qp,
        ibv_reg_mr,
        ib_uverbs_ex_query_device_resp,
    )
    .number("offsetof(struct ib_uverbs_ex_query_device_resp, base.fw_ver)", 0)
    .number("sizeof(struct ib_uverbs_send_wr)", ibv_send_wr::BYTES as i128)
    .number("sizeof(struct ib_uverbs_recv_wr)", ibv_recv_wr::BYTES as i128);
    passes("commands", sizes);
}

/// Our declarations of functions and operations, as C: one that differs from the header's is a compile error.
#[test]
fn prototypes() {
    let scratch = scratch("prototypes");
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/src/abi/prototypes.h");
    let check = |ours: &str| {
        let definition = Check::new("<infiniband/driver.h>").argument("-DIBVERBS_PABI_VERSION=34");
        check(
            &scratch.join(ours),
            definition.include(&format!("\"{header}\"")).argument(format!("-DCQ={ours}")),
        )
    };
    assert!(
        matches!(check("ibv_qp"), Err(Error::Compile(m)) if m.contains("ibv_cmd_poll_cq")),
        "not compared"
    );
    let result = check("ibv_cq");
    fs::remove_dir_all(&scratch).unwrap();
    result.unwrap_or_else(|e| panic!("{e}"));
}
