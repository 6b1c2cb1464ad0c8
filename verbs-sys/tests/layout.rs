//! Holds the bindings against the installed `<infiniband/verbs.h>` (Debian: libibverbs-dev).

#![cfg(test)]

use std::mem::size_of;
use std::path::PathBuf;

use layout_check::{Check, layout};
use tbv_verbs_sys::*;

fn check() -> Check {
    Check::new("<infiniband/verbs.h>")
}

fn run(check: Check, name: &str) {
    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    check.run(&scratch).unwrap_or_else(|e| panic!("{e}\n(is libibverbs-dev installed?)"));
}

#[test]
fn objects() {
    let objects = check()
        .all(layout!(ibv_device as "struct ibv_device" {
            _ops, node_type, transport_type, name, dev_name, dev_path, ibdev_path,
        }))
        .all(layout!(ibv_context_ops as "struct ibv_context_ops" {
            poll_cq, req_notify_cq, post_send, post_recv,
        }))
        .all(layout!(ibv_context as "struct ibv_context" {
            device, ops, cmd_fd, async_fd, num_comp_vectors, mutex, abi_compat,
        }))
        .all(layout!(ibv_pd as "struct ibv_pd" { context, handle }))
        .all(layout!(ibv_mr as "struct ibv_mr" { context, pd, addr, length, handle, lkey, rkey }))
        .all(layout!(ibv_comp_channel as "struct ibv_comp_channel" { context, fd, refcnt }))
        .all(layout!(ibv_cq as "struct ibv_cq" {
            context, channel, cq_context, handle, cqe, mutex, cond, comp_events_completed, async_events_completed,
        }))
        .all(layout!(ibv_qp as "struct ibv_qp" {
            context, qp_context, pd, send_cq, recv_cq, srq, handle, qp_num, state, qp_type, mutex, cond,
            events_completed,
        }));
    run(objects, "objects");
}

#[test]
fn extended_completion_queues() {
    let extended = check()
        .all(layout!(ibv_cq_init_attr_ex as "struct ibv_cq_init_attr_ex" {
            cqe, cq_context, channel, comp_vector, wc_flags, comp_mask, flags, parent_domain,
        }))
        .all(layout!(ibv_poll_cq_attr as "struct ibv_poll_cq_attr" { comp_mask }))
        .all(layout!(ibv_cq_ex as "struct ibv_cq_ex" {
            comp_mask, status, wr_id, start_poll, next_poll, end_poll, read_opcode, read_vendor_err, read_byte_len,
            read_imm_data, read_qp_num, read_src_qp, read_wc_flags, read_slid, read_sl, read_dlid_path_bits,
            read_completion_ts, read_cvlan, read_flow_tag, read_tm_info, read_completion_wallclock_ns,
        }))
        .all(layout!(verbs_context as "struct verbs_context" { create_cq_ex, sz, context }));
    run(extended, "extended");
}

#[test]
fn work_requests_and_completions() {
    let work = check()
        .all(layout!(ibv_sge as "struct ibv_sge" { addr, length, lkey }))
        .all(layout!(ibv_send_wr as "struct ibv_send_wr" {
            wr_id, next, sg_list, num_sge, opcode, send_flags, imm_data, rdma = "wr",
        }))
        .number("offsetof(struct ibv_send_wr, wr.rdma.rkey) - offsetof(struct ibv_send_wr, wr)", 8)
        .number("sizeof(((struct ibv_send_wr *)0)->wr)", size_of::<ibv_send_wr_rdma>() as i128)
        .all(layout!(ibv_recv_wr as "struct ibv_recv_wr" { wr_id, next, sg_list, num_sge }))
        .all(layout!(ibv_wc as "struct ibv_wc" {
            wr_id, status, opcode, vendor_err, byte_len, imm_data, qp_num, src_qp, wc_flags, pkey_index, slid, sl,
            dlid_path_bits,
        }));
    run(work, "work");
}

#[test]
fn attributes() {
    let attributes = check()
        .all(layout!(ibv_device_attr as "struct ibv_device_attr" {
            fw_ver, node_guid, max_mr_size, vendor_id, vendor_part_id, max_qp, max_qp_wr, max_sge, max_cqe,
            max_pkeys, local_ca_ack_delay, phys_port_cnt,
        }))
        .all(layout!(ibv_async_event as "struct ibv_async_event" { element, event_type }))
        .all(layout!(ibv_ah_attr as "struct ibv_ah_attr" {
            grh, dlid, sl, src_path_bits, static_rate, is_global, port_num,
        }))
        .all(layout!(ibv_global_route as "struct ibv_global_route" {
            dgid, flow_label, sgid_index, hop_limit, traffic_class,
        }))
        .all(layout!(ibv_qp_cap as "struct ibv_qp_cap" {
            max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data,
        }))
        .all(layout!(ibv_qp_init_attr as "struct ibv_qp_init_attr" {
            qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all,
        }))
        .all(layout!(ibv_qp_attr as "struct ibv_qp_attr" {
            qp_state, cur_qp_state, path_mtu, path_mig_state, qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags,
            cap, ah_attr, alt_ah_attr, pkey_index, alt_pkey_index, en_sqd_async_notify, sq_draining,
            max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry,
            alt_port_num, alt_timeout, rate_limit,
        }));
    run(attributes, "attributes");
}

/// This structure grows from release to release: ours has to be at least as large, with the known part in place.
#[test]
fn port_attributes_have_room() {
    let offsets = layout!(ibv_port_attr as "struct ibv_port_attr" {
        state, max_mtu, active_mtu, gid_tbl_len, max_msg_sz, pkey_tbl_len, lid, sm_lid, lmc, active_width,
        active_speed, phys_state, link_layer, flags, port_cap_flags2,
    });
    let known = offsets.into_iter().filter(|(expression, _)| expression.starts_with("offsetof"));
    let room = format!("sizeof(struct ibv_port_attr) <= {}", size_of::<ibv_port_attr>());
    run(check().all(known).number(&room, 1), "port-attributes");
}

#[test]
fn constants() {
    macro_rules! constants {
        ($($name:ident),* $(,)?) => { check()$(.number(stringify!($name), $name as i128))* };
    }
    let constants = constants!(
        IBV_WC_EX_WITH_BYTE_LEN,
        IBV_WC_EX_WITH_IMM,
        IBV_WC_EX_WITH_QP_NUM,
        IBV_WC_EX_WITH_SRC_QP,
        IBV_WC_EX_WITH_SLID,
        IBV_WC_EX_WITH_SL,
        IBV_WC_EX_WITH_DLID_PATH_BITS,
        IBV_WC_STANDARD_FLAGS,
        IBV_CQ_INIT_ATTR_MASK_FLAGS,
        IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
        IBV_SYSFS_NAME_MAX,
        IBV_SYSFS_PATH_MAX,
        IBV_WR_RDMA_WRITE,
        IBV_WR_RDMA_WRITE_WITH_IMM,
        IBV_WR_SEND,
        IBV_WR_SEND_WITH_IMM,
        IBV_WR_RDMA_READ,
        IBV_SEND_FENCE,
        IBV_SEND_SIGNALED,
        IBV_SEND_SOLICITED,
        IBV_SEND_INLINE,
        IBV_WC_SUCCESS,
        IBV_WC_LOC_LEN_ERR,
        IBV_WC_LOC_QP_OP_ERR,
        IBV_WC_LOC_PROT_ERR,
        IBV_WC_WR_FLUSH_ERR,
        IBV_WC_REM_INV_REQ_ERR,
        IBV_WC_REM_ACCESS_ERR,
        IBV_WC_REM_OP_ERR,
        IBV_WC_RETRY_EXC_ERR,
        IBV_WC_RNR_RETRY_EXC_ERR,
        IBV_WC_SEND,
        IBV_WC_RECV,
        IBV_WC_WITH_IMM,
        IBV_ACCESS_LOCAL_WRITE,
        IBV_ACCESS_REMOTE_WRITE,
        IBV_ACCESS_REMOTE_READ,
        IBV_ACCESS_REMOTE_ATOMIC,
        IBV_QPT_RC,
        IBV_QPT_UC,
        IBV_QPS_RESET,
        IBV_QPS_INIT,
        IBV_QPS_RTR,
        IBV_QPS_RTS,
        IBV_QPS_ERR,
        IBV_QP_STATE,
        IBV_QP_ACCESS_FLAGS,
        IBV_QP_PKEY_INDEX,
        IBV_QP_PORT,
        IBV_QP_AV,
        IBV_QP_PATH_MTU,
        IBV_QP_TIMEOUT,
        IBV_QP_RETRY_CNT,
        IBV_QP_RNR_RETRY,
        IBV_QP_RQ_PSN,
        IBV_QP_MAX_QP_RD_ATOMIC,
        IBV_QP_MIN_RNR_TIMER,
        IBV_QP_SQ_PSN,
        IBV_QP_MAX_DEST_RD_ATOMIC,
        IBV_QP_CAP,
        IBV_QP_DEST_QPN,
        IBV_EVENT_CQ_ERR,
        IBV_PORT_ACTIVE,
        IBV_LINK_LAYER_INFINIBAND,
        IBV_LINK_LAYER_ETHERNET,
    );
    run(constants, "constants");
}
